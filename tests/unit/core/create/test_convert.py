"""Parquet files become a table where they lie, or nothing becomes of them."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.create.convert_to_delta import convert_to_delta
from lakelog.core.errors import (
    ConcurrentWriteException,
    DeltaAnalysisError,
    SchemaMismatchError,
)
from lakelog.core.log.file_names import commit_path
from lakelog.core.schema import PrimitiveType, StructField, StructType

if TYPE_CHECKING:
    from typing import Any

    from lakelog.core import Progress


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "a folder"
    path.mkdir()
    return path


def put(root: Path, name: str, /, **columns: Any) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)


def rows(root: Path) -> list[dict[str, Any]]:
    found = DeltaLog.for_table(str(root)).snapshot.to_arrow().to_pylist()
    return sorted(found, key=lambda row: json.dumps(row, default=str))


def info(root: Path) -> dict[str, Any]:
    line = (root / "_delta_log" / f"{0:020d}.json").read_text().splitlines()[0]
    found: dict[str, Any] = json.loads(line)["commitInfo"]
    return found


def test_a_folder_of_files_becomes_a_table(root: Path) -> None:
    put(root, "one.parquet", id=[1, 2], name=["a", None])
    put(root, "below/two", id=[3])
    reports: list[Progress] = []
    assert convert_to_delta(root, progress=reports.append) == 0
    assert rows(root) == [
        {"id": 1, "name": "a"},
        {"id": 2, "name": None},
        {"id": 3, "name": None},
    ]
    snapshot = DeltaLog.for_table(str(root)).snapshot
    assert all(each.stats for each in snapshot.files())
    assert info(root)["operation"] == "CONVERT"
    assert info(root)["operationParameters"] == {
        "numFiles": 2,
        "partitionedBy": "[]",
        "collectStats": True,
        "sourceFormat": "parquet",
    }
    assert info(root)["operationMetrics"] == {"numConvertedFiles": "2"}
    assert [(each.text, each.done, each.total) for each in reports] == [
        ("schema", 2, 2),
        ("files", 2, 2),
    ]
    write_arrow(root, pa.table({"id": [4], "name": ["d"]}), mode="append")
    assert len(rows(root)) == 4


def test_folders_give_partition_values_of_the_types_that_are_asked_for(root: Path) -> None:
    put(root, "day=2024-01-02/n=01/x.parquet", id=[1])
    put(root, "day=__HIVE_DEFAULT_PARTITION__/n=2/y=z.parquet", id=[2])
    assert convert_to_delta(root, {"day": "date", "n": "int"}) == 0
    assert rows(root) == [
        {"id": 1, "day": dt.date(2024, 1, 2), "n": 1},
        {"id": 2, "day": None, "n": 2},
    ]
    values = [each.partition_values for each in DeltaLog.for_table(str(root)).snapshot.files()]
    assert {"day": "2024-01-02", "n": "1"} in values
    assert info(root)["operationParameters"]["partitionedBy"] == '["day","n"]'


@pytest.mark.parametrize("value", ["a b", "x/y=z", "100%", "é:#", "it's", "q?"])
def test_odd_values_are_read_out_of_their_folders(root: Path, value: str) -> None:
    from lakelog.core.portable.partition_text import hive_folder

    put(root, f"{hive_folder(['p'], [value])}/f.parquet", id=[1])
    convert_to_delta(root, {"p": "string"}, non_ascii_paths="bare")
    assert rows(root) == [{"id": 1, "p": value}]


def test_paths_beyond_ascii_are_refused_or_spelled_as_asked(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    odd = "p=é\u00a0中 %41/x\u3000😀.parquet"
    put(root, odd, id=[1])
    put(root, "p=a/f.parquet", id=[2])
    with pytest.raises(
        DeltaAnalysisError, match=r"1 of 2 files .*non_ascii_paths='bare'"
    ) as caught:
        convert_to_delta(root, {"p": "string"})
    assert caught.value.fields["paths"] == [odd]
    assert not (root / "_delta_log").exists()
    with pytest.raises(DeltaAnalysisError, match="non_ascii_paths must be"):
        convert_to_delta(root, {"p": "string"}, non_ascii_paths="no")  # type: ignore[arg-type]
    spelled = {
        "bare": "p=é%C2%A0中%20%2541/x%E3%80%80😀.parquet",
        "encoded": "p=%C3%A9%C2%A0%E4%B8%AD%20%2541/x%E3%80%80%F0%9F%98%80.parquet",
    }
    for choice, expected in spelled.items():
        table = root.parent / choice
        shutil.copytree(root, table)
        caplog.clear()
        convert_to_delta(table, {"p": "string"}, non_ascii_paths=choice)  # type: ignore[arg-type]
        (logged,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
        assert odd in logged
        found = [each.path for each in DeltaLog.for_table(str(table)).snapshot.files()]
        assert sorted(found) == sorted(["p=a/f.parquet", expected])
        assert sorted(row["p"] for row in rows(table)) == ["a", "é\u00a0中 A"]


def test_a_partition_column_that_is_in_the_files_too_is_read_from_the_folder(root: Path) -> None:
    put(root, "p=7/f.parquet", p=["old"], id=[1])
    convert_to_delta(root, StructType((StructField("p", PrimitiveType("integer")),)))
    assert DeltaLog.for_table(str(root)).snapshot.schema.names == ["p", "id"]
    assert rows(root) == [{"p": 7, "id": 1}]


def test_hidden_files_and_files_without_rows_are_left_out(root: Path) -> None:
    put(root, "one.parquet", id=[1])
    put(root, "empty.parquet", id=pa.array([], pa.int64()), more=pa.array([], pa.string()))
    (root / "_SUCCESS").write_text("")
    (root / ".one.parquet.crc").write_text("no Parquet")
    put(root, "_temporary/0/two.parquet", id=[2])
    put(root, "_p=1/.hidden", id=[3])
    convert_to_delta(root)
    assert rows(root) == [{"id": 1, "more": None}]
    assert info(root)["operationParameters"]["numFiles"] == 1


def test_a_partition_column_may_begin_like_a_hidden_folder(root: Path) -> None:
    put(root, "_p=1/.q=2/f.parquet", id=[1])
    convert_to_delta(root, {"_p": "string", ".q": "string"})
    assert rows(root) == [{"id": 1, "_p": "1", ".q": "2"}]


def test_files_may_differ_in_columns_and_in_integers_that_are_stored_alike(root: Path) -> None:
    put(root, "a.parquet", n=pa.array([1], pa.int16()), a=[1.5])
    put(root, "b.parquet", b=["x"], n=pa.array([100_000], pa.int32()))
    convert_to_delta(root)
    schema = DeltaLog.for_table(str(root)).snapshot.schema
    assert str(schema) == "struct<n:int,a:double,b:string>"
    assert rows(root) == [{"n": 1, "a": 1.5, "b": None}, {"n": 100_000, "a": None, "b": "x"}]


def test_times_of_int96_are_instants(root: Path) -> None:
    when = pa.array([1_704_164_400_000_000_000], pa.timestamp("ns"))
    nested = pa.StructArray.from_arrays([when], ["t"])
    table = pa.table({"t": when, "s": nested, "l": pa.array([[1]])})
    pq.write_table(table, root / "f.parquet", use_deprecated_int96_timestamps=True)
    convert_to_delta(root)
    schema = DeltaLog.for_table(str(root)).snapshot.schema
    assert str(schema) == "struct<t:timestamp,s:struct<t:timestamp>,l:array<bigint>>"


def test_what_spark_noted_in_a_footer_goes_before_the_parquet_schema(root: Path) -> None:
    noted = {"type": "struct", "fields": [
        {"name": "t", "type": "timestamp", "nullable": False, "metadata": {"comment": "when"}}
    ]}  # fmt: skip
    when = pa.array([1_704_164_400_000_000], pa.timestamp("us"))
    note = {"org.apache.spark.sql.parquet.row.metadata": json.dumps(noted)}
    pq.write_table(pa.table({"t": when}).replace_schema_metadata(note), root / "f.parquet")
    convert_to_delta(root)
    [field] = DeltaLog.for_table(str(root)).snapshot.schema
    assert (str(field.data_type), field.nullable, field.metadata) == (
        "timestamp",
        True,
        {"comment": "when"},
    )


def test_a_table_is_left_as_it_is(root: Path) -> None:
    put(root, "a.parquet", id=[1])
    convert_to_delta(root)
    write_arrow(root, pa.table({"id": [2]}), mode="append")
    assert convert_to_delta(root, {"other": "string"}) == 1
    assert DeltaLog.for_table(str(root)).update().version == 1


def test_statistics_may_be_left_out(root: Path) -> None:
    put(root, "a.parquet", id=[1])
    convert_to_delta(root, collect_stats=False)
    assert [each.stats for each in DeltaLog.for_table(str(root)).snapshot.files()] == [None]
    assert info(root)["operationParameters"]["collectStats"] is False


def test_properties_and_a_note_are_those_of_the_table(root: Path) -> None:
    put(root, "a.parquet", id=[1])
    convert_to_delta(root, properties={"delta.appendOnly": "true"}, user_metadata="moved")
    snapshot = DeltaLog.for_table(str(root)).snapshot
    assert snapshot.metadata.configuration == {"delta.appendOnly": "true"}
    assert info(root)["userMetadata"] == "moved"


def _nothing(root: Path) -> None:
    (root / "_SUCCESS").write_text("")


def _text(root: Path) -> None:
    put(root, "a.parquet", id=[1])
    (root / "b.csv").write_text("id\n1\n")


def _clash(root: Path) -> None:
    put(root, "a.parquet", id=[1])
    put(root, "b.parquet", id=["one"])


def _wider(root: Path) -> None:
    put(root, "a.parquet", id=pa.array([1], pa.int64()))
    put(root, "b.parquet", id=pa.array([1], pa.int32()))


def _folders(root: Path) -> None:
    put(root, "p=1/q=2/a.parquet", id=[1])


def _uneven(root: Path) -> None:
    put(root, "p=1/a.parquet", id=[1])
    put(root, "b.parquet", id=[1])


def _spaces(root: Path) -> None:
    pq.write_table(pa.table({"a b": [1]}), root / "a.parquet")


@pytest.mark.parametrize(
    ("make", "partitions", "error", "message"),
    [
        (_nothing, None, DeltaAnalysisError, r"DELTA_EMPTY_DIRECTORY"),
        (_text, None, DeltaAnalysisError, r"b\.csv is not a Parquet file"),
        (_clash, None, SchemaMismatchError, r"DELTA_FAILED_MERGE_SCHEMA_FILE.*b\.parquet"),
        (_wider, None, SchemaMismatchError, r"store a column the same way"),
        (_folders, None, DeltaAnalysisError, r"Expecting 0 .*\['p', 'q'\].*p=1/q=2/a\.parquet"),
        (_folders, {"p": "int"}, DeltaAnalysisError, r"NUM_PARTITION_COLUMNS_FROM_FILE_NAME"),
        (_folders, {"q": "int", "p": "int"}, DeltaAnalysisError, r"column q, but found .* p "),
        (_folders, {"p": "date", "q": "int"}, DeltaAnalysisError, r"CAST_PARTITION_VALUE.*'1'"),
        (_folders, {"p": "money", "q": "int"}, DeltaAnalysisError, r"column p can't be of type"),
        (_uneven, {"p": "int"}, DeltaAnalysisError, r"found 0 partition column.*b\.parquet"),
        (_spaces, None, DeltaAnalysisError, r"a b"),
    ],
)
def test_what_can_not_be_a_table_is_refused_by_name_and_stays_as_it_is(
    root: Path, make: Any, partitions: Any, error: type[Exception], message: str
) -> None:
    make(root)
    with pytest.raises(error, match=message):
        convert_to_delta(root, partitions)
    assert not DeltaLog.for_table(str(root)).table_exists()


def test_who_made_a_table_meanwhile_wins(root: Path) -> None:
    put(root, "a.parquet", id=[1])

    def rival(*_: object) -> None:
        if not DeltaLog.for_table(str(root)).table_exists():
            write_arrow(root, pa.table({"id": [5]}), mode="append")

    with pytest.raises(ConcurrentWriteException):
        convert_to_delta(root, progress=rival)
    assert rows(root) == [{"id": 5}]


def test_a_hive_dataset_of_pyarrow_reads_the_same_as_a_table(root: Path) -> None:
    data = pa.table({"id": list(range(50)), "p": [f"v {n % 3}" for n in range(50)]})
    partitioning = ds.partitioning(pa.schema([("p", pa.string())]), flavor="hive")
    ds.write_dataset(data, root, format="parquet", partitioning=partitioning)
    for path in list(root.iterdir()):
        # pyarrow escapes like URLs do, not like Hive.
        path.rename(root / path.name.replace("%20", " "))
    convert_to_delta(root, {"p": "string"})
    assert rows(root) == sorted(data.to_pylist(), key=lambda row: json.dumps(row, default=str))
    assert Path(commit_path(str(root), 0)).exists()


def _deep(value: pa.Array, depth: int) -> pa.Array:
    """The values inside a struct, inside a list, inside a struct, …"""
    for level in range(depth):
        if level % 2:
            value = pa.ListArray.from_arrays([0, len(value)], value)
        else:
            value = pa.StructArray.from_arrays([value], ["x"])
    return value


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize("noted", [False, True])
@pytest.mark.parametrize(
    ("values", "kind", "remedy"),
    [
        (pa.array([1], pa.timestamp("ns")), "nanosecond timestamps", 'coerce_timestamps="us"'),
        (pa.array([1], pa.timestamp("ns", "UTC")), "nanosecond timestamps", "allow_truncated"),
        (pa.array([np.float16(1.5)], pa.float16()), "half floats", "float32"),
    ],
    ids=str,
)
def test_columns_that_no_reader_reads_are_named_with_their_file(
    root: Path, values: pa.Array, kind: str, remedy: str, depth: int, noted: bool
) -> None:
    fields = [{"name": "v", "type": "timestamp", "nullable": True, "metadata": {}}]
    note = json.dumps({"type": "struct", "fields": fields})
    table = pa.table({"v": _deep(values, depth)})
    if noted:
        # What pyarrow keeps of a file of Spark's that it writes anew.
        table = table.replace_schema_metadata({"org.apache.spark.sql.parquet.row.metadata": note})
    put(root, "a.parquet", id=[1])
    pq.write_table(table, root / "b.parquet")
    with pytest.raises(DeltaAnalysisError, match=rf"b\.parquet: the column v.* {kind}") as caught:
        convert_to_delta(root)
    assert remedy in str(caught.value)
    assert not DeltaLog.for_table(str(root)).table_exists()


def test_what_the_advice_gives_is_converted(root: Path) -> None:
    times = pa.table({"v": pa.array([1_500], pa.timestamp("ns"))})
    options: dict[str, Any] = {"coerce_timestamps": "us", "allow_truncated_timestamps": True}
    pq.write_table(times, root / "a.parquet", **options)
    convert_to_delta(root)
    assert rows(root) == [{"v": dt.datetime.fromisoformat("1970-01-01T00:00:00.000001")}]


def test_bounds_that_a_footer_lacks_are_read(root: Path) -> None:
    table = pa.table(
        {
            "t": pa.array([1_704_164_400_000_000_000, None], pa.timestamp("ns")),
            "x": [0.5, 2.5],
            "n": [1, 2],
        }
    )
    pq.write_table(table, root / "a.parquet", use_deprecated_int96_timestamps=True)
    with_nan = table.set_column(1, "x", pa.array([math.nan, None]))
    pq.write_table(with_nan, root / "b.parquet", use_deprecated_int96_timestamps=True)
    old = table.set_column(0, "t", pa.array([-86_400 * 10**9 * 35_000, 1], pa.timestamp("ns")))
    pq.write_table(old, root / "c.parquet", use_deprecated_int96_timestamps=True)
    convert_to_delta(root)
    found = [json.loads(add.stats or "") for add in DeltaLog.for_table(str(root)).snapshot.files()]
    assert found == [
        {
            "numRecords": 2,
            "minValues": {"t": "2024-01-02T03:00:00.000Z", "x": 0.5, "n": 1},
            "maxValues": {"t": "2024-01-02T03:00:00.000Z", "x": 2.5, "n": 2},
            "nullCount": {"t": 1, "x": 0, "n": 0},
        },
        {"numRecords": 2, "nullCount": {"t": 1, "x": 1, "n": 0}},
        # Before 1900 the calendar is not known.
        {"numRecords": 2, "nullCount": {"t": 0, "x": 0, "n": 0}},
    ]
