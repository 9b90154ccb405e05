"""Spark's tasks and the keys that a catalog vends for MinIO: each job has those of its start."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import pytest

import lakelog.spark as delta
from lakelog.core import SystemClock, create_table, write_arrow
from lakelog.core.catalogs import resolution
from lakelog.core.errors import CatalogError
from lakelog.core.hooks.background import wait_for_all
from support.minio_vendor import Vendor
from support.unity_server import UnityServer, Ways, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from support.servers.minio import S3Endpoint

NAME: Final = "lake.s.t"
ENDED: Final = "the credentials that the catalog lake vended for lake.s.t have ended"


@pytest.fixture
def vendor(minio: S3Endpoint) -> Vendor:
    return Vendor(minio, SystemClock())


@pytest.fixture
def server(s3_bucket: str, vendor: Vendor, no_aws: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    """The double, whose tables are in a bucket that nothing but what it vends opens."""
    with serving(UnityServer(f"s3://{s3_bucket}/u", Ways(checks_staged=False), "t0ken")) as served:
        served.credentials = vendor
        served.add_schema("lake", "s")
        yield served
        assert wait_for_all(60)


@pytest.fixture
def lake(
    classic_spark: SparkSession, server: UnityServer, minio: S3Endpoint, vendor: Vendor
) -> Iterator[SparkSession]:
    """An enabled session that knows the catalog and the endpoint, and no key of the storage."""
    conf = {key: value for key, value in minio.conf.items() if not key.endswith(".key")}
    conf |= {
        **server.conf(),
        "spark.lakelog.store.endpointProbe": "never",
        "spark.lakelog.write.path": "arrow",
    }
    vendor.ends_others = False
    delta.enable(classic_spark)
    for key, value in conf.items():
        classic_spark.conf.set(key, value)
    for name in (NAME, "lake.s.out"):
        create_table(name, "id bigint", conf=conf)
    for number in range(3):
        write_arrow(NAME, {"id": [number]}, mode="append", conf=conf)
    assert wait_for_all(60)
    resolution._vended.clear()
    yield classic_spark
    vendor.lasts = None
    assert wait_for_all(60)
    for key in conf:
        classic_spark.conf.unset(key)
    delta.disable(classic_spark)


def ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def pass_on(vendor: Vendor) -> None:
    """Let all keys end, in MinIO and by the clock."""
    assert wait_for_all(60)
    vendor.end_all()
    ends = time.monotonic() + (vendor.lasts or 0) / 1000
    while time.monotonic() < ends:
        time.sleep(0.05)


@pytest.mark.one_day_in(2)
def test_each_job_and_each_micro_batch_has_keys_that_are_young(
    lake: SparkSession, vendor: Vendor, tmp_path: Path
) -> None:
    vendor.lasts = 2_000
    assert ids(lake.table(NAME)) == [0, 1, 2]
    pass_on(vendor)
    lake.range(3, 5).write.mode("append").saveAsTable(NAME)
    batches: list[int] = []

    def copied(frame: DataFrame, number: int) -> None:
        frame.write.mode("append").saveAsTable("lake.s.out")
        batches.append(number)
        pass_on(vendor)

    source = lake.readStream.option("maxFilesPerTrigger", 2).table(NAME)
    query = (
        source.writeStream.foreachBatch(copied)
        .option("checkpointLocation", str(tmp_path / "c"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert len(batches) >= 2
    assert ids(lake.table("lake.s.out")) == [0, 1, 2, 3, 4]


@pytest.mark.one_day_in(2, 1)
def test_a_task_whose_keys_have_ended_says_so_and_what_to_do(
    lake: SparkSession, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor.lasts = 2_000
    early = lake.table(NAME)
    pass_on(vendor)
    with pytest.raises(Exception, match=ENDED) as caught:
        early.collect()
    found = delta.unwrap_error(caught.value)
    assert isinstance(found, CatalogError)
    assert "make a DataFrame that was read before anew" in str(found)
    assert ids(lake.table(NAME)) == [0, 1, 2]

    # A write whose keys end between its planning and its tasks.
    real = resolution._Storage.travelling

    def dead(storage: Any) -> Any:
        found = real(storage)
        pass_on(vendor)
        return found

    monkeypatch.setattr(resolution._Storage, "travelling", dead)
    with pytest.raises(CatalogError, match=ENDED):
        lake.range(3, 5).write.mode("append").saveAsTable(NAME)
    monkeypatch.undo()
    lake.range(3, 5).write.mode("append").saveAsTable(NAME)
    assert ids(lake.table(NAME)) == [0, 1, 2, 3, 4]
