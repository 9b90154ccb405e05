"""Exclusive create as a store's writers would meet it, and as the endpoint behind it handles it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.logstores.contract import Scope
from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.doctor.lock_table_checks import as_dynamodb_store
from lakelog.logstores.object_store.contenders import ObjectContender, StoreContender
from lakelog.logstores.object_store.create_probe import CreateVerdict, probe_exclusive_create
from lakelog.logstores.object_store.store import ObjectLogStore
from lakelog.logstores.object_store.trust import REMEDY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores.contract import LogStore
    from lakelog.logstores.doctor.area import ProbeArea
    from lakelog.logstores.object_store.contenders import Contender
    from lakelog.logstores.object_store.create_probe import CreateProbe

_FENCE: Final = "conditional-create"
_UNDECIDED_REMEDY = (
    "Run this again; if it stays so, the storage is overloaded or something in between drops "
    "requests. --rounds and --writers make the probe smaller."
)


def exclusive_findings(
    store: LogStore,
    area: ProbeArea,
    *,
    rounds: int,
    writers: int,
    seconds: float,
    tell: Callable[[int], None],
) -> Iterator[Finding]:
    """Race, and report what was seen.

    A store that commits by one conditional request is raced by requests that are sent beforehand
    but for their last bytes. Any other store is raced through its `write`; if it is an object
    store, the conditional request itself is raced as well, since it is what protects a writer that
    lost the store's own lock.

    Raises:
        OSError: the storage refuses to create or to read.
    """
    if store.capabilities.exclusive_create is Scope.NONE:
        summary = "not raced: the store claims no exclusive create"
        yield Finding("exclusive-create", Status.SKIPPED, summary)
        return

    def run(contender: Contender) -> CreateProbe:
        return probe_exclusive_create(
            contender, rounds=rounds, writers=writers, seconds=seconds, tell=tell
        )

    if not isinstance(store, ObjectLogStore):
        yield _finding(run(StoreContender(store, area.log("race"))))
        return
    client, prefix = store._locate(area.log("fence") + "/")
    endpoint = ObjectContender(client, prefix, store._timeout)
    if type(store).write is ObjectLogStore.write:
        yield _finding(run(endpoint))
        return
    yield _finding(run(StoreContender(store, area.log("race"))))
    fence = run(endpoint)
    # A row of DynamoDB decides without the fence; a lease does not.
    yield _fence(fence, store) if as_dynamodb_store(store) else _finding(fence, _FENCE)


def _finding(probe: CreateProbe, check: str = "exclusive-create") -> Finding:
    status, remedy = Status.FINE, ""
    if probe.is_failure:
        status, remedy = Status.FAILED, REMEDY
    elif probe.verdict is CreateVerdict.UNDECIDED:
        status, remedy = Status.FAILED, _UNDECIDED_REMEDY
    return Finding(check, status, probe.sentence(), remedy, _measured(probe))


def _fence(probe: CreateProbe, store: LogStore) -> Finding:
    """A failure here loses no commit by itself: the store's own lock comes first."""
    if not probe.is_failure:
        return Finding(_FENCE, Status.FINE, probe.sentence(), "", _measured(probe))
    return Finding(
        _FENCE,
        Status.NOTE,
        f"{probe.sentence()}. {type(store).__name__} does not rely on it, but without it nothing "
        "stops a writer that lost its lock, or never took it",
        "Let every writer of the table use this store.",
        _measured(probe),
    )


def _measured(probe: CreateProbe) -> dict[str, object]:
    return {
        "verdict": probe.verdict.value,
        "rounds": probe.rounds,
        "writers": probe.writers,
        "failures": probe.failures,
        "unanswered": probe.unanswered,
        "undecided": probe.undecided,
        "winners": {str(won): races for won, races in probe.winners.items()},
        "pre_sent": probe.pre_sent,
    }
