"""After a commit its log knows it: by itself, or by reading, or it says that it does not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from lakelog.core.actions import SetTransaction
from lakelog.core.actions.operation import Operation
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import InvalidCommittedVersionError
from support.faults import FaultyLogStore
from support.manual_clock import ManualClock
from support.tables import add_file, new_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lakelog.core.actions import Action
    from lakelog.logstores import FileStatus

APPEND = Operation.write("Append")
MANY = [add_file(f"f{number}") for number in range(1001)]
THROW = {"spark.databricks.delta.postCommitHook.throwOnError": "true"}


class Lagging(FaultyLogStore):
    """Shows nothing of a log from `hidden` on: what was written there is seen only later."""

    hidden = 1

    def read(self, path: str) -> Iterator[str]:
        name = path.rpartition("/")[2]
        if name.endswith(".json") and name[:20].isdigit() and int(name[:20]) >= self.hidden:
            raise FileNotFoundError(path)
        return super().read(path)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        for status in super().list_from(path):
            name = status.path.rpartition("/")[2]
            if not (name[:20].isdigit() and int(name[:20]) >= self.hidden):
                yield status


def lagging(uri: str, hidden: int, conf: dict[str, str] | None = None) -> DeltaLog:
    table = new_table(uri)
    store = Lagging(table.store)
    store.hidden = hidden
    return DeltaLog(table.table, store, DeltaConf.from_mapping(conf), ManualClock())


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def test_a_storage_that_does_not_show_the_commit_is_reported(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = lagging(uri, hidden=1)
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert log.start_transaction().commit(MANY, APPEND) == 1
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.getMessage().startswith(
        "[DELTA_INVALID_COMMITTED_VERSION] The committed version is 1 but the current version is 0."
    )
    assert DeltaLog.for_table(uri).update().version == 1


def test_the_conf_makes_it_an_error_after_the_hooks(uri: str) -> None:
    log = lagging(uri, hidden=1, conf=THROW)
    ran: list[int] = []
    txn = log.start_transaction()
    txn.register_post_commit_hook(lambda done: ran.append(done.version))
    with pytest.raises(InvalidCommittedVersionError) as caught:
        txn.commit(MANY, APPEND)
    assert (caught.value.version, caught.value.current_version, ran) == (1, 0, [1])


def test_a_commit_that_the_log_took_over_needs_no_look(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = lagging(uri, hidden=1)
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert log.start_transaction().commit([add_file("a")], APPEND) == 1
    assert log.known_version == 1
    assert [each for each in caplog.records if each.name == "lakelog"] == []


def test_a_large_commit_is_read_back(uri: str) -> None:
    log = new_table(uri)
    assert log.start_transaction().commit(MANY, APPEND) == 1
    assert log.known_version == 1
    assert log.snapshot.num_files == 1001


def test_a_rebased_commit_and_those_before_it_are_taken_over_without_reading(uri: str) -> None:
    inner = new_table(uri)
    store = FaultyLogStore(inner.store)
    conf = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}
    log = DeltaLog(inner.table, store, DeltaConf.from_mapping(conf), ManualClock())
    txn = log.start_transaction()
    for number in range(3):
        progress = SetTransaction(app_id="app", version=number)
        theirs: list[Action] = [add_file(f"x{number}"), progress]
        inner.start_transaction().commit(theirs, APPEND)
    store.calls.clear()
    assert txn.commit([add_file("ours")], APPEND) == 4
    reads = [path.rpartition("/")[2] for operation, path in store.calls if operation == "read"]
    # Before each try the version that was read, and between them each winner once, and one look on.
    assert [int(name[:20]) for name in reads] == [0, 1, 2, 3, 4, 0]
    assert log.known_version == 4
    fresh = DeltaLog.for_table(uri).snapshot
    assert log.snapshot.transactions == fresh.transactions == {"app": 2}
    assert sorted(log.snapshot.file_table["path"].to_pylist()) == sorted(
        fresh.file_table["path"].to_pylist()
    )


def test_a_table_that_can_not_be_read_again_costs_the_commit_nothing(
    uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    inner = new_table(uri)
    store = FaultyLogStore(inner.store)
    log = DeltaLog(inner.table, store, DeltaConf.from_mapping(None), ManualClock())
    txn = log.start_transaction()

    def fail_from_now(_: str) -> None:
        store.failing_reads = 100

    store.before_write = fail_from_now
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert txn.commit(MANY, APPEND) == 1
    assert "version 1 is committed, but the table could not be read again" in caplog.text
