"""SQL over the two tables of a MERGE, evaluated on Arrow rows.

The columns of both lie side by side in one table, under names that tell whose they are: `t.id`,
`s.id`. The names in an expression are resolved as Spark does it: by the alias if there is one, else
in whichever of the tables has such a column.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.compute import pc
from lakelog.core.dml.merge.arrow_expressions import ArrowBound, ArrowNames, arrow_bound
from lakelog.core.dml.merge.names import unresolved
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.function_names import AGGREGATES, NOT_DETERMINISTIC
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import Name, calls, holds, names, renamed
from lakelog.core.expressions.values.evaluate import TypedText
from lakelog.core.expressions.values.typed import is_now
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.char_varchar import MARK
from lakelog.core.schema.column_paths import dotted, find_column, unknown_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.dml.merge.clauses import When
    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.expressions.tree import Expression

_BOOLEAN, _VOID = PrimitiveType("boolean"), PrimitiveType("void")
_STRING = PrimitiveType("string")
_PRESENT = frozenset({"current_date", "current_timestamp", "now", "curdate", "current_timezone"})
"""Not deterministic by name, but the same for all rows of a statement."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the tables: its columns, and what the statement calls it."""

    schema: StructType
    alias: str | None
    """`None` for the one table of an UPDATE, whose columns keep their names."""

    def named(self, name: str) -> str:
        """A column's name where both tables lie side by side."""
        return name if self.alias is None else f"{self.alias}.{name}"

    def shown(self, path: Sequence[str]) -> str:
        """A column as messages call it."""
        return dotted(path) if self.alias is None else f"{self.alias}.{dotted(path)}"

    def find(self, path: tuple[str, ...]) -> tuple[str, ...] | None:
        """The path of a column that is named without alias, in the schema's spelling."""
        found = find_column(path, self.schema)
        return None if found is None else found[0]


@dataclass(frozen=True, slots=True)
class Bound(TypedText):
    """An expression whose columns are those of `Sides.schema`."""

    names: frozenset[str]
    """The columns that it uses, by their names in `Sides.schema`."""
    shown: str
    """As the user wrote it."""

    def check_condition(self, error: str, what: str) -> None:
        """Refuse a condition that is not boolean, or can't be evaluated here.

        A null without a type is accepted: it is never true.

        Args:
            error: Spark's error class for a condition that is not boolean.
            what: the place where it stands.

        Raises:
            DeltaAnalysisError: an expression of another type than boolean.
            InvalidPredicateError: a part that only Spark evaluates.
        """
        kind = self.data_type
        if kind not in (None, _BOOLEAN, _VOID):
            raise DeltaAnalysisError(
                f"[{error}] the {what} {self.shown} is of the type {kind}, and a condition must "
                "be boolean",
                sql=self.shown,
            )
        self.check(_BOOLEAN)

    def true_for(self, rows: pa.Table) -> pa.ChunkedArray[Any]:
        """For each row whether the condition is true; where it is null it is not."""
        return pc.fill_null(self.evaluate(rows, _BOOLEAN), False)


@dataclass(frozen=True, slots=True)
class Sides:
    """The target and the source."""

    target: Side
    source: Side
    context: EvalContext
    statement: str = "MERGE"
    """For messages."""
    schema: StructType = field(init=False)
    """The columns of both."""
    _of_target: frozenset[str] = field(init=False, repr=False, compare=False)
    _arrow_names: dict[tuple[str | None, ...], ArrowNames] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Lay the columns side by side."""
        fields = [
            StructField(
                side.named(each.name),
                each.data_type,
                metadata=_limits(each, of_target=side is self.target),
            )
            for side in (self.target, self.source)
            for each in side.schema
        ]
        object.__setattr__(self, "schema", StructType(tuple(fields)))
        mine = frozenset(self.target.named(each.name) for each in self.target.schema)
        object.__setattr__(self, "_of_target", mine)

    def seen_by(self, when: When) -> tuple[Side, ...]:
        """The tables that the expressions of a clause may name."""
        match when:
            case "matched":
                return (self.target, self.source)
            case "not matched":
                return (self.source,)
            case _:
                return (self.target,)

    def side_of(self, name: str) -> Side:
        """Whose a column of `schema` is."""
        return self.target if name in self._of_target else self.source

    def bind(
        self, given: str | Expression, sides: tuple[Side, ...], what: str, *, condition: bool
    ) -> Bound:
        """Resolve the names of an expression.

        Args:
            given: the expression, as text or as `parse_sql` makes it.
            sides: the tables whose columns it may name.
            what: where it stands, for messages: `search condition`, `UPDATE clause`.
            condition: whether it is one: these must give the same for each evaluation.

        Raises:
            InvalidPredicateError: it can't be parsed, or has a part that only Spark evaluates.
            DeltaAnalysisError: an unknown or ambiguous name, a subquery, an aggregate, or a
                condition that is not deterministic.
        """
        root = parse_sql(given) if isinstance(given, str) else given
        sql = given if isinstance(given, str) else to_sql(given)
        _refuse(root, sql, f"{what} of {self.statement}", condition=condition)
        used: set[str] = set()

        def resolved(node: Name) -> Name:
            found = self._resolved(node.path, sides, what)
            if found is None:
                return node
            side, spelled = found
            name = side.named(spelled[0])
            used.add(name)
            return Name((name, *spelled[1:]), quoted=True)

        for each in names(root):
            resolved(each)
        bound = renamed(root, resolved)
        return Bound(to_sql(bound), bound, self.schema, self.context, frozenset(used), sql)

    def bind_arrow(
        self, expression: Any, sides: tuple[Side, ...], what: str, *, condition: bool
    ) -> ArrowBound:
        """Find the columns of an expression of pyarrow; see `bind`.

        It calls a column as in `schema`, `pc.field("source.id")`, or by its bare name where only
        one of the tables has such a column.

        Raises:
            DeltaAnalysisError: it does not fit the columns, or a condition is not boolean.
        """
        key = tuple(side.alias for side in sides)
        names = self._arrow_names.get(key)
        if names is None:
            names = self._arrow_names[key] = self._spelled(sides)
        return arrow_bound(expression, names, what, condition=condition)

    @staticmethod
    def _spelled(sides: tuple[Side, ...]) -> ArrowNames:
        full: dict[str, StructField] = {}
        bare: dict[str, StructField | None] = {}
        for side in sides:
            for each in side.schema:
                found = StructField(side.named(each.name), each.data_type)
                full[found.name] = found
                bare[each.name] = None if each.name in bare else found
        alone = {name: each for name, each in bare.items() if each is not None}
        return ArrowNames({**alone, **full})

    def _resolved(
        self, path: tuple[str, ...], sides: tuple[Side, ...], what: str
    ) -> tuple[Side, tuple[str, ...]] | None:
        by_alias = [
            (side, side.find(path[1:]))
            for side in sides
            if side.alias and len(path) > 1 and path[0].lower() == side.alias.lower()
        ]
        found = [(side, each) for side, each in by_alias if each is not None]
        if not found:
            bare = [(side, side.find(path)) for side in sides]
            found = [(side, each) for side, each in bare if each is not None]
        if len(found) > 1:
            both = " and ".join(side.shown(each) for side, each in found)
            raise DeltaAnalysisError(
                f"[AMBIGUOUS_REFERENCE] {dotted(path)} in the {what} may be {both}: say which.",
                column=dotted(path),
            )
        if found:
            return found[0]
        if len(path) == 1 and is_now(path[0]):
            return None
        if self.target.alias is None:
            raise unknown_column(path, self.target.schema)
        raise unresolved(dotted(path), what, *(_with_alias(side) for side in sides))


def _limits(column: StructField, *, of_target: bool) -> dict[str, Any]:
    """How the column is compared with a CHAR, as metadata.

    Text of the source is filled up beside one of the target.
    """
    if column.data_type != _STRING:
        return {}
    if not of_target:
        return {MARK: "char(0)"}
    return {key: text for key, text in column.metadata.items() if key == MARK}


def _with_alias(side: Side) -> StructType:
    return StructType((StructField(side.alias or "", side.schema),))


def _refuse(root: Expression, sql: str, what: str, *, condition: bool) -> None:
    held = holds(root)
    if "subquery" in held:
        raise DeltaAnalysisError(
            f"[DELTA_UNSUPPORTED_SUBQUERY] Subqueries are not supported in the {what} "
            f"(condition = {sql}). Join the subquery into the source of a MERGE.",
            sql=sql,
        )
    if held:
        raise InvalidPredicateError(
            f"the {what} {sql!r} has a part that only Spark evaluates; use lakelog.spark", sql=sql
        )
    for each in calls(root):
        if each in AGGREGATES:
            raise DeltaAnalysisError(
                f"[DELTA_AGGREGATION_NOT_SUPPORTED] Aggregate functions are not supported in the "
                f"{what}: {each} in {sql}.",
                sql=sql,
            )
        if condition and each in NOT_DETERMINISTIC and each not in _PRESENT:
            raise DeltaAnalysisError(
                "[DELTA_NON_DETERMINISTIC_FUNCTION_NOT_SUPPORTED] Non-deterministic functions are "
                f"not supported in the {what}: {each} in {sql}.",
                sql=sql,
            )


def side_by_side(
    sides: Sides, target: pa.Table | None, source: pa.Table | None, count: int
) -> pa.Table:
    """Rows of one table or both as rows of `Sides.schema`.

    Args:
        sides: whose names the columns get.
        target: some columns of the target's rows.
        source: some columns of the source's rows.
        count: the number of rows, for where there is no column.
    """
    columns: dict[str, Any] = {}
    for side, rows in ((sides.target, target), (sides.source, source)):
        if rows is None:
            continue
        for name, data in zip(rows.column_names, rows.columns, strict=True):
            columns[side.named(name)] = data
    if not columns:
        # A constant is evaluated as often as there are rows.
        columns[""] = pa.nulls(count)
    return pa.table(columns)
