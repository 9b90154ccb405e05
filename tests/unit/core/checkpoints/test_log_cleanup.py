from __future__ import annotations

import json
import os
import shutil

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.actions import SetTransaction
from lakelog.core.actions.operation import Operation
from lakelog.core.checkpoints import log_cleanup
from lakelog.core.errors import LogGapError, VersionNotFoundError
from lakelog.core.log.file_names import checkpoint_name
from lakelog.core.log.own_files import OwnFiles
from lakelog.logstores import LocalLogStore
from support.examples import examples
from support.log_histories import NOW, histories, whole_state
from support.manual_clock import ManualClock
from support.raw_log import RawLog, add, metadata, remove
from support.v2_checkpoints import convert, sidecars_of

DAY = 86_400_000
RETENTION = 30
MIDNIGHT = NOW - NOW % DAY
CUTOFF = MIDNIGHT - RETENTION * DAY
V2_PROTOCOL = {
    "protocol": {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["v2Checkpoint"],
        "writerFeatures": ["v2Checkpoint"],
    }
}


def opened(log, **conf):
    return DeltaLog.for_table(log.table, conf, ManualClock(NOW))


def set_time(path, milliseconds):
    os.utime(path, ns=(milliseconds * 1_000_000, milliseconds * 1_000_000))


def age(log, times):
    """Give the files of each version their time."""
    for path in log.folder.iterdir():
        if path.name[:20].isdigit() and int(path.name[:20]) < len(times):
            set_time(path, times[int(path.name[:20])])


def listing(log):
    return sorted(path.name for path in log.folder.iterdir() if not path.is_dir())


def versions(log):
    return [int(name[:20]) for name in listing(log) if name[20:] == ".json"]


def clean(log):
    """What a checkpoint of the newest version would delete."""
    return log_cleanup.clean_log(opened(log).snapshot, ManualClock(NOW))


def table(folder, count, *, checkpoints=(), configuration=None):
    log = RawLog(folder).create(add("a"), configuration=configuration)
    while log.next < count:
        log.commit(add(f"f{log.next}"), remove(f"f{log.next - 1}", NOW - 1))
    for version in checkpoints:
        opened(log).checkpoint(version)
    return log


@pytest.fixture
def log(tmp_path):
    """Ten versions, five of them expired, and three checkpoints."""
    log = table(tmp_path / "t", 10, checkpoints=(2, 4, 8))
    age(log, [CUTOFF - 5 * DAY + i for i in range(5)] + [NOW - DAY + i for i in range(5)])
    return log


def test_what_expired_below_the_newest_possible_checkpoint_goes(log):
    kept = [whole_state(opened(log).snapshot_at(version)) for version in range(4, 10)]
    assert clean(log) == 5
    assert versions(log) == [4, 5, 6, 7, 8, 9]
    assert [n for n in listing(log) if "checkpoint.p" in n] == [
        checkpoint_name(4),
        checkpoint_name(8),
    ]
    assert [whole_state(opened(log).snapshot_at(v)) for v in range(4, 10)] == kept
    for gone in range(4):
        with pytest.raises(VersionNotFoundError):
            opened(log).snapshot_at(gone)
    assert clean(log) == 0


def test_a_checkpoint_of_the_newest_version_cleans_up_and_one_of_an_older_does_not(log):
    opened(log).checkpoint(8)
    assert versions(log)[0] == 0
    opened(log).checkpoint()
    assert versions(log)[0] == 4


def test_a_commit_that_checkpoints_cleans_up(tmp_path):
    log = table(
        tmp_path / "t", 4, checkpoints=(2,), configuration={"delta.checkpointInterval": "4"}
    )
    age(log, [CUTOFF - DAY + i for i in range(4)])
    txn = opened(log).start_transaction()
    txn.commit([SetTransaction(app_id="a", version=1)], Operation(name="TEST"))
    # The checkpoint that the commit made is the newest boundary.
    assert versions(log) == [4]


def test_a_table_can_forbid_it(tmp_path):
    off = {"delta.enableExpiredLogCleanup": "false"}
    log = table(tmp_path / "t", 5, checkpoints=(3,), configuration=off)
    age(log, [CUTOFF - DAY + i for i in range(5)])
    assert clean(log) == 0
    assert versions(log) == [0, 1, 2, 3, 4]


def test_the_retention_is_the_table_s_and_counts_whole_days(tmp_path):
    for name, extra, expected in (("a", 0, [3, 4]), ("b", 1, [0, 1, 2, 3, 4])):
        week = {"delta.logRetentionDuration": "interval 7 days"}
        log = table(tmp_path / name, 5, checkpoints=(3,), configuration=week)
        oldest = MIDNIGHT - 7 * DAY
        age(log, [oldest - 2, oldest - 1, oldest + extra, NOW - 2, NOW - 1])
        clean(log)
        assert versions(log) == expected


# Times and what is left, as in Delta's documentation of its own rule: a checkpoint of each version.
@pytest.mark.parametrize(("cutoff", "first"), [(4, 0), (5, 1), (9, 1), (10, 1), (11, 3), (12, 3)])
def test_a_time_that_others_depend_on_stays_with_them(tmp_path, cutoff, first):
    log = table(tmp_path / "t", 4, checkpoints=range(4))
    age(log, [CUTOFF - cutoff + each for each in (5, 10, 8, 12)])
    clean(log)
    assert versions(log)[0] == first


@settings(max_examples=examples(24))
@given(
    histories,
    st.lists(st.integers(-3, 3), min_size=7, max_size=7),
    st.lists(st.integers(0, 6), max_size=4),
    st.sampled_from(["classic", "json", "parquet"]),
)
def test_whatever_is_kept_can_be_rebuilt(tmp_path_factory, made, days, points, form):
    log = RawLog(tmp_path_factory.mktemp("t")).create()
    for actions in made:
        log.commit(*actions)
    newest = log.next - 1
    for point in {min(point, newest) for point in points}:
        opened(log).checkpoint(point)
        if form != "classic":
            convert(log, point, form, sidecars=2)
    times = [CUTOFF + day * DAY + 1 for day in days]
    age(log, times)
    for sidecar in sidecars_of(log):
        set_time(sidecar, CUTOFF - DAY)
    before = [whole_state(opened(log).snapshot_at(v)) for v in range(newest + 1)]
    clean(log)
    left = versions(log)
    assert left == list(range(left[0], newest + 1))
    for version in left:
        assert whole_state(opened(log).snapshot_at(version)) == before[version]
    for version in range(left[0]):
        assert times[version] <= CUTOFF
    shutil.rmtree(log.table)


def test_checksums_and_compaction_files_go_with_the_commits(log):
    for version in range(10):
        (log.folder / f"{version:020d}.crc").write_text("{}")
    for first, last in ((0, 3), (4, 7), (5, 7)):
        (log.folder / f"{first:020d}.{last:020d}.compacted.json").write_text("{}")
    age(log, [CUTOFF - 5 * DAY + i for i in range(5)] + [NOW - DAY + i for i in range(5)])
    clean(log)
    names = listing(log)
    assert [int(n[:20]) for n in names if n.endswith(".crc")] == [4, 5, 6, 7, 8, 9]
    assert [n for n in names if "compacted" in n] == [f"{5:020d}.{7:020d}.compacted.json"]


def test_foreign_files_stay(log):
    foreign = ["notes.txt", "0.txt", f".{1:020d}.json.x.tmp", "_last_vacuum_info"]
    for name in foreign:
        (log.folder / name).write_text("x")
        set_time(log.folder / name, 1)
    (log.folder / f"{1:020d}.json.d").mkdir()
    clean(log)
    assert set(foreign) <= set(listing(log))


def damaged(path):
    path.write_bytes(path.read_bytes()[:-20])


def lacking_a_file(path):
    """Valid Parquet, and one live file is missing: only the older history can tell."""
    rows = pq.read_table(path)
    last = max(i for i, row in enumerate(rows["add"].to_pylist()) if row is not None)
    kept = rows.slice(0, last).to_pylist() + rows.slice(last + 1).to_pylist()
    pq.write_table(type(rows).from_pylist(kept, schema=rows.schema), path)


@pytest.mark.parametrize("damage", [damaged, lacking_a_file])
def test_a_checkpoint_that_is_not_whole_is_no_boundary(log, damage, caplog):
    path = log.folder / checkpoint_name(4)
    damage(path)
    set_time(path, CUTOFF - DAY)
    clean(log)
    assert versions(log) == list(range(2, 10))
    assert str(path) in caplog.text


def test_a_gap_in_what_would_be_kept_keeps_all(log, caplog):
    log.path(6).unlink()
    with pytest.raises(LogGapError):
        opened(log).snapshot_at(7)
    (log.folder / "_last_checkpoint").write_text(json.dumps({"version": 8, "size": 1}))
    assert clean(log) == 0
    assert versions(log)[0] == 0
    assert "missing" in caplog.text


def test_a_file_that_can_not_be_deleted_is_logged_and_ends_the_round(log, monkeypatch, caplog):
    monkeypatch.setattr(log_cleanup, "_AT_ONCE", 1)
    stuck = str(log.path(1))
    deleted = log_cleanup._deleted

    def refusing(own, path):
        if path != stuck:
            return deleted(own, path)

        class Store(LocalLogStore):
            def filesystem_path(self, path):
                return path + "/below"

        return deleted(OwnFiles(Store(), log.table), path)

    monkeypatch.setattr(log_cleanup, "_deleted", refusing)
    opened(log).checkpoint()
    assert versions(log) == list(range(1, 10))
    assert f"can't delete {stuck}" in caplog.text
    assert (log.folder / checkpoint_name(9)).exists()


def test_a_file_that_is_gone_already_is_no_failure(log):
    own = OwnFiles(LocalLogStore(), log.table)
    assert log_cleanup._delete(own, [str(log.path(77))]) == 1


def test_a_listing_that_fails_does_not_fail_the_checkpoint(log, monkeypatch, caplog):
    def failing(*_):
        raise OSError("no listing")

    monkeypatch.setattr(log_cleanup, "clean_log", failing)
    opened(log).checkpoint()
    assert "no listing" in caplog.text


OLD, NEW = "80a083e8-7026-4e79-81be-64bd76c43a10", "80a083e8-7026-4e79-81be-64bd76c43a11"


@pytest.fixture
def sidecars(tmp_path):
    """Two V2 checkpoints of an expired and of a fresh version, and orphans of each age."""
    log = table(tmp_path / "t", 8)
    for version in (2, 4, 6):
        opened(log).checkpoint(version)
        convert(log, version, "json", sidecars=2)
    for path in sidecars_of(log):
        set_time(path, CUTOFF - DAY)
    for name, time in ((OLD, CUTOFF), (NEW, CUTOFF + 1), ("not a sidecar", CUTOFF - DAY)):
        path = log.folder / "_sidecars" / f"{name}.parquet"
        path.write_bytes(b"x")
        set_time(path, time)
    age(log, [CUTOFF - 5 * DAY + i for i in range(5)] + [NOW - DAY + i for i in range(3)])
    return log


def test_sidecars_go_when_no_checkpoint_that_is_left_names_them(sidecars):
    clean(sidecars)
    assert versions(sidecars)[0] == 4
    left = [
        path.name[:20].lstrip("0") if path.name[0] == "0" else path.name
        for path in sidecars_of(sidecars)
    ]
    assert left == ["4", "4", "6", "6", f"{NEW}.parquet", "not a sidecar.parquet"]
    assert whole_state(opened(sidecars).snapshot_at(4))


def test_a_v2_checkpoint_gets_a_classic_name_too_before_older_ones_go(tmp_path):
    configuration = {"delta.checkpointPolicy": "v2"}
    log = RawLog(tmp_path / "t").commit(V2_PROTOCOL, metadata(configuration=configuration))
    log.commit(add("a")).commit(add("b"))
    opened(log).checkpoint(1)
    opened(log).checkpoint()
    classic = log.folder / checkpoint_name(2)
    assert not classic.exists()
    age(log, [CUTOFF - DAY + i for i in range(3)])
    expected = whole_state(opened(log).snapshot)
    clean(log)
    assert versions(log) == [2]
    for path in log.folder.glob(f"{2:020d}.checkpoint.*-*"):
        path.unlink()
    assert pq.read_schema(classic).get_field_index("sidecar") >= 0
    assert whole_state(opened(log).snapshot) == expected


def test_a_checkpoint_that_can_not_be_read_keeps_all_sidecars(sidecars, caplog):
    (top,) = sidecars.folder.glob(f"{6:020d}.checkpoint.*.json")
    top.write_text("{")
    clean(sidecars)
    assert len(sidecars_of(sidecars)) == 9
    assert "keeps all sidecars" in caplog.text


@pytest.mark.parametrize(("protected", "first"), [(4, 4), (5, 0), (0, 4)])
def test_protected_history_goes_as_a_whole_or_stays(tmp_path, protected, first):
    names = ["v2Checkpoint", "checkpointProtection"]
    protocol = {"protocol": {**V2_PROTOCOL["protocol"], "writerFeatures": names}}
    log = RawLog(tmp_path / "t")
    log.commit(
        protocol,
        metadata(configuration={"delta.requireCheckpointProtectionBeforeVersion": str(protected)}),
    )
    while log.next < 6:
        log.commit(add(f"f{log.next}"))
    for version in (2, 4):
        opened(log).checkpoint(version)
    age(log, [CUTOFF - DAY + i for i in range(5)] + [NOW])
    clean(log)
    assert versions(log)[0] == first


def carrying(folder, times, since=0):
    """A table whose commits carry times of their own, with a checkpoint of version 3."""
    on = {"delta.enableInCommitTimestamps": "true"}
    if since:
        on |= {
            "delta.inCommitTimestampEnablementVersion": str(since),
            "delta.inCommitTimestampEnablementTimestamp": str(times[since]),
        }
    lists = {"writerFeatures": ["inCommitTimestamp"]}
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, **lists}
    log = RawLog(folder)
    for version, time in enumerate(times):
        first = [{"protocol": protocol}, metadata(configuration=on)] if version == 0 else []
        inside = {"inCommitTimestamp": time} if version >= since else {"timestamp": time}
        log.commit({"commitInfo": inside}, *first, add(f"f{version}"))
    opened(log).checkpoint(3)
    return log


@pytest.mark.parametrize(
    ("newest", "since", "first"),
    [(CUTOFF, 0, 3), (CUTOFF + 1, 0, 0), (CUTOFF + 1, 3, 3), (CUTOFF + 1, 2, 0)],
)
def test_a_commit_is_as_old_as_it_says(tmp_path, newest, since, first):
    log = carrying(tmp_path / "t", [1, 2, newest, NOW - 1, NOW], since)
    age(log, [CUTOFF - DAY + i for i in range(4)] + [NOW])
    clean(log)
    assert versions(log)[0] == first


@pytest.mark.parametrize(("since", "first"), [(0, 3), (4, 0)])
def test_a_time_that_a_commit_carries_is_moved_by_no_cleanup(tmp_path, since, first):
    """A log that was copied at one go, say."""
    log = carrying(tmp_path / "t", [1, 2, 3, 4, 5], since)
    age(log, [CUTOFF - DAY] * 4 + [NOW])
    clean(log)
    assert versions(log)[0] == first


UUID = "7c9e6679-7425-40de-944b-e07fc1f90ae7"


def hidden(name):
    return f".{name}.{UUID}.tmp"


def filed(name):
    return f".tmp/{name}.{UUID}"


@pytest.mark.parametrize("draft_of", [hidden, filed])
@pytest.mark.parametrize("old", [True, False])
def test_drafts_go_with_the_versions_that_they_were_to_be(log, draft_of, old):
    (log.folder / ".tmp").mkdir()
    names = [commit for v in range(12) for commit in (f"{v:020d}.json", checkpoint_name(v))]
    drafts = {draft_of(name): int(name[:20]) for name in names}
    drafts[draft_of("_last_checkpoint")] = -1
    strays = [".tmp/notes.txt", ".notes.tmp", f".tmp/notes.{UUID}", f".notes.{UUID}.tmp"]
    for name in [*drafts, *strays]:
        (log.folder / name).write_text("x")
        set_time(log.folder / name, CUTOFF - 1 if old else CUTOFF + 1)
    clean(log)
    left = {str(path.relative_to(log.folder)) for path in log.folder.rglob("*")}
    assert {name for name in drafts if name in left} == {
        name for name, version in drafts.items() if not old or version >= 4
    }
    assert set(strays) <= left, "what nobody knows stays"


def test_a_draft_of_today_stays_however_short_the_retention_is(tmp_path):
    log = table(
        tmp_path / "t",
        10,
        checkpoints=(4, 8),
        configuration={"delta.logRetentionDuration": "interval 0 days"},
    )
    age(log, [NOW - 3 * DAY + i for i in range(10)])
    drafts = [log.folder / hidden(f"{v:020d}.json") for v in (0, 1)]
    for draft, time in zip(drafts, (MIDNIGHT - 1, NOW - 2 * DAY), strict=True):
        draft.write_text("x")
        set_time(draft, time)
    clean(log)
    assert versions(log)[0] > 1
    assert [draft.exists() for draft in drafts] == [True, False]
