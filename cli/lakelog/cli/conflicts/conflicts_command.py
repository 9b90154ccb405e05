"""`lakelog conflicts <events>`: which jobs lose commits to which, and how to separate them."""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.app import EXIT_FINDING
from lakelog.cli.output import heading, line, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option
from lakelog.cli.table_options import all_option, limit_option, one_line, table_uri
from lakelog.core.engine.shown import count_text, time_text
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakelog.cli.conflicts.encounters import Encounter, Encounters, JobSums, Pair
    from lakelog.cli.conflicts.event_files import Reading
    from lakelog.cli.conflicts.separations import Advice
    from lakelog.core.events import CommitStats

_LIMIT: Final = 20
_SPAN: Final = re.compile(r"(\d+)\s*(m|h|d|w)")
_MINUTES: Final = {"m": 1, "h": 60, "d": 60 * 24, "w": 60 * 24 * 7}


@click.command(short_help="Which jobs lose commits to which, and how to separate them.")
@click.argument("events", nargs=-1, required=True)
@conf_options
@click.option("--table", "only", metavar="URI", help="Only this table: its URI, or the end of it.")
@click.option(
    "--since",
    metavar="TIME",
    help="Only events since a time: ISO 8601 (UTC if it has no zone), or an age: 90m, 12h, 7d.",
)
@limit_option(_LIMIT, "How many lost commits to show.")
@all_option
@json_option
def command(
    events: tuple[str, ...],
    conf: dict[str, str],
    only: str | None,
    since: str | None,
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """Read the commit EVENTS of jobs and show which job won against which, where and why.

    EVENTS are files, folders or globs, on this machine or any storage: what jobs wrote to the
    file of spark.lakelog.commitEvents.path. Lines that are not events are skipped.

    Exits with 1 if commits were lost; then it says which jobs to separate, and how.
    """
    from_ms = None if since is None else _since(since)
    with progress() as tell:
        document = conflicts_document(
            events, conf, only, from_ms, None if everything else limit, tell
        )
    document = Scrubber(conf).data(document)
    if as_json:
        print_json(document)
    else:
        _print(document)
    if document["lost_commits"] or any(
        job["given_up"] or job["unfinished"] for job in document["jobs"]
    ):
        sys.exit(EXIT_FINDING)


def conflicts_document(
    events: Sequence[str],
    conf: Mapping[str, str],
    only: str | None,
    from_ms: int | None,
    limit: int | None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """What the events of jobs say about lost commits, as JSON values. Not scrubbed.

    Args:
        events: files, folders or globs.
        conf: of the storages that they are on.
        only: a table's URI, or the end of it; all tables if None.
        from_ms: milliseconds since the epoch from where on; from the first if None.
        limit: how many lost commits are listed; None for all.
        tell: called with what is being done.

    Raises:
        DeltaAnalysisError: nothing in the files is an event, or none is about the table.
    """
    from lakelog.cli.conflicts.event_files import read_events

    reading = read_events(events, conf, tell)
    tell("comparing")
    return reading_document(reading, only, from_ms, limit)


def reading_document(
    reading: Reading, only: str | None, from_ms: int | None, limit: int | None
) -> dict[str, Any]:
    """As `conflicts_document`, of events that were read already."""
    from lakelog.cli.conflicts.encounters import encounters_of
    from lakelog.cli.conflicts.separations import separations

    _refuse_other_logs(reading)
    chosen = _chosen(reading.events, only, from_ms)
    left_out = len(chosen) < len(reading.events)
    found = encounters_of(chosen, reading.events if left_out else ())
    return _document(reading, chosen, found, separations(found), limit)


def _since(text: str) -> int:
    from lakelog.core.engine.tables import parse_timestamp

    age = _SPAN.fullmatch(text.strip().lower())
    if age is None:
        return parse_timestamp(text)
    return int(time.time() * 1000) - int(age[1]) * _MINUTES[age[2]] * 60_000


def _refuse_other_logs(reading: Reading) -> None:
    if reading.lines and not reading.events:
        raise DeltaAnalysisError(
            f"None of {count_text(reading.lines, 'line')} in {', '.join(reading.files)} is a "
            "commit event. Give the file that spark.lakelog.commitEvents.path names."
        )


def _chosen(
    events: Sequence[CommitStats], only: str | None, from_ms: int | None
) -> list[CommitStats]:
    """The events about a table, from a time on."""
    chosen = list(events)
    if only is not None:
        named, end = table_uri(only), "/" + only.strip("/")
        chosen = [e for e in chosen if e.table == named or e.table.endswith(end)]
        if not chosen and events:
            there = ", ".join(sorted({e.table for e in events})[:10])
            raise DeltaAnalysisError(f"No event is about the table {only}. Tables: {there}.")
    if from_ms is None:
        return chosen
    # A commit whose last attempt is recent is shown from its first attempt on.
    recent = {e.txn_id for e in chosen if e.timestamp is not None and e.timestamp >= from_ms}
    return [e for e in chosen if e.txn_id in recent]


def _document(
    reading: Reading,
    chosen: Sequence[CommitStats],
    found: Encounters,
    advice: Sequence[Advice],
    limit: int | None,
) -> dict[str, Any]:
    times = [e.timestamp for e in chosen if e.timestamp is not None]
    return {
        "files": reading.files,
        "events": len(chosen),
        "passed_over": {
            "foreign_lines": reading.foreign,
            "torn_lines": reading.torn,
            "duplicates": reading.duplicates,
            "by_options": len(reading.events) - len(chosen),
        },
        "from": time_text(min(times, default=None)),
        "to": time_text(max(times, default=None)),
        "commits": sum(job.fates["committed"] for job in found.jobs),
        "lost_commits": len(found.lost),
        "lost": [_lost_commit(each) for each in found.lost[:limit]],
        "jobs": [_job(each) for each in found.jobs],
        "pairs": [_pair(each) for each in found.pairs],
        "separate": [each._asdict() for each in advice],
    }


def _lost_commit(met: Encounter) -> dict[str, Any]:
    event = met.event
    return {
        "time": time_text(event.timestamp),
        "table": event.table,
        "job": met.loser,
        "operation": event.operation,
        "read_version": event.read_version,
        "txn_id": event.txn_id,
        "app_id": event.app_id,
        "host": event.host,
        "pid": event.pid,
        "winner": met.winner,
        "winner_operation": met.winner_operation,
        "winner_version": met.winner_version,
        "winner_txn_id": event.winner_txn_id,
        "condition": met.condition,
        "partition": event.conflict_partition,
    }


def _job(job: JobSums) -> dict[str, Any]:
    return {
        "table": job.table,
        "job": job.job,
        "operations": dict(job.operations),
        **{
            fate: job.fates[fate]
            for fate in ("committed", "lost", "given_up", "unfinished", "unknown", "failed")
        },
        "attempts": job.attempts,
        "retries": job.retries,
        "rebased_over": job.rebased_over,
        "conditions": dict(job.conditions),
        "backoff_ms": round(job.backoff_ms, 3),
        "lock_wait_ms": round(job.lock_wait_ms, 3),
        "check_ms": round(job.check_ms, 3),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "table": pair.table,
        "loser": pair.loser,
        "winner": pair.winner,
        "lost": len(pair.lost),
        "rebased": pair.rebased,
        "conditions": dict(pair.conditions),
    }


def _print(found: dict[str, Any]) -> None:
    from lakelog.cli.conflicts.separations import CONDITIONS, partition_text

    span = f", {found['from']} to {found['to']}" if found["from"] else ""
    heading(f"{count_text(found['events'], 'commit event')}{span}")
    line(_passed_over(found["passed_over"]))
    # With one table its name is shown once.
    tables = {job["table"] for job in found["jobs"]}
    many = len(tables) > 1
    if not many:
        line("".join(tables))
    if found["lost"]:
        heading(f"{count_text(found['lost_commits'], 'commit')} lost to conflicts, newest first")
        _table(
            ("Time (UTC)", "Lost", "Winner", "At version", "The winner …", "Partition"),
            [
                (
                    each["table"],
                    each["time"] or "",
                    _who(each["job"], each["operation"]),
                    _who(each["winner"], each["winner_operation"]),
                    str(each["winner_version"]),
                    str(CONDITIONS.get(each["condition"], each["condition"])),
                    partition_text(each["partition"]),
                )
                for each in found["lost"]
            ],
            many,
        )
        if len(found["lost"]) < found["lost_commits"]:
            line(f"{found['lost_commits'] - len(found['lost']):,} more: --limit N, or --all.")
    if found["jobs"]:
        _print_jobs(found["jobs"], many)
    if found["pairs"]:
        _print_pairs(found["pairs"], many)
    heading("Which jobs to separate" if found["separate"] else "No jobs need to be separated")
    for each in found["separate"]:
        where = f" on {each['table']}" if many else ""
        names = " and ".join(dict.fromkeys(each["jobs"]))
        line(f"  {names}{where}, by {each['by']}: {each['reason']}.")


def _who(job: str, operation: str | None) -> str:
    return job if not operation or operation in job else f"{job} ({operation})"


def _passed_over(counts: dict[str, int]) -> str:
    words = (
        ("foreign_lines", "line that is not an event", "lines that are not events"),
        ("torn_lines", "torn last line", "torn last lines"),
        ("duplicates", "duplicate", "duplicates"),
        ("by_options", "event left out by the options", "events left out by the options"),
    )
    parts = [count_text(counts[name], one, many) for name, one, many in words if counts[name]]
    return f"Skipped: {', '.join(parts)}." if parts else "Nothing was skipped."


def _print_jobs(jobs: Iterable[dict[str, Any]], many: bool) -> None:
    heading("Jobs")
    _table(
        (
            "Job",
            "Committed",
            "Lost",
            "Gave up",
            "Unfinished",
            "Failed",
            "Retries",
            "Rebased over",
            "Waited s",
        ),
        [
            (
                each["table"],
                each["job"],
                f"{each['committed']:,}",
                f"{each['lost']:,}",
                f"{each['given_up']:,}",
                f"{each['unfinished']:,}",
                f"{each['failed'] + each['unknown']:,}",
                f"{each['retries']:,}",
                f"{each['rebased_over']:,}",
                f"{(each['backoff_ms'] + each['lock_wait_ms']) / 1000:.1f}",
            )
            for each in jobs
        ],
        many,
    )


def _print_pairs(pairs: Iterable[dict[str, Any]], many: bool) -> None:
    heading("Which jobs collided")
    _table(
        ("Second", "First", "Commits lost", "Races lost and rebased"),
        [
            (
                each["table"],
                each["loser"],
                each["winner"],
                f"{each['lost']:,}",
                f"{each['rebased']:,}",
            )
            for each in pairs
        ],
        many,
    )


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]], many: bool) -> None:
    """A table whose first cells are tables' URIs, shown only where there are several."""
    skipped = 0 if many else 1
    cells = [[one_line(cell) for cell in row[skipped:]] for row in rows]
    table(("Table", *columns)[skipped:], cells, whole=("Time (UTC)",))
