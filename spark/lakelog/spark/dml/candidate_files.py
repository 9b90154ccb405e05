"""What a command reads of the table: the files that can have rows which match."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.engine.conditions import (
    Column,
    Compare,
    Comparison,
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
from lakelog.core.engine.schemas import limit_of
from lakelog.core.errors import DeltaError
from lakelog.core.schema import DecimalType, PrimitiveType
from lakelog.spark.dml.merge.char_comparisons import compared_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakelog.core import Expression, Snapshot
    from lakelog.core.schema import StructType

_MOST_PARTITIONS = 200
"""So many are named in the condition by which others' commits are looked at."""
_NAMED = frozenset({"byte", "short", "integer", "long", "date", "string", "boolean"})
_BOUNDED = frozenset({"byte", "short", "integer", "long", "date", "string"})
"""Types of which a least and a greatest value bound all: NaN is outside of a DOUBLE's bounds."""


@dataclass(frozen=True, slots=True)
class MergeReads:
    """What a condition says of the table's rows alone, and of the columns that are keys."""

    filters: tuple[str, ...]
    """Conditions on the table's columns, under their own names."""
    keys: tuple[tuple[str, str], ...]
    """A column of the table, and the source's of the same type, that must be equal to match."""

    @classmethod
    def from_condition(
        cls, condition: object, target: StructType, source: StructType, alias: str | None
    ) -> MergeReads:
        """Take a condition apart, as far as it is text that we understand.

        Only speed and the number of conflicts depend on that.

        Args:
            condition: SQL text, or what has none.
            target: the table's schema.
            source: the source's.
            alias: what the MERGE calls the table.
        """
        if not isinstance(condition, str):
            return cls((), ())
        filters, keys = [], []
        with contextlib.suppress(DeltaError):
            for part in conjuncts(parse_sql(condition)):
                if (text := _of_table(part, target, alias, source)) is not None:
                    filters.append(text)
                elif (key := _key(part, target, source, alias)) is not None:
                    keys.append(key)
        return cls(tuple(filters), tuple(keys))

    def predicate(self, snapshot: Snapshot, bounds: Sequence[Any]) -> Expression | None:
        """A condition that is true for every row which can match; `None` for all rows.

        Args:
            snapshot: the version.
            bounds: of the source, the least and the greatest value of each key, as Arrow scalars.
        """
        parts: list[Expression] = []
        for text in self.filters:
            found = _understood(text, snapshot)
            if found is not None:
                parts.append(found)
        for at, (name, _) in enumerate(self.keys):
            least, greatest = (each.as_py() for each in bounds[2 * at : 2 * at + 2])
            if least is None or greatest is None:
                continue
            limit = limit_of(snapshot.schema.get(name))
            if limit is not None and limit.pads:
                least, greatest = limit.range_of(least, greatest)
            with contextlib.suppress(DeltaError):
                column = Column((name,))
                both: Any = [
                    Comparison(">=", column, Literal(least, exact=True)),
                    Comparison("<=", column, Literal(greatest, exact=True)),
                ]
                found = normalize_filter(
                    join_and(both),
                    snapshot.schema,
                    session_tz=snapshot.conf.session_tz,
                    now_ms=snapshot.clock.now_ms(),
                )
                if found is not None:
                    parts.append(found)
        return join_and(parts) if parts else None


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
        zone = snapshot.conf.session_tz
        return normalize_filter(join_and(parts), snapshot.schema, session_tz=zone)
    return None


def _understood(text: str, snapshot: Snapshot) -> Expression | None:
    with contextlib.suppress(DeltaError):
        return normalize_filter(
            text,
            snapshot.schema,
            session_tz=snapshot.conf.session_tz,
            now_ms=snapshot.clock.now_ms(),
        )
    return None


def _of_table(
    node: Expression, target: StructType, alias: str | None, source: StructType | None = None
) -> str | None:
    """A condition on the table alone, without the alias, if it is one.

    Beside a source, a name without the alias is the table's where the source has no such column;
    what is before a dot is taken for an alias then.
    """

    def own(path: tuple[str, ...]) -> tuple[str, ...] | None:
        """The path without the alias."""
        first, second = path[0], next(iter(path[1:]), None)
        if alias is not None and first.lower() == alias.lower():
            # A column of the alias's name has fields that look the same.
            if second is None or target.get(alias) is not None:
                return None
            fits = source is None or len(path) == 2
            return path[1:] if fits and target.get(second) is not None else None
        if source is not None and (len(path) > 1 or source.get(first) is not None):
            return None
        return path if target.get(first) is not None else None

    paths = [each.path for each in names(node)]
    if not paths or any(own(path) is None for path in paths):
        return None
    return to_sql(renamed(node, lambda name: Name(own(name.path) or name.path, quoted=True)))


def _key(
    node: Expression, target: StructType, source: StructType, alias: str | None
) -> tuple[str, str] | None:
    if not isinstance(node, Compare) or node.op != "=":
        return None
    found = compared_columns(node, target, source, alias)
    if found is None or found[0].data_type != found[1].data_type:
        return None
    ours, theirs, _ = found
    kind = ours.data_type
    simple = isinstance(kind, PrimitiveType) and kind.name in _BOUNDED
    return (ours.name, theirs.name) if simple or isinstance(kind, DecimalType) else None
