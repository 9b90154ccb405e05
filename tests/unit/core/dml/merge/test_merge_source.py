"""The source of a MERGE: any stream, read once, and in a file where it is large."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, merge, write_arrow
from lakelog.core.dml.merge import source as module
from lakelog.core.dml.merge.source import MergeSource, SourceRows
from lakelog.core.errors import ConcurrentWriteException, DeltaAnalysisError
from lakelog.logstores import keys
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEMA = pa.schema({"id": pa.int64(), "t": pa.string(), "l": pa.list_(pa.int32())})
TWO = pa.schema(list(SCHEMA)[:2])
IN_A_FILE = {keys.MERGE_SOURCE_LIMIT.name: "1"}


def batches(count: int, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count * rows, rows):
        ids = list(range(start, start + rows))
        texts = [None if i % 7 == 0 else f"text {i}" for i in ids]
        yield pa.record_batch([ids, texts, [[i] * (i % 3) for i in ids]], schema=SCHEMA)


def stream(count: int = 5, rows: int = 3) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(SCHEMA, batches(count, rows))


@given(
    st.lists(st.integers(0, 4), max_size=6).flatmap(
        lambda sizes: st.tuples(
            st.just(sizes), st.lists(st.integers(0, max(sum(sizes) - 1, 0)), max_size=12)
        )
    )
)
@settings(max_examples=examples(24))
def test_rows_are_taken_as_arrow_takes_them(case: tuple[list[int], list[int]]) -> None:
    sizes, places = case
    pieces, start = [], 0
    for size in sizes:
        ids = list(range(start, start + size))
        pieces.append(
            pa.table({"id": ids, "t": [f"{i}" for i in ids]}, pa.schema(list(SCHEMA)[:2]))
        )
        start += size
    table = pa.concat_tables(pieces) if pieces else pa.schema(list(SCHEMA)[:2]).empty_table()
    wanted = pa.array(places if start else [], pa.int64())
    assert (
        SourceRows(table).take(["t", "id"], wanted).equals(table.select(["t", "id"]).take(wanted))
    )


@pytest.mark.parametrize("limit", [0, 100, 1 << 30])
def test_a_stream_is_the_same_in_a_file_and_in_memory(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROWS", 4)
    source = MergeSource(stream())
    rows = source.rows(limit)
    assert rows.table.equals(stream().read_all())
    assert source.rows(limit) is rows
    assert source.schema is not None
    assert source.schema.names == SCHEMA.names
    assert MergeSource(stream(0)).rows(limit).num_rows == 0


@pytest.mark.parametrize("conf", [{}, IN_A_FILE], ids=["memory", "file"])
def test_a_merge_is_the_same_with_either(
    tmp_path: Path, conf: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ROWS", 4)
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.Table.from_batches(batches(2, 3)), conf=conf)
    (
        merge(uri, stream(), "target.id = source.id AND source.t <> 'text 2'", conf=conf)
        .when_matched_update({"t": "concat(source.t, '!')"}, "source.id > 1")
        .when_not_matched_insert_all("source.t IS NOT NULL")
        .when_not_matched_by_source_delete("target.t = 'text 2'")
        .execute()
    )
    found = DeltaLog.for_table(uri).snapshot.to_arrow().sort_by("id").to_pylist()
    assert [(row["id"], row["t"], len(row["l"])) for row in found] == [
        (0, None, 0),
        (1, "text 1", 1),
        (2, "text 2", 2),
        *((i, f"text {i}!", i % 3) for i in (3, 4, 5)),
        *((i, f"text {i}", i % 3) for i in range(6, 15) if i % 7),
    ]


def test_a_merge_with_a_file_may_be_executed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, pa.Table.from_batches(batches(1, 3)))
    builder = merge(uri, stream(), ["id"], conf=IN_A_FILE).when_not_matched_insert_all()
    builder = builder.when_matched_delete()
    from lakelog.core import OptimisticTransaction

    real, refused = OptimisticTransaction.commit_if_needed, [True]

    def once(self: Any, *given: Any) -> Any:
        if refused:
            refused.pop()
            raise ConcurrentWriteException("another writer")
        return real(self, *given)

    monkeypatch.setattr(OptimisticTransaction, "commit_if_needed", once)
    with pytest.raises(ConcurrentWriteException):
        builder.execute()
    builder.execute()
    found = DeltaLog.for_table(uri).snapshot.to_arrow()["id"].to_pylist()
    assert sorted(found) == list(range(3, 15))


@pytest.mark.parametrize("second", ["ID", "id"])
@pytest.mark.parametrize("streams", [True, False])
def test_two_columns_of_one_name_are_refused_and_nothing_is_read(
    tmp_path: Path, second: str, streams: bool
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [1]})
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["id", second])
    source = table.to_reader() if streams else table
    builder = merge(uri, source, "target.id = source.id").when_matched_delete()
    for _ in range(2):
        with pytest.raises(DeltaAnalysisError, match="AMBIGUOUS_REFERENCE"):
            builder.execute()


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_a_stream_that_fails_is_not_read_from_its_middle(limit: int) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(2, 3)
        raise ValueError("the network")

    source = MergeSource(pa.RecordBatchReader.from_batches(SCHEMA, failing()))
    with pytest.raises(ValueError, match="the network"):
        source.rows(limit)
    with pytest.raises(DeltaAnalysisError, match="failed while it was read"):
        source.rows(limit)


@pytest.mark.parametrize("limit", [0, 1 << 30])
@pytest.mark.parametrize("kind", ["generator", "list", "dataset"])
def test_batches_one_by_one_are_a_stream(kind: str, limit: int) -> None:
    import pyarrow.dataset

    given: Any = list(batches(2, 3))
    rows = pa.Table.from_batches(given)
    if kind == "generator":
        given = iter(given)
    elif kind == "dataset":
        given = pyarrow.dataset.dataset(rows)
    assert MergeSource(given).rows(limit).table.equals(rows)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "gave no batch"),
        ([1], "value number 0, counted from 0, is of type int"),
        ([pa.record_batch({"a": [1]}), pa.record_batch({"b": [1]})], "its batch 1, counted from 0"),
    ],
    ids=["nothing", "numbers", "another schema"],
)
def test_what_a_generator_must_not_give_is_reported(
    tmp_path: Path, given: list[Any], said: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"a": [1]})
    builder = merge(uri, iter(given), "target.a = source.a").when_not_matched_insert_all()
    with pytest.raises(DeltaAnalysisError, match=said):
        builder.execute()
    assert DeltaLog.for_table(uri).snapshot.version == 0


def test_no_room_for_the_file_is_said_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, *_: Any) -> None:
            pass

        def write_table(self, *_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", Full)
    with pytest.raises(OSError, match="TMPDIR") as caught:
        MergeSource(stream()).rows(0)
    assert caught.value.errno == 28


MERGING = """
import resource, sys
import pyarrow as pa
from lakelog.core import merge, write_arrow
import lakelog.core.dml.merge.merge_job, pyarrow.dataset, pyarrow.parquet

pa.set_memory_pool(pa.system_memory_pool())
pa.set_cpu_count(2)
uri, limit = sys.argv[1:]
schema = pa.schema({"id": pa.int64(), "t": pa.string()})
text = "x" * 4000

def batches():
    for start in range(0, 80_000, 1_000):
        yield pa.record_batch([range(start, start + 1_000), [text] * 1_000], schema=schema)

def used():
    text = open("/proc/self/status").read()
    return int(text.split("VmData:")[1].split()[0]) * 1024

# What the process writes to itself is limited; what is mapped from a file can be dropped.
resource.setrlimit(resource.RLIMIT_DATA, (used() + (240 << 20), resource.RLIM_INFINITY))
source = pa.RecordBatchReader.from_batches(schema, batches())
conf = {"spark.lakelog.merge.maxSourceBytes": limit}
done = merge(uri, source, ["id"], conf=conf).when_matched_update_all().execute()
print(done.metrics["numTargetRowsUpdated"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of private memory are Linux's")
def test_a_source_larger_than_memory_is_merged(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [5, 70_000, 90_000], "t": ["a", "b", "c"]})

    def run(limit: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", MERGING, uri, str(limit)],
            check=False,
            capture_output=True,
            text=True,
        )

    held = run(1 << 40)
    assert held.returncode
    assert "alloc" in held.stderr or "MemoryError" in held.stderr
    done = run(8 << 20)
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr
