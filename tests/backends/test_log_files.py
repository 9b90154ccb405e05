"""V2 checkpoints, checksums and log cleanup on each storage."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.actions.operation import Operation
from lakelog.core.clock import SystemClock
from lakelog.core.hooks.background import wait_for_all
from support.backends import backend_of
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from lakelog.logstores import LogStore

MOST_TRIES = 200
DAYS = 40 * 86_400_000
CHECKSUMS = "spark.databricks.delta.writeChecksumFile.enabled"
PROPERTIES = {
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "2",
    "delta.enableExpiredLogCleanup": "false",
}


def names(store: LogStore, folder: str) -> list[str]:
    return [each.name for each in store.list_from(f"{folder}/0") if not each.is_directory]


def is_later_than_the_one_before(store: LogStore, folder: str, version: int) -> bool:
    start = f"{folder}/{version - 1:020d}.json"
    commits = [each for each in store.list_from(start) if each.name.endswith(".json")]
    times = {
        int(each.name[:20]): each.modification_time for each in commits if len(each.name) == 25
    }
    # Cleanup may have taken the one before, which it does to none whose time is moved.
    return times[version] > times.get(version - 1, 0)


@pytest.mark.one_day_in(5, 4)
@pytest.mark.parametrize("name", ["minio", "minio and DynamoDB", "azurite", "fake GCS", "HDFS"])
def test_a_log_is_checkpointed_and_cleaned_up(name: str, request: pytest.FixtureRequest) -> None:
    backend = backend_of(name, request)
    table = backend.uri("cleaned")
    conf = {**backend.conf, CHECKSUMS: "true"}
    for start in range(5):
        properties = PROPERTIES if start == 0 else None
        write_arrow(
            table, pa.table({"id": [start]}), conf=conf, properties=properties, mode="append"
        )
    assert wait_for_all()
    log = DeltaLog.for_table(table, conf)
    folder = f"{table}/_delta_log"
    assert [n for n in names(log.store, folder) if n.endswith(".crc")] == [
        f"{version:020d}.crc" for version in range(5)
    ]
    sidecars = names(log.store, f"{folder}/_sidecars")
    assert [int(each[:20]) for each in sidecars] == [2, 4]
    later = DeltaLog.for_table(table, conf, ManualClock(SystemClock().now_ms() + DAYS))
    on = {**later.snapshot.metadata.configuration, "delta.enableExpiredLogCleanup": "true"}
    # A boundary's time must be its own, and some storages count in seconds only.
    last = -1
    for number in range(MOST_TRIES):
        txn = later.start_transaction()
        assert txn.snapshot is not None
        metadata = replace(txn.snapshot.metadata, configuration=on, description=str(number))
        last = txn.commit([metadata], Operation(name="SET TBLPROPERTIES"))
        if is_later_than_the_one_before(later.store, folder, last):
            break
    assert wait_for_all()
    later.checkpoint()
    left = names(later.store, folder)
    assert {int(each[:20]) for each in left if each[:20].isdigit()} == {last}
    kept = names(later.store, f"{folder}/_sidecars")
    assert {int(each[:20]) for each in kept} == {last}
    fresh = DeltaLog.for_table(table, conf).snapshot
    assert sorted(fresh.to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4]
