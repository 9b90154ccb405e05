"""What has to hold after every history."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from simulation.jobs import End, Job
from simulation.model import Deed, State, broken_promise, level_of, replay, verdict
from simulation.numbering import MARK, Numbered, wrong_ids, wrong_times
from simulation.scheduling import one_at_a_time
from simulation.sight import Seen, look
from simulation.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from simulation.world import Script

_NOWHERE = (End.CONFLICT, End.FENCED, End.FAILED, End.NOTHING_TO_DO)


class HistoryError(AssertionError):
    """A history that must not be; the message tells it."""


def play_and_check(script: Script) -> World:
    """Play a history.

    Raises:
        HistoryError: it broke a promise; says which, and how it came about.
    """
    world = World(script)
    try:
        with one_at_a_time():
            world.play()
            wrong = [*world.storage.complaints, *_Checks(world).all()]
    except Exception as exc:
        raise HistoryError(_story(world, [f"{type(exc).__name__}: {exc}"])) from exc
    finally:
        world.storage.forget()
    if wrong:
        raise HistoryError(_story(world, wrong))
    return world


def _story(world: World, wrong: list[str]) -> str:
    script = world.script
    table = "partitioned by p" if script.partitioned else "unpartitioned"
    head = f"{table}, {script.level}" + ("" if script.exists else ", not there at the beginning")
    if script.numbered is not Numbered.NO:
        head += f", row ids and commit times {script.numbered.name.lower()}"
    return "\n".join(["; ".join(wrong), f"The table: {head}", "The history:", *world.storage.story])


class _Checks:
    def __init__(self, world: World) -> None:
        self.world = world
        self.partitioned = world.script.partitioned
        self.by_txn = {job.txn_id: job for job in world.jobs if job.txn_id}
        self.actions = {
            version: [json.loads(line) for line in lines]
            for version, lines in world.storage.landed.items()
        }
        self.infos = {v: _values(found, "commitInfo")[0] for v, found in self.actions.items()}

    def all(self) -> Iterator[str]:
        landed = self.world.storage.landed
        if sorted(landed) != list(range(len(landed))):
            yield f"the versions are {sorted(landed)}"
            return
        self.deeds = [self._deed(version) for version in range(len(landed))]
        self.states = replay(self.partitioned, self.deeds)
        self.levels = [level_of(deed, self._read(deed).settings) for deed in self.deeds]
        times = Counter(self.infos[version]["txnId"] for version in landed)
        for job in self.world.jobs:
            yield from (f"{job.name}: {text}" for text in self._job(job, times[job.txn_id]))
        for version in landed:
            yield from (f"version {version}: {text}" for text in self._version(version))
        if self.world.script.numbered is not Numbered.NO:
            yield from (*wrong_ids(self.actions), *wrong_times(self.actions))
        yield from self._rebuilt()

    def _deed(self, version: int) -> Deed:
        txn_id = self.infos[version]["txnId"]
        deed = self.world.first if txn_id == "first" else self.by_txn[txn_id].deed
        assert deed is not None
        return deed

    def _read(self, deed: Deed) -> State:
        read = deed.read_version
        return self.states[read] if read >= 0 else State(self.partitioned)

    # Jobs ----------------------------------------------------------------------------------

    def _job(self, job: Job, times: int) -> Iterator[str]:
        for seen in job.seen:
            yield from self._seen(seen)
            if seen.version < seen.at_least:
                yield f"saw version {seen.version} when {seen.at_least} was there already"
        if job.end in (End.UNKNOWN, End.FAILED) and not job.troubles:
            yield f"ended {job.end.name} ({job.error}), and no operation failed"
        if times > 1:
            yield f"was committed {times} times"
        if times and job.end in _NOWHERE:
            yield f"ended {job.end.name}, and is in the log"
        if job.end is End.COMMITTED:
            assert job.version is not None
            found = self.infos.get(job.version, {}).get("txnId")
            if found != job.txn_id:
                yield f"was told that it is version {job.version}, and is not"
        if job.end is End.FENCED and not job.read_is_gone:
            yield "was refused because its version was gone, and it was not"
        if job.end is End.CONFLICT:
            yield from self._conflict(job)

    def _conflict(self, job: Job) -> Iterator[str]:
        deed, version = job.deed, job.version
        assert deed is not None
        if version is None or not deed.read_version < version < len(self.deeds):
            yield f"is in conflict with version {version}, which it can't have met"
            return
        level = level_of(deed, self._read(deed).settings)
        for winner in range(deed.read_version + 1, version + 1):
            expected = verdict(deed, level, self.partitioned, self.deeds[winner])
            got = type(job.error).__name__ if winner == version else None
            if got != expected:
                yield f"at {level}, version {winner} means {expected} for it, and it got {got}"
                return

    # Versions ------------------------------------------------------------------------------

    def _version(self, version: int) -> Iterator[str]:
        deed, level = self.deeds[version], self.levels[version]
        job = self.by_txn.get(self.infos[version]["txnId"])
        if job is not None and job.read_is_gone:
            yield f"{job.name} was committed behind a version that was gone"
        for winner in range(deed.read_version + 1, version):
            expected = verdict(deed, level, self.partitioned, self.deeds[winner])
            if expected is not None:
                yield f"at {level} it is in conflict with {winner}: {expected}"
        if version:
            between = self.deeds[deed.read_version + 1 : version]
            before = self.states[version - 1]
            broken = broken_promise(deed, level, self._read(deed), before, between)
            if broken is not None:
                yield f"at {level}, {broken}"
        if job is not None:
            yield from self._lines(version, deed, level)
        if deed.read_version >= 0 and deed.files != self._found(deed):
            yield f"it read the files {sorted(deed.files)}"

    def _found(self, deed: Deed) -> frozenset[str]:
        # A dynamic overwrite and a declared read of the whole table look into no file.
        return self._read(deed).read_again(deed) if deed.files else deed.files

    def _lines(self, version: int, deed: Deed, level: str) -> Iterator[str]:
        """The commit says what the job meant."""
        found, info = self.actions[version], self.infos[version]
        adds = {add["path"]: add for add in _values(found, "add")}
        removes = {remove["path"] for remove in _values(found, "remove")}
        changes = {
            each["dataChange"] for kind in ("add", "remove") for each in _values(found, kind)
        }
        if adds.keys() != deed.adds.keys() or removes != deed.removes:
            yield f"it adds {sorted(adds)} and removes {sorted(removes)}"
        if self.partitioned and any(
            adds[path]["partitionValues"] != {"p": part} for path, part in deed.adds.items()
        ):
            yield "a file is in another partition"
        if not changes <= {deed.data_change}:
            yield f"its dataChange is {changes}"
        if {each["appId"]: each["version"] for each in _values(found, "txn")} != deed.apps:
            yield "it records other progress"
        domains = [d for d in _values(found, "domainMetadata") if d["domain"] != MARK]
        if {each["domain"]: each["configuration"] for each in domains} != deed.domains:
            yield "it sets other domains"
        if (info["isolationLevel"], info["isBlindAppend"]) != (level, deed.is_blind_append):
            yield f"it says {info['isolationLevel']}, blind {info['isBlindAppend']}"

    # Reading back --------------------------------------------------------------------------

    def _rebuilt(self) -> Iterator[str]:
        """Every version that log cleanup left can be rebuilt, and is what the model says."""
        storage, newest = self.world.storage, len(self.deeds) - 1
        for version in range(newest + 1):
            if version in storage.cleaned:
                continue
            log = DeltaLog(storage.table, storage.inner, DeltaConf(), self.world.clock)
            yield from self._seen(look(log.snapshot_at(version)))
        if newest >= 0:
            log = DeltaLog(storage.table, storage.inner, DeltaConf(), self.world.clock)
            if log.update().version != newest:
                yield f"the newest version is {newest}, and a new reader sees another"

    def _seen(self, seen: Seen) -> Iterator[str]:
        """What a reader saw is what the model says of that version."""
        if not 0 <= seen.version < len(self.states):
            yield f"a reader saw version {seen.version}, which is not in the log"
            return
        state = self.states[seen.version]
        expected = Seen(
            seen.version,
            seen.at_least,
            frozenset(state.files),
            state.settings,
            state.features,
            state.apps,
            state.domains,
        )
        if seen != expected:
            yield f"a reader saw {seen} instead of {expected}"


def _values(actions: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [action[kind] for action in actions if kind in action]
