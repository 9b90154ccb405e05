"""A checksum that follows from the one before and a commit's actions is what a count would give."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, create_table
from lakelog.core.actions import AddFile, RemoveFile
from lakelog.core.actions.objects import DeletionVectorDescriptor
from lakelog.core.actions.operation import Operation
from lakelog.core.errors import DeltaAnalysisError, DeltaConcurrentModificationException
from lakelog.core.hooks import checksum as hook
from lakelog.core.hooks.checksum import file_change
from lakelog.core.state.checksums import checksum_of, read_checksum
from lakelog.logstores import LocalLogStore
from support.examples import examples
from support.log_histories import NOW
from support.manual_clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lakelog.core.actions import Action
    from lakelog.core.transaction.optimistic import OptimisticTransaction

NEW = "p={}/part-00000-11111111-2222-4333-8444-{:012d}-c000.zstd.parquet"


def new_file(number: int, size: int = 7, p: int = 0) -> AddFile:
    return AddFile(
        path=NEW.format(p, number),
        partition_values={"p": str(p)},
        size=size,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":100,"tightBounds":false}',
    )


def with_vector(file: AddFile, number: int, cardinality: int) -> AddFile:
    vector = DeletionVectorDescriptor(
        storage_type="u",
        path_or_inline_dv=f"ab^-aqEH.-t@S}}K{{vb[*k{number % 10}",
        offset=number,
        size_in_bytes=40,
        cardinality=cardinality,
    )
    return replace(file, deletion_vector=vector, data_change=True)


def opened(table: str) -> DeltaLog:
    return DeltaLog.for_table(table, {}, ManualClock(NOW))


def made(folder: Path) -> str:
    create_table(
        str(folder),
        {"a": "long", "p": "string"},
        partition_by=["p"],
        properties={"delta.enableDeletionVectors": "true", "delta.checkpointInterval": "1000"},
    )
    return str(folder)


def step(
    txn: OptimisticTransaction, kind: str, number: int, value: int
) -> tuple[Sequence[Action], str]:
    """Actions of one commit: those of our commands, and some that no command makes."""
    fresh = new_file(number, value, value % 2)
    if kind == "append what is there":
        assert txn.snapshot is not None
        return [replace(f, data_change=True) for f in txn.snapshot.files()[:value]], "WRITE"
    txn.changes.mark_written()
    if kind == "append":
        return [fresh], "WRITE"
    if kind == "dynamic overwrite":
        return [
            fresh,
            *(f.remove(NOW) for f in txn.reads.files_in_same_partitions([fresh])),
        ], "WRITE"
    live = txn.filter_files("p = '0'")
    some = live[: value % 3 + 1]
    match kind:
        case "append after a read":
            return [fresh], "WRITE"
        case "update":
            return [fresh, *(f.remove(NOW) for f in some)], "UPDATE"
        case "delete by vectors":
            marked = [with_vector(f, number, value) for f in some]
            return [*(f.remove(NOW) for f in some), *marked], "DELETE"
        case "optimize":
            removes = [f.remove(NOW, data_change=False) for f in some]
            return [replace(fresh, data_change=False), *removes], "OPTIMIZE"
        case "describe again":
            return [replace(f, size=f.size + value) for f in some], "COMPUTE STATS"
        case "add again":
            return [replace(f, data_change=True) for f in some], "WRITE"
        case "remove what is not there":
            return [new_file(number + 500).remove(NOW)], "DELETE"
        case "remove with another size":
            return [replace(f.remove(NOW), size=999) for f in some], "DELETE"
        case _:
            gone = [RemoveFile(path=f.path, deletion_timestamp=NOW) for f in some]
            return gone, "DELETE"


KINDS = (
    "append",
    "append after a read",
    "dynamic overwrite",
    "update",
    "delete by vectors",
    "optimize",
    "describe again",
    "add again",
    "append what is there",
    "remove what is not there",
    "remove with another size",
    "remove without a word",
)


def append(log: DeltaLog, *files: AddFile) -> int:
    """Commit files as one does who has just written them."""
    txn = log.start_transaction()
    txn.changes.mark_written()
    return txn.commit(files, Operation("WRITE"))


HISTORY = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(1, 9), st.sampled_from(("", *KINDS))), max_size=10
)


@settings(max_examples=examples(40))
@example(
    [
        ("append", 1, "append"),
        ("append what is there", 1, "delete by vectors"),
        ("dynamic overwrite", 2, ""),
    ]
)
@given(HISTORY)
def test_every_checksum_is_what_a_reader_counts(tmp_path_factory, history) -> None:
    table = made(tmp_path_factory.mktemp("t"))
    writer, other = opened(table), opened(table)
    number = 0
    for kind, value, meanwhile in history:
        number += 2
        txn = writer.start_transaction()
        actions, name = step(txn, kind, number, value)
        try:
            if meanwhile:
                between = other.start_transaction()
                theirs, named = step(between, meanwhile, number + 1, value + 1)
                between.commit(list(theirs), Operation(named))
            txn.commit(list(actions), Operation(name))
        except DeltaConcurrentModificationException:
            continue
        except DeltaAnalysisError as twice:
            # Whoever adds again, without a read, a file that another has put a vector on makes it
            # live twice, and one commit can't remove both.
            if "DELTA_DUPLICATE_ACTIONS_FOUND" not in str(twice):
                raise
    latest = opened(table).snapshot.version
    for version in range(1, latest + 1):
        said = read_checksum(LocalLogStore(), table, version)
        state = opened(table).snapshot_at(version).state
        counted = checksum_of(state, state.info.txn_id if state.info else None)
        # All commits are in memory, so nothing keeps a checksum from being computed.
        assert said == counted, version


@pytest.mark.parametrize("kind", KINDS[:7])
@pytest.mark.parametrize("meanwhile", [False, True])
def test_what_commands_commit_is_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, meanwhile: bool
) -> None:
    table = made(tmp_path / "t")
    writer = opened(table)
    append(writer, *(new_file(n) for n in range(5)))
    monkeypatch.setattr(hook, "checksum_of", lambda *_: pytest.fail("all files were counted"))
    txn = writer.start_transaction()
    actions, name = step(txn, kind, 10, 2)
    if meanwhile:
        append(opened(table), new_file(8, p=1))
    txn.commit(list(actions), Operation(name))
    latest = txn.delta_log.update().version
    assert latest == 2 + meanwhile
    assert read_checksum(LocalLogStore(), table, latest) is not None


def test_a_commit_that_names_a_file_which_a_winner_described_again_is_counted(
    tmp_path: Path,
) -> None:
    table = made(tmp_path / "t")
    writer, seen = opened(table), []
    writer.start_transaction().commit([new_file(1), new_file(2)], Operation("WRITE"))
    txn = writer.start_transaction()
    [first, _] = txn.filter_files()
    again = opened(table).start_transaction()
    again.commit([replace(first, size=70)], Operation("COMPUTE STATS"))
    txn.register_post_commit_hook(lambda committed: seen.append(file_change(committed)))
    # Snapshot isolation: what a winner adds is no conflict.
    txn.commit([first.remove(NOW, data_change=False)], Operation("OPTIMIZE"))
    assert seen == [None]
    said = read_checksum(LocalLogStore(), table, 3)
    assert said is not None
    assert (said.num_files, said.table_size_bytes) == (1, 7)


def test_a_vector_for_a_file_that_no_remove_names_is_counted(tmp_path: Path) -> None:
    """The file lives twice then, as no command of ours leaves it."""
    table = made(tmp_path / "t")
    log, seen = opened(table), []
    log.start_transaction().commit([new_file(1), new_file(2)], Operation("WRITE"))
    txn = log.start_transaction()
    first, _ = txn.filter_files()
    txn.register_post_commit_hook(lambda committed: seen.append(file_change(committed)))
    version = txn.commit([with_vector(first, 3, 5)], Operation("DELETE"))
    assert seen == [None]
    said = read_checksum(LocalLogStore(), table, version)
    assert said is not None
    assert said.num_files == opened(table).snapshot.num_files


@pytest.mark.parametrize("grouped", [False, True])
def test_files_that_are_committed_again_count_once(tmp_path: Path, grouped: bool) -> None:
    """As a job does that was not told whether its commit had landed."""
    table = made(tmp_path / "t")
    conf = {"spark.lakelog.commit.group": str(grouped).lower()}
    log = DeltaLog.for_table(table, conf, ManualClock(NOW))
    for _ in range(2):
        log.start_transaction().commit([new_file(1), new_file(2)], Operation("WRITE"))
    for _ in range(2):
        version = append(log, new_file(10 + log.snapshot.version))
        said = read_checksum(LocalLogStore(), table, version)
        assert said is not None
        assert said.num_files == version


def test_the_next_table_at_a_path_owes_nothing_to_the_one_that_was_there(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    kept = opened(table)
    for number in range(3):
        append(kept, new_file(number))
    shutil.rmtree(table)
    made(tmp_path / "t")
    for number in range(3):
        append(opened(table), new_file(10 + number, size=1000))
    version = append(kept, new_file(20))
    said = read_checksum(LocalLogStore(), table, version)
    assert said is not None
    assert (said.num_files, said.table_size_bytes) == (4, 3007)
