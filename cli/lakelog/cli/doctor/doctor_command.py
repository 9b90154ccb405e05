"""`lakelog doctor <uri>`: is this storage, with these settings, fit for tables?"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from lakelog.cli.app import EXIT_FINDING
from lakelog.cli.doctor.by_name import examine_name
from lakelog.cli.doctor.examination import Depth, examine
from lakelog.cli.doctor.findings import Verdict
from lakelog.cli.doctor.jvm import jvm_store
from lakelog.cli.output import facts, heading, line, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import refuse_name
from lakelog.core.engine.tables import known_catalogs, spelled_name, table_name
from lakelog.logstores.doctor.finding import Status

if TYPE_CHECKING:
    from lakelog.cli.doctor.findings import Report
    from lakelog.cli.doctor.jvm import JvmStore
    from lakelog.logstores.doctor.finding import Finding

_STYLES: Final = {"fine": "green", "note": "yellow", "failed": "bold red", "skipped": "dim"}


@click.command(short_help="Probe a storage and its settings; say what to fix.")
@uri_argument
@conf_options
@click.option(
    "--rounds",
    type=click.IntRange(1, 10_000),
    default=20,
    show_default=True,
    help="How many races to run.",
)
@click.option(
    "--writers",
    type=click.IntRange(2, 256),
    default=8,
    show_default=True,
    help="Writers in each race.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 3600),
    default=60,
    show_default=True,
    help="Start no new race after this many seconds.",
)
@click.option(
    "--jvm",
    is_flag=True,
    help="Show which store delta-spark would use with this conf, and what it excludes; no probe.",
)
@click.option("--read-only", is_flag=True, help="Write nothing: no probe, no race.")
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    rounds: int,
    writers: int,
    seconds: float,
    jvm: bool,
    read_only: bool,
    as_json: bool,
) -> None:
    """Examine the storage of URI, a table or a folder that is to hold tables.

    Shows which LogStore the conf leads to and why, then probes the storage itself: permissions,
    overwrites, reads, listings, clock, latency, and whether exclusive create has one winner in
    races. Probes are written to a folder of their own, URI/.lakelog-probe-<random>, and removed.

    Of a name in a catalog, catalog.schema.table, it shows which catalog that is and what it
    promises, how long its credentials live, commits that wait to be published, versions whose file
    is missing, and staged files that no version is. Nothing is written then.

    Says "no failure seen", never "safe": it only looked for as long as it ran.
    Exits with 1 if something has to be fixed; each such finding comes with its remedy.
    """
    scrubber = Scrubber(conf)
    is_name = table_name(uri, known_catalogs(conf)) is not None
    if jvm:
        refuse_name(uri, conf)
        _tell_jvm_store(jvm_store(uri, conf), uri, scrubber, as_json)
        return
    if not is_name:
        _refuse_unknown_catalog(uri)
    with progress() as tell:
        report = (
            examine_name(uri, conf, tell)
            if is_name
            else examine(uri, conf, Depth(rounds, writers, read_only, seconds), tell)
        )
    if as_json:
        print_json(scrubber.data(report.as_json()))
    else:
        _print(report, scrubber)
    if report.failures:
        sys.exit(EXIT_FINDING)


def _refuse_unknown_catalog(uri: str) -> None:
    """Refuse what is meant as a name, rather than probe a folder that is not there."""
    name = spelled_name(uri)
    if name is not None and not os.path.exists(uri):  # noqa: PTH110  # a path may be too long
        catalog = name.catalog
        raise click.UsageError(
            f"{uri} has the form of a name, and the conf has no catalog {catalog}: give --catalog "
            f"{catalog}=URL, or spark.sql.catalog.{catalog}.uri in --conf-file. A folder of that "
            f"name is ./{uri}."
        )


def _print(report: Report, scrubber: Scrubber) -> None:
    clean = scrubber.text
    heading(f"lakelog doctor {clean(report.uri)}")
    facts([(name, clean(value)) for name, value in _choices(report)])
    if report.settings:
        heading("Settings in force")
        facts([(clean(key), clean(value)) for key, value in report.settings.items()])
    if report.capabilities is not None:
        heading("What the store declares")
        facts(list((report.as_json()["capabilities"] or {}).items()))
    heading("Findings")
    table(
        ("Check", "Status", "What was seen"),
        [
            (_checks(each), (each.status.value, _STYLES[each.status.value]), clean(each.summary))
            for each in report.findings
        ],
    )
    _print_latencies(report.findings)
    _print_remedies([each for each in report.findings if each.remedy], scrubber)
    heading(_verdict(report))
    for path in report.left_behind:
        line(f"  left behind: {clean(path)}")


def _tell_jvm_store(found: JvmStore, uri: str, scrubber: Scrubber, as_json: bool) -> None:
    if as_json:
        print_json(scrubber.data(found.as_json()))
    else:
        heading(f"delta-spark on {scrubber.text(uri)}")
        lines = [("log store", found.class_name), ("chosen by", found.chosen_by)]
        lines += [("behind the bridge", found.behind)] if found.behind else []
        lines += [("excludes", found.excludes), ("finding", found.finding.summary)]
        facts([(name, scrubber.text(value)) for name, value in lines])
        if found.finding.remedy:
            _print_remedies([found.finding], scrubber)
    if found.finding.status is Status.FAILED:
        sys.exit(EXIT_FINDING)


def _checks(finding: Finding) -> str:
    return ", ".join((finding.check, *finding.measured.get("also", ())))


def _choices(report: Report) -> list[tuple[str, str]]:
    chosen, lock = report.resolution, report.lock
    found = []
    if chosen is not None:
        found += [("store", chosen.class_path), ("chosen by", chosen.reason)]
    if report.endpoint:
        found.append(("endpoint", report.endpoint))
    if lock is not None:
        found.append(("commit lock", f"{lock.kind.value}: {lock.reason}"))
    if report.catalog is not None:
        found += [(key.replace("_", " "), str(value)) for key, value in report.catalog.items()]
    if report.table_version is not None:
        found.append(("table", f"version {report.table_version}"))
    return found


def _print_latencies(findings: list[Finding]) -> None:
    for each in findings:
        if each.check == "latency" and each.measured:
            heading("Latency")
            table(
                ("Operation", "p50 ms", "p90 ms", "max ms", "samples"),
                [
                    (name, of["p50_ms"], of["p90_ms"], of["max_ms"], of["samples"])
                    for name, of in each.measured.items()
                ],
            )


def _print_remedies(findings: list[Finding], scrubber: Scrubber) -> None:
    if findings:
        heading("What to do")
    for each in findings:
        line(f"  {each.check}: {scrubber.text(each.remedy)}")


def _verdict(report: Report) -> str:
    failures = report.failures
    if report.verdict is Verdict.FAILED:
        many = f"{len(failures)} finding{'s' if len(failures) > 1 else ''} to fix"
        return f"{many}: {', '.join(each.check for each in failures)}"
    if report.catalog is not None:
        return "No failure seen; nothing was probed by writing"
    if report.verdict is Verdict.NOT_PROBED:
        return "No failure seen, but nothing was probed by writing (--read-only)"
    race = next((f for f in report.findings if f.check == "exclusive-create"), None)
    if race is None or race.status is not Status.FINE:
        return "No failure seen"
    return race.summary[0].upper() + race.summary[1:]
