"""The change feed of commits that remove rows and change the columns, by every reader of it."""

from __future__ import annotations

import pickle
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, restore, table_changes, write_arrow
from lakelog.core.alter import (
    add_columns,
    change_column,
    drop_columns,
    drop_feature,
    rename_column,
    set_properties,
)
from lakelog.core.change_feed.feed import ChangeFeed, change_readers
from lakelog.core.change_feed.versions import ChangeBounds
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.streaming.change_source import ChangeSource
from lakelog.core.streaming.stream_options import StreamOptions
from lakelog.spark.reading.changes import change_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

FEED = {"delta.enableChangeDataFeed": "true"}
REFUSED = "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE"
KINDS = pa.schema(
    [
        ("id", pa.int64()),
        ("v", pa.int32()),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
        ("l", pa.list_(pa.struct([("x", pa.int32())]))),
        ("p", pa.string()),
    ]
)
Row = dict[str, Any]


def row(number: int, **values: Any) -> Row:
    struct = {"a": 10 * number, "b": f"b{number}"}
    plain = {"v": 100 * number, "s": struct, "l": [{"x": number}], "p": "pq"[number % 2]}
    return {"id": number, **plain, **values}


def by_core(log: DeltaLog, version: int) -> list[Row]:
    rows: list[Row] = table_changes(log, version, version).read_all().to_pylist()
    return rows


def by_spark(log: DeltaLog, version: int) -> list[Row]:
    bounds = ChangeBounds(starting_version=version, ending_version=version)
    feed = ChangeFeed(log, bounds)
    return _run(change_job(feed.snapshot, feed.files(), feed.schema.names))


def by_stream(log: DeltaLog, version: int) -> list[Row]:
    source = ChangeSource(log, StreamOptions(starting_version=version))
    start = source.initial_offset()
    columns = [*source.snapshot.read_schema.names, "_change_type", "_commit_version"]
    reader, _ = change_readers(source.snapshot, columns)
    files = source.changes_between(start, source.latest_offset(start, limited=False), reader)
    return _run(change_job(source.snapshot, files, columns))


def _run(job: Any) -> list[Row]:
    sent = [pickle.loads(pickle.dumps(job.alone(number))) for number in range(job.tasks)]
    found = [batch for each in sent for batch in each.batches(0)]
    return [row for batch in found for row in batch.to_pylist()]


READERS: dict[str, Callable[[DeltaLog, int], list[Row]]] = {
    "core": by_core,
    "Spark": by_spark,
    "stream": by_stream,
}


def expected_row(before: Row, columns: Iterable[str], renamed: dict[str, str]) -> Row:
    """A row by other columns, top level: what they do not have is gone."""
    return {name: before.get(renamed.get(name, name)) for name in columns}


def rows_of(log: DeltaLog) -> dict[int, Row]:
    found = log.update().scan().to_arrow().to_pylist()
    return {each["id"]: each for each in found}


def check_feed(log: DeltaLog, before: dict[int, Row], renamed: dict[str, str]) -> None:
    """What a version took is what there was, and what it brought is there, for every reader."""
    after, version = rows_of(log), log.snapshot.version
    names = log.snapshot.read_schema.names
    for reader, read in READERS.items():
        changes = read(DeltaLog.for_table(log.table), version)
        ids = set(before)
        for each in sorted(changes, key=lambda each: each["_change_type"]):
            found = {name: each[name] for name in names}
            if each["_change_type"] == "delete":
                assert found == _cast(expected_row(before[each["id"]], names, renamed), found), (
                    reader
                )
                ids.remove(each["id"])
        for each in changes:
            if each["_change_type"] == "insert":
                assert {name: each[name] for name in names} == after[each["id"]], reader
                ids.add(each["id"])
        assert ids == set(after), reader
        assert changes, reader


def _cast(row: Row, like: Row) -> Row:
    """With the numbers as text that are text in the other."""
    return {
        name: str(value) if isinstance(like[name], str) and value is not None else value
        for name, value in row.items()
    }


def readd(log: DeltaLog, *columns: str, **kinds: str) -> None:
    """Drop columns and add them again, which files know by new names then."""
    drop_columns(log, [*columns])
    add_columns(log, {name: kinds.get(name, "int") for name in columns})


def no_change(log: DeltaLog) -> None:
    """The columns stay."""


def readd_value(log: DeltaLog) -> None:
    readd(log, "v")


def readd_key_and_struct(log: DeltaLog) -> None:
    readd(log, "id", "s", id="bigint", s="struct<a: int, b: string>")
    write_arrow(log, [row(n) for n in (1, 2, 3)], schema=KINDS, mode="overwrite")


def readd_nested(log: DeltaLog) -> None:
    drop_columns(log, [("s", "a")])
    add_columns(log, {"a": "int"}, parent="s")


def drop_mapping(log: DeltaLog) -> None:
    drop_feature(log, "columnMapping")


def rename(log: DeltaLog) -> None:
    rename_column(log, "v", "w")


def add(log: DeltaLog) -> None:
    add_columns(log, {"more": "int"})


CHANGES = (no_change, readd_value, readd_key_and_struct, readd_nested, drop_mapping, rename, add)


def made(uri: str, mode: str, *, vectors: bool, partitioned: bool) -> DeltaLog:
    properties = {**FEED, "delta.enableDeletionVectors": str(vectors).lower()}
    if mode != "none":
        properties["delta.columnMapping.mode"] = mode
    write_arrow(
        uri,
        [row(1), row(2)],
        schema=KINDS,
        mode="append",
        properties=properties,
        partition_by=["p"] if partitioned else None,
    )
    return DeltaLog.for_table(uri)


@pytest.mark.parametrize(
    ("change", "mode"),
    [
        *product(CHANGES, ("name", "id")),
        (no_change, "none"),
        (add, "none"),
    ],
)
def test_rows_that_a_restore_takes_are_reported_as_they_were(tmp_path: Path, change, mode) -> None:
    for both in (False, True):
        log = made(str(tmp_path / str(both)), mode, vectors=both, partitioned=both)
        change(log)
        names = log.update().read_schema.names
        here = {"w": "v"} if change is rename else {}
        new = [expected_row(row(number, more=7), names, here) for number in (3, 4)]
        kinds = {
            name: KINDS.field(here.get(name, name)).type
            if here.get(name, name) in KINDS.names
            else pa.int32()
            for name in names
        }
        write_arrow(log, new, schema=pa.schema([*kinds.items()]), mode="append")
        delete_rows(log, "id = 2 OR id = 3")
        before = rows_of(log)
        restore(log, 0)
        check_feed(log, before, {"v": "w"} if change is rename else {})


def test_a_column_that_comes_back_is_reported_as_the_files_still_have_it(tmp_path: Path) -> None:
    log = made(str(tmp_path / "t"), "name", vectors=False, partitioned=False)
    write_arrow(log, [row(3)], schema=KINDS, mode="append")
    drop_columns(log, "v")
    restore(log, 0)
    found = {name: [each["v"] for each in read(log, 3)] for name, read in READERS.items()}
    assert found == {reader: [300] for reader in READERS}


NEW: dict[str, tuple[pa.Schema, list[Row], list[str]]] = {
    "text": (
        pa.schema([("id", pa.string()), ("v", pa.string()), ("p", pa.string())]),
        [{"id": "1", "v": "x", "p": "p"}, {"id": "9", "v": None, "p": "q"}],
        [],
    ),
    "fewer and more": (
        pa.schema([("id", pa.int64()), ("more", pa.float64())]),
        [{"id": 1, "more": 0.5}],
        [],
    ),
    "wider": (
        pa.schema(
            [
                ("ID", pa.decimal128(30, 2)),
                ("v", pa.float64()),
                ("l", pa.list_(pa.struct([("x", pa.string())]))),
            ]
        ),
        [{"ID": 1, "v": 2.5, "l": [{"x": "y"}]}],
        [],
    ),
    "by another column": (KINDS, [row(5, v=5)], ["v"]),
    "by the key as text": (
        pa.schema([("id", pa.string()), ("p", pa.string())]),
        [{"id": "7", "p": "p"}],
        ["id"],
    ),
}


@pytest.mark.parametrize("by", [None, "p"])
@pytest.mark.parametrize("new", NEW)
def test_rows_that_an_overwrite_takes_are_reported_by_its_columns(tmp_path: Path, new, by) -> None:
    schema, rows, partition_by = NEW[new]
    log = made(str(tmp_path / "t"), "none", vectors=True, partitioned=by is not None)
    delete_rows(log, "id = 2")
    version = write_arrow(
        log,
        rows,
        schema=schema,
        mode="overwrite",
        schema_mode="overwrite",
        partition_by=partition_by,
    )
    for reader, read in READERS.items():
        changes = read(DeltaLog.for_table(log.table), version)
        gone = [each for each in changes if each["_change_type"] == "delete"]
        assert len(gone) == 1, reader
        expected = {each.name: row(1).get(each.name.lower()) for each in schema}
        if new == "wider":
            expected["l"] = [{"x": "1"}]
        assert {name: gone[0][name] for name in schema.names} == _cast(expected, gone[0]), reader
        assert len(changes) - 1 == len(rows), reader


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("id", pa.int32()),
        ("id", pa.timestamp("us", "UTC")),
        ("v", pa.struct([("a", pa.int32())])),
        ("s", pa.struct([("a", pa.int16()), ("b", pa.string())])),
        ("s", pa.string()),
        ("l", pa.list_(pa.int32())),
        ("p", pa.int32()),
    ],
)
def test_types_that_old_rows_do_not_fit_wait_until_the_rows_are_gone(tmp_path, column, kind):
    log = made(str(tmp_path / "t"), "none", vectors=False, partitioned=False)
    schema = KINDS.set(KINDS.get_field_index(column), pa.field(column, kind))

    def overwrite() -> int:
        empty = schema.empty_table()
        return write_arrow(log, empty, mode="overwrite", schema_mode="overwrite")

    with pytest.raises(DeltaAnalysisError, match=rf"{REFUSED}.* of {column}"):
        overwrite()
    assert log.update().version == 0
    delete_rows(log)
    version = overwrite()
    assert [len(read(log, version)) for read in READERS.values()] == [0, 0, 0]


def test_a_table_without_a_feed_may_change_any_type(tmp_path: Path) -> None:
    log = made(str(tmp_path / "t"), "none", vectors=False, partitioned=False)
    set_properties(log, {"delta.enableChangeDataFeed": False})
    write_arrow(log, {"id": [True]}, mode="overwrite", schema_mode="overwrite")
    assert [*rows_of(log)] == [True]


def test_a_restore_to_narrower_types_waits_until_the_rows_are_gone(tmp_path: Path) -> None:
    log = made(str(tmp_path / "t"), "name", vectors=False, partitioned=False)
    set_properties(log, {"delta.enableTypeWidening": True})
    change_column(log, "v", data_type="bigint")
    schema = KINDS.set(1, pa.field("v", pa.int64()))
    write_arrow(log, [row(3, v=1 << 40)], schema=schema, mode="append")
    with pytest.raises(DeltaAnalysisError, match=rf"{REFUSED}.* of v .*bigint to int"):
        restore(log, 0)
    assert log.update().version == 3
    delete_rows(log)
    restore(log, 0)
    assert set(rows_of(log)) == {1, 2}


def test_a_feed_that_another_client_left_so_names_the_version_to_go_on_with(tmp_path, monkeypatch):
    log = made(str(tmp_path / "t"), "none", vectors=False, partitioned=False)
    monkeypatch.setattr("lakelog.core.commit.prepare.check_removed_rows_fit", lambda *_: None)
    write_arrow(log, {"id": [True]}, mode="overwrite", schema_mode="overwrite")
    for read in READERS.values():
        with pytest.raises(DeltaAnalysisError, match=rf"{REFUSED}.* version 1 .*Start from ve.* 2"):
            read(log, 1)


@pytest.mark.parametrize("reader", READERS)
def test_a_feed_is_not_told_by_columns_that_the_files_know_by_other_names(tmp_path, reader):
    log = made(str(tmp_path / "t"), "name", vectors=False, partitioned=False)
    drop_feature(log, "columnMapping")
    newest = log.update().version
    if reader == "stream":
        with pytest.raises(DeltaAnalysisError, match="INCOMPATIBLE_SCHEMA_CHANGE"):
            by_stream(log, 0)
    else:
        with pytest.raises(DeltaAnalysisError, match="INCOMPATIBLE_SCHEMA_CHANGE"):
            table_changes(log, 0, newest)
