"""`lakelog merge <uri> <file>...`: update, insert and delete rows by those of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lakelog.cli.given_files import files_argument, format_option, rows_of
from lakelog.cli.output import facts, heading, line, print_json, progress
from lakelog.cli.row_changes.change import note_option
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log, opened, saying

if TYPE_CHECKING:
    from pathlib import Path


@click.command(short_help="Update, insert and delete rows by those of files.")
@uri_argument
@files_argument
@conf_options
@click.option(
    "--on",
    metavar="SQL",
    required=True,
    help='When rows belong together: "target.id = source.id".',
)
@click.option("--delete", metavar="SQL", help="Delete the rows that match where this is true.")
@click.option("--no-update", is_flag=True, help="Leave the other rows that match as they are.")
@click.option("--no-insert", is_flag=True, help="Insert no row that matches nothing.")
@click.option("--evolve", is_flag=True, help="Add the columns that only the files have.")
@format_option
@note_option
@json_option
def command(
    uri: str,
    files: tuple[Path, ...],
    conf: dict[str, str],
    on: str,
    delete: str | None,
    no_update: bool,
    no_insert: bool,
    evolve: bool,
    form: str | None,
    note: str | None,
    as_json: bool,
) -> None:
    """Merge the rows of one or more FILEs into the table URI, in one commit.

    Rows that match get the values of the files, and the others are inserted, all columns by name.
    Conditions are SQL over `target` and `source`.
    """
    from lakelog.core import merge

    if no_update and no_insert and delete is None:
        raise click.UsageError("Nothing is left to do: give --delete, or one of the others less.")
    scrubber = Scrubber(conf)
    log = open_log(uri, conf)
    rows = rows_of(files, form, opened(log, None, None).schema)
    with progress() as tell:
        job = merge(
            log,
            rows,
            on,
            with_schema_evolution=evolve,
            user_metadata=note,
            progress=saying(tell),
        )
        if delete is not None:
            job = job.when_matched_delete(delete)
        if not no_update:
            job = job.when_matched_update_all()
        if not no_insert:
            job = job.when_not_matched_insert_all()
        done = job.execute()
    found = scrubber.data(
        {"table": log.table, "version": done.version, "metrics": dict(done.metrics)}
    )
    if as_json:
        print_json(found)
        return
    heading(found["table"])
    facts([(name, f"{count:,}") for name, count in found["metrics"].items() if "Rows" in name])
    if done.version is None:
        line("Nothing was committed: no row is concerned.")
    else:
        line(f"Merged by version {done.version}.", "green")
