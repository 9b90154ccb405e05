"""What `lakelog delete` and `lakelog update` share: count, ask, commit, and say what was done."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.confirmation import confirm
from lakelog.cli.output import facts, heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.table_options import open_log, saying
from lakelog.core.engine.shown import bytes_text, count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.cli.shared_options import Option
    from lakelog.core import DeltaLog, RowsChanged

_DONE: Final = {"delete": "Deleted", "update": "Updated"}
_FOR_PYTHON: Final = ". To set the string itself as the value, use lit("
_COUNTED: Final = {"delete": "numDeletedRows", "update": "numUpdatedRows"}


note_option: Option = click.option(
    "--user-metadata", "note", metavar="TEXT", help="A note for the table's history."
)
attempts_option: Option = click.option(
    "--attempts",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="The most attempts if other writers win.",
)


@dataclass(frozen=True, slots=True)
class Change:
    """What the command line asks for."""

    verb: str
    """`delete` or `update`."""
    where: str | None
    values: dict[str, str] | None
    """Column -> SQL, for an update."""
    note: str | None
    dry_run: bool
    yes: bool
    attempts: int = 10
    """How often it is run at most."""


def run(uri: str, conf: dict[str, str], change: Change, *, as_json: bool) -> None:
    """Change the rows of a table, and print what was done.

    Raises:
        click.UsageError: an empty condition, or every row without `--yes` where no one can be
            asked.
        DeltaError: the change is refused; the table is as it was.
    """
    if change.where is not None and not change.where.strip():
        raise click.UsageError(
            f"--where is empty. To {change.verb} every row, leave the option out."
        )
    scrubber, log = Scrubber(conf), open_log(uri, conf)
    with progress() as tell:
        tell("reading the log")
        before = log.snapshot.version
        asks = change.where is None and not change.yes
        with _advice_for_shells():
            counted = _count_rows(log, change, tell) if change.dry_run or asks else None
    if counted is not None and asks and not change.dry_run:
        rows = count_text(counted["rows"], "row")
        confirm(scrubber.text(f"{change.verb.capitalize()} all {rows} of {log.table}?"))
    found: dict[str, Any] = {
        "table": log.table,
        "version_before": before,
        "where": change.where,
        **({} if change.values is None else {"set": change.values}),
    }
    if change.dry_run:
        found = {**found, **(counted or {}), "version": None, "metrics": {}}
    else:
        with progress() as tell:
            tell(f"{change.verb.removesuffix('e')}ing rows")
            with _advice_for_shells():
                found = {**found, **_result(change, _change_rows(log, change, tell))}
    found = {**scrubber.data(found), "dry_run": change.dry_run}
    if as_json:
        print_json(found)
    else:
        _print(found, change)


@contextlib.contextmanager
def _advice_for_shells() -> Iterator[None]:
    """Where an error names the call of Python that sets a string, name the quotes instead."""
    from lakelog.core.errors import DeltaAnalysisError

    try:
        yield
    except DeltaAnalysisError as error:
        problem, python, _ = str(error).partition(_FOR_PYTHON)
        if not python:
            raise
        raise DeltaAnalysisError(
            f"{problem}. A string needs quotes of its own: --set \"name='x'\"."
        ) from error


def _count_rows(log: DeltaLog, change: Change, tell: Callable[[str], None]) -> dict[str, int]:
    from lakelog.core.engine.dml import matching_rows

    tell("counting rows")
    matching = matching_rows(log, change.where, change.values)
    return {"rows": matching.rows, "files": matching.files}


def _change_rows(log: DeltaLog, change: Change, tell: Callable[[str], None]) -> RowsChanged:
    """Change the rows, and again those that match by then where another writer was faster."""
    from lakelog.core import delete_rows, retry_on_conflict, update_rows

    report = saying(tell)

    def work() -> RowsChanged:
        if change.values is None:
            return delete_rows(log, change.where, user_metadata=change.note, progress=report)
        return update_rows(
            log, change.values, change.where, user_metadata=change.note, progress=report
        )

    def again(_: Exception, run: int) -> None:
        tell(f"another writer was faster; run {run + 1} of {change.attempts}")

    return retry_on_conflict(work, attempts=change.attempts, on_conflict=again, clock=log.clock)


def _result(change: Change, done: RowsChanged) -> dict[str, Any]:
    metrics = dict(done.metrics)
    # A file whose deletion vector is replaced is not counted as a removed one.
    touched = metrics.get("numRemovedFiles", 0) + metrics.get("numDeletionVectorsAdded", 0)
    return {
        "rows": metrics.get(_COUNTED[change.verb]),
        "files": touched,
        "version": done.version,
        "metrics": metrics,
    }


def _print(found: dict[str, Any], change: Change) -> None:
    heading(f"{found['table']}, version {found['version_before']}")
    rows, metrics = found["rows"], found["metrics"]
    shown = [
        ("where", change.where or "every row"),
        *(("set", f"{column} = {value}") for column, value in (change.values or {}).items()),
        ("rows that match", "unknown: whole files" if rows is None else f"{rows:,}"),
        ("in files", f"{found['files']:,}"),
    ]
    if metrics:
        shown += [
            (f"{what} files", f"{count:,} ({bytes_text(size)})")
            for what, count, size in (
                ("removed", metrics["numRemovedFiles"], metrics["numRemovedBytes"]),
                ("added", metrics.get("numAddedFiles", 0), metrics["numAddedBytes"]),
            )
        ]
    facts(shown)
    if change.dry_run:
        line("Nothing was committed (--dry-run).")
    elif found["version"] is None:
        line("No row matches: nothing was committed.")
    else:
        what = "all rows of whole files" if rows is None else count_text(rows, "row")
        line(f"{_DONE[change.verb]} {what} by version {found['version']}.", "green")
