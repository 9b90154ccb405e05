"""What a command reads of the table: the files that can have rows which match."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.engine.conditions import (
    Column,
    Comparison,
    EvalContext,
    Literal,
    Name,
    Not,
    conjuncts,
    join_and,
    names,
    normalize_filter,
    parse_sql,
    renamed,
    to_sql,
)
from lakelog.core.errors import DeltaError
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core import Expression, Snapshot
    from lakelog.core.schema import StructType

_MOST_PARTITIONS = 200
"""So many are named in the condition by which others' commits are looked at."""
_NAMED = frozenset({"byte", "short", "integer", "long", "date", "string", "boolean"})


@dataclass(frozen=True, slots=True)
class RowCondition:
    """The condition of a DELETE or UPDATE as lakelog understands it, for whichever way is taken."""

    whole: Expression | None
    """The same, where all of it is understood."""
    part: Expression | None
    """True for every row for which the condition is; `None` if that is all that can be said."""

    @classmethod
    def of(cls, given: object, snapshot: Snapshot, alias: str | None) -> RowCondition:
        """Take a condition apart.

        Args:
            given: SQL text, or what has none.
            snapshot: the version.
            alias: what the condition calls the table.
        """
        if not isinstance(given, str):
            return cls(None, None)
        # Where a column has the alias's name, `s.id` is the table's `id` to Spark.
        if alias is None or snapshot.schema.get(alias) is None:
            whole = _understood(given, snapshot)
            if whole is not None:
                # To Spark, a null without a type is not a condition.
                is_null = isinstance(whole, Literal) and whole.value is None
                return cls(None if is_null else whole, whole)
        parts: list[Expression | None] = []
        with contextlib.suppress(DeltaError):
            texts = [_of_table(e, snapshot.schema, alias) for e in conjuncts(parse_sql(given))]
            parts = [None if text is None else _understood(text, snapshot) for text in texts]
        known = [each for each in parts if each is not None]
        part = join_and(known) if known else None
        return cls(part if len(known) == len(parts) else None, part)


def outside_of(snapshot: Snapshot, values: pa.Table) -> Expression | None:
    """A condition that is true in all partitions but these, also in those that are yet to come.

    Args:
        snapshot: the version.
        values: of the partitions, by their columns.

    Returns:
        `None` where there is no such condition: it would be too long, or hold other values than
        whole numbers, strings, dates and truth values.
    """
    kinds = [f.data_type for f in snapshot.partition_schema]
    if not all(isinstance(k, PrimitiveType) and k.name in _NAMED for k in kinds):
        return None
    names = snapshot.partition_columns
    known = values.group_by(list(names)).aggregate([]).to_pylist()
    if not 0 < len(known) <= _MOST_PARTITIONS:
        return None
    parts = [
        Not(join_and([Comparison("<=>", Column((n,)), Literal(row[n])) for n in names]))
        for row in known
    ]
    with contextlib.suppress(DeltaError):
        return normalize_filter(join_and(parts), snapshot.schema, EvalContext.of(snapshot.conf))
    return None


def _understood(text: str, snapshot: Snapshot) -> Expression | None:
    with contextlib.suppress(DeltaError):
        context = EvalContext.of(snapshot.conf, snapshot.clock.now_ms())
        return normalize_filter(text, snapshot.schema, context)
    return None


def _of_table(node: Expression, target: StructType, alias: str | None) -> str | None:
    """A condition on the table, without the alias, if it is one."""

    def own(path: tuple[str, ...]) -> tuple[str, ...] | None:
        """The path without the alias."""
        first, second = path[0], next(iter(path[1:]), None)
        if alias is not None and first.lower() == alias.lower():
            # A column of the alias's name has fields that look the same.
            if second is None or target.get(alias) is not None:
                return None
            return path[1:] if target.get(second) is not None else None
        return path if target.get(first) is not None else None

    paths = [each.path for each in names(node)]
    if not paths or any(own(path) is None for path in paths):
        return None
    return to_sql(renamed(node, lambda name: Name(own(name.path) or name.path, quoted=True)))
