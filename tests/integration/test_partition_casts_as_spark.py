"""A partition value is what Spark casts its text to, as Delta does: without ANSI mode."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.errors import CorruptLogError
from lakelog.core.schema import DataType, DecimalType, PrimitiveType
from lakelog.spark import read, write
from support.raw_log import partitioned

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

ZONE = "Europe/Berlin"
SHORT_ZONES = (
    *("ACT", "AET", "AGT", "ART", "AST", "BET", "BST", "CAT", "CNT", "CST", "CTT", "EAT", "ECT"),
    *("EST", "HST", "IET", "IST", "JST", "MIT", "MST", "NET", "NST", "PLT", "PNT", "PRT", "PST"),
    *("SST", "VST"),
)
SEEDS = {
    "integer": ["7", "+12", "-2147483648", "1.5", ".5", "9"],
    "long": ["9223372036854775807", "-1.", "0"],
    "boolean": ["true", "f", "YES", "0"],
    "date": ["2024-01-05", "+10000-1-1", "0001-12-31", "-0044-03-15", "2024-01-05T1"],
    "double": ["1.5", "1e5", "NaN", "-inf", "Infinity", ".5e-3", "1.5f"],
    "decimal(5,2)": ["1.235", "-999.99", "1e2", ".005"],
    "timestamp": [
        "2024-01-05 01:02:03.123456",
        "2024-1-5T1:2:3Z",
        "1800-01-01 00:00:00",
        "2024-03-31 02:30:00 +01:30",
        "9999-12-31 23:59:59 UTC",
        "T12:30",
        "1:02:03.5 PST",
        "23:59:59Asia/Tokyo",
        *(f"2024-07-01 00:00:00 {name}" for name in SHORT_ZONES),
    ],
    "timestamp_ntz": ["2024-01-05 01:02:03.5", "2024-01-05", "12:30", "T1"],
}
LETTERS = "0123456789 -+:.TZe\t"
SHOWN = {
    "date": "unix_date(v)",
    "timestamp": "unix_micros(v)",
    "timestamp_ntz": "unix_micros(cast(concat(cast(v as string), 'Z') as timestamp))",
}


def drawn(seeds: list[str], rng: random.Random) -> list[str]:
    """The seeds, and texts that differ from one of them by a letter or two."""
    texts = dict.fromkeys(seeds)
    while len(texts) < 120:
        text = rng.choice(seeds)
        for _ in range(rng.choice([1, 1, 2])):
            at = rng.randrange(len(text) + 1)
            text = (
                text[:at] + rng.choice([rng.choice(LETTERS), ""]) + text[at + rng.choice([0, 1]) :]
            )
        texts[text] = None
    return [text for text in texts if text]


def ours(text: str, data_type: DataType) -> str | None:
    try:
        return str(cast_text(text, data_type, ZONE))
    except ValueError:
        return None


def test_every_text_is_what_spark_casts_it_to(spark: SparkSession) -> None:
    rng = random.Random(20240105)
    kept = {
        key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")
    }
    spark.conf.set("spark.sql.ansi.enabled", "false")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    differ: list[tuple[str, str, str | None, Any]] = []
    try:
        for name, seeds in SEEDS.items():
            data_type = DecimalType(5, 2) if "(" in name else PrimitiveType(name)
            spelled = {"integer": "int", "long": "bigint"}.get(name, name)
            rows = spark.createDataFrame([(t,) for t in drawn(seeds, rng)], "x string")
            cast = rows.selectExpr("x", f"cast(x as {spelled}) v")
            for row in cast.selectExpr("x", f"{SHOWN.get(name, 'v')} v").collect():
                theirs = None if row.v is None else str(row.v)
                if ours(row.x, data_type) != theirs:
                    differ.append((name, row.x, ours(row.x, data_type), theirs))
    finally:
        for key, value in kept.items():
            spark.conf.set(key, value or "")
    assert differ == []


def rows_of(frame: DataFrame) -> list[tuple[int, str | None]]:
    found = frame.selectExpr("a", "cast(p as string) p").collect()
    return sorted((row.a, row.p) for row in found)


@pytest.mark.parametrize("way", ["native", "arrow"])
def test_a_read_and_a_replacement_take_them_so(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    texts = ["7 ", "7.9", "7", "8"]
    uri = partitioned(tmp_path, PrimitiveType("integer"), *texts)
    reader = read(spark).option("spark.lakelog.read.path", way)
    assert rows_of(reader.load(uri)) == [(0, "7"), (1, "7"), (2, "7"), (3, "8")]
    assert rows_of(reader.load(uri).where("p = 7")) == [(0, "7"), (1, "7"), (2, "7")]
    new = spark.sql("SELECT 9L AS a, 7 AS p")
    write(new).mode("overwrite").replaceWhere("p = 7").save(uri)
    assert rows_of(reader.load(uri)) == [(3, "8"), (9, "7")]


@pytest.mark.parametrize("way", ["native", "arrow"])
def test_what_spark_does_not_understand_is_named_and_never_removed(
    spark: SparkSession, tmp_path: Path, way: str
) -> None:
    uri = partitioned(tmp_path, PrimitiveType("integer"), "7", "x")
    reader = read(spark).option("spark.lakelog.read.path", way)
    new = spark.sql("SELECT 9L AS a, 7 AS p")
    for attempt in (
        lambda: reader.load(uri).collect(),
        lambda: write(new).mode("overwrite").replaceWhere("p = 7").save(uri),
        lambda: write(new).mode("overwrite").replaceWhere("p = 7 AND a > 0").save(uri),
    ):
        with pytest.raises(CorruptLogError, match=r"f1\.parquet has the value 'x'"):
            attempt()
    assert DeltaLog.for_table(uri).snapshot.version == 0
