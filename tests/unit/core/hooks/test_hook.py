"""Post-commit hooks: run in order, each with a word of its own on its failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.dml.arrow_write import write_arrow
from lakelog.core.errors import DeltaAnalysisError, PostCommitError, PostCommitHookFailedError
from lakelog.core.hooks.post_commit import PostCommitHook, hook_failed
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.hooks import CommittedTransaction
    from lakelog.core.transaction.optimistic import OptimisticTransaction

APPEND = Operation.write("Append")
THROW = {"spark.databricks.delta.postCommitHook.throwOnError": "true"}


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    return new_table(str(tmp_path / "t"))


class Failing(PostCommitHook):
    """Fails, and remembers that it was asked what that means."""

    def __init__(self, raising: type[Exception] | None = None) -> None:
        self.raising = raising
        self.handled: list[tuple[str, int]] = []

    @property
    def name(self) -> str:
        return "Copy Elsewhere"

    def __call__(self, committed: CommittedTransaction) -> None:
        raise RuntimeError("elsewhere is away")

    def handle_error(self, error: Exception, committed: CommittedTransaction) -> None:
        self.handled.append((str(error), committed.version))
        if self.raising is PostCommitHookFailedError:
            raise hook_failed(self, error, committed)
        if self.raising is not None:
            raise self.raising("worse")
        super().handle_error(error, committed)


def commit(log: DeltaLog, *hooks: object) -> int:
    txn = log.start_transaction()
    for hook in hooks:
        txn.register_post_commit_hook(hook)  # type: ignore[arg-type]
    return txn.commit([add_file("a")], APPEND)


def test_a_hook_handles_its_own_failure_and_by_default_costs_nothing(
    log: DeltaLog, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Failing()
    assert commit(log, failing) == 1
    assert failing.handled == [("elsewhere is away", 1)]
    assert "version 1 is committed, but its post-commit hook Copy Elsewhere failed" in caplog.text


def test_a_hook_that_wants_to_be_heard_is_and_says_that_the_commit_is_there(log: DeltaLog) -> None:
    ran: list[int] = []
    with pytest.raises(PostCommitHookFailedError) as caught:
        commit(log, Failing(PostCommitHookFailedError), lambda done: ran.append(done.version))
    assert str(caught.value).startswith(
        "[DELTA_POST_COMMIT_HOOK_FAILED] Committing to the Delta table version 1 succeeded but "
        "error while executing post-commit hook Copy Elsewhere: elsewhere is away."
    )
    assert (caught.value.version, caught.value.hook) == (1, "Copy Elsewhere")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert ran == [1], "the hooks after it run all the same"
    assert DeltaLog.for_table(log.table).update().version == 1


def test_whatever_a_hook_raises_no_one_takes_it_for_a_failed_commit(log: DeltaLog) -> None:
    with pytest.raises(PostCommitError, match="worse"):
        commit(log, Failing(OSError))
    assert log.update().version == 1


def test_the_conf_makes_every_hook_heard(tmp_path: Path) -> None:
    log = new_table(str(tmp_path / "t"), conf=THROW)

    def broken(committed: CommittedTransaction) -> None:
        raise ValueError("no")

    with pytest.raises(PostCommitHookFailedError, match="broken: no"):
        commit(log, broken)
    with pytest.raises(PostCommitHookFailedError, match="Copy Elsewhere"):
        commit(log, Failing())
    assert log.update().version == 2


def test_data_files_of_a_commit_stay_where_only_a_hook_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = str(tmp_path / "t")
    start = DeltaLog.start_transaction

    def with_hook(log: DeltaLog) -> OptimisticTransaction:
        txn = start(log)
        txn.register_post_commit_hook(Failing(PostCommitHookFailedError))
        return txn

    monkeypatch.setattr(DeltaLog, "start_transaction", with_hook)
    with pytest.raises(PostCommitHookFailedError):
        write_arrow(table, pa.table({"id": [1, 2]}), mode="append")
    assert DeltaLog.for_table(table).snapshot.to_arrow()["id"].to_pylist() == [1, 2]


def test_hooks_need_a_commit(log: DeltaLog) -> None:
    ran: list[int] = []
    txn = log.start_transaction()
    txn.register_post_commit_hook(lambda done: ran.append(done.version))
    with pytest.raises(DeltaAnalysisError, match="Can't call post commit hooks before committing"):
        txn.run_post_commit_hooks()
    assert ran == []
    txn.commit([add_file("a")], APPEND)
    txn.run_post_commit_hooks()
    assert ran == [1, 1]


def test_no_transaction_is_active_while_hooks_run(log: DeltaLog) -> None:
    seen: list[object] = []

    def hook(committed: CommittedTransaction) -> None:
        seen.append(DeltaLog.active_transaction())
        assert committed.delta_log is log
        log.with_new_transaction(lambda inner: inner.commit([add_file("inner")], APPEND))

    def work(txn: OptimisticTransaction) -> int:
        txn.register_post_commit_hook(hook)
        version = txn.commit([add_file("outer")], APPEND)
        seen.append(DeltaLog.active_transaction() is txn)
        return version

    assert log.with_new_transaction(work) == 1
    assert seen == [None, True], "the outer one is active again afterwards"
    assert log.update().version == 2
