"""Which part of the target a MERGE looks at: rows elsewhere can't match, whatever they hold.

It prunes files, and it is what the transaction has read: an append of rows that can't match is not
a conflict. Made of the conditions on the target alone, and of the keys that the source has.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.compute import pc
from lakelog.core.dml.merge.search_condition import SearchCondition
from lakelog.core.dml.merge.sides import Side, Sides
from lakelog.core.errors import DeltaError
from lakelog.core.expressions.binding import bind
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    In,
    IsNull,
    Literal,
    Name,
    join_and,
    join_or,
    renamed,
)
from lakelog.core.schema import DecimalType, PrimitiveType
from lakelog.core.schema.char_varchar import Limit
from lakelog.core.schema.column_paths import find_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakelog.core.dml.merge.search_condition import KeyPair
    from lakelog.core.dml.merge.sides import Bound
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import DataType, StructType
    from lakelog.core.state.snapshot import Snapshot

_MOST_VALUES: Final = 64
"""So many keys are listed; of more, the least and the greatest are used."""
_STRING: Final = PrimitiveType("string")
_WITHOUT_BOUNDS: Final = tuple(map(PrimitiveType, ("boolean", "timestamp", "timestamp_ntz")))
"""Types of which an engine gives none: times have the zone of its session."""
_ORDERED: Final = frozenset(
    {"byte", "short", "integer", "long", "string", "date", "timestamp", "timestamp_ntz", "boolean"}
)


def read_predicate(
    search: SearchCondition, sides: Sides, keys: Sequence[pa.Array[Any]], candidates: int
) -> Expression | None:
    """What is true of every row of the target that can match; `None` where any row can.

    Args:
        search: what rows are matched by.
        sides: the columns of both tables.
        keys: of each of `search.keys`, the values that the source has.
        candidates: the number of source rows that can match at all.
    """
    if not candidates:
        # Nothing could match, whatever others add: no file is read, and no append conflicts.
        return Literal(False, PrimitiveType("boolean"))
    parts: list[Expression | None] = [_of_target(each, sides) for each in search.target_only]
    pairs = zip(search.keys, keys, strict=True)
    parts += [_of_values(pair, values, sides) for pair, values in pairs]
    return _joined(parts)


@dataclass(frozen=True, slots=True)
class MergeReads:
    """What a MERGE reads that an engine carries out, as far as lakelog understands its condition.

    Only speed and the number of conflicts depend on how far that is.
    """

    filters: tuple[Expression, ...]
    """Conditions on the table alone."""
    keys: tuple[str, ...]
    """Columns of the source: a row of the table that is not between the ends of one can't match."""
    columns: tuple[tuple[Column, int], ...]
    """The table's column that each is equal to, and the length of a CHAR, else 0."""

    @classmethod
    def of(
        cls, condition: object, snapshot: Snapshot, source: StructType, alias: str | None
    ) -> MergeReads:
        """Take a condition apart.

        Args:
            condition: SQL text, or what has none.
            snapshot: the table's.
            source: the schema of the source.
            alias: what the MERGE calls the table.
        """
        mine = Side(snapshot.read_schema, alias or "__lakelog_target")
        theirs = Side(source, "__lakelog_source")
        context = EvalContext.of(snapshot.conf, snapshot.clock.now_ms())
        sides = Sides(mine, theirs, context)
        search, filters, keys, columns = SearchCondition.understood(condition, sides), [], [], []
        for each in search.target_only:
            with contextlib.suppress(DeltaError):
                filters.append(_of_target(each, sides))
        for key in search.keys:
            column, root = _column(key, sides), key.source.root
            plain = isinstance(root, Name) and len(root.path) == 1 and not key.null_safe
            # Texts are in another order than the numbers or dates that they are compared as.
            same_order = key.source.data_type != _STRING or key.data_type == _STRING
            has_bounds = plain and same_order and key.data_type not in _WITHOUT_BOUNDS
            if has_bounds and column is not None:
                keys += [name for name in source.names if theirs.named(name) in key.source.names]
                columns.append((column, key.char_length))
        return cls(tuple(filters), tuple(keys), tuple(columns))

    def predicate(self, bounds: Sequence[Any]) -> Expression | None:
        """What is true of every row of the table that can match; `None` where any row can.

        Args:
            bounds: of the source, the least and the greatest value of each of `keys`, as Arrow
                scalars; null where it has none.
        """
        parts: list[Expression | None] = [*self.filters]
        ends = zip(self.columns, bounds[::2], bounds[1::2], strict=True)
        parts += [_between(column, least, most, size) for (column, size), least, most in ends]
        return _joined(parts)


def _joined(parts: Sequence[Expression | None]) -> Expression | None:
    known = [each for each in parts if each is not None]
    return join_and(known) if known else None


def _of_target(bound: Bound, sides: Sides) -> Expression:
    """A condition on the target alone, over its own columns."""
    prefix = sides.target.named("")

    def bare(name: Name) -> Name:
        if name.path[0] not in bound.names:
            return name
        return Name((name.path[0].removeprefix(prefix), *name.path[1:]), quoted=True)

    return bind(renamed(bound.root, bare), sides.target.schema, sides.context)


def _of_values(pair: KeyPair, values: pa.Array[Any], sides: Sides) -> Expression | None:
    """That a key is one of some values, or between the least and the greatest of many."""
    column = _column(pair, sides)
    if column is None:
        return None
    distinct = pc.unique(values)
    with_null = pair.null_safe and distinct.null_count > 0
    distinct = distinct.drop_null()
    part: Expression | None
    # Exact for a few keys, so that rows with others, which another writer adds between the least
    # and the greatest, don't conflict.
    if 0 < len(distinct) <= _MOST_VALUES:
        try:
            part = In(column, tuple(_literal(each, column) for each in distinct))
        except (OverflowError, ValueError):
            return None  # a time that Python does not have
    else:
        bounds = pc.min_max(distinct)
        part = _between(column, bounds["min"], bounds["max"])
    return join_or([IsNull(column), part]) if with_null and part is not None else part


def _between(column: Column, least: Any, most: Any, char_length: int = 0) -> Expression | None:
    """That a column is between two values, where there are any."""
    if not (least.is_valid and most.is_valid):
        return Literal(False, PrimitiveType("boolean"))
    try:
        ends = _literal(least, column), _literal(most, column)
    except (OverflowError, ValueError):
        return None  # a time that Python does not have
    if char_length:
        texts = Limit(True, char_length).range_of(least.as_py(), most.as_py())
        ends = Literal(texts[0], column.data_type), Literal(texts[1], column.data_type)
    return And((Comparison(">=", column, ends[0]), Comparison("<=", column, ends[1])))


def _column(pair: KeyPair, sides: Sides) -> Column | None:
    """The target's column, where the key is one and compared in its own type."""
    if not isinstance(pair.target.root, Name):
        return None
    path = pair.target.root.path
    prefix = sides.target.named("")
    if not path[0].startswith(prefix):
        return None
    found = find_column((path[0].removeprefix(prefix), *path[1:]), sides.target.schema)
    if found is None or found[1] != pair.data_type or not _is_ordered(found[1]):
        return None
    return Column(*found)


def _is_ordered(kind: DataType) -> bool:
    """Whether least and greatest mean here what they mean in statistics."""
    return isinstance(kind, DecimalType) or (
        isinstance(kind, PrimitiveType) and kind.name in _ORDERED
    )


def _literal(value: Any, column: Column) -> Literal:
    return Literal(value.as_py(), column.data_type)
