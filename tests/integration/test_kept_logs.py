"""A session opens a log once, and what it reads from it is the newest all the same."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

import lakelog.spark as delta
from lakelog.core import table_log, write_arrow
from lakelog.core.errors import TableNotFoundError
from lakelog.core.state import replay
from lakelog.spark import DeltaTable
from lakelog.spark.replay import logs

pytestmark = pytest.mark.connect


def grown(path, *ids):
    """By another process, as far as the session knows."""
    return write_arrow(str(path), pa.table({"id": pa.array(ids, pa.int64())}), mode="append")


@pytest.fixture
def opened(monkeypatch):
    """The tables whose logs were listed and replayed."""
    found = []
    load = replay.load_state

    def counted(store, table, *args, **kwargs):
        found.append(table.rsplit("/", 1)[-1])
        return load(store, table, *args, **kwargs)

    monkeypatch.setattr(table_log, "load_state", counted)
    return found


@pytest.fixture
def none_kept(spark):
    logs.forget_logs(spark)
    yield
    logs.forget_logs(spark)


@pytest.mark.usefixtures("none_kept")
def test_calls_of_a_session_share_a_log_and_see_every_commit(spark, tmp_path, opened):
    path = str(tmp_path / "t")
    grown(path, 0)
    opened.clear()

    def seen():
        by_path = delta.read(spark).load(path).count()
        assert DeltaTable.forPath(spark, path).toDF().count() == by_path
        assert delta.sql(spark, f"SELECT id FROM delta.`{path}`").count() == by_path
        return by_path

    assert seen() == 1
    opened.clear()
    for number in range(1, 4):
        grown(path, number)
        opened.clear()  # of the other process
        assert seen() == 2 * number
        delta.write(spark.range(1)).mode("append").save(path)
        assert seen() == 2 * number + 1
        assert opened == []


@pytest.mark.usefixtures("none_kept")
def test_a_table_that_was_made_again_is_not_the_old_one(spark, tmp_path):
    path = tmp_path / "t"
    grown(path, 1, 2)
    table = DeltaTable.forPath(spark, str(path))
    assert table.toDF().count() == 2
    shutil.rmtree(path)
    with pytest.raises(TableNotFoundError):
        DeltaTable.forPath(spark, str(path))
    with pytest.raises(TableNotFoundError):
        delta.read(spark).load(str(path))
    grown(path, 7)
    assert [row.id for row in delta.read(spark).load(str(path)).collect()] == [7]
    assert [row.id for row in DeltaTable.forPath(spark, str(path)).toDF().collect()] == [7]
    assert [row.id for row in table.toDF().collect()] == [7]


@pytest.mark.usefixtures("none_kept")
def test_another_conf_is_another_log(spark, tmp_path, opened):
    path = str(tmp_path / "t")
    grown(path, 1)
    opened.clear()
    DeltaTable.forPath(spark, path)
    own = DeltaTable.forPath(spark, path, {"fs.s3a.endpoint": "http://here"})
    assert opened == ["t", "t"]
    assert "spark.hadoop.fs.s3a.endpoint" in own.log.conf
    assert "spark.hadoop.fs.s3a.endpoint" not in DeltaTable.forPath(spark, path).log.conf
    assert opened == ["t", "t"]


@pytest.mark.usefixtures("none_kept")
def test_few_logs_are_kept_and_few_files(spark, tmp_path, opened, monkeypatch):
    monkeypatch.setattr(logs, "MOST_LOGS", 2)
    for name in "abc":
        grown(tmp_path / name, 1)
    opened.clear()
    for name in "abcacb":
        DeltaTable.forPath(spark, str(tmp_path / name))
    assert opened == [*"abc", "a", "b"]  # `c` was there still

    monkeypatch.setattr(logs, "MOST_FILES", 1)
    logs.forget_logs(spark)
    for name in "ab":
        grown(tmp_path / name, 2)
    opened.clear()
    for name in "abba":
        assert DeltaTable.forPath(spark, str(tmp_path / name)).toDF().count() == 2
    assert opened == [*"ab", "a"]
