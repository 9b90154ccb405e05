"""Tables and options of streams: what each query reads, or which condition ends it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core import delete_rows, set_properties, update_rows, write_arrow

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OPTIONS", "RECORDED", "TABLES", "condition", "in_order", "key_of", "recorded"]

RECORDED = Path(__file__).with_name("recorded.json")
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


TABLES: dict[str, Callable[[str], None]] = {
    "plain": _plain,
    "vectors": _vectors,
    "late feed": _late_feed,
    "lost feed": _lost_feed,
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
    names = [
        each for each in ("id", "_change_type", "_commit_version") if each in rows.column_names
    ]
    columns = [rows[name].to_pylist() for name in names]
    return sorted([list(row) for row in zip(*columns, strict=True)])


def recorded() -> dict[str, Any]:
    """What delta-spark made of each case: its rows, or the condition."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found
