"""Generated columns, identities and defaults of delta-spark's tables and of ours, both ways."""

from __future__ import annotations

import datetime as dt
import json
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import lakelog.spark
from lakelog.core import DeltaLog, create_table, update_rows, write_arrow
from lakelog.core.errors import ConstraintViolationError, DeltaAnalysisError
from lakelog.core.features.identity_columns import identity_columns
from lakelog.core.log.file_names import commit_name
from lakelog.core.schema import (
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
    identity_column,
)
from support.delta_spark_peer import DeltaSparkError

LONG, STRING, INT = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")
DATE, TIMESTAMP = PrimitiveType("date"), PrimitiveType("timestamp")
DEFAULTS = {"delta.feature.allowColumnDefaults": "supported"}
MOMENT = dt.datetime(2024, 2, 29, 23, 30, 1, tzinfo=dt.UTC)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


@pytest.fixture(params=["core", "spark"])
def append(request, spark):
    """Appends Arrow rows in one of our two ways."""
    if request.param == "core":
        return partial(write_arrow, mode="append")

    def by_spark(path, data):
        lakelog.spark.write(spark.createDataFrame(data)).mode("append").save(path)

    return by_spark


def actions(path, version):
    text = (Path(path) / "_delta_log" / commit_name(version)).read_text()
    return {next(iter(each)): each for each in map(json.loads, text.splitlines())}


def ours(path):
    return DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()


def theirs(delta_spark, path):
    return delta_spark.read(path).to_pylist()


def mark(path):
    return identity_columns(DeltaLog.for_table(path).snapshot.schema)["id"].high_water_mark


# Generated columns -----------------------------------------------------------------------------

GENERATED = {
    "day": ("DATE", "CAST(ts AS DATE)"),
    "month": ("STRING", "date_format(ts, 'yyyy-MM')"),
    "hour": ("TIMESTAMP", "date_trunc('HOUR', ts)"),
    "y": ("INT", "year(ts)"),
    "twice": ("BIGINT", "n * 2L"),
    "rest": ("INT", "n % 7"),
    "initial": ("STRING", "upper(substring(s, 1, 1))"),
    "label": ("STRING", "concat(s, '-', coalesce(n, 0))"),
}
TYPES = {
    "DATE": DATE,
    "STRING": STRING,
    "TIMESTAMP": TIMESTAMP,
    "INT": INT,
    "BIGINT": LONG,
}


def base_rows():
    return pa.table(
        {
            "ts": pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
            "n": pa.array([-9, 4], pa.int32()),
            "s": ["straße", None],
        }
    )


def test_values_that_we_generate_are_those_of_delta_spark(delta_spark, path, append):
    columns = ", ".join(f"{k} {t} GENERATED ALWAYS AS ({sql})" for k, (t, sql) in GENERATED.items())
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (ts TIMESTAMP, n INT, s STRING, {columns}) USING delta "
        "PARTITIONED BY (day)"
    )
    append(path, base_rows())
    delta_spark.write(path, base_rows())
    rows = theirs(delta_spark, path)
    assert len(rows) == 4
    key = lambda row: str(row["n"])  # noqa: E731
    first, second, third, fourth = sorted(rows, key=key)
    assert first == second
    assert third == fourth
    assert first["initial"] == "S"
    # What we wrote passes their check when it goes through them as it is.
    delta_spark.write(path, DeltaLog.for_table(path).snapshot.to_arrow())
    assert sorted(ours(path), key=str) == sorted(theirs(delta_spark, path), key=str)
    # And what they wrote passes ours.
    append(path, delta_spark.read(path))
    assert delta_spark.count(path) == 16


def test_a_table_of_ours_is_generated_and_checked_by_delta_spark(delta_spark, path, append):
    fields = [StructField("ts", TIMESTAMP), StructField("n", INT), StructField("s", STRING)]
    fields += [generated_column(name, TYPES[kind], sql) for name, (kind, sql) in GENERATED.items()]
    create_table(path, StructType(tuple(fields)), partition_by=["day"])
    append(path, base_rows())
    delta_spark.write(path, base_rows())
    found = sorted(theirs(delta_spark, path), key=lambda row: str(row["n"]))
    assert found[0] == found[1]
    assert found[2] == found[3]
    wrong = base_rows().append_column("twice", pa.array([1, 8]))
    with pytest.raises(DeltaSparkError, match="Generated Column"):
        delta_spark.write(path, wrong)
    with pytest.raises(ConstraintViolationError, match="Generated Column"):
        append(path, wrong)
    delta_spark.sql(f"UPDATE delta.`{path}` SET n = 100 WHERE n = 4")
    update_rows(path, {"n": 50}, "n = 100")
    assert {(r["n"], r["twice"], r["rest"]) for r in theirs(delta_spark, path)} == {
        (-9, -18, -2),
        (50, 100, 1),
    }


def test_an_expression_that_only_spark_has_is_left_to_it(delta_spark, path, spark):
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` "
        "(s STRING, h STRING GENERATED ALWAYS AS (base64(s))) USING delta"
    )
    with pytest.raises(DeltaAnalysisError, match=r"h \(base64\(s\)\)"):
        write_arrow(path, pa.table({"s": ["a"]}), mode="append")
    lakelog.spark.write(spark.sql("SELECT 'a' s")).mode("append").save(path)
    delta_spark.write(path, delta_spark.read(path))
    assert {r["h"] for r in theirs(delta_spark, path)} == {"YQ=="}


# Identity columns ------------------------------------------------------------------------------


BY_CORE = [
    ("core", creator, start, step)
    for start, step in [(1, 1), (10, 3), (0, -2)]
    for creator in ("ours", "theirs")
]
# Of Spark's path only the append differs.
BY_SPARK = [("spark", "theirs", 10, 3), ("spark", "ours", 0, -2)]


@pytest.mark.parametrize(
    ("append", "creator", "start", "step"), BY_CORE + BY_SPARK, indirect=["append"]
)
def test_numbers_go_on_where_the_other_left_off(delta_spark, path, append, creator, start, step):
    if creator == "ours":
        columns = (identity_column("id", start=start, step=step), StructField("v", STRING))
        create_table(path, StructType(columns))
    else:
        delta_spark.sql(
            f"CREATE TABLE delta.`{path}` (id BIGINT GENERATED ALWAYS AS IDENTITY "
            f"(START WITH {start} INCREMENT BY {step}), v STRING) USING delta"
        )
    for turn in range(3):
        append(path, pa.table({"v": [f"us {turn}", f"us again {turn}"]}))
        delta_spark.sql(f"INSERT INTO delta.`{path}` (v) VALUES ('they {turn}'), ('more {turn}')")
        rows = theirs(delta_spark, path)
        numbers = [row["id"] for row in rows]
        assert len(set(numbers)) == len(numbers) == 4 * (turn + 1)
        assert all((n - start) % step == 0 and (n - start) // step >= 0 for n in numbers)
        assert mark(path) == (max(numbers) if step > 0 else min(numbers))
    info = actions(path, 1)["commitInfo"]["commitInfo"]
    assert info["tags"] == actions(path, 2)["commitInfo"]["commitInfo"]["tags"]
    with pytest.raises(DeltaSparkError, match="EXPLICIT_INSERT"):
        delta_spark.write(path, pa.table({"id": [1], "v": ["x"]}))
    with pytest.raises(DeltaAnalysisError, match="EXPLICIT_INSERT"):
        append(path, pa.table({"id": [1], "v": ["x"]}))


def test_numbers_that_writers_bring_move_no_mark_of_either(delta_spark, path, append):
    create_table(
        path, StructType((identity_column("id", by_default=True), StructField("v", STRING)))
    )
    delta_spark.write(path, pa.table({"id": [50], "v": ["theirs"]}))
    append(path, pa.table({"id": [60], "v": ["ours"]}))
    assert mark(path) is None
    append(path, pa.table({"v": ["counted"]}))
    delta_spark.sql(f"INSERT INTO delta.`{path}` (v) VALUES ('theirs, counted')")
    assert {r["v"]: r["id"] for r in theirs(delta_spark, path)} == {
        "theirs": 50,
        "ours": 60,
        "counted": 1,
        "theirs, counted": 2,
    }
    delta_spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN id SYNC IDENTITY")
    append(path, pa.table({"v": ["after"]}))
    assert {r["v"]: r["id"] for r in ours(path)}["after"] == 61


# Defaults --------------------------------------------------------------------------------------


def test_defaults_of_each_fill_the_rows_of_the_other(delta_spark, path, append, tmp_path):
    columns = {
        "b": ("BIGINT", "5"),
        "c": ("STRING", "concat('x', 'y')"),
        "d": ("DATE", "DATE'2024-02-29'"),
        "e": ("INT", "'12'"),
        "f": ("DECIMAL(10,2)", "1.5"),
    }
    listed = ", ".join(f"{name} {kind} DEFAULT {sql}" for name, (kind, sql) in columns.items())
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (a INT, {listed}) USING delta "
        "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
    )
    data = pa.table({"a": pa.array([1], pa.int32())})
    append(path, data)
    delta_spark.write(path, data)
    nulls = data.append_column("b", pa.array([None], pa.int64()))
    append(path, nulls)
    delta_spark.write(path, nulls)
    rows = sorted(map(str, theirs(delta_spark, path)))
    assert rows[0] == rows[1]
    assert rows[2] == rows[3]
    assert rows[0] != rows[2]
    mine = str(tmp_path / "mine")
    field = StructField("a", INT)
    create_table(
        mine, StructType((field, column_with_default("b", LONG, "5"))), properties=DEFAULTS
    )
    delta_spark.sql(f"INSERT INTO delta.`{mine}` (a) VALUES (1)")
    append(mine, data)
    assert theirs(delta_spark, mine) == [{"a": 1, "b": 5}] * 2


def test_a_table_of_ours_has_the_protocol_and_the_schema_of_delta_spark_s(
    delta_spark, path, tmp_path
):
    other = str(tmp_path / "other")
    delta_spark.sql(
        f"CREATE TABLE delta.`{other}` (id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 5), "
        "n INT COMMENT 'a number', m INT GENERATED ALWAYS AS (n + 1)) USING delta"
    )
    create_table(
        path,
        StructType(
            (
                identity_column("id", start=5, by_default=True),
                StructField("n", INT, metadata={"comment": "a number"}),
                generated_column("m", INT, "n + 1"),
            )
        ),
    )
    mine, peer = actions(path, 0), actions(other, 0)
    left, right = (json.loads(a["metaData"]["metaData"]["schemaString"]) for a in (mine, peer))
    assert left == right
    lists = [
        {k: sorted(v) if isinstance(v, list) else v for k, v in a["protocol"]["protocol"].items()}
        for a in (mine, peer)
    ]
    assert lists[0] == lists[1]
