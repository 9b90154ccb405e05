"""Whatever has rows is written: streams in bounded memory, and what is wrong with them is told."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, create_table, read_arrow, scan, vacuum, write_arrow
from lakelog.core.alter import add_constraint
from lakelog.core.errors import (
    ConstraintViolationError,
    DeltaAnalysisError,
    ProtocolChangedException,
    SchemaMismatchError,
)
from lakelog.core.input import row_source
from lakelog.core.schema import PrimitiveType, StructField, generated_column, identity_column
from support.drawn_tables import DrawnTable, drawn_tables
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = pa.record_batch({"n": [1, 2], "t": ["a", None]})
ROWS = BATCH.to_pylist()


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_source, "_ROWS", 3)


class Array:
    """What exports one batch, as a struct array of nanoarrow does."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return self._batch.__arrow_c_array__(requested_schema)


class Stream:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.table(BATCH).__arrow_c_stream__(requested_schema)


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, 2 * count, 2):
        yield pa.record_batch({"n": [start, start + 1]})


def nothing_left(uri: str) -> None:
    assert not [each for each in Path(uri).rglob("*") if each.suffix in (".parquet", ".json")]


@pytest.mark.parametrize(
    "data",
    [
        Stream(),
        Array(BATCH),
        Array(BATCH.to_struct_array()),
        BATCH.to_struct_array(),
        [BATCH],
        [pa.table(BATCH)],
        (each for each in [BATCH]),
        iter([BATCH.slice(0, 1), pa.table(BATCH).slice(1)]),
        pa.RecordBatchReader.from_batches(BATCH.schema, [BATCH]),
        ds.dataset(pa.table(BATCH)),
        ds.dataset(pa.table(BATCH)).scanner(),
        pl.from_arrow(BATCH),
        pd.DataFrame({"n": [1, 2], "t": ["a", None]}),
        duckdb.sql("SELECT * FROM (VALUES (1::bigint, 'a'), (2, NULL)) AS v(n, t)"),
    ],
    ids=[
        "stream",
        "array",
        "struct array",
        "pyarrow's",
        "list of batches",
        "list of tables",
        "generator",
        "iterator",
        "reader",
        "dataset",
        "scanner",
        "polars",
        "pandas",
        "duckdb",
    ],
)
def test_whatever_has_rows_is_written(uri: str, data: Any) -> None:
    write_arrow(uri, data)
    assert read_arrow(uri).to_pylist() == ROWS


@settings(max_examples=examples(12))
@given(drawn_tables(), st.integers(1, 3), st.integers(1, 4))
def test_any_stream_is_written_as_its_table_is(drawn: DrawnTable, size: int, piece: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_source, "_ROWS", piece)
        uri = str(Path(folder) / "t")
        reader = drawn.data.to_reader(max_chunksize=size)
        write_arrow(uri, reader, partition_by=list(drawn.partition_by))
        assert drawn.rows(read_arrow(uri)) == drawn.rows()


def test_rows_of_python_have_the_schema_that_is_given(uri: str) -> None:
    write_arrow(uri, [{"id": 1}, {"name": "b"}], schema={"id": "int", "name": pa.string()})
    write_arrow(uri, [], schema="id int, name string", mode="append")
    schema = pa.schema({"id": pa.int32(), "name": pa.string()})
    write_arrow(uri, {"name": ["c"]}, schema=schema, mode="append")
    found = read_arrow(uri)
    assert found.schema.types == [pa.int32(), pa.string()]
    assert found.to_pylist() == [
        {"id": 1, "name": None}, {"id": None, "name": "b"}, {"id": None, "name": "c"},
    ]  # fmt: skip


def test_a_schema_that_does_not_fit_names_column_and_row(uri: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"column id .* in row 1: 'x' \(str\)"):
        write_arrow(uri, [{"id": 1}, {"id": "x"}], schema="id int")
    with pytest.raises(DeltaAnalysisError, match=r"in row 0: 300"):
        write_arrow(uri, {"id": [300]}, schema="id tinyint")
    with pytest.raises(DeltaAnalysisError, match="have 'b', which the schema does not"):
        write_arrow(uri, [{"id": 1}, {"b": 1}], schema="id int")
    with pytest.raises(DeltaAnalysisError, match="one length"):
        write_arrow(uri, {"id": [1], "b": [1, 2]}, schema="id int, b int")
    with pytest.raises(DeltaAnalysisError, match="has types of its own"):
        write_arrow(uri, BATCH, schema="n bigint")
    nothing_left(uri)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.record_batch({"n": ["x"]}), "n as string, and the first one as int64"),
        (pa.record_batch({"n": [1], "m": [1]}), r"the column m \(int64\)"),
        (pa.record_batch({}), "no column n"),
        ({"n": 1}, "is of type dict"),
    ],
)
@pytest.mark.usefixtures("small_pieces")
def test_a_batch_of_another_schema_is_named_and_nothing_is_left(
    uri: str, other: Any, message: str
) -> None:
    given: Any = iter([*batches(4), other])
    with pytest.raises(DeltaAnalysisError, match=rf"(batch|number) 4,.*{message}"):
        write_arrow(uri, given)
    nothing_left(uri)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("partition_by", [None, "p"])
def test_a_generator_that_raises_leaves_nothing(
    uri: str, wrapped: bool, partition_by: str | None
) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        for each in batches(5):
            yield each.append_column("p", each["n"])
        raise ConnectionError("the source is gone")

    given: Any = failing()
    if wrapped:
        given = pa.RecordBatchReader.from_batches(
            pa.schema({"n": pa.int64(), "p": pa.int64()}), given
        )
    with pytest.raises(ConnectionError, match="the source is gone"):
        write_arrow(uri, given, partition_by=partition_by)
    nothing_left(uri)


def test_a_generator_without_batches_has_no_columns(uri: str) -> None:
    with pytest.raises(DeltaAnalysisError, match="gave no batch"):
        write_arrow(uri, iter([]))
    write_arrow(uri, pa.RecordBatchReader.from_batches(BATCH.schema, []))
    assert read_arrow(uri).schema == BATCH.schema


@pytest.mark.usefixtures("small_pieces")
def test_every_piece_is_checked_and_filled_as_a_table_is(uri: str) -> None:
    create_table(
        uri,
        [
            identity_column("id", start=10, step=2),
            StructField("n", PrimitiveType("long")),
            generated_column("double_n", PrimitiveType("long"), "n * 2"),
        ],
    )
    write_arrow(uri, batches(4), mode="append")
    write_arrow(uri, batches(1), mode="append")
    found = read_arrow(uri)
    assert found["id"].to_pylist() == list(range(10, 30, 2))
    assert found["double_n"].to_pylist() == [0, 2, 4, 6, 8, 10, 12, 14, 0, 2]

    add_constraint(uri, "small", "n < 9")
    files = sorted(Path(uri).glob("*.parquet"))
    with pytest.raises(ConstraintViolationError, match="small"):
        write_arrow(uri, batches(5), mode="append")
    assert sorted(Path(uri).glob("*.parquet")) == files


@pytest.mark.usefixtures("small_pieces")
def test_every_piece_must_match_what_is_replaced(uri: str) -> None:
    def rows(count: int) -> Iterator[pa.RecordBatch]:
        return (each.append_column("p", each["n"]) for each in batches(count))

    write_arrow(uri, {"n": [1, 9], "p": [1, 9]}, partition_by="p")
    with pytest.raises(ConstraintViolationError, match="REPLACE_WHERE"):
        write_arrow(uri, rows(5), mode="overwrite", replace_where="p < 8")
    write_arrow(uri, rows(4), mode="overwrite", replace_where="p < 8")
    assert sorted(read_arrow(uri)["n"].to_pylist()) == [*range(8), 9]


def test_a_stream_that_is_refused_is_not_read(uri: str) -> None:
    write_arrow(uri, {"n": ["text"]})

    read = []

    def counted() -> Iterator[pa.RecordBatch]:
        for each in batches(1):
            read.append(each)
            yield each

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), counted())
    with pytest.raises(SchemaMismatchError):
        write_arrow(uri, reader, mode="append")
    assert write_arrow(uri, reader, mode="ignore") == 0
    assert not read


@pytest.mark.parametrize("once", [True, False])
def test_where_another_created_the_table_a_stream_that_can_be_read_again_is(
    uri: str, once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = DeltaLog.start_transaction

    def overtaken(log: DeltaLog) -> Any:
        monkeypatch.setattr(DeltaLog, "start_transaction", before)
        txn = log.start_transaction()
        write_arrow(uri, {"n": [0], "t": ["first"]})
        return txn

    monkeypatch.setattr(DeltaLog, "start_transaction", overtaken)
    data = iter([BATCH]) if once else Stream()
    if once:
        with pytest.raises(ProtocolChangedException) as caught:
            write_arrow(uri, data, mode="append")
        assert "can't be read again" in "".join(caught.value.__notes__)
        assert scan(uri).count() == 1
    else:
        write_arrow(uri, data, mode="append")
        assert scan(uri).count() == 3


def test_mixed_values_of_a_column_are_named(uri: str) -> None:
    frame = pd.DataFrame({"ok": [None, "a", "b"], "a": [1, None, "x"]})
    for data in (frame, {"a": [1, None, "x"]}, [{"a": 1}, {"b": 2}, {"a": "x"}]):
        message = r"column a has in row 2, counted from 0, 'x' \(str\), and before it 1 \(int\)"
        with pytest.raises(DeltaAnalysisError, match=message):
            write_arrow(uri, data)  # type: ignore[arg-type]
    nothing_left(uri)


def test_an_index_that_would_be_lost_is_reported(uri: str) -> None:
    frame = pd.DataFrame({"n": [1, 2]}, index=["x", "y"])
    with pytest.warns(UserWarning, match=r"'x', 'y'.*reset_index") as caught:
        write_arrow(uri, frame)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The positions of rows say nothing, also where rows were left out.
        write_arrow(uri, pd.DataFrame({"n": [1, 2]})[1:], mode="append")
        frame.index.name = "key"
        write_arrow(uri, frame, mode="append", schema_mode="merge")
    assert read_arrow(uri)["key"].to_pylist() == [None, None, None, "x", "y"]


WRITING = """
import resource, sys, threading
import numpy as np
import pyarrow as pa
from lakelog.core import write_arrow
import lakelog.core.dml.arrow_write, pyarrow.dataset, pyarrow.parquet, pyarrow.compute

pa.set_memory_pool(pa.system_memory_pool())
pa.set_cpu_count(2)
uri, how, limit = sys.argv[1:]
random = np.random.default_rng(1)

# The limit is of the address space, of which a thread takes 8 MB, used or not.
threading.stack_size(1 << 20)

def batches():
    for start in range(160):
        columns = {name: random.random(62_500) for name in "abcde"}
        columns["p"] = random.integers(0, 20, 62_500)
        yield pa.record_batch({name: pa.array(each) for name, each in columns.items()})

def used():
    text = open("/proc/self/status").read()
    return int(text.split("VmSize:")[1].split()[0]) * 1024

write_arrow(uri + "0", next(batches()).slice(0, 1000), partition_by="p")
given = batches()
if how == "table":
    given = pa.Table.from_batches(given)
# A limit below nothing would be none.
most = max(used() + (int(limit) << 20), 0)
resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
write_arrow(uri, given, partition_by="p" if how == "partitions" else None)
"""


def write_limited(uri: str, how: str, limit: int, **env: str) -> subprocess.CompletedProcess[str]:
    """Write 480 MB with so many MB beyond what the process, and a table, have already.

    With less than nothing, it has only what it has allocated and not in use.
    """
    return subprocess.run(
        [sys.executable, "-c", WRITING, uri, how, str(limit)],
        check=False,
        capture_output=True,
        text=True,
        env={"MALLOC_ARENA_MAX": "2", **env},
    )


@pytest.mark.one_day_in(3, 1)
@pytest.mark.skipif(sys.platform != "linux", reason="the process's own size is read as on Linux")
@pytest.mark.parametrize("how", ["rows", "partitions", "table"])
def test_a_stream_larger_than_memory_is_written(uri: str, how: str) -> None:
    done = write_limited(uri, how, 470)
    assert done.returncode == 0, done.stderr
    assert scan(uri).count() == 10_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="the process's own size is read as on Linux")
@pytest.mark.parametrize("how", ["rows", "table"])
def test_a_write_that_runs_out_of_memory_fails_and_leaves_nothing(uri: str, how: str) -> None:
    # Arrow's usual allocator has reserved far more of the address space than is in use; malloc
    # keeps what was freed for the next one, and a second arena of 64 MB is enough for a write.
    plain = {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "65536",
    }
    done = write_limited(uri, how, -400, **plain)
    for attempt in range(2):
        # Which allocation fails first is chance; one in a thread of Arrow's own ends the process.
        if done.returncode == -signal.SIGABRT:
            uri = f"{uri}-{attempt}"
            done = write_limited(uri, how, -400, **plain)
    assert done.returncode == 1, (done.returncode, done.stderr)
    # Where the limit is met first is the allocator's business.
    assert "MemoryError" in done.stderr or "can't start new thread" in done.stderr, done.stderr
    assert not DeltaLog.for_table(uri).table_exists()
    assert [path for path in Path(uri).rglob("*") if path.is_file()] == []


KILLED = """
import sys
import pyarrow as pa
from lakelog.core import write_arrow

def batches():
    for _ in range(4):
        yield pa.record_batch({"n": pa.array(range(50_000))})
    print("half of it", flush=True)
    sys.stdin.read()

conf = {"spark.sql.files.maxRecordsPerFile": "50000"}
write_arrow(sys.argv[1], batches(), mode="append", conf=conf)
"""


def test_a_process_killed_in_mid_stream_leaves_files_that_vacuum_takes(uri: str) -> None:
    write_arrow(uri, {"n": [1]})
    before = set(Path(uri).glob("*.parquet"))
    command = [sys.executable, "-c", KILLED, uri]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half of it\n"
        process.kill()
    orphans = set(Path(uri).glob("*.parquet")) - before
    assert len(orphans) > 1
    log = DeltaLog.for_table(uri)
    assert log.snapshot.version == 0
    assert read_arrow(uri).num_rows == 1
    conf = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
    vacuum(uri, 0, conf=conf)
    assert set(Path(uri).glob("*.parquet")) == before
