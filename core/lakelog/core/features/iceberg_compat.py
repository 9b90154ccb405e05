"""What a table promises to clients that read it as Iceberg (PROTOCOL.md, "Iceberg Compatibility").

Versions 1 and 2 ask nearly the same of a writer: columns are mapped, partition columns are in the
files too, each file says how many rows it has, no rows are deleted by vectors. Version 1 has no
arrays and maps; version 2 has them, with field ids for their parts.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.table_properties import ICEBERG_COMPAT, TableProperties
from lakelog.core.schema import ArrayType, DataType, MapType, PrimitiveType, StructType
from lakelog.core.schema.column_paths import dotted, map_types, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakelog.core.actions import AddFile, Metadata

_MODE = "delta.columnMapping.mode"
_WIDENINGS = {("byte", "short"), ("byte", "integer"), ("short", "integer")} | {
    ("byte", "long"),
    ("short", "long"),
    ("integer", "long"),
    ("float", "double"),
}


def with_compat_defaults(metadata: Metadata) -> Metadata:
    """The metadata of a new table, which maps columns by name unless it sets another mode."""
    if _properties(metadata).iceberg_compat is None or _MODE in metadata.configuration:
        return metadata
    return replace(metadata, configuration={**metadata.configuration, _MODE: "name"})


def check_compat_metadata(
    old: Metadata | None, new: Metadata, has_files: Callable[[], bool]
) -> None:
    """Refuse metadata that breaks the promise.

    Args:
        old: the current metadata; None for a new table.
        new: the new metadata.
        has_files: whether earlier files stay in the table; called only where it matters.

    Raises:
        DeltaAnalysisError: the first rule that is broken.
    """
    properties = _properties(new)
    version = properties.iceberg_compat
    if version is None:
        return
    if properties.column_mapping_mode == "none":
        raise _violation(
            version, "WRONG_REQUIRED_TABLE_PROPERTY", f"Set {_MODE} to name; it is not set."
        )
    if properties.get("delta.enableDeletionVectors"):
        raise _violation(
            version,
            "DELETION_VECTORS_SHOULD_BE_DISABLED",
            "Set delta.enableDeletionVectors to false: Iceberg can't read Delta's.",
        )
    _check_types(StructType.from_json(new.schema_string), version)
    if old is None:
        return
    before = _properties(old).iceberg_compat
    if before != version and has_files():
        raise _violation(
            version,
            "FILES_NOT_ICEBERG_COMPAT",
            "The table's files were not written for it. Write the rows to a new table with "
            f"{ICEBERG_COMPAT[version]}=true, or rewrite them with delta-spark: REORG TABLE … "
            f"APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION={version})).",
        )
    was, will_be = list(old.partition_columns), list(new.partition_columns)
    if before == version and was and will_be and was != will_be:
        raise _violation(
            version,
            "REPLACE_TABLE_CHANGE_PARTITION_NAMES",
            f"The table is partitioned by {was} and can't become partitioned by {will_be}.",
        )


def _properties(metadata: Metadata) -> TableProperties:
    return TableProperties(metadata.configuration)


def _check_types(schema: StructType, version: int) -> None:
    for path, field in walk(schema):
        nested = version == 1 and isinstance(field.data_type, ArrayType | MapType)
        if nested or _holds_void(field.data_type):
            raise _violation(
                version,
                "UNSUPPORTED_DATA_TYPE",
                f"The column {dotted(path)} has the type {field.data_type}, which it does not "
                "support. Leave the column out"
                + (f", or use {ICEBERG_COMPAT[2]}." if nested else "."),
            )
        for change in field.metadata.get("delta.typeChanges", ()):
            pair = str(change.get("fromType")), str(change.get("toType"))
            decimals = all(each.startswith("decimal") for each in pair)
            if pair not in _WIDENINGS and not (decimals and _scale(pair[0]) == _scale(pair[1])):
                raise _violation(
                    version,
                    "UNSUPPORTED_TYPE_WIDENING",
                    f"The column {dotted(path)} was widened from {pair[0]} to {pair[1]}, which "
                    "Iceberg does not support.",
                )


def _scale(decimal: str) -> str:
    return decimal.rstrip(")").rpartition(",")[2].strip()


def _holds_void(kind: DataType) -> bool:
    found = []

    def note(part: DataType) -> DataType:
        found.append(part == PrimitiveType("void"))
        return part

    map_types(kind, note)
    return any(found)


def check_compat_files(adds: Iterable[AddFile], version: int, table: str) -> None:
    """Refuse files that break the promise.

    Args:
        adds: the files.
        version: of IcebergCompat.
        table: for messages.

    Raises:
        DeltaAnalysisError: a file with a deletion vector, or one that does not say how many rows
            it has.
    """
    for add in adds:
        if add.deletion_vector is not None:
            raise _violation(
                version,
                "DELETION_VECTORS_SHOULD_BE_DISABLED",
                f"{table}: the file {add.path} has a deletion vector; rewrite its rows instead.",
            )
        if add.num_records is None:
            raise _violation(
                version,
                "FILES_NOT_ICEBERG_COMPAT",
                f"{table}: the file {add.path} does not say how many rows it has. Set "
                "spark.databricks.delta.stats.collect to true.",
            )


def _violation(version: int, rule: str, what: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"[DELTA_ICEBERG_COMPAT_VIOLATION.{rule}] The validation of IcebergCompatV{version} has "
        f"failed. {what}",
        version=version,
    )
