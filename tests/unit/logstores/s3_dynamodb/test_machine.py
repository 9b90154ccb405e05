"""Several writers of one lock table, stopped and killed between any two requests of theirs.

Each writer runs in a thread that waits before every request until the machine lets it go on, so
that hypothesis, not the operating system, chooses the interleaving.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lakelog.logstores.errors import CommitOutcomeUnknownError
from support.examples import examples
from support.lock_table import TTL, CrashError, Hand, World

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 60.0


class Actor:
    """A thread that takes one step when it is told to.

    Attributes:
        text: what it commits.
        jvm: whether it works as Delta's own store does.
        outcome: `None` while it runs, then "committed", "conflict", "crashed", "done", or an error.
    """

    def __init__(self, text: str, jvm: bool, work: Callable[[Callable[[str], None]], None]) -> None:
        self.text = text
        self.jvm = jvm
        self.outcome: str | None = None
        self._killed = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._live, args=(work,), daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let it go on to its next request, or to its end."""
        self._go.release()
        assert self._stopped.acquire(timeout=PATIENCE), f"{self.text} hangs"

    def kill(self) -> None:
        """End it where it stands."""
        self._killed = True
        while self.outcome is None:
            self.step()

    def finish(self) -> None:
        """Let it run to its end."""
        while self.outcome is None:
            self.step()

    def _pause(self, _: str) -> None:
        self._stopped.release()
        self._go.acquire()
        if self._killed:
            raise CrashError

    def _live(self, work: Callable[[Callable[[str], None]], None]) -> None:
        self._go.acquire()
        try:
            if self._killed:
                raise CrashError
            work(self._pause)
            self.outcome = "committed"
        except FileExistsError:
            self.outcome = "conflict"
        except CrashError:
            self.outcome = "crashed"
        except CommitOutcomeUnknownError as error:
            self.outcome = f"unknown: {error}"
        except Exception as error:  # noqa: BLE001, RUF100  # the judge names it
            self.outcome = f"{type(error).__name__}: {error}"
        self._stopped.release()


class Writers(RuleBasedStateMachine):
    @initialize(heeds=st.booleans())
    def start(self, heeds: bool) -> None:
        self.world = World(heeds=heeds)
        self.actors: list[Actor] = []
        self.seen: dict[int, str] = {}
        self.made = 0

    def running(self) -> list[Actor]:
        return [actor for actor in self.actors if actor.outcome is None]

    @rule(jvm=st.booleans(), behind=st.integers(0, 1))
    def begin(self, jvm: bool, behind: int) -> None:
        """A writer that saw the log as it is, or as it was a commit before."""
        if len(self.running()) >= 4:
            return
        version = max(0, len(self.world.log()) - behind)
        text = f"commit {self.made}"
        self.made += 1

        def work(pause: Callable[[str], None]) -> None:
            hand = Hand(self.world, pause)
            (hand.write_as_the_jvm if jvm else hand.write)(version, text)

        self.actors.append(Actor(text, jvm, work))

    @rule()
    def look(self) -> None:
        """A reader of ours lists the log; then all that it sees is there for good."""
        Hand(self.world).list_versions()

    @rule(version=st.integers(0, 12))
    def read(self, version: int) -> None:
        Hand(self.world).read(version)

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 3), steps=st.integers(1, 6))
    def go_on(self, which: int, steps: int) -> None:
        running = self.running()
        actor = running[which % len(running)]
        for _ in range(steps):
            if actor.outcome is None:
                actor.step()

    @precondition(lambda self: self.running())
    @rule(which=st.integers(0, 3))
    def crash(self, which: int) -> None:
        running = self.running()
        running[which % len(running)].kill()

    @precondition(lambda self: self.world.heeds)
    @rule(days=st.integers(1, 3))
    def sleep(self, days: int) -> None:
        """All sleep until rows expire. Delta's own writers are not safe then, and end first."""
        for actor in self.running():
            if actor.jvm:
                actor.kill()
        self.world.now += days * TTL
        self.world.expire()

    @invariant()
    def a_version_never_changes(self) -> None:
        log = self.world.log()
        for version, text in self.seen.items():
            assert log.get(version) == text, f"version {version} was {text}"
        self.seen = log

    @invariant()
    def the_log_has_no_hole_and_no_double(self) -> None:
        log = self.world.log()
        assert sorted(log) == list(range(len(log)))
        assert len(set(log.values())) == len(log)

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        for actor in self.actors:
            actor.finish()
        Hand(self.world).list_versions()
        self.a_version_never_changes()
        self.the_log_has_no_hole_and_no_double()
        texts = set(self.world.log().values())
        for actor in self.actors:
            if actor.outcome == "committed":
                assert actor.text in texts, f"{actor.text} was acknowledged and is lost"
            elif actor.outcome == "conflict":
                assert actor.text not in texts, f"{actor.text} was refused and is there"
            else:
                allowed = actor.outcome == "crashed"
                # A writer that began before its predecessor was finished may miss it.
                assert allowed or (actor.outcome or "").startswith("OSError"), actor.outcome
                if not allowed:
                    assert actor.text not in texts


def test_no_version_is_lost_or_written_twice_however_writers_stop() -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call, unused-ignore]  # typed in some releases only
        Writers,
        settings=settings(
            max_examples=examples(60),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
