"""One active transaction a thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.transaction.optimistic import OptimisticTransaction


APPEND = Operation.write("Append")


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return new_table(str(tmp_path / "t"))


def test_a_transaction_is_active_while_its_work_runs(log: DeltaLog) -> None:
    seen: list[bool] = []

    def work(txn: OptimisticTransaction) -> int:
        seen.append(DeltaLog.active_transaction() is txn)
        return txn.commit([add_file("a")], APPEND)

    assert log.with_new_transaction(work) == 1
    assert seen == [True]
    assert DeltaLog.active_transaction() is None


def test_work_that_fails_leaves_no_active_transaction_and_no_commit(log: DeltaLog) -> None:
    def work(txn: OptimisticTransaction) -> int:
        raise KeyError("nothing there")

    with pytest.raises(KeyError):
        log.with_new_transaction(work)
    assert DeltaLog.active_transaction() is None
    assert log.update().version == 0


def test_nesting_is_refused_and_costs_the_outer_one_nothing(log: DeltaLog, tmp_path: Path) -> None:
    other = new_table(str(tmp_path / "other"))

    def work(txn: OptimisticTransaction) -> int:
        with pytest.raises(DeltaAnalysisError, match="DELTA_ACTIVE_TRANSACTION_ALREADY_SET") as hit:
            other.with_new_transaction(lambda inner: inner.commit([add_file("b")], APPEND))
        assert (hit.value.active_table, hit.value.table) == (log.table, other.table)
        assert DeltaLog.active_transaction() is txn
        return txn.commit([add_file("a")], APPEND)

    assert log.with_new_transaction(work) == 1
    assert other.update().version == 0


def test_other_threads_have_transactions_of_their_own(log: DeltaLog) -> None:
    seen: list[object] = []

    def work(txn: OptimisticTransaction) -> None:
        thread = threading.Thread(target=lambda: seen.append(DeltaLog.active_transaction()))
        thread.start()
        thread.join()

    log.with_new_transaction(work)
    assert seen == [None]


def test_a_transaction_that_is_only_started_is_not_active(log: DeltaLog) -> None:
    log.start_transaction()
    log.start_transaction()
    assert DeltaLog.active_transaction() is None
