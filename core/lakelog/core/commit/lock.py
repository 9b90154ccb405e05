"""The commit lock: which one a store needs, and why.

A store whose exclusive create has one winner on every host, and shows nothing half-written,
needs no lock: the create itself decides. Where it guarantees less, a lock of the process or of the
host makes up for it, and where it guarantees nothing the commit is refused unless the user
declares that there is only one writer.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.conf import DeltaConf
from lakelog.core.log.file_names import log_path
from lakelog.logstores import Scope
from lakelog.logstores import keys as store_keys
from lakelog.logstores.contract import behind
from lakelog.logstores.errors import UnsafeLogStoreError
from lakelog.logstores.locks import DEFAULT_TIMEOUT, host_lock, process_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakelog.logstores import Capabilities, LogStore

COMMIT_LOCK_KEY = keys.COMMIT_LOCK.name
"""Delta's own setting; unset means: as the store needs."""

SINGLE_WRITER_KEY = store_keys.SINGLE_WRITER.name
"""The user's word that no second process ever writes to the table."""


class LockKind(enum.StrEnum):
    """What is held while a commit is tried."""

    NONE = "none"
    PROCESS = "process"
    """Excludes the threads of this process."""
    HOST = "host"
    """Excludes the processes of this host."""


@dataclass(frozen=True, slots=True)
class LockChoice:
    """The lock that commits to a table take, and the reason for it."""

    kind: LockKind
    reason: str


def choose_lock(
    capabilities: Capabilities,
    partial_write_visible: bool,
    conf: Mapping[str, str] | None = None,
    *,
    store: str = "the store",
) -> LockChoice:
    """Choose the commit lock from what the store declares and what the conf says.

    Args:
        capabilities: the store's.
        partial_write_visible: `store.is_partial_write_visible` of the table's log.
        conf: the user's conf.
        store: the store's name, for the messages.

    Raises:
        UnsafeLogStoreError: the store can't exclude other writers and
            `spark.lakelog.unsafe.singleWriter` is not set.
        DeltaAnalysisError: a conf that is neither true nor false.
    """
    conf = DeltaConf.from_mapping(conf)
    scope = capabilities.exclusive_create
    enabled = conf.read(keys.COMMIT_LOCK)
    # Before the conf that turns the lock off: without an exclusive create a lock of this host is
    # all there is, and it does not hold writers elsewhere.
    if scope == Scope.NONE and not conf.read(store_keys.SINGLE_WRITER):
        raise UnsafeLogStoreError(
            f"{store} can't create a file exclusively, so two writers may overwrite each other's "
            "commits. Use a store that can (see spark.delta.logStore.<scheme>.impl), or, if no "
            f"second process ever writes to the table, set {SINGLE_WRITER_KEY}=true."
        )
    if enabled is False:
        return LockChoice(LockKind.NONE, f"{COMMIT_LOCK_KEY}=false")
    needed = _needed(scope, partial_write_visible, store)
    if needed.kind is LockKind.NONE and enabled:
        return LockChoice(LockKind.PROCESS, f"{COMMIT_LOCK_KEY}=true")
    return needed


def lock_for(store: LogStore, table: str, conf: Mapping[str, str] | None = None) -> LockChoice:
    """Choose the commit lock of a table.

    Raises:
        UnsafeLogStoreError: the store can't exclude other writers.
    """
    return choose_lock(
        store.capabilities,
        store.is_partial_write_visible(log_path(table)),
        conf,
        store=type(behind(store)).__name__,
    )


def _needed(scope: Scope, partial_write_visible: bool, store: str) -> LockChoice:
    if scope == Scope.NONE:
        return LockChoice(
            LockKind.PROCESS,
            f"{store} does not exclude other writers; {SINGLE_WRITER_KEY} declares that only one "
            "process writes",
        )
    if scope == Scope.PROCESS:
        return LockChoice(LockKind.PROCESS, f"{store} excludes writers within this process only")
    if not partial_write_visible:
        where = "on this host" if scope == Scope.HOST else "on every host"
        return LockChoice(
            LockKind.NONE, f"{store} creates each file atomically, with one winner {where}"
        )
    if scope == Scope.HOST:
        return LockChoice(LockKind.HOST, f"{store} may show a file that is half written")
    # The storage decides the race between hosts; the lock spares this process's own writers
    # from reading each other's half-written commits, as Delta does.
    return LockChoice(LockKind.PROCESS, f"{store} may show a file that is half written")


@contextlib.contextmanager
def hold_lock(
    choice: LockChoice, table: str, *, timeout: float = DEFAULT_TIMEOUT
) -> Iterator[None]:
    """Hold the chosen lock of a table; do nothing where there is none.

    Args:
        choice: what `choose_lock` gave.
        table: the table's URI, in its normal form; the lock's key.
        timeout: seconds to wait for it.

    Raises:
        TimeoutError: another writer held it all that time.
    """
    if choice.kind is LockKind.NONE:
        yield
        return
    # Held through all attempts of a commit and not for each: with a lock that losers give back, a
    # writer that waits would let others overtake it time and again.
    lock = host_lock if choice.kind is LockKind.HOST else process_lock
    with lock(f"commit:{table}", timeout=timeout):
        yield


logger: logging.Logger = logging.getLogger("lakelog")

WARN_KEY = store_keys.WARN_NOT_DURABLE.name
"""`false` silences the warning, for those who know."""


def warn_if_not_durable(store: LogStore, conf: DeltaConf) -> None:
    """Warn, once for each class of store in a process, that a commit may not survive a crash.

    A store that excludes writers of one process only is passed over: what lives in the memory of a
    process is known to end with it.

    Args:
        store: that a commit is about to go to.
        conf: the user's; may silence it.

    Raises:
        DeltaAnalysisError: the conf's value is neither true nor false.
    """
    declared = store.capabilities
    if declared.durable or declared.exclusive_create == Scope.PROCESS:
        return
    if conf.read(store_keys.WARN_NOT_DURABLE):
        _warn(type(behind(store)))


@functools.cache
def _warn(store: type[LogStore]) -> None:
    logger.warning(
        "%s does not promise that a commit survives a crash of the host that stores it: the "
        "newest versions of a table may be lost, although their commits were reported as "
        "successful. Use a durable store, or, if that is acceptable, set %s=false.",
        store.__name__,
        WARN_KEY,
    )
