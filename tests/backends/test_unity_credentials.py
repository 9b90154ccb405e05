"""Credentials that a catalog vends for MinIO, and that end: each new one ends those before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pytest
from pyarrow.fs import FileSelector

from lakelog.core import DeltaLog, create_table, read_arrow, write_arrow
from lakelog.core.catalogs import resolution
from lakelog.core.hooks.background import wait_for_all
from support.manual_clock import ManualClock
from support.minio_vendor import Vendor
from support.unity_server import UnityServer, Ways, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.minio import S3Endpoint

NAME: Final = "lake.s.t"
HOUR: Final = 3_600_000
"""Milliseconds."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def vendor(minio: S3Endpoint, clock: ManualClock) -> Vendor:
    return Vendor(minio, clock)


@pytest.fixture
def server(s3_bucket: str, vendor: Vendor, no_aws: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    """The double, whose tables are in a bucket that nothing but what it vends opens."""
    ways = Ways(checks_staged=False)
    with serving(UnityServer(f"s3://{s3_bucket}/unity", ways, token="t0ken")) as served:
        served.credentials = vendor
        served.add_schema("lake", "s")
        yield served
        assert wait_for_all(60)


@pytest.fixture
def conf(server: UnityServer, minio: S3Endpoint) -> dict[str, str]:
    """The catalog and the endpoint, without a key."""
    bare = {key: value for key, value in minio.conf.items() if not key.endswith(".key")}
    return {**server.conf(), **bare, "spark.lakelog.store.endpointProbe": "never"}


def made(conf: dict[str, str], clock: ManualClock, vendor: Vendor) -> DeltaLog:
    create_table(NAME, "id bigint, p string", partition_by="p", conf=conf)
    assert wait_for_all(60)
    resolution._vended.clear()
    vendor.lasts = HOUR
    return DeltaLog.for_table(NAME, conf, clock)


def test_the_keys_before_have_ended(
    conf: dict[str, str], clock: ManualClock, vendor: Vendor
) -> None:
    log = made(conf, clock, vendor)
    log.update()
    vendor.end_all()
    with pytest.raises(OSError, match="INVALID_ACCESS_KEY_ID"):
        log.store.filesystem.get_file_info(FileSelector(log.store.filesystem_path(log.table)))
    clock.advance(HOUR / 1000)
    assert log.update().version == 0


def test_a_long_write_goes_on_with_new_keys(
    conf: dict[str, str], clock: ManualClock, vendor: Vendor
) -> None:
    log = made(conf, clock, vendor)
    before, many = len(vendor.given), 1 << 17

    def rows() -> Iterator[pa.RecordBatch]:
        for number in range(4):
            yield pa.record_batch({"id": range(many), "p": [f"p{number}"] * many})
            # The next one that is asked for ends it; until then a file may be on its way.
            clock.advance(0.95 * HOUR / 1000)

    write_arrow(log, rows(), mode="append")
    assert len(vendor.given) >= before + 2
    assert len({each["s3.access-key-id"] for each in vendor.given}) == len(vendor.given)
    assert read_arrow(log, columns=["id"]).num_rows == 4 * many
    folders = FileSelector(log.store.filesystem_path(log.table), recursive=True)
    found = log.store.filesystem.get_file_info(folders)
    assert sum(each.is_file and each.base_name.startswith("part-") for each in found) == 4


def test_who_reads_on_and_on_goes_on_with_new_keys(
    conf: dict[str, str], clock: ManualClock, vendor: Vendor
) -> None:
    writer, reader = made(conf, clock, vendor), DeltaLog.for_table(NAME, conf, clock)
    before = len(vendor.given)
    for number in range(5):
        write_arrow(writer, {"id": [number], "p": ["p"]}, mode="append")
        assert reader.update().version == number + 1
        assert sorted(read_arrow(reader)["id"].to_pylist()) == list(range(number + 1))
        clock.advance(0.95 * HOUR / 1000)
    assert len(vendor.given) >= before + 5
