"""Rows with their places; vectors, mapped and widened columns in Spark's own reader."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

import lakelog.spark as delta
from lakelog.core import DeltaLog, delete_rows, write_arrow
from lakelog.core.alter.columns import change_column, rename_column
from lakelog.core.errors import DataFileError
from lakelog.core.paths import data_path
from lakelog.core.schema.column_mapping import physical_name
from lakelog.spark.reading import vectors
from lakelog.spark.reading.read_files import files_df, positioned_df
from lakelog.spark.reading.row_positions import FILE, ROW
from lakelog.spark.types.path_forms import file_path_uri
from support.samples import rows_of

WAY = "spark.lakelog.read.path"
NAME = "a.b`c`é"
VECTORS = {"delta.enableDeletionVectors": "true"}
KINDS = {
    "plain": ((), {}),
    "vectors": ((), VECTORS),
    "partitioned": (("p",), VECTORS),
    "mapped": (("p",), {**VECTORS, "delta.columnMapping.mode": "name"}),
    "by id": (("p",), {**VECTORS, "delta.columnMapping.mode": "id"}),
}


def batch(first, count):
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([None if i % 5 == 0 else f"x/{i % 5}%" for i in ids]),
            NAME: pa.array([{"u": i, "v": [str(i)]} for i in ids]),
        }
    )


def opened(path, way):
    return DeltaLog.for_table(path, conf={WAY: way}).snapshot


def made(path, kind, way="native", rows=40):
    columns, properties = KINDS[kind]
    for first in (0, rows, 2 * rows):
        new = first == 0
        write_arrow(
            path,
            batch(first, rows),
            mode="append",
            partition_by=columns if new else None,
            properties=properties if new else None,
        )
    delete_rows(path, f"id % 7 = 3 and id < {2 * rows}")
    return opened(path, way)


@pytest.fixture(params=["size", "path"])
def by(request, monkeypatch):
    """How rows find the vector of their file."""
    if request.param == "path":
        monkeypatch.setattr(vectors, "_tell_files_apart", lambda sizes: False)
    return request.param


def by_place(snapshot, found):
    """What the files have at the places of some rows."""
    field = snapshot.read_schema.get("id")
    paths = [data_path(snapshot.table, path) for path in snapshot.file_table["path"].to_pylist()]
    stored = [pq.read_table(path)[physical_name(field)].to_pylist() for path in paths]
    return [stored[found.numbers[row[FILE]]][row[ROW]] for row in found.df.toArrow().to_pylist()]


@pytest.mark.one_day_in(3)
@pytest.mark.connect(kind=("vectors", "mapped"))
@pytest.mark.parametrize("which", ["native", "arrow"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_row_says_where_it_is(spark, tmp_path, kind, which):
    way = "auto" if kind == "by id" else which
    snapshot = made(str(tmp_path / "t 1%é"), kind, way)

    found = positioned_df(spark, snapshot, snapshot.file_table)

    rows = found.df.toArrow()
    assert by_place(snapshot, found) == rows["id"].to_pylist()
    assert rows_of(rows.drop_columns([FILE, ROW])) == rows_of(snapshot.to_arrow())
    assert found.df.where("id >= 100").count() == 20
    assert set(found.numbers.values()) == set(range(snapshot.file_table.num_rows))


@pytest.mark.one_day_in(3)
@pytest.mark.connect
@pytest.mark.parametrize("kind", ["vectors", "partitioned", "mapped"])
def test_sparks_own_reader_reads_tables_with_vectors_and_mapped_columns(spark, tmp_path, kind, by):
    snapshot = made(str(tmp_path / "t"), kind)

    df = files_df(spark, snapshot, snapshot.file_table)

    assert rows_of(df.toArrow()) == rows_of(snapshot.to_arrow())
    assert df.columns == ["id", "p", NAME]
    assert df.where("p = 'x/1%'").select("id").count() == len(
        [row for row in snapshot.to_arrow().to_pylist() if row["p"] == "x/1%"]
    )


def test_only_the_columns_of_the_query_are_read(classic_spark, tmp_path):
    snapshot = made(str(tmp_path / "t"), "mapped")

    df = files_df(classic_spark, snapshot, snapshot.file_table).where("id > 100").select("id")

    plan = df._jdf.queryExecution().executedPlan().toString()  # pyright: ignore[reportOptionalCall]
    physical, other = (
        next(f for f in snapshot.read_schema if f.name == name).metadata[
            "delta.columnMapping.physicalName"
        ]
        for name in ("id", NAME)
    )
    assert re.search(rf"DataFilters: \[isnotnull\({physical}#", plan)
    assert other not in plan


@pytest.mark.connect
def test_vectors_of_large_files_are_applied_bit_by_bit(spark, tmp_path, by):
    """Files of many pieces, whose deleted rows are at the ends of pieces and words."""
    path, count = str(tmp_path / "t"), 70_000
    write_arrow(path, pa.table({"id": range(count)}), properties=VECTORS)
    write_arrow(path, pa.table({"id": range(count, count + 100)}), mode="append")
    gone = {0, 63, 64, 16383, 16384, 16385, 49151, count - 1, count + 99}
    gone |= set(random.Random(7).sample(range(30_000, 40_000), 500))
    delete_rows(path, f"id in ({', '.join(map(str, sorted(gone)))})")
    snapshot = opened(path, "native")

    left = files_df(spark, snapshot, snapshot.file_table).toArrow()["id"].to_pylist()

    assert sorted(left) == sorted(set(range(count + 100)) - gone)


@pytest.mark.connect
def test_vectors_of_files_of_one_size_are_told_apart(spark, tmp_path):
    path, count = str(tmp_path / "t"), 20_000
    for number in range(3):
        write_arrow(
            path,
            pa.table({"id": range(number * count, (number + 1) * count)}),
            mode="append",
            conf={"spark.sql.parquet.compression.codec": "uncompressed"},
            properties=None if number else VECTORS,
        )
    delete_rows(path, f"id % 100 = 7 and id < {count} or id % 1000 = 11 and id < {2 * count}")
    snapshot = opened(path, "native")
    assert len(set(snapshot.file_table["size"].to_pylist())) == 1

    found = positioned_df(spark, snapshot, snapshot.file_table)

    assert by_place(snapshot, found) == found.df.toArrow()["id"].to_pylist()
    assert rows_of(found.df.select("id").toArrow()) == rows_of(snapshot.to_arrow())


@pytest.mark.parametrize(
    ("sizes", "apart"),
    [
        ([], True),
        ([5, 4, 1 << 40], True),
        ([5, 4, 5], False),
        ([0, 4], False),
        ([-1, 4], False),
        ([None, 4], False),
        ([4, (1 << 43) - 1], True),
        ([4, 1 << 43], False),
    ],
)
def test_files_are_told_apart_by_sizes_that_a_key_has_room_for(sizes, apart):
    assert vectors._tell_files_apart(sizes) is apart


def with_column(files, name, change):
    """A file table with other values in one column."""
    at = files.column_names.index(name)
    values = pa.array(change(files[name].to_pylist()), files.schema.field(at).type)
    return files.set_column(at, files.schema.field(at), values)


def with_sizes(files, change):
    return with_column(files, "size", change)


def with_few_rows(files):
    """As a client would write it that counts the rows of each file's first piece alone."""
    return with_column(files, "stats", lambda stats: ['{"numRecords": 16384}' for _ in stats])


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda files: with_sizes(files, lambda s: [i + 1 for i in s]), id="sizes"),
        pytest.param(lambda files: with_sizes(files, lambda s: s[::-1]), id="each other's sizes"),
        pytest.param(lambda files: with_sizes(files, lambda s: [s[1], s[1] - 1]), id="one size"),
        pytest.param(with_few_rows, id="rows"),
    ],
)
def test_what_the_log_has_wrong_of_a_file_fails_the_read_rather_than_bring_rows_back(
    spark, tmp_path, wrong
):
    path = str(tmp_path / "t")
    write_arrow(path, pa.table({"id": range(40_000)}), properties=VECTORS)
    write_arrow(path, pa.table({"id": range(40_000, 60_000)}), mode="append")
    delete_rows(path, "id in (7, 10007, 40007, 50007)")
    snapshot = opened(path, "native")
    files = wrong(snapshot.file_table)
    assert not files.equals(snapshot.file_table)

    df = files_df(spark, snapshot, files)

    with pytest.raises(Exception, match="no deletion vector for row") as caught:
        df.collect()
    assert f"{WAY}=arrow reads it" in str(caught.value)
    assert file_path_uri(path) in str(caught.value)
    by_arrow = files_df(spark, opened(path, "arrow"), files)
    assert rows_of(by_arrow.toArrow()) == rows_of(snapshot.to_arrow())


def test_a_row_of_a_file_that_is_spelled_differently_fails_the_read(
    spark, tmp_path, monkeypatch, by
):
    snapshot = made(str(tmp_path / "t"), "vectors")
    monkeypatch.setattr(vectors, "file_path_uri", lambda path: f"other:{path}")

    df = files_df(spark, snapshot, snapshot.file_table)

    with pytest.raises(Exception, match="no deletion vector for row"):
        df.collect()


def test_a_file_that_the_log_has_twice_is_left_to_arrow(spark, tmp_path):
    snapshot = made(str(tmp_path / "t"), "vectors")
    files = snapshot.file_table
    full = with_column(files, "path", lambda paths: [data_path(snapshot.table, p) for p in paths])
    twice = pa.concat_tables([files, full])

    df = files_df(spark, opened(snapshot.table, "auto"), twice)

    once = rows_of(snapshot.to_arrow())
    assert rows_of(df.toArrow()) == rows_of(pa.concat_tables([snapshot.to_arrow()] * 2))
    assert len(once) * 2 == df.count()


@pytest.mark.one_day_in(3)
@pytest.mark.parametrize("name", ["__lakelog_size", "__LAKELOG_SIZE", "__lakelog_piece"])
def test_no_column_of_the_tables_own_is_lost_to_a_hidden_one(spark, tmp_path, by, name):
    path = str(tmp_path / "t")
    write_arrow(path, pa.table({"id": range(100), name: range(100)}), properties=VECTORS)
    delete_rows(path, "id < 5")
    snapshot = opened(path, "native")

    try:
        found = files_df(spark, snapshot, snapshot.file_table).toArrow()
    except AnalysisException as exc:
        assert exc.getCondition() == "AMBIGUOUS_REFERENCE"  # noqa: PT017  # either will do
    else:
        assert rows_of(found) == rows_of(snapshot.to_arrow())


@pytest.mark.parametrize("same", ["file", "piece"])
def test_two_pieces_of_one_hash_fail_the_read(spark, tmp_path, monkeypatch, same):
    """Nobody finds such a hash by chance: what it covers is left out of it here."""
    from pyspark.sql import functions as sf

    monkeypatch.setattr(vectors, "_tell_files_apart", lambda sizes: False)
    path = str(tmp_path / "t")
    for number in range(2):
        rows = pa.table({"id": range(number * 20_000, (number + 1) * 20_000)})
        write_arrow(path, rows, mode="append", properties=None if number else VECTORS)
    delete_rows(path, "id % 10000 = 7")
    snapshot = opened(path, "native")
    monkeypatch.setattr(
        sf, "xxhash64", lambda file, piece: sf.hash(piece if same == "file" else file)
    )

    df = files_df(spark, snapshot, snapshot.file_table)

    with pytest.raises(Exception, match="no deletion vector for row"):
        df.collect()


def test_a_damaged_vector_is_an_error_before_any_row_comes(spark, tmp_path):
    snapshot = made(str(tmp_path / "t"), "vectors")
    (file,) = Path(snapshot.table).glob("*.bin")
    data = bytearray(file.read_bytes())
    data[15] ^= 1
    file.write_bytes(data)

    with pytest.raises(DataFileError, match=file.name):
        delta.read(spark).load(snapshot.table)


@pytest.mark.connect
def test_renamed_and_widened_columns_are_read_by_spark(spark, tmp_path):
    path = str(tmp_path / "t")
    properties = {"delta.columnMapping.mode": "name", "delta.enableTypeWidening": "true"}
    narrow = pa.table(
        {
            "i": pa.array([1, None, 2**31 - 1], pa.int32()),
            "f": pa.array([0.5, -0.0, None], pa.float32()),
        }
    )
    write_arrow(path, narrow, properties=properties)
    change_column(path, "i", data_type="long")
    change_column(path, "f", data_type="double")
    rename_column(path, "i", "j k")
    write_arrow(path, pa.table({"j k": [2**40], "f": [1e300]}), mode="append")
    snapshot = opened(path, "native")

    df = delta.read(spark).load(path)

    ours = snapshot.to_arrow().to_pylist()
    assert sorted(map(repr, df.toArrow().to_pylist())) == sorted(map(repr, ours))
    assert df.where("`j k` > 2147483647").count() == 1
    assert df.where("`j k` = 2147483647").count() == 1


@pytest.mark.connect
def test_no_files_have_the_columns_of_places_too(spark, tmp_path):
    snapshot = made(str(tmp_path / "t"), "vectors")
    none = positioned_df(spark, snapshot, snapshot.file_table.slice(0, 0))
    assert none.df.columns == ["id", "p", NAME, FILE, ROW]
    assert none.df.count() == 0
