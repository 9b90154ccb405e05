"""`lakelog update <uri>`: give columns new values in the rows that match a condition."""

from __future__ import annotations

import re
from typing import Final

import click

from lakelog.cli.confirmation import yes_option
from lakelog.cli.row_changes.change import Change, attempts_option, note_option, run
from lakelog.cli.shared_options import conf_options, json_option, uri_argument

_ASSIGNMENT: Final = re.compile(r"\s*((?:`(?:[^`]|``)+`|[^=`])+?)\s*=(.*)", re.DOTALL)
_QUOTED: Final = re.compile(r"`((?:[^`.]|``)+)`")


@click.command(short_help="Give columns new values in the rows that match.")
@uri_argument
@conf_options
@click.option(
    "--set",
    "new_values",
    metavar="COLUMN=SQL",
    multiple=True,
    required=True,
    help='A column\'s new value, over the old row: "late=delay > 15", "name=\'x\'". '
    "May be repeated.",
)
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
    new_values: tuple[str, ...],
    where: str | None,
    note: str | None,
    attempts: int,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Give columns of the table URI new values in the rows that match a condition, in one commit.

    The new values are SQL over the columns of the old row, so a string needs quotes of its own,
    inside those of the shell: --set "name='x'". They are cast to the column's type as in Spark, and
    the table's constraints hold. Without --where every row is updated: that is asked for on a
    terminal, and needs --yes elsewhere.
    """
    change = Change("update", where, assignments(new_values), note, dry_run, yes, attempts)
    run(uri, conf, change, as_json=as_json)


def assignments(pairs: tuple[str, ...]) -> dict[str, str]:
    """Column -> SQL.

    Args:
        pairs: `COLUMN=SQL`; a column with `=` or a dot in its name goes in backticks, a field of a
            struct is `struct.field`.

    Raises:
        click.UsageError: one is not of that form, or names a column again.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        match = _ASSIGNMENT.fullmatch(pair)
        if match is None or not match[2].strip():
            raise click.UsageError(f"--set {pair!r} is not COLUMN=SQL.")
        quoted = _QUOTED.fullmatch(match[1])
        name = quoted[1].replace("``", "`") if quoted else match[1]
        if name in found:
            raise click.UsageError(f"--set gives the column {name} two values.")
        found[name] = match[2].strip()
    return found
