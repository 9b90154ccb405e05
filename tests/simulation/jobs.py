"""What simulated processes do to a table, through the core, and what came of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lakelog.core.actions import DomainMetadata, Metadata, SetTransaction
from lakelog.core.actions.operation import Operation
from lakelog.core.errors import (
    CommitOutcomeUnknownError,
    ConcurrentWriteException,
    DeltaConcurrentModificationException,
    TableNotFoundError,
)
from simulation.model import LEVEL_KEY, SERIALIZABLE, WRITE_SERIALIZABLE, Deed
from simulation.numbering import FEATURES, SWITCHES, Numbered, plain
from simulation.sight import Seen, look
from support.tables import add_file, schema_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.core.actions import Action, AddFile
    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction
    from simulation.scheduling import Actor
    from simulation.storage import Storage

UPGRADES = ("vacuumProtocolCheck", "checkConstraints")
BASE_FEATURES = frozenset({"appendOnly", "invariants", "domainMetadata"})


@dataclass(frozen=True)
class Order:
    """What a job is to do."""

    kind: str
    part: str | None = None
    """The value of `p` that it is about; `None` for the whole table."""
    number: int = 0
    """A version of an application, a value, the index of a feature."""

    def __repr__(self) -> str:
        about = f" p={self.part}" if self.part is not None else ""
        return f"{self.kind}{about}{f' #{self.number}' if self.number else ''}"


class End(enum.Enum):
    """How a job ended."""

    RUNNING = enum.auto()
    NOTHING_TO_DO = enum.auto()
    COMMITTED = enum.auto()
    CONFLICT = enum.auto()
    FENCED = enum.auto()
    UNKNOWN = enum.auto()
    FAILED = enum.auto()
    CRASHED = enum.auto()


@dataclass
class Job:
    """One order on its way."""

    name: str
    order: Order
    storage: Storage
    log: DeltaLog
    create_settings: Mapping[str, str]
    partitioned: bool
    numbered: Numbered
    end: End = End.RUNNING
    deed: Deed | None = None
    txn_id: str = ""
    version: int | None = None
    """Where it was committed, or what it is in conflict with."""
    error: Exception | None = None
    seen: list[Seen] = field(default_factory=list)
    in_commit: bool = False
    read_is_gone: bool = False
    """Whether log cleanup had removed the version that it read when it began to commit."""
    troubles: int = 0
    """How many of its operations were made to fail."""

    def run(self, actor: Actor) -> None:
        """Do it, whatever comes of it."""
        try:
            self._run(actor)
        except CommitOutcomeUnknownError as exc:
            self.end, self.error = End.UNKNOWN, exc
        except ConcurrentWriteException as exc:
            self.end, self.error = End.FENCED, exc
        except DeltaConcurrentModificationException as exc:
            self.end, self.error, self.version = End.CONFLICT, exc, exc.version
        except TableNotFoundError:
            self.end = End.NOTHING_TO_DO
        except OSError as exc:
            self.end, self.error = End.FAILED, exc

    def _run(self, actor: Actor) -> None:
        newest = self.storage.newest
        if self.order.kind in ("update", "checkpoint"):
            self._look(self.log.update(), newest)
            if self.order.kind == "checkpoint":
                self.log.checkpoint()
            self.end = End.NOTHING_TO_DO
            return
        may_be_behind = self.order.kind == "append behind what is known"
        txn = self.log.start_transaction(newest=not may_be_behind)
        if txn.snapshot is not None:
            self._look(txn.snapshot, 0 if may_be_behind else newest)
        elif newest >= 0:
            self.storage.complaints.append(f"{self.name} saw no table, and version {newest} is")
        if (txn.snapshot is None) is not (self.order.kind == "create"):
            self.end = End.NOTHING_TO_DO
            return
        actions = KINDS[self.order.kind](self, txn)
        if actions is None:
            self.end = End.NOTHING_TO_DO
            return
        assert self.deed is not None
        self.txn_id = txn._committer.txn_id
        actor.step("think")
        self.in_commit = True
        self.read_is_gone = max(txn.reads.version, 0) in self.storage.cleaned
        self.version = txn.commit(actions, Operation(name=self.deed.operation))
        self.end = End.COMMITTED

    def _look(self, snapshot: Snapshot, at_least: int) -> None:
        self.seen.append(look(snapshot, at_least))

    def plan(self, txn: OptimisticTransaction, operation: str, *, part: str | None = None) -> Deed:
        """A deed that read nothing or one value of `p`, so far."""
        parts = frozenset() if part is None else frozenset({part})
        return Deed(operation=operation, read_version=txn.reads.version, parts=parts)

    def new_file(self, part: str, *, data_change: bool = True) -> AddFile:
        values: dict[str, str | None] = {"p": part} if self.partitioned else {}
        return add_file(f"{self.name}.parquet", data_change=data_change, **values)

    @property
    def target(self) -> str:
        return self.order.part or "0"


def _adding(job: Job, deed: Deed, part: str) -> list[Action]:
    job.deed = replace(deed, adds={**deed.adds, f"{job.name}.parquet": part})
    return [job.new_file(part, data_change=deed.data_change)]


def _reading(job: Job, txn: OptimisticTransaction, operation: str) -> tuple[Deed, list[AddFile]]:
    """Read what the order is about, and record it as the model sees it."""
    part = job.order.part
    # A condition on a data column reads no less: it does not keep appends away.
    condition = None if part is None else f"p = '{part}' AND id > 3"
    found = txn.filter_files(condition)
    deed = job.plan(txn, operation, part=part)
    return replace(deed, everything=part is None, files=frozenset(f.path for f in found)), found


def _append(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    return _adding(job, job.plan(txn, "WRITE"), job.target)


def _copy(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    """Read one partition, append to the other: `INSERT … SELECT` from the same table."""
    deed, _ = _reading(job, txn, "WRITE")
    return _adding(job, deed, "1" if job.target == "0" else "0")


def _aggregate(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    txn.reads.read_whole_table()
    return _adding(job, replace(job.plan(txn, "WRITE"), whole_table=True), job.target)


def _delete(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    deed, found = _reading(job, txn, "DELETE")
    job.deed = replace(deed, removes=deed.files)
    return [file.remove(1) for file in found]


def _rewrite(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    deed, found = _reading(job, txn, "UPDATE")
    adds = _adding(job, replace(deed, removes=deed.files), job.target)
    return [*(file.remove(1) for file in found), *adds]


def _compact(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    deed, found = _reading(job, txn, "OPTIMIZE")
    if not found:
        return None
    deed = replace(deed, removes=deed.files, data_change=False)
    removes = [file.remove(1, data_change=False) for file in found]
    return [*removes, *_adding(job, deed, job.target)]


def _replace_partitions(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    """Dynamic overwrite: its own new files say which partitions it replaces."""
    found = txn.reads.files_in_same_partitions([job.new_file(job.target)])
    deed = job.plan(txn, "WRITE", part=job.target)
    deed = replace(deed, removes=frozenset(f.path for f in found))
    return [*_adding(job, deed, job.target), *(file.remove(1) for file in found)]


def _drop_unread(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    """Remove files that the transaction itself did not read: it knows them from elsewhere."""
    part = job.order.part
    assert txn.snapshot is not None
    found = txn.snapshot.files(None if part is None else f"p = '{part}'")
    deed = replace(job.plan(txn, "DELETE"), removes=frozenset(file.path for file in found))
    job.deed = deed
    return [file.remove(1) for file in found]


def _change_metadata(job: Job, txn: OptimisticTransaction, settings: Mapping[str, str]) -> None:
    merged = {**txn.metadata.configuration, **settings}
    txn.update_metadata(replace(txn.metadata, configuration=merged))


def _set_property(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    settings = {"note": job.name}
    if job.order.number:
        settings[LEVEL_KEY] = (SERIALIZABLE, WRITE_SERIALIZABLE)[job.order.number - 1]
    _change_metadata(job, txn, settings)
    job.deed = replace(job.plan(txn, "SET TBLPROPERTIES"), settings=settings)
    return []


def _evolve(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    """Read, change the metadata and write, in one."""
    deed, _ = _reading(job, txn, "WRITE")
    _change_metadata(job, txn, {"note": job.name})
    return _adding(job, replace(deed, settings={"note": job.name}), job.target)


def _switch_on(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    """Let commits carry times, or readers rely on row ids, in a table that has the features."""
    settings = SWITCHES[job.order.number]
    features = frozenset(txn.changes.protocol.writer_features or ())
    if not features >= FEATURES or settings.items() <= txn.metadata.configuration.items():
        return None
    _change_metadata(job, txn, settings)
    deed = job.plan(txn, "SET TBLPROPERTIES")
    job.deed = replace(deed, settings=settings, only_switches=True)
    return []


def _upgrade(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    has = frozenset(txn.changes.protocol.writer_features or ())
    wanted = has | {UPGRADES[job.order.number]}
    if wanted == has:
        return None
    job.deed = replace(job.plan(txn, "UPGRADE PROTOCOL"), features=wanted)
    readers = sorted(wanted & {"vacuumProtocolCheck"})
    protocol = replace(
        txn.changes.protocol,
        min_reader_version=3 if readers else txn.changes.protocol.min_reader_version,
        reader_features=readers or None,
        writer_features=sorted(wanted),
    )
    return [protocol]


def _write_once(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    """A write that records its application's progress, and does nothing if it was done."""
    seen = txn.txn_version("app")
    if seen >= job.order.number:
        return None
    deed = job.plan(txn, "WRITE")
    deed = replace(deed, apps_read={"app": seen}, apps={"app": job.order.number})
    txn_action = SetTransaction(app_id="app", version=job.order.number, last_updated=1)
    return [txn_action, *_adding(job, deed, job.target)]


def _record_progress(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    """Record an application's progress without having looked at it: the last one wins."""
    job.deed = replace(job.plan(txn, "STREAMING"), apps={"app": job.order.number})
    return [SetTransaction(app_id="app", version=job.order.number, last_updated=1)]


def _set_domain(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    domain = f"domain{job.order.number}"
    job.deed = replace(job.plan(txn, "DOMAIN"), domains={domain: job.name})
    return [DomainMetadata(domain=domain, configuration=job.name, removed=False)]


def _create(job: Job, txn: OptimisticTransaction) -> list[Action] | None:
    metadata = Metadata(
        id=job.name,
        schema_string=schema_json(id="long", p="string"),
        partition_columns=["p"] if job.partitioned else [],
        configuration={
            **job.create_settings,
            "delta.feature.domainMetadata": "supported",
            **{f"delta.feature.{name}": "supported" for name in job.numbered.features},
        },
    )
    txn.update_metadata(metadata)
    job.deed = replace(
        job.plan(txn, "CREATE TABLE"),
        settings=plain(txn.metadata.configuration),
        features=frozenset(txn.changes.protocol.writer_features or ()),
    )
    return [] if job.order.part is None else _adding(job, job.deed, job.order.part)


KINDS: dict[str, Callable[[Job, OptimisticTransaction], list[Action] | None]] = {
    "append": _append,
    "append behind what is known": _append,
    "copy": _copy,
    "aggregate": _aggregate,
    "delete": _delete,
    "rewrite": _rewrite,
    "compact": _compact,
    "replace partitions": _replace_partitions,
    "drop unread": _drop_unread,
    "set property": _set_property,
    "evolve": _evolve,
    "switch on": _switch_on,
    "upgrade": _upgrade,
    "write once": _write_once,
    "record progress": _record_progress,
    "set domain": _set_domain,
    "create": _create,
}
