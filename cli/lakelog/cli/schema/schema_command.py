"""`lakelog schema <uri>`: the columns of a version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.output import heading, line, print_json, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import looked_at, open_log, version_options

if TYPE_CHECKING:
    from lakelog.core import Snapshot


@click.command(short_help="The columns of a table, as a tree, as SQL or as JSON.")
@uri_argument
@conf_options
@version_options
@click.option("--sql", is_flag=True, help="The CREATE TABLE statement that makes such a table.")
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    version: int | None,
    timestamp: str | None,
    sql: bool,
    as_json: bool,
) -> None:
    """Show the columns of the table URI: types, NOT NULL, defaults, generation and comments.

    Reads no list of files. Also works on tables that lakelog can't read.
    """
    if sql and as_json:
        raise click.UsageError("Give --sql or --json, not both.")
    scrubber = Scrubber(conf)
    snapshot = looked_at(open_log(uri, conf), version, timestamp)
    if sql:
        line(scrubber.text(_statement(snapshot)))
        return
    found = _document(snapshot)
    if as_json:
        print_json(scrubber.data(found))
    else:
        _print(snapshot, found, scrubber)


def _document(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "table": snapshot.table,
        "version": snapshot.version,
        "schema": snapshot.schema.json_value(),
        "partition_columns": snapshot.partition_columns,
        "clustering_columns": _clustering(snapshot),
        "column_mapping": snapshot.terms.column_mapping_mode,
    }


def _clustering(snapshot: Snapshot) -> list[list[str]]:
    """The paths of the clustering columns, as users name them."""
    from lakelog.core.engine.commit import clustering_columns
    from lakelog.core.engine.schemas import physical_path, walk

    schema = snapshot.read_schema
    named = {physical_path(schema, path): path for path, _ in walk(schema, containers=False)}
    found = clustering_columns(snapshot.domain_metadata)
    return [list(named.get(path, path)) for path in found]


def _statement(snapshot: Snapshot) -> str:
    from lakelog.cli.schema.create_statement import create_table_sql
    from lakelog.core.engine.tables import KEPT_BY_THE_TABLE

    metadata = snapshot.metadata
    own = {k: v for k, v in metadata.configuration.items() if k not in KEPT_BY_THE_TABLE}
    return create_table_sql(
        snapshot.table,
        snapshot.schema,
        partition_columns=snapshot.partition_columns,
        clustering_columns=_clustering(snapshot),
        properties=own,
        comment=metadata.description,
    )


def _print(snapshot: Snapshot, found: dict[str, Any], scrubber: Scrubber) -> None:
    from lakelog.cli.describe.schema_tree import schema_tree
    from lakelog.core.engine.schemas import dotted

    heading(scrubber.text(f"{found['table']}, version {found['version']}"))
    rows = schema_tree(snapshot.schema, found["partition_columns"])
    if rows:
        table(("Column", "Type", "", ""), scrubber.data(rows))
    else:
        line("  no columns")
    if found["clustering_columns"]:
        line(f"Clustered by {', '.join(map(dotted, found['clustering_columns']))}.")
    if found["column_mapping"] != "none":
        line(f"Files know the columns by {found['column_mapping']} (column mapping).")
