"""Whether the rows of an older or newer version fit the columns that a stream has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.table_properties import TableProperties
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import physical_schema
from lakelog.core.schema.diff import differences

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata


def check_same_columns(
    stream: Metadata,
    then: Metadata,
    version: int,
    table: str,
    *,
    past: bool = False,
    start_is_named: bool = False,
) -> None:
    """Refuse a version whose rows the stream's columns can't show.

    Args:
        stream: the metadata that the stream took its columns from when it was started.
        then: the metadata of a version that it comes to.
        version: that version.
        table: the table's URI, for errors.
        past: whether that version is before the one that the stream took its columns from: it
            would take the same ones again, however often it is started.
        start_is_named: whether the options say where the stream begins.

    Raises:
        DeltaAnalysisError: names the columns; says whether a restart is enough.
    """
    found = _blocking(stream, then)
    if not found:
        return
    columns = ", ".join(found)
    if not past and not _blocking(then, stream):
        raise DeltaAnalysisError(
            f"[DELTA_SCHEMA_CHANGED_WITH_VERSION] Detected schema change in version {version} of "
            f"{table}, in {columns}: the stream has the columns that the table had when it was "
            "started. Please try restarting the query, with a new DataFrame.",
            table=table,
            version=version,
            columns=found,
        )
    if past and not (_is_mapped(stream) or _is_mapped(then)):
        kind = "STARTING_OPTIONS" if start_is_named else "VERSION"
        raise DeltaAnalysisError(
            f"[DELTA_SCHEMA_CHANGED_WITH_{kind}] Detected schema change in version {version} of "
            f"{table}, in {columns}: that version is older than the columns of the stream, which "
            "can't show its rows. Start a new query, with another checkpointLocation and a "
            "'startingVersion' or 'startingTimestamp' after the change.",
            table=table,
            version=version,
            columns=found,
        )
    since = "a startingVersion after the change" if past else f"startingVersion={version}"
    raise DeltaAnalysisError(
        "[DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG] Streaming read is not "
        "supported on tables with read-incompatible schema changes (e.g. rename or drop or "
        f"datatype changes): version {version} of {table} differs from the stream in {columns}. "
        "Provide a 'schemaTrackingLocation' to go past them; or start a new query, with another "
        f"checkpointLocation and, for the rows since then, {since}.",
        table=table,
        version=version,
        columns=found,
    )


def _blocking(stream: Metadata, then: Metadata) -> list[str]:
    """The columns of `then` that the stream would lose or misread."""
    now, old = (StructType.from_json(each.schema_string) for each in (stream, then))
    found = [each.path for each in differences(now, old) if each.blocks]
    if _is_mapped(stream) or _is_mapped(then):
        # Names that stay may stand for other columns of the files.
        stored, before = (
            physical_schema(schema) if _is_mapped(each) else schema
            for schema, each in ((now, stream), (old, then))
        )
        found = found or [each.path for each in differences(stored, before) if each.blocks]
    if [*stream.partition_columns] != [*then.partition_columns]:
        found = found or ["the partitioning"]
    return found


def _is_mapped(metadata: Metadata) -> bool:
    return TableProperties(metadata.configuration).column_mapping_mode != "none"
