"""One thread at a time: who goes next is the test's decision and nobody else's."""

from __future__ import annotations

import concurrent.futures
import contextlib
import threading
from typing import TYPE_CHECKING, Any
from unittest import mock

from lakelog.logstores import threads
from support.faults import Crash, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from simulation.world import SteadyClock

_PATIENCE = 60.0


class _Inline:
    """An executor that works off what it is given at once, in the caller's thread."""

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> _Inline:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        return [work(item) for item in items]

    def submit(self, work: Callable[..., Any], *args: Any) -> concurrent.futures.Future[Any]:
        done: concurrent.futures.Future[Any] = concurrent.futures.Future()
        try:
            done.set_result(work(*args))
        except BaseException as exc:
            done.set_exception(exc)
        return done


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Reads that the core makes side by side have an order here, and each is a step."""
    with mock.patch.object(threads, "ThreadPoolExecutor", _Inline):
        yield


def anything(_operation: str) -> bool:
    """Stops before every step."""
    return True


def stops_before(operation: str) -> Callable[[str], bool]:
    """Stops before an operation, or before any if it is `one`.

    And before a wait: whoever waits goes on for ever where no other does.
    """
    return anything if operation == "one" else (operation, "wait").__contains__


_ROUNDS = 600


def to_the_end(go_on: Callable[[], bool], clock: SteadyClock) -> None:
    """Let all go on in turn until none has anything to do.

    Args:
        go_on: lets each go on until it waits; whether there was one.
        clock: goes on, too, after a while, for those who wait until something is over.
    """
    for number in range(_ROUNDS):
        if not go_on():
            return
        if number > _ROUNDS // 10:
            clock.advance(1)
    raise AssertionError("a process waits for what never comes")


class Actor:
    """A thread that stops before each step and goes on when it is told to.

    It is always either waiting or the only one that runs, so that a history is a function of the
    order in which actors are resumed.
    """

    def __init__(self, work: Callable[[Actor], object]) -> None:
        """Take the work; it begins with the first `resume`."""
        self._work = work
        self._go = threading.Semaphore(0)
        self._back = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._fate = Fault.NONE
        self._until: Callable[[str], bool] = anything
        self.at: tuple[str, str] = ("begin", "")
        """The step that it waits for: operation and path."""
        self.is_dead = False
        self.is_done = False
        self.failure: BaseException | None = None
        """What the work raised, unless it was its own crash."""

    def resume(self, fate: Fault = Fault.NONE, until: Callable[[str], bool] = anything) -> None:
        """Let it take the step that it waits for, and go on to another or to its end.

        Args:
            fate: what happens to the step that it waits for.
            until: which operations to stop before.
        """
        assert not self.is_done
        self._fate, self._until = fate, until
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._go.release()
        assert self._back.acquire(timeout=_PATIENCE), f"stuck after {self.at}"

    def go_on(self, fate: Fault, until: Callable[[str], bool]) -> None:
        """Resume it unless it is done, and raise what its work has raised."""
        if not self.is_done:
            self.resume(fate, until)
        if self.is_done and self.failure is not None:
            raise self.failure

    def step(self, operation: str, path: str = "") -> Fault:
        """Stop before a step; called by the work.

        Returns:
            What shall happen to the step.

        Raises:
            Crash: the process dies before it, or has died already.
        """
        assert threading.current_thread() is self._thread
        if not self.is_dead and not self._until(operation):
            return Fault.NONE
        if not self.is_dead:
            self.at = (operation, path)
            self._back.release()
            self._go.acquire()
        if self._fate is Fault.CRASH:
            self.is_dead = True
        if self.is_dead:
            raise Crash
        return self._fate

    def kill(self) -> None:
        """End it, wherever it is."""
        if self._thread is not None and not self.is_done:
            self.resume(Fault.CRASH)

    def _run(self) -> None:
        try:
            self._work(self)
        except Crash:
            self.is_dead = True
        except BaseException as exc:
            self.failure = exc
        finally:
            self.is_done = True
            self._back.release()
