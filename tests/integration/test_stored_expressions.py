"""A table's metadata doesn't choose what the JVM of its writers runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, read_arrow, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions import function_names
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.spark import DeltaTable, sql, write
from support.raw_log import RawLog, metadata

PROPERTY = "lakelog.test.stored"
RUNS = f"java_method('java.lang.System', 'setProperty', '{PROPERTY}', 'ran')"
WAYS = {
    "append": lambda s, p: write(s.sql("SELECT 9L AS id, 'n' AS s")).mode("append").save(p),
    "insert": lambda s, p: sql(s, f"INSERT INTO delta.`{p}` (id) VALUES (9)"),
    "default": lambda s, p: sql(s, f"INSERT INTO delta.`{p}` VALUES (9, DEFAULT)"),
    "update": lambda s, p: sql(s, f"UPDATE delta.`{p}` SET id = id + 1"),
    "update default": lambda s, p: sql(s, f"UPDATE delta.`{p}` SET s = DEFAULT"),
    "merge": lambda s, p: (
        DeltaTable.forPath(s, p)
        .alias("t")
        .merge(s.range(5).alias("u"), "t.id = u.id")
        .whenMatchedUpdate(set={"s": "concat(s, 'x')"})
        .whenNotMatchedInsert(values={"id": "u.id"})
        .execute()
    ),
}
# What a table says, and the ways of writing that must meet it.
STORED: dict[str, tuple[dict[str, Any], dict[str, str], set[str]]] = {
    "check": ({}, {"delta.constraints.c": f"{RUNS} IS NULL OR true"}, set(WAYS)),
    "subquery": ({}, {"delta.constraints.c": "id IN (SELECT id FROM text.`/etc`)"}, {"append"}),
    "variable": ({}, {"delta.constraints.c": "sha1(s) <> '${env:HOME}'"}, {"append"}),
    "udf": ({}, {"delta.constraints.c": "stored_udf(id) > 0"}, {"update"}),
    "invariant": (
        {"delta.invariants": f'{{"expression": {{"expression": "{RUNS} IS NULL OR true"}}}}'},
        {},
        {"append"},
    ),
    "generated": (
        {"delta.generationExpression": RUNS},
        {},
        {"append", "insert", "update", "merge"},
    ),
    "default": ({"CURRENT_DEFAULT": RUNS}, {}, set(WAYS) - {"append", "update"}),
}


def table_saying(path: str, column: dict[str, Any], properties: dict[str, str]) -> None:
    """A table with rows whose log then says more of its column `s`."""
    write_arrow(path, pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", "b"]}))
    fields = (
        StructField("id", PrimitiveType("long")),
        StructField("s", PrimitiveType("string"), metadata=column),
    )
    features = ["checkConstraints", "invariants", "generatedColumns", "allowColumnDefaults"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    said = metadata(schema=StructType(fields), configuration=properties)
    RawLog(Path(path)).commit({"protocol": protocol}, said, version=1)


def test_nothing_that_a_table_says_is_run_unless_it_computes(spark, tmp_path) -> None:
    spark.udf.register("stored_udf", lambda x: x, "bigint")
    spark.sql(f"SELECT java_method('java.lang.System', 'clearProperty', '{PROPERTY}')").collect()
    for name, (column, properties, ways) in STORED.items():
        path = str(tmp_path / name)
        table_saying(path, column, properties)
        for way in sorted(ways):
            with pytest.raises(DeltaAnalysisError, match="not run because a table's metadata"):
                WAYS[way](spark, path)
        assert DeltaLog.for_table(path).update().version == 1
    seen = f"SELECT java_method('java.lang.System', 'getProperty', '{PROPERTY}') AS p"
    assert spark.sql(seen).first().p == "null"  # Java's, as text


def test_who_trusts_the_writers_of_a_log_says_so(spark, tmp_path) -> None:
    path = str(tmp_path / "t")
    spark.udf.register("stored_udf", lambda x: x, "bigint")
    table_saying(path, {}, {"delta.constraints.c": "stored_udf(id) > 0"})
    spark.conf.set("spark.lakelog.unsafe.storedExpressions", "true")
    try:
        WAYS["append"](spark, path)
    finally:
        spark.conf.unset("spark.lakelog.unsafe.storedExpressions")
    assert read_arrow(path).num_rows == 3
    with pytest.raises(DeltaAnalysisError, match="the function stored_udf"):
        sql(spark, f"ALTER TABLE delta.`{path}` ADD CONSTRAINT d CHECK (stored_udf(id) < 99)")


def test_every_function_of_spark_is_told_apart(spark) -> None:
    listed = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    names = function_names
    known = names.SCALARS | names.AGGREGATES | names.NOT_DETERMINISTIC | names.OTHERS
    assert {name for name in listed if name.isidentifier()} <= known
