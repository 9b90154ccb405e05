"""Exactly once, for several writers of one name, whatever happens to each of their requests.

Hypothesis draws the fate of every request and the order in which the writers' requests and the
late arrivals reach the bucket. In the end everything that was on its way has landed.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from hypothesis import event, given
from hypothesis import strategies as st

from lakelog.logstores import CommitOutcomeUnknownError
from lakelog.logstores.object_store.store import RetryPolicy, create_once
from support.scripted_objects import Bucket, FakeTime, Fate, ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY = "t/_delta_log/00000000000000000007.json"
LAND = -1
LOOKS = st.lists(st.sampled_from([Fate.OK, Fate.BUSY, Fate.FORBIDDEN]), max_size=6)
CREATES = st.lists(st.sampled_from(Fate), max_size=12)
DOUBTFUL = {
    Fate.LOST_REPLY,
    Fate.LOST_REQUEST,
    Fate.LATE,
    Fate.TWICE,
    Fate.GATEWAY,
    Fate.WALL,
}


class Turns:
    """Lets one writer at a time make one request, in the order that was drawn."""

    def __init__(self, bucket: Bucket, order: Iterable[int]) -> None:
        self._bucket = bucket
        self._order = deque(order)
        self._parked: dict[int, threading.Semaphore] = {}
        self._running = 0
        self._changed = threading.Condition()

    def enter(self) -> None:
        with self._changed:
            self._running += 1

    def wait(self, writer: int) -> None:
        """Called by a writer before each request."""
        mine = threading.Semaphore(0)
        with self._changed:
            self._parked[writer] = mine
            self._running -= 1
            self._changed.notify()
        assert mine.acquire(timeout=60)

    def leave(self) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify()

    def play(self) -> None:
        """Until every writer has left."""
        while True:
            with self._changed:
                assert self._changed.wait_for(lambda: self._running == 0, timeout=60)
                if not self._parked:
                    return
                drawn = self._order.popleft() if self._order else 0
                if drawn == LAND and self._bucket.in_flight:
                    self._bucket.land()
                    continue
                writer = sorted(self._parked)[drawn % len(self._parked)]
                self._running += 1
                self._parked.pop(writer).release()


@dataclass
class Writer:
    number: int
    client: ScriptedClient
    fates: list[Fate]
    looks: list[Fate]
    time: FakeTime = field(default_factory=FakeTime)
    outcome: str = "?"

    def run(self, turns: Turns) -> None:
        policy = RetryPolicy(
            budget=3.0, first_wait=0.2, grace=1.0, clock=self.time.clock, sleep=self.time.sleep
        )
        try:
            create_once(self.client, KEY, b"all write the same", "mem://x", policy)
            self.outcome = "committed"
        except FileExistsError:
            self.outcome = "conflict"
        except CommitOutcomeUnknownError:
            self.outcome = "unknown"
        except OSError:
            self.outcome = "failed"
        finally:
            turns.leave()


def race(
    scripts: list[tuple[list[Fate], list[Fate]]], order: list[int]
) -> tuple[Bucket, list[Writer]]:
    bucket = Bucket()
    turns = Turns(bucket, order)
    writers: list[Writer] = []
    for number, (creates, looks) in enumerate(scripts):
        client = ScriptedClient(bucket, creates, looks, before=partial(turns.wait, number))
        writers.append(Writer(number, client, creates, looks))
    threads = [
        threading.Thread(target=writer.run, args=(turns,), daemon=True) for writer in writers
    ]
    for thread in threads:
        turns.enter()
        thread.start()
    turns.play()
    for thread in threads:
        thread.join(60)
    while bucket.in_flight:
        bucket.land()
    return bucket, writers


def judge(bucket: Bucket, writers: list[Writer]) -> None:
    owner = bucket.objects[KEY][0] if KEY in bucket.objects else None
    assert len(bucket.stored) <= 1, "nothing that was stored was stored again"
    for writer in writers:
        assert len(writer.client.tokens) <= 1
        is_owner = owner is not None and owner in writer.client.tokens
        if writer.outcome == "committed":
            assert is_owner, "told that it committed, and another's object is there"
        elif writer.outcome == "conflict":
            assert owner is not None
            assert not is_owner, "told of a conflict with its own object"
        elif writer.outcome == "failed":
            assert not is_owner, "told that it failed, and its object is there"
        else:
            assert writer.outcome == "unknown"
            made = writer.fates[: writer.client.requests.count("create")]
            asked = writer.looks[: writer.client.requests.count("owner")]
            hidden = Fate.FORBIDDEN in asked or Fate.BUSY in asked
            assert hidden or DOUBTFUL & set(made), "in doubt without a reason"


@given(
    st.lists(st.tuples(CREATES, LOOKS), min_size=1, max_size=4),
    st.lists(st.integers(min_value=LAND, max_value=3), max_size=40),
)
def test_whatever_happens_no_one_is_told_something_wrong(
    scripts: list[tuple[list[Fate], list[Fate]]], order: list[int]
) -> None:
    bucket, writers = race(scripts, order)
    for writer in writers:
        event(writer.outcome)
    judge(bucket, writers)


@given(
    st.lists(
        st.lists(
            st.sampled_from([fate for fate in Fate if fate not in (Fate.FORBIDDEN, Fate.WALL)]),
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.integers(min_value=LAND, max_value=3), max_size=40),
)
def test_where_trouble_ends_in_time_exactly_one_wins_and_no_one_is_in_doubt(
    scripts: list[list[Fate]], order: list[int]
) -> None:
    bucket, writers = race([(creates, []) for creates in scripts], order)
    outcomes = sorted(writer.outcome for writer in writers)
    assert outcomes == ["committed"] + ["conflict"] * (len(writers) - 1)
    judge(bucket, writers)
