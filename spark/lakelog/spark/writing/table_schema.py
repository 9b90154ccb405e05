"""What a write does to the schema, partitioning and properties of its table."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions import Metadata
from lakelog.core.engine.schemas import check_write_compatible, merge_schemas
from lakelog.core.engine.tables import reused_mapping
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core import OptimisticTransaction, Snapshot
    from lakelog.spark.writing.options import WriteOptions


def apply_schema(
    txn: OptimisticTransaction,
    table: str,
    data: StructType,
    options: WriteOptions,
    planned: StructType | None = None,
) -> None:
    """Make the transaction's metadata fit the data, or refuse.

    Args:
        txn: the transaction; its metadata changes where the options allow that.
        table: the table's URI.
        data: the schema of the rows to come.
        options: the caller's.
        planned: the schema that files were written for; new columns get its ids and physical
            names where the table maps columns.

    Raises:
        SchemaMismatchError: data and table differ, and nothing allows the table to change.
        DeltaAnalysisError: another partitioning than the table's, a bad schema, or a schema
            change together with `dataChange=false`.
    """
    _check_unique(data)
    if txn.snapshot is None:
        _require_data_change(table, options, "creates a table")
        new = _new_metadata(table, data, options)
        txn.changes.update_metadata_for_new_table(_as_planned(new, planned))
        return
    replaces = options.mode == "overwrite" and options.overwrite_schema
    changed = (_replaced if replaces else _merged)(txn.snapshot, table, data, options)
    if changed != txn.snapshot.metadata:
        _require_data_change(table, options, "changes the schema")
        txn.update_metadata(_as_planned(changed, planned))


def _as_planned(metadata: Metadata, planned: StructType | None) -> Metadata:
    if planned is None:
        return metadata
    schema = reused_mapping(StructType.from_json(metadata.schema_string), planned)
    return replace(metadata, schema_string=schema.to_json())


def _check_unique(data: StructType) -> None:
    seen: dict[str, str] = {}
    for name in data.names:
        before = seen.setdefault(name.lower(), name)
        if before is not name:
            raise DeltaAnalysisError(
                f"the data has two columns of one name, {before} and {name}; column names are "
                "compared ignoring case. Rename or drop one of them.",
                column=name,
            )


def _require_data_change(table: str, options: WriteOptions, what: str) -> None:
    if not options.data_change:
        raise DeltaAnalysisError(
            f"[DELTA_DATA_CHANGE_FALSE] this write to {table} {what}, so it can't have the option "
            "dataChange=false, which means that no row changes",
            table=table,
        )


def _new_metadata(table: str, data: StructType, options: WriteOptions) -> Metadata:
    return Metadata(
        id=str(uuid.uuid4()),
        schema_string=data.to_json(),
        partition_columns=_as_in_schema(table, data, options.partition_by or ()),
        configuration=dict(options.properties),
    )


def _replaced(snapshot: Snapshot, table: str, data: StructType, options: WriteOptions) -> Metadata:
    """Schema and partitioning of the data in place of the table's; its id and properties stay."""
    old = snapshot.metadata
    data = reused_mapping(data, snapshot.read_schema)
    partitions = _as_in_schema(table, data, options.partition_by or ())
    same = data.to_json() == snapshot.schema.to_json()
    if same and (options.partition_by is None or partitions == list(old.partition_columns)):
        return old
    return replace(old, schema_string=data.to_json(), partition_columns=partitions)


def _merged(snapshot: Snapshot, table: str, data: StructType, options: WriteOptions) -> Metadata:
    """The table's own metadata, with the columns added that `mergeSchema` lets in."""
    old = snapshot.metadata
    if options.partition_by is not None:
        given = [name.lower() for name in options.partition_by]
        if given != [name.lower() for name in old.partition_columns]:
            raise DeltaAnalysisError(
                f"the table {table} is partitioned by {_listed(old.partition_columns)}, but the "
                f"write asks for {_listed(options.partition_by)}. Leave partitionBy out, or "
                "overwrite the table with the option overwriteSchema=true.",
                table=table,
                expected=list(old.partition_columns),
                given=list(options.partition_by),
            )
    if not options.merge_schema:
        check_write_compatible(snapshot.schema, data)
        return old
    widens = snapshot.properties.type_widening
    merged = merge_schemas(snapshot.schema, data, allow_type_widening=widens)
    # The check may refuse what merging allows, such as a missing NOT NULL column.
    check_write_compatible(merged, data)
    if merged == snapshot.schema:
        return old
    return replace(old, schema_string=merged.to_json())


def _as_in_schema(table: str, data: StructType, names: Sequence[str]) -> list[str]:
    """The partition columns as the schema spells them."""
    spelled = []
    for name in names:
        found = data.get(name)
        if found is None:
            raise DeltaAnalysisError(
                f"the partition column {name} of {table} is not one of the data's columns "
                f"{_listed(data.names)}",
                table=table,
                column=name,
            )
        spelled.append(found.name)
    return spelled


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no column"
