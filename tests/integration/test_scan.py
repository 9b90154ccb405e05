from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core.actions import AddFile
from lakelog.core.actions.file_table import from_add_files
from lakelog.core.errors import DataFileMissingError
from lakelog.core.paths import encode_path
from lakelog.core.portable.partition_text import partition_folder
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.spark.reading.spark_scan import SparkScan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.connect

AWKWARD = [
    "a b", "a%20b", "é/ü", "x=y", "[z]*?{q}", "it's \"q\"", "日本", "a\\b", "0012", "c:d", "#h",
    "new\nline", None, "~`^&|<>,;+$", "😀", "__HIVE_DEFAULT_PARTITION__",
]  # fmt: skip
MAPPING = "delta.columnMapping"
THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"


class Files:
    """Data files of a table without a log."""

    def __init__(self, root: Path, partition_columns: list[str], **types: str) -> None:
        self.root = root
        self.columns = partition_columns
        fields = [StructField(n, PrimitiveType(t)) for n, t in types.items()]
        self.schema = StructType(tuple(fields))
        self.adds: list[AddFile] = []

    def add(self, folder: str, values: list[str | None], **data: Any) -> None:
        path = f"{folder}/part-{len(self.adds)}.parquet" if folder else f"{len(self.adds)}.parquet"
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(data), target)
        self.adds.append(
            AddFile(
                path=encode_path(path),
                partition_values=dict(zip(self.columns, values, strict=True)),
                size=target.stat().st_size,
                modification_time=0,
                data_change=True,
            )
        )

    def scan(self, spark: SparkSession) -> DataFrame:
        return SparkScan(
            spark,
            table=str(self.root),
            version=3,
            schema=self.schema,
            partition_columns=self.columns,
            files=from_add_files(self.adds),
        ).to_df()


def pairs(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in df.collect())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "t é%20 [x] {1}"


def hive(root: Path, values: list[str | None]) -> Files:
    files = Files(root, ["p"], p="string", id="long")
    for i, value in enumerate(values):
        files.add(partition_folder(["p"], [value]), [value], id=[i])
    return files


def loose(root: Path, values: list[str | None]) -> Files:
    files = Files(root, ["p"], p="string", id="long")
    for i, value in enumerate(values):
        files.add(f"f {i}%é", [value], id=[i])
    return files


def test_every_character_of_a_partition_value_survives_hive_folders(
    spark: SparkSession, root: Path
) -> None:
    got = {row.id: row.p for row in hive(root, AWKWARD).scan(spark).collect()}
    assert got == dict(enumerate(AWKWARD))


@pytest.mark.parametrize("count", [5, 40])
def test_values_that_no_folder_says_come_from_the_log(
    spark: SparkSession, root: Path, count: int
) -> None:
    values = (AWKWARD * 3)[:count]
    got = {row.id: row.p for row in loose(root, values).scan(spark).collect()}
    assert got == dict(enumerate(values))


def test_more_values_than_a_union_holds_are_joined_by_any_path(
    spark: SparkSession, root: Path
) -> None:
    names = ["ü é", "a#b?c", "x%41y", "[]{}", "a+b=c", "~!$&'()*,;@", "日本", '^`|<>"']
    files = Files(root, ["p"], p="string", id="long")
    for i in range(24):
        files.add(f"{names[i % 8]}{i}", [f"v{i}"], id=[i])
    assert pairs(files.scan(spark)) == [(f"v{i}", i) for i in sorted(range(24), key=str)]


def test_the_log_beats_a_folder_that_says_something_else(spark: SparkSession, root: Path) -> None:
    files = Files(root, ["p"], p="string", id="long")
    files.add("p=wrong", ["right"], id=[1])
    files.add("p=wrong", ["other"], id=[2])
    files.add("p=null", [None], id=[3])
    files.add("p=__HIVE_DEFAULT_PARTITION__", ["text"], id=[4])
    got = {row.id: row.p for row in files.scan(spark).collect()}
    assert got == {1: "right", 2: "other", 3: None, 4: "text"}


def test_a_foreign_folder_key_is_no_column(spark: SparkSession, root: Path) -> None:
    files = Files(root, ["p"], p="string", id="long")
    files.add("batch=1/p=a", ["a"], id=[1])
    files.add("batch=2/p=b", ["b"], id=[2])
    files.add("p=c", ["c"], id=[3])
    df = files.scan(spark)
    assert df.columns == ["p", "id"]
    assert pairs(df) == [("a", 1), ("b", 2), ("c", 3)]


def test_timestamps_in_folders_of_any_zone_are_the_instants_of_the_log(
    spark: SparkSession, root: Path
) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    files = Files(root, ["ts"], ts="timestamp", id="long")
    files.add("ts=2020-01-01 07%3A00%3A00", ["2020-01-01T12:00:00.000000Z"], id=[1])
    files.add("ts=2020-06-01T12%3A00%3A00.000001Z", ["2020-06-01T12:00:00.000001Z"], id=[2])
    files.add("loose", ["1960-02-29T23:59:59.999999Z"], id=[3])
    df = files.scan(spark).selectExpr("id", "unix_micros(ts) AS t")
    base = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    expected = [
        dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC),
        dt.datetime(2020, 6, 1, 12, 0, 0, 1, tzinfo=dt.UTC),
        dt.datetime(1960, 2, 29, 23, 59, 59, 999999, tzinfo=dt.UTC),
    ]
    micros = [(e - base) // dt.timedelta(microseconds=1) for e in expected]
    assert pairs(df) == list(enumerate(micros, start=1))


@pytest.mark.one_day_in(4)
@pytest.mark.connect(folder=(False,))
@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("integer", "-7", -7),
        ("long", "9223372036854775807", 2**63 - 1),
        ("short", "5", 5),
        ("byte", "-128", -128),
        ("double", "1.0E10", 1e10),
        ("float", "0.5", 0.5),
        ("boolean", "true", True),
        ("date", "1815-12-10", dt.date(1815, 12, 10)),
        ("binary", "é", bytearray("é".encode())),
        ("string", "0012", "0012"),
    ],
)
@pytest.mark.parametrize("folder", [True, False], ids=["hive", "loose"])
def test_each_type_of_partition_column_is_read_back(
    spark: SparkSession, root: Path, kind: str, text: str, value: Any, folder: bool
) -> None:
    files = Files(root, ["p"], p=kind, id="long")
    files.add(partition_folder(["p"], [text]) if folder else "x", [text], id=[1])
    files.add(partition_folder(["p"], [None]) if folder else "y", [None], id=[2])
    rows = files.scan(spark).orderBy("id").collect()
    assert [row.p for row in rows] == [value, None]


def test_columns_come_in_the_tables_order_and_missing_ones_as_null(
    spark: SparkSession, root: Path
) -> None:
    files = Files(root, ["p"], a="string", p="string", later="long", id="long")
    files.add("p=x", ["x"], id=[1], a=["a"])
    df = files.scan(spark)
    assert df.columns == ["a", "p", "later", "id"]
    assert pairs(df) == [("a", "x", None, 1)]


def test_column_names_need_no_quoting_by_the_caller(spark: SparkSession, root: Path) -> None:
    files = Files(root, ["a.b"], **{"a.b": "string", "c`d": "long", "e f": "long"})
    files.add("a.b=1", ["1"], **{"c`d": [2], "e f": [3]})
    assert pairs(files.scan(spark)) == [("1", 2, 3)]


def test_an_empty_table_has_its_schema(spark: SparkSession, root: Path) -> None:
    df = Files(root, ["p"], p="string", id="long").scan(spark)
    assert df.columns == ["p", "id"]
    assert df.count() == 0


def test_comments_stay_and_deltas_own_metadata_goes(spark: SparkSession, root: Path) -> None:
    files = Files(root, ["p"], p="string", id="long")
    files.add("p=x", ["x"], id=[1])
    noted = {"comment": "said", "delta.columnMapping.id": 1}
    fields = [StructField(f.name, f.data_type, False, noted) for f in files.schema]
    files.schema = StructType(tuple(fields))
    for field in files.scan(spark).schema.fields:
        assert field.metadata == {"comment": "said"}
        assert field.nullable


def test_a_missing_data_file_is_named_with_the_version(spark: SparkSession, root: Path) -> None:
    files = hive(root, ["a", "b"])
    gone = root / "p=b" / "part-1.parquet"
    gone.unlink()
    with pytest.raises(DataFileMissingError) as caught:
        files.scan(spark)
    assert caught.value.path == str(gone)
    assert caught.value.version == 3


def test_many_files_are_looked_up_without_a_job_and_confs_are_put_back(
    spark: SparkSession, root: Path
) -> None:
    files = hive(root, [str(i) for i in range(60)])
    before = spark.conf.get(THRESHOLD)
    df = files.scan(spark)
    assert spark.conf.get(THRESHOLD) == before
    assert df.count() == 60


@pytest.fixture
def jvm_calls(
    classic_spark: SparkSession, java_calls: Callable[[Callable[[], object]], int]
) -> Callable[[Files], int]:
    """How many calls of the JVM it takes to plan the read of some files."""
    return lambda files: java_calls(lambda: files.scan(classic_spark))


def test_planning_many_files_calls_the_jvm_no_more_often_than_planning_few(
    jvm_calls: Callable[[Files], int], root: Path
) -> None:
    few, many = (hive(root / str(n), [str(i % 10) for i in range(n)]) for n in (20, 60))
    found = jvm_calls(few), jvm_calls(many)
    assert found[1] < found[0] + 20, found


@pytest.mark.parametrize(("mapped", "a_column"), [(False, 0), (True, 1)])
def test_planning_many_columns_calls_the_jvm_for_their_names_at_most(
    jvm_calls: Callable[[Files], int], root: Path, mapped: bool, a_column: int
) -> None:
    few, many = (wide(root / str(n), n, mapped=mapped) for n in (4, 40))
    found = jvm_calls(few), jvm_calls(many)
    assert found[1] <= found[0] + 36 * a_column + 5, found


@pytest.mark.parametrize("mapped", [False, True])
def test_columns_that_spark_reads_as_they_are_keep_names_order_and_comments(
    spark: SparkSession, root: Path, mapped: bool
) -> None:
    df = wide(root, 4, mapped=mapped).scan(spark)
    assert df.columns == ["n3", "n2", "n1", "n0"]
    assert [field.metadata for field in df.schema] == [
        {"comment": f"of n{n}"} for n in (3, 2, 1, 0)
    ]
    assert [tuple(row) for row in df.collect()] == [(3, 2, 1, 0)]


def test_what_keeps_spark_from_writing_to_a_frame_is_gone_from_its_plan(
    classic_spark: SparkSession, root: Path
) -> None:
    df = wide(root, 4, mapped=False).scan(classic_spark)
    frame: Any = df
    assert str(frame._jdf.queryExecution().analyzed()).startswith("Filter true")
    assert str(frame._jdf.queryExecution().optimizedPlan()).startswith("Relation [")
    found: Any = df.where("n1 > 0").select("n2", "_metadata.file_name", "_metadata.row_index")
    plan = str(found._jdf.queryExecution().executedPlan())  # pyright: ignore[reportOptionalCall]
    assert "ReadSchema: struct<n2:bigint,n1:bigint,_tmp_metadata_row_index:bigint>" in plan
    assert "PushedFilters: [IsNotNull(n1), GreaterThan(n1,0)]" in plan
    assert [tuple(row) for row in found.collect()] == [(2, "0.parquet", 0)]


def wide(root: Path, columns: int, *, mapped: bool) -> Files:
    """A file of as many columns, whose table has them in another order."""
    stored = [f"stored {n}" if mapped else f"n{n}" for n in range(columns)]
    files = Files(root, [])
    files.add("", [], **{name: [n] for n, name in enumerate(stored)})
    fields = []
    for n in reversed(range(columns)):
        noted: dict[str, Any] = {"comment": f"of n{n}"}
        if mapped:
            noted |= {f"{MAPPING}.id": n + 1, f"{MAPPING}.physicalName": stored[n]}
        fields.append(StructField(f"n{n}", PrimitiveType("long"), True, noted))
    files.schema = StructType(tuple(fields))
    return files


def test_a_filter_on_a_partition_column_prunes_in_sparks_planner(
    classic_spark: SparkSession, root: Path
) -> None:
    for files in (hive(root / "h", list("abcdef")), loose(root / "l", list("abcdef"))):
        df = files.scan(classic_spark).where("p = 'b'")
        assert [row.id for row in df.collect()] == [1]
        assert df.rdd.getNumPartitions() == 1


def test_a_filter_on_a_cast_partition_column_prunes_too(
    classic_spark: SparkSession, root: Path
) -> None:
    files = Files(root, ["d"], d="date", id="long")
    for i in range(6):
        files.add(f"d=2020-01-0{i + 1}", [f"2020-01-0{i + 1}"], id=[i])
    df = files.scan(classic_spark).where("d > DATE'2020-01-05'")
    assert [row.id for row in df.collect()] == [5]
    inside: Any = df
    plan = inside._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull" in plan
    assert df.rdd.getNumPartitions() == 1
