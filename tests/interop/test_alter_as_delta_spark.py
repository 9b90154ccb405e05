"""The same changes of metadata, made by delta-spark's SQL and by us, and read by both."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.alter.check_constraints import add_constraint, drop_constraint
from lakelog.core.alter.columns import (
    ColumnChange,
    change_column,
    change_columns,
    drop_columns,
    rename_column,
)
from lakelog.core.alter.new_columns import add_columns
from lakelog.core.alter.property_changes import set_properties, unset_properties
from lakelog.core.schema import DecimalType, PrimitiveType
from support.samples import rows_of

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int32()),
        "name": ["a", "b", None],
        "s": [{"x": 1, "y": "p"}, None, {"x": 3, "y": None}],
        "l": [[{"e": 1}], [], None],
        "tiny": pa.array([1, -2, 3], pa.int8()),
        "ratio": pa.array([0.1, -1.5, 3.25], pa.float32()),
        "price": pa.array([1, 2, 3], pa.decimal128(5, 1)),
        "p": pa.array([1, 1, 2], pa.int16()),
    }
)
WIDE = {"delta.enableTypeWidening": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
LONG, INT, DOUBLE = (PrimitiveType(name) for name in ("long", "integer", "double"))

Step = tuple[str, Callable[[str], object]]
STEPS: dict[str, tuple[dict[str, str], list[Step]]] = {
    "properties": (
        {},
        [
            (
                "SET TBLPROPERTIES ('delta.appendOnly' = 'true', 'mine' = 'x')",
                lambda u: set_properties(u, {"delta.appendOnly": "true", "mine": "x"}),
            ),
            ("UNSET TBLPROPERTIES ('mine')", lambda u: unset_properties(u, ["mine"])),
            (
                "SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
                lambda u: set_properties(u, MAPPED),
            ),
            ("RENAME COLUMN name TO `a title`", lambda u: rename_column(u, "name", "a title")),
        ],
    ),
    "constraints": (
        {},
        [
            ("ADD CONSTRAINT Big CHECK (id > 0)", lambda u: add_constraint(u, "Big", "id > 0")),
            ("DROP CONSTRAINT big", lambda u: drop_constraint(u, "big")),
            (
                "DROP CONSTRAINT IF EXISTS big",
                lambda u: drop_constraint(u, "big", if_exists=True),
            ),
        ],
    ),
    "columns": (
        MAPPED,
        [
            (
                "ADD COLUMNS (n INT, m STRING AFTER id)",
                lambda u: (
                    add_columns(u, pa.schema([("n", pa.int32())])),
                    add_columns(u, pa.schema([("m", pa.string())]), after="id"),
                ),
            ),
            (
                "ADD COLUMNS (s.z LONG)",
                lambda u: add_columns(u, pa.schema([("z", pa.int64())]), parent="s"),
            ),
            (
                "ADD COLUMNS (l.element.f LONG FIRST)",
                lambda u: add_columns(
                    u, pa.schema([("f", pa.int64())]), parent="l.element", first=True
                ),
            ),
            ("RENAME COLUMN s.x TO xx", lambda u: rename_column(u, "s.x", "xx")),
            ("RENAME COLUMN p TO part", lambda u: rename_column(u, "p", "part")),
            ("DROP COLUMNS (name, s.y)", lambda u: drop_columns(u, ["name", "s.y"])),
            (
                "ALTER COLUMN id COMMENT 'a key'",
                lambda u: change_column(u, "id", comment="a key"),
            ),
        ],
    ),
    "types": (
        WIDE,
        [
            ("ALTER COLUMN id TYPE LONG", lambda u: change_column(u, "id", data_type=LONG)),
            ("ALTER COLUMN tiny TYPE INT", lambda u: change_column(u, "tiny", data_type=INT)),
            (
                "ALTER COLUMN tiny TYPE DECIMAL(12,2)",
                lambda u: change_column(u, "tiny", data_type=DecimalType(12, 2)),
            ),
            (
                "ALTER COLUMN ratio TYPE DOUBLE",
                lambda u: change_column(u, "ratio", data_type=DOUBLE),
            ),
            (
                "ALTER COLUMN price TYPE DECIMAL(12,3)",
                lambda u: change_column(u, "price", data_type=DecimalType(12, 3)),
            ),
            ("ALTER COLUMN p TYPE INT", lambda u: change_column(u, "p", data_type=INT)),
        ],
    ),
    "places and defaults": (
        {"delta.feature.allowColumnDefaults": "supported"},
        [
            ("ALTER COLUMN name FIRST", lambda u: change_column(u, "name", first=True)),
            ("ALTER COLUMN P AFTER ID", lambda u: change_column(u, "P", after="ID")),
            ("ALTER COLUMN s.y FIRST", lambda u: change_column(u, "s.y", first=True)),
            (
                "ALTER COLUMN tiny SET DEFAULT 1+2",
                lambda u: change_column(u, "tiny", default="1+2"),
            ),
            ("ALTER COLUMN p SET DEFAULT '7'", lambda u: change_column(u, "p", default="'7'")),
            (
                "ALTER COLUMN id COMMENT 'key', s.x COMMENT 'x', name AFTER p",
                lambda u: change_columns(
                    u,
                    [
                        ColumnChange("id", comment="key"),
                        ColumnChange("s.x", comment="x"),
                        ColumnChange("name", after="p"),
                    ],
                ),
            ),
            ("ALTER COLUMN tiny DROP DEFAULT", lambda u: change_column(u, "tiny", default="")),
        ],
    ),
}


def snapshot(path):
    return DeltaLog.for_table(path).snapshot


def without_marks(value):
    """A schema's JSON without the names that are drawn at random."""
    if isinstance(value, dict):
        kept = {k: v for k, v in value.items() if k != "delta.columnMapping.physicalName"}
        return {k: without_marks(v) for k, v in kept.items()}
    return [without_marks(each) for each in value] if isinstance(value, list) else value


def history_of(path):
    """Operations and parameters, oldest first; the text of JSON in them read."""
    found = []
    for entry in reversed(DeltaLog.for_table(path).history()):
        parameters = {}
        for key, value in entry.parameters.items():
            try:
                parameters[key] = without_marks(json.loads(value))
            except (TypeError, ValueError):
                parameters[key] = value
        if entry.operation == "CHANGE COLUMNS":
            # delta-spark keeps them in a hash map, in whose order they come.
            parameters["columns"].sort(key=lambda column: column["name"])
        found.append((entry.operation, parameters))
    return found


@pytest.mark.parametrize("name", STEPS)
def test_each_step_leaves_what_delta_spark_leaves(delta_spark, tmp_path, name):
    properties, steps = STEPS[name]
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for path in (ours, theirs):
        write_arrow(path, ROWS, partition_by=["p"], properties=properties, mode="append")
    for sql, change in steps:
        if sql.startswith("ADD COLUMNS (n INT"):
            delta_spark.sql(f"ALTER TABLE delta.`{theirs}` ADD COLUMNS (n INT)")
            sql = "ADD COLUMNS (m STRING AFTER id)"
        delta_spark.sql(f"ALTER TABLE delta.`{theirs}` {sql}")
        change(ours)
        mine, its = snapshot(ours), snapshot(theirs)
        assert without_marks(mine.schema.json_value()) == without_marks(its.schema.json_value())
        assert mine.metadata.configuration == its.metadata.configuration, sql
        assert mine.partition_columns == its.partition_columns
        assert history_of(ours)[1:] == history_of(theirs)[1:]
        protocols = [(p.min_reader_version, p.min_writer_version, set(p.writer_features or ()))
                     for p in (mine.protocol, its.protocol)]  # fmt: skip
        assert protocols[0] == protocols[1], sql
    read = rows_of(delta_spark.read(ours))
    assert rows_of(snapshot(ours).to_arrow()) == read
    assert rows_of(snapshot(theirs).to_arrow()) == read


@pytest.mark.parametrize("partition_by", [(), ("p",)], ids=["whole", "partitioned"])
def test_wider_tables_are_written_and_read_by_both(delta_spark, spark, tmp_path, partition_by):
    path = str(tmp_path / "t")
    write_arrow(path, ROWS, partition_by=partition_by, properties={**WIDE, **MAPPED}, mode="append")
    for _, change in STEPS["types"][1]:
        change(path)
    grown = pa.table(
        {
            "id": [1 << 40],
            "ratio": [0.1],
            "tiny": pa.array([7], pa.int8()),
            "p": pa.array([1 << 20], pa.int32()),
        }
    )
    write_arrow(path, grown, mode="append")
    assert rows_of(snapshot(path).to_arrow()) == rows_of(delta_spark.read(path))

    df = spark.sql("SELECT 1L << 41 AS id, CAST(3 AS TINYINT) AS tiny, 'n' AS name, 5 AS p")
    delta.write(df).mode("append").save(path)
    delta_spark.sql(f"INSERT INTO delta.`{path}` (id, price) VALUES ({1 << 42}, 123456789.125)")
    expected = rows_of(delta_spark.read(path))
    assert rows_of(snapshot(path).to_arrow()) == expected
    assert rows_of(delta.read(spark).load(path).toArrow()) == expected
    for where in ("id > 1000", "ratio = 0.1D", "tiny = 7", "p > 1000", "price > 3"):
        plain = where.replace("0.1D", "0.1")
        assert rows_of(snapshot(path).to_arrow(where=plain)) == rows_of(
            delta_spark.read(path, where=where)
        )


def test_merged_schemas_widen_as_delta_sparks_do(delta_spark, tmp_path):
    ours, theirs = str(tmp_path / "ours"), str(tmp_path / "theirs")
    first = ROWS.select(["id", "tiny", "ratio", "l", "price"])
    more = pa.table(
        {
            "id": pa.array([5], pa.int64()),
            "tiny": pa.array([300], pa.int16()),
            "ratio": pa.array([0.1], pa.float64()),
            "l": [[{"e": 1}]],
            "price": pa.array([5], pa.decimal128(9, 3)),
        }
    )
    for path in (ours, theirs):
        write_arrow(path, first, properties=WIDE, mode="append")
    write_arrow(ours, more, schema_mode="merge", mode="append")
    delta_spark.write(theirs, more, options={"mergeSchema": "true"})

    assert snapshot(ours).schema == snapshot(theirs).schema
    assert rows_of(snapshot(ours).to_arrow()) == rows_of(delta_spark.read(ours))
    assert rows_of(snapshot(theirs).to_arrow()) == rows_of(delta_spark.read(theirs))


def test_a_spark_write_widens_with_merge_schema(spark, delta_spark, tmp_path):
    path = str(tmp_path / "t")
    delta.write(spark.sql("SELECT 1 AS a")).option("delta.enableTypeWidening", True).save(path)

    df = spark.sql("SELECT 1L << 40 AS a")
    delta.write(df).mode("append").option("mergeSchema", True).save(path)

    assert snapshot(path).schema.fields[0].data_type == LONG
    expected = [{"a": 1}, {"a": 1 << 40}]
    assert sorted(delta_spark.read(path).to_pylist(), key=lambda row: row["a"]) == expected
    assert sorted(snapshot(path).to_arrow().to_pylist(), key=lambda row: row["a"]) == expected


def test_records_of_the_preview_are_read_by_delta_spark(delta_spark, tmp_path):
    path = str(tmp_path / "t")
    properties = {**WIDE, "delta.feature.typeWidening-preview": "supported"}
    write_arrow(path, ROWS.select(["id"]), properties=properties, mode="append")
    change_column(path, "id", data_type=LONG)
    write_arrow(path, pa.table({"id": [1 << 40]}), mode="append")

    assert delta_spark.count(path, where="id > 3") == 1
    delta_spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id TYPE DECIMAL(20,0)")
    changes = snapshot(path).schema.fields[0].metadata["delta.typeChanges"]
    assert [each["tableVersion"] for each in changes] == [1, 3]
    assert rows_of(snapshot(path).to_arrow()) == rows_of(delta_spark.read(path))
