"""`lakelog sample <uri>`: some rows of a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.output import heading, json_line, line, print_csv, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import limit_option, one_line, open_log, opened, version_options

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core import Snapshot

_LIMIT: Final = 10


@click.command(short_help="Some rows of a table.")
@uri_argument
@conf_options
@version_options
@click.option(
    "--where",
    metavar="SQL",
    help="Only rows for which this is true: \"day >= '2026-01-01'\".",
)
@click.option(
    "--column",
    "columns",
    metavar="NAME",
    multiple=True,
    help="Only this column. May be repeated; they come in the order given.",
)
@limit_option(_LIMIT, "How many rows to show.")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["table", "csv", "jsonl"]),
    default="table",
    show_default=True,
    help="csv has a header; jsonl is one JSON object a line.",
)
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    version: int | None,
    timestamp: str | None,
    where: str | None,
    columns: tuple[str, ...],
    limit: int,
    shape: str,
    as_json: bool,
) -> None:
    """Show some rows of the table URI: the first ones in the order of its log.

    Reads row groups one after another, and stops once there are enough rows. With --where,
    partitions and statistics choose the files first.
    """
    if as_json and shape != "table":
        raise click.UsageError("Give --format or --json, not both.")
    scrubber = Scrubber(conf)
    with progress() as tell:
        tell("reading the log")
        snapshot = opened(open_log(uri, conf), version, timestamp)
        tell("reading rows")
        rows = _rows(snapshot, columns, where, limit)
    name = scrubber.text(snapshot.table)
    if as_json:
        from lakelog.cli.sample.printed_values import json_rows

        print_json(
            {
                "table": name,
                "version": snapshot.version,
                "where": where,
                "columns": rows.column_names,
                "rows": list(json_rows(rows)),
            }
        )
        return
    if shape == "table":
        heading(f"{name}, version {snapshot.version}")
    _print(rows, shape)


def _rows(snapshot: Snapshot, columns: tuple[str, ...], where: str | None, limit: int) -> pa.Table:
    from lakelog.core import Scan

    return Scan(snapshot, columns or None, where).head(limit)


def _print(rows: pa.Table, shape: str) -> None:
    from lakelog.cli.sample.printed_values import json_rows, text_of

    found = json_rows(rows)
    if shape == "jsonl":
        for row in found:
            json_line(row)
    elif shape == "csv":
        print_csv(rows.column_names, ([text_of(v) for v in row.values()] for row in found))
    elif not rows.num_rows:
        line("  no rows")
    else:
        table(rows.column_names, [[_cell(value) for value in row.values()] for row in found])


def _cell(value: Any) -> Any:
    from lakelog.cli.sample.printed_values import text_of

    return ("null", "dim") if value is None else one_line(text_of(value))
