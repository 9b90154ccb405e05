"""`lakelog clone <uri> <target>`: make a table of another one, as it is or was."""

from __future__ import annotations

import click

from lakelog.cli.output import facts, heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import (
    given_table,
    open_log,
    refuse_both,
    saying,
    version_options,
)


@click.command(short_help="Make a table of another one, with or without its files.")
@uri_argument
@click.argument("target")
@conf_options
@version_options
@click.option("--deep", is_flag=True, help="Copy the data files; else the new table names them.")
@click.option("--replace", is_flag=True, help="Replace the table TARGET, which must have no rows.")
@json_option
def command(
    uri: str,
    target: str,
    conf: dict[str, str],
    version: int | None,
    timestamp: str | None,
    deep: bool,
    replace: bool,
    as_json: bool,
) -> None:
    """Make the table TARGET with the schema, the properties and the rows of the table URI.

    Without --deep it is a shallow clone: its files are those of URI, which must stay.
    """
    from lakelog.core import clone

    refuse_both(version, timestamp)
    scrubber = Scrubber(conf)
    log = open_log(uri, conf)
    with progress() as tell:
        done = clone(
            log,
            given_table(target, conf),
            version,
            timestamp,
            shallow=not deep,
            replace_target=replace,
            conf=conf,
            progress=saying(tell),
        )
    found = scrubber.data(
        {
            "source": log.table,
            "source_version": done.source_version,
            "target": given_table(target, conf),
            "version": done.version,
            "metrics": dict(done.metrics),
        }
    )
    if as_json:
        print_json(found)
        return
    heading(f"{found['source']}, version {found['source_version']}")
    facts([(name, f"{count:,}") for name, count in found["metrics"].items()])
    line(f"Cloned to {found['target']} as version {found['version']}.", "green")
