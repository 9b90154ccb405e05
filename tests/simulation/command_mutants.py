"""The commands with one thing wrong, once for each thing that their histories watch over."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core.commit import loop as commit_loop
from lakelog.core.conflicts import checker as conflicts
from lakelog.core.data.change_files import ChangeFileWriter
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.dml.merge.matching import Matcher
from lakelog.core.dml.merge.positions import numbers
from lakelog.core.dml.touched_files import TouchedFile
from lakelog.core.maintain import restore_version as restoring
from lakelog.core.maintain.optimize import committing
from lakelog.core.maintain.vacuum.kept import KeptFiles
from support.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Iterator

_actions = restoring._actions
_write = ChangeFileWriter.write


def _nothing(*_: Any) -> None:
    """Check nothing."""


def _unchanged(current: Any, *_: Any) -> Any:
    return current


def _restored_without_removes(txn: Any, plan: Any) -> Iterator[Any]:
    return _actions(txn, replace(plan, removed=plan.removed.slice(0, 0)))


def _restored_without_adds(txn: Any, plan: Any) -> Iterator[Any]:
    return _actions(txn, replace(plan, added=plan.added.slice(0, 0)))


def _without_old(self: ChangeFileWriter, rows: Any, kind: str) -> None:
    if kind != "update_preimage":
        _write(self, rows, kind)


def _everything(_: KeptFiles, paths: list[str]) -> set[str]:
    return set(paths)


COMMAND_MUTANTS = [
    Mutant("what others commit never matters", commit_loop, "check_conflicts", _unchanged),
    Mutant("rows that came meanwhile never matter", conflicts, "_check_added_files", _nothing),
    Mutant(
        "MERGE inserts what it has updated",
        Matcher,
        "unmatched",
        lambda self: numbers(self._used.num_rows),
    ),
    Mutant("RESTORE keeps what came since", restoring, "_actions", _restored_without_removes),
    Mutant("RESTORE forgets what went since", restoring, "_actions", _restored_without_adds),
    Mutant(
        "a new deletion vector forgets the old one",
        TouchedFile,
        "masked",
        property(lambda self: self.hit),
    ),
    Mutant("deletion vectors are not read", TableFileReader, "deleted", lambda *_: None),
    Mutant("the old rows of an update are not told", ChangeFileWriter, "write", _without_old),
    Mutant("OPTIMIZE takes a changed file for the same", committing, "_same", lambda *_: True),
    Mutant("VACUUM keeps the newest version alone", KeptFiles, "may_go", _everything),
]
