from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import shutil
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.checkpoints import checkpoint_files
from lakelog.core.checkpoints import write_checkpoint as checkpoints
from lakelog.core.checkpoints.checkpoint_rows import CHECKPOINT_SCHEMA, add_rows
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.log.file_names import checkpoint_name
from lakelog.core.log.last_checkpoint import read_last_checkpoint
from lakelog.logstores import LocalLogStore
from support.examples import examples
from support.manual_clock import ManualClock
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove

NOW = 1_700_000_000_000
DAY = 86_400_000


@pytest.fixture
def log(tmp_path):
    return RawLog(tmp_path / "t").create(add("a", size=10))


def opened(log):
    return DeltaLog.for_table(log.table, clock=ManualClock(NOW))


def checkpoint_file(log, version):
    return log.folder / checkpoint_name(version)


def checkpoint_of(snapshot):
    found = snapshot.state.segment.checkpoint
    assert found is not None
    return found


def files(snapshot):
    return sorted(snapshot.file_table.to_pylist(), key=lambda row: str(row))


def dead(snapshot):
    return sorted(snapshot.tombstones.to_pylist(), key=lambda row: str(row))


def everything(snapshot):
    return (
        snapshot.version,
        snapshot.protocol,
        snapshot.metadata,
        snapshot.transactions,
        snapshot.domain_metadata,
        files(snapshot),
        dead(snapshot),
    )


vector = {"storageType": "u", "pathOrInlineDv": "x", "sizeInBytes": 4, "cardinality": 1}
names = st.sampled_from(["a", "b", "c%20d", "p=1/e"])
vectors = st.sampled_from([None, vector, {**vector, "offset": 1}])
adds = st.builds(
    lambda path, dv, tags, stats: add(
        path, partitionValues={"p": None, "q": "1"}, deletionVector=dv, tags=tags, stats=stats
    ),
    names,
    vectors,
    st.none() | st.just({"t": "1", "u": None}),
    st.none() | st.just('{"numRecords":1}'),
)
removes = st.builds(
    lambda path, dv: remove(path, NOW - 1, deletionVector=dv, extendedFileMetadata=True),
    names,
    vectors,
)
others = st.one_of(
    st.builds(lambda a, v: {"txn": {"appId": a, "version": v}}, names, st.integers(0, 9)),
    st.builds(
        lambda d, r: {"domainMetadata": {"domain": d, "configuration": "{}", "removed": r}},
        names,
        st.booleans(),
    ),
    st.just(metadata(configuration={"delta.x": "1"})),
    st.just({"protocol": {"minReaderVersion": 1, "minWriterVersion": 3}}),
    st.just({"commitInfo": {}}),
)
lines = st.lists(st.lists(adds | removes | others, min_size=1, max_size=4), max_size=6)


@settings(max_examples=examples(24))
@given(lines, st.data())
def test_a_checkpoint_and_the_commits_after_it_give_what_the_commits_give(
    tmp_path_factory, made, data
):
    log = RawLog(tmp_path_factory.mktemp("t")).create()
    for actions in made:
        log.commit(*actions)
    expected = everything(opened(log).snapshot)
    at = data.draw(st.integers(0, len(made)))
    opened(log).checkpoint(at)
    for version in range(at):
        log.path(version).unlink()
    fresh = opened(log).snapshot
    assert checkpoint_of(fresh).version == at
    assert everything(fresh) == expected
    shutil.rmtree(log.table)


def test_the_hint_points_at_the_checkpoint(log):
    log.commit(add("b"), remove("a", NOW))
    opened(log).checkpoint()
    hint = json.loads((log.folder / "_last_checkpoint").read_text())
    assert (hint["version"], hint["size"], hint["numOfAddFiles"]) == (1, 4, 1)
    assert hint["sizeInBytes"] == checkpoint_file(log, 1).stat().st_size
    assert list(hint)[-1] == "checksum"


def test_nothing_but_checkpoint_and_hint_is_left(log):
    opened(log).checkpoint()
    assert sorted(p.name for p in log.folder.iterdir()) == [
        f"{0:020d}.checkpoint.parquet",
        f"{0:020d}.json",
        "_last_checkpoint",
    ]


def test_an_older_version_can_be_checkpointed_without_moving_the_hint(log):
    log.commit(add("b")).commit(add("c"))
    opened(log).checkpoint(2)
    opened(log).checkpoint(1)
    assert json.loads((log.folder / "_last_checkpoint").read_text())["version"] == 2
    assert checkpoint_file(log, 1).exists()


def test_expired_tombstones_are_dropped(log):
    log.commit(add("b"), add("c"))
    log.commit(remove("b", NOW - 8 * DAY), remove("c", NOW - 6 * DAY))
    log.commit({"remove": {"path": "a", "dataChange": True}})
    opened(log).checkpoint()
    for version in range(4):
        log.path(version).unlink()
    assert [row["path"] for row in dead(opened(log).snapshot)] == ["c"]


def test_the_columns_are_those_of_the_protocol(log):
    opened(log).checkpoint()
    found = pq.read_schema(checkpoint_file(log, 0))
    assert found.names == CHECKPOINT_SCHEMA.names
    assert [each.name for each in found.field("add").type] == [
        "path",
        "partitionValues",
        "size",
        "modificationTime",
        "dataChange",
        "tags",
        "deletionVector",
        "baseRowId",
        "defaultRowCommitVersion",
        "clusteringProvider",
        "stats",
    ]


def test_many_files_make_several_row_groups(log, monkeypatch):
    monkeypatch.setattr(checkpoints, "ROWS", 10)
    monkeypatch.setattr(checkpoint_files, "ROWS", 10)
    log.commit(*(add(f"f{i}") for i in range(95)))
    opened(log).checkpoint()
    stored = pq.ParquetFile(checkpoint_file(log, 1))
    assert stored.metadata.num_row_groups > 3
    assert stored.metadata.num_rows == 98
    assert opened(log).snapshot.num_files == 96


def listing(log):
    return sorted(p.name for p in log.folder.iterdir())


def test_a_read_error_half_way_publishes_nothing(log, monkeypatch):
    log.commit(*(add(f"f{i}") for i in range(30)))
    before = listing(log)
    monkeypatch.setattr(checkpoints, "ROWS", 10)
    monkeypatch.setattr(checkpoint_files, "ROWS", 10)
    whole = add_rows
    calls = []

    def failing(batch, layout):
        calls.append(batch)
        if len(calls) == 2:
            raise OSError("gone")
        return whole(batch, layout)

    monkeypatch.setattr(checkpoints, "add_rows", failing)
    with pytest.raises(OSError, match="gone"):
        opened(log).checkpoint()
    assert listing(log) == before


def test_a_checkpoint_that_lacks_files_is_not_published(log, monkeypatch):
    log.commit(*(add(f"f{i}") for i in range(30)))
    before = listing(log)
    whole = add_rows
    monkeypatch.setattr(
        checkpoints, "add_rows", lambda batch, layout: whole(batch.slice(1), layout)
    )
    with pytest.raises(CorruptCheckpointError, match="files instead of 31"):
        opened(log).checkpoint()
    assert listing(log) == before


def test_a_checkpoint_that_can_not_be_read_back_is_not_published(log, monkeypatch):
    before = listing(log)
    written = checkpoint_files._write

    def cut(filesystem, path, schema, batches):
        rows = written(filesystem, path, schema, batches)
        with open(path, "r+b") as file:
            file.truncate(100)
        return rows

    monkeypatch.setattr(checkpoint_files, "_write", cut)
    with pytest.raises(CorruptCheckpointError, match="can't be read back"):
        opened(log).checkpoint()
    assert listing(log) == before


class TornWhenPublished(LocalLogStore):
    """Another writer tears what was published just now, if a name is in `torn`."""

    def __init__(self, *torn, atomic_overwrite=False):
        super().__init__()
        self.torn = torn
        self.atomic_overwrite = atomic_overwrite

    @property
    def capabilities(self):
        return replace(super().capabilities, atomic_overwrite=self.atomic_overwrite)

    @contextlib.contextmanager
    def staged(self, path):
        with super().staged(path) as given:
            yield given
        if any(each in path for each in self.torn):
            with open(path, "r+b") as file:
                file.truncate(os.stat(path).st_size // 2)


def stored(log, store, **conf):
    return DeltaLog(log.table, store, DeltaConf.from_mapping(conf), ManualClock(NOW))


def test_a_checkpoint_torn_under_its_name_is_not_pointed_at(log):
    store = TornWhenPublished("checkpoint")
    with pytest.raises(CorruptCheckpointError, match="does not overwrite atomically"):
        stored(log, store).checkpoint()
    assert read_last_checkpoint(store, log.table) is None
    assert files(opened(log).snapshot) == [*files(opened(log).snapshot_at(0))]


@pytest.mark.parametrize("torn", [".json", "_sidecars"])
def test_a_part_of_a_v2_checkpoint_torn_under_its_name_is_not_pointed_at(tmp_path, torn):
    features = {"writerFeatures": ["v2Checkpoint"], "readerFeatures": ["v2Checkpoint"]}
    log = RawLog(tmp_path / "t").commit(
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        metadata(configuration={"delta.checkpointPolicy": "v2"}),
        add("a"),
    )
    store = TornWhenPublished(torn)
    with pytest.raises(CorruptCheckpointError, match="does not overwrite atomically"):
        stored(log, store).checkpoint()
    assert read_last_checkpoint(store, log.table) is None


def test_a_store_that_overwrites_atomically_is_asked_for_the_length_alone(log):
    store = TornWhenPublished("checkpoint", atomic_overwrite=True)
    with pytest.raises(CorruptCheckpointError, match="in the storage's place"):
        stored(log, store).checkpoint()
    assert read_last_checkpoint(store, log.table) is None


def test_a_checkpoint_that_stands_is_pointed_at(log):
    store = TornWhenPublished()
    stored(log, store).checkpoint()
    hint = read_last_checkpoint(store, log.table)
    assert hint is not None
    assert hint.version == 0


def damage_tail(path):
    path.write_bytes(path.read_bytes()[:-20])


def damage_all(path):
    path.write_bytes(b"\0" * path.stat().st_size)


def damage_pages(path):
    """Keep the footer, and overwrite the pages of the adds."""
    stored = pq.ParquetFile(path).metadata
    data = bytearray(path.read_bytes())
    for group in range(stored.num_row_groups):
        for index in range(stored.num_columns):
            column = stored.row_group(group).column(index)
            if column.path_in_schema.startswith("add."):
                start = column.dictionary_page_offset or column.data_page_offset
                data[start : start + column.total_compressed_size] = (
                    b"\xff" * column.total_compressed_size
                )
    path.write_bytes(bytes(data))


def flip_in_pages(path):
    """One wrong byte in the middle of the paths, which stays readable text."""
    data = bytearray(path.read_bytes())
    at = data.index(b"part-")
    data[at] = ord("q")
    path.write_bytes(bytes(data))


def delete(path):
    path.unlink()


damages = pytest.mark.parametrize("damage", [damage_tail, damage_all, damage_pages, delete])


@damages
def test_a_damaged_checkpoint_is_survived_with_the_commits(log, damage, caplog):
    log.commit(add("b"), remove("a", NOW)).commit(add("c"))
    expected = everything(opened(log).snapshot)
    opened(log).checkpoint(1)
    damage(checkpoint_file(log, 1))
    assert everything(opened(log).snapshot) == expected
    assert "older checkpoint" in caplog.text or damage is delete


@damages
def test_a_damaged_checkpoint_is_survived_with_an_older_one(log, damage):
    log.commit(add("b"), remove("a", NOW)).commit(add("c")).commit(add("d"))
    expected = everything(opened(log).snapshot)
    opened(log).checkpoint(1)
    opened(log).checkpoint(2)
    log.path(0).unlink()
    damage(checkpoint_file(log, 2))
    assert everything(opened(log).snapshot) == expected


@damages
def test_a_table_with_two_damaged_checkpoints_is_rebuilt_from_the_start(log, damage):
    log.commit(add("b")).commit(add("c")).commit(add("d"))
    expected = everything(opened(log).snapshot)
    for version in (1, 2):
        opened(log).checkpoint(version)
        damage(checkpoint_file(log, version))
    assert everything(opened(log).snapshot) == expected


@pytest.mark.parametrize("damage", [damage_tail, damage_all, damage_pages])
def test_a_damaged_checkpoint_with_nothing_behind_it_is_named(log, damage):
    log.commit(add("b"))
    opened(log).checkpoint()
    log.path(0).unlink()
    damage(checkpoint_file(log, 1))
    with pytest.raises(CorruptCheckpointError, match="Move it away") as caught:
        everything(opened(log).snapshot)
    assert caught.value.path == str(checkpoint_file(log, 1))
    assert caught.value.version == 1


def test_a_checkpoint_cut_short_by_its_writer_is_noticed_by_the_hint(log):
    # A writer that met an error, and still closed its file: valid Parquet with rows missing.
    log.commit(add("b"), add("c"))
    opened(log).checkpoint()
    path = checkpoint_file(log, 1)
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, rows.num_rows - 1), path)
    assert opened(log).snapshot.num_files == 3
    log.path(0).unlink()
    with pytest.raises(CorruptCheckpointError, match="2 files, but _last_checkpoint promises 3"):
        _ = opened(log).snapshot.num_files


def test_a_single_wrong_byte_in_a_path_is_noticed(log):
    log.commit(add("part-1"), add("part-2"))
    expected = everything(opened(log).snapshot)
    opened(log).checkpoint()
    flip_in_pages(checkpoint_file(log, 1))
    assert everything(opened(log).snapshot) == expected


@pytest.mark.parametrize("column", ["protocol", "metaData"])
def test_a_checkpoint_without_protocol_or_metadata_is_passed_over(log, column):
    log.commit(add("b"))
    opened(log).checkpoint()
    path = checkpoint_file(log, 1)
    rows = pq.read_table(path)
    pq.write_table(rows.filter(rows[column].is_null()), path)
    assert opened(log).snapshot.num_files == 2
    log.path(0).unlink()
    with pytest.raises(CorruptCheckpointError, match=f"no {column} action"):
        _ = opened(log).snapshot


def test_a_checkpoint_in_parts_is_read_whole(log):
    log.commit(*(add(f"f{i}") for i in range(9)), remove("a", NOW))
    expected = everything(opened(log).snapshot)
    opened(log).checkpoint()
    rows = pq.read_table(checkpoint_file(log, 1))
    for part in (1, 2, 3):
        name = f"{1:020d}.checkpoint.{part:010d}.{3:010d}.parquet"
        pq.write_table(rows.slice((part - 1) * 4, 4), log.folder / name)
    checkpoint_file(log, 1).unlink()
    log.path(0).unlink()
    fresh = opened(log).snapshot
    assert len(checkpoint_of(fresh).files) == 3
    assert everything(fresh) == expected


def test_a_checkpoint_may_lack_columns_and_have_others(log):
    log.commit(add("b", stats='{"numRecords":1}'), remove("a", NOW))
    opened(log).checkpoint()
    path = checkpoint_file(log, 1)
    rows = pq.read_table(path).drop_columns(["txn", "domainMetadata"])
    adds = rows["add"].combine_chunks()
    kept = ["size", "path", "partitionValues", "modificationTime"]
    slim = pa.StructArray.from_arrays(
        [
            adds.field(name).cast(pa.large_string()) if name == "path" else adds.field(name)
            for name in kept
        ],
        names=kept,
        mask=adds.is_null(),
    )
    rows = rows.set_column(rows.schema.get_field_index("add"), "add", slim)
    pq.write_table(rows.append_column("new", pa.nulls(rows.num_rows, pa.int32())), path)
    log.path(0).unlink()
    (row,) = opened(log).snapshot.file_table.to_pylist()
    assert (row["path"], row["size"], row["stats"], row["tags"]) == ("b", 1, None, None)


def test_statistics_that_are_only_a_struct_become_json(log):
    log.commit(remove("a", NOW))
    opened(log).checkpoint()
    path = checkpoint_file(log, 1)
    rows = pq.read_table(path)
    low = {
        "i": 1,
        "s": "ü",
        "d": dt.date(2020, 1, 2),
        "t": dt.datetime(2020, 1, 2, 3, 4, 5, 678_901, tzinfo=dt.UTC),
        "n": dt.datetime(2020, 1, 2, 3, 4, 5, 678_901),  # noqa: DTZ001  # a time without zone
        "x": Decimal("12345678901234567890.10"),
    }
    stats = {"numRecords": 3, "minValues": low, "nullCount": {"i": 0}}
    extra = pa.Table.from_pylist(
        [
            {
                "add": {
                    "path": "b",
                    "size": 1,
                    "modificationTime": 1,
                    "stats_parsed": stats,
                }
            }
        ]
    )
    both = pa.concat_tables([rows.drop_columns(["add"]), extra], promote_options="permissive")
    pq.write_table(both, path)
    (log.folder / "_last_checkpoint").unlink()
    (row,) = [r for r in opened(log).snapshot.file_table.to_pylist() if r["path"] == "b"]
    # The decimal is compared as it is spelled; the order of keys depends on the version of pyarrow.
    assert json.loads(row["stats"], parse_float=str) == {
        "numRecords": 3,
        "minValues": {
            "i": 1,
            "s": "ü",
            "d": "2020-01-02",
            "t": "2020-01-02T03:04:05.678Z",
            "n": "2020-01-02T03:04:05.678",
            "x": "12345678901234567890.10",
        },
        "nullCount": {"i": 0},
    }


def test_an_action_that_lacks_a_field_makes_a_checkpoint_corrupt(log):
    log.commit({"txn": {"appId": "a", "version": 1}})
    opened(log).checkpoint()
    path = checkpoint_file(log, 1)
    rows = pq.read_table(path)
    names = ["appId"]
    slim = pa.StructArray.from_arrays(
        [rows["txn"].combine_chunks().field("appId")],
        names=names,
        mask=rows["txn"].combine_chunks().is_null(),
    )
    pq.write_table(rows.set_column(rows.schema.get_field_index("txn"), "txn", slim), path)
    assert opened(log).snapshot.transactions == {"a": 1}
    log.path(0).unlink()
    with pytest.raises(CorruptCheckpointError, match="txn action"):
        _ = opened(log).snapshot


def test_an_empty_table_can_be_checkpointed(tmp_path):
    log = RawLog(tmp_path).create()
    opened(log).checkpoint()
    log.path(0).unlink()
    assert opened(log).snapshot.num_files == 0


def test_protocol_lists_and_metadata_survive(tmp_path):
    lists = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz", "appendOnly"]}
    line = metadata(configuration={"delta.appendOnly": "true"})
    line["metaData"].update(
        name="n", description="d", format={"provider": "parquet", "options": {"o": "1"}}
    )
    log = RawLog(tmp_path).commit(
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **lists}}, line
    )
    before = opened(log).snapshot
    opened(log).checkpoint()
    log.path(0).unlink()
    after = opened(log).snapshot
    assert (after.protocol, after.metadata) == (before.protocol, before.metadata)


def test_two_checkpoints_of_one_version_agree(log):
    opened(log).checkpoint()
    first = pq.read_table(checkpoint_file(log, 0))
    opened(log).checkpoint()
    assert pq.read_table(checkpoint_file(log, 0)).equals(first)
    assert not [name for name in listing(log) if name.endswith(".tmp")]


def test_a_protocol_alone_in_a_later_checkpoint_is_the_newest(log):
    log.commit({"protocol": {**PROTOCOL["protocol"], "minWriterVersion": 4}})
    opened(log).checkpoint()
    assert opened(log).snapshot.protocol.min_writer_version == 4
