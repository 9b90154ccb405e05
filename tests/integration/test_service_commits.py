"""Appends of a Spark driver are committed by the service that its conf names."""

import contextlib

import pytest

from lakelog.core import DeltaLog
from lakelog.core.log.commit_identity import GROUP_TAG
from lakelog.spark import read, register, write
from support.commit_services import SERVICE, serving_commits


@contextlib.contextmanager
def _set(spark, conf):
    for key, value in conf.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key in conf:
            spark.conf.unset(key)


def _are_served(path):
    """For each version, the oldest first, whether a service has made it."""
    entries = reversed(DeltaLog.for_table(path).history())
    return [GROUP_TAG in (entry.commit_info.get("tags") or {}) for entry in entries]


def test_a_service_commits_what_spark_appends(spark, tmp_path):
    path, token = str(tmp_path / "table"), tmp_path / "token"
    write(spark.range(1)).save(path)
    with (
        serving_commits(tmp_path, token) as (_, url),
        _set(spark, {SERVICE: url, f"{SERVICE}.token.file": str(token)}),
    ):
        write(spark.range(1, 2)).mode("append").save(path)
    assert sorted(row.id for row in read(spark).load(path).collect()) == [0, 1]
    assert _are_served(path) == [False, True]


@pytest.mark.parametrize("key", [f"{SERVICE}.token.file", f"{SERVICE}.token"])
def test_sparks_own_process_asks_a_service_where_a_file_has_the_token(spark, tmp_path, key):
    path, token = str(tmp_path / "table"), tmp_path / "token"
    write(spark.range(1)).save(path)
    with serving_commits(tmp_path, token) as (_, url):
        is_file = key.endswith(".file")
        with _set(spark, {SERVICE: url, key: str(token) if is_file else token.read_text().strip()}):
            register(spark)
            spark.range(1, 2).write.format("lakelog").mode("append").save(path)
    register(spark)  # by a conf that names no service
    assert sorted(row.id for row in read(spark).load(path).collect()) == [0, 1]
    # A token in the conf stays in the driver's process.
    assert _are_served(path) == [False, is_file]
