"""`lakelog append <uri>`: append the JSON lines of stdin to a table, as they come."""

from __future__ import annotations

from typing import Any

import click

from lakelog.cli.output import heading, line, print_json
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log


@click.command(short_help="Append JSON lines from stdin, each exactly once.")
@uri_argument
@conf_options
@click.option(
    "--app-id", required=True, help="Who appends: by it the table knows what it has already."
)
@click.option(
    "--seq-field",
    metavar="COLUMN",
    help="The number of a line, larger in each line. Default: the number of the line, from 0.",
)
@click.option("--every", default="1s", show_default=True, help="The longest wait of a line.")
@click.option(
    "--save-every",
    help="The longest wait of a line until it is saved beside the table, where it is safe.",
)
@click.option(
    "--dead-letter",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Where lines go that are no JSON or don't fit the table; without it they end the command.",
)
@click.option(
    "--compact", is_flag=True, help="Put the small files of appenders together as they come."
)
@click.option(
    "--schema-mode", type=click.Choice(["merge"]), help="Add the columns that only lines have."
)
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    app_id: str,
    seq_field: str | None,
    every: str,
    save_every: str | None,
    dead_letter: str | None,
    compact: bool,
    schema_mode: Any,
    as_json: bool,
) -> None:
    """Append the lines of JSON that come on stdin to the table URI, until stdin ends.

    Lines that the table has already are left out: after a crash, send them again from the start,
    or from wherever is before the last one that arrived.
    """
    from lakelog.cli.json_lines import JsonLines, stdin_lines
    from lakelog.core import appender

    scrubber = Scrubber(conf)
    log = open_log(uri, conf)
    opened = appender(
        log,
        app_id=app_id,
        every=every,
        save_every=save_every,
        dead_letter=dead_letter,
        compact=compact,
        schema_mode=schema_mode,
    )
    lines = JsonLines(opened, log.snapshot.schema, seq_field, puts_aside=dead_letter is not None)
    with lines.named(), opened as a:
        for each in stdin_lines():
            lines.append(each)
    done = a.metrics
    found = scrubber.data(
        {
            "table": log.table,
            "lines": lines.count,
            "appended": done.rows,
            "already_there": lines.there_already,
            "rejected": done.rejected,
            "commits": done.commits,
            "last_seq": a.last_seq,
        }
    )
    if as_json:
        print_json(found)
        return
    heading(found["table"])
    line(
        f"Appended {done.rows} of {lines.count} lines in {done.commits} commits; "
        f"{lines.there_already} were there already, {done.rejected} did not fit. The last number "
        f"is {a.last_seq}.",
        "green",
    )
