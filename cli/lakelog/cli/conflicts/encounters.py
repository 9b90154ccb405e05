"""From commit events to encounters of jobs: transactions, the races they lost, and to which job."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lakelog.core.events import CommitOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakelog.core.events import CommitStats

UNNAMED: Final = "unnamed"
"""Stands for all jobs whose events do not name them, by operation."""
_FATES: Final = {CommitOutcome.CONFLICT: "lost", CommitOutcome.GIVEN_UP: "given_up"}
_CONDITION: Final = re.compile(r"\[(DELTA_[A-Z_]+)\]")


@dataclass(slots=True)
class Transaction:
    """All attempts of one commit."""

    events: list[CommitStats]

    @property
    def table(self) -> str:
        """What it wrote to."""
        return self.events[0].table

    @property
    def job(self) -> str:
        """The job that made it; its operation where the job has no name."""
        named = next((each.job for each in self.events if each.job), None)
        return named or f"{UNNAMED} ({self.events[0].operation})"

    @property
    def operation(self) -> str:
        """Its operation."""
        return self.events[0].operation

    @property
    def committed_version(self) -> int | None:
        """The version that it made; None where it made none, as far as the events show."""
        return next(
            (e.committed_version for e in self.events if e.committed_version is not None), None
        )

    @property
    def fate(self) -> str:
        """`committed`, `lost` to a conflict, `given_up`, `failed`, `unknown`, `unfinished`."""
        if self.committed_version is not None:
            return "committed"
        last = self.events[-1].outcome
        if last is CommitOutcome.REBASED:
            # No attempt followed: the job has ended, or is still retrying.
            return "unfinished"
        return _FATES.get(last, last.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encounter:
    """One commit of another that an attempt met on its way."""

    event: CommitStats
    loser: str
    winner: str
    """The job that won; what is known of it where it left no events."""
    winner_version: int
    winner_operation: str | None
    condition: str | None
    """Why it must not be ignored; None where it could be, and the attempt was rebased."""


@dataclass(slots=True)
class JobSums:
    """The outcomes of one job's commits to one table."""

    table: str
    job: str
    operations: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    attempts: int = 0
    rebased_over: int = 0
    """Commits of others over which it was rebased."""
    conditions: Counter[str] = field(default_factory=Counter)
    backoff_ms: float = 0.0
    lock_wait_ms: float = 0.0
    check_ms: float = 0.0

    @property
    def transactions(self) -> int:
        """How many commits it tried."""
        return self.fates.total()

    @property
    def retries(self) -> int:
        """Attempts beyond the first of each commit."""
        return self.attempts - self.transactions


@dataclass(slots=True)
class Pair:
    """All encounters of two jobs on one table, of which one lost."""

    table: str
    loser: str
    winner: str
    lost: list[Encounter] = field(default_factory=list)
    rebased: int = 0

    @property
    def conditions(self) -> Counter[str]:
        """Why commits were lost, and how often."""
        return Counter(each.condition for each in self.lost if each.condition)


@dataclass(frozen=True, slots=True)
class Encounters:
    """Everything that the events show."""

    jobs: Sequence[JobSums]
    """Those that lost most come first."""
    pairs: Sequence[Pair]
    """Likewise."""
    lost: Sequence[Encounter]
    """The encounters that cost a commit, newest first."""


def encounters_of(events: Iterable[CommitStats], known: Iterable[CommitStats] = ()) -> Encounters:
    """Match events with each other: a loser's record names the winner, whose own names its job.

    Args:
        events: what happened.
        known: further events, that may name winners.
    """
    transactions = _transactions(events)
    named = {**_transactions(known), **transactions}
    by_version = {
        (each.table, each.committed_version): each
        for each in named.values()
        if each.committed_version is not None
    }
    jobs: dict[tuple[str, str], JobSums] = {}
    pairs: dict[tuple[str, str, str], Pair] = {}
    for each in transactions.values():
        sums = jobs.setdefault((each.table, each.job), JobSums(each.table, each.job))
        _add(sums, each)
        for event in each.events:
            for met in _met(event, each, named, by_version):
                key = (event.table, met.loser, met.winner)
                pair = pairs.setdefault(key, Pair(*key))
                if met.condition is None:
                    pair.rebased += 1
                    sums.rebased_over += 1
                else:
                    pair.lost.append(met)
                    sums.conditions[met.condition] += 1
    return Encounters(
        sorted(jobs.values(), key=lambda j: (-j.fates["lost"], -j.retries, j.table, j.job)),
        sorted(pairs.values(), key=lambda p: (-len(p.lost), -p.rebased, p.loser, p.winner)),
        sorted(
            (met for pair in pairs.values() for met in pair.lost),
            key=lambda met: (met.event.timestamp or 0, met.winner_version),
            reverse=True,
        ),
    )


def _transactions(events: Iterable[CommitStats]) -> dict[tuple[str, str], Transaction]:
    found: dict[tuple[str, str], Transaction] = {}
    for event in events:
        found.setdefault((event.table, event.txn_id), Transaction([])).events.append(event)
    for each in found.values():
        each.events.sort(key=lambda e: (e.attempt, e.outcome is CommitOutcome.GIVEN_UP))
    return found


def _add(sums: JobSums, transaction: Transaction) -> None:
    sums.operations[transaction.operation] += 1
    sums.fates[transaction.fate] += 1
    for event in transaction.events:
        sums.attempts += event.outcome is not CommitOutcome.GIVEN_UP
        sums.backoff_ms += event.backoff_ms
        sums.lock_wait_ms += event.lock_wait_ms
        sums.check_ms += event.check_ms


def _met(
    event: CommitStats,
    loser: Transaction,
    transactions: Mapping[tuple[str, str], Transaction],
    by_version: Mapping[tuple[str, int], Transaction],
) -> Iterable[Encounter]:
    """The winners that an attempt checked: one version after the other, from its own on.

    The record describes one of them: the first, or of a conflict the last.
    """
    conflict = event.outcome is CommitOutcome.CONFLICT
    for version in range(event.version, event.version + event.winners):
        described = version == event.winner_version
        winner = by_version.get((event.table, version))
        if described and event.winner_txn_id:
            winner = transactions.get((event.table, event.winner_txn_id))
        operation = event.winner_operation if described else None
        yield Encounter(
            event=event,
            loser=loser.job,
            winner=winner.job if winner else _unknown_writer(event, described=described),
            winner_version=version,
            winner_operation=winner.operation if winner else operation,
            condition=_condition(event) if conflict and described else None,
        )


def _unknown_writer(event: CommitStats, *, described: bool) -> str:
    """What is known of a winner that left no events."""
    if not described:
        return "another writer"
    known = [part for part in (event.winner_operation, event.winner_engine) if part]
    return f"another writer ({', '.join(known)})" if known else "another writer"


def _condition(event: CommitStats) -> str:
    """Records of older versions have the condition only in their error."""
    if event.conflict:
        return event.conflict
    match = _CONDITION.match(event.error or "")
    return match[1] if match else "conflict"
