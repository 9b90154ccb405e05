"""`lakelog delete <uri>`: delete the rows that match a condition."""

from __future__ import annotations

import click

from lakelog.cli.confirmation import yes_option
from lakelog.cli.row_changes.change import Change, attempts_option, note_option, run
from lakelog.cli.shared_options import conf_options, json_option, uri_argument


@click.command(short_help="Delete the rows that match a condition.")
@uri_argument
@conf_options
@click.option(
    "--where",
    metavar="SQL",
    help="Only the rows for which this is true: \"day < '2026-01-01'\". Without it, all.",
)
@note_option
@attempts_option
@click.option("--dry-run", is_flag=True, help="Count the rows; commit nothing.")
@yes_option
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    where: str | None,
    note: str | None,
    attempts: int,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Delete the rows of the table URI that match a condition, in one commit.

    Rows for which the condition is null stay. Older versions still have the rows, until VACUUM
    deletes the files. Without --where every row is deleted: that is asked for on a terminal, and
    needs --yes elsewhere.
    """
    run(uri, conf, Change("delete", where, None, note, dry_run, yes, attempts), as_json=as_json)
