"""Whatever ends a write, and wherever: the log never names a file that is not there."""

from __future__ import annotations

import ast
import logging
import shutil
import ssl
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, delete_rows, update_rows, write_arrow
from lakelog.core.actions import AddFile
from lakelog.core.errors import ConcurrentAppendException, PostCommitError
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.logstores import CommitOutcomeUnknownError, LocalLogStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


REPO = Path(__file__).parents[4]
ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
CHANGES: dict[str, Callable[[str], object]] = {
    "append": lambda uri: write_arrow(uri, ROWS, mode="append"),
    "overwrite": lambda uri: write_arrow(uri, ROWS, mode="overwrite"),
    "delete": lambda uri: delete_rows(uri, "id = 1"),
    "update": lambda uri: update_rows(uri, {"v": pa.scalar("n")}, "id = 1"),
}


class ReadTimeout(OSError):  # noqa: N818  # the name that `requests` gives it
    pass


class ChunkedEncodingError(OSError):
    """`requests` has one of this name too, which is no `ConnectionError`."""


ERRORS: list[type[BaseException]] = [
    RuntimeError,
    MemoryError,
    OSError,
    TimeoutError,
    ConnectionResetError,
    ReadTimeout,
    ChunkedEncodingError,
    ssl.SSLEOFError,
    LookupError,
    KeyboardInterrupt,
]


FAILURES = [
    (change, error)
    for change in CHANGES
    for error in ERRORS
    if change == "append" or error in (RuntimeError, OSError, KeyboardInterrupt)
]
"""What an error means does not depend on what is written: each of a kind, and all for one."""


@pytest.fixture
def uri(tmp_path: Path, original: str) -> str:
    return str(shutil.copytree(original, tmp_path / "t"))


@pytest.fixture(scope="module", params=["true", "false"], ids=["vectors", "copies"])
def original(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> str:
    """The table that each test has a copy of."""
    uri = str(tmp_path_factory.mktemp("original") / "t")
    properties = {
        "delta.enableDeletionVectors": request.param,
        "delta.enableChangeDataFeed": "true",
    }
    write_arrow(uri, ROWS, properties=properties, mode="append")
    return uri


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.rglob("*") if p.suffix in (".parquet", ".bin")}


def write_of_version_1(
    monkeypatch: pytest.MonkeyPatch, instead: Callable[[Callable[[], None]], None]
) -> None:
    """Do something else where version 1 is written; it is given what writes it."""
    real = LocalLogStore.write

    def write(
        store: LocalLogStore, path: str, lines: Iterable[str], *, overwrite: bool = False
    ) -> None:
        text = list(lines)
        if path.endswith(f"/{1:020d}.json"):
            instead(lambda: real(store, path, text, overwrite=overwrite))
        else:
            real(store, path, text, overwrite=overwrite)

    monkeypatch.setattr(LocalLogStore, "write", write)


@pytest.mark.parametrize(("change", "error"), FAILURES)
def test_a_store_that_fails_behind_the_landing_takes_no_file_away(
    uri: str, monkeypatch: pytest.MonkeyPatch, change: str, error: type[BaseException]
) -> None:
    def landing(write: Callable[[], None]) -> None:
        write()
        raise error("injected")

    with monkeypatch.context() as patched:
        write_of_version_1(patched, landing)
        if issubclass(error, OSError):
            CHANGES[change](uri)
        else:
            expected = PostCommitError if issubclass(error, Exception) else error
            with pytest.raises(expected, match="injected") as caught:
                CHANGES[change](uri)
            assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, error)
    log = DeltaLog.for_table(uri)
    assert log.snapshot.version == 1
    assert log.snapshot.to_arrow().num_rows == {"append": 6, "delete": 2}.get(change, 3)


@pytest.mark.parametrize(("change", "error"), FAILURES)
def test_a_write_that_may_land_yet_keeps_its_files(
    uri: str, monkeypatch: pytest.MonkeyPatch, change: str, error: type[BaseException]
) -> None:
    late: list[Callable[[], None]] = []

    def on_its_way(write: Callable[[], None]) -> None:
        late.append(write)
        raise error("injected")

    with monkeypatch.context() as patched:
        write_of_version_1(patched, on_its_way)
        expected = CommitOutcomeUnknownError if issubclass(error, Exception) else error
        refused = error is OSError  # by contract nothing was made, and nothing is there
        with pytest.raises(error if refused else expected):
            CHANGES[change](uri)
    if refused:
        return
    late[0]()
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == (
        {"append": 6, "delete": 2}.get(change, 3)
    )


@pytest.mark.parametrize("first", ["commit", "commit_large"])
@pytest.mark.parametrize("second", ["commit", "commit_large"])
@pytest.mark.parametrize("rival", [False, True])
@pytest.mark.parametrize("error", [OSError, PermissionError, ConnectionRefusedError])
def test_a_refused_second_commit_of_a_transaction_does_not_end_the_doubt_of_the_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    first: str,
    second: str,
    rival: bool,
    error: type[OSError],
) -> None:
    uri, real = str(tmp_path / "t"), LocalLogStore.write
    write_arrow(uri, ROWS, mode="append")
    txn = DeltaLog.for_table(uri).start_transaction()
    assert txn.snapshot is not None
    again = [replace(add, path=f"{add.path}?") for add in txn.snapshot.files()]
    if rival and "commit_large" not in (first, second):
        write_arrow(
            uri, ROWS, mode="append"
        )  # the doubt is about version 2, and the second begins with 1 again
    late: list[Callable[[], None]] = []

    def write(
        store: LocalLogStore, path: str, lines: Iterable[str], *, overwrite: bool = False
    ) -> None:
        text = list(lines)
        if Path(path).exists():
            raise FileExistsError(path)
        if late:
            raise error("refused")
        late.append(lambda: real(store, path, text, overwrite=overwrite))
        raise TimeoutError

    with monkeypatch.context() as patched:
        patched.setattr(LocalLogStore, "write", write)
        for way in (first, second):
            with pytest.raises(CommitOutcomeUnknownError):
                getattr(txn, way)(again, Operation(name="WRITE"))
            assert txn.may_be_committed
    late[0]()
    assert txn.may_be_committed


@pytest.mark.parametrize("error", [e for e in ERRORS if issubclass(e, Exception)])
def test_a_version_that_another_writer_has_proves_the_refusal(
    uri: str, tmp_path: Path, error: type[Exception]
) -> None:
    def beaten(_: Callable[[], None]) -> None:
        patched.undo()
        write_arrow(uri, ROWS.slice(0, 1), mode="append")
        written.update(files(tmp_path))
        raise error("injected")

    written: set[str] = set()
    patched = pytest.MonkeyPatch()
    write_of_version_1(patched, beaten)
    with pytest.raises((error, ConcurrentAppendException)):
        write_arrow(uri, ROWS, mode="overwrite")
    # The rival's file and the table's own are left, and ours is not.
    assert len(written) == 3
    assert len(files(tmp_path)) == 2
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 4


def test_a_logging_handler_that_raises_costs_no_file(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Raising(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "Committed delta" in record.getMessage():
                raise RuntimeError("no room for the log")

    logger, handler = logging.getLogger("lakelog"), Raising()
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.INFO, "lakelog"), pytest.raises(PostCommitError, match="room"):
            delete_rows(uri, "id = 1")
    finally:
        logger.removeHandler(handler)
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 2


def test_no_memory_left_when_the_commit_is_taken_over_costs_nothing(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(DeltaLog, "after_commit", no_memory)
        assert delete_rows(uri, "id = 1").version == 1
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 2


def test_lines_that_can_not_be_made_are_a_refusal(
    uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: AddFile) -> str:
        raise RuntimeError("no such line")

    before = files(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(AddFile, "to_json", broken)
        with pytest.raises(RuntimeError, match="no such line"):
            write_arrow(uri, ROWS, mode="append")
    assert files(tmp_path) == before
    assert DeltaLog.for_table(uri).snapshot.version == 0


MAY_DELETE = {
    "core/lakelog/core/transaction/attempt_files.py": "the owner",
    "core/lakelog/core/portable/hive_writer.py": "files of a task that failed, not yet reported",
    "core/lakelog/core/data/change_files.py": "hands the owner's word on",
    "core/lakelog/core/data/file_writer.py": "hands the owner's word on; files never closed",
    "core/lakelog/core/dml/rewrite.py": "hands the owner's word on",
    "core/lakelog/core/dml/file_rewrite.py": "hands the owner's word on",
    "core/lakelog/core/maintain/optimize/committing.py": "hands the owner's word on",
    "core/lakelog/core/maintain/optimize/bin_rewriting.py": "hands the owner's word on",
    "core/lakelog/core/maintain/optimize/rewrite_tasks.py": "files of a task that failed",
    "core/lakelog/core/dml/file_copies.py": "copies of a task that failed",
    "core/lakelog/core/maintain/vacuum/retention.py": "the file by which it asks for the time",
    "core/lakelog/core/deletion_vectors/vector_writer.py": "on the owner's word",
    "spark/lakelog/spark/writing/by_spark.py": "its own job's, before anybody hears of them",
}


def test_no_one_but_the_owner_deletes_files_of_an_attempt() -> None:
    """Whoever deletes them, or tells a writer to, is on the list, with the reason why he may."""
    found = set()
    for root in ("core", "spark", "cli"):
        for path in (REPO / root).rglob("*.py"):
            calls = (n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call))
            names = {ast.unparse(call.func).rpartition(".")[2] for call in calls}
            if names & {"abort", "delete_made", "drop_folder"}:
                found.add(str(path.relative_to(REPO)))
    assert found == MAY_DELETE.keys()


@pytest.mark.parametrize("ends", ["unsaid", "empty", "commit", "commit_large"])
def test_a_block_that_commits_nothing_leaves_no_file(tmp_path: Path, ends: str) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    txn = DeltaLog.for_table(uri).start_transaction()
    txn.reads.read_whole_table()
    before = files(tmp_path)
    (tmp_path / "t" / "new one.parquet").touch()
    add = AddFile(
        path="new%20one.parquet",
        partition_values={},
        size=1,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )
    with AttemptFiles(txn) as attempt:
        attempt.add([add])
        if ends == "empty":
            assert txn.commit_if_needed([], Operation(name="WRITE")) is None
        elif ends != "unsaid":
            getattr(txn, ends)([add], Operation(name="WRITE"))
    left = {each for each in files(tmp_path) - before if "checkpoint" not in each}
    assert left == ({"new one.parquet"} if "commit" in ends else set())
