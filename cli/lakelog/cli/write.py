"""`lakelog write <uri> <file>...`: write the rows of files to a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.given_files import files_argument, format_option, rows_of
from lakelog.cli.output import heading, line, print_json, progress
from lakelog.cli.row_changes.change import note_option
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log, saying

if TYPE_CHECKING:
    from pathlib import Path


@click.command(short_help="Write the rows of Parquet, CSV or JSON files.")
@uri_argument
@files_argument
@conf_options
@click.option(
    "--mode",
    type=click.Choice(["error", "append", "overwrite", "ignore"]),
    default="error",
    show_default=True,
    help="What to do if the table exists.",
)
@format_option
@click.option(
    "--schema",
    metavar="COLUMNS",
    help='The types of CSV and JSON: "id bigint, s string".',
)
@click.option("--partition-by", metavar="COLUMN", multiple=True, help="May be repeated.")
@click.option("--replace-where", metavar="SQL", help="With overwrite: only the rows that match.")
@click.option(
    "--schema-mode",
    type=click.Choice(["merge", "overwrite"]),
    help="Add the columns that only the files have, or take their schema.",
)
@note_option
@json_option
def command(
    uri: str,
    files: tuple[Path, ...],
    conf: dict[str, str],
    mode: Any,
    form: str | None,
    schema: str | None,
    partition_by: tuple[str, ...],
    replace_where: str | None,
    schema_mode: Any,
    note: str | None,
    as_json: bool,
) -> None:
    """Write the rows of one or more FILEs to the table URI, in one commit; make it if need be.

    The files are read as they are written, so that they may be larger than memory. Columns are
    matched by name. The types of CSV and JSON lines are those of the table, or of --schema; else
    they follow from the values.
    """
    from lakelog.core import write_arrow
    from lakelog.core.engine.tables import schema_from

    scrubber = Scrubber(conf)
    log = open_log(uri, conf, makes=True)
    exists = log.table_exists()
    with progress() as tell:
        known = None if schema is None else schema_from(schema)
        if known is None and exists and schema_mode != "overwrite":
            known = log.update().schema
        rows = rows_of(files, form, known)
        version = write_arrow(
            log,
            rows,
            mode=mode,
            partition_by=list(partition_by) or None,
            replace_where=replace_where,
            schema_mode=schema_mode,
            user_metadata=note,
            progress=saying(tell),
        )
    found = scrubber.data({"table": log.table, "version": version, "mode": mode})
    if as_json:
        print_json(found)
        return
    heading(found["table"])
    line(f"Wrote {len(files)} of {len(files)} files: version {version} holds the rows.", "green")
