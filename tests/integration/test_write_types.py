"""Every type that Delta has, by every way that a write may take, as other clients read it."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakelog.core import DeltaLog, create_table
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.paths import data_path
from lakelog.spark import read, sql, write

WAYS = ["driver", "native", "arrow"]

EVERYTHING = """
SELECT CAST(id AS TINYINT) AS byte, CAST(-id AS SMALLINT) AS short, CAST(id AS INT) AS integer, id,
  CAST(id AS FLOAT) / 3 AS float, CAST(id AS DOUBLE) / 3 AS double,
  CAST(id AS DECIMAL(38, 18)) / 7 AS decimal, CAST(-id AS DECIMAL(7, 2)) AS small_decimal,
  CONCAT('é "x" ', id) AS string, CAST(CONCAT('b', id) AS BINARY) AS binary, id % 2 = 0 AS boolean,
  DATE_ADD(DATE'0099-12-31', CAST(id * 400000 AS INT)) AS date,
  TIMESTAMP_MICROS(UNIX_MICROS(TIMESTAMP'1501-03-05 23:59:59.123456Z') + id * 8640000000000000)
    AS timestamp,
  TIMESTAMP_NTZ'1969-12-31 23:59:59.999999' + MAKE_DT_INTERVAL(CAST(id AS INT)) AS ntz,
  ARRAY(id, NULL) AS array, MAP('k', ARRAY(id), 'n', NULL) AS map,
  NAMED_STRUCT('x', id, 'y', ARRAY(NAMED_STRUCT('z', CAST(id AS STRING)))) AS struct
FROM RANGE(4)
"""


@pytest.fixture(params=WAYS)
def way(request, spark):
    spark.conf.set("spark.lakelog.write.path", request.param)
    yield request.param
    spark.conf.unset("spark.lakelog.write.path")


@pytest.fixture
def table(tmp_path):
    return str(tmp_path / "tablé 100% [x]")


def nulls_beside(spark, sql):
    """The rows of a query, and one row of nulls but for the id."""
    frame = spark.sql(sql)
    empty = ", ".join(
        "99L AS id" if f.name == "id" else f"CAST(NULL AS {f.dataType.simpleString()}) AS {f.name}"
        for f in frame.schema.fields
    )
    return frame.union(spark.sql(f"SELECT {empty}"))


def expected_rows():
    out = []
    for i in range(4):
        day = dt.date(99, 12, 31) + dt.timedelta(days=i * 400000)
        stamp = dt.datetime(1501, 3, 5, 23, 59, 59, 123456, dt.UTC)
        out.append(
            {
                "byte": i,
                "short": -i,
                "integer": i,
                "id": i,
                "boolean": i % 2 == 0,
                "small_decimal": Decimal(-i).quantize(Decimal("0.01")),
                "string": f'é "x" {i}',
                "binary": f"b{i}".encode(),
                "date": day,
                "timestamp": stamp + dt.timedelta(days=i * 100000),
                "ntz": dt.datetime(1969, 12, 31, 23, 59, 59, 999999) + dt.timedelta(days=i),  # noqa: DTZ001
                "array": [i, None],
                "map": [("k", [i]), ("n", None)],
                "struct": {"x": i, "y": [{"z": str(i)}]},
            }
        )
    return out


@pytest.mark.connect
def test_every_type_is_read_back_by_another_client(spark, way, table):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")

    write(nulls_beside(spark, EVERYTHING)).save(table)

    found = DeltaTable(table).to_pyarrow_table().sort_by("id").to_pylist()
    assert found.pop()["double"] is None
    for row, wanted in zip(found, expected_rows(), strict=True):
        assert {name: row[name] for name in wanted} == wanted
        assert math.isclose(row["double"], row["id"] / 3)
        assert row["decimal"] * 7 - row["id"] < Decimal("1e-5")


@pytest.mark.connect
def test_our_own_reader_gives_the_same_rows_as_spark_had(spark, way, table):
    frame = nulls_beside(spark, EVERYTHING)

    write(frame).save(table)

    found = DeltaLog.for_table(table).snapshot.to_arrow().sort_by("id").to_pylist()
    assert found == frame.orderBy("id").toArrow().to_pylist()


PARTITIONS = {
    "p_byte": "CAST(id AS TINYINT)",
    "p_short": "CAST(-id AS SMALLINT)",
    "p_integer": "CAST(id AS INT)",
    "p_long": "id * 1000000007",
    "p_float": "CAST(id AS FLOAT) * 1.0E10F",
    "p_double": "CAST(id AS DOUBLE) / 7",
    "p_decimal": "CAST(CAST(id AS DECIMAL(20, 6)) / 7 AS DECIMAL(20, 6))",
    "p_boolean": "id % 2 = 0",
    "p_date": "DATE_ADD(DATE'1960-02-29', CAST(id AS INT))",
    "p_timestamp": "TIMESTAMP_MICROS(id * 86400000000 - 999999)",
    "p_ntz": "TIMESTAMP_NTZ'2020-03-08 02:30:00.5' + MAKE_DT_INTERVAL(CAST(id AS INT))",
    "p_binary": "CAST(CONCAT('b=', id) AS BINARY)",
    "p_string": "ELT(id + 1, 'a b/c=d%e:f', 'ünï \"q\"', '{[*?]}#&+', ' trailing ')",
}


@pytest.mark.connect
def test_partition_columns_of_every_type_are_read_back(spark, way, table):
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    columns = ", ".join(f"{sql} AS {name}" for name, sql in PARTITIONS.items())
    frame = nulls_beside(spark, f"SELECT id, {columns} FROM RANGE(4)")

    write(frame).partitionBy(*PARTITIONS).save(table)

    wanted = frame.orderBy("id").toArrow()
    ours = DeltaLog.for_table(table).snapshot.to_arrow().sort_by("id")
    assert ours.to_pylist() == wanted.to_pylist()
    # deltalake does not decode the text of binary partitions.
    others = [name for name in wanted.column_names if name != "p_binary"]
    theirs = DeltaTable(table).to_pyarrow_table(columns=others).sort_by("id")
    assert theirs.to_pylist() == wanted.select(others).to_pylist()


def test_partition_values_are_spelled_as_delta_spells_them(spark, way, table):
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    write(
        spark.sql(
            "SELECT 1L AS id, TIMESTAMP'2024-07-01 02:00:00Z' AS t, DATE'2024-01-02' AS d, "
            "'' AS s, CAST(0 AS DECIMAL(30, 18)) AS n, 1.0E10D AS f"
        )
    ).partitionBy("t", "d", "s", "n", "f").save(table)

    (add,) = DeltaLog.for_table(table).snapshot.files()

    assert dict(add.partition_values) == {
        "t": "2024-07-01T02:00:00.000000Z",
        "d": "2024-01-02",
        "s": None,
        "n": "0.000000000000000000",
        "f": "1.0E10",
    }
    assert "/s=__HIVE_DEFAULT_PARTITION__/" in add.path


def test_timestamps_are_stored_as_microseconds_with_bounds(spark, way, table):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    write(spark.sql("SELECT TIMESTAMP'2024-01-01 00:00:00.123456Z' AS t")).save(table)

    (add,) = DeltaLog.for_table(table).snapshot.files()

    assert json.loads(add.stats or "")["minValues"] == {"t": "2024-01-01T00:00:00.123Z"}
    assert pq.read_schema(data_path(table, add.path)).field("t").type == pa.timestamp("us", "UTC")


def test_a_file_with_a_nan_has_no_bounds(spark, way, table):
    frame = spark.sql(
        "SELECT * FROM VALUES (1.0D, 1.0D, 1L), (double('NaN'), 2.0D, 2L), (-3.0D, NULL, 3L) "
        "AS t(a, b, id)"
    ).coalesce(1)
    write(frame).save(table)

    stats = [json.loads(add.stats or "") for add in DeltaLog.for_table(table).snapshot.files()]

    # A reader that finds bounds of some columns alone takes the others' for null.
    with_nan = [each for each in stats if each["numRecords"] > 1]
    assert with_nan
    assert not any("maxValues" in each or "minValues" in each for each in with_nan)
    assert sum(each["nullCount"]["b"] for each in stats) == 1
    values = [row["a"] for row in DeltaTable(table).to_pyarrow_table().sort_by("id").to_pylist()]
    assert values[0] == 1.0
    assert math.isnan(values[1])


def test_statistics_count_rows_and_nulls_and_cut_long_texts(spark, way, table):
    frame = spark.sql(
        "SELECT id, IF(id = 0, NULL, REPEAT('x', 50)) AS s, NAMED_STRUCT('y', id) AS t "
        "FROM RANGE(3)"
    )
    write(frame.coalesce(1)).save(table)

    stats = [json.loads(add.stats or "") for add in DeltaLog.for_table(table).snapshot.files()]

    assert sum(each["numRecords"] for each in stats) == 3
    assert sum(each["nullCount"]["s"] for each in stats) == 1
    assert max(each["maxValues"]["t"]["y"] for each in stats) == 2
    assert {each["minValues"]["s"] for each in stats if "s" in each["minValues"]} == {"x" * 32}


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("number", [1, 3000])
def test_a_struct_may_be_null_whose_fields_never_are(spark, way, table, number):
    rows = spark.range(number).selectExpr(
        "id", "IF(id % 2 = 0, NULL, NAMED_STRUCT('x', id, 'y', NAMED_STRUCT('z', id))) AS s"
    )
    write(rows).save(table)

    found = DeltaLog.for_table(table).snapshot.to_arrow().sort_by("id")
    expected = [None if i % 2 == 0 else {"x": i, "y": {"z": i}} for i in range(number)]
    assert found["s"].to_pylist() == expected


def test_intervals_go_in_and_come_out(spark, tmp_path):
    uri, both = str(tmp_path / "t"), "INTERVAL '1 02:03:04.5' DAY TO SECOND AS d"
    allow = "spark.databricks.delta.schema.typeCheck.enabled"
    with pytest.raises(DeltaAnalysisError, match=f"DELTA_UNSUPPORTED_DATA_TYPES.*{allow}"):
        write(spark.sql(f"SELECT {both}")).save(uri)
    create_table(uri, "i int, d interval day, m interval month", conf={allow: "false"})
    partitioned = str(tmp_path / "p")
    columns = "i int, d interval second, m interval year"
    create_table(partitioned, columns, partition_by=["d", "m"], conf={allow: "false"})
    query = f"SELECT 1 AS i, {both}, INTERVAL '-1-6' YEAR TO MONTH AS m UNION SELECT 2, NULL, NULL"
    texts = ["i", "CAST(d AS STRING)", "CAST(m AS STRING)"]
    expected = [
        (1, "INTERVAL '1 02:03:04.5' DAY TO SECOND", "INTERVAL '-1-6' YEAR TO MONTH"),
        (2, None, None),
    ]
    for table in (uri, partitioned):
        write(spark.sql(query)).mode("append").save(table)
        found = read(spark).load(table)
        assert sorted(map(tuple, found.selectExpr(*texts).collect())) == expected
        assert found.where("m < INTERVAL '0' MONTH AND d > INTERVAL '1' DAY").count() == 1
        rows = sorted(DeltaLog.for_table(table).snapshot.to_arrow().to_pylist(), key=str)
        assert rows[0] == {"i": 1, "d": dt.timedelta(1, 7384, 500_000), "m": -18}
    files = DeltaLog.for_table(partitioned).snapshot.files()
    assert {tuple(each.partition_values.values()) for each in files} == {
        expected[0][1:],
        expected[1][1:],
    }


def test_a_broken_table_is_mended_by_sql(spark, tmp_path):
    uri = str(tmp_path / "t")
    write(spark.sql("SELECT 1 AS a")).save(uri)
    (file,) = DeltaLog.for_table(uri).snapshot.files()
    write(spark.sql("SELECT 2 AS a")).mode("append").save(uri)
    Path(data_path(uri, file.path)).unlink()
    for end, mended, left in ((" DRY RUN", False, 2), ("", True, 1)):
        (row,) = sql(spark, f"FSCK REPAIR TABLE delta.`{uri}`{end}").collect()
        assert (row.kind, row.path) == ("missing file", data_path(uri, file.path))
        assert row.mended == mended
        assert DeltaLog.for_table(uri).snapshot.num_files == left
    assert sql(spark, f"fsck repair table delta.`{uri}`").collect() == []
