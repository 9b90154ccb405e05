"""What metadata must be before a table gets it (delta: `verifyNewMetadata`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from lakelog.core import keys
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.metadata.change_data_feed import perform_cdc_metadata_check
from lakelog.core.metadata.dependent_columns import check_dependent_columns
from lakelog.core.metadata.fill_declarations import check_filled_columns
from lakelog.core.schema import ArrayType, DataType, MapType, StructField, StructType
from lakelog.core.schema.char_varchar import stored_as_string
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.parts import parts_of, with_parts
from lakelog.core.schema.rules import as_nullable, check_schema
from lakelog.core.schema.types import is_interval, is_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakelog.core.actions import Metadata
    from lakelog.core.conf import DeltaConf

_Leaf: TypeAlias = tuple[tuple[str, ...], DataType]
"""A column, and its type."""

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


def schema_of(metadata: Metadata) -> StructType:
    """The schema of metadata that a caller gave.

    Raises:
        DeltaAnalysisError: its text is not a schema.
    """
    try:
        return StructType.from_json(metadata.schema_string)
    except ValueError as exc:
        raise DeltaAnalysisError(
            f"[DELTA_UNSUPPORTED_DATA_TYPES] the schema can't be read: {exc}"
        ) from exc


def storable(old: Metadata | None, new: Metadata, conf: DeltaConf) -> Metadata:
    """The metadata with the schema in the form in which a table keeps it.

    `char(n)` and `varchar(n)` become marked strings, whose length every write has to keep. A schema
    that does not change is left alone: another client may have its reasons.

    Args:
        old: as it is; `None` for a new table.
        new: as the caller gives it.
        conf: may allow NOT NULL constraints that can't be enforced to be left out.

    Raises:
        DeltaAnalysisError: NOT NULL within an array or a map, or text that is not a schema.
    """
    text = stored_as_string(new.schema_string)
    if text != new.schema_string:
        new = replace(new, schema_string=text)
    schema = schema_of(new)
    if old is not None and old.schema_string == new.schema_string:
        return new
    kept = enforceable(schema, conf)
    return new if kept == schema else replace(new, schema_string=kept.to_json())


def verify_new_metadata(old: Metadata | None, new: Metadata, conf: DeltaConf) -> None:
    """Refuse metadata that a table can't have.

    In this order: names that differ in nothing but case, nested ones too; characters that only
    column mapping allows; types; partition columns; new types that clients may not know; the names
    of the change data feed; columns that a CHECK constraint or a generated column refers to;
    columns that writers fill; columns with statistics; properties that exclude each other.

    Args:
        old: as it is; `None` for a new table, or for one that is replaced as a whole.
        new: as it will be, without `delta.feature.*` and the like.
        conf: `tablePropertyConstraintsCheck.enabled=false` leaves the last check out.

    Raises:
        DeltaAnalysisError: the first rule that is broken, with the columns or the properties.
    """
    schema, properties = schema_of(new), TableProperties(new.configuration)
    check_schema(
        schema,
        new.partition_columns,
        column_mapping=properties.column_mapping_mode != "none",
    )
    before = (schema_of(old), TableProperties(old.configuration)) if old is not None else None
    _check_new_types(schema, before[0] if before else StructType(), conf)
    perform_cdc_metadata_check(before[1] if before else None, properties, schema.names)
    check_dependent_columns(before, (schema, properties))
    context = EvalContext.of(conf, now_ms=0)
    check_filled_columns(schema, new.partition_columns, before[0] if before else None, context)
    if old is None or old.configuration.get(_STATS_COLUMNS) != new.configuration.get(
        _STATS_COLUMNS
    ):
        _check_stats_columns(schema, new.partition_columns, properties)
    if conf.read(keys.CONSTRAINT_PROPERTIES):
        _check_together(properties)


def _check_new_types(schema: StructType, before: StructType, conf: DeltaConf) -> None:
    """Refuse types that a table did not have: unknown ones, and those that no feature announces."""
    known = set(_leaf_types(before, ()))
    new = [each for each in _leaf_types(schema, ()) if each not in known]
    strange = {dotted(path): str(kind) for path, kind in new if not is_known(kind)}
    if strange:
        raise _unsupported_types(strange, "This version of lakelog does not know them")
    intervals = {dotted(path): str(kind) for path, kind in new if is_interval(kind)}
    is_checked = conf.read(keys.TYPE_CHECK)
    if intervals and is_checked:
        raise _unsupported_types(
            intervals,
            "Clients that don't know intervals could not open the table any more, and no table "
            "feature would say why: store microseconds as bigint, or months as int. To have "
            f"intervals all the same, set {keys.TYPE_CHECK.name}=false",
        )


def _unsupported_types(found: Mapping[str, str], why: str) -> DeltaAnalysisError:
    named = ", ".join(f"{column}: {kind}" for column, kind in found.items())
    return DeltaAnalysisError(
        f"[DELTA_UNSUPPORTED_DATA_TYPES] Found columns using unsupported data types: {named}. "
        f"{why}.",
        columns=list(found),
    )


def _leaf_types(kind: DataType, path: tuple[str, ...]) -> Iterator[_Leaf]:
    if isinstance(kind, StructType):
        for field in kind:
            yield from _leaf_types(field.data_type, (*path, field.name))
    elif parts := parts_of(kind):
        for step, each in parts:
            yield from _leaf_types(each, (*path, step))
    else:
        yield path, kind


def _check_stats_columns(
    schema: StructType, partition_columns: list[str], properties: TableProperties
) -> None:
    paths = properties.stats_columns or []
    lowered = [tuple(part.lower() for part in path) for path in paths]
    twice = sorted(dotted(path) for path, count in Counter(lowered).items() if count > 1)
    if twice:
        raise DeltaAnalysisError(
            f"[DELTA_DUPLICATE_DATA_SKIPPING_COLUMNS] {_STATS_COLUMNS} names {', '.join(twice)} "
            "more than once. Name each column once.",
            columns=twice,
        )
    partitions = {name.lower() for name in partition_columns}
    for path, lower in zip(paths, lowered, strict=True):
        name = dotted(path)
        found = _find(schema, path)
        if found is None:
            known = ", ".join(schema.names)
            raise DeltaAnalysisError(
                f"[DELTA_COLUMN_NOT_FOUND_IN_SCHEMA] {_STATS_COLUMNS} names the column {name}, "
                f"which the table does not have. It has {known}.",
                column=name,
            )
        if len(path) == 1 and lower[0] in partitions:
            raise DeltaAnalysisError(
                f"[DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_PARTITIONED_COLUMN] {_STATS_COLUMNS} "
                f"names the partition column {name}. Files are already found by its value: leave "
                "it out.",
                column=name,
            )
        if isinstance(found, ArrayType | MapType):
            raise DeltaAnalysisError(
                f"[DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE] {_STATS_COLUMNS} names the "
                f"column {name} of type {found}, whose values have no minimum and maximum: leave "
                "it out.",
                column=name,
            )


def _find(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    kind: DataType = schema
    for name in path:
        field = kind.get(name) if isinstance(kind, StructType) else None
        if field is None:
            return None
        kind = field.data_type
    return kind


def _check_together(properties: TableProperties) -> None:
    """Refuse properties that are valid one by one, but not together."""
    manifests = "delta.compatibility.symlinkFormatManifest.enabled"
    if properties.get(manifests) and properties.get("delta.enableDeletionVectors"):
        raise DeltaAnalysisError(
            "[DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED."
            "PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION] "
            f"{manifests} and delta.enableDeletionVectors can't both be true: readers of a "
            "manifest ignore deletion vectors. Set one of them to false.",
            properties=[manifests, "delta.enableDeletionVectors"],
        )


ALLOW = "constraints.allowUnenforcedNotNull.enabled"
"""The conf (under `spark.databricks.delta.`) that lets such constraints be dropped silently."""


def enforceable(schema: StructType, conf: DeltaConf) -> StructType:
    """The schema without any NOT NULL that can't be enforced.

    Whether an array or a map may itself hold nulls is kept: files say that.

    Args:
        schema: as the caller gives it.
        conf: with `ALLOW`, what can't be enforced is dropped instead of refused.

    Raises:
        DeltaAnalysisError: something within an array or a map is NOT NULL; names the column.
    """
    allowed = conf.read(keys.NOT_NULL)
    checked = _checked(schema, (), allowed)
    assert isinstance(checked, StructType)  # a struct stays one
    return checked


def _checked(data_type: DataType, path: tuple[str, ...], allowed: bool) -> DataType:
    if isinstance(data_type, StructType):
        fields = (f.with_type(_checked(f.data_type, (*path, f.name), allowed)) for f in data_type)
        return StructType(tuple(fields))
    parts = parts_of(data_type)
    return with_parts(data_type, [_loose(each, step, path, allowed) for step, each in parts])


def _loose(inner: DataType, part: str, path: tuple[str, ...], allowed: bool) -> DataType:
    loose = as_nullable(StructType((StructField(part, inner),))).fields[0].data_type
    if loose != inner and not allowed:
        raise DeltaAnalysisError(
            f"[DELTA_NESTED_NOT_NULL_CONSTRAINT] The {part} type of the column {dotted(path)} "
            f"({inner}) has a NOT NULL. Delta can't enforce NOT NULL within arrays and maps: make "
            f"it nullable, or set spark.databricks.delta.{ALLOW}=true to have it ignored.",
            column=dotted(path),
        )
    return loose
