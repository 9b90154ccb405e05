"""SHOW TBLPROPERTIES, SHOW COLUMNS, SHOW PARTITIONS and SHOW CREATE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lakelog.core.engine.rows import default_of, generation_of, identity_of
from lakelog.core.engine.scan import decode_partition_values, encode_partition_values
from lakelog.core.engine.schemas import MARK as CHAR_VARCHAR
from lakelog.core.engine.schemas import physical_name
from lakelog.core.engine.tables import shown_columns
from lakelog.core.engine.values import pc
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.sql_statements.commands.column_definitions import text
from lakelog.spark.sql_statements.queries.named_tables import place_of
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.type_sql import type_sql
from lakelog.spark.writing.stored import spark_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame

    from lakelog.core import Snapshot
    from lakelog.core.schema import StructField
    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.queries.named_tables import Place

_COLUMN = "col_name string"
_PROPERTY = "key string, value string"
_STATEMENT = "createtab_stmt string"


def show_columns(s: CommandContext) -> Command | None:
    """`SHOW COLUMNS IN|FROM t [IN|FROM db]`."""
    c = s.cursor
    c.need("SHOW", "COLUMNS")
    c.need_any("IN", "FROM")
    name = c.name().parts
    if c.took("IN") or c.took("FROM"):
        database = c.name().parts
        if name[:-1] not in ((), database):
            return None  # Spark says that they differ
        name = (*database, name[-1])
    place = place_of(s.spark, name)
    if place is None or c.token is not None:
        return None

    def run() -> DataFrame:
        names = s.log(place).update().schema.names
        return s.answer(_COLUMN, *((name,) for name in names))

    return run


def show_properties(s: CommandContext) -> Command | None:
    """`SHOW TBLPROPERTIES t [('key')]`."""
    c = s.cursor
    c.need("SHOW", "TBLPROPERTIES")
    place = s.place()
    if place is None:
        return None
    key = None
    if c.took("("):
        token = c.token
        is_text = token is not None and token.kind == "string"
        key = text(s, "a property") if is_text else ".".join(c.name().parts)
        c.need(")")
    c.end()

    def run() -> DataFrame:
        found = _properties(s.log(place).update())
        if key is None:
            return s.answer(_PROPERTY, *sorted(found.items()))
        missing = f"Table {place.text} does not have property: {key}"
        return s.answer(_PROPERTY, (key, found.get(key, missing)))

    return run


def _properties(snapshot: Snapshot) -> dict[str, str]:
    """The table's properties, with what Delta shows of the protocol among them."""
    protocol = snapshot.protocol
    found = dict(snapshot.metadata.configuration)
    found["delta.minReaderVersion"] = str(protocol.min_reader_version)
    found["delta.minWriterVersion"] = str(protocol.min_writer_version)
    for feature in {*(protocol.reader_features or ()), *(protocol.writer_features or ())}:
        found[f"delta.feature.{feature}"] = "supported"
    return found


def show_partitions(s: CommandContext) -> Command | None:
    """`SHOW PARTITIONS t [PARTITION (a = 1, …)]`: the values that files are there for."""
    c = s.cursor
    c.need("SHOW", "PARTITIONS")
    place = s.place()
    if place is None:
        return None
    wanted: list[tuple[str, str]] = []
    if c.took("PARTITION"):
        c.need("(")
        while True:
            name = c.identifier()
            c.need("=")
            wanted.append((name, c.expression(",", what="a value").text))
            if not c.took(","):
                break
        c.need(")")
    c.end()

    def run() -> DataFrame:
        snapshot = s.log(place).update()
        _check_partitioned(snapshot, [name for name, _ in wanted])
        found = _partitions(s, snapshot)
        for name, value in wanted:
            field = snapshot.partition_schema.get(name)
            assert field is not None  # it was checked
            cast = sf.expr(f"({value}\n)").cast(spark_type(field.data_type))
            found = found.where(sf.col(quoted(field.name)).eqNullSafe(cast))
        return found

    return run


def _check_partitioned(snapshot: Snapshot, wanted: list[str]) -> None:
    if not snapshot.partition_columns:
        raise DeltaAnalysisError(
            "[DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE] SHOW PARTITIONS is not allowed on a "
            f"table that is not partitioned: {snapshot.table}",
            table=snapshot.table,
        )
    unknown = [name for name in wanted if snapshot.partition_schema.get(name) is None]
    if unknown:
        raise DeltaAnalysisError(
            "[DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_COLUMN] Non-partitioning column(s) "
            f"{', '.join(unknown)} are specified for SHOW PARTITIONS; {snapshot.table} is "
            f"partitioned by {', '.join(snapshot.partition_columns)}",
            columns=unknown,
            table=snapshot.table,
        )


def _partitions(s: CommandContext, snapshot: Snapshot) -> DataFrame:
    fields = list(snapshot.partition_schema)
    names = [physical_name(each) for each in fields]
    texts = pc.unique(encode_partition_values(snapshot.file_table, names)).to_pylist()
    rows = [tuple(decode_partition_values(each, names).values()) for each in texts]
    schema = ", ".join(f"c{number} string" for number in range(len(fields)))
    plain = s.spark.createDataFrame(rows, schema)
    typed: list[Column] = [
        sf.col(f"c{number}").cast(spark_type(each.data_type)).alias(each.name)
        for number, each in enumerate(fields)
    ]
    columns = [sf.col(quoted(each.name)).asc_nulls_last() for each in fields]
    return plain.select(*typed).distinct().orderBy(*columns)


def show_create(s: CommandContext) -> Command | None:
    """`SHOW CREATE TABLE t`: a statement that makes such a table."""
    c = s.cursor
    c.need("SHOW", "CREATE", "TABLE")
    place = s.place()
    if place is None:
        return None
    c.took("AS", "SERDE")
    c.end()
    return lambda: s.answer(_STATEMENT, (_statement(place, s.log(place).update()),))


def _statement(place: Place, snapshot: Snapshot) -> str:
    metadata = snapshot.metadata
    columns = ",\n  ".join(_column(each) for each in snapshot.schema)
    name = ".".join(quoted(part) for part in place.parts)
    lines = [f"CREATE TABLE {name} (\n  {columns})", "USING delta"]
    if metadata.partition_columns:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted, metadata.partition_columns))})")
    clustering = shown_columns(snapshot)
    if clustering:
        lines.append(f"CLUSTER BY ({', '.join(clustering)})")
    if place.in_catalog and not place.is_governed:
        lines.append(f"LOCATION {_literal(place.path)}")
    if metadata.description is not None:
        lines.append(f"COMMENT {_literal(metadata.description)}")
    lines.append(f"TBLPROPERTIES (\n  {_listed(_properties(snapshot))})")
    return "\n".join(lines) + "\n"


def _listed(properties: Mapping[str, str]) -> str:
    pairs = sorted(properties.items())
    return ",\n  ".join(f"{_literal(key)} = {_literal(value)}" for key, value in pairs)


def _column(field: StructField) -> str:
    kind = str(field.metadata.get(CHAR_VARCHAR, "") or type_sql(field.data_type)).upper()
    parts = [quoted(field.name), kind if "`" not in kind else type_sql(field.data_type)]
    if not field.nullable:
        parts.append("NOT NULL")
    identity = identity_of(field)
    if (generation := generation_of(field)) is not None:
        parts.append(f"GENERATED ALWAYS AS ({generation})")
    elif identity is not None:
        how = "BY DEFAULT" if identity.allow_explicit else "ALWAYS"
        parts.append(
            f"GENERATED {how} AS IDENTITY (START WITH {identity.start} INCREMENT BY "
            f"{identity.step})"
        )
    elif (default := default_of(field)) is not None:
        parts.append(f"DEFAULT {default}")
    comment = field.metadata.get("comment")
    if comment:
        parts.append(f"COMMENT {_literal(str(comment))}")
    return " ".join(parts)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
