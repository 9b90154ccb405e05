"""Transactions that overlap at random: what commits must be explainable as if one after another.

For every commit that changed rows at the level Serializable, whatever it read must be at its
place in the log what it was when it read it. A commit that changed none needs only that the
files it read are still there.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelog.core.actions.operation import Operation
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaConcurrentModificationException
from support.examples import examples
from support.manual_clock import ManualClock
from support.tables import add_file, new_table, schema_json

if TYPE_CHECKING:
    from lakelog.core.actions import Action, AddFile
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_numbers = itertools.count()
Files: TypeAlias = frozenset[str]
Step: TypeAlias = tuple[str, str | int, int | None]


@dataclass
class Job:
    """One transaction between its start and its commit."""

    kind: str
    part: int | None
    txn: OptimisticTransaction
    actions: list[Action] = field(default_factory=list)
    read: Files = frozenset()

    @property
    def predicate(self) -> str | None:
        return None if self.part is None else f"p = {self.part}"


def new_file(part: int) -> AddFile:
    return add_file(f"f{next(_numbers)}", p=str(part))


def begin(log: DeltaLog, kind: str, part: int | None) -> Job:
    """Start a job: read what its kind reads, and plan what it writes."""
    job = Job(kind, part, log.start_transaction())
    target = 0 if part is None else part
    if kind == "append":
        job.actions = [new_file(target)]
        return job
    if kind == "dynamic overwrite":
        fresh = new_file(target)
        job.part = target
        found = job.txn.reads.files_in_same_partitions([fresh])
        job.actions = [fresh, *(f.remove(1) for f in found)]
    else:
        found = job.txn.filter_files(job.predicate)
    job.read = frozenset(f.path for f in found)
    if kind == "delete":
        job.actions = [f.remove(1) for f in found]
    elif kind == "overwrite":
        job.actions = [*(f.remove(1) for f in found), new_file(target)]
    elif kind == "copy":
        job.actions = [new_file((target + 1) % 3) for _ in found]
    elif kind == "compact":
        job.actions = [
            *(f.remove(1, data_change=False) for f in found),
            add_file(f"f{next(_numbers)}", data_change=False, p=str(target)),
        ]
    return job


def state(log: DeltaLog, version: int, predicate: str | None) -> Files:
    snapshot = log.snapshot_at(version)
    return frozenset(f.path for f in snapshot.files(predicate))


KINDS = st.sampled_from(["append", "delete", "overwrite", "copy", "compact", "dynamic overwrite"])
PARTS = st.sampled_from([0, 1, 2, None])


def overlapping(first: str, second: str, part: int | None = 0) -> list[Step]:
    """The first job starts, the second starts and commits, the first commits."""
    begins: list[Step] = [("begin", first, part), ("begin", second, 0)]
    return [*begins, ("commit", 1, None), ("commit", 0, None)]


@settings(max_examples=examples(24))
@example(steps=overlapping("copy", "delete"))
@example(steps=overlapping("copy", "append", None))
@example(steps=overlapping("compact", "delete", None))
@example(steps=overlapping("delete", "compact"))
@example(steps=overlapping("dynamic overwrite", "copy"))
@example(steps=overlapping("overwrite", "dynamic overwrite", None))
@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("begin"), KINDS, PARTS),
            st.tuples(st.just("commit"), st.integers(0, 4), st.none()),
        ),
        min_size=4,
        max_size=24,
    )
)
def test_what_commits_is_what_some_order_without_overlap_would_have_done(
    steps: list[Step],
) -> None:
    uri = f"memory://histories/{next(_numbers)}"
    never = {"delta.checkpointInterval": "1000"}
    schema = schema_json(id="long", p="integer")
    log = new_table(uri, schema=schema, partition_by=["p"], properties=never, clock=ManualClock())
    seed = log.start_transaction()
    seed.commit([new_file(part) for part in (0, 1, 2)], Operation.write("Append"))
    running: list[Job] = []
    committed: list[tuple[Job, int]] = []
    for step, what, part in [*steps, *[("commit", 0, None)] * len(steps)]:
        if step == "begin":
            running.append(begin(DeltaLog.for_table(uri), str(what), part))
        elif running:
            job = running.pop(int(what) % len(running))
            try:
                version = job.txn.commit(job.actions, Operation(name=job.kind))
            except DeltaConcurrentModificationException:
                continue
            committed.append((job, version))
    versions = [version for _, version in committed]
    assert sorted(versions) == list(range(2, 2 + len(versions)))
    for job, version in committed:
        if job.kind == "append":
            continue
        before = state(log, version - 1, job.predicate)
        if job.kind == "compact" or not job.actions:
            assert job.read <= before
        else:
            assert job.read == before


def test_jobs_that_do_not_overlap_never_conflict() -> None:
    uri = f"memory://histories/{next(_numbers)}"
    schema = schema_json(id="long", p="integer")
    new_table(uri, schema=schema, partition_by=["p"], clock=ManualClock())
    kinds = ["append", "delete", "overwrite", "copy", "compact", "dynamic overwrite"]
    for expected, (kind, part) in enumerate(itertools.product(kinds, (0, 1, None)), 1):
        job = begin(DeltaLog.for_table(uri), kind, part)
        assert job.txn.commit(job.actions, Operation(name=kind)) == expected


def test_jobs_on_different_partitions_never_conflict() -> None:
    uri = f"memory://histories/{next(_numbers)}"
    schema = schema_json(id="long", p="integer")
    new_table(uri, schema=schema, partition_by=["p"], clock=ManualClock())
    log = DeltaLog.for_table(uri)
    kinds = ["delete", "overwrite", "compact", "dynamic overwrite"]
    for first, second in itertools.product(kinds, kinds):
        for part in (0, 1):
            log.start_transaction().commit([new_file(part)], Operation.write("Append"))
        jobs = [begin(DeltaLog.for_table(uri), first, 0), begin(log, second, 1)]
        versions = [job.txn.commit(job.actions, Operation(name=job.kind)) for job in jobs]
        assert versions[1] == versions[0] + 1
