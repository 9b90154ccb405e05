"""What a stream finds between two offsets, on logs without data files."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.actions import AddFile, Metadata, RemoveFile
from lakelog.core.actions.operation import Operation
from lakelog.core.alter import set_properties
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import (
    DeltaAnalysisError,
    LogGapError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.streaming.change_source import ChangeSource
from lakelog.core.streaming.offsets import SourceOffset
from lakelog.core.streaming.stream_options import StreamOptions
from lakelog.core.streaming.table_source import StreamSource
from support.commits import APPEND, DELETE, new_uri
from support.examples import examples

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
SCHEMA = StructType((StructField("id", LONG),))


def _add(name: str, size: int = 10, time: int = 0, *, data_change: bool = True) -> AddFile:
    return AddFile(
        path=name,
        partition_values={},
        size=size,
        modification_time=time,
        data_change=data_change,
    )


def _table(schema: StructType = SCHEMA) -> DeltaLog:
    """A table without files, at version 0."""
    log = DeltaLog.for_table(new_uri())
    txn = log.start_transaction()
    txn.changes.update_metadata_for_new_table(
        Metadata(id=log.table, schema_string=schema.to_json())
    )
    txn.commit([], Operation.create_table())
    return log


def _commit(log: DeltaLog, *actions: Any, operation: Operation = APPEND) -> int:
    return log.start_transaction().commit(list(actions), operation)


def _source(log: DeltaLog, **options: Any) -> StreamSource:
    return StreamSource(DeltaLog.for_table(log.table), StreamOptions(**options))


def _all(source: StreamSource, at: SourceOffset) -> tuple[list[list[str]], SourceOffset]:
    """The paths of each batch until nothing is new, and the last offset."""
    batches = []
    while (end := source.latest_offset(at)) != at:
        assert end > at or at.is_starting
        batches.append(source.files_between(at, end)["path"].to_pylist())
        source.forget(end)
        at = end
    return batches, at


def test_a_stream_reads_the_state_and_then_the_commits() -> None:
    log = _table()
    _commit(log, _add("b", time=2), _add("a", time=2), _add("z", time=1))
    source = _source(log, max_files=2)
    start = source.initial_offset()
    assert start == SourceOffset(1, -1, is_starting=True)
    _commit(log, _add("d"), _add("c"))
    assert source.latest_offset(start) == SourceOffset(1, 1, is_starting=True)
    batches, end = _all(source, start)
    # The state by time and path, a commit in its own order; no batch has files of both.
    assert batches == [["z", "a"], ["b"], ["d", "c"]]
    assert end == SourceOffset(3, -1)


def test_each_file_comes_with_the_version_that_has_it() -> None:
    log = _table()
    _commit(log, _add("a"))
    source = _source(log)
    start = source.initial_offset()
    _commit(log, _add("b"), _add("c"))
    _commit(log, _add("d"))
    middle = source.latest_offset(start)
    found = [
        source.files_between(start, middle),
        source.files_between(middle, source.latest_offset(middle)),
    ]
    pairs = [
        list(zip(*(each[n].to_pylist() for n in ("path", "version")), strict=True))
        for each in found
    ]
    assert pairs == [[("a", 1)], [("b", 2), ("c", 2), ("d", 3)]]


def test_both_limits_hold_and_a_batch_has_at_least_one_file() -> None:
    log = _table()
    _commit(log, *(_add(f"f{n}", size) for n, size in enumerate([5, 5, 50, 1, 1, 1, 1])))
    sizes = _source(log, max_files=None, max_bytes=10, starting_version=0)
    assert _all(sizes, sizes.initial_offset())[0] == [
        ["f0", "f1"], ["f2"], ["f3", "f4", "f5", "f6"],
    ]  # fmt: skip
    both = _source(log, max_files=3, max_bytes=10, starting_version=0)
    assert _all(both, both.initial_offset())[0] == [
        ["f0", "f1"], ["f2"], ["f3", "f4", "f5"], ["f6"],
    ]  # fmt: skip
    end = both.latest_offset(both.initial_offset(), limited=False)
    assert end == SourceOffset(2, -1)


def test_where_a_stream_begins() -> None:
    log = _table()
    _commit(log, _add("a"))
    assert _source(log, starting_version="latest").initial_offset() == SourceOffset(2, -1)
    assert _source(log, starting_timestamp=0).initial_offset() == SourceOffset(0, -1)
    with pytest.raises(TimestampOutOfRangeError, match="DELTA_TIMESTAMP_GREATER_THAN_COMMIT"):
        _source(log, starting_timestamp=1 << 50).initial_offset()
    for version in (2, 3):
        with pytest.raises(VersionNotFoundError, match="DELTA_VERSION_NOT_FOUND"):
            _source(log, starting_version=version).initial_offset()
    # What a checkpoint has may lie right behind the newest version, and no further.
    assert _all(_source(log), SourceOffset(2, -1))[0] == []
    with pytest.raises(VersionNotFoundError, match="DELTA_VERSION_NOT_FOUND"):
        _source(log).latest_offset(SourceOffset(3, -1))
    conf = {"spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true"}
    waiting = StreamSource(DeltaLog.for_table(log.table, conf), StreamOptions(starting_version=4))
    assert _all(waiting, waiting.initial_offset())[0] == []


def test_a_first_batch_that_was_planned_before_a_restart_is_the_same_after_it() -> None:
    log = _table()
    _commit(log, _add("a"), _add("b"))
    source = _source(log, max_files=1)
    start = source.initial_offset()
    first = source.latest_offset(start)
    whole = source.latest_offset(start, limited=False)
    _commit(log, _add("a").remove(1), operation=DELETE)
    again = _source(log, ignore_deletes=True)
    later = again.initial_offset()
    assert later == SourceOffset(2, -1, is_starting=True)
    assert again.files_between(later, first)["path"].to_pylist() == ["a"]
    assert again.files_between(later, whole)["path"].to_pylist() == ["a", "b"]


def test_offsets_do_not_go_back() -> None:
    log = _table()
    _commit(log, _add("a"))
    with pytest.raises(DeltaAnalysisError, match="can't go back"):
        _source(log).files_between(SourceOffset(9, -1), SourceOffset(2, -1))


CHANGE, REMOVAL = "DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE"


@pytest.mark.parametrize(
    ("options", "change", "removal"),
    [
        ({}, CHANGE, REMOVAL),
        ({"ignore_deletes": True}, CHANGE, []),
        ({"ignore_changes": True}, ["new"], []),
        ({"skip_change_commits": True}, [], []),
        ({"skip_change_commits": True, "ignore_changes": True}, [], []),
    ],
)
def test_commits_that_remove_files(options: Any, change: Any, removal: Any) -> None:
    for adds, expected in (([_add("new")], change), ([], removal)):
        log = _table()
        _commit(log, _add("old"))
        _commit(log, _add("old").remove(1), *adds, operation=DELETE)
        source = _source(log, starting_version=2, **options)
        if isinstance(expected, str):
            with pytest.raises(DeltaAnalysisError, match=expected) as caught:
                _all(source, source.initial_offset())
            assert "at version 2" in str(caught.value)
        else:
            batches, end = _all(source, source.initial_offset())
            assert (sum(batches, []), end) == (expected, SourceOffset(3, -1))  # noqa: RUF017


def test_commits_that_change_no_row_are_passed_over() -> None:
    log = _table()
    _commit(log, _add("a"), _add("b"))
    remove = replace(_add("a").remove(1), data_change=False)
    assert isinstance(remove, RemoveFile)
    _commit(log, remove, _add("ab", data_change=False), operation=Operation("OPTIMIZE"))
    _commit(log, _add("c"))
    source = _source(log, starting_version=1)
    batches, end = _all(source, source.initial_offset())
    assert (batches, end) == ([["a", "b", "c"]], SourceOffset(4, -1))


def test_files_can_be_left_out_without_moving_the_offsets() -> None:
    log = _table()
    _commit(log, _add("a.tmp"), _add("b"), _add("c"))
    source = _source(log, max_files=2, exclude=re.compile("tmp$"))
    assert _all(source, source.initial_offset())[0] == [["b"], ["c"]]


def test_a_commit_that_is_gone() -> None:
    log = _table()
    for name in "abc":
        _commit(log, _add(name))
    log.checkpoint()
    path = log.store.filesystem_path(f"{log.table}/_delta_log/{2:020d}.json")
    log.store.filesystem.delete_file(path)
    at = SourceOffset(1, -1)
    with pytest.raises(LogGapError, match=r"DELTA_MISSING_FILES_UNEXPECTED_VERSION.*next one is 3"):
        _source(log).latest_offset(at)
    source = _source(log, fail_on_data_loss=False)
    assert _all(source, at)[0] == [["a", "c"]]


def test_a_batch_that_was_planned_up_to_a_commit_that_is_gone_since() -> None:
    log = _table()
    set_properties(log.table, {"delta.enableChangeDataFeed": "true"})
    for name in "abc":
        _commit(log, _add(name))
    log.checkpoint()
    log.store.filesystem.delete_file(
        log.store.filesystem_path(f"{log.table}/_delta_log/{3:020d}.json")
    )
    start, end = SourceOffset(2, -1), SourceOffset(3, 0)
    source = _source(log, fail_on_data_loss=False)
    assert source.files_between(start, end)["path"].to_pylist() == ["a"]
    changes = ChangeSource(DeltaLog.for_table(log.table), StreamOptions(fail_on_data_loss=False))
    reader = TableFileReader(changes.snapshot, changes.snapshot.read_schema)
    found = changes.changes_between(start, end, reader)
    assert [Path(each.file.path).name for each in found] == ["a"]


def test_batches_of_a_state_and_of_many_commits_have_each_file_once_with_its_version() -> None:
    log = _table()
    _commit(log, _add("b", time=2), _add("a", time=1))
    source = _source(log)
    start = source.initial_offset()
    for number in range(20):
        _commit(log, _add(f"c{number:02}", size=number), _add(f"d{number:02}"))
    files = source.files_between(start, source.latest_offset(start, limited=False))
    names = [name for number in range(20) for name in (f"c{number:02}", f"d{number:02}")]
    assert files["path"].to_pylist() == ["a", "b"]
    later = SourceOffset(2, -1)
    files = source.files_between(later, source.latest_offset(later, limited=False))
    assert files["path"].to_pylist() == names
    assert files["version"].to_pylist() == [2 + number // 2 for number in range(40)]
    both = source.files_between(start, SourceOffset(3, 0))
    assert both["path"].to_pylist() == ["a", "b", "c00", "d00", "c01"]
    assert both["version"].to_pylist() == [1, 1, 2, 2, 3]
    limited = _source(log, max_bytes=25)
    assert [name for batch in _all(limited, later)[0] for name in batch] == names


def _alter(log: DeltaLog, schema: StructType, **changes: Any) -> None:
    txn = log.start_transaction()
    metadata = replace(txn.metadata, schema_string=schema.to_json(), **changes)
    txn.update_metadata(metadata)
    txn.commit([], Operation("Manual Update"))


def test_a_new_column_ends_the_stream_until_it_is_started_again() -> None:
    log = _table()
    _commit(log, _add("a"))
    source = _source(log)
    _, at = _all(source, source.initial_offset())
    _alter(log, StructType((*SCHEMA.fields, StructField("new.one", TEXT))))
    _commit(log, _add("b"))
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_SCHEMA_CHANGED_WITH_VERSION.*`new\.one`"):
        source.latest_offset(at)
    assert _all(_source(log), at)[0] == [["b"]]


def test_a_dropped_or_retyped_column_ends_the_stream_for_good() -> None:
    wide = StructType((*SCHEMA.fields, StructField("gone", TEXT)))
    for stream, then in (
        (wide, StructType((*SCHEMA.fields, StructField("gone", LONG)))),
        (wide, StructType((*SCHEMA.fields, StructField("renamed", TEXT)))),
        # After a restart the stream has fewer columns than the rows that it has not read yet.
        (StructType((StructField("new", LONG),)), wide),
    ):
        with pytest.raises(DeltaAnalysisError, match="DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE"):
            _check(stream, then)


def _check(stream: StructType, then: StructType) -> None:
    from lakelog.core.streaming.schema_changes import check_same_columns

    one, two = (Metadata(id="x", schema_string=each.to_json()) for each in (stream, then))
    check_same_columns(one, two, 5, "/t")


def test_a_mapped_table_is_not_read_from_a_version_whose_columns_no_one_knows() -> None:
    log = _table()
    _commit(log, _add("a"))
    properties = {"delta.columnMapping.mode": "name"}
    set_properties(log.table, properties)
    for name in "bc":
        _commit(log, _add(name))
    log.checkpoint()
    for version in range(3):
        path = log.store.filesystem_path(f"{log.table}/_delta_log/{version:020d}.json")
        log.store.filesystem.delete_file(path)
    # Version 3 can't be rebuilt: the checkpoint is that of version 4.
    source = _source(log, starting_version=3)
    with pytest.raises(DeltaAnalysisError, match=r"COLUMN_MAPPING_NO_SNAPSHOT.*version 3"):
        source.latest_offset(source.initial_offset())
    assert _all(_source(log), SourceOffset(4, -1))[0] == [["c"]]


def test_a_table_that_is_made_again_ends_the_stream() -> None:
    log = _table()
    source = _source(log)
    at = source.initial_offset()
    _alter(log, SCHEMA, id="other")
    with pytest.raises(DeltaAnalysisError, match="DIFFERENT_DELTA_TABLE"):
        source.latest_offset(at)


def test_a_run_to_the_end_ends_at_what_was_there_when_it_began() -> None:
    log = _table()
    _commit(log, _add("a"))
    source = _source(log)
    source.stop_at_newest()
    _commit(log, _add("b"))
    assert _all(source, source.initial_offset())[0] == [["a"]]


@settings(max_examples=examples(15), deadline=None)
@given(
    before=st.lists(st.lists(st.integers(1, 30), max_size=4), max_size=3),
    after=st.lists(st.lists(st.integers(1, 30), max_size=4), max_size=4),
    files=st.none() | st.integers(1, 3),
    size=st.none() | st.integers(1, 40),
    data=st.data(),
)
def test_every_file_comes_once_whatever_the_limits_and_restarts(
    before: list[list[int]],
    after: list[list[int]],
    files: int | None,
    size: int | None,
    data: st.DataObject,
) -> None:
    log = _table()
    made: list[str] = []

    def commit(sizes: list[int]) -> None:
        names = [f"f{len(made) + n}" for n in range(len(sizes))]
        made.extend(names)
        _commit(log, *map(_add, names, sizes))

    for sizes in before:
        commit(sizes)
    options = {"max_files": files, "max_bytes": size}
    source = _source(log, **options)
    at = source.initial_offset()
    seen: list[str] = []
    left = list(after)
    yes: st.SearchStrategy[bool] = st.booleans()
    while True:
        if data.draw(yes) and left:
            commit(left.pop(0))
        if data.draw(yes):
            source = _source(log, **options)
        table_id = source.snapshot.metadata.id
        stored = source.latest_offset(at).to_json_value(table_id)
        end = SourceOffset.from_json_value(stored, table_id, log.table)
        if data.draw(yes):
            # Killed after the end was noted: the batch is planned again by another process.
            source = _source(log, **options)
        found = source.files_between(at, end)
        assert files is None or found.num_rows <= files
        sizes = found["size"].to_pylist()
        assert size is None or not sizes or sum(sizes[:-1]) < size
        seen += found["path"].to_pylist()
        if end == at and not left:
            break
        at = end
    assert sorted(seen) == sorted(made)
