"""Tables and options of streams: what each query reads, or which condition ends it."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core import DeltaLog, clone, delete_rows, optimize, restore, update_rows, write_arrow
from lakelog.core.alter import (
    add_columns,
    change_column,
    drop_columns,
    rename_column,
    set_properties,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RECORDED = Path(__file__).with_name("recorded.json")
COLUMNS = ("id", "_change_type", "_commit_version")
"""What of the rows is compared."""
_FEED = {"delta.enableChangeDataFeed": "true"}
_CONDITION = re.compile(r"\[((?:DELTA|DIFFERENT)_[A-Z_]+(?:\.[A-Z_]+)?)\]")


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def _changed(path: str, properties: dict[str, str]) -> None:
    """Versions 0 to 4: rows, a row in a file of its own, without that file, changed, one more."""
    write_arrow(path, _rows(1, 2, 3), mode="append", properties=properties)
    write_arrow(path, _rows(4), mode="append")
    delete_rows(path, "id = 4")
    update_rows(path, {"id": "id + 10"}, "id = 1")
    write_arrow(path, _rows(5), mode="append")


def _plain(path: str) -> None:
    _changed(path, _FEED)


def _vectors(path: str) -> None:
    _changed(path, {**_FEED, "delta.enableDeletionVectors": "true"})


def _late_feed(path: str) -> None:
    write_arrow(path, _rows(1), mode="append")
    set_properties(path, _FEED)
    write_arrow(path, _rows(2), mode="append")


def _lost_feed(path: str) -> None:
    write_arrow(path, _rows(1), mode="append", properties=_FEED)
    write_arrow(path, _rows(2), mode="append")
    set_properties(path, {"delta.enableChangeDataFeed": "false"})
    write_arrow(path, _rows(3), mode="append")


def _laid_out(path: str) -> None:
    """Files are put together in version 2, and removed and added again by RESTORE in version 4."""
    write_arrow(path, _rows(1), mode="append")
    write_arrow(path, _rows(2), mode="append")
    optimize(path)
    write_arrow(path, _rows(3), mode="append")
    restore(path, version=1)
    write_arrow(path, _rows(4), mode="append")


def _deleted_and_restored(path: str) -> None:
    write_arrow(path, _rows(1), mode="append")
    write_arrow(path, _rows(2), mode="append")
    delete_rows(path, "id = 2")
    restore(path, version=1)
    write_arrow(path, _rows(3), mode="append")


def _overwritten(path: str) -> None:
    write_arrow(path, _rows(1), mode="append")
    write_arrow(path, _rows(2), mode="overwrite")
    write_arrow(path, _rows(3), mode="append")


def _replaced_by_a_clone(path: str) -> None:
    write_arrow(f"{path} other", _rows(8, 9), mode="append")
    write_arrow(path, _rows(1), mode="append")
    delete_rows(path, "true")
    clone(f"{path} other", path, replace_target=True)
    write_arrow(path, _rows(3), mode="append")


def _with_a_word(word: str, *ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "word": [word] * len(ids)})


def _renamed(path: str, mode: str) -> None:
    """In version 2."""
    by = {"delta.columnMapping.mode": mode}
    write_arrow(path, _with_a_word("a", 1), mode="append", properties=by)
    write_arrow(path, _with_a_word("b", 2), mode="append")
    rename_column(path, "word", "said")
    table = _with_a_word("c", 3).rename_columns(["id", "said"])
    write_arrow(path, table, mode="append")


def _dropped(path: str) -> None:
    """In version 1."""
    by = {"delta.columnMapping.mode": "name"}
    write_arrow(path, _with_a_word("a", 1), mode="append", properties=by)
    drop_columns(path, "word")
    write_arrow(path, _rows(2), mode="append")


def _narrowed(path: str) -> None:
    """Without a column and with another type, from version 2 on, of a table that maps none."""
    write_arrow(path, _with_a_word("a", 1), mode="append")
    write_arrow(path, _with_a_word("b", 2), mode="append")
    write_arrow(path, _rows(3), mode="overwrite", schema_mode="overwrite")
    write_arrow(path, _rows(4), mode="append")


def _other_type(path: str) -> None:
    """From version 2 on."""
    write_arrow(path, _with_a_word("a", 1), mode="append")
    write_arrow(path, _with_a_word("b", 2), mode="append")
    table = pa.table({"id": pa.array([3], pa.int64()), "word": pa.array([7], pa.int32())})
    write_arrow(path, table, mode="overwrite", schema_mode="overwrite")


def _swapped(path: str) -> None:
    """A column is dropped, and another one gets its name."""
    by = {"delta.columnMapping.mode": "id"}
    write_arrow(path, _with_a_word("a", 1), mode="append", properties=by)
    drop_columns(path, "word")
    add_columns(path, pa.schema([("word", pa.string())]))
    write_arrow(path, _with_a_word("b", 2), mode="append")


def _mapped_later(path: str) -> None:
    """In version 1, without any other change."""
    write_arrow(path, _with_a_word("a", 1), mode="append")
    set_properties(path, {"delta.columnMapping.mode": "name"})
    write_arrow(path, _with_a_word("b", 2), mode="append")


def _wider(path: str) -> None:
    """More columns in version 1."""
    write_arrow(path, _rows(1), mode="append")
    add_columns(path, pa.schema([("word", pa.string())]))
    write_arrow(path, _with_a_word("b", 2), mode="append")


def _retyped(path: str) -> None:
    """Type widening in version 1."""
    small = pa.table({"id": pa.array([1], pa.int32())})
    write_arrow(path, small, mode="append", properties={"delta.enableTypeWidening": "true"})
    change_column(path, "id", data_type="bigint")
    write_arrow(path, _rows(2), mode="append")


def _nullable(path: str) -> None:
    """A column may be null from version 1 on."""
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    write_arrow(path, _rows(1).cast(schema), mode="append")
    change_column(path, "id", nullable=True)
    write_arrow(path, _rows(2), mode="append")


def _partitioned(path: str) -> None:
    table = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "p": ["a b", "c", "d:e"]})
    write_arrow(path, table, mode="append", partition_by="p")


def _cut(path: str) -> None:
    """The commits 0 and 1 are gone; a checkpoint has their rows."""
    for number in range(4):
        write_arrow(path, _rows(number), mode="append")
    DeltaLog.for_table(path).checkpoint()
    for number in range(2):
        (Path(path) / "_delta_log" / f"{number:020}.json").unlink()
    write_arrow(path, _rows(4), mode="append")


def _with_a_hole(path: str) -> None:
    """Commit 2 is gone; a checkpoint of version 3 has its rows."""
    for number in range(4):
        write_arrow(path, _rows(number), mode="append")
    DeltaLog.for_table(path).checkpoint()
    (Path(path) / "_delta_log" / f"{2:020}.json").unlink()


def _timed(path: str) -> None:
    """Committed at midnight, noon and midnight."""
    times = ("2026-01-01T00:00:00Z", "2026-01-01T12:00:00Z", "2026-01-02T00:00:00Z")
    for number, time in enumerate(times):
        write_arrow(path, _rows(number), mode="append")
        moment = datetime.fromisoformat(time).timestamp()
        os.utime(Path(path) / "_delta_log" / f"{number:020}.json", (moment, moment))


TABLES: dict[str, Callable[[str], None]] = {
    "plain": _plain,
    "vectors": _vectors,
    "late feed": _late_feed,
    "lost feed": _lost_feed,
    "laid out": _laid_out,
    "deleted and restored": _deleted_and_restored,
    "overwritten": _overwritten,
    "replaced by a clone": _replaced_by_a_clone,
    "renamed by id": partial(_renamed, mode="id"),
    "renamed by name": partial(_renamed, mode="name"),
    "dropped": _dropped,
    "narrowed": _narrowed,
    "other type": _other_type,
    "swapped": _swapped,
    "mapped later": _mapped_later,
    "wider": _wider,
    "retyped": _retyped,
    "nullable": _nullable,
    "partitioned": _partitioned,
    "cut": _cut,
    "with a hole": _with_a_hole,
    "timed": _timed,
}
_START = {"startingVersion": "0"}
_CHANGES = {"readChangeFeed": "true"}
_BOTH: list[dict[str, str]] = [
    {},
    _START,
    {"startingVersion": "1"},
    {"startingVersion": "latest"},
    {"startingVersion": "99"},
    {"startingTimestamp": "1970-01-01"},
    {"startingTimestamp": "2999-01-01 00:00:00"},
    {"startingTimestamp": "soon"},
    {**_START, "startingTimestamp": "1970-01-01"},
    {**_START, "maxFilesPerTrigger": "1"},
    {**_START, "maxBytesPerTrigger": "1b"},
    {**_START, "excludeRegex": "parquet"},
    {**_START, "endingVersion": "0"},
    {**_START, "ignoreChanges": "true"},
]
_OF_ROWS: list[dict[str, str]] = [
    *({**_START, **dict.fromkeys(chosen, "true")} for chosen in (
        ("ignoreDeletes",),
        ("ignoreFileDeletion",),
        ("skipChangeCommits",),
        ("ignoreDeletes", "ignoreChanges"),
        ("ignoreDeletes", "skipChangeCommits"),
        ("ignoreChanges", "skipChangeCommits"),
    )),
    {"startingVersion": "2", "ignoreDeletes": "true"},
    {"startingVersion": "4"},
    {"startingVersion": "5"},
    {"startingVersion": "6"},
    {"startingVersion": "-1"},
    {"startingVersion": "one"},
    {"versionAsOf": "1"},
    {"timestampAsOf": "2020-01-01"},
    {"maxFilesPerTrigger": "0"},
    {"maxFilesPerTrigger": "x"},
    {"maxBytesPerTrigger": "0"},
    {"maxBytesPerTrigger": "x"},
    {"ignoreDeletes": "yes"},
    {"failOnDataLoss": "x"},
    {"excludeRegex": "("},
    {"readChangeFeed": "false"},
]  # fmt: skip
OPTIONS: list[tuple[str, dict[str, str]]] = [
    *((table, given) for table in ("plain", "vectors") for given in _BOTH),
    *((table, {**given, **_CHANGES}) for table in ("plain", "vectors") for given in _BOTH),
    *(("plain", given) for given in _OF_ROWS),
    ("plain", {**_START, "readChangeData": "true"}),
    *(
        (table, {**_CHANGES, **given})
        for table in ("late feed", "lost feed")
        for given in ({}, _START, {"startingVersion": "1"}, {"startingVersion": "2"})
    ),
    *(
        ("vectors", {**_START, **dict.fromkeys(chosen, "true")})
        for chosen in (
            ("ignoreDeletes",),
            ("skipChangeCommits",),
            ("ignoreDeletes", "ignoreChanges"),
        )
    ),
    *(
        (table, {**_START, **given})
        for table in ("laid out", "deleted and restored", "overwritten", "replaced by a clone")
        for given in (
            {},
            {"ignoreDeletes": "true"},
            {"ignoreChanges": "true"},
            {"skipChangeCommits": "true"},
            {"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1g", "skipChangeCommits": "true"},
            {"maxFilesPerTrigger": "1", "maxBytesPerTrigger": "1b", "ignoreChanges": "true"},
        )
    ),
    *(
        (table, given)
        for table in (
            "renamed by id",
            "renamed by name",
            "dropped",
            "swapped",
            "mapped later",
            "wider",
            "retyped",
            "nullable",
        )
        for given in (
            {},
            _START,
            {"startingVersion": "1"},
            {"startingVersion": "2"},
            {"startingVersion": "3"},
        )
    ),
    *(
        (table, {**given, "ignoreChanges": "true"})
        for table in ("narrowed", "other type")
        for given in ({}, _START, {"startingVersion": "1"}, {"startingVersion": "2"})
    ),
    *(
        ("partitioned", {"excludeRegex": pattern})
        for pattern in ("p=c", "a b", "a%20b", "d%3Ae", "^p", "\\Qp=\\E", "(?i)P=C", "p=[a-z&&[c]]")
    ),
    *(
        (table, {**given, **lenient})
        for table in ("cut", "with a hole")
        for given in (
            {},
            _START,
            {"startingVersion": "1"},
            {"startingVersion": "2"},
            {"startingTimestamp": "1970-01-01"},
        )
        for lenient in ({}, {"failOnDataLoss": "false"})
    ),
    *(
        ("timed", {"startingTimestamp": time})
        for time in (
            "2025-12-31",
            "2026-01-01",
            "2026-01-01 12:00:00",
            "2026-01-01 12:00:00.001",
            "2026-01-01T12:00:00Z",
            "2026-01-01T12:00:00+02:00",
            "2026-01-01T12:00:00-02:00",
            "2026-01-01 12:00:00 UTC",
            "2026-01-01 12:00:00 Europe/Berlin",
            "2026-01-01T12:00:00America/New_York",
            "2026-01-01 12:00:00 GMT+1",
            "2026-01-01 12",
            "2026-01-01 12:0",
            "2026-1-1",
            "2026-01",
            "2026",
            "20260101",
            "2026-W01-4",
            " 2026-01-01 ",
            "2026-01-02",
            "2026-01-02 00:00:01",
            "now",
            "today",
            "epoch",
            "12:00",
            "1767225600",
        )
    ),
]


def key_of(table: str, options: dict[str, str]) -> str:
    """The name of a case in the record."""
    return f"{table}: {json.dumps(options, sort_keys=True)}"


def condition(text: str) -> str | None:
    """The condition that an error names."""
    found = _CONDITION.search(text)
    return found[1] if found else None


def in_order(rows: pa.Table) -> list[list[Any]]:
    """What a stream read, in an order of its own: each row's id, and what happened to it."""
    names = [each for each in COLUMNS if each in rows.column_names]
    columns = [rows[name].to_pylist() for name in names]
    return sorted([list(row) for row in zip(*columns, strict=True)])


def recorded() -> dict[str, Any]:
    """What delta-spark made of each case: its rows, or the condition."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found
