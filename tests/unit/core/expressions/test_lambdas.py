"""Functions that take a lambda, against Python's own loops, and at each entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core import create_table, delete_rows, merge, read_arrow, update_rows, write_arrow
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.errors import ConstraintViolationError, InvalidPredicateError
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import Opaque, names, walk
from lakelog.core.expressions.values.evaluate import evaluate_value, value_type
from lakelog.core.schema import ArrayType, PrimitiveType, StructField

if TYPE_CHECKING:
    from pathlib import Path

_LONGS = ArrayType(PrimitiveType("long"), True)
_KIND = pa.list_(pa.int64())
_NUMBERS = st.none() | st.integers(-3, 3)
_ROWS = st.lists(st.tuples(st.none() | st.lists(_NUMBERS, max_size=4), _NUMBERS), max_size=8)


def _more(x: int | None, n: int | None) -> bool | None:
    return None if x is None or n is None else x > n


def _exists(found: list[bool | None]) -> bool | None:
    return True if True in found else None if None in found else False


def _sum(array: list[int | None]) -> int | None:
    return None if None in array else sum(each for each in array if each is not None)


MODELS: dict[str, Any] = {
    "transform(a, x -> x + n)": lambda a, n: [None if None in (x, n) else x + n for x in a],
    "transform(a, (x, i) -> i)": lambda a, _: list(range(len(a))),
    "transform(a, x -> 7)": lambda a, _: [7] * len(a),
    "filter(a, x -> x > n)": lambda a, n: [x for x in a if _more(x, n)],
    "filter(a, (x, i) -> x > i)": lambda a, _: [x for i, x in enumerate(a) if _more(x, i)],
    "exists(a, x -> x > n)": lambda a, n: _exists([_more(x, n) for x in a]),
    "NOT forall(a, x -> NOT x > n)": lambda a, n: _exists([_more(x, n) for x in a]),
    "aggregate(a, 0L, (sum, x) -> sum + x)": lambda a, _: _sum(a),
    "reduce(a, n, (last, x) -> x, x -> -x)": lambda a, n: (
        None if (a[-1] if a else n) is None else -(a[-1] if a else n)
    ),
    "transform(a, x -> size(filter(a, y -> y > x)))": lambda a, _: [
        sum(bool(_more(y, x)) for y in a) for x in a
    ],
    "transform(a, x -> exists(a, X -> X > n))": lambda a, n: [
        _exists([_more(x, n) for x in a]) for _ in a
    ],
}


@pytest.mark.parametrize("sql", MODELS)
@given(_ROWS)
def test_the_elements_are_those_of_a_loop(sql: str, rows: list[tuple[Any, int | None]]) -> None:
    table = pa.table(
        {"a": pa.array([a for a, _ in rows], _KIND), "n": pa.array([n for _, n in rows], "int64")}
    )
    schema = from_arrow_schema(table.schema)
    kind = value_type(sql, schema)
    assert kind is not None
    wanted = [None if a is None else MODELS[sql](a, n) for a, n in rows]
    # A slice and rows in pieces, whose offsets don't start at 0.
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    assert evaluate_value(sql, pieces, schema, kind).to_pylist() == wanted
    assert evaluate_value(sql, table.slice(1), schema, kind).to_pylist() == wanted[1:]


@pytest.mark.parametrize("sql", [*MODELS, "exists(a, `x y` -> `X y`.b > 1)"])
def test_the_text_of_a_lambda_is_parsed_as_the_same(sql: str) -> None:
    root = parse_sql(sql)
    assert not any(isinstance(each, Opaque) for each in walk(root))
    assert parse_sql(to_sql(root)) == root
    assert {each.path for each in names(root)} <= {("a",), ("n",)}


def test_elements_that_a_null_hides_are_no_elements() -> None:
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()), pa.array([0, 1, 2]), mask=pa.array([True, False])
    )
    rows = pa.table({"a": hidden})
    schema = from_arrow_schema(rows.schema)
    found = evaluate_value("transform(a, x -> 4 DIV x)", rows, schema, _LONGS)
    assert found.to_pylist() == [None, [2]]


ROWS = pa.table({"id": [1, 2, 3], "a": pa.array([[1, None], [5, 7], None], _KIND)})


def test_every_entry_takes_them(tmp_path: Path) -> None:
    made = StructField(
        "most",
        PrimitiveType("long"),
        metadata={"delta.generationExpression": "aggregate(a, 0L, (m, x) -> greatest(m, x))"},
    )
    create_table(
        tmp_path,
        [StructField("id", PrimitiveType("long")), StructField("a", _LONGS), made],
        properties={"delta.constraints.small": "forall(a, x -> x < 100) IS NOT FALSE"},
    )
    write_arrow(tmp_path, ROWS, mode="append")
    assert read_arrow(tmp_path).sort_by("id")["most"].to_pylist() == [1, 7, None]
    assert read_arrow(tmp_path, where="exists(a, x -> x > id + 3)")["id"].to_pylist() == [2]
    update_rows(tmp_path, {"a": "transform(a, (x, i) -> x * 10 + i)"}, "exists(a, x -> x = 5)")
    assert read_arrow(tmp_path, where="id = 2")["a"].to_pylist() == [[50, 71]]
    with pytest.raises(ConstraintViolationError, match="small"):
        update_rows(tmp_path, {"a": "transform(a, x -> x * 2)"}, "id = 2")
    source = pa.table({"id": [1], "b": pa.array([[1, 2]], _KIND)})
    merging = merge(tmp_path, source, "exists(target.a, id -> id IN (source.id, 8))")
    merging.when_matched_update({"a": "filter(source.b, x -> x > source.id)"}).execute()
    assert read_arrow(tmp_path, where="id = 1")["a"].to_pylist() == [[2]]
    delete_rows(tmp_path, "forall(a, x -> x > 1)")
    assert read_arrow(tmp_path)["id"].to_pylist() == [3]


def test_what_is_not_evaluated_is_said() -> None:
    with pytest.raises(InvalidPredicateError, match="unknown column nope"):
        value_type("filter(a, x -> x > nope)", from_arrow_schema(ROWS.schema))
    for sql in ("array_sort(a, (x, y) -> 1)", "transform(id, x -> x)", "filter(a, x -> x)"):
        assert value_type(sql, from_arrow_schema(ROWS.schema)) is None
