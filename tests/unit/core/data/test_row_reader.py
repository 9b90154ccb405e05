from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem

from lakelog.core.data.row_reader import RowReader
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.schema import PrimitiveType, StructField, StructType

SCHEMA = StructType(
    (StructField("id", PrimitiveType("long")), StructField("p", PrimitiveType("string")))
)


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "part.parquet")
    pq.write_table(pa.table({"id": range(70)}), path, row_group_size=10)
    return path


def read(reader, path, share=(0, 1)):
    values = {"p": pa.scalar("x")}
    found = reader.batches(LocalFileSystem(), path, values, {"p": "x"}, share=share)
    return [row for table in found for row in table["id"].to_pylist()]


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20])
def test_the_shares_of_a_file_are_all_its_rows_once(file, parts):
    reader = RowReader(SCHEMA, ("p",), SCHEMA)

    shares = [read(reader, file, (part, parts)) for part in range(parts)]

    assert [row for share in shares for row in share] == list(range(70))
    assert max(map(len, shares)) <= -(-7 // parts) * 10


def test_row_groups_that_cannot_match_are_left_out_of_each_share(file):
    reader = RowReader(SCHEMA, ("p",), SCHEMA, normalize_filter("id >= 42", SCHEMA))

    assert read(reader, file) == list(range(40, 70))
    assert read(reader, file, (0, 2)) == []
    assert read(reader, file, (1, 2)) == list(range(40, 70))


def test_a_reader_travels_to_another_process(file):
    reader = RowReader(SCHEMA, ("p",), SCHEMA, normalize_filter("id < 5", SCHEMA))

    assert read(pickle.loads(pickle.dumps(reader)), file) == list(range(10))
