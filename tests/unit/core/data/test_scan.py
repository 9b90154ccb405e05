from __future__ import annotations

import datetime as dt
import os
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog
from lakelog.core.errors import (
    DataFileError,
    DataFileMissingError,
    DeltaAnalysisError,
    InvalidPredicateError,
    SchemaMismatchError,
)
from lakelog.core.schema import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from support.raw_log import PROTOCOL, RawLog, add, metadata

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
TIMESTAMP = PrimitiveType("timestamp")


def struct(**types):
    return StructType(tuple(StructField(name, kind) for name, kind in types.items()))


class Table:
    """A table whose data files are written here, and whose log by hand."""

    def __init__(self, path, schema, partition_columns=()):
        self.path = path
        self.log = RawLog(path).commit(
            PROTOCOL, metadata(schema=schema, partition_columns=partition_columns)
        )

    def file(self, name, rows, action=None, values=None, **options):
        where = self.path / name
        where.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows if isinstance(rows, pa.Table) else pa.table(rows), where, **options)
        self.log.commit(add(action or name, partitionValues=values or {}))
        return self

    @property
    def snapshot(self):
        return DeltaLog.for_table(self.path).snapshot


@pytest.fixture
def table(tmp_path):
    def make(partition_columns=(), **types):
        return Table(tmp_path / "t", struct(**types), partition_columns)

    return make


def test_an_empty_table_has_no_rows_and_all_columns(table):
    found = table(a=LONG, s=STRING).snapshot.to_arrow()
    assert found.num_rows == 0
    assert found.schema == pa.schema({"a": pa.int64(), "s": pa.string()})


def test_files_come_in_the_order_of_the_log(table):
    made = table(a=LONG)
    for index in range(40):
        made.file(f"f{index}", {"a": [index, index + 100]})
    found = made.snapshot.to_arrow()["a"].to_pylist()
    assert found == [value for i in range(40) for value in (i, i + 100)]


def test_columns_are_chosen_in_any_order_and_case(table):
    made = table(a=LONG, B=STRING).file("f", {"a": [1], "B": ["x"]})
    assert made.snapshot.to_arrow(columns=["b", "A"]).to_pylist() == [{"B": "x", "a": 1}]


def test_no_column_still_counts_rows(table):
    made = table(a=LONG).file("f", {"a": [1, 2]}).file("g", {"a": [3]})
    assert made.snapshot.to_arrow(columns=[]).num_rows == 3


def test_an_unknown_column_is_named_with_those_that_exist(table):
    with pytest.raises(DeltaAnalysisError, match=r"no column 'z'; it has a, s"):
        table(a=LONG, s=STRING).snapshot.to_arrow(columns=["z"])


def test_a_column_asked_for_twice_is_refused(table):
    with pytest.raises(DeltaAnalysisError, match="twice"):
        table(a=LONG).snapshot.to_arrow(columns=["a", "A"])


def test_what_a_file_lacks_is_null_and_what_it_has_beside_is_ignored(table):
    made = table(a=LONG, s=struct(x=LONG, y=STRING))
    made.file("f", {"old": [1], "a": [1]}).file("g", {"s": [{"x": 1}], "a": [2]})
    assert made.snapshot.to_arrow().to_pylist() == [
        {"a": 1, "s": None},
        {"a": 2, "s": {"x": 1, "y": None}},
    ]


def test_a_file_with_none_of_the_columns_has_its_rows_nevertheless(table):
    made = table(a=LONG).file("f", {"old": [1, 2]})
    assert made.snapshot.to_arrow().to_pylist() == [{"a": None}, {"a": None}]


def test_names_in_files_are_matched_ignoring_case(table):
    made = table(aB=LONG).file("f", {"AB": [1]})
    assert made.snapshot.to_arrow().to_pylist() == [{"aB": 1}]


def test_narrower_types_are_widened(table):
    made = table(a=LONG, d=DecimalType(10, 2), x=PrimitiveType("double"))
    rows = {
        "a": pa.array([1], pa.int16()),
        "d": pa.array([Decimal("1.5")], pa.decimal128(4, 1)),
        "x": pa.array([1.5], pa.float32()),
    }
    found = made.file("f", rows).snapshot.to_arrow()
    assert found.schema.types == [pa.int64(), pa.decimal128(10, 2), pa.float64()]
    assert found.to_pylist() == [{"a": 1, "d": Decimal("1.50"), "x": 1.5}]


def test_a_type_that_would_lose_something_is_refused_with_the_file(table):
    made = table(a=LONG).file("odd.parquet", {"a": ["x"]})
    with pytest.raises(SchemaMismatchError) as caught:
        made.snapshot.to_arrow()
    assert "odd.parquet" in caught.value.__notes__[0]


MOMENTS = [
    dt.datetime(1500, 1, 1, tzinfo=dt.UTC),
    dt.datetime(2020, 1, 2, 3, 4, 5, 678_901, tzinfo=dt.UTC),
    None,
]


@pytest.mark.parametrize("kind", ["int96", "utc", "millis", "naive"])
def test_timestamps_of_every_writer_are_instants_in_utc(table, kind):
    made = table(
        t=TIMESTAMP, s=struct(t=TIMESTAMP), m=MapType(STRING, TIMESTAMP), l=ArrayType(TIMESTAMP)
    )
    zone = None if kind in ("int96", "naive") else "UTC"
    unit = "ms" if kind == "millis" else "us"
    moments = MOMENTS
    if kind == "millis":
        moments = [m and m.replace(microsecond=678_000 if m.microsecond else 0) for m in moments]
    plain = [m and (m if zone else m.replace(tzinfo=None)) for m in moments]
    of = pa.timestamp(unit, zone)
    rows = pa.table(
        {
            "t": pa.array(plain, of),
            "s": pa.array([{"t": m} for m in plain], pa.struct({"t": of})),
            "m": pa.array([[("k", m)] for m in plain], pa.map_(pa.string(), of)),
            "l": pa.array([[m] for m in plain], pa.list_(of)),
        }
    )
    made.file("f", rows, use_deprecated_int96_timestamps=kind == "int96")
    found = made.snapshot.to_arrow()
    assert found.schema.field("t").type == pa.timestamp("us", "UTC")
    assert found["t"].to_pylist() == moments
    assert [row["t"] for row in found["s"].to_pylist()] == moments
    assert [row[0][1] for row in found["m"].to_pylist()] == moments
    assert [row[0] for row in found["l"].to_pylist()] == moments


def test_timestamps_without_zone_stay_without(table):
    made = table(t=PrimitiveType("timestamp_ntz"))
    naive = dt.datetime(2020, 1, 2, 3, 4, 5)  # noqa: DTZ001  # that is the point
    found = made.file("f", {"t": pa.array([naive], pa.timestamp("us"))}).snapshot.to_arrow()
    assert found.schema.field("t").type == pa.timestamp("us")
    assert found["t"].to_pylist() == [naive]


def test_partition_columns_come_from_the_log_and_not_from_file_or_folder(table):
    made = table(("p", "d"), p=LONG, a=LONG, d=PrimitiveType("date"))
    made.file("p=7/f", {"a": [1, 2], "p": [99, 99]}, values={"p": "5", "d": "2020-01-02"})
    made.file("g", {"a": [3]}, values={"p": None, "d": None})
    assert made.snapshot.to_arrow().to_pylist() == [
        {"p": 5, "a": 1, "d": dt.date(2020, 1, 2)},
        {"p": 5, "a": 2, "d": dt.date(2020, 1, 2)},
        {"p": None, "a": 3, "d": None},
    ]
    assert made.snapshot.to_arrow(columns=["p"])["p"].to_pylist() == [5, 5, None]


def test_paths_are_decoded_once(table):
    made = table(("p",), p=STRING, a=LONG)
    made.file("p=a b%25/ü+.parquet", {"a": [1]}, "p=a%20b%2525/ü+.parquet", {"p": "a b%"})
    assert made.snapshot.to_arrow().to_pylist() == [{"p": "a b%", "a": 1}]


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_absolute_paths_are_read(table, tmp_path, prefix):
    made = table(a=LONG)
    pq.write_table(pa.table({"a": [7]}), tmp_path / "else where.parquet")
    made.log.commit(add(f"{prefix}{tmp_path}/else%20where.parquet"))
    assert made.snapshot.to_arrow().to_pylist() == [{"a": 7}]


@pytest.mark.parametrize("others", [0, 5])
def test_a_missing_data_file_is_named(table, others):
    made = table(a=LONG).file("gone.parquet", {"a": [1]})
    for index in range(others):
        made.file(f"f{index}", {"a": [1]})
    os.unlink(made.path / "gone.parquet")
    with pytest.raises(DataFileMissingError, match=r"gone\.parquet is missing") as caught:
        made.snapshot.to_arrow()
    assert caught.value.path == str(made.path / "gone.parquet")
    assert caught.value.version == 1 + others


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"", "it is empty"), (b"PAR1", "damaged"), (b"no parquet at all", "it is no Parquet file")],
)
def test_a_data_file_that_is_no_parquet_is_named(table, content, why):
    made = table(a=LONG).file("f.parquet", {"a": [1]})
    (made.path / "f.parquet").write_bytes(content)
    with pytest.raises(DataFileError, match=rf"f\.parquet can't be read: .*{why}"):
        made.snapshot.to_arrow()


def test_batches_can_be_taken_one_by_one(table):
    made = table(a=LONG)
    for index in range(50):
        made.file(f"f{index}", {"a": [index]})
    batches = made.snapshot.to_batches()
    assert next(batches).to_pylist() == [{"a": 0}]
    batches.close()
    assert sum(batch.num_rows for batch in made.snapshot.to_batches()) == 50


@pytest.fixture
def filtered(table):
    made = table(("p",), p=LONG, a=LONG, s=STRING, x=PrimitiveType("double"))
    for p in (1, 2, None):
        rows = {
            "a": list(range(100)),
            "s": [f"s{i:03d}" for i in range(100)],
            "x": [float("nan") if i == 50 else float(i) for i in range(100)],
        }
        text = None if p is None else str(p)
        made.file(f"f{p}", rows, values={"p": text}, row_group_size=10)
    return made


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("p = 1", 100),
        ("a < 5", 15),
        ("a >= 95 and p = 2", 5),
        ("a = 42 or p is null", 102),
        ("s = 's007'", 3),
        ("s like 's09%'", 30),
        ("x > 97", 9),
        ("x = 'NaN'", 3),
        ("a is null", 0),
        ("p is null and a in (1, 2)", 2),
        ("not (p = 1)", 100),
        ([("p", "=", 2), ("a", "<", 1)], 1),
        ([[("a", "=", 1)], [("a", "=", 2)]], 6),
    ],
)
def test_a_filter_keeps_exactly_its_rows(filtered, condition, count):
    assert filtered.snapshot.to_arrow(where=condition).num_rows == count


def test_a_filter_may_use_columns_that_are_not_shown(filtered):
    found = filtered.snapshot.to_arrow(columns=["s"], where="a = 3 and p = 1")
    assert found.to_pylist() == [{"s": "s003"}]


def test_a_filter_on_missing_columns_sees_null(table):
    made = table(a=LONG, new=LONG).file("f", {"a": [1, 2]})
    assert made.snapshot.to_arrow(where="new is null").num_rows == 2
    assert made.snapshot.to_arrow(where="new = 1").num_rows == 0


def test_row_groups_that_can_not_match_are_not_read(filtered, monkeypatch):
    read = []
    whole = pq.ParquetFile.read_row_groups

    def spy(self, groups, **options):
        read.append(list(groups))
        return whole(self, groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", spy)
    assert filtered.snapshot.to_arrow(where="a = 42 and p = 1").num_rows == 1
    assert read == [[4]]


@pytest.mark.parametrize("names", [("a.b", "a"), ("a", "a.b")])
def test_row_groups_are_judged_by_the_column_and_not_by_a_field_of_the_same_dotted_name(
    table, names
):
    values = {
        "a.b": pa.array(range(10), pa.int64()),
        "a": pa.array([{"b": -i} for i in range(10)], pa.struct([("b", pa.int64())])),
    }
    kinds = {"a.b": LONG, "a": struct(b=LONG)}
    made = table(**{name: kinds[name] for name in names})
    made.file("f", {name: values[name] for name in names}, row_group_size=5)
    assert made.snapshot.to_arrow(where="`a.b` = 7").num_rows == 1
    assert made.snapshot.to_arrow(where="a.b = -7").num_rows == 1


def test_files_that_can_not_match_are_not_opened(filtered):
    os.unlink(filtered.path / "f2")
    assert filtered.snapshot.to_arrow(where="p = 1").num_rows == 100
    with pytest.raises(DataFileMissingError):
        filtered.snapshot.to_arrow(where="p = 2")


def test_files_for_a_filter_are_those_that_may_match(filtered):
    snapshot = filtered.snapshot
    assert [f.path for f in snapshot.files("p = 1")] == ["f1"]
    assert snapshot.file_table_for("p = 1").num_rows == 1
    assert len(snapshot.files()) == 3


def test_a_filter_that_only_spark_understands_is_refused_before_reading(table):
    made = table(a=LONG)
    with pytest.raises(InvalidPredicateError):
        made.snapshot.to_arrow(where="sha(a) = 1")


def test_a_filter_on_an_unknown_column_is_refused(filtered):
    with pytest.raises(InvalidPredicateError, match="zz"):
        filtered.snapshot.to_arrow(where="zz = 1")
