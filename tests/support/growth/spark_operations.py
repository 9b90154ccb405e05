"""What users can do with a table through Spark; the driver's part of it is measured."""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import lakelog.spark as delta
from support.growth.operations import Measured
from support.growth.operations import measured as _measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from support.growth.worlds import World

SPARK_OPERATIONS: list[Measured] = []

measured = partial(_measured, into=SPARK_OPERATIONS)


def _session() -> SparkSession:
    from pyspark.sql import SparkSession

    return SparkSession.builder.getOrCreate()


def _rows(world: World) -> Any:
    return _session().createDataFrame(world.rows().to_pylist(), _ddl(world))


def _ddl(world: World) -> str:
    fields = world.log().snapshot.schema
    return ", ".join(f"`{field.name}` {field.data_type}" for field in fields)


@measured(("write", "DeltaWriter.save"), "append", only=frozenset({"columns"}))
def _(world: World) -> Callable[[], object]:
    rows = _rows(world)
    return lambda: delta.write(rows).mode("append").save(world.uri)


@measured("DeltaWriter.save", "merge as many columns", only=frozenset({"columns"}))
def _(world: World) -> Callable[[], object]:
    rows = _rows(world)
    wider = rows.select("*", *(rows[name].alias(f"new_{name}") for name in rows.columns))
    writer = delta.write(wider).mode("append").option("mergeSchema", True)
    return lambda: writer.save(world.uri)


@measured(("read", "DeltaReader.load"), only=frozenset({"columns", "files"}))
def _(world: World) -> Callable[[], object]:
    return lambda: delta.read(_session()).load(world.uri)


@measured("DeltaReader.load", "where", only=frozenset({"literals: IN", "literals: OR"}))
def _(world: World) -> Callable[[], object]:
    return lambda: delta.read(_session()).where(world.where).load(world.uri)


@measured(("DeltaTable.forPath", "DeltaTable.toDF"), only=frozenset({"files"}))
def _(world: World) -> Callable[[], object]:
    return lambda: delta.DeltaTable.forPath(_session(), world.uri).toDF()


@measured(("DeltaTable.history", "DeltaTable.detail"), only=frozenset({"versions"}))
def _(world: World) -> Callable[[], object]:
    table = delta.DeltaTable.forPath(_session(), world.uri)
    return lambda: (table.history(), table.detail())


@measured("DeltaTable.convertToDelta", only=frozenset({"files"}))
def _(world: World) -> Callable[[], object]:
    shutil.rmtree(f"{world.uri}/_delta_log")
    return lambda: delta.DeltaTable.convertToDelta(_session(), f"parquet.`{world.uri}`")


@measured(
    tuple(f"DeltaTableBuilder.{name}" for name in ("addColumn", "addColumns", "execute")),
    only=frozenset({"columns"}),
)
def _(world: World) -> Callable[[], object]:
    schema = _rows(world).schema

    def work() -> object:
        builder = delta.DeltaTable.create(_session()).location(f"{world.folder}/new")
        for i in range(world.n):
            builder = builder.addColumn(f"one_{i}", "INT")
        return builder.addColumns(schema).execute()

    return work
