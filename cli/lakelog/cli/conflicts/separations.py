"""Which jobs to separate, how, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from lakelog.cli.conflicts.encounters import UNNAMED
from lakelog.logstores.keys import TIME_BUDGET

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.cli.conflicts.encounters import Encounters, Pair

CONDITIONS: Final = {
    "DELTA_CONCURRENT_APPEND": "added files where it had read",
    "DELTA_CONCURRENT_DELETE_READ": "removed files that it had read",
    "DELTA_CONCURRENT_DELETE_DELETE": "removed files that it also removes",
    "DELTA_METADATA_CHANGED": "changed the schema or a property",
    "DELTA_PROTOCOL_CHANGED": "changed the protocol, or made the table",
    "DELTA_CONCURRENT_TRANSACTION": "recorded progress of the same application or domain",
    "DELTA_CONCURRENT_WRITE": "landed while the version that it had read was cleaned up",
}
"""Delta's condition -> what the winner did."""

_ABOUT_FILES: Final = (
    "DELTA_CONCURRENT_APPEND",
    "DELTA_CONCURRENT_DELETE_READ",
    "DELTA_CONCURRENT_DELETE_DELETE",
)
_ABOUT_THE_TABLE: Final = ("DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
_REARRANGES: Final = ("OPTIMIZE", "REORG", "CLUSTER BY")
_MANY_RACES: Final = 10
"""A pair that lost no commit is mentioned from this many lost races on."""
_SHOWN_PARTITIONS: Final = 5


class Advice(NamedTuple):
    """One piece of advice."""

    table: str
    jobs: tuple[str, str]
    """Who lost, and who won."""
    by: str
    """`partition` or `time`."""
    lost: int
    """Commits that it cost."""
    reason: str


def separations(found: Encounters) -> list[Advice]:
    """The jobs to separate, those that cost commits first."""
    advice = []
    for pair in found.pairs:
        if pair.lost:
            by, reason = _for_lost(pair)
            advice.append(Advice(pair.table, (pair.loser, pair.winner), by, len(pair.lost), reason))
        elif pair.rebased >= _MANY_RACES:
            advice.append(_for_races(pair))
    advice += _for_fate(
        found,
        "given_up",
        "lost races until time or attempts ran out: let fewer writers commit at once, or raise "
        f"{TIME_BUDGET.name}",
    )
    return advice + _for_fate(
        found,
        "unfinished",
        "lost a race, and no further attempt is known: the job has ended, or is still retrying",
    )


def _for_lost(pair: Pair) -> tuple[str, str]:
    (condition, _), *_ = pair.conditions.most_common()
    if condition == "DELTA_CONCURRENT_TRANSACTION":
        return "time", (
            "both record the progress of the same application, or set the same domain: run only "
            "one at a time"
        )
    if condition in _ABOUT_THE_TABLE:
        return "time", (
            f"{pair.winner} changes the table itself: run it while {pair.loser} is not running"
        )
    if condition not in _ABOUT_FILES:
        return (
            "time",
            f"{pair.loser} started from a version that no longer exists: restart it sooner",
        )
    if pair.loser == pair.winner and not pair.loser.startswith(UNNAMED):
        return _for_two_runs(pair)
    return _for_files(pair)


def _for_two_runs(pair: Pair) -> tuple[str, str]:
    columns = _columns(pair)
    if columns:
        return "partition", (
            f"concurrent runs of it collide{_where(pair)}: allow only one at a time, or give each "
            f"run its own partitions ({columns}), named in its condition"
        )
    return "time", "concurrent runs of it collide: allow only one at a time"


def _for_files(pair: Pair) -> tuple[str, str]:
    columns = _columns(pair)
    if not columns:
        return "time", (
            "nothing in this table separates them: run one after the other, or partition the "
            "table by what separates them"
        )
    if any(met.event.reads_whole_table for met in pair.lost):
        return "partition", (
            f"{pair.loser} reads the whole table: name the partitions ({columns}) that it needs "
            f"in its condition, and keep them different from those of {pair.winner}"
        )
    for mover, other, operations in (
        (pair.winner, pair.loser, {met.winner_operation for met in pair.lost}),
        (pair.loser, pair.winner, {met.event.operation for met in pair.lost}),
    ):
        if operations & set(_REARRANGES):
            return "partition", (
                f"{mover} rearranges files{_where(pair)} that {other} works on: keep it to "
                f"partitions ({columns}) that are no longer written"
            )
    if not _partitions(pair):
        return "partition", (
            f"in the condition of {pair.loser}, name partitions ({columns}) that {pair.winner} "
            f"does not write; if they need the same ones, run one after the other"
        )
    return "partition", (
        f"both work{_where(pair)}: exclude what {pair.winner} writes from {pair.loser}, by a "
        f"condition on {columns}; if it needs the same partitions, run it after {pair.winner}"
    )


def _for_races(pair: Pair) -> Advice:
    return Advice(
        pair.table,
        (pair.loser, pair.winner),
        "time",
        0,
        f"no commit was lost, but {pair.rebased} races were: they commit at the same time. "
        "Spread their starts, or commit larger batches",
    )


def _for_fate(found: Encounters, fate: str, what: str) -> list[Advice]:
    return [
        Advice(
            job.table,
            (job.job, job.job),
            "time",
            count,
            f"{count} of its commits {what}",
        )
        for job in found.jobs
        if (count := job.fates[fate])
    ]


def _columns(pair: Pair) -> str:
    found: dict[str, None] = {}
    for met in pair.lost:
        found |= dict.fromkeys(met.event.partition_columns or met.event.conflict_partition or ())
    return ", ".join(found)


def _partitions(pair: Pair) -> Sequence[str]:
    texts: dict[str, None] = {}
    for met in pair.lost:
        text = partition_text(met.event.conflict_partition)
        texts |= {text: None} if text else {}
    return list(texts)


def partition_text(values: object) -> str:
    """`day=2026-01-01, country=null`; nothing where there are no values."""
    if not isinstance(values, dict):
        return ""
    return ", ".join(f"{name}={'null' if v is None else v}" for name, v in values.items())


def _where(pair: Pair) -> str:
    found = _partitions(pair)
    if not found:
        return ""
    more = f" and {len(found) - _SHOWN_PARTITIONS} more" if len(found) > _SHOWN_PARTITIONS else ""
    return f" in [{'], ['.join(found[:_SHOWN_PARTITIONS])}]{more}"
