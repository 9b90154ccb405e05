"""A snapshot that waits for its storage holds up no other one."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.state.snapshot import Snapshot
from support.faults import FaultyLogStore
from support.manual_clock import ManualClock
from support.tables import new_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.logstores import FileStatus

PATIENCE = 30


class Slow(FaultyLogStore):
    """Answers no listing until it may."""

    def hold(self) -> None:
        self.asked, self.may = threading.Event(), threading.Event()

    def list_from(self, path: str) -> Iterator[FileStatus]:
        if hasattr(self, "may"):
            self.asked.set()
            assert self.may.wait(PATIENCE)
        return super().list_from(path)


def test_the_time_of_one_table_does_not_wait_for_that_of_another(tmp_path: Path) -> None:
    inner = new_table(str(tmp_path / "slow"))
    store = Slow(inner.store)
    log = DeltaLog(inner.table, store, DeltaConf.from_mapping(None), ManualClock())
    first = log.snapshot
    # A version that was found without a listing does not know its time.
    state = replace(first.state, timestamp=None)
    slow = Snapshot(log.table, store, log.conf, log.clock, state)
    store.hold()
    waiting = threading.Thread(target=lambda: slow.timestamp)
    waiting.start()
    assert store.asked.wait(PATIENCE)
    times: list[int] = []
    other = new_table(str(tmp_path / "other")).update()
    quick = threading.Thread(target=lambda: times.append(other.timestamp), daemon=True)
    quick.start()
    quick.join(PATIENCE)
    held_up = not times
    store.may.set()
    waiting.join(PATIENCE)
    assert not held_up
