"""Short columns are asked without `pyarrow.compute`, and say the same as by it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as arrows
import pytest

from lakelog.core.compute import pc, total, without_nulls

NESTED = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])


def _rows(pattern: str) -> pa.Array:
    rows = [{"a": n, "b": [str(n)]} if mark == "x" else None for n, mark in enumerate(pattern)]
    return pa.array(rows, NESTED)


@pytest.mark.parametrize(
    "pattern", ["", "x", ".", "xx", "..", ".xx.", "x..x.xx...x", "x." * 600, "." * 2000]
)
@pytest.mark.parametrize("offset", [0, 1])
def test_nulls_are_left_out_as_arrow_does_it(pattern: str, offset: int) -> None:
    column = _rows(pattern).slice(min(offset, len(pattern)))
    found = without_nulls(column)
    assert found.type == NESTED
    assert found.to_pylist() == column.drop_null().to_pylist()


@pytest.mark.parametrize("values", [[], [None], [1, None, 2], [7] * 1001, [None] * 1001])
def test_a_total_counts_what_is_there(values: list[int | None]) -> None:
    column = pa.chunked_array([values], pa.int64())
    assert total(column) == sum(value or 0 for value in values)


@pytest.mark.parametrize("value", [0, -3, 2**40, 1.5, float("inf")])
@pytest.mark.parametrize("kind", [pa.int64(), pa.int8(), pa.float64()], ids=str)
@pytest.mark.parametrize("name", ["equal", "less", "add_checked", "multiply", "coalesce"])
def test_operands_of_python_are_what_they_are_to_pyarrow(
    name: str, kind: pa.DataType, value: float
) -> None:
    column = pa.array([1, None, 3], kind)
    found, expected = getattr(pc, name)(column, value), getattr(arrows, name)(column, value)
    assert found.type == expected.type
    assert found.equals(expected)
    assert getattr(pc, name)(value, column).equals(getattr(arrows, name)(value, column))


def test_texts_and_truths_are_operands_too() -> None:
    texts, flags = pa.array(["a", None]), pa.array([True, None])
    assert pc.binary_join_element_wise(texts, "b", "-").to_pylist() == ["a-b", None]
    assert pc.if_else(flags, "yes", "no").to_pylist() == ["yes", None]
    assert pc.or_kleene(flags, True).to_pylist() == [True, True]
    assert pc.fill_null(flags, False).to_pylist() == [True, False]
    assert pc.fill_null(pa.array([1, None], pa.int8()), 7).type == pa.int8()
    assert pc.index(pa.array([1, 7], pa.int8()), 7).as_py() == 1


@pytest.mark.parametrize("order", [(1, True, 1.0), (True, 1, 1.0), (1.0, True, 1)], ids=str)
def test_equal_operands_of_other_types_are_told_apart(order: tuple[float, ...]) -> None:
    for value in order:
        column = pa.nulls(1, pa.scalar(value).type)
        assert type(pc.coalesce(column, value)[0].as_py()) is type(value)
    zeros = [str(pc.add(pa.array([-0.0]), zero)[0]) for zero in (0.0, -0.0)]
    assert zeros == ["0.0", "-0.0"]


def test_a_number_that_no_type_holds_is_refused_as_by_pyarrow() -> None:
    column = pa.array([1], pa.int64())
    with pytest.raises(TypeError):
        getattr(arrows, "equal")(column, 2**70)  # noqa: B009  # made at import time
    with pytest.raises(TypeError):
        pc.equal(column, 2**70)
    with pytest.raises(TypeError):
        pc.equal(pa.array(["a"]), "\ud800")
