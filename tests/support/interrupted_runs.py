"""Commands that are run again and again on a small table, with an exception somewhere within."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import logging
import os
import shutil
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.deletion_vectors.stored_vectors import vector_path
from lakelog.core.deletion_vectors.vector_writer import VectorWriter
from lakelog.core.errors import PostCommitError
from lakelog.core.portable.hive_writer import PartitionedWriter
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.committer import Committer
from lakelog.core.transaction.optimistic import OptimisticTransaction
from lakelog.logstores import CommitOutcomeUnknownError
from lakelog.logstores.limits import seconds_left
from support.garbage import uncollected
from support.line_injector import Line, LineInjector

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa


class AnyError(Exception):
    """What nobody in lakelog knows of."""


ERRORS: list[type[BaseException]] = [
    AnyError,
    OSError,
    TimeoutError,
    KeyboardInterrupt,
    MemoryError,
]


@dataclass(frozen=True)
class Command:
    """A change, and what it is made of."""

    run: Callable[[str], object]
    vectors: str = "false"
    starts_from: str = "table"
    leaves_none: bool = True
    """Whether a run that is known to have failed takes its files with it; executors' files become
    known a moment after they are written."""


@dataclass
class Stage:
    """A folder in which a command is run again and again."""

    folder: Path
    command: Command
    roots: tuple[str, ...]
    """Folders of the code that is watched."""
    injector: LineInjector | None = None
    left: list[BaseException | None] = field(default_factory=list)
    """What left each call of a commit; None for a version that was returned."""
    transactions: list[OptimisticTransaction] = field(default_factory=list)

    @property
    def table(self) -> Path:
        """Where the command runs."""
        return self.folder / "table"

    def prepare(self, rows: pa.Table) -> None:
        """Make what the command starts from."""
        origin = self.folder / "origin"
        if self.command.starts_from in {"table", "two files"}:
            properties = {
                "delta.enableDeletionVectors": self.command.vectors,
                "delta.enableChangeDataFeed": "true",
            }
            write_arrow(str(origin), rows, properties=properties, mode="append")
            if self.command.starts_from == "two files":
                write_arrow(str(origin), rows, mode="append")
        else:
            origin.mkdir(parents=True)
            if self.command.starts_from == "files":
                import pyarrow.parquet as pq

                pq.write_table(rows, origin / "a.parquet")

    def play(self, injector: LineInjector) -> BaseException | None:
        """Run the command on a fresh table; give what left it."""
        shutil.rmtree(self.table, ignore_errors=True)
        shutil.copytree(self.folder / "origin", self.table)
        self.injector, self.left, self.transactions = injector, [], []
        return next(self._outcome(injector))

    def _outcome(self, injector: LineInjector) -> Iterator[BaseException | None]:
        """A generator, because Python takes what one was handling away with it.

        An exception between two lines of an `except` block leaves the older one behind as "being
        handled": in a plain function for as long as the thread lives, as the context of whatever
        is raised after it.
        """
        left = None
        try:
            with uncollected():  # a generator that ends there has lines of its own
                self.command.run(str(self.table))
        except BaseException as exc:
            _let_go(exc)
            left = exc
        finally:
            injector.disarm()
            self.injector = None
        yield left

    def files(self) -> set[str]:
        """What is there besides the log."""
        log = self.table / "_delta_log"
        return {
            str(p.relative_to(self.table))
            for p in self.table.rglob("*")
            if p.is_file() and log not in p.parents
        }

    def versions(self) -> list[Path]:
        """The commits."""
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


def _let_go(exc: BaseException | None) -> None:
    """Forget the frames of an exception, and with them the files that they left open."""
    while exc is not None:
        exc.__traceback__ = None
        exc = exc.__cause__ or exc.__context__


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


@contextlib.contextmanager
def on_stage(stage: Stage) -> Iterator[None]:
    """Watch a stage: its injector is armed where the first byte is written."""
    patched = pytest.MonkeyPatch()
    for owner, name in (
        (PartitionedWriter, "_open"),
        (VectorWriter, "_end"),
        (AttemptFiles, "add"),
        (AttemptFiles, "at"),
        (Committer, "_guarded"),
    ):
        patched.setattr(owner, name, _arming(getattr(owner, name)))
    for name in ("commit", "commit_if_needed", "commit_large"):
        patched.setattr(OptimisticTransaction, name, _noting(getattr(OptimisticTransaction, name)))
    patched.setattr(os, "fsync", lambda _: None)  # of some thousand runs
    before = logging.root.manager.disable
    logging.disable()
    _playing[:] = [stage]
    with warnings.catch_warnings():
        # An exception right behind an `open` leaves a file to the garbage collector.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        finally:
            _playing.clear()
            logging.disable(before)
            patched.undo()
            stage.left, stage.transactions = [], []
            gc.collect()


def lines_of(stage: Stage, *, by_instruction: bool = False) -> list[Line]:
    """The lines that a run goes through, each once, those of the first run left out."""
    injector = LineInjector(stage.roots, by_instruction=by_instruction)
    with on_stage(stage):
        assert stage.play(LineInjector(stage.roots)) is None
        assert stage.play(injector) is None
    return [line for line in injector.seen if line.time == 0]


def complaint(stage: Stage, left: BaseException | None) -> str | None:
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
        problem = _complaint_of_commit(stage.left[-1], landed)
        if problem:
            return problem
    if seconds_left() != float("inf") or DeltaLog.active_transaction() is not None:
        return "the thread keeps what was for one call"
    in_doubt = any(txn.may_be_committed for txn in stage.transactions)
    if stage.command.leaves_none and not landed and not in_doubt and left is not None:
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
