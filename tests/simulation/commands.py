"""Real commands on real rows, alone and within each other, and a model of what they mean.

While one command is at work, between any two calls of its store, others run from beginning to end,
and may be interrupted themselves; or its process dies. The model knows rows alone: whatever was
committed must be what the command makes of the version before, as if it had run there by itself.
It shares no code with `lakelog.core`.
"""

from __future__ import annotations

import random
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelog.core import (
    DeltaLog,
    delete_rows,
    merge,
    optimize,
    restore,
    table_changes,
    update_rows,
    vacuum,
    write_arrow,
)
from lakelog.core.clock import SystemClock
from lakelog.core.errors import DeltaConcurrentModificationException
from simulation.checks import HistoryError
from simulation.stepping import Killed, SteppingStore
from support.aged_tables import age_all, data_files, put
from support.same_again import SameAgain

if TYPE_CHECKING:
    from collections.abc import Iterator

Row: TypeAlias = tuple[int | None, int, str]
"""`id`, `v` and `p`."""
Rows: TypeAlias = "Counter[Row]"
Effect: TypeAlias = Callable[[Rows, Sequence[Rows]], Rows]
"""What a command makes of the rows, given those of all versions before."""

_DEEPEST = 2
_COMMANDS = 7


class _Restless(SystemClock):
    """Nobody waits: who is first is drawn."""

    def sleep(self, seconds: float) -> None:
        """Go on at once."""


def same(rows: Rows, _: Sequence[Rows]) -> Rows:
    return rows


@dataclass(frozen=True)
class Condition:
    """SQL, and what it means for a row."""

    sql: str
    holds: Callable[[Row], bool]


def drawn_condition(draw: random.Random) -> Condition:
    key, least, part = draw.randrange(5), draw.randrange(60), draw.choice("ab")
    return draw.choice(
        [
            Condition(f"id = {key}", lambda row: row[0] == key),
            Condition(f"v >= {least}", lambda row: row[1] >= least),
            Condition(f"p = '{part}'", lambda row: row[2] == part),
            Condition(f"p = '{part}' AND id = {key}", lambda row: row[2] == part and row[0] == key),
        ]
    )


def drawn_rows(draw: random.Random) -> list[Row]:
    ids = [*range(5), None]
    count = draw.randint(1, 4)
    return [(draw.choice(ids), draw.randrange(60), draw.choice("ab")) for _ in range(count)]


def columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in rows] for i, name in enumerate(("id", "v", "p"))}


@dataclass(frozen=True)
class Command:
    """Something to do to the table."""

    name: str
    run: Callable[[DeltaLog], tuple[int | None, Effect]]
    """Returns the version that holds it, and what it means."""
    effect: Effect | None = None
    """The same, for one that was killed; `None` where only the run knows."""

    def __str__(self) -> str:
        return self.name


def append(draw: random.Random) -> Command:
    rows = drawn_rows(draw)

    def effect(before: Rows, _: Sequence[Rows]) -> Rows:
        return before + Counter(rows)

    return Command(
        f"append {rows}",
        lambda log: (write_arrow(log, columns(rows), mode="append"), effect),
        effect,
    )


def delete(draw: random.Random) -> Command:
    where = drawn_condition(draw)

    def effect(before: Rows, _: Sequence[Rows]) -> Rows:
        return Counter({row: n for row, n in before.items() if not where.holds(row)})

    return Command(
        f"delete {where.sql}", lambda log: (delete_rows(log, where.sql).version, effect), effect
    )


def update(draw: random.Random) -> Command:
    where = drawn_condition(draw)

    def effect(before: Rows, _: Sequence[Rows]) -> Rows:
        found: Rows = Counter()
        for (key, value, part), count in before.items():
            hit = where.holds((key, value, part))
            found[(key, value + 7 if hit else value, part)] += count
        return found

    def run(log: DeltaLog) -> tuple[int | None, Effect]:
        return update_rows(log, {"v": "v + 7"}, where.sql).version, effect

    return Command(f"update {where.sql}", run, effect)


def upsert(draw: random.Random) -> Command:
    """MERGE: matched rows are updated or deleted, others inserted or, of the target, deleted."""
    keys = draw.sample(range(7), draw.randint(1, 4))
    source = [(key, draw.randrange(60), draw.choice("ab")) for key in keys]
    by_key = {row[0]: row for row in source}
    deletes, by_source = draw.random() < 0.3, draw.random() < 0.3

    def effect(before: Rows, _: Sequence[Rows]) -> Rows:
        found: Rows = Counter()
        matched = set()
        for (key, value, part), count in before.items():
            theirs = None if key is None else by_key.get(key)
            if theirs is None:
                if not (by_source and part == "a" and value < 10):
                    found[(key, value, part)] += count
                continue
            matched.add(key)
            if not (deletes and theirs[1] % 2):
                found[(key, value + theirs[1], part)] += count
        for row in source:
            if row[0] not in matched:
                found[row] += 1
        return found

    def run(log: DeltaLog) -> tuple[int | None, Effect]:
        builder = merge(log, columns(source), "target.id = source.id")
        if deletes:
            builder = builder.when_matched_delete("source.v % 2 = 1")
        builder = builder.when_matched_update({"v": "target.v + source.v"})
        builder = builder.when_not_matched_insert_all()
        if by_source:
            builder = builder.when_not_matched_by_source_delete("target.p = 'a' AND target.v < 10")
        return builder.execute().version, effect

    name = f"merge {source}{' deleting' if deletes else ''}{' by source' if by_source else ''}"
    return Command(name, run, effect)


def compact(_: random.Random) -> Command:
    def run(log: DeltaLog) -> tuple[int | None, Effect]:
        optimize(log)
        return None, same

    return Command("optimize", run, same)


def go_back(draw: random.Random) -> Command:
    back = draw.randint(1, 4)

    def run(log: DeltaLog) -> tuple[int | None, Effect]:
        newest = log.update().version
        if newest < 1:
            return None, same
        # The first version is as old as its files, beyond what may be restored.
        wanted = max(newest - back, 1)
        return restore(log, version=wanted).version, lambda _, states: states[wanted]

    return Command(f"restore {back} versions", run)


def clean(draw: random.Random) -> Command:
    mode = draw.choice(["FULL", "LITE"])

    def run(log: DeltaLog) -> tuple[int | None, Effect]:
        vacuum(log, mode=mode)
        return None, same

    return Command(f"vacuum {mode}", run, same)


KINDS = (
    *(append, append, append, delete, update, update, upsert, upsert),
    *(compact, compact, go_back, clean),
)


@dataclass
class CommandWorld:
    """One history."""

    uri: str
    draw: random.Random
    races: bool
    kills: bool
    effects: dict[int, Effect] = field(default_factory=dict)
    """Version -> what it must have done, for those that a command has said."""
    killed: list[Command] = field(default_factory=list)
    """Commands of which nobody knows whether they were committed."""
    story: list[str] = field(default_factory=list)
    depth: int = 0

    def act(self) -> None:
        """Between two calls of a store: nothing, another command, or the end of the process."""
        chance = self.draw.random()
        if self.kills and chance < 0.01:
            raise Killed
        if self.races and self.depth < _DEEPEST and chance > 0.9:
            self.do(self.draw.choice(KINDS)(self.draw))

    def do(self, command: Command) -> None:
        """Run a command, and remember what it said."""
        indent = "  " * self.depth
        self.story.append(f"{indent}{command} begins")
        self.depth += 1
        log = DeltaLog.for_table(self.uri)
        log = DeltaLog(log.table, SteppingStore(), log.conf, _Restless())
        said = "killed"
        try:
            version, effect = command.run(log)
            said = f"at version {version}"
            if version is not None:
                self.effects[version] = effect
        except DeltaConcurrentModificationException as lost:
            said = type(lost).__name__
        except Killed:
            self.killed.append(command)
        finally:
            self.depth -= 1
            self.story.append(f"{indent}{command} ends: {said}")

    def complaints(self) -> Iterator[str]:
        """Versions that are not what their commands make of the ones before."""
        log = DeltaLog.for_table(self.uri)
        newest = log.update().version
        feed = self._feed(log) if log.snapshot.properties.change_data_feed else None
        states: list[Rows] = []
        for version in range(newest + 1):
            found = rows_of(log.snapshot_at(version))
            if version:
                yield from self._odd(version, states, found)
                if feed is not None and states[-1] + feed[version] != found + feed[-version]:
                    yield f"the change feed of version {version} is not what was changed"
            states.append(found)

    def _odd(self, version: int, states: Sequence[Rows], found: Rows) -> Iterator[str]:
        before = states[-1]
        effect = self.effects.get(version)
        if effect is not None:
            if effect(before, states) != found:
                wanted = effect(before, states)
                yield f"version {version} has {shown(found)}, and should have {shown(wanted)}"
            return
        if found == before:
            return
        for command in self.killed:
            possible = list(states) if command.effect is None else [command.effect(before, states)]
            if found in possible:
                self.killed.remove(command)
                return
        yield f"version {version} has {shown(found)}; nobody has changed {shown(before)} so"

    @staticmethod
    def _feed(log: DeltaLog) -> dict[int, Rows]:
        """Version -> the rows that came, and minus the version -> those that went."""
        found: dict[int, Rows] = {}
        for sign in (1, -1):
            found |= {sign * v: Counter() for v in range(1, log.snapshot.version + 1)}
        if log.snapshot.version:
            for row in table_changes(log, 1).read_all().to_pylist():
                came = row["_change_type"] in ("insert", "update_postimage")
                version = row["_commit_version"]
                found[version if came else -version][(row["id"], row["v"], row["p"])] += 1
        return found


def rows_of(snapshot: Any) -> Rows:
    return Counter((row["id"], row["v"], row["p"]) for row in snapshot.to_arrow().to_pylist())


def shown(rows: Rows) -> str:
    return str(sorted(rows.elements(), key=str))


def play_commands(seed: int, patch: Callable[..., object], *, races: bool = True) -> CommandWorld:
    """Play a history, and hold it against the model.

    Args:
        seed: draws everything.
        patch: sets an attribute of a class: `monkeypatch.setattr`.
        races: whether commands run within others.

    Raises:
        HistoryError: a version is not what it should be; the message tells the history.
    """
    draw = random.Random(f"commands {seed} {races}")
    # Commands take files in the order of their names: with others, a seed would be another history.
    patch(uuid, "uuid4", SameAgain(f"commands {seed} {races}").uuid4)
    with tempfile.TemporaryDirectory(prefix="lakelog-commands-") as folder:
        uri = f"{folder}/t"
        world = CommandWorld(uri, draw, races, kills=draw.random() < 0.4)
        properties = {
            "delta.enableDeletionVectors": draw.choice(["true", "false"]),
            "delta.enableChangeDataFeed": draw.choice(["true", "false"]),
            "delta.enableRowTracking": draw.choice(["true", "false", "false"]),
            "delta.isolationLevel": "Serializable",
            "delta.checkpointInterval": draw.choice(["3", "100"]),
        }
        parts = draw.choice([["p"], None])
        first = columns([*drawn_rows(draw), *drawn_rows(draw)])
        write_arrow(uri, first, partition_by=parts, properties=properties, mode="append")
        for name in ("left over", "p=a/left over"):
            put(uri, name)
        age_all(uri, 300)
        patch(SteppingStore, "act", staticmethod(world.act))
        try:
            for _ in range(_COMMANDS):
                world.do(draw.choice(KINDS)(draw))
            patch(SteppingStore, "act", staticmethod(lambda: None))
            wrong = list(world.complaints())
            vacuum(uri)
            if any(name.endswith("left over") for name in data_files(uri)):
                wrong.append("VACUUM left what no version needs")
        except Exception as error:
            wrong = [f"what must work does not: {error!r}"]
        finally:
            patch(SteppingStore, "act", staticmethod(lambda: None))
        if wrong:
            story = "\n".join(world.story)
            raise HistoryError(f"{wrong[0]}\n{properties} {parts}\nThe history:\n{story}")
        return world
