"""Locks by name, within a process and within a host."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import UnsafeLogStoreError, locks
from lakelog.logstores.locks import host_lock, lock_file, process_lock

if TYPE_CHECKING:
    from collections.abc import Callable

BOTH = pytest.mark.parametrize("lock", [process_lock, host_lock])

HOLDER = """
import sys
from lakelog.logstores.locks import host_lock
with host_lock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""

COUNTER = """
import sys
from lakelog.logstores.locks import host_lock
for _ in range(100):
    with host_lock(sys.argv[1]):
        with open(sys.argv[2]) as file:
            number = int(file.read())
        with open(sys.argv[2], "w") as file:
            file.write(str(number + 1))
"""


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A name of its own, with lock files that go away with the test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return f"memory://{uuid.uuid4()}/t"


@BOTH
def test_threads_take_turns(lock: Callable[..., Any], key: str) -> None:
    total = 0

    def add() -> None:
        nonlocal total
        for _ in range(50):
            with lock(key):
                seen = total
                threading.Event().wait(0)  # hand over to another thread at the worst moment
                total = seen + 1

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(add) for _ in range(8)]:
            done.result()
    assert total == 400


@BOTH
def test_another_thread_is_told_when_its_time_is_over(lock: Callable[..., Any], key: str) -> None:
    def want() -> None:
        with lock(key, timeout=0):
            pass

    with (
        lock(key),
        ThreadPoolExecutor(1) as pool,
        pytest.raises(TimeoutError, match="held the lock"),
    ):
        pool.submit(want).result()
    want()


@BOTH
def test_other_names_are_not_locked(lock: Callable[..., Any], key: str) -> None:
    with lock(key), lock(key + "2", timeout=0):
        pass


@BOTH
def test_a_failing_holder_releases(lock: Callable[..., Any], key: str) -> None:
    with pytest.raises(RuntimeError), lock(key):
        raise RuntimeError
    with lock(key, timeout=0):
        pass


@BOTH
def test_no_trace_of_a_name_is_kept_in_memory(lock: Callable[..., Any], key: str) -> None:
    before = len(locks._entries)
    with lock(key):
        assert len(locks._entries) == before + 1
    assert len(locks._entries) == before


def test_another_process_is_waited_for_and_then_followed(key: str) -> None:
    command = [sys.executable, "-c", HOLDER, key]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(TimeoutError, match=r"another process .*\.lock"),
            host_lock(key, timeout=0),
        ):
            pass
        naps: list[float] = []

        def release_then_wait(seconds: float) -> None:
            if not naps:
                holder.kill()  # however the holder ends, its lock ends with it
                holder.wait()
            naps.append(seconds)

        with host_lock(key, sleep=release_then_wait):
            assert naps


def test_a_child_of_a_fork_keeps_no_lock_that_its_parent_has_released(key: str) -> None:
    heard, said = os.pipe()
    end, live = os.pipe()
    with host_lock(key):
        child = os.fork()
        if child == 0:
            try:
                os.close(live)
                os.write(said, b"begun")
                os.read(end, 1)  # lives until its parent has looked
            finally:
                os._exit(0)
        os.read(heard, 5)
    try:
        with host_lock(key, timeout=0):
            pass
    finally:
        for each in (heard, said, end, live):
            os.close(each)
        os.waitpid(child, 0)


def test_a_child_that_is_forked_within_a_lock_closes_nothing_of_its_own(key: str) -> None:
    with host_lock(key):
        child = os.fork()
        own = os.open(os.devnull, os.O_RDONLY) if child == 0 else -1
    if child == 0:
        try:
            os.fstat(own)  # has the number that the lock file had
        except OSError:
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_processes_take_turns(key: str, tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")
    command = [sys.executable, "-c", COUNTER, key, str(counter)]
    running = [subprocess.Popen(command) for _ in range(3)]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert counter.read_text() == "300"


def test_the_folder_of_locks_is_the_users_own(key: str) -> None:
    with host_lock(key):
        pass
    folder = Path(lock_file(key)).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    assert os.listdir(folder) == [Path(lock_file(key)).name]


def test_a_folder_that_others_may_enter_is_refused(key: str) -> None:
    folder = Path(lock_file(key)).parent
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    with pytest.raises(UnsafeLogStoreError, match="mode 0700"), host_lock(key):
        pass


def test_a_link_in_the_place_of_the_folder_is_refused(key: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    Path(lock_file(key)).parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafeLogStoreError, match="Remove it"), host_lock(key):
        pass
