"""Which jobs collided: by what losers recorded of their winners, and winners of themselves."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.cli.conflicts.encounters import encounters_of
from lakelog.cli.conflicts.separations import CONDITIONS, partition_text, separations
from lakelog.core import errors
from lakelog.core.errors import DeltaConcurrentModificationException
from lakelog.core.events import CommitOutcome, CommitStats

APPEND = "DELTA_CONCURRENT_APPEND"


def event(txn: str, outcome: CommitOutcome, version: int, **fields: Any) -> CommitStats:
    values = {
        "table": "/t",
        "attempt": 1,
        "operation": "UPDATE",
        "read_version": version - 1,
        "job": txn.partition("-")[0],
    }
    return CommitStats(txn_id=txn, outcome=outcome, version=version, **{**values, **fields})


def committed(txn: str, version: int, **fields: Any) -> CommitStats:
    return event(txn, CommitOutcome.COMMITTED, version, committed_version=version, **fields)


def lost(txn: str, version: int, winner: str | None, **fields: Any) -> CommitStats:
    values = {"winners": 1, "winner_version": version, "conflict": APPEND, "winner_txn_id": winner}
    return event(txn, CommitOutcome.CONFLICT, version, **{**values, **fields})


def rebased(txn: str, version: int, winners: int = 1, **fields: Any) -> CommitStats:
    values = {"winners": winners, "winner_version": version}
    return event(txn, CommitOutcome.REBASED, version, **{**values, **fields})


def test_a_lost_commit_names_its_winner_by_the_transaction() -> None:
    found = encounters_of(
        [committed("loader-1", 5, operation="WRITE"), lost("cleaner-1", 5, "loader-1")]
    )
    [met] = found.lost
    assert (met.loser, met.winner, met.winner_version) == ("cleaner", "loader", 5)
    assert (met.winner_operation, met.condition) == ("WRITE", APPEND)
    assert [(p.loser, p.winner, len(p.lost), p.rebased) for p in found.pairs] == [
        ("cleaner", "loader", 1, 0)
    ]


def test_a_winner_without_events_is_reported_by_what_the_loser_saw_of_it() -> None:
    spark = lost("cleaner-1", 5, "x", winner_operation="MERGE", winner_engine="Apache-Spark/4.0")
    [met] = encounters_of([spark]).lost
    assert met.winner == "another writer (MERGE, Apache-Spark/4.0)"
    [met] = encounters_of([lost("cleaner-1", 5, None)]).lost
    assert met.winner == "another writer"


def test_all_winners_of_an_attempt_are_found_by_their_versions() -> None:
    events = [
        rebased("slow-1", 5, winners=3, winner_txn_id="a-1"),
        committed("slow-1", 8, attempt=2),
        committed("a-1", 5),
        committed("b-1", 6),
    ]
    found = encounters_of(events)
    assert {(p.winner, p.rebased) for p in found.pairs} == {
        ("a", 1),
        ("b", 1),
        ("another writer", 1),
    }
    slow = next(job for job in found.jobs if job.job == "slow")
    assert (slow.rebased_over, slow.retries, slow.attempts) == (3, 1, 2)
    assert found.lost == []


def test_of_a_conflict_only_the_last_winner_cost_the_commit() -> None:
    conflict = lost("slow-1", 5, "b-1", winners=2, winner_version=6)
    found = encounters_of([conflict, committed("a-1", 5), committed("b-1", 6)])
    assert {(p.winner, len(p.lost), p.rebased) for p in found.pairs} == {("a", 0, 1), ("b", 1, 0)}


def test_events_that_only_name_winners_are_not_told_of() -> None:
    loser = lost("cleaner-1", 5, "loader-1")
    found = encounters_of([loser], [loser, committed("loader-1", 5)])
    assert [met.winner for met in found.lost] == ["loader"]
    assert [job.job for job in found.jobs] == ["cleaner"]


def test_one_txn_id_on_two_tables_is_two_commits() -> None:
    found = encounters_of([committed("a-1", 1), committed("a-1", 1, table="/u")])
    assert [(job.table, job.transactions) for job in found.jobs] == [("/t", 1), ("/u", 1)]


@pytest.mark.parametrize(
    ("events", "fate"),
    [
        ([committed("a-1", 1)], "committed"),
        ([rebased("a-1", 1), committed("a-1", 2, attempt=2)], "committed"),
        ([committed("a-1", 2, attempt=2), rebased("a-1", 1)], "committed"),
        ([rebased("a-1", 1)], "unfinished"),
        ([event("a-1", CommitOutcome.GIVEN_UP, 2), rebased("a-1", 1)], "given_up"),
        ([rebased("a-1", 1), lost("a-1", 2, None, attempt=2)], "lost"),
        ([event("a-1", CommitOutcome.UNKNOWN, 1)], "unknown"),
        ([event("a-1", CommitOutcome.FAILED, 1)], "failed"),
    ],
)
def test_the_fate_of_a_commit_is_that_of_its_last_attempt(
    events: list[CommitStats], fate: str
) -> None:
    [job] = encounters_of(events).jobs
    assert dict(job.fates) == {fate: 1}


def test_waits_and_checks_are_summed_by_job() -> None:
    events = [
        rebased("a-1", 1, lock_wait_ms=2.0, check_ms=3.0),
        committed("a-1", 2, attempt=2, backoff_ms=40.0),
        committed("a-2", 3, backoff_ms=1.0),
    ]
    [job] = encounters_of(events).jobs
    assert (job.backoff_ms, job.lock_wait_ms, job.check_ms) == (41.0, 2.0, 3.0)
    assert (job.transactions, job.attempts, job.retries) == (2, 3, 1)


def test_a_job_without_a_name_goes_by_its_operation() -> None:
    events = [lost("a-1", 2, "b-1", job=None), committed("b-1", 2, job=None)]
    found = encounters_of(events)
    assert [met.loser for met in found.lost] == ["unnamed (UPDATE)"]
    [advice] = separations(found)
    assert "concurrent runs" not in advice.reason, "nobody knows that it is one job"


def test_the_condition_of_an_old_record_is_in_its_error() -> None:
    old = lost("a-1", 2, None, conflict=None, error="[DELTA_METADATA_CHANGED] /t: changed")
    assert [met.condition for met in encounters_of([old]).lost] == ["DELTA_METADATA_CHANGED"]


def test_the_newest_loss_comes_first() -> None:
    events = [lost("a-1", 2, None, timestamp=10), lost("a-2", 9, None, timestamp=30)]
    assert [met.event.txn_id for met in encounters_of(events).lost] == ["a-2", "a-1"]


def advised(*losses: CommitStats, winners: tuple[CommitStats, ...] = ()) -> tuple[str, str]:
    [advice] = separations(encounters_of([*losses, *winners]))
    assert advice.lost == len(losses)
    return advice.by, advice.reason


def test_jobs_on_one_partition_are_separated_by_it() -> None:
    loss = lost(
        "cleaner-1", 5, "loader-1", partition_columns=("day",), conflict_partition={"day": "1"}
    )
    by, reason = advised(loss, winners=(committed("loader-1", 5),))
    assert by == "partition"
    assert "both work in [day=1]" in reason
    assert "condition on day" in reason
    assert "run it after loader" in reason


def test_many_partitions_are_not_all_listed() -> None:
    losses = [
        lost(f"c-{n}", n, "l-1", partition_columns=("day",), conflict_partition={"day": str(n)})
        for n in range(8)
    ]
    _, reason = advised(*losses, winners=(committed("l-1", 99),))
    assert "and 3 more" in reason


def test_a_job_that_reads_everything_is_told_to_name_partitions() -> None:
    loss = lost("c-1", 5, "l-1", partition_columns=("day", "hub"), reads_whole_table=True)
    by, reason = advised(loss)
    assert by == "partition"
    assert "c reads the whole table: name the partitions (day, hub)" in reason


def test_an_unpartitioned_table_leaves_only_time() -> None:
    by, reason = advised(lost("c-1", 5, "l-1", partition_columns=()))
    assert by == "time"
    assert "partition the table" in reason


@pytest.mark.parametrize("who", ["winner", "loser"])
def test_compaction_is_kept_to_partitions_at_rest(who: str) -> None:
    operations = {"winner": ("UPDATE", "OPTIMIZE"), "loser": ("OPTIMIZE", "UPDATE")}[who]
    loss = lost(
        "c-1",
        5,
        "l-1",
        operation=operations[0],
        conflict="DELTA_CONCURRENT_DELETE_READ",
        partition_columns=("day",),
        conflict_partition={"day": "1"},
    )
    by, reason = advised(loss, winners=(committed("l-1", 5, operation=operations[1]),))
    mover, other = ("l", "c") if who == "winner" else ("c", "l")
    assert by == "partition"
    assert reason.startswith(f"{mover} rearranges files in [day=1] that {other} works on")


def test_two_runs_of_one_job_are_reported_as_that() -> None:
    loss = lost("c-1", 5, "c-2", partition_columns=("day",), conflict_partition={"day": "1"})
    by, reason = advised(loss, winners=(committed("c-2", 5),))
    assert (by, "concurrent runs of it" in reason) == ("partition", True)
    by, reason = advised(lost("c-1", 5, "c-2"), winners=(committed("c-2", 5),))
    assert (by, "allow only one at a time" in reason) == ("time", True)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("DELTA_METADATA_CHANGED", "changes the table itself"),
        ("DELTA_PROTOCOL_CHANGED", "changes the table itself"),
        ("DELTA_CONCURRENT_TRANSACTION", "progress of the same application"),
        ("DELTA_CONCURRENT_WRITE", "restart it sooner"),
        ("UnsupportedFeatureError", "restart it sooner"),
    ],
)
def test_what_is_not_about_files_is_separated_by_time(condition: str, words: str) -> None:
    loss = lost("c-1", 5, "l-1", conflict=condition, partition_columns=("day",))
    by, reason = advised(loss)
    assert by == "time"
    assert words in reason


@pytest.mark.parametrize(("races", "said"), [(9, 0), (10, 1)])
def test_many_races_without_a_lost_commit_are_worth_a_word(races: int, said: int) -> None:
    events = [
        each
        for n in range(races)
        for each in (
            rebased(f"slow-{n}", 2 * n, winner_txn_id=f"fast-{n}"),
            committed(f"slow-{n}", 2 * n + 1, attempt=2),
            committed(f"fast-{n}", 2 * n),
        )
    ]
    advice = separations(encounters_of(events))
    assert len(advice) == said
    assert all("10 races were" in each.reason and each.lost == 0 for each in advice)


def test_a_commit_that_never_won_is_reported() -> None:
    races = [rebased("a-1", 1), rebased("a-1", 2, attempt=2)]
    [advice] = separations(encounters_of(races))
    assert (advice.by, advice.lost) == ("time", 1)
    assert "no further attempt is known" in advice.reason
    end = event("a-1", CommitOutcome.GIVEN_UP, 3, attempt=2)
    [advice] = separations(encounters_of([*races, end]))
    assert (advice.by, advice.lost) == ("time", 1)
    assert "spark.lakelog.commit.timeBudget" in advice.reason


def test_the_end_of_a_commit_that_gave_up_is_no_attempt_and_no_race() -> None:
    races = [rebased("a-1", 1), rebased("a-1", 2, attempt=2)]
    end = event("a-1", CommitOutcome.GIVEN_UP, 3, attempt=2, winner_version=2)
    [job] = encounters_of([*races, end]).jobs
    assert (job.attempts, job.retries, job.rebased_over) == (2, 1, 2)


def test_every_condition_that_can_come_has_words() -> None:
    # Subclasses would be more: Spark's layer makes some of the same names as it raises them.
    classes = [
        each
        for each in vars(errors).values()
        if isinstance(each, type)
        and issubclass(each, DeltaConcurrentModificationException)
        and each is not DeltaConcurrentModificationException
    ]
    assert {cls.condition for cls in classes} == set(CONDITIONS)


def test_partitions_are_reported_by_name_and_value() -> None:
    assert partition_text({"day": "1", "hub": None}) == "day=1, hub=null"
    assert partition_text(None) == ""
