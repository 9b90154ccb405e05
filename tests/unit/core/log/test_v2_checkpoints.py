from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.errors import CorruptCheckpointError
from support.examples import examples
from support.log_histories import NOW, histories, whole_state
from support.manual_clock import ManualClock
from support.raw_log import RawLog, add, remove
from support.v2_checkpoints import convert, sidecars_of, top_level

FORMS = ("json", "parquet", "classic")
forms = pytest.mark.parametrize("form", FORMS)


@pytest.fixture
def log(tmp_path):
    """Two versions, and a classic checkpoint of the second."""
    log = RawLog(tmp_path / "t").create(*(add(f"f{i}", size=i) for i in range(9)))
    log.commit(remove("f0", NOW - 1), add("b", stats='{"numRecords":1}'))
    log.commit({"txn": {"appId": "job", "version": 3}})
    opened(log).checkpoint(2)
    return log


def opened(log):
    return DeltaLog.for_table(log.table, clock=ManualClock(NOW))


def forget(log, below):
    for version in range(below):
        log.path(version).unlink()


@settings(max_examples=examples(24))
@given(histories, st.sampled_from(FORMS), st.none() | st.integers(1, 3), st.data())
def test_any_history_reads_the_same_from_a_v2_checkpoint(
    tmp_path_factory, made, form, sidecars, data
):
    log = RawLog(tmp_path_factory.mktemp("t")).create()
    for actions in made:
        log.commit(*actions)
    expected = whole_state(opened(log).snapshot)
    at = data.draw(st.integers(0, len(made)))
    opened(log).checkpoint(at)
    convert(log, at, form, sidecars=sidecars)
    forget(log, at)
    fresh = opened(log).snapshot
    checkpoint = fresh.state.segment.checkpoint
    assert checkpoint is not None
    assert checkpoint.version == at
    assert whole_state(fresh) == expected
    shutil.rmtree(log.table)


def missing_sidecar(log):
    sidecars_of(log)[1].unlink()


def cut_sidecar(log):
    path = sidecars_of(log)[1]
    path.write_bytes(path.read_bytes()[:-30])


def replaced_sidecar(log):
    """Readable, and with rows missing: only its size in the top level tells."""
    path = sidecars_of(log)[1]
    pq.write_table(pq.read_table(path).slice(1), path)


broken_sidecars = pytest.mark.parametrize(
    "damage", [missing_sidecar, cut_sidecar, replaced_sidecar]
)


@forms
@broken_sidecars
def test_a_broken_sidecar_is_survived_with_the_commits(log, form, damage, caplog):
    expected = whole_state(opened(log).snapshot)
    convert(log, 2, form, sidecars=3)
    damage(log)
    assert whole_state(opened(log).snapshot) == expected
    assert "older checkpoint" in caplog.text


@forms
@broken_sidecars
def test_a_broken_sidecar_is_survived_with_an_older_checkpoint(log, form, damage):
    expected = whole_state(opened(log).snapshot)
    opened(log).checkpoint(1)
    convert(log, 2, form, sidecars=3)
    log.path(0).unlink()
    damage(log)
    assert whole_state(opened(log).snapshot) == expected


@forms
@broken_sidecars
def test_a_broken_sidecar_with_nothing_behind_it_is_named(log, form, damage):
    path = convert(log, 2, form, sidecars=3)
    forget(log, 2)
    damage(log)
    with pytest.raises(CorruptCheckpointError, match="_sidecars") as caught:
        whole_state(opened(log).snapshot)
    assert caught.value.path == str(path)


def rewritten(log, change):
    """Change the lines of the JSON top level."""
    path = top_level(log, 2, "json")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [line for line in map(change, lines) if line is not None]
    path.write_text("".join(json.dumps(line) + "\n" for line in kept))


BROKEN_TOPS = {
    "no checkpointMetadata": lambda line: None if "checkpointMetadata" in line else line,
    "no protocol": lambda line: None if "protocol" in line else line,
    "no metaData": lambda line: None if "metaData" in line else line,
    "for version 7": lambda line: (
        {"checkpointMetadata": {"version": 7}} if "checkpointMetadata" in line else line
    ),
    "a sidecar action is malformed": lambda line: (
        {"sidecar": {"path": "x"}} if "sidecar" in line else line
    ),
}


@pytest.mark.parametrize("why", BROKEN_TOPS)
def test_a_top_level_that_can_not_be_right_is_passed_over(log, why):
    expected = whole_state(opened(log).snapshot)
    convert(log, 2, "json", sidecars=2)
    rewritten(log, BROKEN_TOPS[why])
    assert whole_state(opened(log).snapshot) == expected
    forget(log, 2)
    with pytest.raises(CorruptCheckpointError, match=why):
        whole_state(opened(log).snapshot)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]\n", b"{}\n", b'{"add":{}}\n'])
def test_a_top_level_that_is_no_json_is_passed_over(log, content):
    expected = whole_state(opened(log).snapshot)
    convert(log, 2, "json", sidecars=2).write_bytes(content)
    assert whole_state(opened(log).snapshot) == expected


def test_a_checkpoint_that_names_too_few_sidecars_is_noticed_by_its_own_count(log):
    convert(log, 2, "json", sidecars=2)
    seen: list[object] = []

    def without_the_first(line):
        if "sidecar" in line and not seen:
            seen.append(line)
            return None
        return line

    rewritten(log, without_the_first)
    assert opened(log).snapshot.num_files == 9
    forget(log, 2)
    with pytest.raises(CorruptCheckpointError, match="its own metadata promises 9"):
        _ = opened(log).snapshot.num_files


def test_a_sidecar_is_looked_for_in_its_folder_alone(log, tmp_path):
    """Its path is encoded, may be absolute, and must not lead out of the log."""
    expected = whole_state(opened(log).snapshot)
    convert(log, 2, "json", sidecars=1)
    forget(log, 2)
    (path,) = sidecars_of(log)
    path.rename(path.with_name("a b.parquet"))
    for spelled in ("a%20b.parquet", f"file:{tmp_path}/other/a%20b.parquet", "../a%20b.parquet"):
        rewritten(
            log,
            lambda line, spelled=spelled: (
                {"sidecar": {**line["sidecar"], "path": spelled}} if "sidecar" in line else line
            ),
        )
        assert whole_state(opened(log).snapshot) == expected


def test_the_hint_of_a_v2_checkpoint_is_followed(log):
    expected = whole_state(opened(log).snapshot)
    path = convert(log, 2, "json", sidecars=1)
    hint = {"version": 2, "size": 4, "v2Checkpoint": {"path": path.name, "sizeInBytes": 1}}
    (log.folder / "_last_checkpoint").write_text(json.dumps(hint))
    fresh = opened(log).snapshot
    assert fresh.state.segment.hint is not None
    assert whole_state(fresh) == expected


def test_a_hint_whose_checksum_is_wrong_is_no_hint(log, caplog):
    convert(log, 2, "json", sidecars=1)
    hint = {"version": 2, "size": 4, "numOfAddFiles": 77, "checksum": "0" * 32}
    (log.folder / "_last_checkpoint").write_text(json.dumps(hint))
    fresh = opened(log).snapshot
    assert fresh.num_files == 9
    assert fresh.state.segment.hint is None
    assert "checksum does not match" in caplog.text


def test_only_the_columns_of_a_struct_of_statistics_are_enough(log):
    path = convert(log, 2, "parquet", sidecars=1)
    (sidecar,) = sidecars_of(log)
    row = {
        "add": {"path": "z", "size": 1, "modificationTime": 1, "stats_parsed": {"numRecords": 5}}
    }
    pq.write_table(pa.Table.from_pylist([row]), sidecar)
    rows = pq.read_table(path).to_pylist()
    for each in rows:
        if each["sidecar"] is not None:
            each["sidecar"]["sizeInBytes"] = sidecar.stat().st_size
        if each["checkpointMetadata"] is not None:
            each["checkpointMetadata"]["tags"] = None
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    forget(log, 2)
    (found,) = opened(log).snapshot.file_table.to_pylist()
    assert (found["path"], found["stats"]) == ("z", '{"numRecords":5}')
