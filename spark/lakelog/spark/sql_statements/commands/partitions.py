"""SHOW PARTITIONS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lakelog.core.compute import pc
from lakelog.core.data.partition_keys import decode_partition_values, encode_partition_values
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.column_mapping import physical_name
from lakelog.spark.types.paths import quoted
from lakelog.spark.writing.stored import spark_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from lakelog.core.state.snapshot import Snapshot
    from lakelog.spark.sql_statements.commands.base import Command, CommandContext


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
        _check(snapshot, [name for name, _ in wanted])
        found = _partitions(s, snapshot)
        for name, value in wanted:
            field = snapshot.partition_schema.get(name)
            assert field is not None  # it was checked
            cast = sf.expr(f"({value}\n)").cast(spark_type(field.data_type))
            found = found.where(sf.col(quoted(field.name)).eqNullSafe(cast))
        return found

    return run


def _check(snapshot: Snapshot, wanted: list[str]) -> None:
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
