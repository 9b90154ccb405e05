"""Appends that a service commits are there once, whatever is lost on the way."""

from __future__ import annotations

import errno
import itertools
import json
import shutil
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from lakelog.core import DeltaLog, Operation, appender, read_arrow, restore, write_arrow
from lakelog.core.actions import SetTransaction
from lakelog.core.commit.prepare import engine_info
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentTransactionException,
    DeltaAnalysisError,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    TornCommitError,
)
from lakelog.core.log.commit_identity import GROUP_TAG
from lakelog.core.transaction import commit_service, committer, service_commit
from lakelog.core.transaction.commit_service import CommitService, ServedLog
from lakelog.core.transaction.committer import Committer
from lakelog.core.transaction.group import CommitGroups, Joined, joint_actions, joint_operation
from lakelog.core.transaction.host_commit import HostCommits
from lakelog.core.transaction.requests import FORM, kind_of
from lakelog.core.wire import LostReplyError, NotSentError, Reply
from lakelog.logstores import LocalLogStore
from support.manual_clock import ManualClock
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core import OptimisticTransaction
    from lakelog.core.actions import CommitInfo
    from lakelog.core.state.snapshot import Snapshot

APPEND = Operation.write("Append")
_ports = itertools.count(1)
_PATIENCE = 60.0


class Network:
    """The way to a service, on which one thing after the other goes wrong."""

    def __init__(self, table: str) -> None:
        self.table = Path(table)
        self.service = CommitService([table], {})
        self.faults: list[Callable[[bytes], Reply]] = []
        self.asked = 0
        self.kept: list[bytes] = []
        self.conf = {
            # Of its own, as a process remembers which service is away.
            "spark.lakelog.commit.service": f"http://service-{next(_ports)}.invalid",
            "spark.lakelog.commit.service.token": "secret-token",
        }

    def send(self, body: bytes) -> Reply:
        self.asked += 1
        return self.faults.pop(0)(body) if self.faults else self.arrive(body)

    def arrive(self, body: bytes) -> Reply:
        answer = self.service.answer(body)
        return Reply(answer.status, answer.body, None, None)

    def down(self, _body: bytes) -> Reply:
        raise NotSentError("refused")

    def lost(self, body: bytes) -> Reply:
        """The request does not arrive before it is `delivered`."""
        self.kept.append(body)
        raise LostReplyError("reset")

    def unheard(self, body: bytes) -> Reply:
        """It is committed, and the reply is lost."""
        self.arrive(body)
        raise LostReplyError("reset")

    def proxy(self, body: bytes) -> Reply:
        self.arrive(body)
        return Reply(502, b"<html>Bad gateway</html>", None, None)

    def nonsense(self, body: bytes) -> Reply:
        self.arrive(body)
        return Reply(200, b'{"version":"x","service":"s","attempts":[]}', None, None)

    def elsewhere(self, body: bytes) -> Reply:
        """It commits to another table, which this one is a copy of: here no version comes."""
        found = self.arrive(body)
        for file in (self.table / "_delta_log").glob("*1.*"):
            file.unlink()
        return found

    def refusing(self, _body: bytes) -> Reply:
        return Reply(409, b'{"refused":"no"}', None, None)

    def deliver(self) -> list[Reply]:
        return [self.arrive(each) for each in self.kept]


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A table that two hosts share."""
    return new_table(str(tmp_path / "t")).table


@pytest.fixture
def network(table: str) -> Iterator[Network]:
    """A service for it."""
    made = Network(table)

    def send(_self: object, body: bytes, token: str, seconds: float) -> Reply:
        assert token == "secret-token"
        assert 0 < seconds <= 90
        return made.send(body)

    with mock.patch.object(service_commit._Service, "send", send):
        yield made


def _begun(network: Network, table: str) -> OptimisticTransaction:
    return DeltaLog.for_table(table, network.conf).start_transaction()


def _places(table: str) -> dict[str, list[int]]:
    """The versions that add each file."""
    log = DeltaLog.for_table(table)
    found: dict[str, list[int]] = {}
    for entry in log.history():
        lines = log.store.read(f"{log.table}/_delta_log/{entry.version:020}.json")
        for line in lines:
            if "add" in (action := json.loads(line)):
                found.setdefault(action["add"]["path"], []).append(entry.version)
    return found


FAULTS = (
    ["down"],
    ["lost"],
    ["unheard"],
    ["proxy"],
    ["nonsense"],
    ["elsewhere"],
    ["refusing"],
    ["lost", "down"],
    ["unheard", "down"],
    ["lost", "refusing"],
    ["unheard", "refusing"],
    ["unheard", "lost", "unheard"],
    ["lost", "lost", "lost"],
    ["unheard", "unheard", "unheard"],
)


@pytest.mark.parametrize("faults", FAULTS, ids="-".join)
def test_whatever_is_lost_the_append_is_there_once_and_its_writer_knows_where(
    table: str, network: Network, faults: list[str]
) -> None:
    network.faults = [getattr(network, each) for each in faults]
    txn = _begun(network, table)
    version = txn.commit([add_file("f")], APPEND)
    assert txn.may_be_committed
    assert _places(table) == {"f": [version]}
    for late in network.deliver():  # what was on its way finds it
        assert json.loads(late.body.split(b"\n")[0])["version"] == version
    assert _places(table) == {"f": [version]}
    log = txn._committer.delta_log
    assert log.snapshot.version == log.update().version == version
    assert [each.path for each in log.snapshot.files()] == ["f"]


def test_those_who_wait_are_committed_as_one_version(table: str, network: Network) -> None:
    txns = [_begun(network, table) for _ in range(5)]
    leads, entered = threading.Event(), threading.Semaphore(0)
    enter, lead = CommitGroups.enter, CommitGroups._lead

    def entering(self: CommitGroups, member: Any) -> None:
        enter(self, member)
        entered.release()

    def leading(self: CommitGroups, *args: Any) -> int | None:
        assert leads.wait(_PATIENCE)
        return lead(self, *args)

    with (
        mock.patch.object(CommitGroups, "enter", entering),
        mock.patch.object(CommitGroups, "_lead", leading),
        ThreadPoolExecutor(5) as pool,
    ):
        told = [pool.submit(txn.commit, [add_file(f"f{n}")], APPEND) for n, txn in enumerate(txns)]
        for _ in txns:
            assert entered.acquire(timeout=_PATIENCE)
        leads.set()
        assert [each.result(_PATIENCE) for each in told] == [1] * 5
    info = DeltaLog.for_table(table).snapshot.commit_info
    assert info is not None
    ids = (info.tags or {})["lakelog.groupTxnIds"].split(",")
    assert sorted(ids) == sorted(each._committer.txn_id for each in txns)
    for txn in txns:
        assert [(each.outcome, each.committed_version) for each in txn.attempts] == [
            ("committed", 1)
        ]


def test_a_client_that_went_on_alone_is_found_by_a_request_that_waits(
    table: str, network: Network
) -> None:
    # Looked up, and not there; then its client, which lost the reply, commits by itself.
    network.faults = [network.lost, network.down]
    txn, late = _begun(network, table), _begun(network, table)
    find, told = ServedLog.find, list[int]()

    def finding(self: ServedLog, *args: Any) -> int | None:
        found = find(self, *args)
        if not told:
            told.append(txn.commit([add_file("f")], APPEND))
            late.commit([add_file("g")], APPEND)  # by the service, which so knows newer versions
        return found

    with mock.patch.object(ServedLog, "find", finding):
        waits = network.kept or [_body(txn, table)]
        answer = network.arrive(waits[0])
    assert json.loads(answer.body.split(b"\n")[0])["version"] == told[0]
    assert _places(table) == {"f": [1], "g": [2]}


def _body(txn: OptimisticTransaction, table: str) -> bytes:
    """The request of a transaction, before its own commit makes it."""
    about = {
        "engine": [engine_info(), FORM],
        "table": table,
        "read": 0,
        "readTxnId": None,
    }
    read = txn._committer._snapshot
    assert read is not None
    joined = _joined(txn, "f")
    header = {
        "kind": kind_of(joined, read),
        "txnId": joined.txn_id,
        "readAt": 0,
        "apps": {},
        "hasWritten": False,
        "name": APPEND.name,
        "parameters": dict(APPEND.parameters),
        "metrics": {},
        "note": None,
        "tags": {},
        "actions": 1,
    }
    lines = [json.dumps(each) for each in (about, header)]
    return "\n".join([*lines, joined.actions[0].to_json()]).encode()


def _joined(txn: OptimisticTransaction, file: str) -> Joined:
    return Joined(
        txn_id=txn._committer.txn_id,
        read_at_ms=0,
        actions=[add_file(file)],
        operation=APPEND,
        apps=frozenset(),
    )


def test_a_version_of_several_is_not_made_once_one_of_them_is_there(table: str) -> None:
    log = DeltaLog.for_table(table)
    base = log.snapshot
    alone, other = (DeltaLog.for_table(table).start_transaction() for _ in range(2))
    members = [_joined(alone, "f"), _joined(other, "g")]
    assert alone.commit([add_file("f")], APPEND) == 1
    joint = Committer.of_others(log, base, members)
    with pytest.raises(DeltaConcurrentModificationException, match="holds transactions of this"):
        joint.commit(joint_actions(members), joint_operation(members))
    assert not joint.may_be_committed
    assert other.commit([add_file("g")], APPEND) == 2
    assert _places(table) == {"f": [1], "g": [2]}


def test_who_is_in_a_version_of_several_finds_it_there(table: str) -> None:
    log = DeltaLog.for_table(table)
    txns = [DeltaLog.for_table(table).start_transaction() for _ in range(2)]
    members = [_joined(txns[0], "f"), _joined(txns[1], "g")]
    joint = Committer.of_others(log, log.snapshot, members)
    assert joint.commit(joint_actions(members), joint_operation(members)) == 1
    assert txns[0].commit([add_file("f")], APPEND) == 1
    own = txns[0]._committer.delta_log
    assert sorted(each.path for each in own.snapshot.files()) == ["f", "g"]
    assert _places(table) == {"f": [1], "g": [1]}


def _alter(table: str) -> None:
    txn = DeltaLog.for_table(table).start_transaction()
    txn.update_metadata(replace(txn.metadata, description=str(uuid.uuid4())))
    txn.commit([], Operation("SET TBLPROPERTIES"))


@pytest.mark.parametrize("then", ["down", "refusing", "lost"])
def test_what_a_lost_request_may_still_do_is_an_unknown_outcome(
    table: str, network: Network, then: str
) -> None:
    network.faults = [network.lost, getattr(network, then), network.lost]
    txn = _begun(network, table)
    _alter(table)
    for _ in range(2):  # asking again makes nothing more certain
        with pytest.raises(CommitOutcomeUnknownError, match="another process was asked") as caught:
            txn.commit([add_file("f")], APPEND)
        assert isinstance(caught.value.__cause__, MetadataChangedException)
        assert txn.may_be_committed
    assert _places(table) == {}


def test_a_conflict_that_nobody_was_asked_about_is_a_conflict(table: str, network: Network) -> None:
    txn = _begun(network, table)
    _alter(table)
    with pytest.raises(MetadataChangedException):
        txn.commit([add_file("f")], APPEND)
    assert not txn.may_be_committed


def test_batches_of_one_application_conflict_as_ever(table: str, network: Network) -> None:
    txns = [_begun(network, table) for _ in range(2)]
    batch = SetTransaction(app_id="a", version=1)
    assert [each.txn_version("a") for each in txns] == [-1, -1]
    assert txns[0].commit([add_file("f"), batch], APPEND) == 1
    with pytest.raises(ConcurrentTransactionException):
        txns[1].commit([add_file("g"), batch], APPEND)
    assert _places(table) == {"f": [1]}


def test_a_service_that_is_away_is_said_once_and_not_asked_again_at_once(
    table: str, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    network.faults = [network.down] * 9
    for number in range(3):
        _begun(network, table).commit([add_file(f"f{number}")], APPEND)
    assert network.asked == 1
    (said,) = [each.getMessage() for each in caplog.records if "made here" in each.getMessage()]
    assert "can't be reached" in said
    assert "secret-token" not in caplog.text


def test_a_service_that_stands_still_is_not_waited_for_at_each_commit(
    table: str, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    monkeypatch.setattr(service_commit, "time", clock)

    def still(_body: bytes) -> Reply:
        clock.advance(90)
        raise LostReplyError("timed out")

    network.faults = [still, still]
    for number, (pause, asked) in enumerate([(0, 1), (80, 1), (11, 2), (91, 3)], 1):
        clock.advance(pause)
        assert _begun(network, table).commit([add_file(f"f{number}")], APPEND) == number
        assert network.asked == asked


@pytest.mark.parametrize("status", [408, 429, 502, 503, 504])
def test_the_word_of_a_proxy_proves_nothing_and_deletes_nothing(
    network: Network, status: int
) -> None:
    table = str(network.table)
    write_arrow(table, {"id": [0]}, mode="overwrite", schema_mode="overwrite")

    def answered(body: bytes) -> Reply:
        network.kept.append(body)  # it is on its way all the same
        _alter(table)
        return Reply(status, b"upstream connect error", None, None)

    network.faults = [answered]
    with pytest.raises(CommitOutcomeUnknownError):
        write_arrow(table, {"id": [1]}, mode="append", conf=network.conf)
    assert len(list(network.table.glob("*.parquet"))) == 2


def test_a_request_that_comes_very_late_finds_its_commit_or_is_refused(
    table: str, network: Network
) -> None:
    network.faults = [network.lost, network.down]
    txn = _begun(network, table)
    assert txn.commit([add_file("f")], APPEND) == 1
    for number in range(9):
        DeltaLog.for_table(table).start_transaction().commit([add_file(f"g{number}")], APPEND)
    for most in (9, 8):  # it is 9 versions behind
        network.service = CommitService([table], {})  # which has committed nothing
        with mock.patch.object(commit_service, "_MOST_BEHIND", most + 1):
            (late,) = network.deliver()
        assert late.status == (200 if most == 9 else 409)
    assert _places(table)["f"] == [1]


def _drop(table: str) -> None:
    shutil.rmtree(table)


def _make_again(table: str) -> None:
    shutil.rmtree(table)
    new_table(table)


def _set_back(table: str) -> None:
    restore(table, 1)


_MEANWHILE: dict[Callable[[str], None], dict[str, list[int]]] = {
    _drop: {},
    _make_again: {},
    _alter: {"f": [1], "g": [2]},
    _set_back: {"f": [1], "g": [2], "a": [4], "b": [4]},
}
"""And the files that there are, then; `a` and `b` are those of requests that waited."""


@pytest.mark.parametrize("meanwhile", _MEANWHILE, ids=lambda each: each.__name__)
def test_what_becomes_of_a_table_while_requests_wait_is_minded(
    table: str, network: Network, meanwhile: Callable[[str], None]
) -> None:
    for name in ("f", "g"):
        _begun(network, table).commit([add_file(name)], APPEND)
    txns = [_begun(network, table) for _ in range(2)]
    goes_on, entered = threading.Event(), threading.Semaphore(0)
    enter, lead = CommitGroups.enter, CommitGroups._lead

    def entering(self: CommitGroups, member: Any) -> None:
        enter(self, member)
        entered.release()

    def leading(self: CommitGroups, *args: Any) -> int | None:
        assert goes_on.wait(_PATIENCE)
        return lead(self, *args)

    with (
        mock.patch.object(CommitGroups, "enter", entering),
        mock.patch.object(CommitGroups, "_lead", leading),
        ThreadPoolExecutor(2) as pool,
    ):
        told = [
            pool.submit(txn.commit, [add_file(name)], APPEND)
            for name, txn in zip("ab", txns, strict=True)
        ]
        for _ in txns:
            assert entered.acquire(timeout=_PATIENCE)
        meanwhile(table)
        goes_on.set()
        failures = [each.exception(_PATIENCE) for each in told]
    found = {} if meanwhile is _drop else _places(table)
    assert (meanwhile is _drop) != DeltaLog.for_table(table).table_exists()
    assert found.keys() == _MEANWHILE[meanwhile].keys()
    for name, failure, txn in zip("ab", failures, txns, strict=True):
        assert (failure is None) == (name in found)
        assert failure is None or not txn.may_be_committed


def test_two_services_of_one_table_and_clients_of_both(table: str, network: Network) -> None:
    services, turns = [network.service, CommitService([table], {})], itertools.count()

    def either(body: bytes) -> Reply:
        answer = services[next(turns) % 2].answer(body)
        return Reply(answer.status, answer.body, None, None)

    network.faults = [either] * 24
    with ThreadPoolExecutor(6) as pool:
        told = {
            f"f{number}": pool.submit(
                lambda name: _begun(network, table).commit([add_file(name)], APPEND), f"f{number}"
            )
            for number in range(24)
        }
    assert _places(table) == {name: [each.result()] for name, each in told.items()}


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_client_whose_clock_is_wrong_by_hours(
    tmp_path: Path, network: Network, hours: int
) -> None:
    own = {"delta.enableInCommitTimestamps": "true"}
    table = new_table(str(tmp_path / "timed"), properties=own).table
    network.service = CommitService([table], {})
    clock = ManualClock(int(time.time() * 1000) + hours * 3600_000)
    for number in (1, 2):
        log = DeltaLog.for_table(table, network.conf, clock if number == 1 else None)
        assert log.start_transaction().commit([add_file(f"f{number}")], APPEND) == number
    assert network.asked == 2
    times = [entry.timestamp for entry in DeltaLog.for_table(table).history()]
    assert times == sorted(times, reverse=True)
    assert abs(times[0] / 1000 - time.time()) < 600  # by the clock of the service


def test_a_service_whose_disk_is_full_leaves_the_commit_to_its_client(
    table: str, network: Network
) -> None:
    write, is_full = LocalLogStore.write, [False]

    def writing(store: LocalLogStore, *args: Any, **more: Any) -> None:
        if is_full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(store, *args, **more)

    def full(body: bytes) -> Reply:
        is_full[0] = True
        try:
            return network.arrive(body)
        finally:
            is_full[0] = False

    network.faults = [full]
    with mock.patch.object(LocalLogStore, "write", writing):
        assert _begun(network, table).commit([add_file("f")], APPEND) == 1
        assert _begun(network, table).commit([add_file("g")], APPEND) == 2
    assert _places(table) == {"f": [1], "g": [2]}
    assert network.asked == 2


@pytest.mark.parametrize("how", ["host", "group"])
@pytest.mark.parametrize("faults", [["down"], ["refusing"], ["lost"] * 3])
def test_where_the_service_makes_no_commit_the_queue_of_the_host_does(
    table: str, network: Network, faults: list[str], how: str
) -> None:
    network.conf[f"spark.lakelog.commit.{how}"] = "true"
    network.faults = [getattr(network, each) for each in faults]
    txns = [_begun(network, table) for _ in range(2)]
    place: Any = HostCommits if how == "host" else CommitGroups
    with mock.patch.object(place, "commit", autospec=True, side_effect=place.commit) as queued:
        for number, txn in enumerate(txns, 1):
            assert txn.commit([add_file(f"f{number}")], APPEND) == number
            network.service = CommitService(["/elsewhere"], {})  # refuses
    # What may still be committed by the service is nobody's but this process's.
    assert queued.call_count == (1 if faults[0] == "lost" else 2)
    assert _places(table) == {"f1": [1], "f2": [2]}


def test_an_interrupted_wait_leaves_the_outcome_open(table: str, network: Network) -> None:
    def interrupt(_body: bytes) -> Reply:
        raise KeyboardInterrupt

    def stopped(_body: bytes) -> Reply:
        raise RuntimeError("out of time")

    network.faults = [interrupt, stopped]
    txn = _begun(network, table)
    with pytest.raises(KeyboardInterrupt) as caught:
        txn.commit([add_file("f")], APPEND)
    assert "it landed if" in caught.value.__notes__[0]
    assert txn.may_be_committed
    other = _begun(network, table)
    with pytest.raises(CommitOutcomeUnknownError):
        other.commit([add_file("g")], APPEND)
    assert other.may_be_committed


def test_what_fails_before_it_tries_is_unknown_too_after_a_lost_request(
    table: str, network: Network
) -> None:
    network.faults = [network.lost] * 3
    txn = _begun(network, table)
    held = mock.Mock(side_effect=TimeoutError("another writer holds the lock"))
    with (
        mock.patch.object(committer, "hold_lock", held),
        pytest.raises(CommitOutcomeUnknownError),
    ):
        txn.commit([add_file("f")], APPEND)
    assert txn.may_be_committed
    network.deliver()
    assert _places(table) == {"f": [1]}


def test_an_appender_finds_its_rows_that_were_committed_unheard(network: Network) -> None:
    write_arrow(network.table, {"id": [0]}, mode="overwrite", schema_mode="overwrite")
    hold: Any = vars(committer)["hold_lock"]
    held = [TimeoutError("another writer holds the lock")]
    is_lost = threading.Event()

    def unheard(body: bytes) -> Reply:
        network.arrive(body)
        is_lost.set()
        raise LostReplyError("reset")

    def once(*given: Any, **named: Any) -> Any:
        if is_lost.is_set() and held:
            raise held.pop()
        return hold(*given, **named)

    network.faults = [unheard, network.lost, network.lost]
    with (
        mock.patch.object(committer, "hold_lock", once),
        appender(str(network.table), app_id="a", every="50ms", conf=network.conf) as rows,
    ):
        rows.append([{"id": 1}], seq=1)
        rows.flush()
    assert held == []
    assert sorted(read_arrow(network.table)["id"].to_pylist()) == [0, 1]


def test_an_interruption_after_the_answer_leaves_the_outcome_open(
    table: str, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(body: bytes) -> Reply:
        reply = network.arrive(body)
        stopped = mock.Mock(side_effect=RuntimeError("out of time"))
        monkeypatch.setattr(committer, "observed_wait", stopped)
        return reply

    network.faults = [stopping]
    txn = _begun(network, table)
    with pytest.raises(CommitOutcomeUnknownError):
        txn.commit([add_file("f")], APPEND)
    assert txn.may_be_committed
    assert _places(table) == {"f": [1]}


@pytest.mark.parametrize("is_asked_again", [False, True])
def test_half_a_version_that_names_the_commit_is_not_taken_for_it(
    table: str, network: Network, is_asked_again: bool
) -> None:
    def torn(body: bytes) -> Reply:
        network.arrive(body)
        path = network.table / "_delta_log" / f"{1:020}.json"
        path.write_bytes(path.read_bytes().split(b"\n")[0] + b"\n")
        network.service = CommitService([table], {})  # it was killed, and runs again
        raise LostReplyError("reset")

    network.faults = [torn] if is_asked_again else [torn, network.lost, network.lost]
    with pytest.raises(TornCommitError):
        _begun(network, table).commit([add_file("f")], APPEND)


def test_no_proxy_is_shown_the_token_of_a_service_of_this_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://proxy.invalid:3128")
    for host, proxy in (("127.0.0.1", None), ("[::1]", None), ("10.0.0.5", "proxy.invalid")):
        found = service_commit._Service(f"http://{host}:1", None)._wire._proxy()
        assert (found and found.hostname) == proxy


def test_what_reads_or_removes_is_not_left_to_others(table: str, network: Network) -> None:
    txn = _begun(network, table)
    txn.filter_files()
    txn.commit([add_file("f")], APPEND)
    assert network.asked == 0


def test_the_same_request_at_the_same_time_is_committed_once(table: str, network: Network) -> None:
    txn = _begun(network, table)
    body, begun, go_on = _body(txn, table), threading.Event(), threading.Event()
    find = ServedLog.find

    def finding(self: ServedLog, *args: Any) -> int | None:
        begun.set()
        assert go_on.wait(_PATIENCE)
        return find(self, *args)

    with mock.patch.object(ServedLog, "find", finding), ThreadPoolExecutor(2) as pool:
        first = pool.submit(network.arrive, body)
        assert begun.wait(_PATIENCE)
        second = pool.submit(network.arrive, body)
        go_on.set()
        assert first.result(_PATIENCE).body == second.result(_PATIENCE).body
    assert _places(table) == {"f": [1]}


def test_a_service_that_stops_ends_what_it_began_and_takes_no_more(
    table: str, network: Network
) -> None:
    body = _body(_begun(network, table), table)
    assert network.service.close(1.0)
    answer = network.arrive(body)
    assert (answer.status, json.loads(answer.body)["refused"]) == (
        409,
        "the service is about to stop",
    )


def _changed(place: int, **values: Any) -> Callable[[bytes], bytes]:
    def change(body: bytes) -> bytes:
        lines = body.split(b"\n")
        lines[place] = json.dumps({**json.loads(lines[place]), **values}).encode()
        return b"\n".join(lines)

    return change


def _path(path: str) -> Callable[[bytes], bytes]:
    def change(body: bytes) -> bytes:
        *lines, action = body.split(b"\n")
        add = json.loads(action)["add"]
        return b"\n".join([*lines, json.dumps({"add": {**add, "path": path}}).encode()])

    return change


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "empty": (lambda _: b"", 400),
    "no json": (lambda _: b"\xff\x00{", 400),
    "a list": (lambda _: b"[]\n[]\n[]", 400),
    "no actions": (lambda body: _changed(1, actions=0)(body.rpartition(b"\n")[0]), 400),
    "many lines": (lambda body: body + b"\n{}" * 1000, 400),
    "a removal": (
        lambda body: _changed(1, actions=2)(body) + b'\n{"remove":{"path":"f","dataChange":true}}',
        400,
    ),
    "metadata": (
        lambda body: _changed(1, actions=2)(body) + b'\n{"protocol":{"minReaderVersion":1}}',
        400,
    ),
    "fewer actions than it says": (_changed(1, actions=2), 400),
    "an action more than it says": (lambda body: body + b"\n" + body.rpartition(b"\n")[2], 400),
    "an id that names two": (_changed(1, txnId="a,b"), 400),
    "no id": (_changed(1, txnId=None), 400),
    "a group of its own": (_changed(1, tags={"lakelog.groupTxnIds": "x"}), 400),
    "tags of no text": (_changed(1, tags={"a": 1}), 400),
    "metrics of no number": (_changed(1, metrics={"a": []}), 400),
    "a file elsewhere": (_path("/etc/passwd"), 400),
    "a file of another scheme": (_path("s3://bucket/f"), 400),
    "a file beside the table": (_path("../other/f"), 400),
    "a file beside it, hidden": (_path("a/%2e%2e/%2e%2e/other/f"), 400),
    "a time that is none": (_changed(1, readAt="x"), 400),
    "a negative version": (_changed(0, read=-1), 400),
    "a version that is none": (_changed(0, read="0"), 400),
    "a version to come": (_changed(0, read=10**12), 409),
    "another table's version": (_changed(0, readTxnId=str(uuid.uuid4())), 409),
    "another kind": (_changed(1, kind="x"), 409),
    "another lakelog": (_changed(0, engine=["lakelog/0.0.1", 1]), 409),
    "another form": (_changed(0, engine=[engine_info(), 99]), 409),
    "a table elsewhere": (_changed(0, table="file:/etc"), 403),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_refused_and_changes_nothing(
    table: str, network: Network, name: str
) -> None:
    change, status = HOSTILE[name]
    answer = network.arrive(change(_body(_begun(network, table), table)))
    assert answer.status == status
    assert "refused" in json.loads(answer.body)
    assert _places(table) == {}


def test_a_request_that_is_cut_anywhere_changes_nothing(table: str, network: Network) -> None:
    body = _body(_begun(network, table), table)
    two = _changed(1, actions=2)(body) + body[body.rindex(b"\n") :].replace(b'"f"', b'"g"')
    for end in range(len(two)):
        assert network.arrive(two[:end]).status == 400
    assert _places(table) == {}
    assert network.arrive(two).status == 200
    assert _places(table) == {"f": [1], "g": [1]}


@pytest.mark.parametrize("path", ["/../t", "/..", "x", "/%2e%2e/t", "/./", "/a\nb", "/\x7f"])
def test_no_path_leads_out_of_the_roots(table: str, network: Network, path: str) -> None:
    body = _changed(0, table=table + path)(_body(_begun(network, table), table))
    assert network.arrive(body).status in (403, 409)


def test_another_lakelog_is_named(table: str, network: Network) -> None:
    body = _changed(0, engine=["lakelog/0.0.1", 1])(_body(_begun(network, table), table))
    assert "lakelog/0.0.1" in network.arrive(body).body.decode()


def test_a_copy_of_the_table_is_not_taken_for_it(
    table: str, network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    network.faults = [network.elsewhere]
    txn = _begun(network, table)
    assert txn.commit([add_file("f")], APPEND) == 1
    assert "another table" in caplog.text
    # Nor does the copy get more.
    assert _begun(network, table).commit([add_file("g")], APPEND) == 2
    assert network.asked == 1


def test_each_run_of_a_service_is_looked_at_once(table: str, network: Network) -> None:
    held, looked = service_commit.ServiceCommits._held, list[int]()

    def looking(self: service_commit.ServiceCommits, version: int) -> frozenset[str]:
        looked.append(version)
        return held(self, version)

    with mock.patch.object(service_commit.ServiceCommits, "_held", looking):
        for number in range(1, 5):
            assert _begun(network, table).commit([add_file(f"f{number}")], APPEND) == number
            if number == 2:
                network.service = CommitService([table], {})
    assert looked == [1, 3]


_DELTA = "spark.databricks.delta."


def _last_info(table: str) -> CommitInfo:
    info = DeltaLog.for_table(table).snapshot.commit_info
    assert info is not None
    return info


def test_a_version_says_of_its_transactions_what_their_clients_say(
    table: str, network: Network
) -> None:
    note = f"{_DELTA}commitInfo.userMetadata"
    told = Operation.write("Append", metrics={"numFiles": 1})
    here = {note: "the service's", f"{_DELTA}commitInfo.enabled": "false"}
    network.service = CommitService([table], {**here, f"{_DELTA}history.metricsEnabled": "false"})
    _begun(network, table).commit([add_file("f")], told)
    assert _last_info(table).user_metadata is None
    assert _last_info(table).operation_metrics == {"numFiles": "1"}
    network.conf[note] = "the client's"
    _begun(network, table).commit([add_file("g")], told)
    assert _last_info(table).user_metadata == "the client's"
    own = replace(told, user_metadata="its own")
    _begun(network, table).commit([add_file("h")], own)
    assert _last_info(table).user_metadata == "its own"
    assert network.asked == 3


@pytest.mark.parametrize("key", ["commitInfo.enabled", "history.metricsEnabled"])
def test_who_tells_less_of_its_commits_makes_them_itself(
    table: str, network: Network, key: str
) -> None:
    network.conf[_DELTA + key] = "false"
    _begun(network, table).commit([add_file("f")], Operation.write("Append", metrics={"n": 1}))
    assert network.asked == 0
    assert _last_info(table).operation_metrics is None


def test_a_service_lets_go_of_the_versions_that_it_made(table: str, network: Network) -> None:
    looks = list[int]()
    update = ServedLog.update

    def looking(log: ServedLog) -> Snapshot:
        found = update(log)
        looks.append(found.version)
        return found

    with (
        mock.patch.object(commit_service, "_LOOK_EVERY", 3),
        mock.patch.object(ServedLog, "update", looking),
    ):
        for number in range(8):
            _begun(network, table).commit([add_file(f"f{number}")], APPEND)
    assert looks == [0, 3, 6]


def test_a_service_finds_into_a_log_that_was_set_back(table: str, network: Network) -> None:
    for number in range(4):
        _begun(network, table).commit([add_file(f"f{number}")], APPEND)
    for file in (network.table / "_delta_log").glob("*[34].*"):
        file.unlink()
    _begun(network, table).commit([add_file("g")], APPEND)
    assert GROUP_TAG not in (_last_info(table).tags or {})  # by its client
    assert _begun(network, table).commit([add_file("h")], APPEND) == 4
    assert GROUP_TAG in (_last_info(table).tags or {})
    assert _places(table) == {"f0": [1], "f1": [2], "g": [3], "h": [4]}


def test_what_a_version_held_is_not_believed_of_another_table(table: str, network: Network) -> None:
    """The path may have become another's, with as many versions, between two requests."""
    log = ServedLog.for_table(table, {})
    txn = _begun(network, table)
    txn.commit([add_file("f")], APPEND)
    _begun(network, table).commit([add_file("g")], APPEND)
    base = log.update()
    log._held.update({1: frozenset({"of another"}), 2: frozenset({"of another, too"})})
    log.check(base)
    assert log.find(txn._committer.txn_id, range(1, 3)) == 1


@pytest.mark.parametrize("token", ["", "two words", "tökén"])
def test_a_conf_without_a_token_is_refused_before_anything_is_sent(
    table: str, network: Network, token: str
) -> None:
    network.conf["spark.lakelog.commit.service.token"] = token
    txn = _begun(network, table)
    with pytest.raises(DeltaAnalysisError, match=r"service.token") as caught:
        txn.commit([add_file("f")], APPEND)
    assert not token or token not in str(caught.value)
    assert network.asked == 0
    assert not txn.may_be_committed
