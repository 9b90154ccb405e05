"""`lakelog drop <name>`: remove a table from its catalog."""

from __future__ import annotations

import click

from lakelog.cli.confirmation import confirm, yes_option
from lakelog.cli.output import line, print_json
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option


@click.command(short_help="Remove a table from its catalog.")
@click.argument("name")
@conf_options
@click.option("--if-exists", is_flag=True, help="It is fine if there is none.")
@yes_option
@json_option
def command(name: str, conf: dict[str, str], if_exists: bool, yes: bool, as_json: bool) -> None:
    """Remove the table NAME, catalog.schema.table, from its catalog, for good.

    What becomes of its files is the catalog's business.
    """
    from lakelog.core import drop_table

    scrubber = Scrubber(conf)
    if not yes:
        confirm(f"Drop {scrubber.text(name)}?")
    done = drop_table(name, if_exists=if_exists, conf=conf)
    found = scrubber.data({"table": name, "dropped": done})
    if as_json:
        print_json(found)
        return
    line(f"Dropped {found['table']}." if done else f"There is no table {found['table']}.", "green")
