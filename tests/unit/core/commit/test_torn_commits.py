"""A version that holds a part of a commit is neither that commit nor a refusal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile
from lakelog.core.errors import CommitOutcomeUnknownError, CorruptCommitError, TornCommitError
from lakelog.logstores import LocalLogStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROWS = pa.table({"id": [1, 2, 3]})
FILES = [
    AddFile(
        path=f"f{n}",
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        tags={"of": "café"},
    )
    for n in range(3)
]


def _done() -> None:
    pass


def _raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


REPLIES: dict[str, Callable[[], None]] = {
    "done": _done,
    "exists": _raising(FileExistsError("x")),
    "refused": _raising(OSError("no such thing")),
    "silent": _raising(TimeoutError()),
    "unknown": _raising(CommitOutcomeUnknownError("x", "no reply")),
    "broken": _raising(LookupError("a fault of the store's own")),
}
CUTS = ["one line", "two lines", "all but one", "within the first", "within the last", "a letter"]


def _cut(lines: list[str], where: str) -> bytes:
    whole = "".join(f"{line}\n" for line in lines).encode()
    ends = [n + 1 for n, byte in enumerate(whole) if byte == ord("\n")]
    at = {
        "one line": ends[0],
        "two lines": ends[1],
        "all but one": ends[-2],
        "within the first": ends[0] - 20,
        "within the last": ends[-1] - 5,
        "a letter": whole.find("é".encode()) + 1,
    }
    return whole[: at[where]]


def _torn_writes(
    monkeypatch: pytest.MonkeyPatch, cut: str, reply: str, *, takes_all: bool = True
) -> None:
    """Every new commit is torn at this place, and then the store says this."""

    def write(
        _: LocalLogStore, path: str, lines: Iterable[str], *, overwrite: bool = False
    ) -> None:
        assert not overwrite
        if Path(path).exists():
            raise FileExistsError(path)
        taken = iter(lines)
        text = list(taken) if takes_all else [next(taken), next(taken)]
        Path(path).write_bytes(_cut(text, cut))
        REPLIES[reply]()

    monkeypatch.setattr(LocalLogStore, "write", write)


@pytest.mark.parametrize("way", ["commit", "commit_large"])
@pytest.mark.parametrize("reply", [each for each in REPLIES if each != "done"])
@pytest.mark.parametrize("cut", CUTS)
def test_a_part_of_the_commit_is_reported_as_torn_whatever_the_store_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str, reply: str, way: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    txn = DeltaLog.for_table(uri).start_transaction()
    _torn_writes(monkeypatch, cut, reply)
    with pytest.raises(TornCommitError, match=r"version 1 is torn.*move it away") as caught:
        getattr(txn, way)(FILES, Operation(name="WRITE"))
    assert txn.may_be_committed
    assert txn._committer.txn_id in str(caught.value)
    assert [stats.outcome.value for stats in txn.attempts][-1:] == ["unknown"]
    with pytest.raises(CommitOutcomeUnknownError):  # and it does not become done by asking again
        getattr(txn, way)(FILES, Operation(name="WRITE"))


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("way", ["commit", "commit_large"])
def test_so_is_what_was_never_taken_whole_though_the_store_calls_it_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, reply: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    txn = DeltaLog.for_table(uri).start_transaction()
    _torn_writes(monkeypatch, "one line", reply, takes_all=False)
    with pytest.raises(TornCommitError, match="version 1 is torn"):
        getattr(txn, way)(FILES, Operation(name="WRITE"))
    assert txn.may_be_committed


@pytest.mark.parametrize("reply", REPLIES)
def test_a_file_with_nothing_of_anyone_keeps_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")

    def write(_: LocalLogStore, path: str, lines: Iterable[str], **__: object) -> None:
        next(iter(lines))
        Path(path).touch()
        REPLIES[reply]()

    before = {p.name for p in Path(uri).glob("*.parquet")}
    monkeypatch.setattr(LocalLogStore, "write", write)
    with pytest.raises((CommitOutcomeUnknownError, CorruptCommitError)):
        write_arrow(uri, ROWS, mode="append")
    assert len({p.name for p in Path(uri).glob("*.parquet")} - before) == 1


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\n\n"])
def test_lines_are_whole_however_the_store_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")

    def write(_: LocalLogStore, path: str, lines: Iterable[str], **__: object) -> None:
        Path(path).write_bytes(ends.join(lines).encode())
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(LocalLogStore, "write", write)
        write_arrow(uri, ROWS, mode="append")
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 6


@pytest.mark.parametrize("reply", REPLIES)
def test_a_store_that_begins_again_gets_no_shorter_large_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    uri, real = str(tmp_path / "t"), LocalLogStore.write
    write_arrow(uri, ROWS, mode="append")

    def write(store: LocalLogStore, path: str, lines: Iterable[str], **__: object) -> None:
        assert len(list(lines)) == 5
        real(store, path, list(lines))
        REPLIES[reply]()

    monkeypatch.setattr(LocalLogStore, "write", write)
    txn = DeltaLog.for_table(uri).start_transaction()
    with pytest.raises(CommitOutcomeUnknownError, match="once"):
        txn.commit_large(iter(FILES), Operation(name="WRITE"))
    assert not (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").exists()
