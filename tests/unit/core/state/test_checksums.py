from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.actions import AddFile, SetTransaction
from lakelog.core.actions.operation import Operation
from lakelog.core.errors import CorruptLogError
from lakelog.core.log.file_names import checksum_path
from lakelog.core.paths import is_near
from lakelog.core.state.checksums import VersionChecksum, checksum_of, read_checksum
from lakelog.logstores import LocalLogStore
from support.examples import examples
from support.log_histories import NOW
from support.manual_clock import ManualClock
from support.raw_log import RawLog, add, remove

ENABLED = "spark.databricks.delta.writeChecksumFile.enabled"
FATAL = "spark.databricks.delta.checksum.mismatch.fatal"
ROWS = pa.table({"a": [1, 2, 3]})
NEW = "part-00000-11111111-2222-4333-8444-{:012d}-c000.snappy.parquet"


@pytest.fixture
def log(tmp_path):
    return RawLog(tmp_path / "t").create(add("a", size=10))


def opened(log, **conf):
    return DeltaLog.for_table(log.table, conf, ManualClock(NOW))


def crc(log, version):
    return log.folder / f"{version:020d}.crc"


def content(log, version):
    return json.loads(crc(log, version).read_text())


def commit(delta_log, *actions, name="TEST", reads=False):
    txn = delta_log.start_transaction()
    if reads:
        txn.filter_files()
    txn.changes.mark_written()
    return txn.commit(list(actions), Operation(name=name))


def new_file(number, size=5):
    return AddFile(
        path=NEW.format(number),
        partition_values={},
        size=size,
        modification_time=1,
        data_change=True,
    )


def counted(log, version):
    """What a reader counts that never saw the writer's memory."""
    state = opened(log).snapshot_at(version).state
    return checksum_of(state, state.info.txn_id if state.info else None)


def test_a_write_leaves_a_checksum_that_says_what_the_table_is(tmp_path):
    table = str(tmp_path / "t")
    write_arrow(table, ROWS, mode="append")
    write_arrow(table, ROWS, mode="append")
    snapshot = DeltaLog.for_table(table).snapshot
    said = json.loads((tmp_path / "t" / "_delta_log" / f"{1:020d}.crc").read_text())
    assert said == {
        "txnId": snapshot.commit_info.txn_id if snapshot.commit_info else None,
        "tableSizeBytes": sum(each.size for each in snapshot.files()),
        "numFiles": 2,
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": snapshot.metadata.to_json_value(),
        "protocol": snapshot.protocol.to_json_value(),
    }


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 9)),
        st.tuples(st.just("append again"), st.integers(1, 9)),
        st.tuples(st.just("remove"), st.integers(1, 9)),
        st.tuples(st.just("txn"), st.integers(1, 9)),
        st.tuples(st.just("checkpoint"), st.just(0)),
        st.tuples(st.just("open again"), st.just(0)),
        st.tuples(st.just("by another"), st.integers(1, 9)),
    ),
    max_size=8,
)


@settings(max_examples=examples(24))
@given(steps)
def test_whatever_was_committed_every_checksum_is_what_a_reader_counts(tmp_path_factory, made):
    log = RawLog(tmp_path_factory.mktemp("t")).create()
    writer = opened(log)
    for number, (step, value) in enumerate(made):
        match step:
            case "append":
                commit(writer, new_file(number, value))
            case "append again":
                commit(writer, replace(new_file(0, value), path="same"))
            case "remove":
                files = writer.update().files()[: value % 2 + 1]
                commit(writer, *(f.remove(NOW) for f in files), reads=True)
            case "txn":
                commit(writer, SetTransaction(app_id="job", version=value))
            case "checkpoint":
                writer.checkpoint()
            case "open again":
                writer = opened(log)
            case _:
                commit(opened(log), new_file(number + 100, value))
    latest = opened(log).snapshot.version
    for version in range(latest + 1):
        said = read_checksum(LocalLogStore(), log.table, version)
        if said is not None:
            assert replace(said, txn_id=None) == replace(counted(log, version), txn_id=None)
    if ("checkpoint", 0) not in made:
        # All commits are in memory, so nothing keeps a checksum from being computed.
        assert all(crc(log, version).exists() for version in range(1, latest + 1))


def test_appends_to_a_table_with_a_checkpoint_load_no_files(log):
    opened(log).checkpoint()
    log.path(0).rename(log.folder / "kept")
    writer = opened(log)
    before = writer.snapshot.state
    (log.folder / "kept").rename(log.path(0))
    commit(writer, new_file(1))
    assert not crc(log, 1).exists()
    assert not before.files.is_at_hand
    assert not writer.snapshot.state.files.is_at_hand
    crc(log, 1).write_text(counted(log, 1).to_json())
    commit(writer, new_file(2))
    assert content(log, 2)["numFiles"] == 3
    assert not writer.snapshot.state.files.is_at_hand


def test_an_existing_checksum_is_never_overwritten(log):
    crc(log, 1).write_text("theirs")
    commit(opened(log), new_file(1))
    assert crc(log, 1).read_text() == "theirs"


def test_a_checksum_that_can_not_be_written_does_not_fail_the_commit(log, monkeypatch, caplog):
    whole = LocalLogStore.staged

    def failing(self, path):
        if path.endswith(".crc"):
            raise OSError("no space")
        return whole(self, path)

    monkeypatch.setattr(LocalLogStore, "staged", failing)
    assert commit(opened(log), new_file(1)) == 1
    assert "no space" in caplog.text
    assert not crc(log, 1).exists()


def test_the_conf_switches_checksums_off(log):
    commit(opened(log, **{ENABLED: "false"}), new_file(1))
    assert not crc(log, 1).exists()


def test_on_object_stores_a_commit_stays_one_request_by_default():
    assert is_near("/lake/t")
    assert is_near("hdfs://namenode/t")
    for far in ("s3://b/t", "s3a://b/t", "gs://b/t", "abfss://c@a.dfs.core.windows.net/t"):
        assert not is_near(far)


def test_long_lists_and_expiring_transactions_are_left_out(tmp_path):
    log = RawLog(tmp_path / "a").create()
    commit(opened(log), *(SetTransaction(app_id=f"a{i}", version=1) for i in range(101)))
    assert "setTransactions" not in content(log, 1)
    expiring = {"delta.setTransactionRetentionDuration": "interval 1 day"}
    log = RawLog(tmp_path / "b").create(configuration=expiring)
    commit(opened(log), SetTransaction(app_id="a", version=1))
    assert "setTransactions" not in content(log, 1)


def with_checksum(log, **changes):
    log.commit(add("b", size=7), remove("a"))
    value = json.loads(counted(log, 1).to_json()) | changes
    crc(log, 1).write_text(json.dumps(value))


def test_a_checksum_that_matches_is_silent(log, caplog):
    with_checksum(log)
    assert opened(log, **{FATAL: "true"}).snapshot.num_files == 1
    assert not caplog.text


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"numFiles": 2}, "num files is 1, but the checksum has 2"),
        ({"tableSizeBytes": 17}, "table size bytes is 7, but the checksum has 17"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, "the protocol differs"),
        ({"metadata": {"id": "other", "partitionColumns": []}}, "the metadata differs"),
        ({"setTransactions": [{"appId": "x", "version": 1}]}, "application transactions"),
        (
            {"domainMetadata": [{"domain": "d", "configuration": "{}", "removed": False}]},
            "the domain metadata differs",
        ),
    ],
)
def test_what_differs_is_logged_and_the_log_counts(log, changes, message, caplog):
    with_checksum(log, **changes)
    assert opened(log).snapshot.num_files == 1
    assert message in caplog.text
    assert str(crc(log, 1)) in caplog.text
    with pytest.raises(CorruptLogError, match=message):
        _ = opened(log, **{FATAL: "true"}).snapshot.num_files


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"numFiles":-1,"tableSizeBytes":0}', "7"])
def test_a_checksum_that_is_none_is_ignored(log, text, caplog):
    with_checksum(log)
    crc(log, 1).write_text(text)
    assert opened(log, **{FATAL: "true"}).snapshot.num_files == 1
    assert "ignoring the version checksum" in caplog.text or not text


def test_the_checksum_of_another_version_says_nothing(log, caplog):
    with_checksum(log, numFiles=5)
    log.commit(add("c"))
    assert opened(log).snapshot.num_files == 2
    assert not caplog.text


def test_files_with_deletion_vectors_are_counted(log):
    vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 3}
    names = ["deletionVectors"]
    lists = {"readerFeatures": names, "writerFeatures": names}
    log.commit({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}})
    log.commit(add("b", deletionVector=vector), add("c", deletionVector={**vector, "offset": 9}))
    from lakelog.core.state.replay import load_state

    found = checksum_of(load_state(LocalLogStore(), log.table), None)
    assert (found.num_files, found.num_deletion_vectors, found.num_deleted_records) == (3, 2, 6)


def test_a_checksum_survives_its_json(log):
    log.commit({"txn": {"appId": "a", "version": 1, "lastUpdated": 5}})
    value = counted(log, 1)
    assert VersionChecksum.from_json(value.to_json().encode()) == value
    assert checksum_path("/t", 7) == f"/t/_delta_log/{7:020d}.crc"
