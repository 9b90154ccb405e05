"""Over a network a table opens in three round trips: hint, listing, and all the rest at once."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.log import checkpoint as checkpoints
from lakelog.logstores import LocalLogStore, Scope
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.logstores import Capabilities, FileStatus

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


class FarLogStore(LocalLogStore):
    """A disk that passes for a service, and keeps what it is asked."""

    def __init__(self, conf: dict[str, str] | None = None) -> None:
        super().__init__(conf)
        self.asked: list[str] = []
        self.together = 0
        """How many reads of files of versions must have begun before the first one ends."""
        self._begun = threading.Condition()
        self._waiting = 0

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exclusive_create=Scope.CLUSTER)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        self.asked.append("list")
        return super().list_from(path)

    def read(self, path: str) -> Iterator[str]:
        self.asked.append(path.rpartition("/")[2])
        return super().read(path)

    def read_bytes(self, path: str) -> bytes:
        name = path.rpartition("/")[2]
        self.asked.append(name)
        if self.together:
            with self._begun:
                self._waiting += 1
                self._begun.notify_all()
                assert self._begun.wait_for(lambda: self._waiting >= self.together, PATIENCE)
        return super().read_bytes(path)

    @property
    def filesystem(self) -> Any:
        return Watched(super().filesystem, self.asked)


class Watched:
    """A file system that says what is opened by ranges."""

    def __init__(self, inner: Any, asked: list[str]) -> None:
        self.inner = inner
        self.asked = asked

    def open_input_file(self, path: str) -> Any:
        self.asked.append(f"ranges of {path.rpartition('/')[2]}")
        return self.inner.open_input_file(path)


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


def far_log(table: str) -> tuple[DeltaLog, FarLogStore]:
    store = FarLogStore()
    return DeltaLog(table, store, DeltaConf.from_mapping(None), ManualClock()), store


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
    known = log.snapshot
    assert known.state.segment.checkpoint is not None
    log, store = far_log(log.table)
    first = log.snapshot if form.startswith("v2") else None
    before = len(store.asked)
    store.together = 6
    assert (first or log.snapshot).num_files == 13
    assert len(store.asked) - before >= 6


def test_what_was_fetched_is_not_kept_beside_the_rows_made_of_it(tmp_path: Path) -> None:
    log, _ = far_log(table_of(tmp_path, "one file"))
    segment = log.snapshot.state.segment
    store = FarLogStore()
    reader = checkpoints.CheckpointReader(store, segment)
    reader.small_actions()
    assert reader.files().num_rows == 11
    assert reader.tombstones().num_rows == 0
    assert reader._fetched == {}
    assert len(store.asked) == 2, "the tombstones, which few ask for, are another request"


def test_a_large_checkpoint_is_read_by_ranges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, store = far_log(table_of(tmp_path, "one file"))
    monkeypatch.setattr(checkpoints, "_WHOLE", 100)
    assert log.snapshot.num_files == 13
    assert [each for each in store.asked if each.startswith("ranges")]
    assert not [each for each in store.asked if each.endswith("10.checkpoint.parquet")][2:]


def test_parts_that_travel_have_no_bytes_with_them(tmp_path: Path) -> None:
    log, store = far_log(table_of(tmp_path, "parts"))
    reader = checkpoints.CheckpointReader(store, log.snapshot.state.segment)
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
    table = table_of(tmp_path, "one file")
    log, store = far_log(table)
    segment = log.snapshot.state.segment
    reader = checkpoints.CheckpointReader(store, segment)
    (path,) = (tmp_path / "t" / "_delta_log").glob("*.checkpoint.parquet")
    path.unlink()
    with pytest.raises(CorruptCheckpointError, match=r"reading .*checkpoint.parquet failed"):
        reader.small_actions()
