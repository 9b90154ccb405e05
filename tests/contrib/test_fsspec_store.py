"""What the fsspec store refuses, finds out, and makes of failures that say nothing."""

from __future__ import annotations

import errno
import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.fsspec_store import FsspecLogStore
from lakelog.logstores import (
    CommitOutcomeUnknownError,
    LogStoreConfError,
    Scope,
    UnsafeLogStoreError,
    log_store_for,
)
from support.fsspec_files import HarmedFileSystem, SteppedFileSystem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCOPE = "spark.lakelog.fsspec.exclusiveCreate"
PROCESS = {SCOPE: "process"}
CLUSTER = {SCOPE: "cluster"}


@pytest.fixture
def harmed() -> Iterator[type[HarmedFileSystem]]:
    yield HarmedFileSystem
    for plan in (HarmedFileSystem.before, HarmedFileSystem.after, HarmedFileSystem.reading):
        plan.clear()
    HarmedFileSystem.torn.clear()


@pytest.fixture
def path() -> str:
    return f"harmed://{uuid.uuid4().hex}/_delta_log/0.json"


def test_it_is_chosen_by_its_name_for_any_scheme() -> None:
    name = "lakelog.contrib.fsspec_store.FsspecLogStore"
    assert type(log_store_for("memory://t", {"spark.delta.logStore.class": name})) is FsspecLogStore


@pytest.mark.parametrize("conf", [{}, {SCOPE: "none"}])
def test_an_undeclared_store_writes_no_commit_and_says_how_to_declare(
    conf: dict[str, str], path: str
) -> None:
    store = FsspecLogStore(conf)
    assert store.capabilities.exclusive_create == Scope.NONE
    with pytest.raises(UnsafeLogStoreError, match=f"{SCOPE}=process or host"):
        store.write(path, ["x"])
    with pytest.raises(FileNotFoundError):
        list(store.read(path))


def test_a_single_writer_may_go_on_undeclared(path: str) -> None:
    store = FsspecLogStore({"spark.lakelog.unsafe.singleWriter": "true"})
    store.write(path, ["x"])
    assert list(store.read(path)) == ["x"]
    with pytest.raises(FileExistsError):
        store.write(path, ["y"])


@pytest.mark.parametrize("protocol", ["file", "memory", "lying"])
def test_a_declaration_that_the_file_system_contradicts_is_refused(
    protocol: str, tmp_path: Path
) -> None:
    store = FsspecLogStore(CLUSTER)
    folder = f"{protocol}://{tmp_path}/t"
    store.create_folder(folder)
    with pytest.raises(UnsafeLogStoreError, match=f"cluster, but .* shows otherwise.*{SCOPE}=host"):
        store.write(f"{folder}/0.json", ["x"])
    assert list(store.list_from(f"{folder}/")) == [], "neither a commit nor a probe is left"


@pytest.mark.parametrize(
    "conf",
    [{SCOPE: "process"}, {SCOPE: "host"}, {"spark.lakelog.unsafe.singleWriter": "true"}],
    ids=["process", "host", "single writer"],
)
def test_a_commit_is_not_overwritten_where_the_file_system_ignores_the_mode(
    conf: dict[str, str], tmp_path: Path
) -> None:
    store = FsspecLogStore(conf)
    path = f"lying://{tmp_path}/0.json"
    store.write(path, ["first"])
    with pytest.raises(FileExistsError, match="another writer"):
        store.write(path, ["second"])
    assert list(store.read(path)) == ["first"]


def test_a_probe_tells_what_creates_and_moves_do(tmp_path: Path) -> None:
    for protocol, failure, overwrites in (
        ("lying", "a create of a taken name was not refused", None),
        ("memory", "checks whether the name is free, then writes", None),
        ("linked", None, True),
    ):
        store = FsspecLogStore(CLUSTER)
        folder = f"{protocol}://{tmp_path}/p"
        store.create_folder(folder)
        found = store.probe(folder)
        assert (failure or "") in (found.failure or ""), protocol
        assert (found.failure is None, found.move_overwrites) == (failure is None, overwrites)


@pytest.mark.parametrize(
    "conflict",
    [
        FileExistsError("taken"),
        OSError(errno.EINVAL, "At least one of the pre-conditions you specified did not hold"),
    ],
)
def test_both_spellings_of_a_conflict_are_known(
    conflict: Exception, harmed: type[HarmedFileSystem], path: str
) -> None:
    harmed.before.append(conflict)
    with pytest.raises(FileExistsError, match="another writer"):
        FsspecLogStore(PROCESS).write(path, ["x"])


def test_another_einval_is_no_conflict(harmed: type[HarmedFileSystem], path: str) -> None:
    harmed.before.append(OSError(errno.EINVAL, "Invalid argument"))
    with pytest.raises(CommitOutcomeUnknownError):
        FsspecLogStore(PROCESS).write(path, ["x"])


def test_a_failure_after_the_write_is_settled_by_the_content(
    harmed: type[HarmedFileSystem], path: str
) -> None:
    harmed.after.append(ConnectionResetError("the reply was lost"))
    FsspecLogStore(PROCESS).write(path, ['{"commitInfo":{"txnId":"1"}}'])
    assert list(FsspecLogStore().read(path)) == ['{"commitInfo":{"txnId":"1"}}']


def test_a_failure_beside_another_writers_file_is_a_conflict(
    harmed: type[HarmedFileSystem], path: str
) -> None:
    whole = {"spark.lakelog.fsspec.wholeFiles": "true"}
    FsspecLogStore(PROCESS).write(path, ["theirs"])
    harmed.before.append(TimeoutError("no answer"))
    with pytest.raises(FileExistsError, match="another writer"):
        FsspecLogStore({**PROCESS, **whole}).write(path, ["ours"])


def test_a_failure_that_left_nothing_proves_nothing(
    harmed: type[HarmedFileSystem], path: str
) -> None:
    harmed.before.append(TimeoutError("no answer"))
    with pytest.raises(CommitOutcomeUnknownError, match="the file is absent"):
        FsspecLogStore(PROCESS).write(path, ["x"])


def test_a_file_that_cannot_be_read_back_leaves_the_outcome_unknown(
    harmed: type[HarmedFileSystem], path: str
) -> None:
    harmed.after.append(ConnectionResetError("lost"))
    harmed.reading.extend([TimeoutError("no answer")] * 3)
    with pytest.raises(CommitOutcomeUnknownError, match="can't be read"):
        FsspecLogStore(PROCESS).write(path, ["x"])


def test_what_spoils_a_write_may_spoil_the_first_look_at_it(
    harmed: type[HarmedFileSystem], path: str
) -> None:
    harmed.after.append(ConnectionResetError("lost"))
    harmed.reading.extend([TimeoutError("no answer")] * 2)
    FsspecLogStore(PROCESS).write(path, ["x"])
    assert list(FsspecLogStore().read(path)) == ["x"]


def test_the_beginning_of_our_own_bytes_is_no_conflict(
    harmed: type[HarmedFileSystem], path: str
) -> None:
    harmed.torn.append(6)
    with pytest.raises(CommitOutcomeUnknownError, match="the first 6 of 13 bytes"):
        FsspecLogStore(PROCESS).write(path, ["first", "second"])


def test_a_refusal_for_good_is_passed_on(harmed: type[HarmedFileSystem], path: str) -> None:
    harmed.before.append(PermissionError("read only"))
    with pytest.raises(PermissionError, match="read only"):
        FsspecLogStore(PROCESS).write(path, ["x"])


def test_an_upload_that_ends_halfway_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "1.checkpoint.parquet").write_bytes(b"old")
    SteppedFileSystem.torn.append(2)
    with pytest.raises(InterruptedError):
        _stage(f"stepped://{tmp_path}/1.checkpoint.parquet", b"the new one")
    assert _contents(tmp_path) == {"1.checkpoint.parquet": b"old"}


@pytest.mark.parametrize("replacing", [True, False])
def test_a_staged_file_replaces_also_where_a_move_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replacing: bool
) -> None:
    monkeypatch.setattr(SteppedFileSystem, "moves_replace", replacing)
    for body in (b"old", b"the new one"):
        _stage(f"stepped://{tmp_path}/1.checkpoint.parquet", body)
        assert _contents(tmp_path) == {"1.checkpoint.parquet": body}


def test_a_move_that_nobody_can_look_at_is_not_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"stepped://{tmp_path}/1.checkpoint.parquet"
    _stage(path, b"old")
    monkeypatch.setattr(SteppedFileSystem, "moves_replace", False)
    monkeypatch.setattr(SteppedFileSystem, "answers", False)
    with pytest.raises(ConnectionResetError):
        _stage(path, b"the new one")
    assert _contents(tmp_path)["1.checkpoint.parquet"] == b"old"


def _stage(path: str, body: bytes) -> None:
    with (
        FsspecLogStore(PROCESS).staged(path) as (filesystem, draft),
        filesystem.open_output_stream(draft) as stream,
    ):
        stream.write(body)


def _contents(folder: Path) -> dict[str, bytes]:
    return {entry.name: entry.read_bytes() for entry in folder.iterdir()}


def test_options_reach_the_file_system_and_wrong_ones_are_reported(tmp_path: Path) -> None:
    option = "spark.lakelog.fsspec.options."
    conf = {**PROCESS, option + "path": str(tmp_path), option + "target_protocol": "file"}
    store = FsspecLogStore(conf)
    store.write("dir://0.json", ["x"])
    assert (tmp_path / "0.json").read_bytes() == b"x\n"
    with pytest.raises(LogStoreConfError, match="no file system 'nosuch'"):
        list(FsspecLogStore(conf).read("nosuch://x/0.json"))
    with pytest.raises(LogStoreConfError, match="its package is not installed"):
        list(FsspecLogStore().read("adl://x/0.json"))


@pytest.mark.parametrize(
    ("key", "value"), [(SCOPE, "galaxy"), ("spark.lakelog.fsspec.wholeFiles", "yes")]
)
def test_a_wrong_declaration_is_refused(key: str, value: str) -> None:
    with pytest.raises(LogStoreConfError, match=f"{key} must be .* but it is '{value}'"):
        FsspecLogStore({key: value})
