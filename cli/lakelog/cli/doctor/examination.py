"""The doctor's examination: from the conf to the store, to the endpoint, to its promises.

A step that fails is a finding with a remedy; those that could only fail for the same reason are
skipped.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakelog.cli.doctor.findings import Report
from lakelog.cli.doctor.misspelt import misspelt
from lakelog.core.engine.commit import lock_for
from lakelog.core.engine.log import log_path
from lakelog.core.engine.tables import normalize_table_uri
from lakelog.logstores import LogStore, Scope, log_store_for, resolve
from lakelog.logstores.doctor.area import ProbeArea
from lakelog.logstores.doctor.clock_skew import clock_finding
from lakelog.logstores.doctor.contract_probe import FileProbe
from lakelog.logstores.doctor.exclusive_create import exclusive_findings
from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.doctor.lock_table_checks import as_dynamodb_store, lock_table_findings
from lakelog.logstores.doctor.reach import reach
from lakelog.logstores.object_store.store import BUDGET_KEY
from lakelog.logstores.object_store.trust import PROBE_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_BUDGET: Final = "10"
"""Seconds that one operation is repeated; with the stores' own minute the doctor would be slow."""
_CONNECT_SECONDS: Final = 5.0
_SAMPLES: Final = 10

_ERRORS: Final = (Exception,)
"""A custom store may raise anything, and that is when the doctor is run."""


@dataclass(frozen=True, slots=True)
class Depth:
    """How far to go."""

    rounds: int = 20
    writers: int = 8
    read_only: bool = False
    seconds: float = 60.0
    """Seconds after which no new race starts."""


def examine(uri: str, conf: Mapping[str, str], depth: Depth, tell: Callable[[str], None]) -> Report:
    """Examine the storage of a URI.

    Args:
        uri: of a table, or of the folder that is to hold tables.
        conf: the user's.
        depth: how far to go.
        tell: called with what is being done.
    """
    started = time.monotonic()
    report = Report(uri, read_only=depth.read_only)
    try:
        _examine(report, conf, depth, tell)
    finally:
        report.seconds = time.monotonic() - started
    return report


def _examine(
    report: Report, conf: Mapping[str, str], depth: Depth, tell: Callable[[str], None]
) -> None:
    for finding in misspelt(conf):
        report.add(finding)
    tell("choosing the store")
    store = _store(report, conf)
    if store is None:
        return
    with contextlib.closing(store):
        tell("connecting")
        skew = _reached(report, store)
        if report.has_failed("settings", "connection"):
            return
        tell("looking for a table")
        if not _lock_table(report, store):
            return
        _table(report, store)
        if not depth.read_only:
            _probe(report, store, depth, skew, tell)


def _store(report: Report, conf: Mapping[str, str]) -> LogStore | None:
    try:
        report.uri = normalize_table_uri(report.uri)
        report.resolution = resolve(report.uri, conf)
        shown = log_store_for(report.uri, conf)
        report.settings = shown.settings()
        report.capabilities = shown.capabilities
        store = log_store_for(report.uri, {BUDGET_KEY: _BUDGET, **conf, PROBE_KEY: "never"})
    except _ERRORS as error:
        report.add(Finding.failed("store", error))
        return None
    report.add(Finding("store", Status.FINE, report.resolution.reason))
    _lock(report, store, conf)
    return store


def _lock(report: Report, store: LogStore, conf: Mapping[str, str]) -> None:
    try:
        report.lock = lock_for(store, report.uri, conf)
    except _ERRORS as error:
        report.add(Finding.failed("commit-lock", error))
        return
    scope = store.capabilities.exclusive_create
    if scope < Scope.CLUSTER:
        place = scope.name.lower()
        summary = f"writers exclude each other within one {place} only"
        if scope is Scope.NONE:
            summary = "writers don't exclude each other; the conf says that only one process writes"
        where = "on one host" if scope is Scope.HOST else "in one process"
        remedy = f"Run all writers {where}, or choose a store with cluster scope."
        report.add(Finding("commit-lock", Status.NOTE, summary, remedy))


def _reached(report: Report, store: LogStore) -> float | None:
    """The clock's skew by the endpoint's own time, where it reports one."""
    try:
        report.endpoint, connections = reach(store, report.uri, _CONNECT_SECONDS)
    except _ERRORS as error:
        report.add(Finding.failed("settings", error))
        return None
    skew = None
    for connection in connections:
        report.add(connection.finding)
        skew = connection.skew if connection.skew is not None else skew
    if skew is not None:
        # Before everything that fails with a wrong clock: signatures and tokens contain times.
        report.add(clock_finding(skew, "the Date of a reply"))
    return skew


def _table(report: Report, store: LogStore) -> None:
    from lakelog.core.engine.log import LogDefects, find_newest
    from lakelog.core.errors import TableNotFoundError

    found = LogDefects()
    try:
        # A failure here is reported below; reading the hint would log it, and go on to meet it
        # again.
        for _ in store.list_from(log_path(report.uri) + "/"):
            break
        version = find_newest(store, report.uri, int(time.time() * 1000), found)
    except (TableNotFoundError, FileNotFoundError):
        report.add(Finding("table", Status.NOTE, "there is no table here yet"))
        return
    except _ERRORS as error:
        report.add(Finding.failed("table", error))
        return
    for each in found.defects:
        remedy = f"Run `lakelog repair {report.uri} --dry-run`, which says what mends it."
        report.add(Finding("table", Status.FAILED, f"{each.kind}: {each.problem}", remedy))
    report.table_version = version
    if found.defects:
        return
    summary = f"version {version}, and its newest commit can be read"
    report.add(Finding("table", Status.FINE, summary, measured={"version": version}))


def _lock_table(report: Report, store: LogStore) -> bool:
    """Whether what follows can use the lock table, where there is one."""
    locked = as_dynamodb_store(store)
    if locked is None:
        return True
    exists = True
    for finding in lock_table_findings(locked, report.uri):
        report.add(finding)
        exists = exists and bool(finding.measured.get("exists", True))
    # A listing makes the table if the conf asks for it, and reading only must not.
    return not report.has_failed("lock-table") and (exists or not report.read_only)


def _probe(
    report: Report,
    store: LogStore,
    depth: Depth,
    skew: float | None,
    tell: Callable[[str], None],
) -> None:
    area = ProbeArea(store, report.uri)
    probe: FileProbe | None = None
    try:
        tell("writing, reading, listing")
        probe = FileProbe(store, area.log("files"), _SAMPLES)
        _races(report, store, area, probe, depth, tell)
        if skew is None and not report.has_failed("put", "list"):
            report.add(_clock(probe))
    except _ERRORS as error:
        report.add(Finding.failed("probe", error))
    finally:
        tell("cleaning up")
        _clean(report, area, wrote=probe is not None and probe.wrote)


def _races(
    report: Report,
    store: LogStore,
    area: ProbeArea,
    probe: FileProbe,
    depth: Depth,
    tell: Callable[[str], None],
) -> None:
    for finding in probe.findings():
        report.add(finding)
        if finding not in report.findings:
            return  # same cause as an earlier one, which would also fail all that follow
    if report.has_failed("put", "conditional-put", "get"):
        return
    for finding in exclusive_findings(
        store,
        area,
        rounds=depth.rounds,
        writers=depth.writers,
        seconds=depth.seconds,
        tell=lambda done: tell(f"racing: {done} of {depth.rounds}"),
    ):
        report.add(finding)


def _clock(probe: FileProbe) -> Finding:
    made = probe.modification_time()
    if made is None:
        return clock_finding(None, "the storage reports no times")
    stored, before, after = made
    off = 0.0
    if after < stored:
        off = after - stored
    elif before > stored + 1:  # some storages keep whole seconds
        off = before - stored - 1
    return clock_finding(off, "the time of a file just written")


def _clean(report: Report, area: ProbeArea, *, wrote: bool) -> None:
    try:
        left = area.clear()
    except _ERRORS as error:
        if wrote:
            report.left_behind = [area.folder]
            report.add(Finding.failed("delete", error))
        return
    if not wrote:
        return
    report.left_behind = left
    if left:
        report.add(
            Finding(
                "delete",
                Status.NOTE,
                f"the probe's files could not be deleted; some remain below {area.folder}",
                "Commits need no permission to delete; vacuum and log cleanup do. Remove the "
                "folder.",
            )
        )
    else:
        report.add(Finding("delete", Status.FINE, "the probe's files were deleted"))
