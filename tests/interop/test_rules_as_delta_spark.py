"""Rules that we wrote down from Delta's documents and sources, against the real thing."""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.file_names import commit_name
from support.delta_spark_peer import DeltaSparkError
from support.samples import SAMPLES, numbers, rows_of
from support.tables import new_table, schema_json


@pytest.fixture
def paths(tmp_path):
    """Of our table and of theirs."""
    return str(tmp_path / "ours"), str(tmp_path / "theirs")


def actions(path, version=0):
    text = (Path(path) / "_delta_log" / commit_name(version)).read_text()
    return [json.loads(line) for line in text.splitlines()]


def action(path, kind, version=0):
    (found,) = [a[kind] for a in actions(path, version) if kind in a]
    return found


PROPERTIES = [
    {},
    {"appendOnly": "true"},
    {"checkpointInterval": "7", "deletedFileRetentionDuration": "interval 3 days"},
    {"minReaderVersion": "1", "minWriterVersion": "4"},
    {"minReaderVersion": "2", "minWriterVersion": "5"},
    {"minWriterVersion": "7"},
    {"minReaderVersion": "3", "minWriterVersion": "7"},
    {"feature.timestampNtz": "supported"},
    {"feature.domainMetadata": "supported", "appendOnly": "true"},
    {"feature.vacuumProtocolCheck": "supported"},
    {"feature.checkConstraints": "enabled"},
    {"constraints.small": "id < 10"},
]


@pytest.mark.parametrize("given", PROPERTIES, ids=str)
def test_a_new_table_gets_the_same_protocol_and_properties(delta_spark, paths, given):
    properties = {f"delta.{key}": value for key, value in given.items()}
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    clause = f"TBLPROPERTIES ({listed})" if listed else ""
    mine, theirs = paths
    delta_spark.sql(f"CREATE TABLE delta.`{theirs}` (id LONG) USING delta {clause}")
    write_arrow(
        mine, pa.table({"id": pa.array([], pa.int64())}), properties=properties, mode="append"
    )
    assert protocol(mine) == protocol(theirs)
    assert action(mine, "metaData")["configuration"] == action(theirs, "metaData")["configuration"]


def protocol(path):
    found = action(path, "protocol")
    return {key: sorted(v) if isinstance(v, list) else v for key, v in found.items()}


@pytest.mark.parametrize("name", ["every type", "timestamps without zone", "nested", "by text"])
def test_the_same_rows_get_the_same_schema_protocol_and_statistics(delta_spark, paths, name):
    sample = SAMPLES[name]
    mine, theirs = paths
    delta_spark.write(theirs, sample.data, partition_by=sample.partition_by)
    write_arrow(mine, sample.data, partition_by=sample.partition_by or None, mode="append")
    assert protocol(mine) == protocol(theirs)
    left, right = action(mine, "metaData"), action(theirs, "metaData")
    assert json.loads(left["schemaString"]) == json.loads(right["schemaString"])
    assert left["partitionColumns"] == right["partitionColumns"]
    assert left["format"] == right["format"]
    assert sorted(texts(mine)) == sorted(texts(theirs))
    if not sample.partition_by:
        assert_bounds_agree(mine, theirs)


def texts(path):
    adds = [a["add"] for a in actions(path) if "add" in a]
    return [str(sorted(add["partitionValues"].items())) for add in adds]


def assert_bounds_agree(mine, theirs):
    """What ours say, theirs say too, but for booleans; ours leave out nulls of lists, and every
    bound where there is a NaN."""
    left = total(mine)
    right = total(theirs)
    assert left["numRecords"] == right["numRecords"]
    left_out = {"nullCount": {"list", "lists", "structs", "map", "maps"}}
    for kind in ("nullCount", "minValues", "maxValues"):
        if kind not in left:
            assert "NaN" in right["maxValues"].values()
            continue
        ours = {key: value for key, value in left[kind].items() if not isinstance(value, bool)}
        assert ours == {key: right[kind].get(key) for key in ours}
        assert set(right[kind]) - set(ours) <= left_out.get(kind, set())


def total(path):
    (add,) = [a["add"] for a in actions(path) if "add" in a]
    return json.loads(add["stats"], parse_float=Decimal)


STRINGS = [
    ["a" * 31 + "zz", "a" * 31 + "y" * 9],
    ["a" * 31 + "é" + "b", "a" * 32],
    ["a" * 31 + "🚀" + "b", "b"],
    ["🚀" * 16 + "z", "🚀" * 16],
    ["🚀" * 17, "🚀" * 18],
    ["a" * 32 + "\x7f", "a" * 32 + "\x80"],
    ["a" * 32 + "\U0010ffff" + "b", "a" * 32],
    ["\U0010ffff" * 20, "a"],
    ["", "\x00" * 40],
    ["x" * 32, "x" * 33],
]


def test_long_strings_get_the_same_bounds(delta_spark, paths):
    columns = {f"c{n}": values for n, values in enumerate(STRINGS)}
    data = pa.table({"id": [1, 2], **columns})
    mine, theirs = paths
    delta_spark.write(theirs, data)
    write_arrow(mine, data, mode="append")
    left, right = total(mine), total(theirs)
    assert left["maxValues"] == right["maxValues"]
    for column, bound in right["minValues"].items():
        # delta-spark cuts a minimum after 32 characters, and we after 32 UTF-16 units, as it
        # does with a maximum: shorter, and still a bound.
        ours = left["minValues"][column]
        assert ours == bound or (max(bound) > "\uffff" and str(bound).startswith(ours))


TABLE = pa.schema(
    [
        ("s", pa.int16()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("dec", pa.decimal128(12, 2)),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
    ]
)

TAKEN_BY_BOTH = {"s": pa.int8(), "i": pa.int16()}
# delta-spark casts these for tables by name, and refuses them for tables by path. We cast them.
TAKEN_BY_US = {
    "l": pa.int32(),
    "d": pa.float32(),
    "dec": pa.decimal128(10, 2),
}
REFUSED_BY_BOTH = [
    ("s", pa.int32()),
    ("i", pa.int64()),
    ("l", pa.float64()),
    ("dec", pa.decimal128(12, 4)),
    ("text", pa.int32()),
    ("flag", pa.int8()),
    ("day", pa.string()),
    ("raw", pa.string()),
]


def one_row(schema):
    return pa.table([one_of(field.type) for field in schema], schema=schema)


def one_of(kind):
    one = pa.array([1], pa.int32())
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return one.cast(pa.string()).cast(kind)
    if pa.types.is_timestamp(kind):
        return one.cast(pa.int64()).cast(kind)
    if pa.types.is_decimal(kind):
        return one.cast(pa.decimal128(38, kind.scale)).cast(kind)
    return one.cast(kind)


def narrowed(kinds):
    return pa.schema([(f.name, kinds.get(f.name, f.type)) for f in TABLE])


def test_narrower_types_are_taken_and_become_the_tables_own(delta_spark, paths):
    for path in paths:
        write_arrow(path, one_row(TABLE), mode="append")
    mine, theirs = paths
    narrow = one_row(narrowed(TAKEN_BY_BOTH))
    write_arrow(mine, narrow, mode="append")
    delta_spark.write(theirs, narrow)
    found = [DeltaLog.for_table(path).snapshot for path in paths]
    assert found[0].schema == found[1].schema
    assert found[0].to_arrow().to_pylist() == found[1].to_arrow().to_pylist()
    write_arrow(mine, one_row(narrowed(TAKEN_BY_US)), mode="append")
    assert not accepts(delta_spark.write, theirs, one_row(narrowed(TAKEN_BY_US)))
    rows = delta_spark.read(mine).to_pylist()
    assert rows == [rows[0]] * 3


@pytest.mark.parametrize(("column", "kind"), REFUSED_BY_BOTH, ids=str)
def test_another_type_is_taken_by_neither(delta_spark, paths, column, kind):
    mine, theirs = paths
    data = one_row(pa.schema([(column, kind)]))
    for path in paths:
        write_arrow(path, one_row(pa.schema([TABLE.field(column)])), mode="append")
    assert not accepts(partial(write_arrow, mode="append"), mine, data)
    assert not accepts(delta_spark.write, theirs, data)


def accepts(write, path, data):
    try:
        write(path, data)
    except (DeltaAnalysisError, DeltaSparkError):
        return False
    return True


def struct(**kinds):
    return pa.struct(list(kinds.items()))


EVOLUTIONS = {
    "new columns at the end": (
        pa.schema([("a", pa.int64())]),
        pa.schema([("c", pa.string()), ("A", pa.int64()), ("b", pa.int32())]),
    ),
    "fewer columns": (
        pa.schema([("a", pa.int64()), ("b", pa.string())]),
        pa.schema([("b", pa.string())]),
    ),
    "fields within structs, lists and maps": (
        pa.schema(
            [
                ("s", struct(x=pa.int32(), in_=struct(y=pa.int32()))),
                ("l", pa.list_(struct(x=pa.int32()))),
                ("m", pa.map_(pa.string(), struct(x=pa.int32()))),
            ]
        ),
        pa.schema(
            [
                ("m", pa.map_(pa.string(), struct(y=pa.date32(), x=pa.int32()))),
                ("s", struct(z=pa.string(), in_=struct(w=pa.int32(), y=pa.int32()), x=pa.int32())),
                ("l", pa.list_(struct(x=pa.int32(), y=pa.float64()))),
            ]
        ),
    ),
    "a narrower type stays as it was": (
        pa.schema([("a", pa.int32())]),
        pa.schema([("a", pa.int16()), ("b", pa.int16())]),
    ),
    "another type": (pa.schema([("a", pa.int32())]), pa.schema([("a", pa.string())])),
    "a wider type": (pa.schema([("a", pa.int32())]), pa.schema([("a", pa.int64())])),
    "a struct for a number": (
        pa.schema([("a", pa.int32())]),
        pa.schema([("a", struct(x=pa.int32()))]),
    ),
}


@pytest.mark.parametrize("case", EVOLUTIONS)
def test_merge_schema_gives_the_same_schema(delta_spark, paths, case):
    before, data = (schema.empty_table() for schema in EVOLUTIONS[case])
    for path in paths:
        write_arrow(path, before, mode="append")
    mine, theirs = paths
    options = {"mergeSchema": "true"}
    both = (
        accepts(
            lambda path, rows: write_arrow(path, rows, schema_mode="merge", mode="append"),
            mine,
            data,
        ),
        accepts(lambda path, rows: delta_spark.write(path, rows, options=options), theirs, data),
    )
    assert both in ((True, True), (False, False))
    left, right = (DeltaLog.for_table(path).snapshot.schema.to_json() for path in paths)
    assert json.loads(left) == json.loads(right)


def test_commit_info_has_the_fields_that_history_shows(delta_spark, paths):
    mine, theirs = paths
    data = numbers(0)
    write_arrow(mine, data, partition_by=["p"], user_metadata="note", mode="append")
    delta_spark.write(theirs, data, partition_by=["p"], options={"userMetadata": "note"})
    write_arrow(mine, data, mode="append")
    delta_spark.write(theirs, data)
    write_arrow(mine, data, mode="overwrite")
    delta_spark.write(theirs, data, mode="overwrite")
    odd = data.filter(pc.field("p") == 1)
    write_arrow(mine, odd, mode="overwrite", replace_where="p = 1")
    delta_spark.write(theirs, odd, mode="overwrite", options={"replaceWhere": "p = 1"})
    for version in range(4):
        left, right = (action(path, "commitInfo", version) for path in paths)
        for info in (left, right):
            # The last is younger than this delta-spark, which passes it by.
            for varying in ("timestamp", "txnId", "engineInfo", "dataChange"):
                info.pop(varying, None)
        metrics = [info.pop("operationMetrics") for info in (left, right)]
        assert left == right, version
        counted = [{k: v for k, v in each.items() if "Bytes" not in k} for each in metrics]
        assert (
            counted[0].items() >= {k: counted[1][k] for k in ("numFiles", "numOutputRows")}.items()
        ), version
        assert set(metrics[0]) == set(metrics[1]), version
    assert rows_of(delta_spark.read(mine)) == rows_of(delta_spark.read(theirs))


ARRAY_OF_LIMITED = {"type": "array", "elementType": "varchar(3)", "containsNull": True}
LIMITED = "id LONG, v VARCHAR(5), n ARRAY<VARCHAR(3)>, c CHAR(4)"


def test_char_and_varchar_are_stored_and_held_as_by_delta_spark(delta_spark, paths):
    mine, theirs = paths
    delta_spark.sql(f"CREATE TABLE delta.`{theirs}` ({LIMITED}) USING delta")
    kinds = {"id": "long", "v": "varchar(5)", "n": ARRAY_OF_LIMITED, "c": "char(4)"}
    new_table(mine, schema=schema_json(**kinds))
    stored = [json.loads(action(path, "metaData")["schemaString"]) for path in paths]
    assert stored[0] == stored[1]
    for path in paths:
        with pytest.raises(DeltaSparkError, match="EXCEED_CHAR_VARCHAR_LIMIT"):
            delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, 'longer', NULL, NULL)")
        delta_spark.sql(f"INSERT INTO delta.`{path}` VALUES (2, 'short', array('abc'), 'char')")
