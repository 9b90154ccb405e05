"""`DeltaTable.create(spark)…execute()`: a table created column by column, as with delta-spark."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql.types import DataType as SparkDataType
from pyspark.sql.types import StructField as SparkStructField
from pyspark.sql.types import StructType as SparkStructType

from lakelog.core import DeltaConf, create_table
from lakelog.core.engine.rows import default_of, generation_of
from lakelog.core.engine.schemas import without_limits
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import (
    StructField,
    StructType,
    generated_column,
    identity_column,
    type_from_json_value,
)
from lakelog.spark.names.identifiers import parse, path_in
from lakelog.spark.names.placing import place_for
from lakelog.spark.replay.logs import session_log
from lakelog.spark.session.argument_checks import check_session, checked_names, refuse_type
from lakelog.spark.session.session import session_conf
from lakelog.spark.types.spark_types import to_spark_schema
from lakelog.spark.types.type_sql import type_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from lakelog.core import DeltaLog
    from lakelog.core.engine.tables import CreateMode
    from lakelog.core.schema import DataType


@dataclass(frozen=True)
class IdentityGenerator:
    """How an identity column counts: from `start`, by `step`."""

    start: int = 1
    step: int = 1


T = TypeVar("T")


def builder(
    spark: SparkSession | None,
    mode: CreateMode,
    opened: Callable[[SparkSession, str], T],
    named: Callable[[SparkSession, str], T] | None = None,
) -> DeltaTableBuilder[T]:
    """A builder in a session; without one, in the active session.

    Args:
        spark: the session.
        mode: what becomes of a table that is there.
        opened: opens the table that was made, by its path.
        named: opens it by its name, if it has one; default: by its path too.

    Raises:
        DeltaAnalysisError: there is no session.
    """
    from pyspark.sql import SparkSession

    if spark is not None:
        check_session(spark)
    found = spark or SparkSession.getActiveSession()
    if found is None:
        raise DeltaAnalysisError("no active SparkSession: pass one")
    return DeltaTableBuilder(found, mode, opened, named)


class DeltaTableBuilder(Generic[T]):
    """Creates a table from the columns it is given, with delta-spark's methods and arguments.

        (DeltaTable.create(spark)
            .location("/lake/events")
            .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator())
            .addColumn("seen", "TIMESTAMP")
            .addColumn("day", "DATE", generatedAlwaysAs="CAST(seen AS DATE)")
            .partitionedBy("day")
            .execute())

    Nothing happens before `execute`.
    """

    def __init__(
        self,
        spark: SparkSession,
        mode: CreateMode,
        opened: Callable[[SparkSession, str], T],
        named: Callable[[SparkSession, str], T] | None = None,
    ) -> None:
        """Start with nothing; use `DeltaTable.create` and its siblings to get one."""
        self._spark = spark
        self._opened = opened
        self._named = named
        self._identifier = ""
        self._mode: CreateMode = mode
        self._location: str | None = None
        self._name: tuple[str, ...] | None = None
        self._fields: list[StructField] = []
        self._partition_by: list[str] = []
        self._cluster_by: list[str] = []
        self._properties: dict[str, str] = {}
        self._comment: str | None = None

    def tableName(self, identifier: str) -> Self:  # noqa: N802  # delta-spark's name
        """The table's name in Spark's own catalog, or ``delta.`/its/path` ``.

        A new name without `location` is that of a managed table, in the folder of its database.

        Raises:
            DeltaAnalysisError: the text is not a name.
        """
        if not isinstance(identifier, str):
            refuse_type("Identifier must be str.", identifier)
        parts = parse(identifier)
        path = path_in(parts)
        if path is not None:
            return self.location(path)
        self._name, self._identifier = parts, identifier
        return self

    def location(self, location: str | os.PathLike[str]) -> Self:
        """The folder of the table."""
        if not isinstance(location, str | os.PathLike):
            refuse_type("Location must be str.", location)
        self._location = os.fspath(location)
        return self

    def comment(self, comment: str) -> Self:
        """Set the table's description; `DESCRIBE DETAIL` shows it."""
        if not isinstance(comment, str):
            refuse_type("Table comment must be str.", comment)
        self._comment = comment
        return self

    def addColumn(  # noqa: N802  # delta-spark's name
        self,
        colName: str,  # noqa: N803  # delta-spark's name
        dataType: str | SparkDataType,  # noqa: N803  # delta-spark's name
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,  # noqa: N803  # delta-spark's name
        generatedByDefaultAs: IdentityGenerator | None = None,  # noqa: N803  # delta-spark's name
        comment: str | None = None,
    ) -> Self:
        """Add a column after the others.

        Args:
            colName: its name.
            dataType: DDL text such as `"BIGINT"`, or one of `pyspark.sql.types`.
            nullable: whether it may be null.
            generatedAlwaysAs: SQL for its value, or an identity generator; data can't set it.
            generatedByDefaultAs: an identity generator for rows without a value.
            comment: a description.

        Raises:
            DeltaAnalysisError: arguments that exclude each other, or a type that Delta lacks.
            TypeError: an argument of another type.
        """
        if not isinstance(colName, str):
            refuse_type("Column name must be str.", colName)
        if not isinstance(dataType, str | SparkDataType):
            refuse_type("Column data type must be str or DataType.", dataType)
        if not isinstance(nullable, bool):
            refuse_type("Column nullable must be bool.", nullable)
        if comment is not None and not isinstance(comment, str):
            refuse_type("Column comment must be str.", comment)
        always, by_default = generatedAlwaysAs, generatedByDefaultAs
        if always is not None and not isinstance(always, str | IdentityGenerator):
            refuse_type("Generated always as expression must be str or IdentityGenerator.", always)
        if by_default is not None and not isinstance(by_default, IdentityGenerator):
            refuse_type("Generated by default expression must be IdentityGenerator.", by_default)
        kind, marks = self._type(colName, dataType)
        made = _field(colName, kind, nullable, always, by_default, comment)
        self._fields.append(replace(made, metadata={**made.metadata, **marks}))
        return self

    def addColumns(  # noqa: N802  # delta-spark's name
        self, cols: SparkStructType | Sequence[SparkStructField]
    ) -> Self:
        """Add the columns of a schema, with their metadata.

        A field whose metadata has `CURRENT_DEFAULT`, SQL text, has that default; the table then
        needs `property("delta.feature.allowColumnDefaults", "supported")`.

        Raises:
            DeltaAnalysisError: a type that Delta does not have.
            TypeError: no schema, or a member of it that is no field.
        """
        if not isinstance(cols, SparkStructType | list | tuple):
            refuse_type("Schema must be StructType or a list of StructField.", cols)
        for each in cols:
            if not isinstance(each, SparkStructField):
                refuse_type("Column in existing schema must be StructField.", each)
        for each in cols:
            kind, marks = self._type(each.name, each.dataType)
            metadata = {**each.metadata, **marks}
            self._fields.append(StructField(each.name, kind, each.nullable, metadata))
        return self

    def partitionedBy(self, *cols: str | Sequence[str]) -> Self:  # noqa: N802  # delta-spark's name
        """The columns to partition the table by."""
        self._partition_by += checked_names(cols, "Partitioning column")
        return self

    def clusterBy(self, *cols: str | Sequence[str]) -> Self:  # noqa: N802  # delta-spark's name
        """The columns that `OPTIMIZE` sorts files by, at most four; fields of structs by dots."""
        self._cluster_by += checked_names(cols, "Clustering column")
        return self

    def property(self, key: str, value: str) -> Self:
        """Set a table property, `delta.…` or one of your own."""
        for each in (key, value):
            if not isinstance(each, str):
                refuse_type("Key and value of property must be string.", each)
        self._properties[key] = value
        return self

    def execute(self) -> T:
        """Create the table.

        Returns:
            The table.

        Raises:
            TableExistsError: `create`, and there is a table.
            TableNotFoundError: `replace`, and there is none.
            DeltaAnalysisError: no location, or a schema, an expression, a partitioning or a
                property that no table can have.
            DeltaConcurrentModificationException: another writer was faster.
        """
        schema = StructType(tuple(self._fields))
        if self._name is None:
            if self._location is None:
                raise DeltaAnalysisError(
                    "[DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION] a table needs a place: "
                    "use tableName(name) or location(path)"
                )
            self._analyze(schema)
            self._create(self._location, schema, self._mode)
            return self._opened(self._spark, self._location)
        self._analyze(schema)
        location, shown = self._location, schema
        if location is not None and not self._fields:
            log = self._log(location)
            shown = log.update().schema if log.table_exists() else schema
        with place_for(
            self._spark, self._name, shown, self._mode, location, self._comment
        ) as place:
            keeps = self._mode in ("create", "create_if_not_exists")
            if place.exists and keeps and self._mode == "create":
                self._check_same(place.location, schema)
            elif not (place.exists and keeps):
                # Whether there is a name has been asked; whether there is a table may differ.
                mode: CreateMode = "create" if keeps else "create_or_replace"
                self._create(place.location, schema, mode)
        if self._named is not None:
            return self._named(self._spark, self._identifier)
        return self._opened(self._spark, place.location)

    def _create(self, location: str, schema: StructType, mode: CreateMode) -> None:
        create_table(
            self._log(location),
            schema,
            mode=mode,
            partition_by=self._partition_by,
            cluster_by=self._cluster_by,
            properties=self._properties,
            description=self._comment,
        )

    def _log(self, location: str) -> DeltaLog:
        conf = DeltaConf.from_mapping(session_conf(self._spark))
        return session_log(self._spark, location, conf, makes=True)

    def _check_same(self, location: str, schema: StructType) -> None:
        """Refuse to name an existing table that has other columns than those wanted.

        Raises:
            DeltaAnalysisError: it has.
        """
        there = self._log(location).update().schema
        if schema and _shape(schema) != _shape(there):
            raise DeltaAnalysisError(
                "[DELTA_CREATE_TABLE_SCHEME_MISMATCH] The specified schema does not match the "
                f"existing schema at {location}.\n  specified: {schema}\n  existing: {there}\n"
                "Leave the columns out to use those that the table has",
                table=location,
            )

    def _type(self, name: str, given: str | SparkDataType) -> tuple[DataType, dict[str, str]]:
        """The type, and the metadata of one with a length limit."""
        text = given if isinstance(given, str) else given.simpleString()
        plain, marks = without_limits(text)
        try:
            if isinstance(given, str) or marks:
                probe = self._spark.range(0).selectExpr(f"CAST(NULL AS {plain}) AS c")
                given = probe.schema[0].dataType
            return type_from_json_value(given.jsonValue()), marks
        except (PySparkException, ValueError) as exc:
            condition = exc.getCondition() if isinstance(exc, PySparkException) else None
            said = "" if condition is None else f"[{condition}] "
            raise DeltaAnalysisError(
                f"{said}column {name} can't have the type {given}: {exc}", column=name
            ) from exc

    def _analyze(self, schema: StructType) -> None:
        """Let Spark check expressions: it knows functions and types that the core does not."""
        bases = StructType(tuple(f for f in schema if generation_of(f) is None))
        rows = self._spark.createDataFrame([], to_spark_schema(_plain(bases)))
        for field in schema:
            sql = generation_of(field)
            if sql is not None:
                found = _analyzed(rows, sql, f"the generated column {field.name}")
                if type_from_json_value(found.jsonValue()) != field.data_type:
                    raise DeltaAnalysisError(
                        "[DELTA_GENERATED_COLUMNS_EXPR_TYPE_MISMATCH] The expression type of the "
                        f"generated column {field.name} is {found.simpleString().upper()}, but "
                        f"the column type is {str(field.data_type).upper()}",
                        column=field.name,
                    )
            default = default_of(field)
            if default is not None:
                cast = f"CAST(({default}\n) AS {type_sql(field.data_type)})"
                _analyzed(self._spark.range(1).drop("id"), cast, f"the DEFAULT of {field.name}")


def _field(
    name: str,
    kind: DataType,
    nullable: bool,
    always: str | IdentityGenerator | None,
    by_default: IdentityGenerator | None,
    comment: str | None,
) -> StructField:
    if always is not None and by_default is not None:
        raise DeltaAnalysisError(
            f"column {name}: use generatedAlwaysAs or generatedByDefaultAs, not both", column=name
        )
    if isinstance(always, str):
        return generated_column(name, kind, always, nullable=nullable, comment=comment)
    counts = by_default if always is None else always
    if counts is None:
        return StructField(name, kind, nullable, {} if comment is None else {"comment": comment})
    made = identity_column(
        name,
        start=counts.start,
        step=counts.step,
        by_default=always is None,
        nullable=nullable,
        comment=comment,
    )
    return made.with_type(kind)


def _shape(schema: StructType) -> list[tuple[str, str]]:
    return [(each.name.lower(), str(each.data_type)) for each in schema]


def _plain(schema: StructType) -> StructType:
    return StructType(tuple(StructField(f.name, f.data_type) for f in schema))


def _analyzed(rows: Any, sql: str, what: str) -> SparkDataType:
    try:
        found: SparkDataType = rows.selectExpr(f"({sql}\n) AS c").schema[0].dataType
    except PySparkException as exc:
        raise DeltaAnalysisError(f"{what} ({sql}) can't be computed: {exc}", sql=sql) from exc
    return found
