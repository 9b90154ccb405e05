"""The leaves of a table's columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.portable.leaves import leaf_columns, leaves, without_hidden
from support.examples import examples

pc: Any = pyarrow.compute

INNER = pa.struct([("x", pa.int64()), ("y", pa.string())])
OUTER = pa.struct([("i", INNER), ("z", pa.float64()), ("l", pa.list_(pa.int64()))])
ROWS = [
    {"i": {"x": 1, "y": "a"}, "z": 0.5, "l": [1]},
    None,
    {"i": None, "z": None, "l": None},
    {"i": {"x": None, "y": "b"}, "z": 1.5, "l": []},
]


@pytest.mark.parametrize("start", [0, 1, 3])
def test_the_leaves_are_null_where_a_struct_above_them_is(start: int) -> None:
    table = pa.table({"s": pa.chunked_array([ROWS, ROWS[::-1]], OUTER), "n": range(8)})
    table = table.slice(start)
    plain = [each.path for each in leaves(table.schema) if each.plain]
    assert plain == [("s", "i", "x"), ("s", "i", "y"), ("s", "z"), ("n",)]
    found = leaf_columns(table, plain)
    assert list(found) == plain
    for path, column in found.items():
        first, *inner = path
        wanted = pc.struct_field(table[first], inner) if inner else table[first]
        assert column.to_pylist() == wanted.to_pylist()
        assert column.null_count == wanted.null_count


KINDS = st.recursive(
    st.just(pa.int64()),
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(pa.large_list),
        inner.map(lambda kind: pa.map_(pa.int64(), kind)),
        st.lists(inner, min_size=1, max_size=2).map(
            lambda kinds: pa.struct([(f"f{at}", kind) for at, kind in enumerate(kinds)])
        ),
    ),
    max_leaves=3,
)


def hidden(data: st.DataObject, kind: pa.DataType, count: int) -> Any:
    """So many values, whose nulls have elements behind them wherever Arrow can have them."""
    nulls = pa.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)), pa.bool_())
    if pa.types.is_struct(kind):
        parts = [hidden(data, kind.field(at).type, count) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=nulls)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind)):
        return pa.array(range(count), kind)
    ends = [0]
    for _ in range(count):
        ends.append(ends[-1] + data.draw(st.integers(0, 2)))
    if pa.types.is_map(kind):
        keys, items = pa.array(range(ends[-1]), pa.int64()), hidden(data, kind.item_type, ends[-1])
        flat = pa.MapArray.from_arrays(pa.array(ends, pa.int32()), keys, items)
        buffers = [nulls_of(nulls), *flat.buffers()[1:2]]
        entries = pa.StructArray.from_arrays(
            [keys, items], fields=[kind.key_field, kind.item_field]
        )
        return pa.Array.from_buffers(kind, count, buffers, children=[entries])
    wide = pa.types.is_large_list(kind)
    made = (pa.LargeListArray if wide else pa.ListArray).from_arrays(
        pa.array(ends, pa.int64() if wide else pa.int32()),
        hidden(data, kind.value_type, ends[-1]),
        mask=nulls,
    )
    return made.cast(kind)


def nulls_of(mask: Any) -> Any:
    """The validity that says null where the mask is true."""
    return pa.array([None if each else 1 for each in mask.to_pylist()], pa.int64()).buffers()[0]


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), KINDS, st.integers(0, 5))
def test_nothing_is_left_behind_a_null(data: st.DataObject, kind: pa.DataType, count: int) -> None:
    column = pa.chunked_array([hidden(data, kind, count)], kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pa, "__version__", "24.0.0")
        found = without_hidden(column)
    assert found.type == kind
    assert found.to_pylist() == column.to_pylist()
    for each in found.chunks:
        check_behind(each)


def check_behind(array: Any) -> None:
    kind = array.type
    if pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            check_behind(array.field(at))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_map(kind):
        lengths = pc.subtract(array.offsets[1:], array.offsets[:-1])
        assert not pc.sum(lengths.filter(array.is_null())).as_py()
        check_behind(array.items if pa.types.is_map(kind) else array.values)
