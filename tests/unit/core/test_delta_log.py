from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import (
    CorruptCommitError,
    CorruptLogError,
    DeltaAnalysisError,
    LogGapError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from lakelog.core.log.commit_file import parse_commit
from lakelog.core.log.file_names import checkpoint_name
from lakelog.logstores import LocalLogStore, MemoryLogStore, Scope
from support.manual_clock import ManualClock
from support.raw_log import PROTOCOL, SCHEMA, RawLog, add, metadata, remove

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def log(tmp_path):
    return RawLog(tmp_path / "t").create({"commitInfo": {"txnId": "old-0"}}, add("a", size=10))


def opened(log):
    return DeltaLog.for_table(log.table, clock=ManualClock())


def paths(snapshot):
    return sorted(snapshot.file_table["path"].to_pylist())


class Counting(LocalLogStore):
    """Counts what is asked of the storage."""

    def __init__(self):
        super().__init__()
        self.reads, self.lists = [], []

    def read(self, path):
        self.reads.append(path.rsplit("/", 1)[-1])
        return super().read(path)

    def read_bytes(self, path):
        self.reads.append(path.rsplit("/", 1)[-1])
        return super().read_bytes(path)

    def list_from(self, path):
        self.lists.append(path.rsplit("/", 1)[-1])
        return super().list_from(path)


def counted(log):
    store = Counting()
    return DeltaLog(log.table, store, DeltaConf.from_mapping(None), ManualClock()), store


def test_a_snapshot_says_what_the_log_says(log):
    log.commit(add("b", size=5), {"txn": {"appId": "app", "version": 3}})
    log.commit({"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}})
    log.touch(2, 1_700_000_000_123)
    snapshot = opened(log).snapshot
    assert (snapshot.version, snapshot.timestamp) == (2, 1_700_000_000_123)
    assert (snapshot.num_files, snapshot.size_in_bytes) == (2, 15)
    assert snapshot.schema == SCHEMA
    assert snapshot.partition_columns == []
    assert snapshot.transactions == {"app": 3}
    assert snapshot.domain_metadata["d"].configuration == "{}"
    assert snapshot.protocol.min_reader_version == 1
    assert [f.path for f in snapshot.files()] == ["a", "b"]
    assert repr(snapshot) == f"Snapshot({log.table}, version 2)"


def test_the_last_word_on_transactions_and_domains_counts(log):
    domain = {"domain": "d", "configuration": "{}", "removed": False}
    log.commit({"txn": {"appId": "app", "version": 9}}, {"domainMetadata": domain})
    log.commit({"txn": {"appId": "app", "version": 2}})
    log.commit({"domainMetadata": {**domain, "removed": True}})
    snapshot = opened(log).snapshot
    assert snapshot.transactions == {"app": 2}
    assert snapshot.domain_metadata == {}


def test_partition_columns_are_found_in_the_schema(tmp_path):
    log = RawLog(tmp_path).commit(PROTOCOL, metadata(partition_columns=("p",)))
    snapshot = opened(log).snapshot
    assert snapshot.partition_columns == ["p"]
    assert snapshot.partition_schema.names == ["p"]


@pytest.mark.parametrize("name", ["P", "q"])
def test_a_partition_column_that_the_schema_lacks_is_an_error_and_not_all_null(tmp_path, name):
    log = RawLog(tmp_path).commit(PROTOCOL, metadata(partition_columns=(name,)))
    log.commit(add("x", partitionValues={name: "v"}))
    with pytest.raises(CorruptLogError, match=f"partitioned by '{name}'"):
        opened(log).snapshot.to_arrow()


def test_transactions_expire_once_the_table_says_so(tmp_path):
    old, new = 1_699_900_000_000, 1_699_999_999_000
    log = RawLog(tmp_path).create(
        {"txn": {"appId": "old", "version": 1, "lastUpdated": old}},
        {"txn": {"appId": "new", "version": 1, "lastUpdated": new}},
        {"txn": {"appId": "unknown", "version": 1}},
        configuration={"delta.setTransactionRetentionDuration": "interval 1 hour"},
    )
    assert opened(log).snapshot.transactions == {"new": 1}


def test_update_reads_only_what_is_new(log):
    delta_log, store = counted(log)
    first = delta_log.snapshot
    log.commit(add("b"))
    store.reads.clear()
    store.lists.clear()
    assert paths(delta_log.update()) == ["a", "b"]
    assert store.reads == [f"{v:020d}.json" for v in (1, 2, 0)]
    assert store.lists == []
    assert paths(first) == ["a"]


def test_update_without_news_looks_for_the_next_version_and_at_the_known_one(log):
    delta_log, store = counted(log)
    first = delta_log.snapshot
    store.reads.clear()
    assert delta_log.update() is first
    assert store.reads == [f"{v:020d}.json" for v in (1, 0)]


class Far(Counting):
    """Storage where every request is a journey."""

    @property
    def capabilities(self):
        return replace(super().capabilities, exclusive_create=Scope.CLUSTER)


def test_update_on_far_storage_trusts_for_a_second_what_it_saw(log):
    store, clock = Far(), ManualClock()
    delta_log = DeltaLog(log.table, store, DeltaConf.from_mapping(None), clock)
    first = delta_log.snapshot
    store.reads.clear()
    assert delta_log.update() is first
    assert store.reads == [f"{1:020d}.json"]
    clock.advance(2)
    assert delta_log.update() is first
    assert sorted(store.reads) == [f"{v:020d}.json" for v in (0, 1, 1)]


class Meeting(Far):
    """Storage that answers two requests at a time, and no single one."""

    meet: threading.Barrier | None = None

    def read(self, path):
        if self.meet is not None:
            self.meet.wait(30)
        return super().read(path)

    def read_bytes(self, path):
        if self.meet is not None:
            self.meet.wait(30)
        return super().read_bytes(path)


def test_update_on_far_storage_looks_at_the_known_version_while_it_probes(log):
    store, clock = Meeting(), ManualClock()
    delta_log = DeltaLog(log.table, store, DeltaConf.from_mapping(None), clock)
    first = delta_log.snapshot
    clock.advance(2)
    store.meet = threading.Barrier(2)
    assert delta_log.update() is first
    log.commit(add("b"))
    clock.advance(2)
    store.reads.clear()
    assert paths(delta_log.update()) == ["a", "b"]
    assert sorted(store.reads) == [f"{v:020d}.json" for v in (0, 0, 1, 2)]


def remade(log, *files):
    """The same path, with another table."""
    for path in log.folder.iterdir():
        path.unlink()
    log.next = 0
    for version, file in enumerate(files):
        info = {"commitInfo": {"timestamp": 5, "txnId": f"new-{version}"}}
        heads = [PROTOCOL, metadata(table_id="table-2")] if version == 0 else []
        log.commit(info, *heads, add(file))


@pytest.mark.parametrize("files", ["z", "yz", "xyz", "wxyz", "vwxyz"])
def test_update_notices_that_the_table_was_dropped_and_made_again(log, files):
    for version, file in enumerate("bc", 1):
        log.commit({"commitInfo": {"timestamp": 5, "txnId": f"old-{version}"}}, add(file))
    delta_log = opened(log)
    assert paths(delta_log.snapshot) == ["a", "b", "c"]
    remade(log, *files)
    snapshot = delta_log.update()
    assert (snapshot.version, paths(snapshot)) == (len(files) - 1, list(files))
    assert snapshot.metadata.id == "table-2"


class ReplacedInBetween(Far):
    """The table is replaced after a look at its version 1, before its version 2 is read."""

    replace_table: Callable[[], object] | None = None

    def __init__(self):
        super().__init__()
        self.looked = threading.Event()

    def read_bytes(self, path):
        replace_table = self.replace_table
        if replace_table is not None and path.endswith("2.json"):
            assert self.looked.wait(30)
            self.replace_table = None
            replace_table()
        return super().read_bytes(path)

    def read(self, path):
        lines = list(super().read(path))
        self.looked.set()
        return iter(lines)


def test_update_looks_again_where_it_looked_before_it_read(log):
    log.commit({"commitInfo": {"timestamp": 5, "txnId": "old-1"}}, add("b"))
    store, clock = ReplacedInBetween(), ManualClock()
    delta_log = DeltaLog(log.table, store, DeltaConf.from_mapping(None), clock)
    assert paths(delta_log.snapshot) == ["a", "b"]
    store.looked.clear()
    store.replace_table = lambda: remade(log, *"xyz")
    clock.advance(2)
    assert paths(delta_log.update()) == ["x", "y", "z"]
    assert delta_log.snapshot.metadata.id == "table-2"


def test_update_notices_that_the_table_was_dropped(log):
    delta_log = opened(log)
    assert delta_log.snapshot.version == 0
    remade(log)
    assert not delta_log.table_exists()
    with pytest.raises(TableNotFoundError):
        delta_log.update()
    assert delta_log.start_transaction().reads.version == -1


def test_update_after_log_cleanup_does_not_take_an_old_version_for_the_newest(log):
    stale = opened(log)
    assert stale.snapshot.version == 0
    for index in range(12):
        log.commit(add(f"f{index}"))
    opened(log).checkpoint(10)
    for version in range(10):
        log.path(version).unlink()
    assert stale.update().version == 12
    assert stale.start_transaction().reads.version == 12


def test_update_far_behind_lists_instead_of_probing(log):
    delta_log, store = counted(log)
    _ = delta_log.snapshot
    for index in range(30):
        log.commit(add(f"f{index}"))
    store.reads.clear()
    store.lists.clear()
    snapshot = delta_log.update()
    assert (snapshot.version, snapshot.num_files) == (30, 31)
    assert len(store.lists) == 1
    assert len(store.reads) == 1 + 30  # the known version is looked at too


@pytest.mark.parametrize("new", [7, 8, 9, 16])
def test_update_finds_all_commits_whatever_their_number(log, new):
    delta_log = opened(log)
    _ = delta_log.snapshot
    for index in range(new):
        log.commit(add(f"f{index}"))
    assert delta_log.update().version == new
    assert delta_log.update().version == new


def test_update_very_far_behind_uses_a_checkpoint(log):
    delta_log, store = counted(log)
    _ = delta_log.snapshot
    for index in range(120):
        log.commit(add(f"f{index}"))
    opened(log).checkpoint(118)
    store.reads.clear()
    snapshot = delta_log.update()
    assert (snapshot.version, snapshot.num_files) == (120, 121)
    assert len(store.reads) < 20


def test_update_finds_a_gap(log):
    delta_log = opened(log)
    _ = delta_log.snapshot
    for index in range(12):
        log.commit(add(f"f{index}"))
    log.path(11).unlink()
    with pytest.raises(LogGapError, match="11"):
        delta_log.update()
    assert delta_log.snapshot.version == 0


def test_update_meets_a_torn_commit_and_keeps_its_snapshot(log):
    delta_log = opened(log)
    _ = delta_log.snapshot
    log.write('{"add":{"path":"b"')
    with pytest.raises(CorruptCommitError, match="line 1"):
        delta_log.update()
    assert delta_log.snapshot.version == 0


def test_update_refuses_a_table_that_became_unreadable(log):
    delta_log = opened(log)
    _ = delta_log.snapshot
    lists = {"readerFeatures": ["odd"], "writerFeatures": ["odd"]}
    log.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}})
    with pytest.raises(UnsupportedFeatureError):
        delta_log.update()


def test_the_time_of_an_updated_snapshot_is_looked_up_when_asked_for(log):
    delta_log = opened(log)
    _ = delta_log.snapshot
    log.commit(add("b")).touch(1, 1_700_000_000_456)
    assert delta_log.update().timestamp == 1_700_000_000_456


def test_a_commit_of_our_own_need_not_be_read_back(log):
    delta_log, store = counted(log)
    _ = delta_log.snapshot
    store.reads.clear()
    for version in (3, 1):
        delta_log.after_commit(
            parse_commit(b'{"add":{"path":"b","partitionValues":{},"size":1}}', version, "x")
        )
    assert paths(delta_log.snapshot) == ["a", "b"]
    assert store.reads == []


def test_an_older_version_can_be_read(log):
    log.commit(add("b")).commit(remove("a"))
    delta_log = opened(log)
    assert [paths(delta_log.snapshot_at(version)) for version in (0, 1, 2)] == [
        ["a"],
        ["a", "b"],
        ["b"],
    ]
    assert delta_log.snapshot_at(2) is not None


@pytest.mark.parametrize("kwargs", [{"version": "1"}, {"timestamp": 1.5}, {"timestamp": b"x"}])
def test_time_travel_to_what_is_no_version_and_no_time_is_refused(log, kwargs):
    with pytest.raises(DeltaAnalysisError, match=r"(version|timestamp) must be"):
        opened(log).snapshot_at(**kwargs)


def test_the_time_of_a_version_whose_commit_is_gone_is_an_error(log):
    delta_log = opened(log)
    _ = delta_log.snapshot
    log.commit(add("b"))
    snapshot = delta_log.update()
    log.path(1).unlink()
    with pytest.raises(LogGapError, match="is gone"):
        _ = snapshot.timestamp


def test_a_version_that_does_not_exist_is_not_found(log):
    with pytest.raises(VersionNotFoundError, match="versions 0 to 0 can be read"):
        opened(log).snapshot_at(1)


@pytest.mark.parametrize("kwargs", [{}, {"version": 1, "timestamp": 2}])
def test_time_travel_needs_one_of_version_and_time(log, kwargs):
    with pytest.raises(DeltaAnalysisError, match="either version or timestamp"):
        opened(log).snapshot_at(**kwargs)


def test_a_path_that_is_no_table_is_an_error_and_not_an_empty_table(tmp_path):
    delta_log = DeltaLog.for_table(tmp_path / "none")
    assert not delta_log.table_exists()
    for ask in (lambda: delta_log.snapshot, delta_log.update, delta_log.history):
        with pytest.raises(TableNotFoundError, match="nothing is there"):
            ask()


def test_a_file_is_no_table(tmp_path):
    (tmp_path / "f").write_text("x")
    delta_log = DeltaLog.for_table(tmp_path / "f")
    assert not delta_log.table_exists()
    with pytest.raises(TableNotFoundError, match="it is a file"):
        _ = delta_log.snapshot


def test_a_table_that_appears_later_is_found(tmp_path):
    delta_log = DeltaLog.for_table(tmp_path / "t")
    assert not delta_log.table_exists()
    RawLog(tmp_path / "t").create()
    assert delta_log.table_exists()
    assert delta_log.update().version == 0
    assert delta_log.table_exists()


@pytest.mark.parametrize(
    ("first", "lacking"), [((metadata(),), "protocol"), ((PROTOCOL,), "metaData")]
)
def test_a_log_without_protocol_or_metadata_is_damaged(tmp_path, first, lacking):
    log = RawLog(tmp_path).commit(*first)
    with pytest.raises(CorruptLogError, match=f"no {lacking} action"):
        _ = opened(log).snapshot


def test_a_schema_that_is_no_schema_is_named(tmp_path):
    line = metadata()
    line["metaData"]["schemaString"] = '{"type":"struct","fields":[{"name":"a","type":{"odd":1}}]}'
    log = RawLog(tmp_path).commit(PROTOCOL, line)
    with pytest.raises(CorruptLogError, match="odd"):
        _ = opened(log).snapshot.schema


@pytest.mark.parametrize("text", ["", "\n", '{"add":', "\0" * 9])
def test_a_damaged_first_commit_is_an_error(tmp_path, text):
    log = RawLog(tmp_path).write(text)
    with pytest.raises(CorruptCommitError, match=r"00000\.json"):
        _ = opened(log).snapshot


@pytest.mark.parametrize(
    "protocol",
    [
        {
            "minReaderVersion": 4,
            "minWriterVersion": 7,
            "readerFeatures": [],
            "writerFeatures": [],
        },
        {
            "minReaderVersion": 3,
            "minWriterVersion": 7,
            "readerFeatures": ["fromTheFuture"],
            "writerFeatures": ["fromTheFuture"],
        },
    ],
)
def test_a_table_that_we_would_read_wrongly_is_refused(tmp_path, protocol):
    log = RawLog(tmp_path).commit({"protocol": protocol}, metadata(), add("a"))
    with pytest.raises(UnsupportedFeatureError) as caught:
        _ = opened(log).snapshot
    assert caught.value.access == "read"


def test_a_table_in_memory_opens_like_any_other():
    store = MemoryLogStore()
    uri = "memory://test-delta-log/t"
    store.create_folder(f"{uri}/_delta_log")
    lines = [json.dumps(action) for action in (PROTOCOL, metadata(), add("a"))]
    store.write(f"{uri}/_delta_log/{0:020d}.json", lines)
    delta_log = DeltaLog.for_table(uri)
    try:
        assert paths(delta_log.snapshot) == ["a"]
        delta_log.checkpoint()
        assert DeltaLog.for_table(uri).snapshot.state.segment.checkpoint is not None
    finally:
        MemoryLogStore.forget("test-delta-log")


def test_threads_share_a_log(log):
    delta_log = opened(log)
    barrier = threading.Barrier(6)
    seen = []

    def ask():
        barrier.wait()
        seen.append(delta_log.update().num_files)

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 6


def test_a_checkpoint_and_no_commit_is_a_table(log):
    opened(log).checkpoint()
    log.path(0).unlink()
    snapshot = opened(log).snapshot
    assert (snapshot.version, paths(snapshot)) == (0, ["a"])
    assert snapshot.timestamp == (log.folder / checkpoint_name(0)).stat().st_mtime_ns // 1_000_000
