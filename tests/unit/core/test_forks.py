"""A forked child goes on with what its parent has open, whatever its parent's threads are at."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.transaction import open_transactions

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the machine has no fork")


def status_of_child(run: Callable[[], int]) -> int:
    pid = os.fork()
    if not pid:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        try:
            os._exit(run())
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize(
    ("inside", "work"),
    [
        ("lakelog.core.table_log.read_news", lambda log: log.update()),
        ("lakelog.core.state.file_state.reconciled", lambda log: log.snapshot.num_files),
    ],
)
def test_a_child_does_not_wait_for_a_thread_that_it_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str, work: Callable[[DeltaLog], Any]
) -> None:
    uri = str(tmp_path / "t")
    for number in range(2):
        write_arrow(uri, {"a": [number]}, mode="append")
    log = DeltaLog.for_table(uri)
    assert log.snapshot.version == 1
    reached, forked = threading.Event(), threading.Event()
    module, name = inside.rsplit(".", 1)
    whole = getattr(__import__(module, fromlist=[name]), name)

    def held(*args: Any, **options: Any) -> Any:
        if threading.current_thread() is thread:
            reached.set()
            forked.wait()
        return whole(*args, **options)

    monkeypatch.setattr(inside, held)
    thread = threading.Thread(target=work, args=(log,))
    thread.start()
    reached.wait()
    try:
        assert status_of_child(lambda: 40 + log.update().num_files) == 42
    finally:
        forked.set()
        thread.join()


def test_a_child_may_begin_transactions_while_a_thread_did(tmp_path: Path) -> None:
    log = DeltaLog.for_table(str(tmp_path / "t"))
    with open_transactions._lock:
        assert status_of_child(lambda: 40 + log.start_transaction().reads.version) == 39
