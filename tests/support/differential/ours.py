"""The same steps by lakelog's own transaction."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakelog.core import DeltaLog, Operation
from lakelog.core.actions import AddFile, Metadata, action_from_json
from lakelog.core.log.file_names import commit_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.core.actions import Action
    from support.differential.lines import Line
    from support.differential.scenario import Scenario, Step


class OurTransaction:
    """`OptimisticTransaction` of lakelog; its methods are the steps of a scenario."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._txn = DeltaLog.for_table(str(path)).start_transaction()
        self._next = self._txn.reads.version + 1

    def run(self, steps: list[Step]) -> int | None:
        """Run all steps; the last one commits."""
        done = None
        for kind, args in steps:
            step: Callable[..., int | None] = getattr(self, kind)
            done = step(*args)
        return done

    def reads(self, condition: str | None) -> None:
        """Ask for files."""
        self._txn.filter_files(condition)

    def reads_whole_table(self) -> None:
        """Everything was read."""
        self._txn.reads.read_whole_table()

    def reads_app(self, app_id: str) -> None:
        """Ask for an application's progress."""
        self._txn.txn_version(app_id)

    def replaces_partitions_of(self, adds: list[Line]) -> None:
        """Ask for what a dynamic overwrite replaces."""
        files = [each for each in _actions(adds) if isinstance(each, AddFile)]
        self._txn.reads.files_in_same_partitions(files)

    def sets_metadata(self, line: Line) -> None:
        """Change the metadata."""
        (metadata,) = _actions([line])
        assert isinstance(metadata, Metadata)
        self._txn.update_metadata(metadata)

    def wins(self, lines: list[Line]) -> None:
        """Another's commit, by its bytes."""
        file = Path(commit_path(str(self._path), self._next))
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        self._next += 1

    def commits(self, operation: str, lines: list[Line]) -> int:
        """Commit."""
        return self._txn.commit(_actions(lines), _operation(operation))

    def commits_if_needed(self, operation: str, lines: list[Line]) -> int | None:
        """Commit what says something."""
        return self._txn.commit_if_needed(_actions(lines), _operation(operation))


def run_ours(scenario: Scenario, path: Path) -> int | None:
    """Lay out the table and run the steps."""
    scenario.lay_out(path)
    return OurTransaction(path).run(scenario.steps)


def _actions(lines: list[Line]) -> list[Action]:
    return [action_from_json(json.dumps(line)) for line in lines]


def _operation(name: str) -> Operation:
    parameters: Mapping[str, Any] = {"mode": "Append"} if name == "WRITE" else {}
    return Operation(name=name, parameters=parameters)
