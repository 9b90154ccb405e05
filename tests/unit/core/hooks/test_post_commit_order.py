"""What runs after a commit, and costs it nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from lakelog.core.delta_log import DeltaLog
from support.commits import APPEND, append, new_uri
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from lakelog.core.hooks import CommittedTransaction


@pytest.fixture
def uri() -> str:
    return new_uri()


def test_hooks_run_in_order_once_each_and_a_failing_one_costs_nothing(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_table(uri)
    ran: list[tuple[str, int]] = []

    def first(committed: CommittedTransaction) -> None:
        ran.append(("first", committed.version))
        raise RuntimeError("the hook broke")

    def second(committed: CommittedTransaction) -> None:
        ran.append(("second", committed.version))

    txn = log.start_transaction()
    for hook in (first, second, first):
        txn.register_post_commit_hook(hook)
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert txn.commit([add_file("a")], APPEND) == 1
    assert ran == [("first", 1), ("second", 1)]
    assert "version 1 is committed, but its post-commit hook" in caplog.text


def test_a_checkpoint_is_written_at_multiples_of_the_interval(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int | None] = []
    monkeypatch.setattr(DeltaLog, "checkpoint", lambda _log, version=None: written.append(version))
    log = new_table(uri, properties={"delta.checkpointInterval": "3"})
    for number in range(7):
        append(log, f"f{number}")
    assert written == [3, 6]


def test_a_checkpoint_that_fails_does_not_fail_the_commit(
    uri: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_log: DeltaLog, version: int | None = None) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(DeltaLog, "checkpoint", broken)
    log = new_table(uri, properties={"delta.checkpointInterval": "1"})
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert append(log, "a") == 1
    assert "no space left" in caplog.text
