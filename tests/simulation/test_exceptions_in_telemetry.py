"""An exception at any line of telemetry, ours or OpenTelemetry's, costs no commit.

As in `test_exceptions_anywhere`, with metrics and spans on, at a third of the lines, drawn by the
day. What OpenTelemetry raises, and the user's exporters, samplers and processors in it, is not
heard of outside. Whatever comes from a signal handler leaves no span behind as the thread's current
one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import opentelemetry.trace
import pyarrow as pa
import pytest
from opentelemetry import trace

from lakelog.core import telemetry, write_arrow
from lakelog.core.commit import report
from lakelog.core.transaction import committer
from support.interrupted_runs import ERRORS, Command, Stage, complaint, lines_of, on_stage
from support.line_injector import Line, LineInjector
from support.telemetry import heard

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from support.days import OfTheDay

ROWS = pa.table({"id": [1, 2, 3]})
OTEL = str(Path(opentelemetry.trace.__file__).parent.parent)
OURS = (str(Path(telemetry.__file__).parent), committer.__file__, report.__file__)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    append = Command(lambda uri: write_arrow(uri, ROWS, mode="append"))
    found = Stage(tmp_path_factory.mktemp("stage"), append, (*OURS, OTEL))
    with heard():
        found.prepare(ROWS)
    return found


@pytest.fixture(scope="module")
def lines(stage: Stage) -> list[Line]:
    with heard():
        return lines_of(stage)


def complaints(stage: Stage, lines: Iterable[tuple[int, Line]]) -> Iterator[str]:
    with on_stage(stage):
        for at, line in lines:
            for turn in range(2 if line.file.startswith(OURS) else 1):
                error = ERRORS[(at + turn) % len(ERRORS)]
                injector = LineInjector(stage.roots, line, error("injected"))
                # New providers each time: it may leave a lock of theirs locked.
                with heard():
                    left = stage.play(injector)
                problem = complaint(stage, left)
                if problem is None and trace.get_current_span() is not trace.INVALID_SPAN:
                    problem = "a span stays the current one"
                theirs = line.file.startswith(OTEL) and issubclass(error, Exception)
                if problem is None and theirs and left is not None:
                    problem = f"{left!r} is heard of"
                if problem:
                    yield f"{error.__name__} at {line}: {problem}"


@pytest.mark.soak
def test_none_changes_what_becomes_of_a_commit(
    stage: Stage, lines: list[Line], of_the_day: OfTheDay
) -> None:
    for folder in (*OURS, OTEL):
        assert any(line.file.startswith(folder) for line in lines)
    drawn = of_the_day([*enumerate(lines)], len(lines) // 3, about="telemetry")
    wrong = [*complaints(stage, drawn)]
    assert not wrong, "\n".join([f"{len(wrong)}:", *wrong[:30]])


def test_these_runs_catch_a_telemetry_that_lets_exceptions_out(
    stage: Stage, lines: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.core.telemetry.otel import SeenSpan

    monkeypatch.setattr(SeenSpan, "over", lambda self, _=None: self._finish())
    theirs = (each for each in enumerate(lines) if each[1].file.startswith(OTEL))
    assert any(complaints(stage, theirs))
