"""`lakelog rename <name> <new-name>`: give a table of a catalog another name."""

from __future__ import annotations

import click

from lakelog.cli.output import line, print_json
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option


@click.command(short_help="Give a table of a catalog another name.")
@click.argument("name")
@click.argument("new_name")
@conf_options
@json_option
def command(name: str, new_name: str, conf: dict[str, str], as_json: bool) -> None:
    """Give the table NAME, catalog.schema.table, the name NEW_NAME in its schema.

    What has the table open by its old name can't go on with it.
    """
    from lakelog.core import rename_table

    rename_table(name, new_name, conf=conf)
    found = Scrubber(conf).data({"table": name, "renamed_to": new_name})
    if as_json:
        print_json(found)
        return
    line(f"{found['table']} is {found['renamed_to']} now.", "green")
