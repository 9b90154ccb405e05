from __future__ import annotations

import threading

import pytest

from lakelog.core.commit.lock import LockChoice, LockKind, choose_lock, hold_lock
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import Capabilities, Scope, UnsafeLogStoreError

SWITCH = "spark.databricks.delta.commitLock.enabled"
SINGLE = "spark.lakelog.unsafe.singleWriter"


def capabilities(scope: Scope) -> Capabilities:
    return Capabilities(
        exclusive_create=scope,
        partial_write_visible=False,
        atomic_overwrite=True,
        consistent_listing=True,
        ordered_listing=True,
        durable=True,
    )


@pytest.mark.parametrize(
    ("scope", "partial", "conf", "expected"),
    [
        (Scope.CLUSTER, False, {}, LockKind.NONE),
        (Scope.HOST, False, {}, LockKind.NONE),
        (Scope.PROCESS, False, {}, LockKind.PROCESS),
        (Scope.CLUSTER, True, {}, LockKind.PROCESS),
        (Scope.HOST, True, {}, LockKind.HOST),
        (Scope.PROCESS, True, {}, LockKind.PROCESS),
        (Scope.NONE, False, {SINGLE: "true"}, LockKind.PROCESS),
        (Scope.CLUSTER, False, {SWITCH: "true"}, LockKind.PROCESS),
        (Scope.HOST, True, {SWITCH: "true"}, LockKind.HOST),
        (Scope.PROCESS, True, {SWITCH: "false"}, LockKind.NONE),
    ],
)
def test_the_lock_makes_up_for_what_the_store_lacks(
    scope: Scope, partial: bool, conf: dict[str, str], expected: LockKind
) -> None:
    choice = choose_lock(capabilities(scope), partial, conf, store="ThatStore")
    assert choice.kind is expected
    assert choice.reason


@pytest.mark.parametrize("conf", [{}, {SWITCH: "true"}, {SWITCH: "false"}, {SINGLE: "false"}])
def test_a_store_that_excludes_no_one_is_refused_with_the_way_out_named(
    conf: dict[str, str],
) -> None:
    with pytest.raises(UnsafeLogStoreError, match=SINGLE) as caught:
        choose_lock(capabilities(Scope.NONE), False, conf, store="ThatStore")
    assert "ThatStore" in str(caught.value)


def test_a_switch_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(DeltaAnalysisError, match=SWITCH):
        choose_lock(capabilities(Scope.CLUSTER), False, {SWITCH: "maybe"})


@pytest.mark.parametrize("kind", [LockKind.PROCESS, LockKind.HOST])
def test_two_threads_never_hold_the_lock_of_one_table_at_once(kind: LockKind) -> None:
    choice = LockChoice(kind, "test")
    inside = 0
    most = 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with hold_lock(choice, f"/lock-test/{kind}"):
                with guard:
                    inside += 1
                    most = max(most, inside)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_lock_that_stays_taken_times_out() -> None:
    choice = LockChoice(LockKind.PROCESS, "test")
    with (
        hold_lock(choice, "/lock-test/busy"),
        pytest.raises(TimeoutError),
        hold_lock(choice, "/lock-test/busy", timeout=0),
    ):
        pass


def test_no_lock_excludes_no_one() -> None:
    choice = LockChoice(LockKind.NONE, "test")
    with hold_lock(choice, "/lock-test/none"), hold_lock(choice, "/lock-test/none") as nothing:
        assert nothing is None


def test_a_log_says_whether_commits_lock_and_lends_the_lock() -> None:
    table = "memory://lock-test/t"
    log = DeltaLog.for_table(table)
    assert log.is_commit_lock_enabled
    with (
        log.lock_commit_if_enabled(),
        pytest.raises(TimeoutError),
        hold_lock(LockChoice(LockKind.PROCESS, "test"), table, timeout=0),
    ):
        pass
    assert not DeltaLog.for_table(table, {SWITCH: "false"}).is_commit_lock_enabled
    assert not DeltaLog.for_table("/lake/t").is_commit_lock_enabled
