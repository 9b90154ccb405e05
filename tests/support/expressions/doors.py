"""The doors of the core that take SQL text, and what each of them makes of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions import Metadata
from lakelog.core.dml.merge.sides import Side, Sides
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    DeltaError,
    InvalidPredicateError,
)
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import is_computed, is_opaque
from lakelog.core.expressions.values.evaluate import evaluate_value, value_type
from lakelog.core.metadata.fill_declarations import check_filled_columns
from lakelog.core.rows.checks import ruled_rows
from lakelog.core.rows.constraints import table_constraints
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.expressions.texts import SCHEMA, rows

if TYPE_CHECKING:
    from collections.abc import Callable

ZONE = "America/Los_Angeles"
NOW_MS = 1_709_500_000_000
_CONTEXT = EvalContext(ZONE, NOW_MS)
_BOOLEAN = PrimitiveType("boolean")
_ROWS = rows()
_SOURCE = StructType((StructField("other", PrimitiveType("integer")),))
_SIDES = Sides(Side(SCHEMA, "tgt"), Side(_SOURCE, "src"), _CONTEXT)
_BOTH = pa.table(
    {f"tgt.{name}": data for name, data in zip(_ROWS.column_names, _ROWS.columns, strict=True)}
)


def outcome(door: Callable[[str], Any], text: str) -> dict[str, Any]:
    """What a door gives, or the error that it refuses the text with."""
    try:
        return {"found": door(text)}
    except DeltaError as exc:
        return {"error": type(exc).__name__}


def as_filter(text: str) -> Any:
    """The rows that a filter is true, false and null for; how it is understood."""
    expr = normalize_filter(text, SCHEMA, _CONTEXT)
    assert expr is not None
    if is_opaque(expr):
        raise InvalidPredicateError("opaque")
    how = "computed" if is_computed(expr) else "plain"
    return [how, *_run(lambda: _shown(evaluate_mask(expr, _ROWS, SCHEMA)))]


def as_value(text: str) -> Any:
    """The type of a value, and each row's."""
    kind = value_type(text, SCHEMA, _CONTEXT)
    if kind is None:
        raise InvalidPredicateError("only Spark")
    return [str(kind), *_run(lambda: _shown(_values(text, kind)))]


def _values(text: str, kind: Any) -> Any:
    return evaluate_value(text, _ROWS, SCHEMA, kind, _CONTEXT)


def as_condition(text: str) -> Any:
    """The rows that a condition of a MERGE is true, false and null for."""
    sides = (_SIDES.target, _SIDES.source)
    bound = _SIDES.bind(text, sides, "search condition", condition=True)
    bound.check_condition("NOT_BOOLEAN", "search condition")
    return _run(lambda: _shown(bound.evaluate(_BOTH, _BOOLEAN)))


def as_set_value(text: str) -> Any:
    """What an UPDATE would set a column of type boolean to."""
    sides = Sides(Side(SCHEMA, None), Side(StructType(()), None), _CONTEXT, "UPDATE")
    bound = sides.bind(text, (sides.target,), "SET clause", condition=False)
    _refuse_others(bound.data_type)
    bound.check(_BOOLEAN)
    return _run(lambda: _shown(bound.evaluate(_ROWS, _BOOLEAN)))


def as_generated(text: str) -> Any:
    """The values of a generated column of type boolean."""
    field = StructField("made", _BOOLEAN, metadata={"delta.generationExpression": text})
    check_filled_columns(StructType((*SCHEMA, field)), [])
    _refuse_others(value_type(text, SCHEMA, _CONTEXT.timeless))
    return _run(lambda: _shown(_values(text, _BOOLEAN)))


def as_check(text: str) -> Any:
    """Which rows satisfy a CHECK: asked about each alone."""
    metadata = Metadata(
        id="id",
        schema_string=SCHEMA.to_json(),
        partition_columns=[],
        configuration={"delta.constraints.given": text},
    )

    rules = table_constraints(metadata)

    def satisfies(at: int) -> bool | None:
        try:
            ruled_rows(_ROWS.slice(at, 1), rules, SCHEMA, "t", _CONTEXT)
        except ConstraintViolationError:
            return False
        return True

    return ["".join("01"[satisfies(at) or False] for at in range(_ROWS.num_rows))]


def _refuse_others(kind: Any) -> None:
    if kind not in (_BOOLEAN, PrimitiveType("void")):
        raise InvalidPredicateError(f"of type {kind}")


def _run(evaluate: Callable[[], Any]) -> list[Any]:
    """The values, or that some row has none: only then the text was taken."""
    try:
        return [evaluate()]
    except DeltaAnalysisError:
        return [None]


def _shown(data: Any) -> Any:
    if data.type == pa.bool_():
        return "".join({True: "1", False: "0", None: "-"}[each] for each in data.to_pylist())
    return [None if each is None else str(each) for each in data.to_pylist()]
