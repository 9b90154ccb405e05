"""VACUUM reads from each commit what it took out, whatever the lines look like."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.errors import CorruptCommitError
from lakelog.core.log.commit_file import parse_commit
from lakelog.core.maintain.vacuum.from_log import files_taken_out
from lakelog.logstores import FileStatus, MemoryLogStore

if TYPE_CHECKING:
    from collections.abc import Sequence

LOG = "memory://taken/_delta_log"
INFO = json.dumps({"commitInfo": {"timestamp": 1, "operation": "WRITE"}})


def add(path: str) -> str:
    stats = json.dumps({"numRecords": 1, "minValues": {"remove": '{"remove":{}}'}})
    action = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 1}
    return json.dumps({"add": {**action, "dataChange": True, "stats": stats}})


def remove(path: str) -> str:
    return json.dumps({"remove": {"path": path, "deletionTimestamp": 1, "dataChange": True}})


def taken(text: str) -> tuple[list[str], list[str]]:
    store = MemoryLogStore()
    path = f"{LOG}/{0:020d}.json"
    store.write(path, text.split("\n"), overwrite=True)
    status = FileStatus(path, len(text), 1)
    (found,) = files_taken_out(store, "memory://taken", [(0, status)])
    return found.removed["path"].to_pylist(), found.change_files


@given(st.lists(st.sampled_from(["add", "remove", "cdc", "info", "txn"]), min_size=1, max_size=6))
def test_each_commit_gives_what_it_took_out(kinds: Sequence[str]) -> None:
    txn = json.dumps({"txn": {"appId": "a", "version": 1}})
    cdc = {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False}
    lines = {"add": add("a"), "cdc": json.dumps({"cdc": cdc}), "info": INFO, "txn": txn}
    texts = [lines.get(kind) or remove(f"r{n}") for n, kind in enumerate(kinds)]
    removed = [f"r{n}" for n, kind in enumerate(kinds) if kind == "remove"]
    assert taken("\n".join(texts)) == (removed, ["c"] * kinds.count("cdc"))


def test_a_name_may_be_written_with_escapes() -> None:
    escaped = remove("r").replace('"remove"', '"\\u0072emove"')
    assert taken(f"{add('a')}\n{escaped}") == (["r"], [])


@pytest.mark.parametrize(
    "text",
    [
        add("a")[:-1],
        f"{INFO}\n{add('a')[:40]}",
        f"{add('a')},{add('b')}",
        f"{add('a')}\n5",
        "",
        "[]",
    ],
)
def test_a_commit_that_is_torn_empty_or_something_else_is_refused(text: str) -> None:
    with pytest.raises(CorruptCommitError):
        parse_commit(text.encode() + b"\n", 0, "0.json")
    with pytest.raises(CorruptCommitError, match=r"version 0"):
        taken(text)


def test_many_lines_are_read_too() -> None:
    lines = [add(str(number)) for number in range(1200)]
    assert taken("\n".join(lines)) == ([], [])
    assert taken("\n".join([*lines, remove("r")])) == (["r"], [])
