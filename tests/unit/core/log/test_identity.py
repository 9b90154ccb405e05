"""A log that is no longer the one that was read is noticed, also where no `commitInfo` was read."""

from __future__ import annotations

import pytest

from lakelog.core import DeltaLog
from lakelog.core.commit.fence import check_fence
from lakelog.core.errors import ConcurrentWriteException
from lakelog.logstores import LocalLogStore
from support.manual_clock import ManualClock
from support.raw_log import PROTOCOL, RawLog, add, metadata

OLD, NEW = 1_700_000_000_000, 1_700_000_060_000


def opened(log):
    return DeltaLog.for_table(log.table, clock=ManualClock())


def paths(snapshot):
    return sorted(snapshot.file_table["path"].to_pylist())


def made(log, names, *, time, table_id="table-1", info=None):
    """A table of these files, a commit each, in place of the one that is there."""
    for path in log.folder.iterdir():
        path.unlink()
    for version, name in enumerate(names):
        heads = [] if info is None else [{"commitInfo": info}]
        if version == 0:
            heads += [PROTOCOL, metadata(table_id=table_id)]
        log.commit(*heads, add(name), version=version)
        log.touch(version, time)
    return log


@pytest.fixture
def log(tmp_path):
    return RawLog(tmp_path / "t")


@pytest.mark.parametrize("names", ["xyz", "wxyz", "vwxyz"])
@pytest.mark.parametrize("info", [None, {"operation": "WRITE"}, {"txnId": "a"}])
@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_another_table_is_noticed_where_a_commit_does_not_say_which_it_is(
    log, names, info, has_checkpoint
):
    made(log, "abc", time=OLD, info=info)
    if has_checkpoint:
        opened(log).checkpoint()
    kept = opened(log)
    assert paths(kept.update()) == ["a", "b", "c"]
    new = {**info, "txnId": "b"} if info and "txnId" in info else info
    made(log, names, time=NEW, table_id="table-2", info=new)
    assert (kept.update().metadata.id, paths(kept.update())) == ("table-2", list(names))


def test_the_same_table_is_not_read_again(log):
    made(log, "abc", time=OLD)
    opened(log).checkpoint()
    kept = opened(log)
    first = kept.update()
    kept.doubt()
    assert kept.update() is first


def test_who_doubts_reads_again_where_nothing_tells_two_tables_apart(log):
    made(log, "ab", time=OLD)
    kept = opened(log)
    kept.update()
    log.commit(add("c"), version=2)
    log.touch(2, OLD)
    assert paths(kept.update()) == ["a", "b", "c"]  # known by itself alone: no info, no listing
    made(log, "xyz", time=NEW, table_id="table-2")
    kept.doubt()
    assert paths(kept.update()) == ["x", "y", "z"]


def test_the_fence_goes_by_the_time_of_the_commit_where_nothing_else_is_known(log):
    made(log, "ab", time=OLD)
    check_fence(LocalLogStore(), log.table, 2, None, OLD + 999)  # some stores know seconds alone
    with pytest.raises(ConcurrentWriteException, match="dropped and created again"):
        check_fence(LocalLogStore(), log.table, 2, None, NEW)
