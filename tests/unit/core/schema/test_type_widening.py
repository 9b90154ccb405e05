from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog
from lakelog.core.errors import SchemaMismatchError
from lakelog.core.schema import ArrayType, DecimalType, PrimitiveType, StructField, StructType
from lakelog.core.schema.type_widening import was_float
from support.raw_log import RawLog, add, metadata

PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["typeWidening"],
        "writerFeatures": ["typeWidening"],
    }
}
DAY, MIDNIGHT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29)  # noqa: DTZ001
TENTH = struct.unpack("f", struct.pack("f", 0.1))[0]


def kind_of(name):
    if name.startswith("decimal"):
        return DecimalType(*map(int, name[8:-1].split(",")))
    return PrimitiveType(name)


def widened(old, new):
    change = [{"fromType": old, "toType": new, "tableVersion": 1}]
    return StructField("a", kind_of(new), True, {"delta.typeChanges": change})


CASES = {
    "byte to long": ("byte", "long", pa.int8(), 7, 7, 7),
    "byte to int": ("byte", "integer", pa.int8(), -7, -7, -7),
    "short to int": ("short", "integer", pa.int16(), 7, 7, 7),
    "int to long": ("integer", "long", pa.int32(), 7, 7, 7),
    "float to double": ("float", "double", pa.float32(), TENTH, TENTH, 0.1),
    "byte to double": ("byte", "double", pa.int8(), 7, 7.0, 7),
    "int to double": ("integer", "double", pa.int32(), 7, 7.0, 7),
    "date to timestamp_ntz": (
        "date", "timestamp_ntz", pa.date32(), DAY, MIDNIGHT, "2024-02-29",
    ),
    "decimal": (
        "decimal(5,2)", "decimal(9,4)", pa.decimal128(5, 2),
        Decimal("1.25"), Decimal("1.2500"), 1.25,
    ),
    "int to decimal": ("integer", "decimal(12,2)", pa.int32(), 7, Decimal("7.00"), 7),
    "byte to decimal": ("byte", "decimal(10,0)", pa.int8(), 7, Decimal(7), 7),
    "long to decimal": ("long", "decimal(20,0)", pa.int64(), 7, Decimal(7), 7),
}  # fmt: skip


@pytest.fixture
def table(tmp_path):
    """A table of one file with some values of an older type in row groups of two."""

    def make(field, arrow, values, stats=None):
        log = RawLog(tmp_path / "t").commit(PROTOCOL, metadata(schema=StructType((field,))))
        data = pa.table({"a": pa.array(values, arrow)})
        pq.write_table(data, tmp_path / "t" / "f", row_group_size=2)
        log.commit(add("f", **({} if stats is None else {"stats": json.dumps(stats)})))
        return DeltaLog.for_table(tmp_path / "t").snapshot

    return make


@pytest.mark.parametrize("case", CASES)
def test_values_of_an_older_type_become_those_of_the_newer(table, case):
    old, new, arrow, value, wide, text = CASES[case]
    stats = {"numRecords": 5, "minValues": {"a": text}, "maxValues": {"a": text}}
    snapshot = table(widened(old, new), arrow, [value, None, value, None, None], stats)

    assert snapshot.to_arrow()["a"].to_pylist() == [wide, None, wide, None, None]
    # Neither the file's statistics nor those of its row groups hide it.
    found = snapshot.to_arrow(where=[("a", "=", wide)])
    assert found["a"].to_pylist() == [wide, wide]
    assert snapshot.to_arrow(where=[("a", "!=", wide)]).num_rows == 0


def test_the_text_of_a_float_is_no_bound_of_doubles(table):
    # The double nearest to the text 0.1 is below the float of that text.
    assert TENTH > 0.1
    stats = {"numRecords": 1, "minValues": {"a": 0.1}, "maxValues": {"a": 0.1}}
    snapshot = table(widened("float", "double"), pa.float32(), [TENTH], stats)

    assert snapshot.to_arrow(where=[("a", "=", TENTH)]).num_rows == 1
    assert len(snapshot.files([("a", "<", 0.099)])) == 0
    assert len(snapshot.files([("a", "=", 0.1)])) == 1


def test_parts_of_columns_are_widened_too(table):
    field = StructField("a", ArrayType(PrimitiveType("long")))
    assert table(field, pa.list_(pa.int16()), [[1, None], []]).to_arrow()["a"].to_pylist() == [
        [1, None],
        [],
    ]


def test_a_change_that_the_protocol_does_not_have_is_an_error(table):
    snapshot = table(widened("timestamp_ntz", "date"), pa.timestamp("us"), [MIDNIGHT])

    with pytest.raises(SchemaMismatchError, match="timestamp_ntz"):
        snapshot.to_arrow()


def test_only_columns_that_were_float_have_their_bounds_moved():
    inner = widened("float", "double")
    schema = StructType((inner, StructField("s", StructType((inner,)))))
    assert was_float(schema, ("a",))
    assert was_float(schema, ("s", "a"))
    assert not was_float(schema, ("s",))
    assert not was_float(StructType((widened("integer", "double"),)), ("a",))
    assert not was_float(StructType((StructField("a", PrimitiveType("double")),)), ("a",))
    assert not was_float(schema, ("b",))
