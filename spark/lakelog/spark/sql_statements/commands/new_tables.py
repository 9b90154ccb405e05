"""The tables that CREATE TABLE describes: what is said of one, making it, and its name."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import StructField, StructType

from lakelog.core import DeltaConf, create_table
from lakelog.core.engine.rows import HIGH_WATER_MARK
from lakelog.core.engine.schemas import without_limits
from lakelog.core.engine.tables import MAX_ID, OF_ITS_LOG, shown_columns
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType as CoreStruct
from lakelog.spark.names.placing import exists, is_taken, nothing_to_replace, place_for
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.session import session_conf
from lakelog.spark.sql_statements.queries.named_tables import path_in, place_of
from lakelog.spark.table.delta_table import DeltaTable
from lakelog.spark.table.table_builder import builder
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.writing.options import TableDefinition
from lakelog.spark.writing.save import save_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from lakelog.core import Snapshot
    from lakelog.core.engine.tables import CreateMode
    from lakelog.core.schema import StructField as CoreField
    from lakelog.spark.sql_statements.commands.column_definitions import ColumnDefinition
    from lakelog.spark.sql_statements.commands.context import CommandContext
    from lakelog.spark.sql_statements.queries.named_tables import Place
    from lakelog.spark.sql_statements.text.cursor import Name
    from lakelog.spark.sql_statements.text.statement import Statement

_OPERATIONS: dict[CreateMode, str] = {
    "create": "CREATE TABLE AS SELECT",
    "create_if_not_exists": "CREATE TABLE AS SELECT",
    "replace": "REPLACE TABLE AS SELECT",
    "create_or_replace": "CREATE OR REPLACE TABLE AS SELECT",
}
_DEFAULT = "CURRENT_DEFAULT"
_OF_A_HISTORY = frozenset({"catalogManaged", "checkpointProtection", "clustering"})
"""Features that a new table has no reason for, or gets by its catalog or its CLUSTER BY."""


@dataclass(slots=True)
class NewTable:
    """The table that is to be made, part by part."""

    name: Name
    mode: CreateMode
    columns: list[ColumnDefinition] = field(default_factory=list)
    provider: str | None = None
    partition_by: list[str] = field(default_factory=list)
    cluster_by: list[str] = field(default_factory=list)
    location: str | None = None
    comment: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    query: Statement | None = None

    @property
    def path(self) -> str | None:
        """The folder, if the statement has it."""
        return path_in(self.name.parts) or self.location


def create_empty(s: CommandContext, wanted: NewTable) -> DataFrame:
    """Make a table without rows; or, without columns either, a name for an existing one."""
    schema = _schema(s, wanted)
    keeps = wanted.mode in ("create", "create_if_not_exists")
    names = path_in(wanted.name.parts) is None or not wanted.columns
    if keeps and names and wanted.path is not None and exists(s.spark, wanted.path):
        return _registered(s, wanted, wanted.path, schema)
    with place_for_statement(s, wanted, schema) as (path, mode):
        if path is None:
            return s.nothing()
        made = builder(s.spark, mode, DeltaTable.forPath).location(path)
        for each in wanted.columns:
            _add(s, made, each)
        made.partitionedBy(*wanted.partition_by).clusterBy(*wanted.cluster_by)
        for key, value in wanted.properties.items():
            made.property(key, value)
        if wanted.comment is not None:
            made.comment(wanted.comment)
        made.execute()
    return s.nothing()


def create_as(s: CommandContext, wanted: NewTable) -> DataFrame:
    """Make a table with the rows of a query, in one commit."""
    # The version comes before the rows, so that it is not newer than they are.
    before = _version(s, wanted)
    assert wanted.query is not None
    frame = s.runner.query(s.with_ctes(wanted.query))
    # After the query is planned: one that can't be read takes no name.
    with place_for_statement(s, wanted, to_delta_schema(frame.schema)) as (path, mode):
        if path is None:
            return s.nothing()
        is_there = exists(s.spark, path)
        if mode == "replace" and not is_there:
            raise nothing_to_replace(wanted.name.text)
        if mode == "create_if_not_exists" and is_there:
            return s.nothing()
        definition = TableDefinition(
            operation=_OPERATIONS[mode],
            properties=wanted.properties,
            cluster_by=wanted.cluster_by,
            description=wanted.comment,
            managed=wanted.path is None,
        )
        replaces = mode in ("replace", "create_or_replace")
        save_frame(
            frame,
            path,
            "overwrite" if replaces else "error",
            wanted.partition_by or None,
            {},
            definition,
            before if replaces and s.runner.has_read(path) else None,
        )
    return s.nothing()


def create_like(s: CommandContext, wanted: NewTable, source: Place) -> DataFrame:
    """Make an empty table with the columns, the layout and the properties of another."""
    snapshot = s.log(source).update()
    with place_for_statement(s, wanted, snapshot.schema) as (path, mode):
        if path is None:
            return s.nothing()
        metadata = snapshot.metadata
        create_table(
            session_log(s.spark, path, DeltaConf.from_mapping(session_conf(s.spark)), makes=True),
            CoreStruct(tuple(_uncounted(each) for each in snapshot.schema)),
            mode=mode,
            partition_by=list(metadata.partition_columns),
            cluster_by=shown_columns(snapshot),
            properties={**_like(snapshot), **wanted.properties},
            description=wanted.comment or metadata.description,
        )
    return s.nothing()


def _like(snapshot: Snapshot) -> dict[str, str]:
    """The properties that give a new table those of another, and its features."""
    own = {
        key: value
        for key, value in snapshot.metadata.configuration.items()
        if key not in OF_ITS_LOG and key != MAX_ID
    }
    protocol = snapshot.protocol
    features = {*(protocol.reader_features or ()), *(protocol.writer_features or ())}
    named = {f"delta.feature.{each}": "supported" for each in features - _OF_A_HISTORY}
    return {**own, **named}


def _uncounted(field: CoreField) -> CoreField:
    """A column whose numbers start again."""
    kept = {key: value for key, value in field.metadata.items() if key != HIGH_WATER_MARK}
    return replace(field, metadata=kept)


@contextlib.contextmanager
def place_for_statement(
    s: CommandContext, wanted: NewTable, schema: CoreStruct
) -> Iterator[tuple[str | None, CreateMode]]:
    """The folder for a table to be made, and how; its name goes again if none is made.

    Gives no folder where IF NOT EXISTS finds the name taken.

    Raises:
        TableExistsError: the name is taken.
        TableNotFoundError: REPLACE, and there is no such name.
        DeltaAnalysisError: the name is one of something that is not a Delta table.
    """
    parts = wanted.name.parts
    path = path_in(parts)
    if path is not None:
        yield path, wanted.mode
        return
    if wanted.mode == "create_if_not_exists" and is_taken(s.spark, parts):
        yield None, wanted.mode
        return
    made = place_for(s.spark, parts, schema, wanted.mode, wanted.location, wanted.comment)
    with made as place:
        yield place.location, wanted.mode


def _registered(s: CommandContext, wanted: NewTable, path: str, schema: CoreStruct) -> DataFrame:
    """Name an existing table; the statement's description of it must be true."""
    snapshot = DeltaTable.forPath(s.spark, path).log.snapshot
    if wanted.columns and _shape(schema) != _shape(snapshot.schema):
        raise DeltaAnalysisError(
            "[DELTA_CREATE_TABLE_SCHEME_MISMATCH] The specified schema does not match the existing "
            f"schema at {path}.\n  specified: {schema}\n  existing: {snapshot.schema}\nLeave the "
            "columns out to use those that the table has",
            table=path,
        )
    partitions = [each.lower() for each in snapshot.partition_columns]
    said = wanted.columns or wanted.partition_by
    if said and [each.lower() for each in wanted.partition_by] != partitions:
        raise DeltaAnalysisError(
            "[DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING] The specified partitioning does not "
            f"match the existing partitioning at {path}: {', '.join(partitions) or 'none'}",
            table=path,
        )
    for key, value in wanted.properties.items():
        if snapshot.metadata.configuration.get(key) != value:
            raise DeltaAnalysisError(
                "[DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY] The specified properties do not "
                f"match the existing properties at {path}: {key} is "
                f"{snapshot.metadata.configuration.get(key)!r} there",
                table=path,
            )
    if path_in(wanted.name.parts) is None:
        with place_for_statement(s, wanted, snapshot.schema):
            pass
    elif wanted.mode == "create":
        DeltaTable.create(s.spark).location(path).execute()  # raises: there is one
    return s.nothing()


def _shape(schema: CoreStruct) -> list[tuple[str, str]]:
    return [(each.name.lower(), str(each.data_type)) for each in schema]


def _version(s: CommandContext, wanted: NewTable) -> int | None:
    """The version of the table that is to be replaced; `None` if none is there."""
    place = place_of(s.spark, wanted.name.parts)
    if place is None or wanted.mode not in ("replace", "create_or_replace"):
        return None
    return s.log(place).snapshot.version if exists(s.spark, place.path) else None


def _schema(s: CommandContext, wanted: NewTable) -> CoreStruct:
    """The columns as a catalog shows them."""
    return to_delta_schema(StructType([_field(s, each) for each in wanted.columns]))


def _field(s: CommandContext, column: ColumnDefinition) -> StructField:
    """A column without what is special about it."""
    plain, marks = without_limits(column.kind)
    try:
        kind = s.spark.range(0).selectExpr(f"CAST(NULL AS {plain}) AS c").schema[0].dataType
    except Exception as exc:
        raise s.cursor.error(
            f"[UNSUPPORTED_DATATYPE] {column.kind} is not a column type: {exc}", column.at
        ) from exc
    metadata = marks if column.comment is None else {**marks, "comment": column.comment}
    return StructField(column.path[0], kind, column.nullable, metadata)


def _add(s: CommandContext, made: object, column: ColumnDefinition) -> None:
    from lakelog.spark.table.table_builder import DeltaTableBuilder

    assert isinstance(made, DeltaTableBuilder)
    name, *more = column.path
    if more:
        raise s.cursor.error("[PARSE_SYNTAX_ERROR] The name of a column has one part", column.at)
    if column.default is not None:
        plain = _field(s, column)
        metadata = {**plain.metadata, _DEFAULT: column.default}
        made.addColumns([StructField(plain.name, plain.dataType, plain.nullable, metadata)])
        return
    identity = column.identity
    made.addColumn(
        name,
        column.kind,
        column.nullable,
        generatedAlwaysAs=column.generated if column.by_default or identity is None else identity,
        generatedByDefaultAs=identity if column.by_default else None,
        comment=column.comment,
    )
