"""Several threads that commit through one log while a first one holds the turn."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from unittest import mock

from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.transaction.group import CommitGroups
from lakelog.logstores import Capabilities, Scope
from support.faults import FaultyLogStore
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.transaction.group import Member

_PATIENCE = 60.0
GROUP = {"spark.lakelog.commit.group": "true"}


class _ObjectStore(FaultyLogStore):
    """As on an object store, the create decides, and nobody takes a lock."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(self.inner.capabilities, exclusive_create=Scope.CLUSTER)


def grouping_log(log: DeltaLog, conf: dict[str, str] | None = None) -> DeltaLog:
    """The log of the same table on a store with faults, with group commit on."""
    store = _ObjectStore(log.store)
    settings = DeltaConf.from_mapping(GROUP if conf is None else conf)
    return DeltaLog(log.table, store, settings, ManualClock())


def in_one_turn(
    log: DeltaLog,
    first: Callable[[], Any],
    others: Sequence[Callable[[], Any]],
    meanwhile: Callable[[], object] | None = None,
) -> list[Any]:
    """Let one writer begin to write its commit, and all others wait until it is done.

    Args:
        log: of `grouping_log`.
        first: commits alone.
        others: each of them gets in line, in this order, while the first one writes.
        meanwhile: done while they wait, before the first one goes on.

    Returns:
        What each returned or raised, the first one's first.
    """
    store = log.store
    assert isinstance(store, FaultyLogStore)
    found: list[Any] = [None] * (1 + len(others))
    entered = threading.Semaphore(0)
    threads = [
        threading.Thread(target=_run, args=(found, place, work), daemon=True)
        for place, work in enumerate(others, 1)
    ]
    enter = CommitGroups.enter

    def entering(self: CommitGroups, member: Member) -> None:
        enter(self, member)
        entered.release()

    def hold(_path: str) -> None:
        store.before_write = None
        assert entered.acquire(timeout=_PATIENCE)  # the first one's own
        for thread in threads:
            thread.start()
            assert entered.acquire(timeout=_PATIENCE)
        if meanwhile is not None:
            meanwhile()

    store.before_write = hold
    with mock.patch.object(CommitGroups, "enter", entering):
        _run(found, 0, first)
        for thread in threads:
            thread.join(_PATIENCE)
            assert not thread.is_alive(), "a writer waits for a turn that never comes"
    return found


def _run(found: list[Any], place: int, work: Callable[[], Any]) -> None:
    try:
        found[place] = work()
    except BaseException as exc:
        found[place] = exc
