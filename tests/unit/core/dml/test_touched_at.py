"""Rows that an engine found by file and position, taken out; new rows that it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, delete_rows, table_changes, write_arrow
from lakelog.core.actions.operation import Operation
from lakelog.core.dml.rewrite import RowRewrite
from lakelog.core.dml.touched_files import can_evaluate, touched_at, touched_rows
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.transaction.attempt_files import AttemptFiles
from support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

VECTORS = {"delta.enableDeletionVectors": "true"}
FEED = {"delta.enableChangeDataFeed": "true"}


def table(path: str, properties: dict[str, str] | None = None) -> DeltaLog:
    write_arrow(path, {"id": range(20)}, mode="append", properties=properties)
    write_arrow(path, {"id": range(20, 40)}, mode="append")
    return DeltaLog.for_table(path)


def bits(rows: set[int], start: int = 0) -> bytes:
    return sum(1 << (row - start) for row in rows).to_bytes(4096, "little")


def ids(log: DeltaLog) -> list[int]:
    return sorted(log.update().to_arrow()["id"].to_pylist())


@settings(max_examples=examples(12), deadline=None)
@given(st.sets(st.integers(0, 99_999), min_size=1, max_size=40))
def test_bits_from_any_position_are_the_rows_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, rows: set[int]
) -> None:
    path = str(tmp_path_factory.mktemp("t"))
    write_arrow(path, {"id": range(100_000)}, mode="append")
    snapshot = DeltaLog.for_table(path).snapshot
    pieces: dict[int, bytes] = {}
    for start in range(0, 100_000, 1 << 15):
        mine = {row for row in rows if start <= row < start + (1 << 15)}
        if mine:
            pieces[start] = bits(mine, start)

    (touched,) = touched_at(snapshot, snapshot.file_table, {0: pieces})

    assert {i for i, hit in enumerate(touched.hit.to_pylist()) if hit} == rows
    assert len(touched.hit) == 100_000


def places(*found: tuple[int, int]) -> Any:
    kinds = pa.schema([("file", pa.int64()), ("row", pa.int64())])
    return pa.Table.from_pylist([{"file": file, "row": row} for file, row in found], kinds)


def test_rows_beyond_the_file_are_an_error(tmp_path: Path) -> None:
    snapshot = table(str(tmp_path)).snapshot
    with pytest.raises(ValueError, match="of a file of 20 rows"):
        touched_at(snapshot, snapshot.file_table, {1: {0: bits({24})}})
    with pytest.raises(ValueError, match="row 20 of a file of 20 rows"):
        touched_rows(snapshot, snapshot.file_table, places((1, 3), (1, 20)))


def test_places_in_any_order_are_the_same_as_bitmaps(tmp_path: Path) -> None:
    log = table(str(tmp_path), VECTORS)
    delete_rows(log, "id = 3")
    snapshot = log.snapshot
    files = snapshot.file_table
    hits = {0: {0: bits({0, 7, 19})}, 1: {0: bits({5, 6})}}

    found = touched_rows(snapshot, files, places((1, 6), (0, 19), (0, 0), (1, 5), (0, 7)))

    expected = touched_at(snapshot, files, hits)
    assert [(each.add, each.gone, each.hit) for each in found] == [
        (each.add, each.gone, each.hit) for each in expected
    ]
    assert sorted(each.gone.true_count for each in found) == [0, 1]
    assert touched_rows(snapshot, files, places()) == []


@pytest.mark.parametrize("properties", [{}, VECTORS, FEED, {**VECTORS, **FEED}])
def test_old_rows_go_and_the_rows_that_the_caller_made_come(
    tmp_path: Path, properties: dict[str, str]
) -> None:
    log = table(str(tmp_path), properties)
    delete_rows(log, "id = 3")
    txn = log.start_transaction()
    snapshot = txn.snapshot
    assert snapshot is not None
    files = snapshot.file_table
    ours = [
        i for i, add in enumerate(snapshot.files()) if '"minValues":{"id":0}' in (add.stats or "")
    ]
    masked = files["deletion_vector"].is_valid().to_pylist()
    number = ours[0] if ours else masked.index(True)
    first = snapshot.to_arrow().num_rows
    with AttemptFiles(txn) as attempt:
        changes = attempt.own(RowRewrite(txn, 0, is_given_rows=True))
        touched = touched_at(snapshot, files, {number: {0: bits({5, 6})}})
        old: Any = pa.table({"id": [5, 6]})
        new: Any = pa.table({"id": [105, 106]})
        changes.write_new(new)
        changes.write_changed(old, new)
        changes.apply(touched)
        txn.reads.filter_file_table(None)
        txn.commit(changes.actions(), Operation("UPDATE", {}))

    found = ids(log)
    assert len(found) == first
    assert found[-2:] == [105, 106]
    if "delta.enableChangeDataFeed" in properties:
        version = log.snapshot.version
        changed = table_changes(log.table, version, version).read_all().to_pylist()
        kinds = sorted((row["id"], row["_change_type"]) for row in changed)
        assert kinds == [
            (5, "update_preimage"),
            (6, "update_preimage"),
            (105, "update_postimage"),
            (106, "update_postimage"),
        ]


def test_what_only_spark_evaluates_is_known_before_a_file_is_read(tmp_path: Path) -> None:
    snapshot = table(str(tmp_path)).snapshot
    known = normalize_filter("id % 3 = 1", snapshot.schema)
    assert known is not None
    assert can_evaluate(snapshot, known)
