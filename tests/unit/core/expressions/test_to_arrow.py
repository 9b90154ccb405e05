from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.arrow.arrow_types import to_arrow_schema
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.arrow.masks import evaluate_mask, to_arrow_filter
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Or,
    StartsWith,
)
from lakelog.core.schema import StructType
from support.examples import examples

SCHEMA = StructType.from_json(
    b'{"type":"struct","fields":['
    b'{"name":"n","type":"integer"},{"name":"l","type":"long"},{"name":"s","type":"string"},'
    b'{"name":"d","type":"date"},{"name":"t","type":"timestamp"},{"name":"c","type":"decimal(10,2)"},'
    b'{"name":"x","type":"double"},{"name":"z","type":"double"},{"name":"f","type":"float"},'
    b'{"name":"b","type":"boolean"},'
    b'{"name":"st","type":{"type":"struct","fields":[{"name":"a","type":"long"}]}}]}'
)
START = datetime(2020, 1, 1, tzinfo=UTC)
FLOATS = [-math.inf, -1.5, -0.0, 0.0, 0.5, math.inf, math.nan]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.integers(-2, 2),
    "l": st.one_of(st.integers(-2, 2), st.sampled_from([2**63 - 1, -(2**63)])),
    "s": st.sampled_from(["", "a", "ab", "b", "é", "\U0001f600"]),
    "d": st.integers(-1, 1).map(lambda i: date(2020, 1, 2) + timedelta(days=i)),
    "t": st.sampled_from([START + timedelta(microseconds=i) for i in (-1, 0, 1, 1500)]),
    "c": st.sampled_from([Decimal("-1.5"), Decimal("0"), Decimal("1.25")]),
    "x": st.sampled_from(FLOATS),
    "z": st.sampled_from(FLOATS),
    "f": st.sampled_from(FLOATS),
    "b": st.booleans(),
}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            **{name: st.one_of(st.none(), v) for name, v in VALUES.items()},
            "st": st.one_of(st.none(), st.fixed_dictionaries(
                {"a": st.one_of(st.none(), st.integers(-1, 1))})),
        }
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip
OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "<=>"]


@st.composite
def leaf(draw: st.DrawFn) -> Expression:
    kind = draw(st.sampled_from(["compare", "columns", "in", "null", "starts", "struct", "other"]))
    op = draw(st.sampled_from(OPERATORS))
    name = draw(st.sampled_from(sorted(VALUES)))
    column = Column((name,))
    values = st.one_of(st.just(Literal(None)), VALUES[name].map(Literal))
    match kind:
        case "compare":
            return Comparison(op, column, draw(values))
        case "columns":
            return Comparison(op, Column(("x",)), Column(("z",)))
        case "in":
            return In(column, tuple(draw(st.lists(values, max_size=3))))
        case "null":
            return IsNull(column)
        case "starts":
            return StartsWith(Column(("s",)), draw(st.sampled_from(["", "a", "ab"])))
        case "struct":
            return Comparison(op, Column(("st", "a")), Literal(draw(st.integers(-1, 1))))
    other = st.sampled_from([Decimal("0.5"), 0.5, 2**40, Decimal("-1.5")])
    number = Column((draw(st.sampled_from(["n", "l", "c", "x", "f"])),))
    return Comparison(op, number, Literal(draw(other)))


TREES = st.recursive(
    leaf(),
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: And(tuple(p))),
        st.lists(inner, min_size=1, max_size=3).map(lambda p: Or(tuple(p))),
    ),
    max_leaves=6,
)


def rank(value: Any) -> Any:
    """NaN above everything, as Spark has it."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return (0, value)


def truth(expr: Expression, row: dict[str, Any]) -> bool | None:
    """The meaning of a filter, spelled out; it shares nothing with the code under test."""

    def value(operand: Column | Literal) -> Any:
        if isinstance(operand, Literal):
            return operand.value
        found: Any = row
        for part in operand.path:
            found = None if found is None else found[part]
        return found

    match expr:
        case Not(part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case And(parts):
            found = [truth(p, row) for p in parts]
            return False if False in found else None if None in found else True
        case Or(parts):
            found = [truth(p, row) for p in parts]
            return True if True in found else None if None in found else False
        case IsNull(column):
            return value(column) is None
        case StartsWith(column, prefix):
            text = value(column)
            return None if text is None else text.startswith(prefix)
        case In(column, values):
            return truth(Or(tuple(Comparison("=", column, v) for v in values)), row)
        case Comparison("<=>", left, right):
            a, b = value(left), value(right)
            return rank(a) == rank(b) if None not in (a, b) else a is b
        case Comparison(op, left, right):
            a, b = value(left), value(right)
            if a is None or b is None:
                return None
            a, b = rank(a), rank(b)
            outcome: dict[str, bool] = {
                "=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b,
            }  # fmt: skip
            return outcome[op]
    raise AssertionError(expr)


@given(TREES, ROWS)
@settings(deadline=None, max_examples=examples(120))
def test_masks_and_scans_agree_with_sparks_logic(tree: Expression, rows: list[Any]) -> None:
    table = pa.Table.from_pylist(rows, schema=to_arrow_schema(SCHEMA))
    bound = normalize_filter(tree, SCHEMA)
    assert bound is not None
    wanted = [truth(tree, row) for row in rows]
    assert evaluate_mask(bound, table, SCHEMA).to_pylist() == wanted
    numbered = table.append_column("row", pa.array(range(len(rows))))
    kept = numbered.filter(to_arrow_filter(bound, SCHEMA))["row"].to_pylist()
    assert kept == [i for i, each in enumerate(wanted) if each]


def test_a_long_chain_is_evaluated() -> None:
    table = pa.table({"n": pa.array(range(5000), pa.int32())})
    schema = StructType(SCHEMA.fields[:1])
    found = normalize_filter(" OR ".join(f"n = {i}" for i in range(0, 5000, 2)), schema)
    assert found is not None
    assert table.filter(to_arrow_filter(found, schema)).num_rows == 2500


def test_what_only_spark_can_evaluate_is_refused_by_name() -> None:
    found = normalize_filter("n = 1 AND upper(s) = 'A'", SCHEMA)
    assert found is not None
    with pytest.raises(InvalidPredicateError, match=r"UPPER\(s\) = 'A'.*lakelog\.spark"):
        to_arrow_filter(found, SCHEMA)


def test_a_constant_filter_has_the_length_of_the_data() -> None:
    table = pa.table({"n": pa.array([1, 2], pa.int32())})
    for sql, wanted in (("true", True), ("false", False), ("NULL", None)):
        found = normalize_filter(sql, SCHEMA)
        assert found is not None
        assert evaluate_mask(found, table, SCHEMA).to_pylist() == [wanted] * 2
