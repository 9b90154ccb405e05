"""An exception at any line between the first byte written and the return costs no row.

Each run changes a small table and raises once: before one of the lines that lakelog runs from the
moment at which the first byte is written. Then the log is read: no version names a file that is not
there, what left `commit` said the truth about the commit, and a change that is known to have failed
left no file behind.

The lines that decide about files and versions are tried with two of the exceptions, of which the
day draws one, and the command that it is raised in; of the other lines the day draws a third, each
with one of the exceptions. At night and in `make soak` every line is tried, and those that decide
with all of the exceptions, in every command.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import lakelog.core
import lakelog.logstores
from lakelog.core import (
    convert_to_delta,
    create_table,
    delete_rows,
    optimize,
    update_rows,
    write_arrow,
)
from lakelog.core.commit.attempt import Landing
from lakelog.core.commit.version_writer import CommitWriter
from lakelog.core.errors import CommitOutcomeUnknownError, PostCommitError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.core.transaction.committer import Committer
from lakelog.core.transaction.optimistic import OptimisticTransaction
from support.interrupted_runs import ERRORS, Command, Stage, complaint, lines_of, on_stage
from support.line_injector import Line, LineInjector

if TYPE_CHECKING:
    from support.days import OfTheDay

# An injected exception may meet a generator that nobody reads on, while Python closes it: it is
# told as unraisable, and goes nowhere.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
SCHEMA = StructType((StructField("id", PrimitiveType("long")),))
ROOTS = tuple(str(Path(each.__file__ or "").parent) for each in (lakelog.core, lakelog.logstores))
BEHIND = {
    each.__code__.co_firstlineno
    for each in (
        Committer._guarded,
        Committer.commit,
        Committer.commit_if_needed,
        OptimisticTransaction.commit,
        OptimisticTransaction.commit_if_needed,
    )
}
"""The guard, and what hands its answer on: their last instruction is behind it."""
DECIDING = {
    "core/dml/delete_update.py",
    "core/maintain/optimize/committing.py",
    "core/dml/table_write.py",
    "core/dml/arrow_write.py",
    "core/maintain/after_command.py",
    "core/commit/attempt.py",
    "core/commit/loop.py",
    "core/commit/version_writer.py",
    "core/hooks/post_commit.py",
    "core/transaction/attempt_files.py",
    "core/transaction/large_commit.py",
    "core/transaction/command_commit.py",
    "core/transaction/committer.py",
    "core/transaction/optimistic.py",
    "logstores/local/store.py",
}


COMMANDS = {
    "append": Command(lambda uri: write_arrow(uri, ROWS, mode="append")),
    "overwrite": Command(lambda uri: write_arrow(uri, ROWS, mode="overwrite")),
    "delete": Command(lambda uri: delete_rows(uri, "id = 1")),
    "update": Command(lambda uri: update_rows(uri, {"v": pa.scalar("n")}, "id = 1")),
    "delete by vector": Command(lambda uri: delete_rows(uri, "id = 1"), "true"),
    "update by vector": Command(
        lambda uri: update_rows(uri, {"v": pa.scalar("n")}, "id = 1"), "true"
    ),
    "convert": Command(convert_to_delta, starts_from="files"),
    "create": Command(lambda uri: create_table(uri, SCHEMA), starts_from="nothing"),
    "optimize": Command(optimize, starts_from="two files"),
}


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Stage]:
    """A stage for each command."""
    found = {}
    for name, command in COMMANDS.items():
        found[name] = Stage(tmp_path_factory.mktemp("stage"), command, ROOTS)
        found[name].prepare(ROWS)
    return found


@pytest.fixture(scope="module")
def plan(
    stages: dict[str, Stage], of_the_day: OfTheDay
) -> dict[str, list[tuple[Line, type[BaseException]]]]:
    """For each command the lines to raise at, and what."""
    lines = {name: lines_of(stage) for name, stage in stages.items()}
    commands: dict[Line, list[str]] = {}
    for name, found in lines.items():
        for line in found:
            commands.setdefault(line, []).append(name)
    planned: dict[str, list[tuple[Line, type[BaseException]]]] = {name: [] for name in lines}
    others = [line for line in commands if line.module not in DECIDING]
    drawn = {*of_the_day(others, len(others) // 3, about="lines")}
    for at, (line, names) in enumerate(commands.items()):
        if line.module in DECIDING:
            # The first turn, which the mutants are played with, is that of an append.
            these = [*names[:1], *of_the_day(names[1:], len(ERRORS) - 1, about=str(line))]
            turns = [*range(max(len(these), len(ERRORS)))]
            turns = [0, *of_the_day(turns[1:], about=str(line))]
        elif line in drawn:
            these, turns = names, [at % len(names)]
        else:
            continue
        for turn in turns:
            error = ERRORS[(at + turn) % len(ERRORS)]
            planned[these[turn % len(these)]].append((line, error))
    return planned


@pytest.mark.soak
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.one_day_in(3)
def test_no_version_names_a_missing_file_and_nothing_is_deleted_in_doubt(
    name: str,
    stages: dict[str, Stage],
    plan: dict[str, list[tuple[Line, type[BaseException]]]],
) -> None:
    stage = stages[name]
    wrong, missed = [], []
    with on_stage(stage):
        for line, error in plan[name]:
            injector = LineInjector(ROOTS, line, error("injected"))
            problem = complaint(stage, stage.play(injector))
            if problem:
                wrong.append(f"{error.__name__} at {line}: {problem}")
            elif not injector.hit:
                missed.append(line)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(plan[name])}:", *wrong[:20]])
    assert len(missed) < len(plan[name]) / 50, missed


def test_the_lines_that_decide_are_tried_with_two_exceptions(
    plan: dict[str, list[tuple[Line, type[BaseException]]]],
    of_the_day: OfTheDay,
) -> None:
    tried: dict[Line, set[type[BaseException]]] = {}
    for planned in plan.values():
        for line, error in planned:
            tried.setdefault(line, set()).add(error)
    deciding = {line: errors for line, errors in tried.items() if line.module in DECIDING}
    assert {line.module for line in deciding} == DECIDING
    tries = len(of_the_day(ERRORS, 2))
    assert all(len(errors) == tries for errors in deciding.values())
    # Every command, and every exception.
    assert all(planned for planned in plan.values())
    assert set().union(*deciding.values()) == set(ERRORS)


@pytest.mark.parametrize("name", ["append", "update by vector"])
def test_between_two_instructions_it_is_the_same(name: str, stages: dict[str, Stage]) -> None:
    """A signal handler raises between any two of them; here at one of thirty that decide."""
    stage = stages[name]
    found = lines_of(stage, by_instruction=True)
    deciding = [each for each in found if each.module in DECIDING][::30]
    wrong = []
    with on_stage(stage):
        for at, each in enumerate(deciding):
            error = ERRORS[at % len(ERRORS)]("injected")
            injector = LineInjector(ROOTS, each, error, by_instruction=True)
            problem = complaint(stage, stage.play(injector))
            # Where a function of Python returns to another, no signal is delivered.
            if problem and each.number not in BEHIND:
                wrong.append(f"{type(error).__name__} at {each}: {problem}")
    assert len(deciding) > 25
    assert not wrong, "\n".join(wrong[:20])


MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "errors decide, and not the mark": (
        AttemptFiles,
        "_may_be_named",
        lambda _, error: isinstance(error, PostCommitError | CommitOutcomeUnknownError),
    ),
    "the mark is set behind the write": (Landing, "trying", lambda *_: None),
    "nothing is settled": (CommitWriter, "settle", lambda *_: None),
    "whatever comes behind the landing leaves commit": (
        Committer,
        "_guarded",
        lambda _, __, run: run(),
    ),
}


@pytest.mark.one_day_in(4, 3)
@pytest.mark.parametrize("name", MUTANTS)
def test_these_runs_catch_a_core_in_which(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    stages: dict[str, Stage],
    plan: dict[str, list[tuple[Line, type[BaseException]]]],
) -> None:
    monkeypatch.setattr(*MUTANTS[name])
    deciding = [each for each in plan["append"] if each[0].module in DECIDING]
    with on_stage(stages["append"]):
        caught = any(
            complaint(
                stages["append"],
                stages["append"].play(LineInjector(ROOTS, line, error("injected"))),
            )
            for line, error in deciding
        )
    assert caught
