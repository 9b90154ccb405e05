"""What losers of a race should do, in a model: writers, storage, and the cores that they share.

    python benchmarks/contention_model.py [--seconds 20] [--seed 1]

Each of N writers commits blind appends to one table for some time. A commit reads what is new (a
round trip for each version that it does not know and one for the version that is missing), then
creates the version after the last; a create that loses waits, reads the winners, and tries again.
Requests cost time on the way and time of the cores, on the side of the writer and on that of the
storage where both are one machine. Cores serve one request after the other. Winners are read a few
at a time, as `LookAhead` does.

The policies differ in how long a loser waits:

- `write`: a window of 16 writes, 8, 5⅓ … 2 from loss to loss, of what *the last write took*.
- `fastest`: the same windows, of what *the fastest write of this process* took.
- `at-once`: no wait.
- `ramp`: `fastest`, from 2 writes on, twice as many with each loss, at most 32: the usual back-off.
- `trip`: the windows of `write`, of what the fastest request of this process took, reads as well.
- `look`: the same, of what the last read took, or the write where that took less: what commits do
  over a network. Near by they do as `write`.
- `host`: all writers of a host commit as one (`spark.lakelog.commit.host`): no races at all.

Printed are commits a second, their share of what one writer makes, fairness (Jain's index of the
writers' commits), the 99th percentile of a commit over N times what one takes alone, and attempts
a commit.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import random
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

_MAX_WAIT = 5.0
_READ_AHEAD = 4


@dataclass(frozen=True)
class Place:
    """Where a table is; all in seconds."""

    name: str
    trip: float
    """On the way, there and back."""
    client: float
    """Of a core, for each request of a writer."""
    server: float
    """Of a core, for each request at the storage; 0 where it is another machine."""
    cold: float = 0.06
    """Of a core, besides, for the first write of a writer: modules, connections."""
    cores: int = 2


@dataclass
class Writer:
    """One of them."""

    known: int = 0
    fastest: float = float("inf")
    taken: list[float] = field(default_factory=list)
    attempts: int = 0
    trip: float = float("inf")
    """Seconds that its fastest request took."""
    look: float = float("inf")
    """Seconds that its last read took."""
    is_warm: bool = False


def _window(losses: int) -> float:
    return max(2.0, 16.0 / losses)


def _write(rng: random.Random, _w: Writer, losses: int, last: float) -> float:
    return min(_MAX_WAIT, _window(losses) * last) * (1.0 - rng.random())


def _fastest(rng: random.Random, w: Writer, losses: int, _last: float) -> float:
    return min(_MAX_WAIT, _window(losses) * w.fastest) * (1.0 - rng.random())


def _at_once(_rng: random.Random, _w: Writer, _losses: int, _last: float) -> float:
    return 0.0


def _ramp(rng: random.Random, w: Writer, losses: int, _last: float) -> float:
    return min(_MAX_WAIT, min(32.0, 2.0**losses) * w.fastest) * (1.0 - rng.random())


def _trip(rng: random.Random, w: Writer, losses: int, _last: float) -> float:
    return min(_MAX_WAIT, _window(losses) * w.trip) * (1.0 - rng.random())


def _look(rng: random.Random, w: Writer, losses: int, last: float) -> float:
    return min(_MAX_WAIT, _window(losses) * min(w.look, last)) * (1.0 - rng.random())


POLICIES = {
    "write": _write,
    "look": _look,
    "fastest": _fastest,
    "at-once": _at_once,
    "ramp": _ramp,
    "trip": _trip,
}


class Model:
    """The events, and the cores."""

    def __init__(self, place: Place, seed: int) -> None:
        """Begin at 0 s, with an empty table."""
        self.place, self.rng = place, random.Random(seed)
        self.now, self.head = 0.0, 0
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._order = itertools.count()
        self._busy = 0
        self._line: deque[tuple[float, Callable[[], object]]] = deque()

    def at(self, seconds: float, work: Callable[[], object]) -> None:
        """Do something, so many seconds from now."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), work))

    def core(self, seconds: float, work: Callable[[], object]) -> None:
        """Do something when a core has been had for so long."""
        self._line.append((seconds, work))
        self._serve()

    def _serve(self) -> None:
        while self._line and self._busy < self.place.cores:
            seconds, work = self._line.popleft()
            self._busy += 1
            self.at(seconds * self.rng.uniform(0.7, 1.5), lambda work=work: self._done(work))  # type: ignore[misc]

    def _done(self, work: Callable[[], object]) -> None:
        self._busy -= 1
        work()
        self._serve()

    def request(self, deed: Callable[[], object], then: Callable[[object], object]) -> None:
        """A request: the writer's core, the way, the storage's, which does the deed, and back."""
        place = self.place
        way = place.trip / 2 * self.rng.uniform(0.95, 1.1)

        def arrive() -> None:
            self.core(place.server, served) if place.server else served()

        def served() -> None:
            found = deed()
            self.at(way, lambda: self.core(place.client / 2, lambda: then(found)))

        self.core(place.client / 2, lambda: self.at(way, arrive))

    def run(self, until: float) -> None:
        """Let events happen."""
        while self._events and self._events[0][0] <= until:
            self.now, _, work = heapq.heappop(self._events)
            work()


Steps: TypeAlias = "Generator[tuple[str, int | float], Any, None]"


def _commits(model: Model, w: Writer, wait: Callable[..., float]) -> Steps:
    while True:
        began = model.now
        yield from _read_news(model, w)
        losses = 0
        while True:
            w.attempts += 1
            tried, sent = w.known + 1, model.now
            if not w.is_warm:
                w.is_warm = True
                yield ("work", model.place.cold)
            won = yield ("create", tried)
            took = model.now - sent
            w.fastest, w.trip = min(w.fastest, took), min(w.trip, took)
            if won:
                w.known = tried
                break
            losses += 1
            yield ("sleep", wait(model.rng, w, losses, took))
            yield from _read_news(model, w)
        w.taken.append(model.now - began)


def _read_news(model: Model, w: Writer) -> Steps:
    """Read versions until one is missing, a few at a time."""
    ahead = 1
    while True:
        sent = model.now
        found = yield ("read", ahead)  # together: one way, and each its time of the cores
        w.look = model.now - sent
        w.trip = min(w.trip, w.look)
        seen = min(found, w.known + ahead)
        missing = seen < w.known + ahead
        w.known = max(w.known, seen)
        if missing:
            return
        ahead = min(_READ_AHEAD, ahead * 2)


def _drive(model: Model, steps: Steps) -> None:
    def go_on(value: object = None) -> None:
        kind, number = steps.send(value)
        if kind == "sleep":
            model.at(number, go_on)
        elif kind == "work":
            model.core(number, go_on)
        elif kind == "create":
            model.request(lambda: _create(model, int(number)), go_on)
        else:
            left = [int(number)]
            heads: list[int] = []

            def one(head: object) -> None:
                assert isinstance(head, int)
                heads.append(head)
                left[0] -= 1
                if not left[0]:
                    go_on(min(heads))

            for _ in range(int(number)):
                model.request(lambda: model.head, one)

    go_on()


def _create(model: Model, version: int) -> bool:
    if version == model.head + 1:
        model.head = version
        return True
    return False


@dataclass(frozen=True)
class Result:
    """What writers did."""

    rate: float
    fairness: float
    p99: float
    attempts: float


def play(place: Place, writers: int, policy: str, seconds: float, seed: int) -> Result:
    """Let writers commit."""
    model = Model(place, seed)
    found = [Writer() for _ in range(writers)]
    if policy == "host":
        _lead(model, found)
    else:
        for each in found:
            steps = _commits(model, each, POLICIES[policy])
            model.at(model.rng.random() * 0.01, lambda steps=steps: _drive(model, steps))  # type: ignore[misc]
    model.run(seconds)
    counts = [len(each.taken) for each in found]
    took = sorted(itertools.chain.from_iterable(each.taken for each in found))
    squares = writers * sum(n * n for n in counts)
    return Result(
        rate=sum(counts) / seconds,
        fairness=sum(counts) ** 2 / squares if squares else 0.0,
        p99=took[len(took) * 99 // 100] if took else float("inf"),
        attempts=sum(each.attempts for each in found) / max(1, len(took)),
    )


def _lead(model: Model, found: list[Writer]) -> None:
    """One of those who are ready commits for all; each has read the news before."""
    ready: list[tuple[Writer, float]] = []
    busy = [False]

    def begin(w: Writer) -> None:
        began = model.now
        versions = max(1, model.head - w.known)

        def read() -> None:
            w.known = model.head
            ready.append((w, began))
            lead()

        left = [min(versions + 1, _READ_AHEAD)]

        def one(_head: object) -> None:
            left[0] -= 1
            if not left[0]:
                read()

        for _ in range(left[0]):
            model.request(lambda: model.head, one)

    def lead() -> None:
        if busy[0] or not ready:
            return
        busy[0] = True
        group, ready[:] = list(ready), []
        group[0][0].attempts += 1
        model.request(lambda: _create(model, model.head + 1), lambda _: done(group))

    def done(group: list[tuple[Writer, float]]) -> None:
        busy[0] = False
        for w, began in group:
            w.taken.append(model.now - began)
            model.core(model.place.client / 2, lambda w=w: begin(w))  # type: ignore[misc]
        lead()

    for each in found:
        model.at(model.rng.random() * 0.01, lambda w=each: begin(w))  # type: ignore[misc]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    # What one writer makes on MinIO says what a request costs: 170 commits a second at 0 ms.
    places = [Place("one machine", trip / 1000, 0.0012, 0.0014) for trip in (0, 30, 100)]
    places += [Place("storage elsewhere", trip / 1000, 0.0012, 0.0) for trip in (30, 100)]
    print(
        "| place | round trip | writers | policy | commits/s | of one writer | fairness "
        "| p99 / (N × one) | attempts a commit |\n|---|--:|--:|---|--:|--:|--:|--:|--:|"
    )
    for place in places:
        alone = play(place, 1, "at-once", args.seconds, args.seed)
        for writers in (16, 64):
            for policy in (*POLICIES, "host"):
                done = play(place, writers, policy, args.seconds, args.seed)
                share, late = done.rate / alone.rate, done.p99 * alone.rate / writers
                print(
                    f"| {place.name} | {place.trip * 1000:.0f} ms | {writers} | {policy} "
                    f"| {done.rate:.1f} | {share:.2f} | {done.fairness:.2f} | {late:.1f} "
                    f"| {done.attempts:.1f} |"
                )


if __name__ == "__main__":
    main()
