from __future__ import annotations

import datetime as dt
import json
import os
import shutil
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.log.file_names import commit_name
from support.samples import SAMPLES, ids, numbers, rows_of


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def write_sample(path, name):
    sample = SAMPLES[name]
    write_arrow(path, sample.data, partition_by=sample.partition_by or None, mode="append")
    return sample


def ours(path, **travel):
    log = DeltaLog.for_table(path)
    return rows_of((log.snapshot_at(**travel) if travel else log.snapshot).to_arrow())


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kind_of_table_is_read_written_to_and_read_back(delta_spark, path, name):
    sample = write_sample(path, name)
    assert rows_of(delta_spark.read(path)) == rows_of(sample.data)
    assert delta_spark.schema(path)["fields"] == theirs_in_json(path)

    delta_spark.write(path, sample.data, mode="append")
    doubled = sorted(rows_of(sample.data) * 2, key=lambda row: row["id"])
    assert ours(path) == doubled
    log = DeltaLog.for_table(path)
    if sample.partition_by:
        # One value is one partition, whoever wrote the row.
        texts = [tuple(sorted(add.partition_values.items())) for add in log.snapshot.files()]
        assert len(texts) == 2 * len(set(texts))

    delta_spark.write(path, sample.data, mode="overwrite")
    assert ours(path) == rows_of(sample.data)


def theirs_in_json(path):
    return json.loads(DeltaLog.for_table(path).snapshot.schema.to_json())["fields"]


def test_an_overwrite_of_ours_is_followed(delta_spark, path):
    write_arrow(path, numbers(0), partition_by=["p"], mode="append")
    assert ids(delta_spark.read(path)) == [0, 1, 2, 3, 4]
    write_arrow(path, numbers(10), mode="overwrite")
    assert ids(delta_spark.read(path)) == [10, 11, 12, 13, 14]
    odd = numbers(21, 1)
    write_arrow(path, odd, mode="overwrite", replace_where="p = 1")
    assert ids(delta_spark.read(path)) == [10, 12, 14, 21]


def test_our_checkpoint_is_read_without_the_commits_and_the_log_goes_on_after_it(delta_spark, path):
    sample = SAMPLES["by every type"]
    write_arrow(path, sample.data, partition_by=sample.partition_by, mode="append")
    write_arrow(path, sample.data, app_id="job", app_version=7, mode="append")
    write_arrow(path, sample.data, mode="overwrite")
    log = DeltaLog.for_table(path)
    log.checkpoint()
    for version in range(log.snapshot.version):
        (Path(path) / "_delta_log" / commit_name(version)).unlink()
    assert rows_of(delta_spark.read(path)) == rows_of(sample.data)

    write_arrow(path, sample.data, mode="append")
    assert delta_spark.count(path) == 2 * sample.data.num_rows
    delta_spark.write(path, sample.data, options={"txnAppId": "job", "txnVersion": "7"})
    assert delta_spark.count(path) == 2 * sample.data.num_rows, "our txn is not known"
    delta_spark.write(path, sample.data, options={"txnAppId": "job", "txnVersion": "8"})
    assert DeltaLog.for_table(path).snapshot.transactions == {"job": 8}

    assert delta_spark.checkpoint(path) == log.update().version
    assert len(ours(path)) == 3 * sample.data.num_rows


@pytest.mark.one_day_in(3, 2)
def test_tombstones_in_our_checkpoint_are_known_to_vacuum(delta_spark, path):
    for start in range(0, 30, 10):
        write_arrow(path, numbers(start), mode="overwrite")
    log = DeltaLog.for_table(path)
    log.checkpoint()
    dead = log.snapshot.tombstones["path"].to_pylist()
    assert len(dead) == 2
    keep = DeltaLog.for_table(path).snapshot.files()[0].path
    delta_spark.sql("SET spark.databricks.delta.retentionDurationCheck.enabled=false")
    # VACUUM lists folders in so many tasks.
    delta_spark.sql("SET spark.sql.sources.parallelPartitionDiscovery.parallelism=2")
    listed = delta_spark.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS DRY RUN")
    names = {Path(row["path"]).name for row in listed}
    assert names == {Path(name).name for name in dead}
    assert Path(keep).name not in names


def test_a_schema_that_grew_is_read(delta_spark, path):
    write_arrow(path, numbers(0, 2), mode="append")
    nested = pa.array([{"a": 1, "b": "x"}], pa.struct([("a", pa.int64()), ("b", pa.string())]))
    wider = numbers(2, 1).append_column("more", nested)
    write_arrow(path, wider, schema_mode="merge", mode="append")
    deeper = pa.array([{"c": 2.5}], pa.struct([("c", pa.float64())]))
    write_arrow(
        path, numbers(3, 1).append_column("more", deeper), schema_mode="merge", mode="append"
    )
    rows = rows_of(delta_spark.read(path))
    assert rows == ours(path)
    assert [row["more"] for row in rows] == [
        None,
        None,
        {"a": 1, "b": "x", "c": None},
        {"a": None, "b": None, "c": 2.5},
    ]
    other = pa.table({"id": pa.array([9], pa.int64()), "day": [dt.date(1969, 1, 1)]})
    write_arrow(path, other, mode="overwrite", schema_mode="overwrite", partition_by=["day"])
    assert rows_of(delta_spark.read(path)) == rows_of(other)
    assert delta_spark.detail(path)["partitionColumns"] == ["day"]


@pytest.mark.one_day_in(3, 1)
def test_time_travel_leads_both_to_the_same_versions(delta_spark, path):
    for start in range(4):
        write_arrow(path, numbers(start, 1), user_metadata=f"note {start}", mode="append")
    log = DeltaLog.for_table(path)
    # delta-spark does not travel further back than `delta.deletedFileRetentionDuration`.
    recent = log.clock.now_ms() - 3_600_000
    for version in range(4):
        file = Path(path) / "_delta_log" / commit_name(version)
        # 2 and 3 have one time: the later one then counts as a millisecond later.
        moment = recent + 60_000 * min(version, 2)
        os.utime(file, ns=(moment * 1_000_000, moment * 1_000_000))
    for version in range(4):
        assert ids(delta_spark.read(path, version=version)) == list(range(version + 1))
        assert len(ours(path, version=version)) == version + 1

    history = delta_spark.history(path)
    assert [(e["version"], e["operation"], e["userMetadata"]) for e in history] == [
        (v, "WRITE", f"note {v}") for v in (3, 2, 1, 0)
    ]
    mine = log.history()
    assert [utc_ms(e["timestamp"]) for e in history] == [e.timestamp for e in mine]
    assert [e["isBlindAppend"] for e in history] == [e.is_blind_append for e in mine]
    assert [e["operationMetrics"] for e in history] == [dict(e.metrics) for e in mine]

    for seconds, count in ((0, 1), (90, 2), (120.001, 4)):
        then = dt.datetime.fromtimestamp(recent / 1000 + seconds, dt.UTC)
        text = then.strftime("%F %T.%f")
        theirs = delta_spark.read(path, timestamp=text)
        assert rows_of(theirs) == ours(path, timestamp=text)
        assert theirs.num_rows == count


def utc_ms(text):
    return round(dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC).timestamp() * 1000)


PREDICATES = {
    "i = 5": ["i"],
    "i > 5 AND i <= 7": ["i"],
    "l < -4": ["l"],
    "d > 2.5": ["d"],
    "isnan(d)": ["d"],
    "f >= cast(1.5 as float)": ["f"],
    "price = 12.34": ["price"],
    "price < -0.5": ["price"],
    "day < '1970-01-01'": ["day"],
    "at > '2024-01-01 00:00:00.000499'": ["at"],
    "at = '2024-01-01 00:00:00.000999'": ["at"],
    "text > 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'": ["text"],
    "text = '🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀🚀'": ["text"],
    "text LIKE 'é%'": ["text"],
    "text IS NULL": ["text"],
    "i IS NOT NULL": ["i"],
    "nest.x = 3": ["nest"],
    "nest.x IS NULL": ["nest"],
    "flag": ["flag"],
    "i IN (1, 9, 100)": ["i"],
    "NOT (i = 5)": ["i"],
    "d = 0.0": ["d"],
}


@pytest.fixture(scope="module")
def one_row_files(tmp_path_factory):
    """Twelve files of one row each: what statistics say decides which are opened."""
    path = str(tmp_path_factory.mktemp("stats") / "t")
    texts = [
        "x" * 40,
        "x" * 36 + "y",
        "🚀" * 20,
        "é" * 33,
        "",
        None,
        "a",
        "A",
        "~",
        "\x7f",
        "zz",
        "é",
    ]
    doubles = [1.0, float("nan"), -0.0, 0.0, 3.5, float("inf"), -5.0, None, 2.5, 2.6, 1e9, -1e9]
    for n in range(12):
        at = dt.datetime(2024, 1, 1, 0, 0, 0, [0, 1, 499, 500, 501, 999][n % 6], tzinfo=dt.UTC)
        row = {
            "id": pa.array([n], pa.int64()),
            "i": pa.array([None if n == 11 else n], pa.int32()),
            "l": pa.array([-n], pa.int64()),
            "d": pa.array([doubles[n]], pa.float64()),
            "f": pa.array([doubles[n]], pa.float32()),
            "price": pa.array([Decimal(n - 6) + Decimal("0.34")], pa.decimal128(12, 4)),
            "day": pa.array([dt.date(1968 + n, 1, 1)]),
            "at": pa.array([at], pa.timestamp("us", "UTC")),
            "text": pa.array([texts[n]], pa.string()),
            "flag": pa.array([[True, False, None][n % 3]], pa.bool_()),
            "nest": pa.array([{"x": None if n == 4 else n}], pa.struct([("x", pa.int64())])),
        }
        write_arrow(path, pa.table(row), mode="append")
    return path


def test_files_are_skipped_by_our_statistics_and_no_row_is_lost(
    delta_spark, one_row_files, tmp_path
):
    """The same rows must come without our statistics, where every file is opened."""
    blind = tmp_path / "blind"
    shutil.copytree(one_row_files, blind)
    for file in (blind / "_delta_log").iterdir():
        if file.suffix == ".json":
            lines = [strip_stats(line) for line in file.read_text().splitlines()]
            file.write_text("\n".join(lines) + "\n")
        else:
            file.unlink()  # the checkpoint, which has the statistics too
    delta_spark.sql(f"SELECT 1 FROM delta.`{one_row_files}` LIMIT 1")
    for predicate in PREDICATES:
        with_stats = selected(delta_spark, one_row_files, predicate)
        without = selected(delta_spark, blind, predicate)
        assert with_stats == without, predicate
        mine = DeltaLog.for_table(one_row_files)
        files = {id_of(one_row_files, add) for add in mine.snapshot.files(predicate)}
        assert set(with_stats) <= files, predicate


def id_of(path, add):
    """Of the file's one row; the file of a NaN has no bounds that would tell it."""
    return pq.read_table(Path(path) / add.path, columns=["id"])["id"][0].as_py()


def strip_stats(line):
    action = json.loads(line)
    action.get("add", {}).pop("stats", None)
    return json.dumps(action)


def selected(delta_spark, path, predicate):
    rows = delta_spark.sql(f"SELECT id FROM delta.`{path}` WHERE {predicate}")
    return sorted(row["id"] for row in rows)


def test_delta_spark_opens_only_the_files_that_our_statistics_leave(
    delta_spark, one_row_files, tmp_path
):
    """Files that it must not need are taken away: a query that opened one would fail."""
    path = tmp_path / "gone"
    shutil.copytree(one_row_files, path)
    snapshot = DeltaLog.for_table(path).snapshot
    needless = [
        add
        for add in snapshot.files()
        if id_of(path, add) not in (5, 6) and "minValues" in (add.stats or "")
    ]
    assert len(needless) == 9
    for add in needless:
        (path / add.path).unlink()
    for predicate in (
        "i >= 5 AND i <= 6",
        "l IN (-5, -6)",
        "day BETWEEN '1973-01-01' AND '1974-12-31'",
        "price BETWEEN -0.7 AND 0.4",
        "nest.x > 4 AND nest.x < 7",
    ):
        assert selected(delta_spark, path, predicate) == [5, 6], predicate
