"""Which way a read takes, and that pyarrow on the executors gives what Spark's own reader gives."""

from __future__ import annotations

import itertools
import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.errors import DataFileMissingError, DeltaAnalysisError
from lakelog.core.expressions.filter import normalize_filter
from lakelog.logstores import LocalLogStore
from lakelog.logstores.errors import LogStoreClassError
from lakelog.spark.reading import arrow_scan as _arrow_read
from lakelog.spark.reading.spark_scan import readable_schema
from lakelog.spark.session.job_errors import lacks_filesystem
from lakelog.spark.session.session import own_storage, session_conf, with_storage
from support.samples import SAMPLES, rows_of

WAY = "spark.lakelog.read.path"
FOLDER_STORE = "spark.delta.logStore.folder.impl"


class FolderLogStore(LocalLogStore):
    """A storage that Hadoop has never heard of: `folder:///x` is the local path `/x`."""

    def read(self, path):
        return super().read(_local(path))

    def read_bytes(self, path):
        return super().read_bytes(_local(path))

    def write(self, path, lines, *, overwrite=False):
        super().write(_local(path), lines, overwrite=overwrite)

    def list_from(self, path):
        return super().list_from(_local(path))

    def filesystem_path(self, path):
        return _local(path)

    def create_folder(self, path):
        super().create_folder(_local(path))


def _local(path):
    return path.removeprefix("folder://")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "table")


@pytest.fixture
def confs(spark):
    touched = []

    def set_conf(key, value):
        touched.append(key)
        spark.conf.set(key, value)

    yield set_conf
    for key in touched:
        spark.conf.unset(key)


@pytest.fixture
def folder_uri(confs, tmp_path):
    confs(FOLDER_STORE, f"{__name__}.{FolderLogStore.__name__}")
    return f"folder://{tmp_path}/table"


def read_by(spark, confs, way, path, **options):
    confs(WAY, way)
    return delta.read(spark).options(**options).load(path)


@pytest.mark.one_day_in(3)
@pytest.mark.connect
@pytest.mark.parametrize("name", SAMPLES)
def test_both_ways_give_the_same_rows_and_the_same_schema(spark, confs, path, name):
    sample = SAMPLES[name]
    write_arrow(path, sample.data, partition_by=sample.partition_by, mode="append")
    write_arrow(path, sample.data, partition_by=sample.partition_by, mode="append")

    native = read_by(spark, confs, "native", path)
    arrow = read_by(spark, confs, "arrow", path)

    assert arrow.schema == native.schema
    assert arrow.count() == 2 * sample.data.num_rows
    assert rows_of(arrow.toArrow()) == rows_of(native.toArrow())


def test_a_table_without_files_has_its_columns(spark, confs, path):
    write_arrow(path, pa.table({"id": pa.array([], pa.int64())}), mode="append")

    frame = read_by(spark, confs, "arrow", path)

    assert frame.columns == ["id"]
    assert frame.count() == 0


def test_columns_that_a_file_lacks_are_null(spark, confs, path):
    write_arrow(path, pa.table({"id": [1]}), mode="append")
    write_arrow(path, pa.table({"id": [2], "later": ["x"]}), schema_mode="merge", mode="append")

    frame = read_by(spark, confs, "arrow", path)

    assert sorted((row.id, row.later) for row in frame.collect()) == [(1, None), (2, "x")]


@pytest.mark.connect
@pytest.mark.parametrize("way", ["native", "arrow"])
def test_the_option_columns_leaves_the_others_out(spark, confs, path, way):
    write_arrow(
        path,
        pa.table({"a": [1, 2], "b": ["x", "y"], "p": [7, 8]}),
        partition_by=["p"],
        mode="append",
    )

    chosen = read_by(spark, confs, way, path, columns="P, b")
    filtered = delta.read(spark).option("columns", "b").where("a > 1").load(path)

    assert chosen.columns == ["p", "b"]
    assert sorted(map(tuple, chosen.collect())) == [(7, "x"), (8, "y")]
    assert [tuple(row) for row in filtered.collect()] == [("y",)]
    with pytest.raises(DeltaAnalysisError, match="names 'none'"):
        read_by(spark, confs, way, path, columns="none")


def test_only_chosen_columns_and_matching_row_groups_leave_the_storage(spark, confs, path):
    write_arrow(path, pa.table({"id": range(10), "s": ["wide"] * 10}), mode="append")
    (add,) = DeltaLog.for_table(path).snapshot.files()
    # The same file again, of ten row groups with one row each.
    file = Path(path) / add.path
    table = pq.read_table(file)
    pq.write_table(table, file, row_group_size=1)

    confs(WAY, "arrow")
    snapshot = DeltaLog.for_table(path).snapshot
    prune = normalize_filter("id >= 8", snapshot.schema)
    scan = _arrow_read.ArrowScan(
        snapshot, snapshot.file_table, readable_schema(snapshot.schema), prune
    )

    assert scan.to_arrow()["id"].to_pylist() == [8, 9]
    assert delta.read(spark).where("id >= 8").load(path).count() == 2


def test_a_file_larger_than_a_task_is_read_in_shares(spark, confs, path, monkeypatch):
    write_arrow(path, pa.table({"id": range(1000)}), mode="append")
    (add,) = DeltaLog.for_table(path).snapshot.files()
    file = Path(path) / add.path
    pq.write_table(pq.read_table(file), file, row_group_size=64)
    monkeypatch.setattr(_arrow_read, "_MOST_TASK_BYTES", add.size // 5)
    monkeypatch.setattr(_arrow_read, "_LEAST_TASK_BYTES", add.size // 5)

    frame = read_by(spark, confs, "arrow", path)

    assert sorted(row.id for row in frame.collect()) == list(range(1000))
    assert frame.selectExpr("spark_partition_id() AS task").distinct().count() > 3


def test_small_files_share_a_task_and_large_ones_do_not():
    pieces, starts = _arrow_read._dealt([1 << 20] * 8 + [5 << 20, 200 << 20], 64)

    tasks = [pieces.slice(a, b - a).to_pylist() for a, b in itertools.pairwise(starts)]
    assert [[piece["file"] for piece in task] for task in tasks] == [
        [0, 1, 2, 3, 4, 5],
        [6, 7],
        [8],
        *[[9]] * 4,
    ]
    assert [task[0]["part"] for task in tasks[3:]] == [0, 1, 2, 3]
    assert {task[0]["parts"] for task in tasks[3:]} == {4}
    assert _arrow_read._dealt([], 64)[1] == [0]


def test_spark_takes_a_large_table_for_large(classic_spark, confs, path, monkeypatch):
    write_arrow(path, pa.table({"id": range(100)}), mode="append")
    snapshot = DeltaLog.for_table(path).snapshot
    files = snapshot.file_table
    size = files.schema.get_field_index("size")
    files = files.set_column(size, "size", pa.array([50 << 30], pa.int64()))

    scan = _arrow_read.ArrowScan(snapshot, files, readable_schema(snapshot.schema))
    frame: Any = scan.to_df(classic_spark)

    plan = frame._jdf.queryExecution().optimizedPlan()
    # Ten gigabytes are more than anybody lets Spark broadcast.
    assert int(str(plan.stats().sizeInBytes())) > 10 << 30


@pytest.mark.connect
def test_a_missing_file_is_named_when_the_frame_runs(spark, confs, path):
    write_arrow(path, pa.table({"id": [1, 2]}), mode="append")
    (add,) = DeltaLog.for_table(path).snapshot.files()
    (Path(path) / add.path).unlink()
    frame = read_by(spark, confs, "arrow", path)

    with pytest.raises(PySparkException) as caught:
        frame.collect()

    original = delta.unwrap_error(caught.value)
    assert isinstance(original, DataFileMissingError)
    assert add.path in str(original)


def test_an_unknown_way_is_refused_with_the_known_ones(spark, confs, path):
    write_arrow(path, pa.table({"id": [1]}), mode="append")

    with pytest.raises(DeltaAnalysisError, match=r"auto, native, arrow.*'sideways'"):
        read_by(spark, confs, "sideways", path)


@pytest.mark.connect
def test_a_scheme_unknown_to_hadoop_is_read_and_written_all_the_same(
    spark, folder_uri, tmp_path, caplog
):
    data = spark.range(5000).selectExpr("id", "id % 3 AS p", "CAST(id AS STRING) AS s")
    with caplog.at_level(logging.WARNING, "lakelog"):
        delta.write(data).partitionBy("p").save(folder_uri)
        delta.write(data).mode("append").save(folder_uri)
        assert delta.read(spark).load(folder_uri).count() == 10_000
        assert delta.read(spark).where("p = 1").load(folder_uri).count() == 2 * 1667

    (said,) = [r for r in caplog.records if "read by pyarrow" in r.message]
    assert "folder://" in said.message
    assert not list((tmp_path / "table").glob("write-*")), "no job folder, no rename"
    assert rows_of(DeltaLog.for_table(str(tmp_path / "table")).snapshot.to_arrow()) == rows_of(
        pa.concat_tables([data.toArrow()] * 2)
    )


@pytest.mark.connect
def test_a_write_that_no_one_can_carry_out_says_what_to_install(
    spark, confs, folder_uri, monkeypatch
):
    def without_pyarrow(*_):
        raise RuntimeError("ModuleNotFoundError: No module named 'pyarrow'")

    monkeypatch.setattr("lakelog.spark.writing.write_files.write_on_executors", without_pyarrow)

    with pytest.raises(DeltaAnalysisError, match=r"no pyarrow.*no connector for folder://"):
        delta.write(spark.range(5000)).save(folder_uri)


def test_rows_that_an_overwrite_keeps_are_read_from_such_a_storage(spark, folder_uri):
    delta.write(spark.range(10)).save(folder_uri)

    more = spark.range(100, 102)
    delta.write(more).mode("overwrite").option("replaceWhere", "id >= 5 OR id < 0").options(
        mergeSchema="false"
    ).save(folder_uri)

    found = sorted(row.id for row in delta.read(spark).load(folder_uri).collect())
    assert found == [0, 1, 2, 3, 4, 100, 101]


class LockedLogStore(FolderLogStore):
    """Opens with the right key only."""

    def __init__(self, conf=None):
        super().__init__(conf)
        if self.conf.get("spark.hadoop.fs.folder.secret.key") != "sesame":
            raise PermissionError("the key does not fit")


@pytest.mark.connect
def test_settings_of_the_storage_may_be_those_of_one_call(spark, confs, tmp_path):
    """On Connect there is no other way for secrets: Spark does not show them to its clients."""
    confs(FOLDER_STORE, f"{__name__}.{LockedLogStore.__name__}")
    uri, key = f"folder://{tmp_path}/table", {"fs.folder.secret.key": "sesame"}

    delta.write(spark.range(2000)).options(**key).save(uri)
    assert delta.read(spark).options(**key).load(uri).count() == 2000
    assert delta.DeltaTable.forPath(spark, uri, key).toDF().count() == 2000
    with pytest.raises(LogStoreClassError, match="the key does not fit"):
        delta.read(spark).load(uri)


def test_a_table_with_settings_of_its_own_is_not_left_to_sparks_reader(spark, path):
    write_arrow(path, pa.table({"id": [1]}), mode="append")
    conf = dict(session_conf(spark))

    assert not own_storage(spark, conf)
    assert own_storage(spark, with_storage(conf, {"fs.s3a.access.key": "A", "versionAsOf": "1"}))


@pytest.mark.connect
def test_the_native_way_says_what_hadoop_lacks(spark, confs, folder_uri):
    delta.write(spark.range(3)).save(folder_uri)

    with pytest.raises(Exception, match="folder") as caught:
        read_by(spark, confs, "native", folder_uri)

    assert lacks_filesystem(caught.value)


class KeyedLogStore(LocalLogStore):
    """Has its data where keys are needed."""

    secret = "wJalrXUtnFEMI"

    @property
    def filesystem(self):
        return pyarrow.fs.S3FileSystem(
            access_key="A", secret_key=self.secret, endpoint_override="127.0.0.1:9", region="x"
        )


def test_a_plan_shows_no_credentials_of_the_file_system(classic_spark, confs, path):
    write_arrow(path, pa.table({"id": [1]}), mode="append")
    confs("spark.delta.logStore.file.impl", f"{__name__}.{KeyedLogStore.__name__}")
    confs(WAY, "arrow")

    frame: Any = delta.read(classic_spark).load(path)

    plan = frame._jdf.queryExecution().toString()
    assert "MapInArrow" in plan
    assert KeyedLogStore.secret not in plan
