"""A column of a type that nobody knows yet does no harm to the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, create_table, delete_rows, optimize, write_arrow
from lakelog.core.alter import add_columns
from lakelog.core.errors import CorruptLogError, DeltaAnalysisError, UnsupportedFeatureError
from lakelog.core.schema import StructType, type_from_json_value
from support.raw_log import PROTOCOL, RawLog, add, metadata
from support.tables import schema_json

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = ["geometry(OGC:CRS84)", "timestamp_nanos", "decimal(39,2)", "decimal(5,7)", "float16"]


def of(*fields: Any) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def table_of(root: Path, kind: Any) -> str:
    file = root / "f.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int64()), "g": [b"a", b"b"]}), file)
    schema = {"schemaString": schema_json(id="long", g=kind)}
    meta = {"metaData": metadata()["metaData"] | schema}
    stats = json.dumps({"numRecords": 2, "nullCount": {"g": 0}})
    RawLog(root).commit(PROTOCOL, meta, add(file.name, size=file.stat().st_size, stats=stats))
    return str(root)


@pytest.mark.parametrize("wrap", [False, True], ids=["top", "nested"])
@pytest.mark.parametrize("kind", UNKNOWN)
def test_the_other_columns_are_read(tmp_path: Path, kind: str, wrap: bool) -> None:
    inside: Any = {"type": "array", "elementType": json.loads(of({"name": "x", "type": kind}))}
    table = table_of(tmp_path, inside if wrap else kind)
    log = DeltaLog.for_table(table)
    assert log.snapshot.to_arrow(["id"], where="id > 1").to_pylist() == [{"id": 2}]
    assert kind in str(log.snapshot.schema)
    column = r"g\.element\.x" if wrap else "g"
    for read in (
        lambda: log.snapshot.to_arrow(),
        lambda: write_arrow(table, pa.table({"id": [1]}), mode="append"),
        lambda: delete_rows(table, "id = 1"),
    ):
        with pytest.raises(DeltaAnalysisError, match=f"Column {column} has type"):
            read()
    log.checkpoint()
    anew = DeltaLog.for_table(table).snapshot
    assert anew.version == 0
    assert anew.to_arrow(["id"]).num_rows == 2
    assert optimize(table).versions == ()
    if not kind.startswith("decimal"):
        add_columns(table, {"c": "int"})
        assert DeltaLog.for_table(table).snapshot.to_arrow(["c"]).num_rows == 2


@pytest.mark.parametrize("kind", UNKNOWN)
def test_no_table_gets_such_a_column(tmp_path: Path, kind: str) -> None:
    text = of({"name": "x", "type": kind})
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_DATA_TYPES"):
        create_table(str(tmp_path / "t"), StructType.from_json(text))
    if not kind.startswith("decimal"):
        with pytest.raises(ValueError, match="unknown type"):
            type_from_json_value(kind)


MALFORMED = {
    "not JSON": "{",
    "null": "null",
    "a list": "[]",
    "no fields": '{"type": "struct"}',
    "fields that are no list": '{"type": "struct", "fields": {"a": 1}}',
    "a field that is no object": of(1),
    "a field without a name": of({"type": "long"}),
    "a name that is no text": of({"name": 1, "type": "long"}),
    "a type that is a number": of({"name": "a", "type": 1}),
    "a type of types": of({"name": "a", "type": {"type": "set", "elementType": "long"}}),
    "an array of nothing": of({"name": "a", "type": {"type": "array"}}),
    "a map without values": of({"name": "a", "type": {"type": "map", "keyType": "long"}}),
    "metadata that is no object": of({"name": "a", "type": "long", "metadata": [1]}),
    "nullable that is a text": of({"name": "a", "type": "long", "nullable": "yes"}),
    "too deep": '{"type":"array","elementType":' * 900 + '"long"' + "}" * 900,
}


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_schema_is_a_corrupt_log(tmp_path: Path, text: str) -> None:
    meta = {"metaData": metadata()["metaData"] | {"schemaString": text}}
    log = RawLog(tmp_path).commit(PROTOCOL, meta)
    with pytest.raises(CorruptLogError, match="the schema of"):
        _ = DeltaLog.for_table(log.table).snapshot.schema


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize(
    ("protocol", "named"),
    [
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["geospatial"],
          "writerFeatures": ["geospatial"]}, "geospatial"),
        ({"minReaderVersion": 3, "minWriterVersion": 7,
          "readerFeatures": ["timestampNanos", "timestampNtz"],
          "writerFeatures": ["timestampNanos", "timestampNtz"]}, "timestampNanos"),
        ({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["later"]}, "later"),
        ({"minReaderVersion": 4, "minWriterVersion": 8}, "reader 4"),
        ({"minReaderVersion": 9, "minWriterVersion": 9, "readerFeatures": ["x"]}, "reader 9"),
    ],
    ids=["geospatial", "nanos", "half a list", "later versions", "later lists"],
)  # fmt: skip
def test_the_protocol_speaks_first(
    tmp_path: Path, text: str, protocol: dict[str, Any], named: str
) -> None:
    meta = {"metaData": metadata()["metaData"] | {"schemaString": text}}
    log = RawLog(tmp_path).commit({"protocol": protocol}, meta)
    with pytest.raises(UnsupportedFeatureError, match=named):
        _ = DeltaLog.for_table(log.table).snapshot
