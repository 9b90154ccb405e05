"""Tables that a catalog governs, step by step: writers that die between any two requests, replies
that are lost or late, publishing that comes later or never, other writers in between."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import write_arrow
from lakelog.core.catalogs.governed_store import GovernedStore
from lakelog.core.catalogs.published import PublishedCommits
from lakelog.core.errors import CatalogError, CommitOutcomeUnknownError
from lakelog.core.hooks import publishing
from lakelog.core.log.file_names import commit_path
from lakelog.logstores import MemoryLogStore
from support.commits import append
from support.examples import examples
from support.manual_clock import ManualClock
from support.model_catalog import CONF, ModelCatalog, make_model_table, open_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core.catalogs.names import TableName

ROUNDS = 10
FATES = ["ok", "lost", "unsent", "late"]
METHODS = ("write", "read_bytes", "list_from")


class Killed(BaseException):
    """The process is no more."""


@dataclass
class Plan:
    """What happens at which step; a step is a request to the catalog or to the storage."""

    fates: list[str]
    """Of the catalog's replies to commits, in order."""
    kills: frozenset[int]
    others: frozenset[int]
    """Another writer commits before it."""
    turns: frozenset[int]
    """What was left for the background goes on before it."""


@dataclass
class World:
    """One run of a plan."""

    plan: Plan
    step: int = 0
    is_quiet: bool = True
    """Whether nothing happens at a step: in what happens at one, and at the end."""
    waiting: deque[Callable[[], object]] = field(default_factory=deque)
    committed: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    clock: ManualClock = field(default_factory=ManualClock)

    def take_a_step(self) -> None:
        if self.is_quiet:
            return
        self.step += 1
        at, self.is_quiet = self.step, True
        try:
            if at in self.plan.turns and self.waiting:
                self.waiting.popleft()()
            if at in self.plan.others:
                kept, ModelCatalog.fates = ModelCatalog.fates, deque()
                append(open_model(self.name, self.clock), f"other-{at}")
                self.committed.add(f"other-{at}")
                ModelCatalog.fates = kept
        finally:
            self.is_quiet = False
        if at in self.plan.kills:
            raise Killed

    def run(self) -> None:
        ModelCatalog.reset()
        self.name: TableName = make_model_table()
        ModelCatalog.fates = deque(self.plan.fates)
        logs = [open_model(self.name, self.clock) for _ in range(2)]
        for number in range(ROUNDS):
            path, self.is_quiet = f"ours-{number}", False
            try:
                append(logs[number % 2], path)
                self.committed.add(path)
            except CommitOutcomeUnknownError:
                self.unknown.add(path)
            except Killed:
                self.unknown.add(path)
                self.is_quiet = True
                # With it goes what it had left to do.
                self.waiting.clear()
                logs[number % 2] = open_model(self.name, self.clock)
            finally:
                self.is_quiet = True
        while ModelCatalog.late:
            try:
                ModelCatalog.late.popleft()()
            except CatalogError:
                continue
        self.check()

    def check(self) -> None:
        log = open_model(self.name, self.clock)
        found = [each.path for each in log.snapshot.files()]
        assert len(found) == len(set(found)), "a commit is there twice"
        assert self.committed <= set(found) <= self.committed | self.unknown
        store: Any = log.store
        ratified = {
            version: MemoryLogStore().read_bytes(
                f"{log.table}/_delta_log/_staged_commits/{commit.file_name}"
            )
            for version, commit in store.table.commits.items()
        }
        # Whoever comes next finds all that it needs to publish what the dead have left.
        store.publish(report=True)
        for version in range(log.snapshot.version + 1):
            data = MemoryLogStore().read_bytes(commit_path(log.table, version))
            assert data == ratified.get(version, data)


def live(plan: Plan) -> None:
    """Run a plan, and check what is there in the end."""
    world = World(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publishing, "do_later", lambda table, what, do: world.waiting.append(do))

        def stepping(name: str) -> Callable[..., Any]:
            real = getattr(MemoryLogStore, name)

            def call(*args: Any, **more: Any) -> Any:
                world.take_a_step()
                return real(*args, **more)

            return call

        for name in METHODS:
            patch.setattr(MemoryLogStore, name, stepping(name))
        begin = ModelCatalog._begin

        def asked(catalog: ModelCatalog, what: str) -> None:
            world.take_a_step()
            begin(catalog, what)

        patch.setattr(ModelCatalog, "_begin", asked)
        try:
            world.run()
        finally:
            ModelCatalog.reset()


def steps(most: int) -> st.SearchStrategy[frozenset[int]]:
    return st.frozensets(st.integers(1, 150), max_size=most)


@settings(max_examples=examples(40), deadline=None)
@given(
    fates=st.lists(st.sampled_from(FATES), max_size=30),
    kills=steps(6),
    others=steps(8),
    turns=steps(40),
)
def test_nothing_is_lost_and_nothing_is_doubled_whoever_dies_where(
    fates: list[str], kills: frozenset[int], others: frozenset[int], turns: frozenset[int]
) -> None:
    live(Plan(fates, kills, others, turns))


def test_a_writer_that_dies_at_each_step_in_turn_leaves_a_whole_table() -> None:
    for step in range(1, 60):
        live(Plan(["ok"] * 30, frozenset({step}), frozenset(), frozenset(range(0, 150, 3))))


def test_who_makes_a_table_may_die_at_each_step() -> None:
    """It is there with its rows, or it is not there at all, and can be made again."""
    for last in range(1, 40):
        number = iter(range(1, 10_000))

        def die(at: int = last, number: Iterator[int] = number) -> None:
            if next(number) == at:
                raise Killed

        ModelCatalog.reset()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(publishing, "do_later", lambda table, what, do: None)
            patch.setattr(ModelCatalog, "_begin", lambda catalog, what, die=die: die())
            real = MemoryLogStore.write

            def write(
                *args: Any, die: Any = die, real: Callable[..., None] = real, **more: Any
            ) -> None:
                die()
                real(*args, **more)
                die()

            patch.setattr(MemoryLogStore, "write", write)
            try:
                write_arrow("model.s.made", {"id": [1]}, conf=CONF)
                died = False
            except Killed:
                died = True
        done = write_arrow("model.s.made", {"id": [2]}, mode="append", conf=CONF)
        from lakelog.core import read_arrow

        rows = sorted(read_arrow("model.s.made", conf=CONF)["id"].to_pylist())
        assert rows in ([2], [1, 2])
        assert (done == 1) == (rows == [1, 2])
        assert died or rows == [1, 2]
    ModelCatalog.reset()


def _publishes_nothing(published: Any, table: Any, version: int) -> None:
    published._note(version)


def _stages_last(store: Any, file_name: str, lines: Any) -> None:
    for _ in lines:
        pass


def _reports_what_is_ratified(published: Any, table: Any) -> int | None:
    return table.latest if table.commits else None


MUTANTS: dict[str, tuple[type[Any], Any]] = {
    "copy": (PublishedCommits, _publishes_nothing),
    "_stage": (GovernedStore, _stages_last),
    "reportable": (PublishedCommits, _reports_what_is_ratified),
}


@pytest.mark.parametrize("member", MUTANTS)
def test_the_simulation_kills(monkeypatch: pytest.MonkeyPatch, member: str) -> None:
    of, mutant = MUTANTS[member]
    monkeypatch.setattr(of, member, mutant)
    random = Random(5)

    def survives() -> bool:
        some = {each for each in range(1, 150) if random.random() < 0.3}
        try:
            live(Plan(["ok"] * 30, frozenset(), frozenset(), frozenset(some)))
        except Exception:  # whatever its kind, somebody sees it
            return False
        return True

    assert not all(survives() for _ in range(5))
