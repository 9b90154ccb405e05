"""A log written by a hostile hand ends in an error that names the file, and takes little memory."""

from __future__ import annotations

import json
import pickle
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog
from lakelog.core.change_feed.commits import read_change_commit
from lakelog.core.errors import LogTooLargeError
from lakelog.core.log.budget import AS_OBJECTS, LogBudget, read_log_file
from lakelog.core.log.checkpoint_parts import Part, PartReader
from lakelog.core.log.commit_file import skim_commit
from lakelog.logstores import FileTooLargeError, LocalLogStore
from lakelog.logstores.limits import LIMIT_KEY, log_limit
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIMIT = 300_000
CONF = {LIMIT_KEY: str(LIMIT)}
LONG = "x" * LIMIT
MANY = 6_000
HOSTILE: dict[str, list[dict[str, Any]]] = {
    "a long path": [add(LONG)],
    "a long text of another": [{"txn": {"appId": LONG, "version": 1}}],
    "a long value that nobody knows": [{"whatever": {"x": LONG}}],
    "many adds": [add(f"f{i}") for i in range(MANY)],
    "many removes": [remove(f"f{i}") for i in range(MANY)],
    "many adds of many shapes": [add(f"f{i}", tags={f"t{i % 3}": ""}) for i in range(MANY)],
    "many transactions": [{"txn": {"appId": f"a{i}", "version": 1}} for i in range(MANY)],
    "few lines of many values": [
        add(f"f{i}", tags={str(k): "" for k in range(30)}) for i in range(100)
    ],
}


def text(actions: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in actions).encode()


def refused(read: Callable[[], Any], name: str) -> None:
    with pytest.raises(LogTooLargeError, match=LIMIT_KEY) as caught:
        read()
    assert caught.value.path.endswith(name)
    assert caught.value.size > caught.value.limit == LIMIT
    assert pickle.loads(pickle.dumps(caught.value)).fields == caught.value.fields


def live(log: RawLog, conf: dict[str, str] | None = None) -> int:
    return DeltaLog.for_table(log.table, conf).snapshot.num_files


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_commit_is_refused(tmp_path: Path, kind: str) -> None:
    log = RawLog(tmp_path / "t").create(add("a"))
    known = DeltaLog.for_table(log.table, CONF)
    assert known.snapshot.num_files == 1
    log.commit(*HOSTILE[kind])
    name = f"{1:020d}.json"
    refused(lambda: live(log, CONF), name)
    refused(lambda: known.update().num_files, name)
    live(log)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_top_level_of_lines_is_refused(tmp_path: Path, kind: str) -> None:
    top = {"checkpointMetadata": {"version": 1}}
    log = RawLog(tmp_path / "t").create().commit(add("a"))
    name = f"{1:020d}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    (log.folder / name).write_bytes(text([top, PROTOCOL, metadata(), *HOSTILE[kind]]))
    refused(lambda: live(log, CONF), name)
    live(log)


def checkpoint(actions: list[dict[str, Any]]) -> pa.Table:
    """What Arrow makes of the actions; nulls are what an action lacks."""
    return pa.Table.from_pylist([{"protocol": None, "metaData": None, **each} for each in actions])


@pytest.mark.parametrize(
    "actions",
    [
        [add(f"{i}" * 50, partitionValues=None) for i in range(MANY)],
        [{"txn": {"appId": f"a{i}", "version": 1}} for i in range(MANY)],
        [add("x" * 10_000, partitionValues=None)] * 1000,
        [add("a", partitionValues=None, stats="x" * 10_000)] * 1000,
        [{"txn": {"appId": "a" * 10_000, "version": 1}}] * 1000,
    ],
    ids=["many adds", "many transactions", "one long path", "one long text", "one long name"],
)
def test_a_checkpoint_is_refused(tmp_path: Path, actions: list[dict[str, Any]]) -> None:
    log = RawLog(tmp_path / "t").create().commit(add("a"))
    path = log.folder / f"{1:020d}.checkpoint.parquet"
    every = [{"protocol": PROTOCOL["protocol"]}, metadata(), *actions]
    for each in every:
        each.get("metaData", {}).update({"configuration": None, "format": {"provider": "parquet"}})
    kinds = {next(iter(each)) for each in every}
    pq.write_table(pa.Table.from_pylist([{**dict.fromkeys(kinds), **each} for each in every]), path)
    refused(lambda: live(log, CONF), path.name)
    live(log)


def test_commits_share_what_there_is(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t").create()
    for version in range(8):
        log.commit(*(add(f"{version}-{i}") for i in range(50)))
    with pytest.raises(LogTooLargeError):
        live(log, CONF)
    assert live(log) == 400


@pytest.mark.parametrize("name", ["_last_checkpoint", f"{0:020d}.crc"])
def test_what_is_only_a_hint_is_passed_over(tmp_path: Path, name: str) -> None:
    log = RawLog(tmp_path / "t").create(add("a"))
    (log.folder / name).write_text(json.dumps({"version": 0, "x": LONG}))
    assert live(log, CONF) == 1


def test_a_compaction_file_is_passed_over(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t").create(add("a")).commit(add("b")).commit(add("c"))
    (log.folder / f"{0:020d}.{1:020d}.compacted.json").write_bytes(text([add(LONG)]))
    assert live(log, CONF) == 3


def test_history_and_changes_are_refused(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t").create().commit(add("a"))
    path = log.folder / f"{1:020d}.json"
    known = DeltaLog.for_table(log.table, CONF)
    assert known.snapshot.version == 1
    path.write_bytes(text(HOSTILE["a long path"]))
    refused(lambda: known.history(), path.name)
    store = LocalLogStore(CONF)
    refused(lambda: read_change_commit(store, str(path), 1, 0), path.name)
    path.write_bytes(text(HOSTILE["few lines of many values"])[: LIMIT - 1000])
    refused(lambda: read_change_commit(store, str(path), 1, 0), path.name)


def test_a_skimmed_commit_is_refused() -> None:
    data = text(HOSTILE["many adds"])
    refused(lambda: skim_commit(data, 1, "x.json", LogBudget(LIMIT)), "x.json")


class Plain(LocalLogStore):
    """A store that knows no lengths."""

    def read_bytes(self, path: str) -> bytes:
        return super(LocalLogStore, self).read_bytes(path)


def test_a_store_refuses_what_it_does_not_know_the_length_of(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("line\n" * LIMIT)
    for store in (LocalLogStore(CONF), Plain(CONF)):
        read = partial(read_log_file, store, str(path), LogBudget(LIMIT))
        with pytest.raises(FileTooLargeError, match=LIMIT_KEY) as caught:
            store.read_bytes(str(path))
        assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
        refused(read, "x.json")


def test_the_default_leaves_room_for_large_tables() -> None:
    assert log_limit({}) >= 1 << 30


@pytest.mark.parametrize("length", [LIMIT // AS_OBJECTS + 1, 1 << 30])
def test_a_giant_footer_is_refused_before_it_is_parsed(tmp_path: Path, length: int) -> None:
    path = tmp_path / "c.parquet"
    path.write_bytes(b"PAR1" + bytes(LIMIT) + length.to_bytes(4, "little") + b"PAR1")
    reader = PartReader(pyarrow.fs.LocalFileSystem(), "t", 1, "c.parquet", LIMIT)
    part = Part("c.parquet", str(path))
    refused(lambda: list(reader.columns(part, ["add.path"])), "c.parquet")


def test_so_are_more_rows_than_fit_however_small_they_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    table = pa.table({"add": pa.nulls(LIMIT // 8 + 1, pa.struct({"path": pa.string()}))})
    pq.write_table(table, path)
    assert path.stat().st_size < 5_000
    reader = PartReader(pyarrow.fs.LocalFileSystem(), "t", 1, "c.parquet", LIMIT)
    part = Part("c.parquet", str(path))
    refused(lambda: list(reader.columns(part, ["add.path"])), "c.parquet")
