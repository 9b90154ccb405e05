"""Which way a write takes, and what it leaves on the storage."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from deltalake import DeltaTable

from lakelog.core import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import read, write
from lakelog.spark.session.temporary_confs import temporary_confs
from lakelog.spark.writing import by_spark
from lakelog.spark.writing.by_arrow import batch_confs
from lakelog.spark.writing.by_driver import fetched_if_small
from support.bare_python import OF_LAKELOG, bare_python

BYTES_OBEYED = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "table")


@pytest.fixture
def way(spark):
    yield lambda name: spark.conf.set("spark.lakelog.write.path", name)
    spark.conf.unset("spark.lakelog.write.path")


@pytest.fixture
def synced(monkeypatch):
    """The paths that this process flushes to the disk, in order."""
    found = []
    fsync = os.fsync

    def recorded(handle):
        found.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", recorded)
    return found


def names(path):
    return sorted(str(p.relative_to(path)) for p in Path(path).rglob("*") if p.is_file())


def data_names(path):
    return [n for n in names(path) if not n.startswith("_delta_log")]


@pytest.mark.connect
def test_rows_that_the_driver_holds_are_not_written_by_a_job(spark):
    few = spark.createDataFrame(pa.table({"id": [1, 2]}))

    fetched = fetched_if_small(few)

    assert fetched is not None
    assert fetched.to_pydict() == {"id": [1, 2]}


@pytest.mark.connect
@pytest.mark.parametrize("rows", [0, 7])
def test_on_an_object_store_a_file_that_did_not_arrive_ends_the_write(
    spark, path, way, monkeypatch, rows
):
    way("native")
    monkeypatch.setattr(by_spark, "scheme_of", lambda _: "s3a")
    frame = spark.range(0, rows, 1, 2).selectExpr("id", "id % 2 AS p")
    write(frame).partitionBy("p").save(path)
    assert read(spark).load(path).count() == rows
    there = by_spark._parquet_files
    monkeypatch.setattr(by_spark, "_parquet_files", lambda *given: there(*given)[1:])
    more = write(spark.range(0, 3, 1, 2).selectExpr("id", "id % 2 AS p")).mode("append")
    with pytest.raises(OSError, match="Spark wrote 3 rows, and the 2 files"):
        more.save(path)
    twice = lambda *given: there(*given) * 2  # noqa: E731
    monkeypatch.setattr(by_spark, "_parquet_files", twice)
    with pytest.raises(OSError, match="hold 6"):
        more.save(path)
    assert read(spark).load(path).count() == rows


@pytest.mark.connect
def test_more_rows_than_the_driver_should_hold_are_left_to_the_job(spark):
    assert fetched_if_small(spark.createDataFrame(pa.table({"id": range(100_001)}))) is None


@pytest.mark.parametrize(
    "sql",
    ["SELECT 1 AS a", "SELECT id FROM RANGE(1000)", "SELECT id FROM RANGE(10) WHERE id > 3"],
)
def test_a_cheap_plan_of_few_rows_is_fetched(classic_spark, sql):
    frame = classic_spark.sql(sql)

    fetched = fetched_if_small(frame)

    assert fetched is not None
    assert fetched.num_rows == frame.count()


def test_a_list_of_rows_is_fetched(classic_spark):
    frame = classic_spark.createDataFrame([(1, "a"), (2, "b")], "id long, s string")

    fetched = fetched_if_small(frame)

    assert fetched is not None
    assert sorted(fetched["id"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("slices", [2, 7])
def test_a_list_of_rows_is_fetched_by_one_stage(classic_spark, slices):
    """A limit over several tasks would be a second one."""
    rows = classic_spark.sparkContext.parallelize([(i, "a") for i in range(9)], slices)
    frame = classic_spark.createDataFrame(rows, "id long, s string")
    context = classic_spark.sparkContext
    context.setJobGroup(f"fetched {slices}", "rows of a list")

    fetched = fetched_if_small(frame.selectExpr("id + 1 AS id", "s"), frame)

    context._jsc.sc().listenerBus().waitUntilEmpty()  # the tracker is told by a thread of its own
    tracker = context.statusTracker()
    (job,) = map(tracker.getJobInfo, tracker.getJobIdsForGroup(f"fetched {slices}"))
    (stage,) = map(tracker.getStageInfo, job.stageIds)
    assert stage.numTasks == (slices if slices == 2 else 1)
    assert fetched is not None
    assert sorted(fetched["id"].to_pylist()) == list(range(1, 10))


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.range(1001),
        lambda s: s.createDataFrame([(i,) for i in range(9000)], "id long"),
        lambda s: s.createDataFrame([(1,)], "id long").union(s.range(101)),
        lambda s: s.range(9).repartition(3),
        lambda s: s.range(9).groupBy("id").count(),
        lambda s: s.range(9).localCheckpoint(),
        lambda s: s.sql("SELECT explode(sequence(1, 3)) AS x"),
    ],
    ids=[
        "many",
        "many of a list",
        "many beside a list",
        "shuffle",
        "aggregate",
        "foreign RDD",
        "generator",
    ],
)
def test_a_plan_that_is_long_or_costly_is_left_to_the_job(classic_spark, make):
    assert fetched_if_small(make(classic_spark)) is None


@pytest.mark.connect
@pytest.mark.parametrize("name", ["native", "arrow", "driver"])
def test_a_partition_value_may_be_longer_than_the_name_of_a_folder(spark, path, way, name):
    way(name)
    data = spark.range(4).selectExpr("id", "repeat(IF(id < 2, 'é:', 'x'), 300) AS p")
    if name == "native":
        with pytest.raises(DeltaAnalysisError, match="too long for the name of a folder"):
            write(data).partitionBy("p").save(path)
        assert data_names(path) == []
        return
    write(data).partitionBy("p").save(path)
    found = DeltaLog.for_table(path).snapshot.to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [0, 1, 2, 3], "p": ["é:" * 300] * 2 + ["x" * 300] * 2}
    assert read(spark).load(path).where("p = repeat('x', 300)").count() == 2


@pytest.mark.parametrize("name", ["native", "arrow", "driver"])
def test_nothing_is_written_into_a_partition_that_is_a_link(spark, path, tmp_path, way, name):
    way(name)
    data = spark.range(4).selectExpr("id", "id % 2 AS p")
    write(data.where("p = 0")).partitionBy("p").save(path)
    (tmp_path / "outside").mkdir()
    (Path(path) / "p=1").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="p=1 is a link in the table"):
        write(data).mode("append").save(path)
    assert not list((tmp_path / "outside").iterdir())
    assert DeltaLog.for_table(path).snapshot.to_arrow()["id"].to_pylist() == [0, 2]


@pytest.mark.connect
@pytest.mark.parametrize("name", ["native", "arrow", "driver"])
def test_every_way_leaves_deltas_own_layout_and_nothing_else(spark, path, way, name):
    way(name)
    data = spark.range(6).selectExpr("id", "id % 2 AS p", "IF(id < 3, 'a/b', NULL) AS q")

    write(data).partitionBy("p", "q").save(path)
    write(spark.range(3)).save(f"{path}2")

    folders = {n.rpartition("/")[0] for n in data_names(path)}
    null = "__HIVE_DEFAULT_PARTITION__"
    assert folders == {"p=0/q=a%2Fb", "p=1/q=a%2Fb", f"p=0/q={null}", f"p=1/q={null}"}
    assert all("/" not in n for n in data_names(f"{path}2"))
    every = data_names(path) + data_names(f"{path}2")
    assert all(n.rpartition("/")[2].startswith("part-") for n in every)
    assert all(n.endswith(".zstd.parquet") for n in every)
    listed = {add.path for add in DeltaLog.for_table(f"{path}2").snapshot.files()}
    assert listed == set(data_names(f"{path}2"))


@pytest.mark.parametrize("name", ["native", "arrow", "driver"])
def test_compression_and_rows_per_file_are_obeyed(spark, path, way, name):
    way(name)

    writer = write(spark.range(10).coalesce(1)).options(compression="gzip", maxRecordsPerFile=4)
    writer.save(path)

    assert all(n.endswith(".gz.parquet") for n in data_names(path))
    counts = [add.num_records for add in DeltaLog.for_table(path).snapshot.files()]
    assert sorted(c or 0 for c in counts) == [2, 4, 4]


def test_spark_makes_no_dictionary_of_what_had_none_in_the_newest_file(spark, path, way):
    way("native")
    rows = spark.range(0, 400_000, 1, 1).selectExpr("id", "id % 3 AS few", "id DIV 2 AS twice")

    encodings = []
    for _ in range(2):
        before = set(data_names(path))
        write(rows).mode("append").save(path)
        (new,) = set(data_names(path)) - before
        group = pq.read_metadata(f"{path}/{new}").row_group(0)
        columns = [group.column(at) for at in range(3)]
        encodings.append({c.path_in_schema: set(c.encodings) for c in columns})

    first, second = encodings
    assert {"PLAIN", "PLAIN_DICTIONARY"} <= first["twice"]  # it filled one, and gave up
    assert "PLAIN_DICTIONARY" not in second["id"] | second["twice"]
    assert "PLAIN_DICTIONARY" in second["few"]


@pytest.mark.connect
def test_an_unknown_way_is_refused_with_the_known_ones(spark, path, way):
    way("sideways")

    with pytest.raises(DeltaAnalysisError, match=r"auto, driver, native, arrow.*'sideways'"):
        write(spark.range(1)).save(path)


@pytest.mark.connect
def test_a_table_in_memory_is_written_by_the_driver(spark):
    uri = "memory://writes/table"
    data = spark.range(20_000).selectExpr("id", "id % 3 AS p")

    write(data).partitionBy("p").save(uri)
    write(data.where("id < 5")).mode("append").save(uri)

    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 20_005


def test_batches_for_the_workers_have_many_rows_or_few_wide_ones(spark):
    if not BYTES_OBEYED:  # this Spark bounds batches by their rows alone
        assert batch_confs(spark) == {}
        return

    def sizes(batches):
        for each in batches:
            yield pa.RecordBatch.from_pydict({"n": [each.num_rows], "b": [each.nbytes]})

    with temporary_confs(spark, batch_confs(spark)):
        narrow = spark.range(70_000).coalesce(1).mapInArrow(sizes, "n long, b long").collect()
        wide = spark.range(6_000).selectExpr("id", "repeat('x', 20000) AS s").coalesce(1)
        bounded = wide.mapInArrow(sizes, "n long, b long").collect()

    assert max(each.n for each in narrow) > 60_000
    assert sum(each.n for each in bounded) == 6_000
    assert max(each.b for each in bounded) < 80 << 20


def test_the_users_own_size_of_batches_is_kept(spark):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    try:
        assert batch_confs(spark) == {}
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.connect
def test_the_sessions_confs_are_as_before_after_a_write(spark, path, way):
    before = {k: v for k, v in _confs(spark).items() if "lakelog" not in k}
    for name in ("native", "arrow"):
        way(name)
        write(spark.sql("SELECT 1L AS id, now() AS t")).mode("append").save(path)

    assert {k: v for k, v in _confs(spark).items() if "lakelog" not in k} == before


@pytest.mark.parametrize("name", ["native", "driver"])
def test_files_and_folders_are_on_the_disk_before_the_commit(spark, path, way, name, synced):
    way(name)
    write(spark.range(6).selectExpr("id", "id % 2 AS p")).partitionBy("p").save(path)

    flushed = set(synced[: synced.index(f"{path}/_delta_log")])
    assert flushed >= {f"{path}/{each}" for each in data_names(path)}
    assert flushed >= {f"{path}/p=0", f"{path}/p=1", path}


def _confs(spark):
    return dict(spark.conf.getAll)


def test_a_memory_of_delta_rs_appends_is_kept_in_turns(spark, path):
    import deltalake

    write(spark.range(3)).save(path)
    deltalake.write_deltalake(path, pa.table({"id": pa.array([3], pa.int64())}), mode="append")
    write(spark.range(4, 6)).mode("append").save(path)

    table = DeltaTable(path)
    assert table.version() == 2
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == [0, 1, 2, 3, 4, 5]


# Executors ----------------------------------------------------------------------------------

_JOB = """
    import sys
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession, functions as F
    spark = (
        SparkSession.builder.master("local[2]").config("spark.driver.memory", "1g")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")

    def has(name):
        import importlib.util
        return importlib.util.find_spec(name) is not None

    found = spark.sparkContext.parallelize([0], 1).map(
        lambda _: (has("lakelog"), has("pyarrow"))
    ).collect()[0]
    from lakelog.spark import read, write
    data = spark.range(6000).selectExpr("id", "id % 3 AS p", "CAST(id AS STRING) AS s")
    write(data).partitionBy("p").save(sys.argv[1])
    write(data).mode("append").save(sys.argv[1])
    print("executors:", found)
    if not found[1]:
        from lakelog.spark import DeltaTable
        from lakelog.spark.dml import copies, without_spark
        from lakelog.spark.replay import bins
        without_spark.HERE_BYTES = copies._HERE_BYTES = bins._HERE_BYTES = -1
        table = DeltaTable.forPath(spark, sys.argv[1])
        table.update("id = 7", {"s": "'x'"})
        table.optimize().executeCompaction()
        spark.conf.set("spark.lakelog.read.path", "arrow")
        try:
            read(spark).load(sys.argv[1]).collect()
        except PySparkException as exc:
            print("read:", exc)
"""


def _run_with_workers(tmp_path, hidden):
    """Run the job with workers whose Python lacks some packages."""
    worker = bare_python(tmp_path, *hidden)
    script = tmp_path / "job.py"
    script.write_text(textwrap.dedent(_JOB))
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": worker,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    environment.pop("PYTHONPATH", None)
    table = str(tmp_path / "table")
    done = subprocess.run(
        [sys.executable, str(script), table],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = DeltaTable(table).to_pyarrow_table()
    assert found.num_rows == 12_000
    return done


@pytest.mark.one_day_in(3, 2)
def test_executors_without_lakelog_write_partitioned_tables(tmp_path):
    done = _run_with_workers(tmp_path, OF_LAKELOG)

    assert "executors: (False, True)" in done.stdout
    assert "no pyarrow" not in done.stderr


@pytest.mark.one_day_in(3, 2)
def test_executors_without_pyarrow_are_served_by_sparks_own_writer(tmp_path):
    hidden = (*OF_LAKELOG, "pyarrow", "pandas", "numpy")

    done = _run_with_workers(tmp_path, hidden)

    assert "executors: (False, False)" in done.stdout
    assert "no pyarrow that Spark can use" in done.stderr
    assert done.stderr.count("so the driver does") == 2, done.stderr  # the copies, and OPTIMIZE
    _, _, said = done.stdout.partition("read:")
    assert "Set PYSPARK_PYTHON to a Python with pyarrow, or install it there" in said


@pytest.mark.parametrize("name", ["driver", "native", "arrow"])
def test_the_codec_of_the_table_is_obeyed(spark, path, way, name):
    way(name)
    for codec, wanted in {"zstd": "ZSTD", "lz4": "LZ4"}.items():
        table = f"{path}-{codec}"
        writer = write(spark.range(3)).option("delta.parquet.compression.codec", codec)
        writer.save(table)
        write(spark.range(3)).mode("append").save(table)
        files = [f.path for f in DeltaLog.for_table(table).update().files()]
        found = [pq.ParquetFile(Path(table) / f).metadata.row_group(0) for f in files]
        assert {each.column(0).compression for each in found} == {wanted}


@pytest.mark.parametrize("name", ["driver", "native", "arrow"])
def test_no_file_holds_a_column_without_a_type(spark, path, way, name):
    way(name)
    untyped = spark.sql("SELECT 1L AS id, NULL AS x, struct(1 AS k, NULL AS v) AS s")
    write(untyped).save(path)
    write(untyped).mode("overwrite").option("replaceWhere", "id = 1").save(path)
    for file in Path(path).glob("*.parquet"):
        found = pq.read_schema(file)
        assert found.names == ["id", "s"]
        assert [field.name for field in found.field("s").type] == ["k"]
