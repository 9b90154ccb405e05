from __future__ import annotations

import errno
import itertools
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.actions import AddFile, CommitInfo, Metadata, Protocol
from lakelog.core.commit.draft import Draft
from lakelog.core.commit.lock import LockChoice, LockKind
from lakelog.core.commit.loop import CommitLoop
from lakelog.core.conf import DeltaConf
from lakelog.core.conflicts.checker import PendingCommit
from lakelog.core.conflicts.read_set import ReadSet
from lakelog.core.conflicts.winner import read_winner
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    CorruptCommitError,
    MaxCommitAttemptsExceededError,
    MetadataChangedException,
)
from lakelog.core.events import CommitOutcome, CommitStats
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.log.file_names import commit_path, log_path
from lakelog.core.schema import StructType
from lakelog.logstores import Capabilities, LogStore, MemoryLogStore, Scope
from lakelog.logstores.object_store.store import ObjectClient, ObjectLogStore
from support.examples import examples
from support.faults import Crash, Fault, FaultyLogStore
from support.manual_clock import ManualClock
from support.scripted_objects import Bucket, Fate, ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow.fs

PROTOCOL = Protocol(min_reader_version=1, min_writer_version=2)
METADATA = Metadata(id="id", schema_string='{"type":"struct","fields":[]}')


class Writer:
    """One blind append on its way, with everything that a test wants to look at."""

    def __init__(
        self,
        store: LogStore,
        table: str,
        read_version: int,
        *,
        clock: ManualClock | None = None,
        conf: Mapping[str, str] | None = None,
        read_at_ms: int | None = None,
        read_info: CommitInfo | None = None,
    ) -> None:
        self.clock = clock or ManualClock()
        self.txn_id = str(uuid.uuid4())
        self.attempts: list[CommitStats] = []
        self.loop = CommitLoop(
            store,
            self.clock,
            DeltaConf.from_mapping(conf),
            pending=PendingCommit(
                table=table,
                read_version=read_version,
                partition_schema=StructType(),
                metadata=METADATA,
                protocol=PROTOCOL,
                reads=ReadSet(),
                isolation=IsolationLevel.SERIALIZABLE,
                is_blind_append=True,
                changes_metadata=False,
                changes_protocol=False,
                removed_paths={},
                domains=frozenset(),
            ),
            draft=Draft(
                commit_info=CommitInfo(operation="WRITE", txn_id=self.txn_id, is_blind_append=True),
                actions=(
                    AddFile(
                        path=self.txn_id,
                        partition_values={},
                        size=1,
                        modification_time=1,
                        data_change=True,
                    ),
                ),
            ),
            lock=LockChoice(LockKind.NONE, "test"),
            read_at_ms=self.clock.now_ms() if read_at_ms is None else read_at_ms,
            attempts=self.attempts,
            read_info=read_info,
        )

    def run(self) -> int:
        return self.loop.do_commit_retry_iteratively()

    @property
    def outcomes(self) -> list[str]:
        return [stats.outcome.value for stats in self.attempts]


_names = itertools.count()


@pytest.fixture
def table() -> str:
    return f"memory://commit-loop/{next(_names)}"


def new_table(table: str, commits: int = 1) -> MemoryLogStore:
    store = MemoryLogStore()
    store.create_folder(log_path(table))
    first = [PROTOCOL.to_json(), METADATA.to_json()]
    store.write(commit_path(table, 0), first)
    for _ in range(1, commits):
        rival(store, table)
    return store


def rival(store: LogStore, table: str) -> str:
    """Another writer's blind append at the next free version; its txnId."""
    txn_id = f"rival-{uuid.uuid4()}"
    for version in itertools.count(1):
        if read_winner(store, table, version) is None:
            info = CommitInfo(operation="WRITE", txn_id=txn_id, is_blind_append=True)
            store.write(commit_path(table, version), [info.to_json()])
            return txn_id
    raise AssertionError


def txn_ids(store: LogStore, table: str) -> list[str | None]:
    """The txnId of each version from 1 on."""
    found: list[str | None] = []
    while (commit := read_winner(store, table, len(found) + 1)) is not None:
        found.append(commit.txn_id)
    return found


def test_a_commit_without_rivals_is_a_look_at_what_was_read_and_one_write(table: str) -> None:
    store = FaultyLogStore(new_table(table))
    writer = Writer(store, table, 0)
    assert writer.run() == 1
    assert store.calls == [("read", commit_path(table, 0)), ("write", commit_path(table, 1))]
    assert [(s.outcome, s.requests, s.version) for s in writer.attempts] == [
        (CommitOutcome.COMMITTED, 2, 1)
    ]
    text = "".join(line + "\n" for line in store.read(commit_path(table, 1)))
    assert writer.attempts[0].bytes_written == len(text.encode())


def test_the_commit_info_is_the_first_line(table: str) -> None:
    store = new_table(table)
    Writer(store, table, 0).run()
    assert next(iter(store.read(commit_path(table, 1)))).startswith('{"commitInfo"')


def test_the_first_commit_makes_the_folder_of_the_log(table: str) -> None:
    store = MemoryLogStore()
    assert Writer(store, table, -1).run() == 0
    assert read_winner(store, table, 0) is not None


def test_a_loser_goes_behind_all_winners_and_checks_each_only_once(table: str) -> None:
    inner = new_table(table, commits=4)
    store = FaultyLogStore(inner)
    slipped: list[str] = []

    def slip_in(path: str) -> None:
        if path == commit_path(table, 4) and not slipped:
            slipped.append(rival(inner, table))

    store.before_write = slip_in
    writer = Writer(store, table, 0)
    assert writer.run() == 5
    assert writer.outcomes == ["conflict-rebased", "conflict-rebased", "committed"]
    reads = [path for operation, path in store.calls if operation == "read"]
    # Versions 1 to 3, the probe of 4; then 4, which was taken meanwhile, and the probe of 5. Before
    # each write a look at what was read.
    assert reads == [commit_path(table, v) for v in (0, 1, 2, 3, 4, 0, 4, 5, 0)]
    assert [s.winners for s in writer.attempts] == [3, 1, 0]
    assert writer.attempts[1].winner_txn_id == slipped[0]
    assert all(s.backoff_ms > 0 for s in writer.attempts[1:])


def test_no_request_is_a_listing(table: str) -> None:
    store = FaultyLogStore(new_table(table, commits=3))
    Writer(store, table, 0).run()
    assert {operation for operation, _ in store.calls} == {"read", "write"}


@pytest.mark.parametrize("fault", [Fault.LANDS_UNKNOWN, Fault.LANDS_EXISTS, Fault.LANDS_OSERROR])
def test_a_commit_whose_reply_was_lost_is_found_and_counts_once(table: str, fault: Fault) -> None:
    store = FaultyLogStore(new_table(table), fault)
    writer = Writer(store, table, 0)
    assert writer.run() == 1
    assert txn_ids(store, table) == [writer.txn_id]
    assert writer.attempts[-1].outcome is CommitOutcome.COMMITTED
    assert len([c for c in store.calls if c[0] == "write"]) == 1


def test_a_lost_reply_is_found_behind_rivals_that_came_after_it(table: str) -> None:
    inner = new_table(table)
    store = FaultyLogStore(inner, Fault.LANDS_UNKNOWN)
    writes = 0

    def slip_in(_path: str) -> None:
        nonlocal writes
        writes += 1
        if writes == 1:
            store.failing_reads = 1  # the read-back fails too
        if writes == 2:
            rival(inner, table)

    store.before_write = slip_in
    writer = Writer(store, table, 0)
    assert writer.run() == 1
    ids = txn_ids(store, table)
    assert ids.count(writer.txn_id) == 1
    assert len(ids) == 2


@pytest.mark.parametrize("fault", [Fault.LOST_UNKNOWN, Fault.LATE_UNKNOWN])
def test_a_write_in_doubt_is_tried_again_at_the_same_version(table: str, fault: Fault) -> None:
    store = FaultyLogStore(new_table(table), fault)
    writer = Writer(store, table, 0)
    assert writer.run() == 1
    store.deliver_late()
    assert txn_ids(store, table) == [writer.txn_id]
    assert writer.outcomes[0] == "unknown"


def test_a_write_in_doubt_that_a_rival_beat_is_made_again_behind_it(table: str) -> None:
    inner = new_table(table)
    store = FaultyLogStore(inner, Fault.LATE_UNKNOWN)
    store.before_write = lambda _path: None
    writer = Writer(store, table, 0)
    original = writer.clock.sleep

    def sleep_while_a_rival_commits(seconds: float) -> None:
        if not txn_ids(inner, table):
            rival(inner, table)
        original(seconds)

    writer.clock.sleep = sleep_while_a_rival_commits  # type: ignore[method-assign]  # a hook
    assert writer.run() == 2
    assert txn_ids(store, table).count(writer.txn_id) == 1


def test_an_outcome_that_stays_unknown_is_reported_as_unknown(table: str) -> None:
    store = FaultyLogStore(new_table(table), *[Fault.LOST_UNKNOWN] * 4)
    conf = {"spark.databricks.delta.maxNonConflictCommitAttempts": "3"}
    writer = Writer(store, table, 0, conf=conf)
    with pytest.raises(CommitOutcomeUnknownError):
        writer.run()
    assert writer.outcomes == ["unknown"] * 4


class _SilentStore(ObjectLogStore):
    """An object store whose every request hangs for its whole time-out."""

    def __init__(self, clock: ManualClock, timeout: float, fate: Fate) -> None:
        super().__init__({})
        self._policy = replace(self._policy, clock=clock.monotonic, sleep=clock.sleep)
        silence = [Fate.BUSY] * 1000
        self.client = ScriptedClient(
            Bucket(), [fate] * 1000, silence, before=lambda: clock.advance(timeout)
        )

    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        return self.client, path

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        raise NotImplementedError

    def filesystem_path(self, path: str) -> str:
        return path


@pytest.mark.parametrize("fate", [Fate.LATE, Fate.LOST_REPLY, Fate.LOST_REQUEST, Fate.BUSY])
@pytest.mark.parametrize(
    ("budget", "timeout"),
    [
        *[(600, 20), (600, 5), (300, 10), (120, 5), (60, 2), (10, 0.3)],
        # Far beyond the reserve: what is begun at all is what such a request leaves time for.
        *[(600, timeout) for timeout in (30, 45, 60, 100, 120, 150, 200, 299, 301, 500, 600)],
        *[(300, 120), (120, 60), (60, 20), (60, 50), (10, 4)],
    ],
)
def test_a_storage_gone_silent_ends_a_commit_within_its_budget(
    budget: float, timeout: float, fate: Fate
) -> None:
    clock = ManualClock()
    store = _SilentStore(clock, timeout, fate)
    conf = {"spark.lakelog.commit.timeBudget": str(budget)}
    writer = Writer(store, "mem://b/t", 0, clock=clock, conf=conf)
    with pytest.raises((CommitOutcomeUnknownError, OSError)):
        writer.run()
    assert clock.monotonic() <= budget
    if fate is not Fate.BUSY:  # which is a refusal, and nothing to be looked for
        assert store.client.requests.count("create") <= budget / 40 + 1, "no bytes go out in vain"


class _Hanging(FaultyLogStore):
    """A store of the user's: loses its races, and from some time on hangs, whatever it is asked."""

    def __init__(
        self, inner: LogStore, table: str, clock: ManualClock, silent_from: float, timeout: float
    ) -> None:
        super().__init__(inner)
        self._table, self._clock = table, clock
        self._silent_from, self._timeout = silent_from, timeout

    def _hang(self) -> None:
        self._clock.advance(1.0)
        if self._clock.monotonic() >= self._silent_from:
            self._clock.advance(self._timeout)
            raise TimeoutError

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        list(lines)
        self._hang()
        rival(self.inner, self._table)
        raise FileExistsError(path)

    def read(self, path: str):
        self._hang()
        return super().read(path)


@pytest.mark.parametrize("timeout", [5, 20, 60, 290, 500])
@pytest.mark.parametrize("silent_from", [0, 480, 505, 599])
def test_one_that_falls_silent_later_ends_it_later_by_what_is_on_its_way(
    table: str, silent_from: float, timeout: float
) -> None:
    clock = ManualClock()
    store = _Hanging(new_table(table), table, clock, silent_from, timeout)
    with pytest.raises((CommitOutcomeUnknownError, OSError, MaxCommitAttemptsExceededError)):
        Writer(store, table, 0, clock=clock).run()
    request = timeout + 1.0
    # Nobody knows how long a request hangs that was begun in time: one that is long is the last.
    last = 3 * request if request <= 30 else request
    waits = 10
    assert clock.monotonic() <= max(600, silent_from + waits + last)


def test_the_wait_for_the_lock_is_a_part_of_the_budget(table: str) -> None:
    clock = ManualClock()
    store = _SilentStore(clock, 20, Fate.LATE)
    writer = Writer(store, "mem://b/t", 0, clock=clock)
    writer.loop.lock_wait = 400.0
    with pytest.raises((CommitOutcomeUnknownError, OSError)):
        writer.run()
    assert clock.monotonic() <= 200


def test_a_failure_after_a_write_in_doubt_never_claims_that_nothing_landed(table: str) -> None:
    store = FaultyLogStore(new_table(table), Fault.LATE_UNKNOWN, *[Fault.OSERROR] * 20)
    store._late = []
    writer = Writer(store, table, 0)
    store.deliver_late = lambda: None  # type: ignore[method-assign]  # it stays on its way
    with pytest.raises(CommitOutcomeUnknownError):
        writer.run()


def test_a_storage_error_passes_through_and_nothing_is_committed(table: str) -> None:
    store = FaultyLogStore(new_table(table), Fault.OSERROR)
    writer = Writer(store, table, 0)
    with pytest.raises(OSError, match="injected"):
        writer.run()
    assert txn_ids(store, table) == []
    assert writer.outcomes == ["failed"]


@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.ENOSPC, "Free space"), (errno.EROFS, "writable"), (errno.ENXIO, "storage answers")],
)
def test_a_refusal_of_the_storage_says_what_it_means_for_the_table_and_what_to_do(
    table: str, code: int, advice: str
) -> None:
    class Refusing(FaultyLogStore):
        def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
            raise OSError(code, "no", path)

    with pytest.raises(OSError, match="no") as caught:
        Writer(Refusing(new_table(table)), table, 0).run()
    (note,) = caught.value.__notes__
    assert note.startswith(f"Version 1 of {table} was not committed; the table is as it was.")
    assert advice in note


@pytest.mark.parametrize(("fault", "landed"), [(Fault.CRASH, 0), (Fault.LANDS_CRASH, 1)])
def test_a_writer_that_dies_leaves_the_whole_commit_or_none(
    table: str, fault: Fault, landed: int
) -> None:
    store = FaultyLogStore(new_table(table), fault)
    writer = Writer(store, table, 0)
    with pytest.raises(Crash) as caught:
        writer.run()
    assert txn_ids(store, table) == [writer.txn_id] * landed
    assert writer.txn_id in "".join(caught.value.__notes__)


def test_a_version_that_exists_only_by_hearsay_is_tried_again(table: str) -> None:
    store = FaultyLogStore(new_table(table), Fault.SPURIOUS_EXISTS)
    writer = Writer(store, table, 0)
    assert writer.run() == 1
    assert txn_ids(store, table) == [writer.txn_id]


def test_a_conflict_says_nothing_was_committed_and_means_it(table: str) -> None:
    inner = new_table(table)
    info = CommitInfo(operation="SET TBLPROPERTIES", txn_id="theirs", timestamp=0)
    inner.write(
        commit_path(table, 1),
        [
            info.to_json(),
            Metadata(id="id", schema_string="{}", configuration={"a": "b"}).to_json(),
        ],
    )
    writer = Writer(inner, table, 0)
    with pytest.raises(MetadataChangedException) as caught:
        writer.run()
    assert caught.value.winning_version == 1
    assert caught.value.commit_info["txnId"] == "theirs"
    assert txn_ids(inner, table) == ["theirs"]
    assert writer.attempts[-1].outcome is CommitOutcome.CONFLICT
    assert writer.attempts[-1].winner_operation == "SET TBLPROPERTIES"


def test_a_writer_that_always_loses_stops_after_its_attempts(table: str) -> None:
    inner = new_table(table)
    store = FaultyLogStore(inner)
    store.before_write = lambda _path: rival(inner, table)
    conf = {"spark.databricks.delta.maxCommitAttempts": "2"}
    writer = Writer(store, table, 0, conf=conf)
    with pytest.raises(MaxCommitAttemptsExceededError, match="3 attempts") as caught:
        writer.run()
    error = caught.value
    assert (error.attempts, error.version, error.num_actions) == (3, 3, 2)
    assert (error.start_version, error.fail_version) == (1, 4)
    assert "from version 1 to version 4; 2 actions; " in str(error)
    assert writer.txn_id not in txn_ids(store, table)


def test_a_writer_that_always_loses_stops_after_its_time(table: str) -> None:
    inner = new_table(table)
    store = FaultyLogStore(inner)
    clock = ManualClock()

    def slow_rival(_path: str) -> None:
        rival(inner, table)
        clock.sleep(4)

    store.before_write = slow_rival
    conf = {"spark.lakelog.commit.timeBudget": "10"}
    writer = Writer(store, table, 0, conf=conf, clock=clock)
    with pytest.raises(MaxCommitAttemptsExceededError, match="within 10 s"):
        writer.run()
    assert 1 <= len(writer.attempts) <= 2, "a third would end after it"
    assert clock.monotonic() <= 10


HOUR_MS = 3_600_000
MINUTE_MS = 60_000


def test_a_version_that_log_cleanup_removed_is_not_made_again(table: str) -> None:
    inner = new_table(table, commits=3)
    for version in range(2):
        inner.filesystem.delete_file(inner.filesystem_path(commit_path(table, version)))
    clock = ManualClock()
    writer = Writer(inner, table, 0, clock=clock, read_at_ms=clock.now_ms() - HOUR_MS)
    with pytest.raises(ConcurrentWriteException, match="log cleanup"):
        writer.run()
    assert read_winner(inner, table, 1) is None


def test_a_first_version_that_log_cleanup_removed_is_not_made_again(table: str) -> None:
    store = new_table(table)
    for _ in range(3):
        rival(store, table)
    store.filesystem.delete_file(store.filesystem_path(commit_path(table, 0)))
    clock = ManualClock()
    writer = Writer(store, table, -1, clock=clock, read_at_ms=clock.now_ms() - 86_400_000)
    with pytest.raises(
        ConcurrentWriteException, match="the table did not exist when this transaction"
    ):
        writer.run()
    assert read_winner(store, table, 0) is None


def test_a_slow_first_commit_lands_where_still_no_one_made_the_table(table: str) -> None:
    store = MemoryLogStore({})
    clock = ManualClock()
    assert Writer(store, table, -1, clock=clock, read_at_ms=clock.now_ms() - 86_400_000).run() == 0


def test_a_writer_that_paused_for_an_hour_commits_where_nothing_was_cleaned(table: str) -> None:
    store = new_table(table)
    clock = ManualClock()
    writer = Writer(store, table, 0, clock=clock, read_at_ms=clock.now_ms() - HOUR_MS)
    assert writer.run() == 1
    assert writer.attempts[0].requests == 2


def test_a_writer_does_not_go_on_behind_another_table_of_the_same_path(table: str) -> None:
    store = new_table(table)
    old = CommitInfo(operation="CREATE TABLE", txn_id="of the dropped table", timestamp=1)
    clock = ManualClock()
    writer = Writer(
        store, table, 0, clock=clock, read_at_ms=clock.now_ms() - MINUTE_MS, read_info=old
    )
    with pytest.raises(ConcurrentWriteException, match="dropped and created again"):
        writer.run()
    assert read_winner(store, table, 1) is None


def test_a_torn_commit_stops_writers_and_is_named(table: str) -> None:
    inner = new_table(table)
    inner.write(commit_path(table, 1), ['{"commitInfo":{"txn'])
    with pytest.raises(CorruptCommitError, match=r"0{19}1\.json"):
        Writer(inner, table, 0).run()


class HalfVisible(FaultyLogStore):
    """Shows a torn version 1 to its first readers."""

    torn = 3

    def read(self, path: str):
        if self.torn and path.endswith("1.json"):
            self.torn -= 1
            return iter(['{"commitInfo":'])
        return super().read(path)

    def is_partial_write_visible(self, path: str) -> bool:
        return True


def test_a_commit_that_is_still_being_written_is_waited_for(table: str) -> None:
    inner = new_table(table, commits=2)
    writer = Writer(HalfVisible(inner), table, 0)
    assert writer.run() == 2


FAULTS = st.sampled_from([f for f in Fault if "CRASH" not in f.name])


@settings(max_examples=examples(60), deadline=None)
@given(
    writers=st.lists(
        st.tuples(st.lists(FAULTS, max_size=6), st.integers(0, 3)), min_size=1, max_size=5
    )
)
def test_whatever_fails_a_returned_version_holds_the_commit_and_a_refusal_means_none(
    writers: list[tuple[list[Fault], int]],
) -> None:
    table = f"memory://commit-loop/{next(_names)}"
    inner = new_table(table)
    late: list[FaultyLogStore] = []
    known: dict[str, int | None] = {}
    unknown: set[str] = set()
    for faults, failing_reads in writers:
        store = FaultyLogStore(inner, *faults)
        store.failing_reads = failing_reads
        late.append(store)
        writer = Writer(store, table, 0)
        try:
            known[writer.txn_id] = writer.run()
        except CommitOutcomeUnknownError:
            unknown.add(writer.txn_id)
        except OSError:
            known[writer.txn_id] = None
    for store in late:
        store.deliver_late()
    ids = txn_ids(inner, table)
    for txn_id, version in known.items():
        assert ids.count(txn_id) == (0 if version is None else 1)
        if version is not None:
            assert ids[version - 1] == txn_id
    for txn_id in unknown:
        assert ids.count(txn_id) <= 1


class Paced(FaultyLogStore):
    """Wants a second between two writes of one name, as GCS does."""

    @property
    def capabilities(self) -> Capabilities:
        return replace(self.inner.capabilities, min_commit_interval=1.0)


def test_a_second_write_of_one_name_waits_for_what_the_storage_wants(table: str) -> None:
    writer = Writer(Paced(new_table(table), Fault.LOST_UNKNOWN), table, 0)
    assert writer.run() == 1
    assert max(writer.clock.slept) == 1.0


def test_a_write_of_the_next_name_waits_no_longer_than_the_race_asks(table: str) -> None:
    writer = Writer(Paced(new_table(table, commits=2)), table, 0)
    assert writer.run() == 2
    assert max(writer.clock.slept) < 1.0


class Cold(MemoryLogStore):
    """The first write of a process takes seconds, as imports and connections do; no other does."""

    def __init__(self, clock: ManualClock, scope: Scope) -> None:
        super().__init__()
        self.clock, self.scope = clock, scope
        self.is_warm = False

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, exclusive_create=self.scope)

    def read(self, path: str) -> Iterator[str]:
        self.clock.advance(0.01)
        return super().read(path)

    def read_bytes(self, path: str) -> bytes:
        self.clock.advance(0.01)
        return super().read_bytes(path)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self.clock.advance(0.01 if self.is_warm else 4.0)
        self.is_warm = True
        super().write(path, lines, overwrite=overwrite)


@pytest.mark.parametrize(
    ("scope", "windows"), [(Scope.CLUSTER, 16 * 0.01), (Scope.HOST, 5.0)], ids=["far", "near"]
)
def test_who_loses_by_a_slow_first_write_waits_as_long_as_the_others(
    table: str, scope: Scope, windows: float
) -> None:
    waits = []
    for number in range(50):
        clock, name = ManualClock(), f"{table}-{number}"
        new_table(name, commits=2)
        writer = Writer(Cold(clock, scope), name, 0, clock=clock)
        assert writer.run() == 2
        (wait,) = clock.slept
        waits.append(wait)
    assert windows / 2 < max(waits) <= windows
