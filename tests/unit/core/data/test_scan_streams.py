"""A scan gives the rows of a snapshot as batches, streams, counts and bounds, in bounded memory."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, Scan, delete_rows, scan, write_arrow
from lakelog.core.alter import change_column, rename_column
from lakelog.core.data import ahead, table_scan
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.data.row_reader import RowReader
from lakelog.core.errors import DataFileMissingError, DeltaAnalysisError, InvalidPredicateError
from support.drawn_tables import DrawnTable, drawn_tables
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def remove_files(uri: str) -> None:
    """Leave the log alone: what opens a data file fails."""
    for each in DeltaLog.for_table(uri).snapshot.files():
        (Path(uri) / each.path).unlink()


def exact(rows: pa.Table) -> list[str]:
    return [repr(row) for row in rows.to_pylist()]


@st.composite
def conditions(draw: st.DrawFn, data: pa.Table) -> Any:
    """Up to two parts of a condition, on values that the data has."""
    parts: list[Any] = []
    for _ in range(draw(st.integers(0, 2))):
        name = draw(st.sampled_from(data.column_names))
        values = [each for each in data[name].to_pylist() if each is not None]
        if not values or isinstance(values[0], dict | list | bytes):
            parts.append(([name], "is", None))
            continue
        operator = draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "not in"]))
        value = draw(st.sampled_from(values))
        parts.append(([name], operator, [value] if operator.endswith("in") else value))
    return parts


@settings(max_examples=examples(16))
@given(st.data(), drawn_tables())
def test_any_table_is_read_the_same_in_every_way(data: st.DataObject, drawn: DrawnTable) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri, table = str(Path(folder) / "t"), drawn.data
        properties = data.draw(st.sampled_from([{}, VECTORS, {"delta.columnMapping.mode": "name"}]))
        middle = data.draw(st.integers(0, table.num_rows))
        for part in (table.slice(0, middle), table.slice(middle)):
            options: Any = {"partition_by": list(drawn.partition_by), "properties": properties}
            write_arrow(uri, part, mode="append", **options)
        if table.num_rows and data.draw(st.booleans()):
            delete_rows(uri, "id = 1")
        snapshot = DeltaLog.for_table(uri).snapshot
        names = st.lists(st.sampled_from(table.column_names), unique=True)
        columns = data.draw(st.none() | names)
        where = _readable(data.draw(conditions(table)))
        expected = snapshot.to_arrow(columns, where)
        found = snapshot.scan(columns, where)
        size = data.draw(st.none() | st.integers(1, 4))
        assert found.schema == expected.schema

        batches = list(found.to_batches(size))
        assert all(0 < each.num_rows <= (size or 6) for each in batches)
        joined = pa.Table.from_batches(batches, expected.schema) if columns != [] else None
        if joined is not None:
            joined.validate(full=True)
            assert exact(joined) == exact(expected)
            some = pa.table(found.to_reader(size, ordered=False))
            assert sorted(exact(some)) == sorted(exact(expected))
        assert sum(each.num_rows for each in batches) == expected.num_rows == found.count()
        most = data.draw(st.integers(0, 7))
        first = found.limit(most)
        if columns != []:
            assert exact(first.to_arrow()) == exact(expected.slice(0, most))
        assert first.to_arrow().num_rows == min(most, expected.num_rows)
        assert first.count() == first.to_arrow().num_rows
        for name in expected.column_names:
            _check_extremes(found, name, expected)


def _readable(parts: list[Any]) -> Any:
    """As conditions of pyarrow where there are any, whose names need no quotes."""
    return [(name, operator, value) for (name,), operator, value in parts] or None


def _check_extremes(found: Scan, name: str, expected: pa.Table) -> None:
    values = [each for each in expected[name].to_pylist() if each is not None]
    if pa.types.is_nested(expected.schema.field(name).type):
        with pytest.raises(DeltaAnalysisError, match="no least"):
            found.min(name)
        return
    key: Any = (lambda each: (math.isnan(each), each)) if _is_float(expected, name) else None
    least, most = (min(values, key=key), max(values, key=key)) if values else (None, None)
    for bound, real in ((found.min(name), least), (found.max(name), most)):
        assert bound == real or str(bound) == str(real)  # NaN is not NaN, and 0.0 is -0.0


def _is_float(table: pa.Table, name: str) -> bool:
    return bool(pa.types.is_floating(table.schema.field(name).type))


def test_deleted_rows_renamed_and_widened_columns_are_as_in_the_table(uri: str) -> None:
    properties = {
        **VECTORS,
        "delta.columnMapping.mode": "name",
        "delta.enableTypeWidening": "true",
    }
    rows = pa.table({"a": pa.array([1, 2, 3], pa.int32()), "b": ["x", "y", "z"]})
    write_arrow(uri, rows, properties=properties)
    delete_rows(uri, "a = 2")
    change_column(uri, "a", data_type="bigint")
    rename_column(uri, "b", "c")
    write_arrow(uri, {"a": [1 << 40], "c": ["w"]}, mode="append")

    found = scan(uri)
    assert pa.table(found).to_pylist() == [
        {"a": 1, "c": "x"}, {"a": 3, "c": "z"}, {"a": 1 << 40, "c": "w"},
    ]  # fmt: skip
    assert found.schema.field("a").type == pa.int64()
    assert (found.count(), found.min("a"), found.max("a"), found.max("c")) == (3, 1, 1 << 40, "z")
    assert scan(uri, where="c = 'z'", columns="a").to_arrow()["a"].to_pylist() == [3]


def test_counts_and_bounds_of_statistics_open_no_file(uri: str) -> None:
    days = [dt.date(2026, 1, day) for day in (1, 2, 3)]
    data = pa.table({"p": [1, 1, 2], "n": [5, 6, None], "day": days, "name": ["a", "b", "c"]})
    write_arrow(uri, data, partition_by="p")
    remove_files(uri)

    found = scan(uri)
    assert found.count() == 3
    assert found.limit(2).count() == 2
    assert (found.min("n"), found.max("n")) == (5, 6)
    assert (found.min("day"), found.max("day")) == (days[0], days[2])
    assert (found.min("p"), found.max("P")) == (1, 2)
    assert scan(uri, where="p = 1").count() == 2
    assert scan(uri, where="p = 1").max("day") == days[1]
    assert scan(uri, where="day >= '2026-01-03'").count() == 1
    assert scan(uri, where="day < '2026-01-03' AND p = 1 AND name < 'c'").count() == 2
    assert scan(uri, where="n > 100").min("n") is None
    # Half of a file matches, nulls are in the column, and texts are cut in statistics.
    for unsure in (
        lambda: scan(uri, where="day = '2026-01-02'").count(),
        lambda: scan(uri, where="n < 6").count(),
        lambda: found.max("name"),
    ):
        with pytest.raises(DataFileMissingError):
            unsure()


def test_deleted_rows_count_and_leave_bounds_in_doubt(uri: str) -> None:
    write_arrow(uri, {"n": [1, 2, 3]}, properties=VECTORS)
    write_arrow(uri, {"n": [3, 4]}, mode="append")
    delete_rows(uri, "n = 1 OR n = 4")
    found = scan(uri)
    assert (found.count(), found.min("n"), found.max("n")) == (3, 2, 3)


def test_a_file_whose_bound_is_worse_is_not_opened(uri: str) -> None:
    write_arrow(uri, {"n": [10, 20]}, properties=VECTORS)
    write_arrow(uri, {"n": [1, 2]}, mode="append")
    delete_rows(uri, "n = 10")
    remove_files(uri)
    assert scan(uri).min("n") == 1
    with pytest.raises(DataFileMissingError):
        scan(uri).max("n")


def test_files_without_statistics_are_counted_by_their_footers(uri: str) -> None:
    write_arrow(uri, {"n": [1, 2]}, properties={"delta.dataSkippingNumIndexedCols": "0"})
    log = Path(uri) / "_delta_log" / f"{0:020d}.json"
    text = log.read_text()
    assert r"\"numRecords\":2" in text
    log.write_text(text.replace(r"\"numRecords\":2", r"\"other\":2"))
    (Path(uri) / "_delta_log" / f"{0:020d}.crc").unlink(missing_ok=True)
    found = scan(uri)
    assert (found.count(), found.min("n"), found.max("n")) == (2, 1, 2)


def test_row_groups_that_cannot_match_are_not_read(uri: str) -> None:
    write_arrow(uri, {"n": list(range(100))})
    (file,) = DeltaLog.for_table(uri).snapshot.files()
    place = Path(uri) / file.path
    pq.write_table(pq.read_table(place), place, row_group_size=10)
    # What is in the other row groups is not even read.
    metadata = pq.read_metadata(place)
    data = bytearray(place.read_bytes())
    for group in range(metadata.num_row_groups):
        if group == 4:
            continue
        column = metadata.row_group(group).column(0)
        start = column.dictionary_page_offset or column.data_page_offset
        data[start : start + column.total_compressed_size] = bytes(column.total_compressed_size)
    place.write_bytes(data)
    found = scan(uri, where="n >= 43 AND n < 47")
    assert pa.table(found)["n"].to_pylist() == [43, 44, 45, 46]
    assert found.count() == 4
    with pytest.raises(OSError, match=r"header|Thrift|thrift|page"):
        scan(uri).to_reader().read_all()


def test_long_rows_make_small_batches(uri: str) -> None:
    texts = [f"{n:06}" * 50_000 for n in range(160)]
    write_arrow(uri, {"t": texts})
    sizes = [each.num_rows for each in scan(uri).to_batches()]
    assert sum(sizes) == 160
    assert max(sizes) < 160


def test_a_scan_is_read_again_each_time_and_stays_at_its_version(uri: str) -> None:
    write_arrow(uri, {"n": [1, 2]})
    found = scan(DeltaLog.for_table(uri))
    write_arrow(uri, {"n": [3]}, mode="append")
    assert [pa.table(found).num_rows for _ in range(2)] == [2, 2]
    assert scan(uri).count() == 3
    assert scan(uri, version=0).count() == 2
    assert repr(scan(uri, "n", "n > 1").limit(1)) == f"Scan({uri}, version 1, where n > 1, limit 1)"


def test_other_libraries_take_a_scan(uri: str) -> None:
    write_arrow(uri, {"n": [1, 2, 3], "t": ["a", None, "c"]})
    found = scan(uri, where="n > 1")
    assert duckdb.execute("SELECT sum(n) FROM found").fetchall() == [(5,)]
    assert polars.DataFrame(found).rows() == found.to_polars().rows() == [(2, None), (3, "c")]
    assert found.to_pandas()["n"].tolist() == [2, 3]
    assert pa.schema(found) == found.schema
    other = f"{uri}2"
    write_arrow(other, found)
    assert scan(other).to_arrow().equals(found.to_arrow())


@pytest.mark.parametrize(("package", "method"), [("pandas", "to_pandas"), ("polars", "to_polars")])
def test_a_package_that_is_missing_is_named(
    uri: str, package: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_arrow(uri, {"n": [1]})
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        getattr(scan(uri), method)()


def test_what_is_wrong_is_said_before_anything_is_read(uri: str) -> None:
    write_arrow(uri, {"n": [1], "s": [[1]]})
    remove_files(uri)
    found = scan(uri)
    with pytest.raises(DeltaAnalysisError, match="no column 'm'"):
        scan(uri, "m")
    with pytest.raises(DeltaAnalysisError, match="no column 's'"):
        scan(uri, "n").max("s")
    with pytest.raises(DeltaAnalysisError, match="no least"):
        found.min("s")
    with pytest.raises(InvalidPredicateError):
        scan(uri, where="m > 1")
    for size in (0, -1, 1.5, True):
        with pytest.raises(DeltaAnalysisError, match="batch_size"):
            found.to_batches(size)  # type: ignore[arg-type]
    for count in (-1, "3"):
        with pytest.raises(DeltaAnalysisError, match="count"):
            found.limit(count)  # type: ignore[arg-type]
    assert found.limit(0).to_arrow().num_rows == 0


def test_a_few_rows_that_are_rare_are_not_looked_for_a_few_at_a_time(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_arrow(uri, pa.table({"n": range(20_000)}))
    sizes: list[int] = []
    shown = Scan._shown

    def counting(self: Scan) -> Callable[[pa.Table], pa.Table]:
        kept = shown(self)

        def counted(table: pa.Table) -> pa.Table:
            sizes.append(table.num_rows)
            return kept(table)

        return counted

    monkeypatch.setattr(Scan, "_shown", counting)
    assert scan(uri, where="n % 20000 = 19999").head(2)["n"].to_pylist() == [19_999]
    assert sizes == [20_000]
    sizes.clear()
    assert scan(uri).head(2).num_rows == 2
    assert sizes == [2]


READING = """
import resource, sys
import pyarrow as pa
from lakelog.core import scan
import pyarrow.dataset, pyarrow.parquet, pyarrow.compute, lakelog.core.data.answers

pa.set_memory_pool(pa.system_memory_pool())
pa.set_cpu_count(2)
uri, how = sys.argv[1:]
scan(uri, where="a > 0.5").limit(1).to_arrow()

def used():
    text = open("/proc/self/status").read()
    return int(text.split("VmSize:")[1].split()[0]) * 1024

resource.setrlimit(resource.RLIMIT_AS, (used() + (200 << 20), resource.RLIM_INFINITY))
found = scan(uri)
if how == "table":
    rows = found.to_arrow().num_rows
elif how == "unordered":
    rows = sum(each.num_rows for each in found.to_reader(ordered=False))
elif how == "filtered":
    rows = sum(each.num_rows for each in scan(uri, ["b"], "a >= 0 OR b > 7").to_batches(1000))
else:
    rows = sum(each.num_rows for each in found.to_batches())
print(rows)
"""
_ROWS = 500_000


@pytest.fixture(scope="module")
def large_table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of 320 MB in ten files; each has one row group."""
    uri = str(tmp_path_factory.mktemp("large") / "t")
    for number in range(10):
        columns = {
            name: pc.random(_ROWS, initializer=f"{number}{place}")
            for place, name in enumerate("abcdefgh")
        }
        write_arrow(uri, pa.table(columns), mode="append")
    return uri


@pytest.mark.one_day_in(3, 1)
@pytest.mark.skipif(sys.platform != "linux", reason="the process's own size is read as on Linux")
@pytest.mark.parametrize("how", ["batches", "unordered", "filtered"])
def test_a_table_larger_than_memory_is_read(large_table: str, how: str) -> None:
    done = _read(large_table, how)
    assert (done.returncode, done.stdout.strip()) == (0, str(10 * _ROWS)), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the process's own size is read as on Linux")
def test_as_a_table_it_would_not_fit(large_table: str) -> None:
    done = _read(large_table, "table")
    assert done.returncode
    assert "MemoryError" in done.stderr or "alloc" in done.stderr


def _read(uri: str, how: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", READING, uri, how],
        check=False,
        capture_output=True,
        text=True,
        env={"MALLOC_ARENA_MAX": "2"},
    )


def test_a_few_rows_are_had_without_locating_the_files_behind_them(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start in range(0, 14, 2):
        write_arrow(uri, pa.table({"x": [start, start + 1]}), mode="append")
    snapshot = DeltaLog.for_table(uri).snapshot
    expected = Scan(snapshot).to_arrow()
    monkeypatch.setattr("lakelog.core.data.table_scan._LOCATED", 2)
    located: list[int] = []
    find = TableFileReader.find

    def counted(self: TableFileReader, files: pa.Table) -> Any:
        located.append(files.num_rows)
        return find(self, files)

    monkeypatch.setattr(TableFileReader, "find", counted)
    assert Scan(snapshot, limit=3).to_arrow() == expected.slice(0, 3)
    assert located == [2]
    located.clear()
    assert Scan(snapshot, limit=5).to_arrow() == expected.slice(0, 5)
    assert located == [2, 2]
    located.clear()
    assert Scan(snapshot, limit=100).to_arrow() == expected
    assert located == [2, 2, 2, 1]


@pytest.mark.parametrize(
    ("waits", "most", "threads"), [(False, 1 << 17, 0), (True, 1 << 17, 1), (False, 1, 1)]
)
def test_small_files_of_a_disk_that_is_quick_are_read_by_the_callers_thread(
    uri: str, waits: bool, most: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(9):
        write_arrow(uri, {"id": [number]}, mode="append")
    log, readers = DeltaLog.for_table(uri), set[str]()
    columns = RowReader._sources

    def noted(reader: RowReader, *given: Any) -> list[str]:
        readers.add(threading.current_thread().name.partition("_")[0])
        return columns(reader, *given)

    monkeypatch.setattr(RowReader, "_sources", noted)
    monkeypatch.setattr(table_scan, "_SMALL", most)
    monkeypatch.setattr(ahead, "_WAIT_FACTOR", 0)
    monkeypatch.setattr(ahead, "_LEAST_WAIT", -1 if waits else 1000)
    ways: list[Callable[[Scan], pa.Table]] = [
        Scan.to_arrow,
        lambda each: each.to_reader().read_all(),
        lambda each: each.to_reader(ordered=False).read_all(),
    ]
    for way in ways:
        readers.clear()
        assert sorted(way(scan(log))["id"].to_pylist()) == [*range(9)]
        assert len(readers - {threading.current_thread().name}) == threads
