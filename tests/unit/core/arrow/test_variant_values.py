"""Variants without Spark: two binaries, whichever way the file has them."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.alter import add_columns
from lakelog.core.arrow.variant_values import ARROW_VARIANT, variant_array
from lakelog.core.errors import DeltaError, SchemaMismatchError
from support.examples import examples
from support.variant_values import decoded

NAMES = ["a", "b", "c", "é"]


def metadata(names: list[str]) -> bytes:
    texts = [each.encode() for each in names]
    ends = [0]
    for each in texts:
        ends.append(ends[-1] + len(each))
    return bytes([0x11, len(names), *ends]) + b"".join(texts)


def encoded(value: Any) -> bytes:
    """A value whose objects use `NAMES`, as another writer might spell it."""
    match value:
        case None:
            return b"\x00"
        case bool():
            return bytes([(1 if value else 2) << 2])
        case int():
            return bytes([6 << 2]) + value.to_bytes(8, "little", signed=True)
        case str():
            text = value.encode()
            return bytes([16 << 2]) + len(text).to_bytes(4, "little") + text
        case list():
            return bytes([3 << 2 | 3]) + _laid_out([encoded(each) for each in value])
        case _:
            ordered = sorted(value)
            ids = bytes(NAMES.index(each) for each in ordered)
            return bytes([3 << 2 | 2]) + _laid_out([encoded(value[n]) for n in ordered], ids)


def _laid_out(parts: list[bytes], ids: bytes = b"") -> bytes:
    ends = [0]
    for each in parts:
        ends.append(ends[-1] + len(each))
    offsets = b"".join(end.to_bytes(4, "little") for end in ends)
    return bytes([len(parts)]) + ids + offsets + b"".join(parts)


SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=80)
VALUES = st.recursive(
    SCALARS,
    lambda of: st.lists(of, max_size=4) | st.dictionaries(st.sampled_from(NAMES), of, max_size=4),
    max_leaves=8,
)
SHREDDINGS: dict[str, pa.DataType] = {"int": pa.int64(), "text": pa.string(), "flag": pa.bool_()}


def shredded(value: Any, into: Any) -> dict[str, Any]:
    """What a writer puts into the columns of one value: `value` and `typed_value`."""
    if into is None:
        return {"value": encoded(value)}
    if isinstance(into, dict) and isinstance(value, dict):
        typed = {
            name: shredded(value[name], of) if name in value else {"value": None}
            for name, of in into.items()
        }
        rest = {name: each for name, each in value.items() if name not in into}
        return {"value": encoded(rest) if rest else None, "typed_value": typed}
    if isinstance(into, list) and isinstance(value, list):
        return {"value": None, "typed_value": [shredded(each, into[0]) for each in value]}
    kinds = {"int": int, "text": str, "flag": bool}
    if isinstance(into, str) and type(value) is kinds[into]:
        return {"value": None, "typed_value": value}
    return {"value": encoded(value), "typed_value": None}


def group(into: Any) -> list[pa.Field]:
    """The Arrow fields of such a pair."""
    value = pa.field("value", pa.binary())
    if into is None:
        return [value]
    if isinstance(into, dict):
        typed = pa.struct([pa.field(name, pa.struct(group(of))) for name, of in into.items()])
    elif isinstance(into, list):
        typed = pa.list_(pa.struct(group(into[0])))
    else:
        typed = SHREDDINGS[into]
    return [value, pa.field("typed_value", typed)]


INTO = st.recursive(
    st.none() | st.sampled_from(sorted(SHREDDINGS)),
    lambda of: (
        st.dictionaries(st.sampled_from(NAMES), of, min_size=1, max_size=3)
        | st.lists(of, min_size=1, max_size=1)
    ),
    max_leaves=5,
)


@given(st.lists(VALUES | st.just(...), max_size=5), INTO, st.integers(0, 2))
@settings(max_examples=examples(60), deadline=None)
def test_a_shredded_variant_is_the_value_that_it_was(
    values: list[Any], into: Any, skipped: int
) -> None:
    """`...` stands for a null, which is no variant."""
    rows = [
        None if each is ... else {"metadata": metadata(NAMES), **shredded(each, into)}
        for each in values
    ]
    kind = pa.struct([pa.field("metadata", pa.binary()), *group(into)])
    found = variant_array(pa.array(rows, kind).slice(skipped)).to_pylist()
    values_read = [
        ... if each is None else decoded(each["metadata"], each["value"]) for each in found
    ]
    assert values_read == values[skipped:]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int8(), -1, -1),
        (pa.int16(), -300, -300),
        (pa.int32(), 2**31 - 1, 2**31 - 1),
        (pa.float32(), 0.5, 0.5),
        (pa.float64(), 1e300, 1e300),
        (pa.decimal128(9, 2), Decimal("-12.34"), Decimal("-12.34")),
        (pa.decimal128(18, 0), Decimal(10**17), Decimal(10**17)),
        (pa.decimal128(38, 3), Decimal("1E+30"), Decimal("1E+30")),
        (pa.date32(), dt.date(1969, 12, 31), (11, -1)),
        (pa.timestamp("us", "UTC"), 7, (12, 7)),
        (pa.timestamp("us"), -7, (13, -7)),
        (pa.timestamp("ns", "UTC"), 7, (18, 7)),
        (pa.timestamp("ns"), 7, (19, 7)),
        (pa.time64("us"), 7, (17, 7)),
        (pa.binary(), b"\xff\x00", b"\xff\x00"),
        (pa.binary(16), b"0123456789abcdef", ("uuid", b"0123456789abcdef")),
        (pa.string(), "x" * 63, "x" * 63),
        (pa.large_string(), "é" * 40, "é" * 40),
    ],
    ids=str,
)
def test_every_type_that_values_are_shredded_into_is_encoded(
    kind: pa.DataType, value: Any, expected: Any
) -> None:
    typed = pa.array([value, None], kind)
    array = pa.StructArray.from_arrays(
        [pa.array([metadata([])] * 2), pa.array([None, encoded(3)], pa.binary()), typed],
        ["metadata", "value", "typed_value"],
    )
    found = [decoded(each["metadata"], each["value"]) for each in variant_array(array).to_pylist()]
    assert found == [expected, 3]


def variants(*values: Any) -> pa.Array:
    rows = [
        None if each is ... else {"metadata": metadata(NAMES), "value": encoded(each)}
        for each in values
    ]
    return pa.array(rows, ARROW_VARIANT)


def decoded_rows(column: Any) -> list[Any]:
    return [
        ... if each is None else decoded(each["metadata"], each["value"])
        for each in column.to_pylist()
    ]


def test_a_table_with_variants_is_made_written_changed_and_read(tmp_path: Path) -> None:
    path = str(tmp_path)
    create_table(path, "id bigint, v variant, l array<variant>, s struct<v: variant>")
    assert DeltaLog.for_table(path).snapshot.protocol.reader_features == ["variantType"]
    rows = variants({"a": 1, "é": [None, "x"]}, ..., None)
    data = pa.table(
        {
            "id": [1, 2, 3],
            "v": rows,
            "l": pa.ListArray.from_arrays([0, 2, 2, 3], rows),
            "s": pa.StructArray.from_arrays([rows], ["v"]),
        }
    )
    write_arrow(path, data, mode="append")
    # As others hand them over: the other order, and nothing said of nulls.
    loose = pa.struct([("value", pa.large_binary()), ("metadata", pa.binary())])
    write_arrow(
        path, pa.table({"id": [4], "v": pa.array(variants("y").to_pylist(), loose)}), mode="append"
    )
    delete_rows(path, "id = 3")
    DeltaLog.for_table(path).checkpoint()
    found = DeltaLog.for_table(path).snapshot.to_arrow().sort_by("id")
    assert found["v"].type == ARROW_VARIANT
    assert decoded_rows(found["v"]) == [{"a": 1, "é": [None, "x"]}, ..., "y"]
    assert found["l"].to_pylist()[0] == rows.to_pylist()[:2]
    assert DeltaLog.for_table(path).snapshot.to_arrow(where="v IS NULL")["id"].to_pylist() == [2]
    for add in DeltaLog.for_table(path).snapshot.files():
        assert "v" not in json.loads(add.stats or "")["minValues"]
    file = next(iter(Path(path).glob("*.parquet")))
    fields = pq.read_schema(file).field("v").type
    assert {each.name: each.nullable for each in fields} == {"metadata": False, "value": False}


def test_a_column_of_variants_is_added_and_merged(tmp_path: Path) -> None:
    path = str(tmp_path)
    write_arrow(path, pa.table({"id": [1]}), mode="append")
    add_columns(path, {"v": "variant"})
    write_arrow(
        path,
        pa.table({"id": [2], "v": variants("x"), "more": [1]}),
        schema_mode="merge",
        mode="append",
    )
    found = DeltaLog.for_table(path).snapshot
    assert str(found.schema) == "struct<id:bigint,v:variant,more:bigint>"
    assert decoded_rows(found.to_arrow().sort_by("id")["v"]) == [..., "x"]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["x"]),
        pa.array([b"x"]),
        pa.array([{"value": b"\x00"}]),
        pa.array([{"metadata": "x", "value": "y"}]),
        pa.array([{"metadata": b"\x01\x00\x00", "value": None}], pa.struct(
            [("metadata", pa.binary()), ("value", pa.binary())]
        )),
    ],
    ids=["text", "binary", "half of it", "texts", "no value"],
)  # fmt: skip
def test_what_is_no_variant_is_refused_by_column(column: pa.Array, tmp_path: Path) -> None:
    path = str(tmp_path)
    create_table(path, {"v": "variant"})
    with pytest.raises(DeltaError, match=r"\bv\b") as caught:
        write_arrow(path, pa.table({"v": column}), mode="append")
    assert "can't be read" not in str(caught.value)
    assert isinstance(caught.value, SchemaMismatchError) or "is not a variant" in str(caught.value)
    assert DeltaLog.for_table(path).snapshot.version == 0
