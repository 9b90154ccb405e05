"""The pages that need Spark run as pasted, in order, and show what they print.

All share one session, which each finds with an empty database and its confs as they were.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.readwriter import DataStreamWriter

import lakelog.spark as delta
from support.pages import STORAGES, Page, documents, on_minio
from support.to_end import to_end

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from support.servers.minio import S3Endpoint

PAGES = [page for page in documents() if page.needs_spark]
ON_MINIO = [page for page in PAGES if STORAGES.get(page.name) == "minio"]


@pytest.fixture(autouse=True)
def _to_their_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pages' queries, all of which end by themselves, have a second try too."""
    start: Any = DataStreamWriter.start
    monkeypatch.setattr(
        DataStreamWriter,
        "start",
        lambda self, *args, **kwargs: to_end(lambda: start(self, *args, **kwargs)),
    )


@contextlib.contextmanager
def as_new(spark: SparkSession, folder: Path) -> Iterator[None]:
    """Give a page an empty database, and take back what it changes of the session."""
    confs = dict(spark.conf.getAll)
    spark.sql(f"CREATE DATABASE page LOCATION '{folder}/warehouse'")
    spark.sql("USE page")
    try:
        yield
    finally:
        delta.disable(spark)
        for view in spark.sql("SHOW VIEWS").where("isTemporary").collect():
            spark.catalog.dropTempView(view["viewName"])
        spark.sql("USE default")
        spark.sql("DROP DATABASE page CASCADE")
        for key in set(spark.conf.getAll) - set(confs):
            spark.conf.unset(key)
        for key, value in confs.items():
            if spark.conf.isModifiable(key):
                spark.conf.set(key, value)


def _check(
    page: Page,
    spark: SparkSession,
    folder: Path,
    request: pytest.FixtureRequest,
    stand_ins: dict[str, str],
) -> None:
    with as_new(spark, folder):
        text = page.showing(page.outputs(folder, {"spark": spark}, stand_ins))
    if request.config.getoption("--write-pages"):
        page.write(text)
    else:
        assert page.text == text


@pytest.mark.timeout(280)
@pytest.mark.one_day_in(4, 1)
@pytest.mark.parametrize("page", [page for page in PAGES if page.name not in STORAGES], ids=repr)
def test_the_page_runs_as_pasted_and_shows_what_it_prints(
    page: Page,
    classic_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    _check(page, classic_spark, tmp_path, request, {})


@pytest.mark.timeout(280)
@pytest.mark.parametrize("page", ON_MINIO, ids=repr)
def test_the_page_about_a_storage_does_so_on_its_server(
    page: Page,
    classic_spark: SparkSession,
    minio: S3Endpoint,
    s3_bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.chdir(tmp_path)
    _check(page, classic_spark, tmp_path, request, on_minio(minio, s3_bucket))
