"""OPTIMIZE while others write: appends pass, and what touches its files does not."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import (
    DeltaConf,
    DeltaLog,
    SystemClock,
    delete_rows,
    optimize,
    read_arrow,
    retry_on_conflict,
    write_arrow,
)
from lakelog.core.alter import add_columns, set_properties
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentDeleteReadException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
)
from lakelog.core.schema import PrimitiveType, StructField
from lakelog.logstores import log_store_for
from support.faults import Crash, Fault, FaultyLogStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core import OptimizeProgress


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(*values: int) -> pa.Table:
    return pa.table({"id": list(values), "p": [value // 100 for value in values]})


def append(uri: str, *values: int) -> None:
    write_arrow(uri, rows(*values), mode="append", partition_by=["p"])


def ids(uri: str) -> list[int]:
    return sorted(read_arrow(uri)["id"].to_pylist())


def parquet_files(uri: str) -> set[str]:
    return {str(each.relative_to(uri)) for each in Path(uri).rglob("*.parquet")}


def named(uri: str) -> set[str]:
    """Every file that some version names."""
    log = DeltaLog.for_table(uri)
    versions = range(log.update().version + 1)
    return {add.path for each in versions for add in log.snapshot_at(each).files()}


def before_the_commit(action: Callable[[], object]) -> Callable[[OptimizeProgress], None]:
    """Something that happens once when all files are written."""
    left = [action]

    def tell(now: OptimizeProgress) -> None:
        if now.bins_done == now.bins and left:
            left.pop()()

    return tell


def test_rows_added_meanwhile_stay(uri: str) -> None:
    append(uri, 1)
    append(uri, 2)
    found = optimize(uri, progress=before_the_commit(lambda: append(uri, 3)))
    assert found.versions == (3,)
    assert ids(uri) == [1, 2, 3]
    assert DeltaLog.for_table(uri).update().num_files == 2


def test_a_change_of_other_files_is_no_conflict(uri: str) -> None:
    for each in (1, 2, 101):
        append(uri, each)
    found = optimize(uri, progress=before_the_commit(lambda: delete_rows(uri, "id = 101")))
    assert found.versions == (4,)
    assert ids(uri) == [1, 2]


@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_delete_from_a_file_that_is_rewritten_conflicts(uri: str, vectors: str) -> None:
    properties = {"delta.enableDeletionVectors": vectors}
    write_arrow(uri, rows(1, 5), mode="append", properties=properties)
    write_arrow(uri, rows(2), mode="append")
    with pytest.raises(ConcurrentDeleteReadException):
        optimize(uri, progress=before_the_commit(lambda: delete_rows(uri, "id = 1")))
    assert ids(uri) == [2, 5]
    assert parquet_files(uri) == named(uri)
    assert optimize(uri).versions
    assert ids(uri) == [2, 5]


def test_two_runs_at_once_are_one(uri: str) -> None:
    append(uri, 1)
    append(uri, 2)
    with pytest.raises(DeltaConcurrentModificationException):
        optimize(uri, progress=before_the_commit(lambda: optimize(uri)))
    assert ids(uri) == [1, 2]
    assert parquet_files(uri) == named(uri)


def test_files_that_went_between_two_batches_are_left_out(uri: str) -> None:
    for each in (1, 2, 101, 102, 103):
        append(uri, each)

    def tell(now: OptimizeProgress) -> None:
        if now.version is not None and now.bins_done == 1:
            delete_rows(uri, "id = 101")
            delete_rows(uri, "p = 0")

    found = optimize(uri, batch_size=1, progress=tell)
    assert len(found.versions) == 2
    assert ids(uri) == [102, 103]


def test_a_new_column_meanwhile_is_a_conflict(uri: str) -> None:
    append(uri, 1)
    append(uri, 2)
    new = [StructField("new", PrimitiveType("long"))]
    with pytest.raises(MetadataChangedException):
        optimize(uri, progress=before_the_commit(lambda: add_columns(uri, new)))
    assert parquet_files(uri) == named(uri)


def test_a_property_meanwhile_is_a_conflict(uri: str) -> None:
    append(uri, 1)
    append(uri, 2)
    change = {"delta.dataSkippingNumIndexedCols": "0"}
    with pytest.raises(MetadataChangedException):
        optimize(uri, progress=before_the_commit(lambda: set_properties(uri, change)))
    assert parquet_files(uri) == named(uri)


@pytest.mark.parametrize("fault", [each for each in Fault if each is not Fault.NONE])
def test_whatever_becomes_of_the_commit_no_row_is_lost(uri: str, fault: Fault) -> None:
    append(uri, 1)
    append(uri, 2)
    log = DeltaLog(
        uri, FaultyLogStore(log_store_for(uri, {}), fault), conf=DeltaConf(), clock=SystemClock()
    )
    crashed = False
    try:
        optimize(log)
    except Crash:
        crashed = True
    except (CommitOutcomeUnknownError, OSError):
        pass
    assert ids(uri) == [1, 2]
    assert named(uri) <= parquet_files(uri)
    if fault is Fault.OSERROR:
        assert named(uri) == parquet_files(uri)
    if not crashed:
        optimize(uri)
        assert DeltaLog.for_table(uri).update().num_files == 1
    assert ids(uri) == [1, 2]


def _appends(uri: str, first: int, count: int) -> None:
    for each in range(first, first + count):
        write_arrow(uri, rows(each), mode="append")


def _deletes(uri: str, values: list[int]) -> None:
    for each in values:
        retry_on_conflict(lambda each=each: delete_rows(uri, f"id = {each}"), attempts=100)  # type: ignore[misc]


def test_processes_that_append_delete_and_optimize_lose_nothing(uri: str) -> None:
    write_arrow(
        uri, rows(*range(10)), mode="append", properties={"delta.enableDeletionVectors": "true"}
    )
    context = multiprocessing.get_context("fork")
    jobs: list[Any] = [
        context.Process(target=_appends, args=(uri, 1000, 12)),
        context.Process(target=_appends, args=(uri, 2000, 12)),
        context.Process(target=_deletes, args=(uri, [1, 3, 5])),
    ]
    for each in jobs:
        each.start()
    done = 0
    while any(each.is_alive() for each in jobs):
        done += bool(retry_on_conflict(lambda: optimize(uri).versions, attempts=100))
    for each in jobs:
        each.join()
        assert each.exitcode == 0
    optimize(uri)
    assert ids(uri) == [0, 2, 4, 6, 7, 8, 9, *range(1000, 1012), *range(2000, 2012)]
    # One that came while others were rewritten, so that it looks older than what they became.
    assert DeltaLog.for_table(uri).update().num_files <= 2
    assert done


def _killed(uri: str, at: int) -> None:
    import os
    import signal

    left = [at]

    def tell(_: OptimizeProgress) -> None:
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)

    optimize(uri, batch_size=1, progress=tell)


@pytest.mark.parametrize("at", [2, 3, 4])
def test_a_killed_run_loses_nothing_and_the_next_one_does_the_rest(uri: str, at: int) -> None:
    for each in (1, 2, 101, 102):
        append(uri, each)
    process = multiprocessing.get_context("fork").Process(target=_killed, args=(uri, at))
    process.start()
    process.join()
    assert process.exitcode == -9
    assert ids(uri) == [1, 2, 101, 102]
    assert named(uri) <= parquet_files(uri)
    # Before the first commit, behind it, and when the second one is about to come.
    assert len(optimize(uri, batch_size=1).versions) == (2 if at == 2 else 1)
    assert ids(uri) == [1, 2, 101, 102]
    assert DeltaLog.for_table(uri).update().num_files == 2
