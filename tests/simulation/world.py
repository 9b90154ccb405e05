"""Playing a history: processes, their jobs, and the order of their storage operations."""

from __future__ import annotations

import enum
import itertools
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from simulation.jobs import BASE_FEATURES, End, Job, Order
from simulation.model import LEVEL_KEY, Deed
from simulation.numbering import Numbered, mark_line
from simulation.scheduling import Actor
from simulation.storage import ProcessStore, Storage
from support.faults import Fault
from support.manual_clock import ManualClock
from support.tables import schema_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

INTERVAL_KEY = "delta.checkpointInterval"
MONTH = 30 * 86_400.0
_names = itertools.count()

_A_MINUTE = "    a minute passes"
_MOST_MINUTES = 4
"""Of a history: a commit that has used up half of its ten minutes by one write rightly gives up."""


class Do(enum.Enum):
    """What one step of a schedule lets happen."""

    FINISH = enum.auto()
    """The process goes on until its job is done."""
    THINK = enum.auto()
    """It goes on until its job has read the table and is about to commit."""
    WRITE = enum.auto()
    """It goes on until its job is about to write a file."""
    ALL_THINK = enum.auto()
    """Every process goes on until its job is about to commit: then they race."""
    ONE = enum.auto()
    """It makes one storage operation, with a fault or without."""
    DELIVER = enum.auto()
    """Requests that are on their way arrive."""
    PAUSE = enum.auto()
    """A minute passes, for everybody."""
    CLEAN_UP = enum.auto()
    """A checkpoint is made, a month passes, and log cleanup removes all that is old."""


_UNTIL: dict[Do, Callable[[str], bool]] = {
    Do.FINISH: lambda _operation: False,
    Do.THINK: lambda operation: operation == "think",
    Do.WRITE: lambda operation: operation == "write",
    Do.ONE: lambda _operation: True,
}


@dataclass(frozen=True)
class Step:
    """One step of a schedule."""

    who: int
    do: Do
    fate: Fault = Fault.NONE

    def __repr__(self) -> str:
        fate = "" if self.fate is Fault.NONE else f", {self.fate.name}"
        return f"{'ABC'[self.who]}: {self.do.name}{fate}"


@dataclass(frozen=True)
class Script:
    """A whole history, before it is played."""

    orders: Sequence[Sequence[Order]]
    """The orders of each process, first to last."""
    steps: Sequence[Step]
    level: str
    partitioned: bool = True
    interval: int = 1000
    """The table's checkpoint interval."""
    exists: bool = True
    """Whether the table is there at the beginning."""
    numbered: Numbered = Numbered.NO
    """Whether it has row ids and commit times."""


class SteadyClock(ManualClock):
    """Waits of the core take no time: which ones it draws must not change a history."""

    def sleep(self, seconds: float) -> None:
        super().sleep(min(seconds, 0.0001))


@dataclass
class _Process:
    letter: str
    orders: list[Order]
    store: ProcessStore
    log: DeltaLog
    actor: Actor | None = None
    job: Job | None = None
    done: int = 0

    @property
    def is_idle(self) -> bool:
        return self.actor is None and not self.orders


@dataclass
class World:
    """One history as it is played."""

    script: Script
    storage: Storage = field(default_factory=lambda: Storage(f"simulation-{next(_names)}"))
    clock: SteadyClock = field(default_factory=SteadyClock)
    jobs: list[Job] = field(default_factory=list)
    first: Deed | None = None
    """The commit that made the table, where it was there at the beginning."""

    def play(self) -> None:
        """Run all jobs to their ends, in the script's order and then one after the other."""
        settings = {LEVEL_KEY: self.script.level, INTERVAL_KEY: str(self.script.interval)}
        settings |= self.script.numbered.settings
        if self.script.exists:
            self._create_table(settings)
        processes = [
            self._process(letter, orders)
            for letter, orders in zip("ABC", self.script.orders, strict=False)
        ]
        try:
            for step in self.script.steps:
                self._take(step, processes, settings)
            for process in processes:
                while not process.is_idle:
                    self._take_turn(process, Step(0, Do.FINISH), settings)
            self.storage.deliver_late()
        finally:
            for process in processes:
                if process.actor is not None:
                    process.actor.kill()

    def _create_table(self, settings: dict[str, str]) -> None:
        files = {"f0": "0", "f1": "1", "f2": "0"}
        self.first = Deed(
            operation="CREATE TABLE",
            read_version=-1,
            adds=files,
            settings=settings,
            features=BASE_FEATURES | self.script.numbered.features,
        )
        schema = schema_json(id="long", p="string")
        self.storage.inner.create_folder(f"{self.storage.table}/_delta_log")
        lines = _raw_commit(self.first, "first", schema, self.script)
        self.storage.create(f"{self.storage.table}/_delta_log/{0:020d}.json", lines)

    def _process(self, letter: str, orders: Sequence[Order]) -> _Process:
        store = ProcessStore(self.storage, self.clock)
        return _Process(letter, list(orders), store, self._open(store))

    def _open(self, store: ProcessStore) -> DeltaLog:
        return DeltaLog(self.storage.table, store, DeltaConf(), self.clock)

    def _take(self, step: Step, processes: list[_Process], settings: dict[str, str]) -> None:
        if step.do is Do.DELIVER:
            self.storage.deliver_late()
        elif step.do is Do.PAUSE:
            if self.storage.story.count(_A_MINUTE) < _MOST_MINUTES:
                self.clock.advance(61)
                self.storage.story.append(_A_MINUTE)
        elif step.do is Do.CLEAN_UP:
            self._clean_up(processes)
        elif step.do is Do.ALL_THINK:
            for process in processes:
                at = process.actor.at[0] if process.actor is not None else ""
                if not process.is_idle and at != "think":
                    self._take_turn(process, Step(0, Do.THINK), settings)
        else:
            able = [process for process in processes if not process.is_idle]
            if able:
                self._take_turn(able[step.who % len(able)], step, settings)

    def _clean_up(self, processes: list[_Process]) -> None:
        """No commit takes a month: it is only done while nobody is in the midst of one."""
        waiting = [p.actor.at[0] for p in processes if p.actor is not None]
        if any(at != "think" for at in waiting) or self.storage.newest < 1:
            return
        self.storage.deliver_late()
        DeltaLog(self.storage.table, self.storage.inner, DeltaConf(), self.clock).checkpoint()
        self.clock.advance(MONTH)
        self.storage.clean_up()
        self.storage.story.append("    a month passes, and log cleanup keeps the newest version")

    def _take_turn(self, process: _Process, step: Step, settings: dict[str, str]) -> None:
        actor = self._begun(process, settings)
        actor.resume(step.fate, _UNTIL[step.do])
        if actor.is_done:
            self._end(process)

    def _begun(self, process: _Process, settings: dict[str, str]) -> Actor:
        if process.actor is None:
            process.done += 1
            name = f"{process.letter}{process.done}"
            job = Job(
                name=name,
                order=process.orders.pop(0),
                storage=self.storage,
                log=process.log,
                create_settings=settings,
                partitioned=self.script.partitioned,
                numbered=self.script.numbered,
            )
            self.jobs.append(job)
            self.storage.story.append(f"{name} begins: {job.order}")
            process.job, process.actor = job, Actor(job.run)
            process.store.actor, process.store.who = process.actor, name
            process.store.troubles = 0
        return process.actor

    def _end(self, process: _Process) -> None:
        job, actor = process.job, process.actor
        assert job is not None
        assert actor is not None
        job.troubles = process.store.troubles
        if actor.is_dead:
            job.end = End.CRASHED
            # What the process knew is lost with it.
            process.log = self._open(process.store)
        what = f" at version {job.version}" if job.version is not None else ""
        why = f" ({type(job.error).__name__})" if job.error is not None else ""
        self.storage.story.append(f"{job.name} ends: {job.end.name}{what}{why}")
        process.job = process.actor = process.store.actor = None
        if actor.failure is not None:
            raise actor.failure


def _raw_commit(deed: Deed, txn_id: str, schema: str, script: Script) -> list[str]:
    """The lines of a first commit, written without the core."""
    partitioned, numbered = script.partitioned, script.numbered
    protocol = {
        "minReaderVersion": 1,
        "minWriterVersion": 7,
        "writerFeatures": sorted(deed.features or ()),
    }
    metadata = {
        "id": "table",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema,
        "partitionColumns": ["p"] if partitioned else [],
        "configuration": dict(deed.settings or {}),
    }
    adds = [
        {
            "path": path,
            "partitionValues": {"p": part} if partitioned else {},
            "size": 1,
            "modificationTime": 1,
            "dataChange": True,
            "stats": '{"numRecords":1}',
            **({} if numbered is Numbered.NO else _ids(number)),
        }
        for number, (path, part) in enumerate(deed.adds.items())
    ]
    info = {"timestamp": 1, "operation": "CREATE TABLE", "txnId": txn_id, "isBlindAppend": True}
    if numbered is Numbered.ON:
        info["inCommitTimestamp"] = 1
    lines = [{"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}]
    if numbered is not Numbered.NO:
        lines.append(mark_line(len(adds) - 1))
    return [json.dumps(line) for line in [*lines, *({"add": add} for add in adds)]]


def _ids(number: int) -> dict[str, int]:
    return {"baseRowId": number, "defaultRowCommitVersion": 0}
