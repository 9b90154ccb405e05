"""Over a network a table opens in three round trips: hint, listing, and all the rest at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.log import checkpoint_reader as checkpoints
from lakelog.logstores import LocalLogStore, Scope
from lakelog.logstores.memory.client import StoredObject
from support.manual_clock import ManualClock
from support.memory_client import MemoryClient, MemoryClientStore

if TYPE_CHECKING:
    from lakelog.logstores import Capabilities

PATIENCE = 30
PARTS = "spark.databricks.delta.checkpoint.partSize"
FORMS = {
    "one file": {},
    "parts": {PARTS: "2"},
    "v2 below json": {
        PARTS: "2",
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": "json",
    },
    "v2 below parquet": {
        PARTS: "2",
        "spark.databricks.delta.checkpointV2.topLevelFileFormat": "parquet",
    },
}


class Waiting(MemoryClient):
    """Keeps what it is asked, and may answer only when enough is asked at once."""

    def __init__(self) -> None:
        super().__init__(known=True)
        self.together = 0
        """How many reads must have begun before the first one ends."""
        self._begun = threading.Condition()
        self._waiting = 0

    @property
    def asked(self) -> list[str]:
        """Names of files, and `list`."""
        found = (key.rpartition("/")[2] or request for request, key in self.requests)
        return ["list" if each == "page" else each for each in found]

    def get(self, key: str) -> bytes:
        data = super().get(key)
        if self.together and not key.endswith("_last_checkpoint"):
            with self._begun:
                self._waiting += 1
                self._begun.notify_all()
                assert self._begun.wait_for(lambda: self._waiting >= self.together, PATIENCE)
        return data


class WatchedStore(MemoryClientStore):
    """An object store whose file system says what is opened by ranges."""

    client: Waiting

    @property
    def filesystem(self) -> Any:
        return self

    def open_input_file(self, path: str) -> Any:
        name = path.rpartition("/")[2]
        self.client.requests.append(("ranges", f"ranges of {name}"))
        return pa.BufferReader(self.client.objects[path.removeprefix("bucket/")][0])


class LinesOnly(LocalLogStore):
    """A service whose `read_bytes` is the contract's own, by `read`: text, and nothing else."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exclusive_create=Scope.CLUSTER)

    def read_bytes(self, path: str) -> bytes:
        return "".join(f"{line}\n" for line in self.read(path)).encode()


def table_of(tmp_path: Path, form: str) -> str:
    table = str(tmp_path / "t")
    policy = "v2" if form.startswith("v2") else "classic"
    for number in range(13):
        write_arrow(
            table,
            {"id": [number]},
            mode="append",
            conf=FORMS[form],
            properties={"delta.checkpointPolicy": policy} if number == 0 else None,
        )
    return table


def far_log(table: str) -> tuple[DeltaLog, Waiting]:
    """The log of a copy of a local table on an object store."""
    client = Waiting()
    for path in Path(table, "_delta_log").rglob("*"):
        if path.is_file():
            name = f"t/{path.relative_to(table).as_posix()}"
            client.objects[name] = StoredObject(path.read_bytes(), None)
    store = WatchedStore(client)
    return DeltaLog("mem://bucket/t", store, DeltaConf.from_mapping(None), ManualClock()), client


@pytest.mark.parametrize("form", FORMS)
def test_every_file_of_the_log_is_asked_for_once_and_as_a_whole(tmp_path: Path, form: str) -> None:
    log, store = far_log(table_of(tmp_path, form))
    assert log.snapshot.num_files == 13
    assert store.asked[:2] == ["_last_checkpoint", "list"]
    assert len(set(store.asked)) == len(store.asked), store.asked
    assert not [each for each in store.asked if each.startswith("ranges")]
    assert sum(each.endswith(".json") and ".checkpoint." not in each for each in store.asked) == 2


def test_the_checkpoint_and_the_commits_are_waited_for_at_once(tmp_path: Path) -> None:
    log, store = far_log(table_of(tmp_path, "one file"))
    store.together = 3
    assert log.snapshot.version == 12
    assert len(store.asked) == 5


@pytest.mark.parametrize("form", ["parts", "v2 below json", "v2 below parquet"])
def test_all_parts_are_waited_for_at_once(tmp_path: Path, form: str) -> None:
    log, store = far_log(table_of(tmp_path, form))
    first = log.snapshot if form.startswith("v2") else None
    before = len(store.asked)
    store.together = 6
    assert (first or log.snapshot).num_files == 13
    assert len(store.asked) - before >= 6


def test_what_was_fetched_is_not_kept_beside_the_rows_made_of_it(tmp_path: Path) -> None:
    log, client = far_log(table_of(tmp_path, "one file"))
    reader = checkpoints.CheckpointReader(log.store, log.snapshot.state.segment)
    before = len(client.asked)
    reader.small_actions()
    assert reader.files().num_rows == 11
    assert reader._fetched == {}
    assert len(client.asked) == before + 1
    assert reader.tombstones().num_rows == 0
    assert len(client.asked) == before + 2, "few ask for the tombstones: it is another request"


def test_a_large_checkpoint_is_read_by_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, store = far_log(table_of(tmp_path, "one file"))
    monkeypatch.setattr(checkpoints, "_WHOLE", 100)
    assert log.snapshot.num_files == 13
    assert [each for each in store.asked if each.startswith("ranges")]
    assert not [each for each in store.asked if each.endswith("10.checkpoint.parquet")][2:]


def test_parts_that_travel_have_no_bytes_with_them(tmp_path: Path) -> None:
    log, _ = far_log(table_of(tmp_path, "parts"))
    reader = checkpoints.CheckpointReader(log.store, log.snapshot.state.segment)
    reader.small_actions()
    assert [each.data for each in reader.parts()] == [None] * 6


@pytest.mark.parametrize("form", FORMS)
def test_a_damaged_checkpoint_that_was_fetched_is_replaced_by_the_commits(
    tmp_path: Path, form: str
) -> None:
    table = table_of(tmp_path, form)
    for path in (tmp_path / "t" / "_delta_log").glob("*.checkpoint*"):
        path.write_bytes(path.read_bytes()[:-20])
    log, _ = far_log(table)
    assert log.snapshot.num_files == 13


def test_a_checkpoint_that_vanishes_is_an_error_about_it(tmp_path: Path) -> None:
    log, client = far_log(table_of(tmp_path, "one file"))
    reader = checkpoints.CheckpointReader(log.store, log.snapshot.state.segment)
    (key,) = (each for each in client.objects if each.endswith(".checkpoint.parquet"))
    del client.objects[key]
    with pytest.raises(CorruptCheckpointError, match=r"reading .*checkpoint.parquet failed"):
        reader.small_actions()


@pytest.mark.parametrize("form", FORMS)
def test_a_service_that_only_promises_lines_is_not_asked_for_bytes(
    tmp_path: Path, form: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = table_of(tmp_path, form)
    log = DeltaLog(table, LinesOnly({}), DeltaConf.from_mapping(None), ManualClock())
    assert log.snapshot.num_files == 13
    assert not [each for each in caplog.records if each.levelname == "WARNING"]
