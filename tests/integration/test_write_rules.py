"""Rows that a table must not take, and writes that fail: the table stays as it was."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from lakelog.core import DeltaLog, Operation
from lakelog.core.actions import AddFile
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConstraintViolationError,
    ProtocolChangedException,
    SchemaMismatchError,
    UnsupportedFeatureError,
)
from lakelog.logstores import LocalLogStore
from lakelog.logstores.errors import CommitOutcomeUnknownError
from lakelog.spark import write
from support.raw_log import RawLog, metadata

if TYPE_CHECKING:
    from collections.abc import Callable

LONG = PrimitiveType("long")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "table")


def data_files(path):
    found = Path(path).rglob("*.parquet")
    return sorted(str(p) for p in found if "_delta_log" not in p.parts)


def count(path):
    return DeltaTable(path).to_pyarrow_table().num_rows


@pytest.fixture
def strict(path):
    """`id` is NOT NULL, and `x` must be positive."""
    schema = Schema([Field("id", LONG, nullable=False), Field("x", LONG)])
    table = DeltaTable.create(path, schema)
    table.alter.add_constraint({"positive": "x > 0"})
    return path


def test_rows_that_keep_the_rules_are_written(spark, strict):
    write(spark.sql("SELECT 1L AS id, 5L AS x")).mode("append").save(strict)

    assert count(strict) == 1


@pytest.mark.one_day_in(3)
@pytest.mark.connect(way=("native", "arrow"))
@pytest.mark.parametrize("way", ["auto", "native", "arrow"])
@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("CAST(NULL AS BIGINT) AS id, 5L AS x", "NOT NULL constraint violated for column: id"),
        ("1L AS id, -7L AS x", "CHECK constraint positive .*x : -7"),
        ("1L AS id, CAST(NULL AS BIGINT) AS x", "CHECK constraint positive .*x : null"),
    ],
)
def test_a_row_that_breaks_a_rule_stops_the_write(spark, strict, row, message, way):
    spark.conf.set("spark.lakelog.write.path", way)
    try:
        with pytest.raises(ConstraintViolationError, match=f"(?s){message}.*at version 1"):
            write(spark.sql(f"SELECT {row}")).mode("append").save(strict)
    finally:
        spark.conf.unset("spark.lakelog.write.path")

    assert DeltaTable(strict).version() == 1
    assert data_files(strict) == []


def test_a_missing_column_that_must_not_be_null_is_refused_at_once(spark, strict):
    with pytest.raises(SchemaMismatchError, match="id"):
        write(spark.sql("SELECT 5L AS x")).mode("append").save(strict)


@pytest.mark.connect
def test_rows_that_a_join_or_a_limit_drops_are_not_judged(spark, strict):
    left = spark.range(1, 10).selectExpr("id", "5 - id AS x")
    kept = left.join(spark.range(1, 4).withColumnRenamed("id", "k"), left.id == 1).limit(1)

    write(kept.select("id", "x")).mode("append").save(strict)

    assert count(strict) == 1


def test_a_field_within_a_struct_may_be_absent_with_its_struct(spark, path):
    schema = {
        "type": "struct",
        "fields": [
            {
                "name": "s",
                "nullable": True,
                "metadata": {},
                "type": {
                    "type": "struct",
                    "fields": [{"name": "a", "type": "long", "nullable": False, "metadata": {}}],
                },
            }
        ],
    }
    DeltaTable.create(path, Schema.from_json(json.dumps(schema)))

    write(spark.sql("SELECT CAST(NULL AS STRUCT<a: BIGINT>) AS s")).mode("append").save(path)
    with pytest.raises(ConstraintViolationError, match=r"NOT NULL .*s\.a"):
        write(spark.sql("SELECT named_struct('a', CAST(NULL AS BIGINT)) AS s")).mode("append").save(
            path
        )

    assert DeltaTable(path).version() == 1


def test_a_table_with_a_feature_that_we_lack_is_refused_before_any_work(spark, path):
    names = ["fromTheFuture"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": names}
    RawLog(Path(path)).commit({"protocol": protocol}, metadata())

    with pytest.raises(UnsupportedFeatureError, match="fromTheFuture"):
        write(spark.range(3).selectExpr("id AS a")).mode("append").save(path)

    assert data_files(path) == []


@pytest.mark.connect
def test_a_job_that_fails_leaves_no_file_of_the_native_way_and_keeps_its_type(spark, path):
    write(spark.range(3)).save(path)
    before = data_files(path)
    failing = spark.range(50_000).selectExpr("IF(id = 49999, raise_error('boom'), id) AS id")

    with pytest.raises(Exception, match="boom") as caught:
        write(failing).mode("append").save(path)

    assert not isinstance(caught.value, ConstraintViolationError)
    assert any("as it was, at version 0" in note for note in caught.value.__notes__)
    assert data_files(path) == before


@pytest.mark.connect
def test_a_job_that_fails_creates_no_table(spark, path):
    with pytest.raises(Exception, match="boom"):
        write(spark.range(5000).selectExpr("CAST(raise_error('boom') AS INT) AS id")).save(path)

    assert not DeltaLog.for_table(path).table_exists()


@pytest.fixture
def unprivileged():
    """A user who may write nothing, also where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.mark.connect
def test_a_folder_that_may_not_be_made_is_one_clear_error(spark, unprivileged):
    with pytest.raises(PermissionError, match="forbidden"):
        write(spark.range(1)).save("/forbidden/table")


def test_a_path_that_is_a_file_is_one_clear_error(spark, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("mine")

    with pytest.raises(OSError, match="taken"):
        write(spark.range(1)).save(taken)

    assert taken.read_text() == "mine"


# Commits that fail --------------------------------------------------------------------------


class _Meddling(LocalLogStore):
    """Does what is in `before`, once, when a commit is about to be written."""

    before: ClassVar[list[Callable[[], object]]] = []
    error: ClassVar[Exception | None] = None

    def write(self, path, lines, *, overwrite=False):
        cls = type(self)
        if path.endswith(".json"):
            while cls.before:
                cls.before.pop()()
            if cls.error:
                raise cls.error
        super().write(path, lines, overwrite=overwrite)


@pytest.fixture
def meddling(spark):
    key = "spark.delta.logStore.class"
    spark.conf.set(key, f"{__name__}._Meddling")
    yield _Meddling
    spark.conf.unset(key)
    _Meddling.before.clear()
    _Meddling.error = None


def _append_by_hand(path, **values):
    """A commit of another process, with a file that exists in the log alone."""
    log = DeltaLog.for_table(path)
    add = AddFile(
        path="other.parquet",
        partition_values=values,
        size=1,
        modification_time=0,
        data_change=True,
        stats='{"numRecords":1}',
    )
    log.start_transaction().commit([add], Operation.manual())


def test_an_append_goes_on_top_of_what_others_appended_meanwhile(spark, path, meddling):
    write(spark.range(3)).save(path)
    meddling.before.append(lambda: _append_by_hand(path))

    assert write(spark.range(3, 5)).mode("append").save(path) == 2


def test_an_overwrite_does_not_swallow_what_others_appended_meanwhile(spark, path, meddling):
    write(spark.range(3)).save(path)
    before = data_files(path)
    meddling.before.append(lambda: _append_by_hand(path))

    with pytest.raises(ConcurrentAppendException) as caught:
        write(spark.range(9)).mode("overwrite").save(path)

    assert caught.value.version == 1
    assert data_files(path) == before, "the files of the lost commit are deleted"


def test_overwriting_one_partition_ignores_an_append_to_another(spark, path, meddling):
    write(spark.sql("SELECT id, id % 2 AS p FROM RANGE(4)")).partitionBy("p").save(path)
    row = spark.sql("SELECT 7L AS id, 1L AS p")
    meddling.before.append(lambda: _append_by_hand(path, p="0"))

    assert write(row).mode("overwrite").replaceWhere("p = 1").save(path) == 2

    meddling.before.append(lambda: _append_by_hand(path, p="1"))
    with pytest.raises(ConcurrentAppendException):
        write(row).mode("overwrite").replaceWhere("p = 1").save(path)


def test_a_dynamic_overwrite_conflicts_in_its_own_partitions_only(spark, path, meddling):
    write(spark.sql("SELECT id, id % 2 AS p FROM RANGE(4)")).partitionBy("p").save(path)
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    row = spark.sql("SELECT 7L AS id, 1L AS p")
    meddling.before.append(lambda: _append_by_hand(path, p="0"))

    assert write(row).mode("overwrite").save(path) == 2

    meddling.before.append(lambda: _append_by_hand(path, p="1"))
    with pytest.raises(ConcurrentAppendException):
        write(row).mode("overwrite").save(path)


def test_of_two_that_create_a_table_the_second_gets_the_named_error(spark, path, meddling):
    first = write(spark.sql("SELECT 1L AS id"))
    meddling.before.append(lambda: first.save(path))

    with pytest.raises(ProtocolChangedException):
        write(spark.sql("SELECT 2L AS id")).save(path)

    assert DeltaTable(path).to_pyarrow_table()["id"].to_pylist() == [1]


def test_files_of_a_commit_that_may_have_landed_are_kept(spark, path, meddling):
    write(spark.range(3)).save(path)
    before = data_files(path)
    meddling.error = CommitOutcomeUnknownError("x", "the line went dead")

    with pytest.raises(CommitOutcomeUnknownError):
        write(spark.range(3, 5)).mode("append").save(path)

    assert len(data_files(path)) > len(before)


def test_a_full_disk_at_the_commit_leaves_the_table_as_it_was(spark, path, meddling):
    write(spark.range(3)).save(path)
    meddling.error = OSError(errno.ENOSPC, "No space left on device", path)

    with pytest.raises(OSError, match="No space left") as caught:
        write(spark.range(3, 5)).mode("append").save(path)

    assert caught.value.errno == errno.ENOSPC
    assert DeltaTable(path).version() == 0
