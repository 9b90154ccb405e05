from __future__ import annotations

import itertools
import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.checkpoints import write_checkpoint as checkpoints
from lakelog.core.checkpoints.checkpoint_rows import add_rows
from lakelog.core.errors import CorruptCheckpointError, DeltaAnalysisError
from lakelog.core.log import checkpoint_parts
from lakelog.core.log.last_checkpoint import hint_checksum
from support.examples import examples
from support.log_histories import NOW, histories, whole_state
from support.manual_clock import ManualClock
from support.raw_log import PROTOCOL, RawLog, add, metadata, remove

DELTA = "spark.databricks.delta."
PARTS = f"{DELTA}checkpoint.partSize"
TOP_LEVEL = f"{DELTA}checkpointV2.topLevelFileFormat"
V2_PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"],
    }
}
V2 = {"delta.checkpointPolicy": "v2"}

FORMS = {
    "one file": {},
    "parts": {PARTS: "2"},
    "v2 below json": {TOP_LEVEL: "json", PARTS: "2"},
    "v2 below parquet": {TOP_LEVEL: "parquet", PARTS: "2"},
    "v2 with one sidecar": {},
}


def opened(log, **conf):
    return DeltaLog.for_table(log.table, conf, ManualClock(NOW))


def forget(log, below):
    for version in range(below):
        log.path(version).unlink()


def names(log, pattern):
    return sorted(path.name for path in log.folder.glob(pattern))


def hint_of(log):
    return json.loads((log.folder / "_last_checkpoint").read_text())


@pytest.fixture
def v2(tmp_path):
    """A table with the feature, eleven files and a tombstone."""
    log = RawLog(tmp_path / "t").commit(V2_PROTOCOL, metadata(configuration=V2))
    log.commit(*(add(f"f{i}", size=i) for i in range(12)))
    return log.commit(remove("f3", NOW - 1), {"txn": {"appId": "job", "version": 3}})


@settings(max_examples=examples(32))
@given(histories, st.sampled_from(list(FORMS)))
def test_any_history_reads_the_same_from_every_form_of_checkpoint(tmp_path_factory, made, form):
    log = RawLog(tmp_path_factory.mktemp("t")).create()
    for actions in made:
        log.commit(*actions)
    if form.startswith("v2"):
        log.commit(V2_PROTOCOL, metadata(configuration=V2))
    expected = whole_state(opened(log).snapshot)
    opened(log, **FORMS[form]).checkpoint()
    forget(log, log.next - 1)
    fresh = opened(log).snapshot
    checkpoint = fresh.state.segment.checkpoint
    assert checkpoint is not None
    assert checkpoint.is_v2 == form.startswith("v2")
    assert whole_state(fresh) == expected
    shutil.rmtree(log.table)


def test_the_sidecars_hold_the_files_and_the_top_level_names_them(v2):
    opened(v2, **{PARTS: "5"}).checkpoint()
    (top,) = names(v2, "*.checkpoint.*.json")
    lines = [json.loads(line) for line in (v2.folder / top).read_text().splitlines()]
    kinds = [next(iter(line)) for line in lines]
    assert kinds == ["checkpointMetadata", *["sidecar"] * 3, "protocol", "metaData", "txn"]
    sidecars = [line["sidecar"] for line in lines if "sidecar" in line]
    assert names(v2, "_sidecars/*") == sorted(each["path"] for each in sidecars)
    for each in sidecars:
        file = v2.folder / "_sidecars" / each["path"]
        assert each["sizeInBytes"] == file.stat().st_size
        assert each["modificationTime"] == file.stat().st_mtime_ns // 1_000_000
        assert pq.read_schema(file).names == ["add", "remove"]
        assert pq.read_metadata(file).num_rows <= 5
    assert lines[0]["checkpointMetadata"] == {
        "version": 2,
        "tags": {
            "sidecarNumActions": "12",
            "sidecarSizeInBytes": str(sum(each["sizeInBytes"] for each in sidecars)),
            "numOfAddFiles": "11",
        },
    }


def test_the_hint_of_a_v2_checkpoint_names_it_and_has_a_checksum(v2):
    opened(v2).checkpoint()
    hint = hint_of(v2)
    (top,) = names(v2, "*.checkpoint.*.json")
    assert hint["checksum"] == hint_checksum(hint)
    assert hint["v2Checkpoint"]["path"] == top
    assert hint["v2Checkpoint"]["sizeInBytes"] == (v2.folder / top).stat().st_size
    assert (hint["version"], hint["numOfAddFiles"], hint["size"]) == (2, 11, 17)
    assert "parts" not in hint


def test_an_empty_table_has_one_empty_sidecar(tmp_path):
    log = RawLog(tmp_path / "t").commit(V2_PROTOCOL, metadata(configuration=V2))
    opened(log).checkpoint()
    (sidecar,) = names(log, "_sidecars/*")
    assert pq.read_metadata(log.folder / "_sidecars" / sidecar).num_rows == 0
    log.path(0).unlink()
    assert opened(log).snapshot.num_files == 0


@pytest.mark.parametrize("which", ["policy", "feature"])
def test_a_v2_checkpoint_needs_both_the_policy_and_the_feature(tmp_path, which):
    log = RawLog(tmp_path / "t")
    log.commit(
        V2_PROTOCOL if which == "feature" else PROTOCOL,
        metadata(configuration=V2 if which == "policy" else {}),
    )
    opened(log).checkpoint()
    assert names(log, "*.checkpoint*") == [f"{0:020d}.checkpoint.parquet"]


def test_the_property_brings_the_feature_with_it(tmp_path):
    table = str(tmp_path / "t")
    write_arrow(
        table,
        pa.table({"a": [1]}),
        properties={**V2, "delta.checkpointInterval": "2"},
        mode="append",
    )
    for _ in range(2):
        write_arrow(table, pa.table({"a": [1]}), mode="append")
    log = DeltaLog.for_table(table)
    assert "v2Checkpoint" in (log.snapshot.protocol.reader_features or ())
    checkpoint = log.snapshot.state.segment.checkpoint
    assert checkpoint is not None
    assert (checkpoint.version, checkpoint.is_v2) == (2, True)
    assert log.snapshot.to_arrow().num_rows == 3


def failing_at(monkeypatch, attempt):
    """Make the publishing of that file fail, counted from 0."""
    counter = itertools.count()
    for name in ("publish_parquet", "publish_lines"):
        whole = getattr(checkpoints, name)

        def publish(*args, whole=whole, **options):
            if next(counter) == attempt:
                raise OSError("gone")
            return whole(*args, **options)

        monkeypatch.setattr(checkpoints, name, publish)


@pytest.mark.parametrize("attempt", range(4))
def test_a_crash_between_the_files_of_a_v2_checkpoint_changes_nothing(v2, monkeypatch, attempt):
    expected = whole_state(opened(v2).snapshot)
    failing_at(monkeypatch, attempt)
    with pytest.raises(OSError, match="gone"):
        opened(v2, **{PARTS: "4"}).checkpoint()
    assert names(v2, "*.checkpoint.*") == names(v2, "_last_checkpoint") == []
    assert whole_state(opened(v2).snapshot) == expected


@pytest.mark.parametrize("attempt", range(3))
def test_a_crash_between_parts_changes_nothing(v2, monkeypatch, attempt):
    v2.commit(metadata())
    expected = whole_state(opened(v2).snapshot)
    failing_at(monkeypatch, attempt)
    with pytest.raises(OSError, match="gone"):
        opened(v2, **{PARTS: "4"}).checkpoint()
    assert len(names(v2, "*.checkpoint.*")) == attempt
    assert names(v2, "_last_checkpoint") == []
    assert whole_state(opened(v2).snapshot) == expected


def test_a_sidecar_that_lacks_files_stops_the_checkpoint(v2, monkeypatch):
    whole = add_rows
    monkeypatch.setattr(
        checkpoints, "add_rows", lambda batch, layout: whole(batch.slice(1), layout)
    )
    with pytest.raises(CorruptCheckpointError, match="files instead of"):
        opened(v2).checkpoint()
    assert names(v2, "*.checkpoint.*") == names(v2, "_sidecars/*") == []


def test_parts_of_two_writers_may_mix(tmp_path):
    """Whoever loaded the table in another way has its files in another order."""
    log = RawLog(tmp_path / "t").create(*(add(f"f{i}") for i in range(9)))
    log.commit(remove("f0", NOW - 1), add("f1", tags={"a": "b"}))
    from_commits = opened(log, **{PARTS: "4"})
    expected = whole_state(from_commits.snapshot)
    order = from_commits.snapshot.file_table["path"].to_pylist()
    opened(log, **{PARTS: "4"}).checkpoint()
    from_parts = opened(log, **{PARTS: "4"})
    assert from_parts.snapshot.file_table["path"].to_pylist() != order
    log.path(0).unlink()
    parts = names(log, "*.checkpoint.*.parquet")
    assert len(parts) == 3
    first = {name: (log.folder / name).read_bytes() for name in parts}
    from_parts.checkpoint()
    assert names(log, "*.checkpoint.*.parquet") == parts
    for name in parts:
        second = (log.folder / name).read_bytes()
        (log.folder / name).write_bytes(first[name])
        assert whole_state(opened(log).snapshot) == expected
        (log.folder / name).write_bytes(second)


@pytest.mark.parametrize("bad", [{PARTS: "0"}, {PARTS: "x"}, {TOP_LEVEL: "orc"}])
def test_a_wrong_conf_is_named(v2, bad):
    with pytest.raises(DeltaAnalysisError, match=next(iter(bad))):
        opened(v2, **bad).checkpoint()


@pytest.mark.parametrize("room", [1, 16 << 20])
def test_row_groups_are_read_in_runs_and_none_is_left_out(tmp_path, monkeypatch, room):
    log = RawLog(tmp_path / "t")
    log.commit(PROTOCOL, metadata(), *(add(f"f{n}") for n in range(7)))
    opened(log).checkpoint()
    [path] = log.folder.glob("*.checkpoint.parquet")
    # As another client would have written it.
    rows = pq.read_table(path).replace_schema_metadata(None)
    pq.write_table(rows, path, row_group_size=2, store_schema=False)
    forget(log, 1)
    (log.folder / "_last_checkpoint").unlink()
    monkeypatch.setattr(checkpoint_parts, "_RUN", room)
    assert sorted(opened(log).snapshot.file_table["path"].to_pylist()) == [
        f"f{n}" for n in range(7)
    ]
