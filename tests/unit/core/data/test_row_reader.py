from __future__ import annotations

import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

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


MIXED = StructType(
    (
        StructField("id", PrimitiveType("long")),
        StructField("name", PrimitiveType("string")),
        StructField("v", PrimitiveType("integer")),
        StructField("p", PrimitiveType("string")),
    )
)


@pytest.fixture
def mixed(tmp_path):
    """Seven row groups, of whose values the bounds say little; the first two have a 5."""
    path = str(tmp_path / "mixed.parquet")
    ids = [each % 10 * 7 + each // 10 for each in range(70)]
    names = [f"name {each}" for each in ids]
    values = [(each % 10, 5 if each < 20 else 0, 9)[each % 3] for each in range(70)]
    values = [value if value != 5 or at < 20 else 4 for at, value in enumerate(values)]
    rows = {"id": ids, "name": names, "v": pa.array(values, pa.int32())}
    pq.write_table(pa.table(rows), path, row_group_size=10)
    return path


def rows_read(path, condition, *, looks=True, shown=MIXED, system=None, deleted=None):
    prune = normalize_filter(condition, MIXED)
    reader = RowReader(MIXED, ("p",), shown, prune, looks=looks)
    place = (system or LocalFileSystem(), path, {"p": pa.scalar("x")}, {"p": "x"})
    whole = reader.rows(*place, deleted)
    streamed = reader.batches(*place, deleted=deleted)
    assert whole.equals(pa.concat_tables([whole.slice(0, 0), *streamed]))
    return whole["id"].to_pylist()


@pytest.mark.parametrize(
    "condition",
    ["id = 38", "name = 'name 38'", "p = 'x' and id = 38", "ID in (38, 1000) and name is not null"],
)
def test_row_groups_without_a_row_that_matches_are_left_out(mixed, condition):
    assert rows_read(mixed, condition) == [each * 7 + 3 for each in range(10)]
    assert len(rows_read(mixed, condition, looks=False)) == 70


def test_no_row_at_all_is_read_where_none_matches(mixed):
    assert rows_read(mixed, "name = 'name 5' and id = 6") == []


def test_where_most_groups_have_a_row_all_are_read_at_once(mixed):
    # The first two have one: nobody looks into the others.
    assert len(rows_read(mixed, "v = 5")) == 70
    # One of each three is not most of them.
    assert len(rows_read(mixed, "id in (2, 5)")) == 20


def test_what_need_not_be_read_twice_is_not(mixed):
    only = StructType(MIXED.fields[:1])
    assert len(rows_read(mixed, "id = 38", shown=only)) == 70
    assert len(rows_read(mixed, "id = 38 and name <> ''", shown=only)) == 70
    assert len(rows_read(mixed, "p = 'x'")) == 70


def test_a_storage_is_not_asked_twice(mixed):
    away = SubTreeFileSystem("/", LocalFileSystem())
    assert len(rows_read(mixed, "id = 38", system=away)) == 70


def test_a_deleted_row_that_the_condition_refuses_is_no_error(mixed):
    gone = pa.array([True] + [False] * 69)  # its id is 0
    found = rows_read(mixed, "10 / id = 2 and name <> ''", deleted=lambda _: gone)
    assert len(found) == 69
