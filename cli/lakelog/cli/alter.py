"""`lakelog alter <uri>`: change a table's columns, constraints and clustering."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.output import heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core import DeltaLog


@click.command(short_help="Change columns, constraints and clustering.")
@uri_argument
@conf_options
@click.option("--drop-constraint", metavar="NAME", multiple=True, help="Drop a CHECK.")
@click.option("--drop", metavar="COLUMN", multiple=True, help="Drop a column.")
@click.option("--rename", metavar="OLD=NEW", multiple=True, help="Rename a column.")
@click.option("--type", "types", metavar="COLUMN=TYPE", multiple=True, help="Widen a column.")
@click.option(
    "--add", metavar="COLUMNS", multiple=True, help="Add columns: \"x bigint COMMENT 'a'\"."
)
@click.option("--add-constraint", metavar="NAME=SQL", multiple=True, help="Add a CHECK.")
@click.option("--cluster-by", metavar="COLUMN", multiple=True, help="Cluster by these columns.")
@json_option
def command(uri: str, conf: dict[str, str], as_json: bool, **asked: tuple[str, ...]) -> None:
    """Change the table URI: its columns, its constraints, what it is clustered by.

    All options but --cluster-by may be repeated. What they ask for is done in the order in which
    they stand here, each by a commit of its own: those before one that fails have been made.
    """
    scrubber = Scrubber(conf)
    log = open_log(uri, conf)
    steps = list(_steps(log, asked))
    if not steps:
        raise click.UsageError("Give at least one change, such as --add.")
    done = []
    with progress() as tell:
        for text, change in steps:
            tell(text)
            done.append({"change": text, "version": change()})
    found = scrubber.data({"table": log.table, "changes": done})
    if as_json:
        print_json(found)
        return
    heading(found["table"])
    for each in found["changes"]:
        line(f"version {each['version']}: {each['change']}", "green")


def _steps(
    log: DeltaLog, asked: dict[str, tuple[str, ...]]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is to be done, as text, and what does it."""
    from lakelog.core import alter

    for name in asked["drop_constraint"]:
        yield f"drop constraint {name}", partial(alter.drop_constraint, log, name)
    for name in asked["drop"]:
        yield f"drop {name}", partial(alter.drop_columns, log, [name])
    for old, new in _pairs("--rename", asked["rename"]):
        yield f"rename {old} to {new}", partial(alter.rename_column, log, old, new)
    for name, kind in _pairs("--type", asked["types"]):
        yield f"change {name} to {kind}", partial(alter.change_column, log, name, data_type=kind)
    for columns in asked["add"]:
        yield f"add {columns}", partial(alter.add_columns, log, columns)
    for name, sql in _pairs("--add-constraint", asked["add_constraint"]):
        yield f"add constraint {name} ({sql})", partial(alter.add_constraint, log, name, sql)
    if names := list(asked["cluster_by"]):
        yield f"cluster by {', '.join(names)}", partial(alter.cluster_by, log, names)


def _pairs(option: str, given: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise click.UsageError(f"{option} {each!r} has no = between two names.")
        yield name.strip(), value.strip()
