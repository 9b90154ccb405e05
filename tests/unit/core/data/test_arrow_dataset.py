"""A table as a dataset of pyarrow reads the same rows, or is refused with what to use instead."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from lakelog.core import DeltaLog, clone, delete_rows, scan, write_arrow
from lakelog.core.alter import add_columns, change_column
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError, UnsupportedFeatureError
from support.drawn_tables import DrawnTable, drawn_tables
from support.examples import examples


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def dataset(uri: str) -> Any:
    return DeltaLog.for_table(uri).snapshot.to_pyarrow_dataset()


@settings(max_examples=examples(15))
@given(drawn_tables())
def test_any_table_has_the_same_rows(drawn: DrawnTable) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri = str(Path(folder) / "t")
        write_arrow(uri, drawn.data, partition_by=list(drawn.partition_by))
        found = dataset(uri).to_table()
        assert found.schema == scan(uri).schema
        assert drawn.rows(found) == drawn.rows()


def test_files_and_partitions_that_a_condition_excludes_are_not_opened(uri: str) -> None:
    write_arrow(uri, {"p": [1, 1, 2, None], "n": [1, 2, 3, 4]}, partition_by="p")
    found = dataset(uri)
    assert found.to_table(filter=ds.field("p").is_null())["n"].to_pylist() == [4]
    for each in DeltaLog.for_table(uri).snapshot.files("p = 2"):
        (Path(uri) / each.path).unlink()
    assert found.count_rows(filter=ds.field("p") == 1) == 2
    assert scan(uri, where="p = 1 AND n > 1").to_pyarrow_dataset().to_table()["n"].to_pylist() == [
        2
    ]


def test_a_column_that_files_lack_is_null_and_old_timestamps_are_utc(uri: str) -> None:
    moments = pa.array([0], pa.timestamp("us", "UTC"))
    write_arrow(uri, pa.table({"t": moments}))
    (file,) = DeltaLog.for_table(uri).snapshot.files()
    place = Path(uri) / file.path
    pq.write_table(pq.read_table(place), place, use_deprecated_int96_timestamps=True)
    add_columns(uri, {"m": "string"})
    assert dataset(uri).to_table().to_pylist() == scan(uri).to_arrow().to_pylist()


def test_duckdb_and_polars_read_it(uri: str) -> None:
    write_arrow(uri, {"n": [1, 2, 3]})
    found = dataset(uri)
    assert duckdb.execute("SELECT sum(n) FROM found WHERE n > 1").fetchall() == [(5,)]
    lazy = polars.scan_pyarrow_dataset(found).filter(polars.col("n") > 2)
    assert lazy.collect().rows() == [(3,)]


def refused(uri: str, feature: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"scan\(columns, where\)") as caught:
        dataset(uri)
    assert caught.value.features == [feature]


def test_deletion_vectors_are_refused_where_there_are_any(uri: str) -> None:
    write_arrow(uri, {"n": [1, 2]}, properties={"delta.enableDeletionVectors": "true"})
    assert dataset(uri).count_rows() == 2
    delete_rows(uri, "n = 1")
    refused(uri, "deletionVectors")


def test_mapped_columns_are_refused(uri: str) -> None:
    write_arrow(uri, {"n": [1]}, properties={"delta.columnMapping.mode": "name"})
    refused(uri, "columnMapping")


def test_widened_types_are_refused(uri: str) -> None:
    rows = pa.table({"n": pa.array([1], pa.int32())})
    write_arrow(uri, rows, properties={"delta.enableTypeWidening": "true"})
    change_column(uri, "n", data_type="bigint")
    refused(uri, "typeWidening")


def test_files_of_another_table_on_the_same_storage_are_found(uri: str) -> None:
    write_arrow(uri, {"n": [1]})
    clone(uri, f"{uri}2")
    assert dataset(f"{uri}2").to_table()["n"].to_pylist() == [1]


def test_what_a_dataset_is_asked_for_when_it_is_read_is_refused(uri: str) -> None:
    write_arrow(uri, {"n": [1], "m": [1]})
    for each in (scan(uri, "n"), scan(uri).limit(1)):
        with pytest.raises(DeltaAnalysisError, match="to_table"):
            each.to_pyarrow_dataset()
    with pytest.raises(InvalidPredicateError):
        scan(uri, where="n + m = 2").to_pyarrow_dataset()
