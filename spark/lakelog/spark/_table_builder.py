"""`DeltaTable.create(spark)…execute()`: a table made column by column, as by delta-spark."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pyspark.errors import PySparkException

from lakelog.core.char_varchar import MARK as CHAR_VARCHAR
from lakelog.core.columns import default_of, generated, generation_of, identity
from lakelog.core.create import create_table
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType, type_from_json_value
from lakelog.spark._conform import type_sql
from lakelog.spark._session import session_conf
from lakelog.spark._types import to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType as SparkDataType
    from pyspark.sql.types import StructField as SparkStructField
    from pyspark.sql.types import StructType as SparkStructType

    from lakelog.core.create import CreateMode
    from lakelog.core.schema import DataType
    from lakelog.spark._table import DeltaTable

__all__ = ["DeltaTableBuilder", "IdentityGenerator", "builder"]

_LIMITED = re.compile(r"(?:var)?char\(\d+\)")
_BY_PATH = re.compile(r"(?i:delta|lakelog)\.`([^`]+)`")


@dataclass(frozen=True)
class IdentityGenerator:
    """How an identity column counts: from `start`, by `step`."""

    start: int = 1
    step: int = 1


def builder(spark: SparkSession | None, mode: CreateMode) -> DeltaTableBuilder:
    """A builder in a session; without one, in the active session.

    Raises:
        DeltaAnalysisError: there is no session.
    """
    from pyspark.sql import SparkSession

    found = spark or SparkSession.getActiveSession()
    if found is None:
        raise DeltaAnalysisError("no active SparkSession: give one")
    return DeltaTableBuilder(found, mode)


class DeltaTableBuilder:
    """Makes a table of the columns that it is told, with delta-spark's methods and arguments.

        (DeltaTable.create(spark)
            .location("/lake/events")
            .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator())
            .addColumn("seen", "TIMESTAMP")
            .addColumn("day", "DATE", generatedAlwaysAs="CAST(seen AS DATE)")
            .partitionedBy("day")
            .execute())

    Nothing happens before `execute`.
    """

    def __init__(self, spark: SparkSession, mode: CreateMode) -> None:
        """Start with nothing; `DeltaTable.create` and its like are the way to get one."""
        self._spark = spark
        self._mode: CreateMode = mode
        self._location: str | None = None
        self._fields: list[StructField] = []
        self._partition_by: list[str] = []
        self._properties: dict[str, str] = {}
        self._comment: str | None = None

    def tableName(self, identifier: str) -> Self:  # noqa: N802  # delta-spark's name
        """The table as ``delta.`/its/path` ``.

        Raises:
            DeltaAnalysisError: any other name, which only a catalog can resolve.
        """
        match = _BY_PATH.fullmatch(identifier.strip())
        if match is None:
            raise DeltaAnalysisError(
                f"{identifier!r} is a name in a catalog, and lakelog makes tables by path: say "
                "location(path), or tableName('delta.`path`')",
                table=identifier,
            )
        return self.location(match[1])

    def location(self, location: str | os.PathLike[str]) -> Self:
        """The folder of the table."""
        self._location = os.fspath(location)
        return self

    def comment(self, comment: str) -> Self:
        """What the table is; `DESCRIBE DETAIL` shows it."""
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
        """Add a column behind the others.

        Args:
            colName: its name.
            dataType: DDL text such as `"BIGINT"`, or one of `pyspark.sql.types`.
            nullable: whether it may be null.
            generatedAlwaysAs: SQL that gives its value, or how it counts, always.
            generatedByDefaultAs: how it counts where the data brings no values.
            comment: what it is.

        Raises:
            DeltaAnalysisError: arguments that exclude each other, or a type that Delta lacks.
        """
        kind, marks = self._type(colName, dataType)
        made = _field(colName, kind, nullable, generatedAlwaysAs, generatedByDefaultAs, comment)
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
        """
        for each in cols:
            kind, marks = self._type(each.name, each.dataType)
            metadata = {**each.metadata, **marks}
            self._fields.append(StructField(each.name, kind, each.nullable, metadata))
        return self

    def partitionedBy(self, *cols: str | Sequence[str]) -> Self:  # noqa: N802  # delta-spark's name
        """The columns to partition the table by."""
        for each in cols:
            self._partition_by += [each] if isinstance(each, str) else each
        return self

    def clusterBy(self, *cols: str | Sequence[str]) -> Self:  # noqa: N802  # delta-spark's name
        """Refuse: this version keeps the clustering that a table has, and makes none.

        Raises:
            DeltaAnalysisError: always.
        """
        raise DeltaAnalysisError(
            f"clusterBy{cols}: lakelog writes tables that are clustered, and can't make one yet. "
            "Make the table with delta-spark (CLUSTER BY), or partition it with partitionedBy."
        )

    def property(self, key: str, value: str) -> Self:
        """Set a table property, `delta.…` or one of your own."""
        self._properties[key] = value
        return self

    def execute(self) -> DeltaTable:
        """Make the table.

        Returns:
            The table.

        Raises:
            TableExistsError: `create`, and there is a table.
            TableNotFoundError: `replace`, and there is none.
            DeltaAnalysisError: no location, or a schema, an expression, a partitioning or a
                property that no table can have.
            DeltaConcurrentModificationException: another writer was faster.
        """
        from lakelog.spark._table import DeltaTable

        if self._location is None:
            raise DeltaAnalysisError("a table needs a place: say location(path)")
        schema = StructType(tuple(self._fields))
        self._analyze(schema)
        create_table(
            self._location,
            schema,
            mode=self._mode,
            partition_by=self._partition_by,
            properties=self._properties,
            description=self._comment,
            conf=session_conf(self._spark),
        )
        return DeltaTable.forPath(self._spark, self._location)

    def _type(self, name: str, given: str | SparkDataType) -> tuple[DataType, dict[str, str]]:
        """The type, and the mark of one whose length is limited."""
        text = (given if isinstance(given, str) else given.simpleString()).strip().lower()
        if _LIMITED.fullmatch(text):
            return PrimitiveType("string"), {CHAR_VARCHAR: text}
        try:
            if "char(" in text:
                raise ValueError("a length is held for a column at the top alone")
            if isinstance(given, str):
                probe = self._spark.range(0).selectExpr(f"CAST(NULL AS {given}) AS c")
                given = probe.schema[0].dataType
            return type_from_json_value(given.jsonValue()), {}
        except (PySparkException, ValueError) as exc:
            raise DeltaAnalysisError(
                f"column {name} can't have the type {given}: {exc}", column=name
            ) from exc

    def _analyze(self, schema: StructType) -> None:
        """Let Spark judge expressions: it knows functions and types that the core does not."""
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
            f"column {name}: give generatedAlwaysAs or generatedByDefaultAs, not both", column=name
        )
    if by_default is not None and not isinstance(by_default, IdentityGenerator):
        raise DeltaAnalysisError(
            f"column {name}: generatedByDefaultAs takes an IdentityGenerator, not {by_default!r}",
            column=name,
        )
    if isinstance(always, str):
        return generated(name, kind, always, nullable=nullable, comment=comment)
    counts = by_default if always is None else always
    if counts is None:
        return StructField(name, kind, nullable, {} if comment is None else {"comment": comment})
    made = identity(
        name,
        start=counts.start,
        step=counts.step,
        by_default=always is None,
        nullable=nullable,
        comment=comment,
    )
    return made.with_type(kind)


def _plain(schema: StructType) -> StructType:
    return StructType(tuple(StructField(f.name, f.data_type) for f in schema))


def _analyzed(rows: Any, sql: str, what: str) -> SparkDataType:
    try:
        found: SparkDataType = rows.selectExpr(f"({sql}\n) AS c").schema[0].dataType
    except PySparkException as exc:
        raise DeltaAnalysisError(f"{what} ({sql}) can't be computed: {exc}", sql=sql) from exc
    return found
