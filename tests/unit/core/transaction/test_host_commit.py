"""Appends of several processes of one host become one version, whoever is killed when."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from lakelog.core import DeltaLog, Operation, OptimisticTransaction
from lakelog.core.actions import SetTransaction
from lakelog.core.errors import CommitOutcomeUnknownError
from lakelog.core.transaction import host_queue
from lakelog.core.transaction.host_commit import HostCommits
from lakelog.logstores.errors import UnsafeLogStoreError
from lakelog.logstores.locks import host_lock
from support.examples import SEED
from support.host_writers import MODES, play
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.actions import Action

HOST = {"spark.lakelog.commit.host": "true"}
_PATIENCE = 60.0


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A table, with a folder of its own for what waits."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return new_table(str(tmp_path / "t")).table


def _transaction(table: str, conf: dict[str, str] | None = None) -> OptimisticTransaction:
    return DeltaLog.for_table(table, HOST if conf is None else conf).start_transaction()


def _append(txn: OptimisticTransaction, *actions: Action, **more: Any) -> Callable[[], int]:
    return lambda: txn.commit(actions, Operation.write("Append", **more))


def _in_one_turn(table: str, *commits: Callable[[], Any]) -> list[Any]:
    """Let commits get in line in this order while another has the turn, and give what they did."""
    queue, key = _queue(table)
    found: list[Any] = [None] * len(commits)

    def run(place: int) -> None:
        try:
            found[place] = commits[place]()
        except Exception as exc:
            found[place] = exc

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(commits))]
    entered = threading.Semaphore(0)
    enter = host_queue.HostQueue.enter

    def entering(self: host_queue.HostQueue, request: bytes) -> host_queue.Ticket:
        try:
            return enter(self, request)
        finally:
            entered.release()

    with mock.patch.object(host_queue.HostQueue, "enter", entering):
        with host_lock(key):
            for thread in threads:
                thread.start()
                assert entered.acquire(timeout=_PATIENCE)
        for name in queue.waiting()[:1]:
            queue.wake(name)
        for thread in threads:
            thread.join(_PATIENCE)
            assert not thread.is_alive()
    return found


def _queue(table: str) -> tuple[host_queue.HostQueue, str]:
    commits = HostCommits(DeltaLog.for_table(table, HOST))
    return commits._queue, commits._key


def _paths(table: str) -> list[str]:
    return sorted(file.path for file in DeltaLog.for_table(table).snapshot.files())


@pytest.mark.soak
@pytest.mark.parametrize("mode", MODES)
def test_whoever_is_stopped_at_whichever_step_each_append_is_there_once(
    tmp_path: Path, mode: str
) -> None:
    # Of what happens most every other step, since what is there after one call is what is there
    # before the next; some steps of the others: `make soak` has them all.
    every = 1 if SEED else 2 if mode == "leader" else 7
    assert play(tmp_path, mode, range(1, 100, every)) == []


def test_those_who_wait_are_committed_as_one_version(table: str) -> None:
    txns = [_transaction(table) for _ in range(4)]
    commits = [
        _append(txn, add_file(f"f{n}"), metrics={"numFiles": 1}) for n, txn in enumerate(txns)
    ]
    assert _in_one_turn(table, *commits) == [1, 1, 1, 1]
    assert _paths(table) == ["f0", "f1", "f2", "f3"]
    info = DeltaLog.for_table(table).snapshot.commit_info
    assert info is not None
    ids = (info.tags or {})["lakelog.groupTxnIds"].split(",")
    assert sorted(ids) == sorted(each._committer.txn_id for each in txns)
    assert info.operation_metrics == {"numFiles": "4"}
    for txn in txns:
        assert txn.may_be_committed
        assert [(each.outcome, each.committed_version) for each in txn.attempts] == [
            ("committed", 1)
        ]
    left = set(os.listdir(_queue(table)[0].folder))
    assert left <= {"1.version", f"{info.txn_id}.group"}


def test_who_finds_no_other_leaves_no_files(table: str) -> None:
    assert _append(_transaction(table), add_file("f"))() == 1
    assert not Path(_queue(table)[0].folder).exists()


def test_two_batches_of_one_application_are_not_in_one_version(table: str) -> None:
    txns = [_transaction(table) for _ in range(2)]
    assert [txn.txn_version("a") for txn in txns] == [-1, -1]
    found = _in_one_turn(
        table,
        *(
            _append(txn, add_file(f"f{n}"), SetTransaction(app_id="a", version=n))
            for n, txn in enumerate(txns)
        ),
    )
    # Whoever leads first.
    names = sorted(type(each).__name__ for each in found)
    assert names == ["ConcurrentTransactionException", "int"]
    assert len(_paths(table)) == 1


def test_other_notes_and_other_settings_are_committed_apart(table: str) -> None:
    other = {**HOST, "spark.lakelog.commit.timeBudget": "500"}
    found = _in_one_turn(
        table,
        _append(_transaction(table), add_file("f0")),
        _append(_transaction(table), add_file("f1"), user_metadata="a note"),
    )
    assert sorted(found) == [1, 2]
    assert HostCommits(DeltaLog.for_table(table, other))._key != _queue(table)[1]


def test_a_member_that_read_older_metadata_has_its_own_failure(table: str) -> None:
    stale = _append(_transaction(table), add_file("stale"))
    change = _transaction(table)
    change.update_metadata(_described(change))
    change.commit([], Operation("SET TBLPROPERTIES"))
    fresh = _append(_transaction(table), add_file("fresh"))
    found = _in_one_turn(table, fresh, stale)
    assert found[0] == 2
    assert type(found[1]).__name__ == "MetadataChangedException"
    assert _paths(table) == ["fresh"]


def _described(txn: OptimisticTransaction) -> Any:
    from dataclasses import replace

    return replace(txn.metadata, description="another one")


def _full(*_args: object, **_kwargs: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["mkfifo", "rename"])
def test_who_can_not_leave_a_request_commits_alone(table: str, call: str) -> None:
    with mock.patch(f"lakelog.core.transaction.host_queue.os.{call}", _full):
        assert _in_one_turn(table, _append(_transaction(table), add_file("f"))) == [1]
    assert _paths(table) == ["f"]


def test_a_leader_that_can_not_say_what_it_sends_sends_nothing(table: str) -> None:
    commits = [_append(_transaction(table), add_file(f"f{n}")) for n in range(3)]
    with mock.patch.object(host_queue.Group, "keep", _full):
        assert sorted(_in_one_turn(table, *commits)) == [1, 2, 3]
    assert _paths(table) == ["f0", "f1", "f2"]


def test_a_system_without_fifos_is_said_by_name(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "mkfifo")
    with pytest.raises(UnsafeLogStoreError, match=r"spark\.lakelog\.commit\.host"):
        _append(_transaction(table), add_file("f"))()
    assert _paths(table) == []


def test_a_folder_of_others_is_refused(table: str) -> None:
    Path(tempfile.gettempdir(), f"lakelog-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(UnsafeLogStoreError, match="mode 0700"):
        _append(_transaction(table), add_file("f"))()


def test_tables_in_memory_commit_as_usual() -> None:
    log = new_table("memory://host-commit/t", conf=HOST)
    assert log.start_transaction().commit([add_file("f")], Operation.write("Append")) == 1


def test_a_request_that_was_removed_leaves_its_outcome_unknown(table: str) -> None:
    queue, key = _queue(table)
    txn = _transaction(table)

    def remove(self: host_queue.Ticket, _seconds: float) -> None:
        os.unlink(queue.path(self.name + ".request"))

    patched = mock.patch.object(host_queue.Ticket, "wait", remove)
    with patched, host_lock(key), pytest.raises(CommitOutcomeUnknownError, match="not in"):
        _append(txn, add_file("f"))()
    assert txn.may_be_committed


def test_the_request_of_a_process_that_is_gone_is_dropped(table: str) -> None:
    queue, key = _queue(table)
    with host_lock(key):
        os.makedirs(queue.folder)
        gone = queue.enter(b"not read")
    os.close(gone._fd)
    host_queue._open_fifos.discard(gone._fd)
    assert _append(_transaction(table), add_file("f"))() == 1
    assert os.listdir(queue.folder) == ["1.version"]


def test_a_leader_begins_after_what_others_committed(table: str) -> None:
    os.makedirs(_queue(table)[0].folder)
    Path(_queue(table)[0].folder).parent.chmod(0o700)
    late = _transaction(table)
    for name in ("f1", "f2"):
        _append(_transaction(table), add_file(name))()
    assert _append(late, add_file("late"))() == 3
    assert [each.attempt for each in late.attempts] == [1]
    assert len(late.attempts) == 1


def test_what_was_said_of_a_table_that_is_gone_is_not_taken_over(table: str) -> None:
    queue, _ = _queue(table)
    os.makedirs(queue.folder)
    Path(queue.folder).parent.chmod(0o700)
    for name in ("old1", "old2"):
        _append(_transaction(table), add_file(name))()
    shutil.rmtree(table.removeprefix("file:"))
    new_table(table)
    assert queue.shared(1) is not None
    txn = _transaction(table)
    assert _append(txn, add_file("new"))() == 1
    assert _paths(table) == ["new"]


def test_a_handler_that_commits_within_a_commit_does_not_wait_for_itself(table: str) -> None:
    inner = _append(_transaction(table), add_file("inner"))
    log = DeltaLog.for_table(table, HOST)
    write = log.store.write

    def writing(path: str, lines: Any, *, overwrite: bool = False) -> None:
        log.store.write = write  # type: ignore[method-assign]
        assert inner() == 1
        write(path, lines, overwrite=overwrite)

    txn = log.start_transaction()
    log.store.write = writing  # type: ignore[method-assign]
    assert _append(txn, add_file("outer"))() == 2
    assert _paths(table) == ["inner", "outer"]


def test_a_member_that_was_moved_but_not_sent_commits_by_itself(table: str) -> None:
    take = host_queue.Group.take
    commits = [_append(_transaction(table), add_file(f"f{n}")) for n in range(3)]
    moved: list[str] = []

    def taking(self: host_queue.Group, name: str) -> bool:
        moved.append(name)
        is_moved = take(self, name)
        return is_moved and len(moved) != 2  # as on a share, where the answer is lost

    with mock.patch.object(host_queue.Group, "take", taking):
        assert sorted(_in_one_turn(table, *commits)) == [1, 1, 2]
    assert _paths(table) == ["f0", "f1", "f2"]


def test_a_request_that_was_moved_though_the_move_failed_is_not_sent_twice(table: str) -> None:
    rename = os.rename

    def moving(source: str, target: str) -> None:
        rename(source, target)
        if target.endswith(".request"):
            raise OSError(errno.EIO, "the reply is lost")

    commits = [_append(_transaction(table), add_file(f"f{n}")) for n in range(3)]
    with mock.patch("lakelog.core.transaction.host_queue.os.rename", moving):
        assert _in_one_turn(table, *commits) == [1, 1, 1]
    assert _paths(table) == ["f0", "f1", "f2"]


@pytest.mark.parametrize("call", ["_open_lock_file", "lock_file"])
def test_who_can_not_lock_commits_alone(table: str, call: str) -> None:
    def read_only(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    with mock.patch(f"lakelog.logstores.locks.{call}", read_only):
        assert _append(_transaction(table), add_file("f"))() == 1
    assert _paths(table) == ["f"]


def test_a_queue_that_can_not_be_read_leaves_no_commit_called_failed(table: str) -> None:
    queue, key = _queue(table)
    txns = [_transaction(table) for _ in range(2)]

    def unreadable(_self: object) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    # One that waits goes on alone; of one that was taken nothing is known.
    with host_lock(key), mock.patch.object(host_queue.Ticket, "is_waiting", unreadable):
        assert _append(txns[0], add_file("f0"))() == 1

    def taken(self: host_queue.Ticket, _seconds: float) -> None:
        group = host_queue.Group(queue, "g")
        group.make()
        assert group.take(self.name)

    with (
        host_lock(key),
        mock.patch.object(host_queue.Ticket, "wait", taken),
        mock.patch.object(host_queue.Group, "last", unreadable),
        pytest.raises(CommitOutcomeUnknownError),
    ):
        _append(txns[1], add_file("f1"))()
    assert txns[1].may_be_committed


def test_a_request_that_makes_no_sense_stops_no_leader(table: str) -> None:
    queue, key = _queue(table)
    with host_lock(key):
        os.makedirs(queue.folder)
        odd = queue.enter(b"not read")
    try:
        assert _append(_transaction(table), add_file("f"))() == 1
        assert queue.waiting() == [odd.name]
    finally:
        odd.close()


def _group(folder: Path, number: str, step: str) -> Path:
    group = folder / "g.group"
    group.mkdir()
    (group / number).symlink_to(step)
    return group


def _empty_lines_of_one_who_waits(folder: Path) -> None:
    (_group(folder, "0", "again 1 lines") / "lines").touch()
    os.mkfifo(folder / "1-a.wake")
    (folder / "g.group" / "1-a").touch()


_NONSENSE: dict[str, Callable[[Path], object]] = {
    "unknown kind": lambda folder: _group(folder, "0", "nothing"),
    "no version": lambda folder: _group(folder, "0", "try x y"),
    "more than lines": lambda folder: _group(folder, "0", "again 1 a b c"),
    "no lines": lambda folder: _group(folder, "0", "again 1"),
    "odd digit": lambda folder: _group(folder, "\N{SUPERSCRIPT TWO}", "try 1 lines"),
    "empty lines": _empty_lines_of_one_who_waits,
    "group that is a file": lambda folder: (folder / "g.group").touch(),
    "version that is no text": lambda folder: (folder / "1.version").write_bytes(
        b"\xff\xfe\nlines"
    ),
    "version that is a folder": lambda folder: (folder / "1.version").mkdir(),
    "odd version": lambda folder: (folder / "\N{SUPERSCRIPT TWO}.version").touch(),
    "odd process": lambda folder: (folder / "\N{SUPERSCRIPT TWO}-a.wake").touch(),
    "request that is a folder": lambda folder: (folder / "1-a.request").mkdir(),
}


@pytest.mark.parametrize("leave", _NONSENSE.values(), ids=_NONSENSE)
def test_what_makes_no_sense_in_the_queue_stops_no_commit(
    table: str, leave: Callable[[Path], object]
) -> None:
    queue, key = _queue(table)
    with host_lock(key):
        os.makedirs(queue.folder)
    leave(Path(queue.folder))
    kept = [
        os.open(each, os.O_RDWR | os.O_NONBLOCK)
        for each in Path(queue.folder).glob("*.wake")
        if each.is_fifo()
    ]
    try:
        for version in (1, 2):
            assert _append(_transaction(table), add_file(f"f{version}"))() == version
    finally:
        for fd in kept:
            os.close(fd)


def test_what_was_committed_with_others_and_can_not_be_read_is_in_doubt(table: str) -> None:
    queue, key = _queue(table)
    txn = _transaction(table)

    def taken(self: host_queue.Ticket, _seconds: float) -> None:
        group = host_queue.Group(queue, "g")
        group.make()
        assert group.take(self.name)
        name = group.keep(b"nothing that was ever sent")
        assert group.add(host_queue.Step("try", 1, name))
        assert group.add(host_queue.Step("landed", 1))

    patched = mock.patch.object(host_queue.Ticket, "wait", taken)
    with patched, host_lock(key), pytest.raises(CommitOutcomeUnknownError, match="can't be read"):
        _append(txn, add_file("f"))()
    assert txn.may_be_committed


class _JobTimeoutError(Exception):
    """As the handler of an alarm raises it."""


@pytest.mark.parametrize("error", [_JobTimeoutError, TimeoutError])
@pytest.mark.parametrize("is_taken", [False, True])
def test_whose_job_is_ended_while_it_waits_does_not_go_on(
    table: str, is_taken: bool, error: type[Exception]
) -> None:
    queue, key = _queue(table)
    txn = _transaction(table)

    def ended(self: host_queue.Ticket, _seconds: float) -> None:
        if is_taken:
            group = host_queue.Group(queue, "g")
            group.make()
            assert group.take(self.name)
        raise error("the job took too long")

    # Another one may commit what it took: that must not be called a failure.
    expected = CommitOutcomeUnknownError if is_taken else error
    patched = mock.patch.object(host_queue.Ticket, "wait", ended)
    with patched, host_lock(key), pytest.raises(expected) as raised:
        _append(txn, add_file("f"))()
    assert txn.may_be_committed is is_taken
    if is_taken:
        assert isinstance(raised.value.__cause__, CommitOutcomeUnknownError)
        assert isinstance(raised.value.__cause__.__cause__, error)
    assert _paths(table) == []


def test_whose_job_is_ended_while_it_asks_for_the_turn_does_not_go_on(table: str) -> None:
    txn = _transaction(table)
    ended = mock.patch.object(fcntl, "flock", side_effect=TimeoutError("the job took too long"))
    with ended, pytest.raises(TimeoutError, match="took too long"):
        _append(txn, add_file("f"))()
    assert not txn.may_be_committed
    assert _paths(table) == []


def test_descriptors_from_1024_on_are_waited_for(table: str) -> None:
    queue, key = _queue(table)
    with host_lock(key):
        os.makedirs(queue.folder)
        ticket = queue.enter(b"a request")
    low = ticket._fd
    ticket._fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 1500)
    try:
        queue.wake(ticket.name)
        ticket.wait(_PATIENCE)
    finally:
        os.close(ticket._fd)
        ticket._fd = low
        ticket.close()


def test_several_may_settle_one_group(table: str) -> None:
    queue, key = _queue(table)
    commits = HostCommits(DeltaLog.for_table(table, HOST))
    with host_lock(key):
        os.makedirs(queue.folder)
        ticket = queue.enter(b"a request")
    group = host_queue.Group(queue, "g")
    group.make()
    assert group.take(ticket.name)
    assert group.add(host_queue.Step("try", 1, "lines"))
    sent = threading.Barrier(3)

    def send_again(self: HostCommits, _group: object, step: host_queue.Step) -> host_queue.Step:
        sent.wait(_PATIENCE)  # all are at it
        return host_queue.Step("landed", step.version)

    found: list[host_queue.Step] = []
    settle = [
        threading.Thread(target=lambda: found.append(commits._settle(host_queue.Group(queue, "g"))))
        for _ in range(3)
    ]
    with mock.patch.object(HostCommits, "_send_again", send_again):
        for thread in settle:
            thread.start()
        for thread in settle:
            thread.join(_PATIENCE)
    ticket.close()
    assert found == [host_queue.Step("landed", 1)] * 3
    assert sorted(each for each in os.listdir(queue.path("g.group")) if each.isdigit()) == [
        "0",
        "1",
        "2",
    ]


def test_another_endpoint_in_the_environment_is_another_queue(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = {_queue(table)[1]}
    for name, value in {
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1",
        "STORAGE_EMULATOR_HOST": "127.0.0.1:2",
        "HTTPS_PROXY": "http://127.0.0.1:3",
        "AWS_PROFILE": "other",
    }.items():
        monkeypatch.setenv(name, value)
        keys.add(_queue(table)[1])
    assert len(keys) == 5
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    assert _queue(table)[1] in keys


def test_what_is_kept_of_versions_is_bounded(table: str) -> None:
    queue, _ = _queue(table)
    os.makedirs(queue.folder)
    # Others on another host make the versions between.
    for version in range(0, 1000, 7):
        queue.share(version, b"lines")
    assert len(os.listdir(queue.folder)) <= 100 // 7 + 1
    queue.share(3, b"of a table that was made again")
    assert os.listdir(queue.folder) == ["3.version"]


def test_folders_of_tables_that_are_gone_go(table: str) -> None:
    queue, key = _queue(table)
    with host_lock(key):
        pass
    parent = Path(queue.folder).parent
    idle, used = parent / "idle.queue", host_queue.HostQueue(str(parent / "used.queue"))
    for folder in (idle, Path(used.folder)):
        (folder / "g.group").mkdir(parents=True)
    lock = parent / "idle.lock"
    lock.touch()
    ticket = used.enter(b"a request")
    for each in (idle, Path(used.folder), lock):
        os.utime(each, (0, 0))
    queue.enter(b"a request").close()
    assert not idle.exists()
    assert lock.exists()  # another process may hold it
    assert Path(used.folder).exists()  # whoever waits there isn't old, whatever the clock says
    ticket.close()
