"""The condition that rows are matched by, taken apart: keys to look up, and what is left."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaError, InvalidPredicateError
from lakelog.core.expressions.coerce import NotInCoreError, compared_type
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import Compare, Name, conjuncts, names, renamed
from lakelog.core.schema import DecimalType, PrimitiveType
from lakelog.core.schema.char_varchar import limit_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.dml.merge.sides import Bound, Sides
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import DataType, StructField, StructType


@dataclass(frozen=True, slots=True)
class KeyPair:
    """`target = source`, where each side names columns of one table."""

    target: Bound
    source: Bound
    data_type: DataType
    """In which they are compared."""
    null_safe: bool
    """`<=>`: null equals null."""
    char_length: int = 0
    """Where the target's is a CHAR, its length: a shorter value of the source is filled up."""


@dataclass(frozen=True, slots=True)
class SearchCondition:
    """All of these must be true."""

    text: str
    keys: tuple[KeyPair, ...]
    target_only: tuple[Bound, ...]
    source_only: tuple[Bound, ...]
    """Those without any column are among them."""
    pairs: tuple[Bound, ...]
    """What needs both rows."""

    @classmethod
    def parse(cls, sql: str, sides: Sides) -> SearchCondition:
        """Take a condition apart.

        Raises:
            InvalidPredicateError: it can't be parsed, or has a part that only Spark evaluates.
            DeltaAnalysisError: an unknown or ambiguous name, a subquery, a function that can't be
                in a condition, or an expression that is not boolean.
        """
        return cls._of(sql, conjuncts(parse_sql(sql)), sides)

    @classmethod
    def understood(cls, given: object, sides: Sides) -> SearchCondition:
        """The parts of a condition that lakelog evaluates; the others may be anything.

        Args:
            given: SQL text, or what has none.
            sides: the source under a name that stands for whatever the condition calls it.
        """
        parts: list[Expression | None] = []
        if isinstance(given, str):
            with contextlib.suppress(DeltaError):
                parts = [_with_source_named(part, sides) for part in conjuncts(parse_sql(given))]
        return cls._of(str(given), filter(None, parts), sides, DeltaError)

    @classmethod
    def _of(
        cls, sql: str, parts: Iterable[Expression], sides: Sides, *ignored: type[DeltaError]
    ) -> SearchCondition:
        both = (sides.target, sides.source)
        keys, target_only, source_only, pairs = [], [], [], []
        for part in parts:
            with contextlib.suppress(*ignored):
                bound = sides.bind(part, both, "search condition", condition=True)
                bound.check_condition("JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE", "search condition")
                mine = {sides.side_of(name) is sides.target for name in bound.names}
                if mine == {True}:
                    target_only.append(bound)
                elif mine != {True, False}:
                    source_only.append(bound)
                elif (key := _key(part, sides)) is not None:
                    keys.append(key)
                else:
                    pairs.append(bound)
        return cls(sql, tuple(keys), tuple(target_only), tuple(source_only), tuple(pairs))

    def columns(self, sides: Sides, *, of_target: bool) -> set[str]:
        """The names, in `Sides.schema`, of the columns of one table that matching needs."""
        parts = [*self.target_only, *self.source_only, *self.pairs]
        parts += [side for key in self.keys for side in (key.target, key.source)]
        names = {name for each in parts for name in each.names}
        return {name for name in names if (sides.side_of(name) is sides.target) == of_target}


def condition_of_columns(names: Sequence[str], target: str, source: str) -> str:
    """The condition that columns of the same names are equal."""
    from lakelog.core.schema.column_paths import sql_path

    terms = [f"{sql_path((target, n))} = {sql_path((source, n))}" for n in names]
    return " AND ".join(terms)


def column_of(
    path: tuple[str, ...], target: StructType, source: StructType, alias: str | None
) -> tuple[bool, StructField] | None:
    """Which column a name means, as far as that is clear without knowing the source's name.

    Args:
        path: the name.
        target: the table's columns.
        source: the source's.
        alias: what the MERGE calls the table.

    Returns:
        Whether it is the table's, and the column; `None` where others may be meant, or a field.
    """
    first, last = path[0], path[-1]
    if len(path) == 2 and first.lower() == (alias or "").lower():
        ours, theirs = target.get(last), None
    elif len(path) == 1:
        ours, theirs = target.get(last), source.get(last)
    elif len(path) == 2 and target.get(first) is None and source.get(first) is None:
        ours, theirs = None, source.get(last)
    else:
        return None
    if ours is not None:
        return (True, ours) if theirs is None else None
    return None if theirs is None else (False, theirs)


def _with_source_named(node: Expression, sides: Sides) -> Expression | None:
    """The condition with names that `sides` knows; `None` where it is not clear what one means."""
    target, source = sides.target, sides.source

    def full(path: tuple[str, ...]) -> tuple[str, ...]:
        found = column_of(path, target.schema, source.schema, target.alias)
        if found is None:
            return ()
        return (target if found[0] else source).alias or "", found[1].name

    if not all(full(name.path) for name in names(node)):
        return None
    return renamed(node, lambda name: Name(full(name.path), quoted=True))


def _key(node: Expression, sides: Sides) -> KeyPair | None:
    """A comparison of the one table with the other, if that is what the condition is."""
    if not isinstance(node, Compare) or node.op not in ("=", "<=>"):
        return None
    both = (sides.target, sides.source)
    found = [
        sides.bind(each, both, "search condition", condition=True)
        for each in (node.left, node.right)
    ]
    owners = [{sides.side_of(name) is sides.target for name in each.names} for each in found]
    if owners == [{False}, {True}]:
        found.reverse()
    elif owners != [{True}, {False}]:
        return None
    types = [each.data_type for each in found]
    if types[0] is None or types[1] is None:
        return None
    try:
        common = compared_type([types[0], types[1]])
    except NotInCoreError as exc:
        raise InvalidPredicateError(
            f"the search condition needs {exc}, which only Spark evaluates", sql=to_sql(node)
        ) from None
    if not isinstance(common, PrimitiveType | DecimalType) or common == PrimitiveType("void"):
        return None
    for each in found:
        each.check(common)
    length = _char_length(found[0], sides)
    return KeyPair(found[0], found[1], common, node.op == "<=>", length)


def _char_length(bound: Bound, sides: Sides) -> int:
    """The length of the target's CHAR column that this is; 0 for anything else."""
    if not isinstance(bound.root, Name) or len(bound.root.path) > 1:
        return 0
    for field in sides.target.schema:
        limit = limit_of(field)
        if limit is not None and limit.pads and sides.target.named(field.name) in bound.names:
            return limit.length
    return 0
