"""`lakelog repair <uri>`: say what is broken in a table, and mend it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.app import EXIT_FINDING
from lakelog.cli.confirmation import confirm, yes_option
from lakelog.cli.output import heading, line, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import one_line, open_log
from lakelog.core.engine.shown import count_text

if TYPE_CHECKING:
    from lakelog.core import TableRepaired


@click.command(short_help="Find what is broken in a table, and mend it.")
@uri_argument
@conf_options
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--undo", metavar="FOLDER", help="Take back a repair, by the backup that it made.")
@yes_option
@json_option
def command(
    uri: str, conf: dict[str, str], dry_run: bool, undo: str | None, yes: bool, as_json: bool
) -> None:
    """Look for what is broken in the table URI, and mend it after a question.

    Mends a torn last commit, a hint that lies, broken or missing checkpoints, a wrong checksum,
    files that are gone (they leave the log), wrong sizes, missing statistics, and leftovers of
    killed writers. What would need a guess, as a gap in the log, is named and left. Whatever is
    replaced or removed is kept in _delta_log/_repair. Exits with 1 if something is left.
    """
    if undo is not None and dry_run:
        raise click.UsageError("--undo and --dry-run don't go together")
    scrubber = Scrubber(conf)
    if undo is not None:
        _undo(uri, conf, undo, scrubber, yes=yes, as_json=as_json)
        return
    from lakelog.core import repair

    with progress() as tell:
        log = open_log(uri, conf)
        tell("looking at the log and the files")
        found = repair(log)
    hopeful = [each for each in found.defects if each.mend is not None]
    if not as_json:
        _print(found, scrubber)
    if hopeful and not dry_run:
        if not yes:
            confirm(f"Mend {count_text(len(hopeful), 'defect')} of {scrubber.text(log.table)}?")
        with progress() as tell:
            tell("mending")
            found = repair(log, dry_run=False)
        if not as_json:
            line(f"Mended. The replaced files are in {scrubber.text(str(found.backup))}.", "green")
    elif hopeful and not as_json:
        line("Nothing was changed (--dry-run).")
    if as_json:
        print_json(scrubber.data(_json(found)))
    if found.left:
        sys.exit(EXIT_FINDING)


def _undo(
    uri: str, conf: dict[str, str], backup: str, scrubber: Scrubber, *, yes: bool, as_json: bool
) -> None:
    from lakelog.core import undo_repair

    log = open_log(uri, conf)
    if not yes:
        confirm(f"Put back what {scrubber.text(backup)} has?")
    version = undo_repair(log, backup)
    if as_json:
        print_json(scrubber.data({"table": log.table, "backup": backup, "version": version}))
    else:
        commit = "" if version is None else f", by version {version}"
        line(f"The table is as it was before the repair{commit}.", "green")


def _json(found: TableRepaired) -> dict[str, Any]:
    return {
        "table": found.table,
        "dry_run": found.dry_run,
        "version": found.version,
        "backup": found.backup,
        "defects": [
            {"kind": each.kind, "path": each.path, "problem": each.problem, "mend": each.mend}
            for each in found.defects
        ],
    }


def _print(found: TableRepaired, scrubber: Scrubber) -> None:
    heading(scrubber.text(found.table))
    if not found.defects:
        line("Nothing is broken, as far as the log and a look for its files say.")
        return
    table(
        ["what", "where", "problem", "mended by"],
        [
            (
                each.kind,
                scrubber.text(each.path.removeprefix(found.table).lstrip("/")),
                scrubber.text(one_line(each.problem)),
                each.mend or "nothing: see docs/errors.md",
            )
            for each in found.defects
        ],
    )
