"""Which part of the target a MERGE looks at: rows elsewhere can't match, whatever they hold.

It prunes files, and it is what the transaction has read: an append of rows that can't match is not
a conflict. Made of the conditions on the target alone, and of the keys that the source has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.core.compute import pc
from lakelog.core.expressions.conditions import bound_condition
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
from lakelog.core.schema.column_paths import find_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from lakelog.core.dml.merge.search_condition import KeyPair, SearchCondition
    from lakelog.core.dml.merge.sides import Bound, Sides
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import DataType

_MOST_VALUES: Final = 64
"""So many keys are listed; of more, the least and the greatest are used."""
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
    parts = [_of_target(each, sides) for each in search.target_only]
    parts += [_of_key(pair, values, sides) for pair, values in zip(search.keys, keys, strict=True)]
    known = [each for each in parts if each is not None]
    return join_and(known) if known else None


def _of_target(bound: Bound, sides: Sides) -> Expression | None:
    """A condition on the target alone, over its own columns."""
    prefix = sides.target.named("")

    def bare(name: Name) -> Name:
        if name.path[0] not in bound.names:
            return name
        return Name((name.path[0].removeprefix(prefix), *name.path[1:]), quoted=True)

    return bound_condition(
        renamed(bound.root, bare),
        sides.target.schema,
        session_tz=sides.session_tz,
        now_ms=sides.now_ms,
    )


def _of_key(pair: KeyPair, values: pa.Array[Any], sides: Sides) -> Expression | None:
    column = _column(pair, sides)
    if column is None:
        return None
    assert column.data_type is not None
    distinct = pc.unique(values)
    with_null = pair.null_safe and distinct.null_count > 0
    distinct = distinct.drop_null()
    either: list[Expression] = [IsNull(column)] if with_null else []
    try:
        if 0 < len(distinct) <= _MOST_VALUES:
            listed = tuple(_literal(each, column.data_type) for each in distinct)
            either.append(In(column, listed))
        elif len(distinct):
            bounds = pc.min_max(distinct)
            least, most = (_literal(bounds[end], column.data_type) for end in ("min", "max"))
            between = Comparison(">=", column, least), Comparison("<=", column, most)
            either.append(And(between))
    except (OverflowError, ValueError):
        return None  # a time that Python does not have
    return join_or(either)


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


def _literal(value: Any, kind: DataType) -> Literal:
    return Literal(value.as_py(), kind)
