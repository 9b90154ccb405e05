"""What is raised at any line of an intake leaves no append half taken, and no ticket open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import SystemClock
from lakelog.core.dml.appending import intake as module
from lakelog.core.dml.appending.given import Fitted
from lakelog.core.dml.appending.intake import Intake
from lakelog.core.errors import AppenderStoppedError
from lakelog.core.schema import StructType
from support.line_injector import Line, LineInjector

if TYPE_CHECKING:
    from collections.abc import Callable

FILE = str(module.__file__)


def made(save_every: float | None = None) -> Intake:
    return Intake(
        table="t",
        app_id="a",
        clock=SystemClock(),
        every=0.0,
        save_every=save_every,
        max_bytes=1 << 20,
        acknowledged=-1,
        version=0,
    )


def rows(number: int) -> Fitted:
    return Fitted(pa.table({"id": [number]}), StructType(()))


def lines_of(work: Callable[[LineInjector], object]) -> list[Line]:
    injector = LineInjector((FILE,))
    work(injector)
    found = [each for each in injector.seen if not each.is_bare]
    assert len(found) > 5
    return found


def raising(injector: LineInjector, work: Callable[[], Any]) -> Any:
    """Do it, and give what was raised, if anything was."""
    try:
        injector.arm()
        work()
    except (KeyboardInterrupt, MemoryError) as exc:
        return exc
    finally:
        injector.disarm()
    return None


@pytest.mark.parametrize("count", [0, 1], ids=["the first", "another"])
def test_an_append_that_is_interrupted_was_taken_or_not(count: int) -> None:
    def work(injector: LineInjector) -> None:
        intake = made()
        tickets = [intake.put(rows(each), each, None) for each in range(count)]
        held = intake.held
        raised = raising(injector, lambda: intake.put(rows(count), count, None))
        assert (intake.held > held) == (intake.pending == count + 1)
        assert raised or injector.at is None
        tickets.append(intake.put(rows(count), count, None))  # as its producer does, who was told
        taken = intake.take()
        assert [each.seq for each in taken] == list(range(count + 1))
        intake.settle(taken, 1)
        assert [each.result(0) for each in tickets] == [1] * (count + 1)
        assert (intake.held, intake.pending) == (0, 0)

    for line in lines_of(work):
        work(LineInjector((FILE,), line, KeyboardInterrupt()))


@pytest.mark.parametrize("what", ["settled", "saved"])
def test_no_ticket_is_left_open(what: str) -> None:
    failure = AppenderStoppedError(
        "stopped",
        table="t",
        app_id="a",
        acknowledged=-1,
        pending=1,
        failed_seq=None,
        failed_row=None,
    )

    def work(injector: LineInjector) -> None:
        intake = made(0.0 if what == "saved" else None)
        tickets = [intake.put(rows(each), each, None) for each in range(3)]
        if what == "saved":
            appends = intake.unsaved()
            raising(injector, lambda: intake.saved(appends[:2]))
        else:
            appends = intake.take()
            raising(injector, lambda: intake.settle(appends[:2], 1))
        intake.stop(failure)  # as the thread does in which it was raised
        assert all(each.done() for each in tickets)
        for each in tickets[: intake.committed + 1]:
            assert each.result(0) == 1
        with pytest.raises(AppenderStoppedError):
            tickets[2].wait_saved(0)

    for line in lines_of(work):
        work(LineInjector((FILE,), line, MemoryError()))
