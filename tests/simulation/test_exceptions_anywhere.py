"""An exception at any line between the first byte written and the return costs no row.

Each run changes a small table and raises once: before one of the lines that lakelog runs from the
moment at which the first byte is written. Then the log is read: no version names a file that is not
there, what left `commit` said the truth about the commit, and a change that is known to have failed
left no file behind.

Every line is tried with at least one of the exceptions; the lines that decide about files and
versions in every command, and so with all of them.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    convert_to_delta,
    create_table,
    delete_rows,
    update_rows,
    write_arrow,
)
from lakelog.core.deletion_vectors import vector_path
from lakelog.core.errors import PostCommitError
from lakelog.core.executor_writer import PartitionedWriter
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.transaction import OptimisticTransaction
from lakelog.core.vector_writer import VectorWriter
from lakelog.logstores import CommitOutcomeUnknownError
from support.line_injector import Line, LineInjector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
SCHEMA = StructType((StructField("id", PrimitiveType("long")),))


class AnyError(Exception):
    """What nobody in lakelog knows of."""


ERRORS: list[type[BaseException]] = [
    AnyError,
    OSError,
    TimeoutError,
    KeyboardInterrupt,
    MemoryError,
]
DECIDING = {
    "attempt_files.py",
    "commit_large.py",
    "commit_loop.py",
    "commit_write.py",
    "landing.py",
    "local.py",
    "post_commit.py",
    "row_operations.py",
    "transaction.py",
    "write.py",
}


@dataclass(frozen=True)
class Command:
    """A change, and what it is made of."""

    run: Callable[[str], object]
    vectors: str = "false"
    starts_from: str = "table"


COMMANDS = {
    "append": Command(lambda uri: write_arrow(uri, ROWS)),
    "overwrite": Command(lambda uri: write_arrow(uri, ROWS, mode="overwrite")),
    "delete": Command(lambda uri: delete_rows(uri, "id = 1")),
    "update": Command(lambda uri: update_rows(uri, {"v": pa.scalar("n")}, "id = 1")),
    "delete by vector": Command(lambda uri: delete_rows(uri, "id = 1"), "true"),
    "update by vector": Command(
        lambda uri: update_rows(uri, {"v": pa.scalar("n")}, "id = 1"), "true"
    ),
    "convert": Command(convert_to_delta, starts_from="files"),
    "create": Command(lambda uri: create_table(uri, SCHEMA), starts_from="nothing"),
}


@dataclass
class Stage:
    """A folder in which a command is run again and again."""

    folder: Path
    command: Command
    injector: LineInjector | None = None
    left: list[BaseException | None] = field(default_factory=list)
    """What left each call of a commit; None for a version that was returned."""
    transactions: list[OptimisticTransaction] = field(default_factory=list)

    @property
    def table(self) -> Path:
        return self.folder / "table"

    def prepare(self) -> None:
        origin = self.folder / "origin"
        if self.command.starts_from == "table":
            properties = {
                "delta.enableDeletionVectors": self.command.vectors,
                "delta.enableChangeDataFeed": "true",
            }
            write_arrow(str(origin), ROWS, properties=properties)
        else:
            origin.mkdir(parents=True)
            if self.command.starts_from == "files":
                pq.write_table(ROWS, origin / "a.parquet")

    def play(self, injector: LineInjector) -> BaseException | None:
        """Run the command on a fresh table; give what left it."""
        shutil.rmtree(self.table, ignore_errors=True)
        shutil.copytree(self.folder / "origin", self.table)
        self.injector, self.left, self.transactions = injector, [], []
        try:
            self.command.run(str(self.table))
        except BaseException as exc:
            return exc
        finally:
            injector.disarm()
            self.injector = None
        return None

    def files(self) -> set[str]:
        log = self.table / "_delta_log"
        return {
            str(p.relative_to(self.table))
            for p in self.table.rglob("*")
            if p.is_file() and log not in p.parents
        }

    def versions(self) -> list[Path]:
        return sorted((self.table / "_delta_log").glob("0*.json"))

    def named(self) -> set[str]:
        """The files that the versions name."""
        names = set()
        for path in self.versions():
            for line in path.read_text().splitlines():
                action: dict[str, Any] = json.loads(line)
                for kind in ("add", "cdc"):
                    if kind in action:
                        names.add(action[kind]["path"])
                        names |= self._vector(action[kind].get("deletionVector"))
        return names

    def _vector(self, found: dict[str, Any] | None) -> set[str]:
        if found is None:
            return set()
        path = vector_path(found, str(self.table))
        return set() if path is None else {str(Path(path).relative_to(self.table))}


_playing: list[Stage] = []


def _arming(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with the injector of the stage that plays armed from here on."""

    @functools.wraps(method)
    def armed(*args: Any, **settings: Any) -> Any:
        if _playing and _playing[0].injector is not None:
            _playing[0].injector.arm()
        return method(*args, **settings)

    return armed


def _noting(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method of a transaction, with what leaves it noted in the stage that plays."""

    @functools.wraps(method)
    def noted(txn: OptimisticTransaction, *args: Any, **settings: Any) -> Any:
        if not _playing:
            return method(txn, *args, **settings)
        _playing[0].transactions.append(txn)
        try:
            result = method(txn, *args, **settings)
        except BaseException as exc:
            _playing[0].left.append(exc)
            raise
        _playing[0].left.append(None)
        return result

    return noted


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Stage]]:
    """A stage for each command, watched."""
    found = {name: Stage(tmp_path_factory.mktemp("stage"), COMMANDS[name]) for name in COMMANDS}
    for stage in found.values():
        stage.prepare()
    patched = pytest.MonkeyPatch()
    for owner, name in (
        (PartitionedWriter, "_open"),
        (VectorWriter, "_end"),
        (OptimisticTransaction, "_guarded"),
    ):
        patched.setattr(owner, name, _arming(getattr(owner, name)))
    for name in ("commit", "commit_if_needed", "commit_large"):
        patched.setattr(OptimisticTransaction, name, _noting(getattr(OptimisticTransaction, name)))
    patched.setattr(os, "fsync", lambda _: None)  # of 3,000 runs
    before = logging.root.manager.disable
    logging.disable()
    yield found
    logging.disable(before)
    patched.undo()


def _lines_of(stage: Stage) -> list[Line]:
    """The lines that a run goes through, each once, those of the first run left out."""
    for _ in range(2):
        injector = LineInjector()
        _playing[:] = [stage]
        assert stage.play(injector) is None
    return [line for line in injector.seen if line.time == 0]


@pytest.fixture(scope="module")
def plan(stages: dict[str, Stage]) -> dict[str, list[tuple[Line, type[BaseException]]]]:
    """For each command the lines to raise at, and what."""
    lines = {name: _lines_of(stage) for name, stage in stages.items()}
    commands: dict[Line, list[str]] = {}
    for name, found in lines.items():
        for line in found:
            commands.setdefault(line, []).append(name)
    planned: dict[str, list[tuple[Line, type[BaseException]]]] = {name: [] for name in lines}
    for at, (line, names) in enumerate(commands.items()):
        decides = Path(line.file).name in DECIDING
        for turn, name in enumerate(names):
            if decides or turn == at % len(names):
                planned[name].append((line, ERRORS[(at + turn) % len(ERRORS)]))
        if decides:
            # With every exception, however few of the commands come here.
            for turn in range(len(names), len(ERRORS)):
                error = ERRORS[(at + turn) % len(ERRORS)]
                planned[names[turn % len(names)]].append((line, error))
    return planned


@pytest.mark.parametrize("name", COMMANDS)
def test_no_version_names_a_missing_file_and_nothing_is_deleted_in_doubt(
    name: str,
    stages: dict[str, Stage],
    plan: dict[str, list[tuple[Line, type[BaseException]]]],
) -> None:
    stage = stages[name]
    _playing[:] = [stage]
    wrong, missed = [], []
    for line, error in plan[name]:
        injector = LineInjector(line, error("injected"))
        left = stage.play(injector)
        complaint = _complaint(stage, left)
        if complaint:
            wrong.append(f"{error.__name__} at {line}: {complaint}")
        elif not injector.hit:
            missed.append(line)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(plan[name])}:", *wrong[:20]])
    assert len(missed) < len(plan[name]) / 50, missed


def _complaint(stage: Stage, left: BaseException | None) -> str | None:
    """What is wrong after a run; None where nothing is."""
    missing = stage.named() - stage.files()
    if missing:
        return f"the log names {sorted(missing)}, which is gone; {left!r}"
    origin = stage.folder / "origin"
    before = {str(p.relative_to(origin)) for p in origin.rglob("*") if p.is_file()}
    landed = len(stage.versions()) > len(list((origin / "_delta_log").glob("0*.json")))
    if before - stage.files() - {p for p in before if p.startswith("_delta_log")}:
        return "a file of before is gone"
    if stage.left:
        complaint = _complaint_of_commit(stage.left[-1], landed)
        if complaint:
            return complaint
    in_doubt = any(txn.may_be_committed for txn in stage.transactions)
    if not landed and not in_doubt and left is not None:
        kept = {p for p in stage.files() if p not in before}
        if kept:
            return f"the commit is known to have failed, and its files stay: {sorted(kept)}"
    return None


def _complaint_of_commit(left: BaseException | None, landed: bool) -> str | None:
    """Whether what left `commit` tells what became of it."""
    if left is None:
        return None if landed else "a version was returned, and is not there"
    if isinstance(left, PostCommitError):
        return None if landed else f"{left!r}, and no version is there"
    if isinstance(left, CommitOutcomeUnknownError) or not isinstance(left, Exception):
        return None
    return f"{left!r} left commit, and the version is there" if landed else None


def test_the_lines_that_decide_are_tried_with_every_exception(
    plan: dict[str, list[tuple[Line, type[BaseException]]]],
) -> None:
    tried: dict[Line, set[type[BaseException]]] = {}
    for planned in plan.values():
        for line, error in planned:
            tried.setdefault(line, set()).add(error)
    deciding = {line: errors for line, errors in tried.items() if Path(line.file).name in DECIDING}
    assert {Path(line.file).name for line in deciding} == DECIDING
    assert all(errors == set(ERRORS) for errors in deciding.values())
