"""The ends of every type that a table can be partitioned by: written as they are, or refused."""

from __future__ import annotations

import math
import struct
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, update_rows, write_arrow
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from pathlib import Path


def of_bytes(kind: pa.DataType, value: bytes) -> pa.Array:
    ends = pa.array([0, len(value)], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(kind, 1, [None, ends, pa.py_buffer(value)])


def of_bits(kind: pa.DataType, value: int, form: str) -> pa.Array:
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(struct.pack(form, value))])


def ends(bits: int) -> list[int]:
    return [-(2 ** (bits - 1)), -(2 ** (bits - 1)) + 1, -1, 0, 2 ** (bits - 1) - 1]


_INTEGERS = [(pa.int8(), 8), (pa.int16(), 16), (pa.int32(), 32), (pa.int64(), 64)]
_DAYS = [*ends(32), -719_163, -719_162, 2_932_896, 2_932_897]
_MICROS = [
    *ends(64),
    *(days * 86_400_000_000 + more for days in _DAYS[5:] for more in (-1, 0, 86_399_999_999)),
]
_FLOATS = [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1.7976931348623157e308, 1e-45, 3.4e38]
_TEXTS = [b"", b" ", b"\0", b"\xff", b"a\xc3", b"\xed\xa0\x80", "\U0010ffff".encode(), b"x" * 200]

EXTREMES: list[pa.Array] = [
    *(pa.array([each], kind) for kind, bits in _INTEGERS for each in ends(bits)),
    *(of_bits(pa.date32(), each, "<i") for each in _DAYS),
    *(of_bits(pa.timestamp("us", "UTC"), each, "<q") for each in _MICROS),
    *(of_bits(pa.timestamp("us"), each, "<q") for each in _MICROS),
    *(pa.array([each], pa.float64()) for each in _FLOATS),
    *(pa.array([each], pa.float64()).cast(pa.float32(), safe=False) for each in _FLOATS),
    *(pa.array([Decimal(s + "9" * 38)], pa.decimal128(38, 0)) for s in ("", "-")),
    pa.array([Decimal("-0." + "9" * 38)], pa.decimal128(38, 38)),
    *(of_bytes(pa.string(), each) for each in _TEXTS),
    *(of_bytes(pa.binary(), each) for each in _TEXTS),
    *(pa.array([each], pa.bool_()) for each in (True, False, None)),
]


def described(array: pa.Array) -> str:
    return (
        f"{array.type}-{array.buffers()[-1].to_pybytes()[:12].hex() if array.buffers()[-1] else ''}"
    )


def same(a: pa.Array, b: pa.Array) -> bool:
    if pa.types.is_floating(a.type):
        x, y = a[0].as_py(), b[0].as_py()
        return bool(x == y or (math.isnan(x) and math.isnan(y)))
    return bool(a.equals(b))


def check_refusal(error: DeltaAnalysisError) -> None:
    assert error.fields["column"] == "p"
    assert error.fields["value"] in str(error)
    assert "column p" in str(error)


def test_what_is_written_is_read_back_and_the_rest_is_refused_by_column_and_value(
    tmp_path: Path,
) -> None:
    refused: dict[pa.DataType, int] = {}
    for number, array in enumerate(EXTREMES):
        table = tmp_path / str(number)
        rows = pa.table({"p": array, "i": [1]})
        try:
            write_arrow(table, rows, partition_by=["p"], mode="append")
        except DeltaAnalysisError as exc:
            check_refusal(exc)
            assert not list(table.glob("**/*.parquet"))
            refused[array.type] = refused.get(array.type, 0) + 1
            continue
        found = DeltaLog.for_table(table).update().to_arrow()["p"].combine_chunks()
        # The empty text is null in a log.
        expected = pa.nulls(1, array.type) if array.to_pylist() in ([""], [b""]) else array
        assert same(found, expected), described(array)
    assert refused == {
        pa.date32(): 5,
        pa.timestamp("us", "UTC"): 9,
        pa.timestamp("us"): 9,
        pa.string(): 3,
        pa.binary(): 3,
    }


@pytest.mark.parametrize("mode", ["overwrite", "update"])
def test_so_it_is_by_the_other_ways_to_write(tmp_path: Path, mode: str) -> None:
    bad: Any = of_bytes(pa.binary(), b"\xff")
    table = tmp_path / "t"
    conf = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
    write_arrow(
        table,
        pa.table({"p": [b"a", b"b"], "i": [1, 2]}),
        partition_by=["p"],
        conf=conf,
        mode="append",
    )
    rows = pa.table({"p": bad, "i": [1]})
    with pytest.raises(DeltaAnalysisError) as caught:
        _ = (
            update_rows(table, {"p": bad[0]}, "i = 1")
            if mode == "update"
            else write_arrow(table, rows, mode="overwrite", partition_overwrite_mode="dynamic")
        )
    check_refusal(caught.value)
    assert DeltaLog.for_table(table).update().version == 0
