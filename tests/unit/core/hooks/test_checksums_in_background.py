"""A checksum written after the commit has returned is what the commit would have written."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import uuid

import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import SetTransaction
from lakelog.core.errors import PostCommitError
from lakelog.core.hooks import background, checksum
from lakelog.core.hooks.background import wait_for_all
from lakelog.core.log.file_names import checksum_path
from lakelog.core.state.checksums import checksum_of, read_checksum
from lakelog.logstores import MemoryLogStore
from support.tables import add_file

PATIENCE = 60
WRITTEN = {"spark.databricks.delta.writeChecksumFile.enabled": "true"}
LATER = {**WRITTEN, "spark.lakelog.checksum.inBackground": "true"}
AT_ONCE = {**WRITTEN, "spark.lakelog.checksum.inBackground": "false"}
THROWS = {"spark.databricks.delta.postCommitHook.throwOnError": "true"}


@pytest.fixture(autouse=True)
def _own_queue(monkeypatch):
    monkeypatch.setattr(background, "_background", background._Background())
    yield
    assert wait_for_all(PATIENCE)


@pytest.fixture
def far():
    """A table that is not on a local disk."""
    return f"memory://{uuid.uuid4().hex}/t"


@pytest.fixture
def held(monkeypatch):
    """Checksums are written when this is let go, and not before."""
    event, whole = threading.Event(), checksum.publish_checksum

    def publish(*args):
        assert event.wait(PATIENCE)
        whole(*args)

    monkeypatch.setattr(checksum, "publish_checksum", publish)
    yield event
    event.set()


def written(table, version):
    return read_checksum(DeltaLog.for_table(table).store, table, version)


def written_files(table, version):
    found = written(table, version)
    assert found is not None
    return found.num_files


def counted(table, version):
    """What a reader counts that never saw the writer's memory."""
    state = DeltaLog.for_table(table).snapshot_at(version).state
    assert state.info is not None
    return checksum_of(state, state.info.txn_id)


def commit(log, *more):
    name = f"part-00000-{uuid.uuid4()}.c000.parquet"
    txn = log.start_transaction()
    txn.changes.mark_written()
    return txn.commit([add_file(name), *more], Operation("WRITE"))


@pytest.mark.parametrize("conf", [WRITTEN, LATER])
def test_away_from_a_local_disk_no_one_waits_for_it(far, held, conf):
    write_arrow(far, {"a": [1]}, conf=conf, mode="append")
    assert written(far, 0) is None
    held.set()
    assert wait_for_all(PATIENCE)
    assert written_files(far, 0) == 1


@pytest.mark.parametrize("conf", [AT_ONCE, {**LATER, **THROWS}])
def test_it_is_there_when_the_commit_returns_where_that_is_asked_for(far, conf):
    write_arrow(far, {"a": [1]}, conf=conf, mode="append")
    assert written(far, 0) is not None
    assert not background._background.threads


def test_on_a_local_disk_it_is_there_when_the_commit_returns(tmp_path):
    write_arrow(tmp_path / "t", {"a": [1]}, mode="append")
    assert written(str(tmp_path / "t"), 0) is not None


def test_on_a_local_disk_it_may_be_left_to_the_background(tmp_path, held):
    table = str(tmp_path / "t")
    write_arrow(table, {"a": [1]}, conf=LATER, mode="append")
    assert written(table, 0) is None
    held.set()
    assert wait_for_all(PATIENCE)
    assert written(table, 0) is not None


def test_what_was_committed_meanwhile_is_in_no_checksum_of_before(far, held):
    write_arrow(far, {"a": [1, 2]}, conf=LATER, mode="append")
    log = DeltaLog.for_table(far, LATER)
    for number in range(3):
        commit(log, SetTransaction(app_id="job", version=number))
    write_arrow(far, {"a": [3]}, conf=LATER, mode="append")
    write_arrow(far, {"a": [3]}, conf=LATER, mode="overwrite")
    held.set()
    assert wait_for_all(PATIENCE)
    for version in range(6):
        assert written(far, version) == counted(far, version), version


def test_it_follows_from_the_one_before_that_is_not_written_yet(far, held, monkeypatch):
    write_arrow(far, {"a": [1]}, conf=WRITTEN, mode="append")
    held.set()
    assert wait_for_all(PATIENCE)
    held.clear()
    log = DeltaLog.for_table(far, LATER)
    # Nothing is counted: each follows from the one before.
    monkeypatch.setattr(checksum, "checksum_of", None)
    for _ in range(4):
        commit(log)
    held.set()
    assert wait_for_all(PATIENCE)
    assert [written_files(far, version) for version in range(5)] == [1, 2, 3, 4, 5]


def test_a_log_that_no_one_holds_any_more_has_its_checksum_written(far, held):
    write_arrow(far, {"a": [1]}, conf=LATER, mode="append")
    log = DeltaLog.for_table(far, LATER)
    commit(log)
    del log
    gc.collect()
    held.set()
    assert wait_for_all(PATIENCE)
    assert written(far, 1) is not None


def test_a_storage_that_refuses_costs_a_line_of_the_log(far, held, monkeypatch, caplog):
    whole = MemoryLogStore.write

    def write(self, path, lines, *, overwrite=False):
        if path == checksum_path(far, 1):
            raise OSError("the quota is used up")
        whole(self, path, lines, overwrite=overwrite)

    write_arrow(far, {"a": [1]}, conf=LATER, mode="append")
    log = DeltaLog.for_table(far, LATER)
    monkeypatch.setattr(MemoryLogStore, "write", write)
    assert [commit(log), commit(log)] == [1, 2]
    held.set()
    assert wait_for_all(PATIENCE)
    assert f"{far}: the checksum of version 1 failed: the quota is used up" in caplog.text
    assert written(far, 1) is None
    assert written_files(far, 2) == 3


def test_a_job_that_wants_to_hear_of_it_is_told(far, monkeypatch):
    def refuse(*_):
        raise OSError("the quota is used up")

    write_arrow(far, {"a": [1]}, conf=LATER, mode="append")
    monkeypatch.setattr(checksum, "publish_checksum", refuse)
    with pytest.raises(PostCommitError, match="the quota is used up"):
        write_arrow(far, {"a": [1]}, conf={**LATER, **THROWS}, mode="append")


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_the_checksum_of_a_table_that_was_here_before_gives_way(place, far, tmp_path):
    table = far if place == "memory" else str(tmp_path / "t")
    write_arrow(table, {"a": [1, 2, 3]}, conf=AT_ONCE, mode="append")
    store = DeltaLog.for_table(table).store
    path = checksum_path(table, 0)
    stray = store.read_bytes(path).decode().strip()
    store.filesystem.delete_dir_contents(store.filesystem_path(table))
    store.create_folder(f"{table}/_delta_log")
    store.write(path, [stray])
    write_arrow(table, {"b": ["other"]}, conf=AT_ONCE, mode="append")
    assert written(table, 0) == counted(table, 0)


SCRIPT = """
import sys
from lakelog.core import write_arrow
for number in range(3):
    write_arrow(sys.argv[1], {"a": [number]}, conf={"spark.lakelog.checksum.inBackground": "true"},
                mode="append")
"""


def test_a_process_that_ends_after_its_commit_leaves_its_checksums(tmp_path):
    table = str(tmp_path / "t")
    subprocess.run([sys.executable, "-c", SCRIPT, table], check=True, timeout=PATIENCE)
    assert [written_files(table, version) for version in range(3)] == [1, 2, 3]
