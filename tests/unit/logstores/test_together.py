"""Jobs of a race begin together or not at all, and never wait for ever."""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.cli.app import app
from lakelog.core import create_table
from lakelog.logstores import together
from lakelog.logstores.together import run_together
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
    monkeypatch.setattr(together, "_PATIENCE", 0.01)
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
    assert users == {"logstores/lakelog/logstores/together.py"}
