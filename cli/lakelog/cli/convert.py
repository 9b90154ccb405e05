"""`lakelog convert <uri>`: make a table of a folder of Parquet files."""

from __future__ import annotations

import click

from lakelog.cli.output import heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log, saying
from lakelog.core.engine.shown import count_text


@click.command(short_help="Make a table of a folder of Parquet files.")
@uri_argument
@conf_options
@click.option(
    "--partition-schema",
    metavar="COLUMNS",
    help='The columns that the folders are named by: "day date, hour int".',
)
@click.option("--no-stats", is_flag=True, help="Read no file's footer for statistics.")
@json_option
def command(
    uri: str, conf: dict[str, str], partition_schema: str | None, no_stats: bool, as_json: bool
) -> None:
    """Make a Delta table of the folder URI of Parquet files, which stay where they are.

    Nothing else may write to the folder meanwhile.
    """
    from lakelog.core import convert_to_delta

    scrubber = Scrubber(conf)
    log = open_log(uri, conf)
    with progress() as tell:
        version = convert_to_delta(
            log, partition_schema, collect_stats=not no_stats, progress=saying(tell)
        )
        files = log.update().num_files
    found = scrubber.data({"table": log.table, "version": version, "files": files})
    if as_json:
        print_json(found)
        return
    heading(found["table"])
    line(f"Converted {count_text(files, 'file')}: the table is at version {version}.", "green")
