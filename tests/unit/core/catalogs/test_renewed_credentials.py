"""Credentials that end are asked for again: before they do, in the middle of a write too."""

from __future__ import annotations

import pickle
import time
import uuid
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.fs as pafs
import pytest

from lakelog.core import DeltaConf, DeltaLog, create_table, read_arrow, write_arrow
from lakelog.core.catalogs import resolution
from lakelog.core.catalogs.contract import CatalogTable, Credentials
from lakelog.core.catalogs.names import TableName
from lakelog.core.catalogs.renewed_files import (
    SentFiles,
    _RenewedFiles,
    ended_credentials,
    renewed_filesystem,
)
from lakelog.core.catalogs.unity.credentials import conf_of
from lakelog.core.commit.lock import lock_for
from lakelog.core.errors import CatalogError
from lakelog.core.hooks.background import wait_for_all
from lakelog.core.portable import hive_writer
from lakelog.logstores import Scope, UnsafeLogStoreError
from support.guarded_store import KEY, GuardedStore
from support.manual_clock import ManualClock
from support.model_catalog import CONF, ModelCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.core.catalogs.contract import StagedTable

NAME = "model.s.t"
GUARDED = {
    "spark.lakelog.catalog.model.class": CONF["spark.lakelog.catalog.model.class"],
    "spark.delta.logStore.memory.impl": "support.guarded_store.GuardedStore",
}
HOUR = 3_600_000
"""Milliseconds."""


class Vendor:
    """Gives a key an hour; the one before ends with it."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.given = 0

    def __call__(
        self, catalog: object, table: CatalogTable | StagedTable, *, write: bool
    ) -> Credentials:
        self.given += 1
        GuardedStore.valid = f"key-{self.given}"
        ends = self.clock.now_ms() + HOUR
        return Credentials(conf={KEY: GuardedStore.valid}, ends_at_ms=ends)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def vendor(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Vendor]:
    ModelCatalog.reset()
    GuardedStore.refused.clear()
    made = Vendor(clock)
    monkeypatch.setattr(ModelCatalog, "credentials", lambda *a, **k: made(*a, **k))
    yield made
    assert wait_for_all(60)
    ModelCatalog.reset()


def sent(ends_at_ms: int | None = None) -> SentFiles:
    return SentFiles(pafs.LocalFileSystem(), ends_at_ms, NAME, "model")


def table(clock: ManualClock) -> DeltaLog:
    create_table(NAME, "id bigint, p string", partition_by="p", conf=GUARDED)
    assert wait_for_all(60)
    resolution._vended.clear()  # what was asked for by another clock
    return DeltaLog.for_table(NAME, GUARDED, clock)


def test_a_long_write_goes_on_with_new_credentials(vendor: Vendor, clock: ManualClock) -> None:
    log = table(clock)
    before = vendor.given

    many = 1 << 17  # so that each batch is written before the next one is read

    def rows() -> Iterator[pa.RecordBatch]:
        for number in range(4):
            yield pa.record_batch({"id": range(many), "p": [f"p{number}"] * many})
            clock.advance(0.95 * HOUR / 1000)
            GuardedStore.valid = "none, until a new one is asked for"

    write_arrow(log, rows(), mode="append")
    assert vendor.given >= before + 2
    assert GuardedStore.refused == []
    assert read_arrow(log, columns=["id"]).num_rows == 4 * many


def test_a_table_that_the_catalog_does_not_govern_gets_new_ones_too(
    vendor: Vendor, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, name = f"memory://{uuid.uuid4()}/t", TableName("model", "s", "outside")
    write_arrow(location, {"id": [1]})
    ModelCatalog.tables[name] = CatalogTable(
        name=name, table_id="o", location=location, is_governed=False, latest=-1
    )
    log = DeltaLog.for_table(str(name), GUARDED, clock)
    assert log.update().version == 0
    given = vendor.given
    clock.advance(0.95 * HOUR / 1000)
    GuardedStore.valid = "none, until a new one is asked for"
    assert write_arrow(log, {"id": [2]}, mode="append") == 1
    assert read_arrow(log)["id"].num_chunks
    assert vendor.given == given + 1
    assert GuardedStore.refused == []
    sent = pickle.loads(pickle.dumps(log.store))
    assert type(sent) is GuardedStore
    nobody = replace(log.store.capabilities, exclusive_create=Scope.NONE)
    monkeypatch.setattr(GuardedStore, "capabilities", nobody)
    with pytest.raises(UnsafeLogStoreError, match="GuardedStore"):
        lock_for(log.store, log.table)


def test_opening_again_asks_for_none_while_they_live(vendor: Vendor, clock: ManualClock) -> None:
    log = table(clock)
    log.update()
    given = vendor.given
    for _ in range(3):
        DeltaLog.for_table(NAME, GUARDED, clock).update()
    assert vendor.given == given
    clock.advance(0.95 * HOUR / 1000)
    log.update()
    DeltaLog.for_table(NAME, GUARDED, clock).update()
    assert vendor.given == given + 1


def test_credentials_for_reading_are_soon_asked_for_again(
    clock: ManualClock, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = table(clock)
    resolution._vended.clear()
    asked: list[bool] = []

    def passing(*given: Any, write: bool, **_: Any) -> Credentials:
        asked.append(write)
        if asked == [True]:
            raise CatalogError("the catalog is busy")
        return vendor(*given, write=write)

    monkeypatch.setattr(ModelCatalog, "credentials", passing)
    log = DeltaLog.for_table(NAME, GUARDED, clock)
    assert log.update().version == 0
    DeltaLog.for_table(NAME, GUARDED, clock).update()
    assert asked == [True, False]
    clock.advance(61)
    assert write_arrow(log, {"id": [1], "p": ["a"]}, mode="append") == 1
    assert asked == [True, False, True]


@pytest.mark.parametrize("reads", [False, True])
def test_a_catalog_that_is_down_when_credentials_are_due_ends_nothing(
    clock: ManualClock, vendor: Vendor, monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    """Whether it gives nothing, or but those for reading, the ones of before hold a while yet."""
    log = table(clock)
    log.update()
    asked: list[bool] = []

    def down(*given: Any, write: bool, **_: Any) -> Credentials:
        asked.append(write)
        if write or not reads:
            raise CatalogError("the catalog is busy")
        return Credentials(conf={KEY: "for reading"})

    clock.advance(0.95 * HOUR / 1000)
    monkeypatch.setattr(ModelCatalog, "credentials", down)
    assert write_arrow(log, {"id": [1], "p": ["a"]}, mode="append") == 1
    assert wait_for_all(60)
    assert asked == [True]
    clock.advance(61)
    monkeypatch.setattr(ModelCatalog, "credentials", lambda *a, **k: vendor(*a, **k))
    given = vendor.given
    assert write_arrow(log, {"id": [2], "p": ["a"]}, mode="append") == 2
    assert vendor.given == given + 1
    assert GuardedStore.refused == []


def test_a_catalog_with_another_clock_is_asked_once_a_minute(
    clock: ManualClock, vendor: Vendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = table(clock)
    real = vendor.__call__

    def hours_ago(*given: Any, **asked: Any) -> Credentials:
        found = real(*given, **asked)
        assert found.ends_at_ms is not None
        return Credentials(conf=found.conf, ends_at_ms=found.ends_at_ms - 5 * HOUR)

    monkeypatch.setattr(ModelCatalog, "credentials", hours_ago)
    given = vendor.given
    for each in range(3):
        write_arrow(log, {"id": [each], "p": ["a"]}, mode="append")
        assert wait_for_all(60)
    assert vendor.given == given + 1
    clock.advance(61)
    assert read_arrow(log, columns=["id"]).num_rows == 3
    assert vendor.given == given + 2


def test_the_first_file_after_a_renewal_has_the_buckets_keys(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3")
    config = {"s3.access-key-id": "AK", "s3.secret-access-key": "SK", "s3.session-token": "ST"}
    vended = conf_of([{"prefix": "s3://b", "config": config}], "s3://b/t", "lake")
    monkeypatch.setattr(ModelCatalog, "credentials", lambda *_, **__: vended)
    conf = DeltaConf({**GUARDED, "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1"})
    catalog = resolution.catalog_for("model", conf)
    name = TableName("model", "s", "t")
    table = CatalogTable(name=name, table_id="i", location="s3://b/t", is_governed=True, latest=0)
    storage = resolution._Storage(catalog, table, "s3://b/t", conf, clock)
    # Nothing of the log was asked for by this store.
    opened = storage().filesystem
    assert "AK" in str(opened.__reduce__())
    resolution._vended.clear()


@pytest.mark.parametrize("kind", ["s3", "py::gcs", "abfs"])
def test_a_storage_without_folders_is_known_behind_the_renewal(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    monkeypatch.setattr(hive_writer, "make_folder", lambda *given: made.append(given[-1]))
    monkeypatch.setattr(_RenewedFiles, "get_type_name", lambda _: f"renewed {kind}")
    filesystem = renewed_filesystem(pafs.LocalFileSystem, sent)
    assert filesystem.type_name == f"py::renewed {kind}"
    writer = SimpleNamespace(_folders=set(), _filesystem=filesystem, _plan=None)
    hive_writer.PartitionedWriter._make_folder(cast("Any", writer), "p=1")
    assert made == []


def test_the_file_system_is_another_one_at_each_call(tmp_path: Path) -> None:
    local, asked = pafs.LocalFileSystem(), list[int]()

    def current() -> Any:
        asked.append(1)
        return local

    filesystem = renewed_filesystem(current, sent)
    a, b, c = (str(tmp_path / each) for each in ("d/a", "d/b", "d/c"))
    filesystem.create_dir(str(tmp_path / "d"))
    with filesystem.open_output_stream(a) as sink:
        sink.write(b"x")
    filesystem.copy_file(a, b)
    filesystem.move(b, c)
    with filesystem.open_input_stream(c) as source:
        assert source.read() == b"x"
    with filesystem.open_input_file(a) as source:
        assert source.size() == 1
    with filesystem.open_append_stream(a) as sink:
        sink.write(b"y")
    assert filesystem.get_file_info(a).size == 2
    assert len(filesystem.get_file_info(pafs.FileSelector(str(tmp_path / "d")))) == 2
    assert filesystem.normalize_path(a) == a
    filesystem.delete_file(a)
    filesystem.delete_dir_contents(str(tmp_path / "d"))
    filesystem.delete_dir(str(tmp_path / "d"))
    assert filesystem.type_name == "py::renewed local"
    assert len(asked) >= 12
    assert filesystem == renewed_filesystem(current, sent)
    with pytest.raises(PermissionError):
        filesystem.handler.delete_root_dir_contents()


def test_elsewhere_it_is_that_of_now(tmp_path: Path) -> None:
    filesystem = renewed_filesystem(pafs.LocalFileSystem, sent)
    there = pickle.loads(pickle.dumps(filesystem))
    with there.open_output_stream(str(tmp_path / "a")) as sink:
        sink.write(b"x")
    assert (tmp_path / "a").read_bytes() == b"x"


def test_what_ended_elsewhere_is_said_with_the_way_out(tmp_path: Path) -> None:
    now = time.time_ns() // 1_000_000
    failed, missing = OSError("AWS Error ACCESS_DENIED"), FileNotFoundError("no such file")
    expired = OSError("AWS Error: ExpiredToken")
    for ends, said, is_named in (
        (now - 1, failed, True),
        (now - 1, missing, False),
        (now + HOUR, failed, False),
        (now + HOUR, expired, True),
        (None, expired, False),
    ):
        there = pickle.loads(
            pickle.dumps(renewed_filesystem(pafs.LocalFileSystem, partial(sent, ends)))
        )
        found = ended_credentials(said)
        assert (found is not None) == is_named, (ends, said)
        if found is not None:
            for part in (NAME, "Run it again", "spark.lakelog.catalog.model.credentials = own"):
                assert part in str(found)
            assert ended_credentials(found) is None
        del there
        assert ended_credentials(said) is None


def test_a_job_elsewhere_gets_young_credentials(vendor: Vendor, clock: ManualClock) -> None:
    log = table(clock)
    log.update()

    def given_to_a_job() -> int:
        pickle.dumps(log.store.filesystem)
        return vendor.given

    given = given_to_a_job()
    clock.advance(0.09 * HOUR / 1000)
    assert given_to_a_job() == given
    clock.advance(0.02 * HOUR / 1000)
    assert given_to_a_job() == given + 1
    log.update()
    assert vendor.given == given + 1
    assert GuardedStore.refused == []


def test_a_wall_clock_that_is_set_back_renews_nothing_late(
    vendor: Vendor, clock: ManualClock
) -> None:
    log = table(clock)
    log.update()
    given = vendor.given
    clock.advance(0.95 * HOUR / 1000)
    clock._now_ms -= HOUR
    log.update()
    assert vendor.given == given + 1
