"""Work on threads: its order, its errors and its end; jobs that begin together or not at all."""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.cli.app import app
from lakelog.core import create_table
from lakelog.logstores import threads
from lakelog.logstores.threads import at_once, beside, in_order, run_together
from support.terminal import runner

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY = Path(__file__).parents[3]
JOBS = 6


def bounded(call: Callable[[], object]) -> BaseException | None:
    """Run it in a thread that has to come to an end; what it raised."""
    raised: list[BaseException | None] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            raised.append(error)
        else:
            raised.append(None)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive(), "it waits for a barrier that is never filled"
    return raised[0]


def left() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("lakelog-together")]


def test_jobs_start_together() -> None:
    met = threading.Barrier(JOBS)

    def job() -> int:
        met.wait(30)  # breaks unless all are under way at once
        return 7

    assert run_together([job] * JOBS) == [7] * JOBS


def interrupted_at(number: int, monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Raise when the job of that number is to be started, as a signal or a full system does."""
    submit, count = ThreadPoolExecutor.submit, iter(range(1_000_000))

    def broken(self: ThreadPoolExecutor, *args: Any, **kwargs: Any) -> Future[Any]:
        if self._thread_name_prefix == "lakelog-together" and next(count) == number:
            raise error
        return submit(self, *args, **kwargs)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", broken)


@pytest.mark.parametrize("number", range(JOBS))
@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("can't start new thread")])
def test_where_not_all_can_be_started_none_is(
    number: int, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_at(number, monkeypatch, error)
    done: list[int] = []
    assert bounded(lambda: run_together([lambda: done.append(1)] * JOBS)) is error
    assert not done
    assert not left()


def test_an_interrupt_after_the_start_waits_for_what_has_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[int] = []
    result = Future.result

    def broken(self: Future[Any], *args: Any) -> Any:
        monkeypatch.setattr(Future, "result", result)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", broken)
    error = bounded(lambda: run_together([lambda: done.append(1)] * JOBS))
    assert isinstance(error, KeyboardInterrupt)
    # Those that were let go by then have come to their end.
    count = len(done)
    assert not left()
    assert len(done) == count


def test_a_thread_that_waits_in_vain_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_PATIENCE", 0.01)
    monkeypatch.setattr(threading.Barrier, "abort", lambda _: None)
    interrupted_at(JOBS - 1, monkeypatch, KeyboardInterrupt())
    assert isinstance(bounded(lambda: run_together([int] * JOBS)), KeyboardInterrupt)
    assert not left()


def test_what_a_job_raises_comes_out() -> None:
    def failing() -> None:
        raise ValueError("mine")

    error = bounded(lambda: run_together([failing] * JOBS))
    assert str(error) == "mine"


@pytest.mark.parametrize("number", [0, 2, 5, 11])
def test_a_doctor_who_is_interrupted_leaves_no_probe_behind(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id int")
    before = sorted(os.walk(uri))
    interrupted_at(number, monkeypatch, KeyboardInterrupt())
    codes: list[int] = []
    way = ["doctor", uri, "--writers", "6", "--rounds", "3"]
    assert bounded(lambda: codes.append(runner().invoke(app, way).exit_code)) is None
    assert codes == [130]
    assert sorted(os.walk(uri)) == before
    assert not left()


def test_no_other_pool_has_a_barrier() -> None:
    users = {
        str(path.relative_to(REPOSITORY))
        for root in ("core", "logstores", "spark", "cli", "contrib")
        for path in (REPOSITORY / root).rglob("*.py")
        if "Barrier(" in path.read_text()
    }
    assert users == {"logstores/lakelog/logstores/threads.py"}


@pytest.fixture(params=["threads", "no thread"])
def crew(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With threads, and as when the interpreter ends."""

    def refused(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    if request.param == "no thread":
        monkeypatch.setattr(ThreadPoolExecutor, "submit", refused)
    return str(request.param)


@pytest.mark.parametrize("count", [0, 1, 2, 50])
@pytest.mark.usefixtures("crew")
def test_each_item_is_done_once_and_results_keep_the_order(count: int) -> None:
    done: list[int] = []

    def work(item: int) -> int:
        done.append(item)
        return -item

    wanted = [-item for item in range(count)]
    assert at_once(work, range(count), 4, "test") == wanted
    assert list(in_order(work, range(count), 4, "test")) == wanted
    assert sorted(done) == sorted([*range(count), *range(count)])


@pytest.mark.usefixtures("crew")
def test_after_a_failure_no_further_item_is_begun() -> None:
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        raise ValueError(item)

    with pytest.raises(ValueError, match=r"\d"):
        at_once(work, range(100), 4, "test")
    assert len(begun) <= 4
    begun.clear()
    with pytest.raises(ValueError, match=r"^0$"):
        list(in_order(work, range(100), 4, "test"))
    assert len(begun) <= 9


def test_an_interrupt_is_raised_rather_than_what_failed_before_it() -> None:
    both = threading.Barrier(2)

    def work(item: int) -> None:
        both.wait(30)
        raise KeyboardInterrupt if item else OSError("the first item")

    with pytest.raises(KeyboardInterrupt):
        at_once(work, range(2), 2, "test")


def test_results_come_not_too_far_ahead() -> None:
    started: list[int] = []

    def work(item: int) -> int:
        started.append(item)
        return item

    results = in_order(work, range(50), 2, "test")
    assert next(results) == 0
    assert len(started) <= 5, "twice as many as threads, and the one that was asked for"
    assert list(results) == list(range(1, 50))


def test_who_stops_early_leaves_no_thread() -> None:
    done: list[int] = []
    results = in_order(done.append, range(1000), 3, "lakelog-test")
    next(results)
    results.close()
    assert len(done) < 10
    assert not [each for each in threading.enumerate() if each.name.startswith("lakelog-test")]


zone: ContextVar[str] = ContextVar("zone", default="none")


@pytest.mark.usefixtures("crew")
def test_work_sees_the_context_of_its_caller() -> None:
    def found() -> None:
        zone.set("Europe/Berlin")
        assert set(at_once(lambda _: zone.get(), range(9), 3, "test")) == {"Europe/Berlin"}
        assert set(in_order(lambda _: zone.get(), range(9), 3, "test")) == {"Europe/Berlin"}
        with beside(1, "test") as begun:
            begun.begin(zone.get)
            assert begun.take() == "Europe/Berlin"

    copy_context().run(found)


@pytest.mark.usefixtures("crew")
def test_work_beside_is_taken_as_it_was_begun_or_as_it_is_done() -> None:
    with beside(3, "test") as begun:
        for number in range(10):
            begun.begin(pow, number, 2)
        assert len(begun) == 10
        assert begun.take() == 0
        found: list[int] = []
        while begun:
            found += begun.take_done()
    assert sorted(found) == [number**2 for number in range(1, 10)]


def test_what_is_done_first_is_given_first() -> None:
    waits = threading.Event()
    with beside(2, "test") as begun:
        begun.begin(waits.wait, 30)
        begun.begin(int)
        assert begun.take_done() == [0]
        waits.set()
        assert begun.take_done() == [True]


def test_a_block_that_fails_begins_no_more_and_waits_for_what_has_begun() -> None:
    begun_one, goes_on = threading.Event(), threading.Event()
    done: list[str] = []

    def slow() -> None:
        begun_one.set()
        goes_on.wait(30)
        done.append("slow")

    def fail() -> None:
        with beside(1, "test") as begun:
            begun.begin(slow)
            begun.begin(done.append, "late")
            begun_one.wait(30)
            threading.Thread(target=goes_on.set).start()
            raise OSError("meanwhile")

    with pytest.raises(OSError, match="meanwhile"):
        fail()
    # "late" may only have run if its thread was free before the block had failed.
    assert done[0] == "slow"
    assert not [each for each in threading.enumerate() if each.name.startswith("test_")]


def test_threads_that_come_late_find_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pool keeps work for which it could start no thread, and another thread may do it."""
    submit, count = ThreadPoolExecutor.submit, iter(range(1000))

    def refused_later(self: ThreadPoolExecutor, *args: Any, **kwargs: Any) -> Future[Any]:
        future = submit(self, *args, **kwargs)
        if next(count) % 3 == 2:
            raise RuntimeError("can't start new thread")
        return future

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refused_later)
    done: list[int] = []

    def work(item: int) -> int:
        done.append(item)
        return item

    assert list(in_order(work, range(40), 3, "test")) == [*range(40)]
    assert sorted(done) == [*range(40)]


def test_no_other_module_makes_pools() -> None:
    users = {
        str(path.relative_to(REPOSITORY))
        for root in ("core", "logstores", "spark", "cli", "contrib")
        for path in (REPOSITORY / root).rglob("*.py")
        if re.search(r"PoolExecutor|ThreadPool|multiprocessing.pool", path.read_text())
    }
    assert users == {"logstores/lakelog/logstores/threads.py"}
