"""Names that users of other libraries try first, and what to write here."""

from __future__ import annotations

import importlib
from typing import NoReturn

PUBLIC = tuple(f"lakelog.core.{name}" for name in ("errors", "actions", "schema", "alter", "hooks"))
"""The modules with public names that `lakelog.core` itself does not have."""

MODULE = {
    "DeltaTable": "DeltaLog.for_table(uri) for the log and its versions, scan(uri) for rows, "
    "delete_rows, update_rows and merge to change them; beside Spark: "
    "from lakelog.spark import DeltaTable",
    "Field": "StructField, from lakelog.core.schema",
    "QueryBuilder": "scan(uri).to_duckdb()",
    "Schema": "StructType, from lakelog.core.schema",
    "Table": "DeltaLog.for_table(uri), or scan(uri) for rows",
    "Transaction": "DeltaLog.for_table(uri).start_transaction()",
    "convert_to_deltalake": "convert_to_delta(uri)",
    "delete": 'delete_rows(uri, where="…")',
    "read": "read_arrow(uri), or scan(uri)",
    "read_delta": "read_arrow(uri), or scan(uri).to_polars()",
    "read_deltalake": "read_arrow(uri), or scan(uri).to_pandas()",
    "read_pandas": "scan(uri).to_pandas()",
    "read_polars": "scan(uri).to_polars()",
    "scan_delta": "scan(uri).to_polars(lazy=True)",
    "to_pandas": "scan(uri).to_pandas()",
    "update": "update_rows(uri, {column: value}, where)",
    "write": 'write_arrow(uri, rows, mode="append")',
    "write_delta": 'write_arrow(uri, rows, mode="append")',
    "write_deltalake": 'write_arrow(uri, rows, mode="append")',
    "write_pandas": 'write_arrow(uri, frame, mode="append")',
    "write_to_deltalake": 'write_arrow(uri, rows, mode="append")',
}
"""Of `lakelog.core`."""

LOG = {
    "create_checkpoint": "log.checkpoint()",
    "delete": 'delete_rows(log, "…")',
    "files": "log.snapshot.files()",
    "load_as_version": "log.snapshot_at(version)",
    "load_cdf": "table_changes(log, starting_version)",
    "merge": 'merge(log, rows, "target.id = source.id")',
    "metadata": "log.snapshot.metadata",
    "optimize": "optimize(log)",
    "protocol": "log.snapshot.protocol",
    "repair": "repair(log)",
    "restore": "restore(log, version)",
    "schema": "log.snapshot.schema",
    "vacuum": "vacuum(log)",
    "version": "log.snapshot.version",
}
"""Of a `DeltaLog`, which others' tables have as methods; functions are those of `lakelog.core`."""

SNAPSHOT = {
    "count": "snapshot.scan().count()",
    "file_uris": "snapshot.files()",
    "get_add_actions": "snapshot.file_table",
    "head": "snapshot.scan().head()",
    "history": "DeltaLog.for_table(uri).history()",
    "limit": "snapshot.scan().limit(5)",
    "to_duckdb": "snapshot.scan().to_duckdb()",
    "to_pandas": "snapshot.scan().to_pandas()",
    "to_polars": "snapshot.scan().to_polars()",
    "to_pyarrow_dataset": "snapshot.scan().to_pyarrow_dataset()",
    "to_pyarrow_table": "snapshot.to_arrow()",
    "to_table": "snapshot.to_arrow()",
}
"""Of a `Snapshot`; of a `DeltaLog` they are its snapshot's."""


def home_of(name: str, asked: str) -> str | None:
    """The import to write for a public name of the core that another module has."""
    for home in ("lakelog.core", *PUBLIC):
        if home != asked and name in importlib.import_module(home).__all__:
            return f"from {home} import {name}"
    return None


def refuse_name(owner: str, name: str, instead: str | None) -> NoReturn:
    """Say that an attribute is not there, and what to write.

    Args:
        owner: has no such attribute, as Python's own message says it.
        name: was asked for.
        instead: what to write; `None` if there is nothing.

    Raises:
        AttributeError: always.
    """
    hint = "" if instead is None else f". Write {instead}"
    raise AttributeError(f"{owner} has no attribute {name!r}{hint}")
