"""Ways in which other clients lost data, where no other test of ours would have caught them.

`docs/known-issues-elsewhere.md` has the whole list.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.clock import SystemClock
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import LogGapError
from lakelog.core.log.file_names import commit_name
from lakelog.core.log.last_checkpoint import (
    LastCheckpoint,
    read_last_checkpoint,
    write_last_checkpoint,
)
from lakelog.logstores import LocalLogStore
from support.log_histories import whole_state
from support.raw_log import RawLog, add
from support.samples import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.logstores.contract import FileStatus


class Forgetful(LocalLogStore):
    """A store whose listings leave out one file for a while, as bad caches do."""

    hidden: str | None = None

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return (each for each in super().list_from(path) if each.name != self.hidden)


@pytest.mark.parametrize("hidden", range(12))
def test_a_commit_that_a_listing_left_out_is_never_skipped(tmp_path: Path, hidden: int) -> None:
    log = RawLog(tmp_path / "t").create(add("f0"))
    for version in range(1, 12):
        log.commit(add(f"f{version}"))
    whole = whole_state(DeltaLog.for_table(log.table).snapshot)
    store = Forgetful()
    store.hidden = commit_name(hidden)
    opened = DeltaLog(log.table, store, DeltaConf.from_mapping(None), SystemClock())
    if hidden == 11:
        # A listing that ends early shows an older table. It is whole, and `update` goes on.
        assert opened.update().version == 10
    else:
        with pytest.raises(LogGapError) as caught:
            opened.update()
        assert caught.value.fields["missing"] == [hidden]
    store.hidden = None
    assert whole_state(opened.update()) == whole


@pytest.mark.parametrize("hidden", range(2, 14))
def test_an_update_never_steps_over_a_commit_that_a_listing_left_out(
    tmp_path: Path, hidden: int
) -> None:
    log = RawLog(tmp_path / "t").create(add("f0")).commit(add("f1"))
    store = Forgetful()
    opened = DeltaLog(log.table, store, DeltaConf.from_mapping(None), SystemClock())
    assert opened.update().version == 1
    for version in range(2, 14):
        log.commit(add(f"f{version}"))
    store.hidden = commit_name(hidden)
    with contextlib.suppress(LogGapError):
        seen = opened.update()
        files = set(seen.file_table["path"].to_pylist())
        assert files == {f"f{version}" for version in range(seen.version + 1)}
    store.hidden = None
    assert opened.update().num_files == 14


def test_writers_and_readers_of_the_hint_at_once_see_it_whole_or_not_at_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = RawLog(tmp_path / "t").create()
    store, over = LocalLogStore(), threading.Event()
    seen: list[int] = []

    def write(first: int) -> None:
        for version in range(first, first + 120, 2):
            hint = LastCheckpoint(version=version, size=1, num_of_add_files=version)
            write_last_checkpoint(store, log.table, hint)

    def read() -> None:
        while not over.is_set():
            hint = read_last_checkpoint(store, log.table)
            if hint is not None:
                assert hint.num_of_add_files == hint.version
                seen.append(hint.version)

    threads = [threading.Thread(target=write, args=(first,)) for first in (1, 2)]
    reader = threading.Thread(target=read)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    over.set()
    reader.join()
    last = read_last_checkpoint(store, log.table)
    assert last is not None
    # The one that came last may be the older of the two, and never older than both were then.
    assert last.version in (119, 120)
    # A hint that was torn, or whose checksum failed, is logged.
    assert "hint" not in caplog.text
    assert seen


def test_a_table_made_again_in_the_same_instant_and_of_the_same_size_is_noticed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "t"
    write_arrow(path, numbers(0), mode="append")
    log = DeltaLog.for_table(path)
    assert log.update().version == 0
    commit = path / "_delta_log" / commit_name(0)
    before = commit.stat()
    shutil.rmtree(path)
    write_arrow(path, numbers(5), mode="append")
    size = len(commit.read_bytes())
    text = commit.read_text().rstrip("\n")
    if size < before.st_size:
        commit.write_text(text + " " * (before.st_size - size) + "\n")
    os.utime(commit, ns=(before.st_mtime_ns, before.st_mtime_ns))
    assert sorted(log.update().to_arrow()["id"].to_pylist()) == [5, 6, 7, 8, 9]


def test_a_snapshot_has_all_of_its_files_or_none_so_no_checkpoint_lacks_some(
    tmp_path: Path,
) -> None:
    """No call gives a snapshot of some files, or of none: a checkpoint of part can't be had."""
    log = RawLog(tmp_path / "t").create(*(add(f"f{i}") for i in range(5)))
    opened = DeltaLog.for_table(log.table)
    # Looked at only by its metadata, and by some of its files.
    assert opened.snapshot.metadata.id
    assert len(opened.snapshot.files("a = 1")) == 5
    opened.checkpoint()
    log.path(0).unlink()
    assert DeltaLog.for_table(log.table).snapshot.num_files == 5
