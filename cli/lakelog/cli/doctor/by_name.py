"""The doctor's look at a table that has a name: its catalog, its commits, its credentials."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from lakelog.cli.doctor.findings import Report
from lakelog.core.engine.log import inspect
from lakelog.core.engine.shown import count_text
from lakelog.core.engine.tables import governed
from lakelog.core.errors import CatalogError, DeltaError
from lakelog.logstores.doctor.finding import Finding, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakelog.core import DeltaLog
    from lakelog.core.engine.log import GovernedLog

_SHOWN: Final = 20


def examine_name(name: str, conf: Mapping[str, str], tell: Callable[[str], None]) -> Report:
    """Look at a table of a catalog. Nothing is written: its folder is the catalog's.

    Args:
        name: of the table, in a catalog of the conf.
        conf: the user's.
        tell: called with what is being done.
    """
    started = time.monotonic()
    report = Report(name, read_only=True)
    try:
        _examine(report, name, conf, tell)
    finally:
        report.seconds = time.monotonic() - started
    return report


def _examine(
    report: Report, name: str, conf: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    from lakelog.core import DeltaLog

    tell("asking the catalog")
    try:
        log = DeltaLog.for_table(name, conf)
    except (DeltaError, OSError) as error:
        report.add(Finding.failed("catalog", error))
        return
    store = governed(log.store)
    if store is None:
        report.catalog = {"location": log.table, "governed": False}
        report.add(
            Finding(
                "catalog",
                Status.NOTE,
                "the catalog knows where the table is, and does not govern it",
                f"Examine its storage: lakelog doctor {log.table}",
            )
        )
        return
    table, promised = store.table, store.catalog.capabilities
    report.table_version = table.latest
    report.catalog = {
        "catalog": repr(store.catalog),
        "location": log.table,
        "governed": True,
        "table_id": table.table_id,
        "most_unpublished": promised.most_unpublished,
        "allows_maintenance": promised.allows_maintenance,
        "replays_are_seen": promised.replays_are_seen,
    }
    summary = f"it governs the table, whose newest version is {table.latest}"
    report.add(Finding("catalog", Status.FINE, summary, measured={"version": table.latest}))
    tell("asking for credentials")
    _credentials(report, log)
    tell("comparing the log with the catalog")
    try:
        found = inspect(store, log.table)
    except (DeltaError, OSError) as error:
        report.add(Finding.failed("log", error))
        return
    for finding in _of_the_log(found, promised.most_unpublished):
        report.add(finding)


def _credentials(report: Report, log: DeltaLog) -> None:
    store = governed(log.store)
    assert store is not None
    asks = store.asks_for_credentials
    if not asks:
        summary = "the catalog is asked for none: those of the conf, or of this machine, open it"
        report.add(Finding("credentials", Status.NOTE, summary))
        return
    catalog, rights = store.catalog, "reading and writing"
    try:
        try:
            given = catalog.credentials(store.table, write=True)
        except CatalogError:
            given, rights = catalog.credentials(store.table, write=False), "reading alone"
    except (DeltaError, OSError) as error:
        report.add(Finding.failed("credentials", error))
        return
    if not given.conf:
        summary = "the catalog vends none: those of the conf open the storage"
        report.add(Finding("credentials", Status.NOTE, summary))
        return
    summary, measured = f"for {rights}, without an end", dict[str, Any]()
    if given.ends_at_ms is not None:
        left = max(given.ends_at_ms - log.clock.now_ms(), 0)
        ends = datetime.fromtimestamp(given.ends_at_ms / 1000, UTC).isoformat(timespec="seconds")
        life = timedelta(seconds=left // 1000)
        summary = f"for {rights}, until {ends}, which is in {life}; renewed before that"
        measured = {"ends_at_ms": given.ends_at_ms}
    report.add(Finding("credentials", Status.FINE, summary, measured=measured))


def _of_the_log(found: GovernedLog, most: int) -> list[Finding]:
    findings = []
    waiting = count_text(len(found.unpublished), "commit")
    if found.unpublished:
        findings.append(
            Finding(
                "unpublished",
                Status.NOTE,
                f"{waiting} of at most {most} wait to be published: "
                f"{_listed([str(each) for each in found.unpublished])}. The next commit does it",
                measured={"versions": list(found.unpublished)},
            )
        )
    else:
        findings.append(Finding("unpublished", Status.FINE, "all commits are published"))
    if found.missing:
        missing = [f"version {version}: {path}" for version, path in found.missing.items()]
        findings.append(
            Finding(
                "missing",
                Status.FAILED,
                f"the catalog counts versions whose file is not there: {_listed(missing)}",
                "A client reported what it had not written, or a file was deleted. Look for the "
                "versions' files among the staged ones, or in the storage's own history, and copy "
                "them to these names.",
                {"versions": list(found.missing)},
            )
        )
    else:
        findings.append(Finding("missing", Status.FINE, "each version's file is there"))
    if found.wrong:
        wrong = [f"version {version}: {path}" for version, path in found.wrong.items()]
        findings.append(
            Finding(
                "wrong",
                Status.FAILED,
                f"a file is not what the catalog ratified: {_listed(wrong)}",
                "Find out who wrote it. Where the staged file of the version is there, copy it "
                "to this name; where that is gone, look in the storage's own history.",
                {"versions": list(found.wrong)},
            )
        )
    if found.leftovers:
        findings.append(
            Finding(
                "staged",
                Status.NOTE,
                f"{count_text(len(found.leftovers), 'staged file')} that no version is: "
                f"{_listed(found.leftovers)}. No reader looks at them",
                "While no writer is at work, they may be deleted.",
                {"names": list(found.leftovers)},
            )
        )
    else:
        findings.append(Finding("staged", Status.FINE, "no staged file is left over"))
    return findings


def _listed(texts: Sequence[str]) -> str:
    more = f", and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more
