"""A process that uses a store, forks, and uses it on both sides."""

from __future__ import annotations

import os
import signal
import threading
import traceback
import warnings
from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.expect import names, read_all

if TYPE_CHECKING:
    from lakelog.logstores.conformance.processes.children import Channel
    from lakelog.logstores.contract import LogStore

PATIENCE = 60.0
"""Seconds after which a forked child counts as hanging."""


def fork_and_use(store: LogStore, channel: Channel, folder: str) -> None:
    """Write 0.json, fork, write 1.json in the child and 2.json in the parent. Says "fine"."""
    store.create_folder(folder)
    store.write(folder + "/0.json", ["0.json"])
    read_all(store, folder + "/0.json")
    names(store, folder + "/")
    # Python says that forking with threads is dangerous; whether it is, is what is asked here.
    warnings.simplefilter("ignore", DeprecationWarning)
    child = os.fork()
    if not child:
        os._exit(_use(store, folder, "1.json"))
    status = _ended(child)
    if status is None:
        channel.answer(f"the forked child hung for {PATIENCE:g} s")
    elif status:
        channel.answer("the forked child failed; its error output is above")
    else:
        failed = _use(store, folder, "2.json")
        channel.answer("the parent failed after the fork" if failed else "fine")


def _use(store: LogStore, folder: str, name: str) -> int:
    try:
        if read_all(store, folder + "/0.json") != ["0.json"]:
            return 2
        store.write(f"{folder}/{name}", [name])
        if read_all(store, f"{folder}/{name}") != [name] or name not in names(store, folder + "/"):
            return 3
    except BaseException:  # noqa: BLE001, RUF100  # a forked child must not run on
        traceback.print_exc()
        return 1
    return 0


def _ended(child: int) -> int | None:
    """The child's exit status; `None` for one that had to be killed."""
    hung = threading.Event()

    def kill() -> None:
        hung.set()
        os.kill(child, signal.SIGKILL)

    watchdog = threading.Timer(PATIENCE, kill)
    watchdog.start()
    _, status = os.waitpid(child, 0)
    watchdog.cancel()
    watchdog.join()
    return None if hung.is_set() else status
