"""Checks of several writers, and of readers during a write. Races are settled by counting."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.base import Checks
from lakelog.logstores.conformance.checks.expect import (
    expect,
    expect_equal,
    fresh_folder,
    names,
    read_all,
    read_or_none,
)
from lakelog.logstores.conformance.processes.racers import (
    ProcessRace,
    Racer,
    attempt,
    attempt_lines,
    payload,
)
from lakelog.logstores.contract import Scope
from lakelog.logstores.threads import beside, run_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakelog.logstores.contract import LogStore


class RaceChecks(Checks):
    """One winner, nothing lost, nothing half."""

    def test_of_racing_threads_exactly_one_wins(self, store: LogStore, root: str) -> None:
        """Threads create one name at once: one wins, the rest get FileExistsError."""
        folder = fresh_folder(store, root)
        # Some share an instance and some have their own: a lock in the instance does not count.
        writers = [store if n % 2 else self.another(store) for n in range(self.race_threads)]
        racers: list[Racer] = [_thread_racer(writer, n) for n, writer in enumerate(writers)]
        for number in range(self.race_rounds):
            path = f"{folder}/{number:020d}.json"
            _judge(store, path, run_together([partial(racer, path) for racer in racers]))
        if store.capabilities.exclusive_create == Scope.NONE:
            self.undeclared: str = "exclusive_create"

    def test_of_large_files_exactly_one_wins_too(self, store: LogStore, root: str) -> None:
        """Large files, uploaded in parts: one takes the name, whichever finishes last."""
        folder = fresh_folder(store, root)
        small, raced = folder + "/0.json", folder + "/1.json"
        store.write(small, ["first"])
        racers = [_large_racer(self.another(store), n, self.large_megabytes) for n in range(3)]
        _judge_large(store, small, ["won", racers[0](small)], [["first"]])
        outcomes = run_together([partial(racer, raced) for racer in racers[:2]])
        contents = [_large(who, self.large_megabytes) for who in range(3)]
        # A third comes when the race is over: parts that are joined must find the name taken too.
        _judge_large(store, raced, [*outcomes, racers[2](raced)], contents)
        if store.capabilities.exclusive_create == Scope.NONE:
            self.undeclared = "exclusive_create"

    def test_of_racing_processes_exactly_one_wins(self, store: LogStore, root: str) -> None:
        """The same among processes, if the store declares HOST or CLUSTER.

        A store that declares less is held to it by one process and its file alone.
        """
        folder = fresh_folder(store, root)
        wide = store.capabilities.exclusive_create >= Scope.HOST
        if not wide:
            self.undeclared = "exclusive_create does not cover other processes"
            _judge(store, folder + "/0.json", [attempt(store, folder + "/0.json", 0)])
            return
        with ProcessRace(store, self.race_processes) as race:
            for number in range(self.race_rounds):
                path = f"{folder}/{number:020d}.json"
                _judge(store, path, race.run(path))

    def test_writers_of_one_log_lose_nothing(self, store: LogStore, root: str) -> None:
        """Threads appending to one log get one version each: no gaps, duplicates or losses."""
        folder = fresh_folder(store, root)
        appends = self.appends
        total = self.race_threads * appends

        def append_all(who: int) -> list[int]:
            writer = self.another(store)
            return [_append(writer, folder, f"{who} {n}", total) for n in range(appends)]

        won = run_together([partial(append_all, who) for who in range(self.race_threads)])
        claimed = [version for each in won for version in each]
        if store.capabilities.exclusive_create == Scope.NONE:
            self.undeclared = "exclusive_create"
            expect(len(claimed) == total, "an append got lost")
            return
        expect_equal(sorted(claimed), list(range(total)), "the versions that writers won")
        wanted = [f"{version:020d}.json" for version in range(total)]
        expect_equal(names(store, folder + "/0"), wanted, "the names of the log")
        found = {tuple(read_all(store, f"{folder}/{name}")) for name in wanted}
        expect_equal(len(found), total, "the number of different entries in the log")

    def test_no_reader_sees_a_part_of_a_new_file(self, store: LogStore, root: str) -> None:
        """While a file is written it is absent, for both ways to read and for `list_from`."""
        folder = fresh_folder(store, root)
        path = folder + "/0.json"
        reader = self.another(store)
        seen: list[object] = []

        def peek() -> None:
            seen.append(read_or_none(reader, path))
            seen.append(_bytes_or_none(reader, path))
            seen.append(_listed(reader, folder, "0.json") or None)

        lines = _peeking(peek, self.watched_megabytes)
        store.write(path, lines)
        if store.is_partial_write_visible(path):
            self.undeclared = "partial_write_visible"
        else:
            expect_equal(_brief(seen), [None] * len(seen), "what a reader saw of it meanwhile")
        count = len(read_all(store, path))
        expect_equal(count, self.watched_megabytes, "the lines of the finished file")

    def test_readers_beside_a_writer_see_all_or_nothing(self, store: LogStore, root: str) -> None:
        """Readers that never stop looking see a new file whole or not at all."""
        folder = fresh_folder(store, root)
        wanted = payload(7, 4000)
        paths = [f"{folder}/{n:020d}.json" for n in range(self.race_rounds)]

        def write_all() -> None:
            for path in paths:
                store.write(path, wanted)

        seen = _watch(self.another(store), paths, write_all)
        if any(store.is_partial_write_visible(path) for path in paths):
            self.undeclared = "partial_write_visible"
        else:
            expect(all(lines in (None, wanted) for lines in seen), "a reader saw part of a file")
        for path in paths:
            expect_equal(read_or_none(store, path), wanted, f"the finished file {path}")

    def test_no_reader_sees_a_part_of_an_overwrite(self, store: LogStore, root: str) -> None:
        """Where `atomic_overwrite` is declared, a reader sees the old file or the new one."""
        path = fresh_folder(store, root) + "/_last_checkpoint"
        old, new = payload(1, 3000), payload(2, 5000)
        store.write(path, old, overwrite=True)
        reader = self.another(store)
        seen: list[list[str] | None] = []
        lines = _peeking(lambda: seen.append(read_or_none(reader, path)), self.watched_megabytes)
        store.write(path, lines, overwrite=True)
        atomic = store.capabilities.atomic_overwrite
        if atomic:
            expect(all(lines == old for lines in seen), "a reader saw a half-done overwrite")
        else:
            self.undeclared = "atomic_overwrite"
        store.write(path, old, overwrite=True)

        def swap() -> None:
            for number in range(self.race_rounds):
                store.write(path, old if number % 2 else new, overwrite=True)

        watched = _watch(reader, [path], swap)
        if atomic:
            expect(
                all(lines in (old, new) for lines in watched), "a reader saw neither old nor new"
            )
        last = old if self.race_rounds % 2 == 0 else new
        expect_equal(read_or_none(store, path), last, "the file after the last overwrite")

    def test_a_reading_outlives_an_overwrite(self, store: LogStore, root: str) -> None:
        """A reading that began before an overwrite ends with old lines, new ones, or an error.

        Never with some of each, and never short. Held where `atomic_overwrite` is declared.
        """
        path = fresh_folder(store, root) + "/_last_checkpoint"
        old, new = payload(1, 120_000), payload(2, 40_000)
        if not store.capabilities.atomic_overwrite:
            self.undeclared = "atomic_overwrite"
            return
        for before, after in ((old, new), (new, old)):
            store.write(path, before, overwrite=True)
            reading = store.read(path)
            head = [next(reading) for _ in range(3)]
            self.another(store).write(path, after, overwrite=True)
            try:
                lines = head + list(reading)
            except OSError:
                continue  # it says that it can't go on
            expect(lines in (before, after), f"a reading ended with {len(lines)} mixed lines")


def _peeking(peek: Callable[[], None], count: int) -> Iterator[str]:
    """Lines of a megabyte each, with looks in between."""
    for number in range(count):
        yield "z" * (1 << 20)
        if number in (0, count // 2, count - 1):
            peek()


def _listed(store: LogStore, folder: str, name: str) -> bool:
    try:
        return name in names(store, folder + "/")
    except FileNotFoundError:  # an object store knows no empty folder
        return False


def _bytes_or_none(store: LogStore, path: str) -> bytes | None:
    try:
        return store.read_bytes(path)
    except FileNotFoundError:
        return None


def _brief(seen: list[object]) -> list[object]:
    return [
        f"{len(item)} {'lines' if isinstance(item, list) else 'bytes'}"
        if isinstance(item, list | bytes)
        else item
        for item in seen
    ]


def _large(who: int, megabytes: int) -> list[str]:
    """Lines of a megabyte that name their writer."""
    return [f"{who} {number} ".ljust((1 << 20) - 1, "x") for number in range(megabytes)]


def _large_racer(store: LogStore, who: int, megabytes: int) -> Racer:
    return lambda path: attempt_lines(store, path, iter(_large(who, megabytes)))


def _judge_large(
    store: LogStore, path: str, outcomes: list[str], contents: Sequence[list[str]]
) -> None:
    """As `_judge`: `outcomes` are in the order of the writers of `contents`."""
    bad = [outcome for outcome in outcomes if outcome not in ("won", "exists")]
    expect(not bad, f"a writer of large files to {path} got {bad[:1]}")
    if store.capabilities.exclusive_create == Scope.NONE:
        return
    winners = [who for who, outcome in enumerate(outcomes) if outcome == "won"]
    expect_equal(len(winners), 1, f"the number of writers of large files that created {path}")
    expect(
        read_all(store, path) == contents[winners[0]], f"{path} does not hold what its winner wrote"
    )


def _thread_racer(store: LogStore, who: int) -> Racer:
    return lambda path: attempt(store, path, who)


def _judge(store: LogStore, path: str, outcomes: list[str]) -> None:
    """Exactly one outcome says "won", the others say "exists", and the bytes are the winner's."""
    bad = [outcome for outcome in outcomes if outcome not in ("won", "exists")]
    expect(not bad, f"a racer for {path} got {bad[:1]}")
    winners = [who for who, outcome in enumerate(outcomes) if outcome == "won"]
    found = read_all(store, path)
    if store.capabilities.exclusive_create == Scope.NONE:
        expect(winners, f"no racer created {path}")
        return
    expect_equal(len(winners), 1, f"the number of winners of the race for {path}")
    expect(found == payload(winners[0]), f"{path} does not hold what its winner wrote")


def _append(store: LogStore, folder: str, text: str, most: int) -> int:
    """Append one entry to a log; each lost race means that another one advanced."""
    # From "0": a store may keep its drafts, hidden, beside the log.
    try:
        version = len(names(store, folder + "/0"))
    except FileNotFoundError:  # an object store knows no empty folder
        version = 0
    for _ in range(most + 1):
        try:
            store.write(f"{folder}/{version:020d}.json", [text])
        except FileExistsError:
            version += 1
        else:
            return version
    expect(False, f"an append lost {most + 1} races, which is more than there were rivals")
    return -1


def _watch(reader: LogStore, paths: list[str], work: Callable[[], None]) -> list[list[str] | None]:
    """What a thread sees that reads the paths over and over while `work` runs."""
    done = threading.Event()
    seen: list[list[str] | None] = []

    def look() -> None:
        for number in range(200_000):
            if done.is_set():
                return
            lines = read_or_none(reader, paths[(number // 3) % len(paths)])
            if lines not in seen[-20:]:  # the same again says nothing and costs memory
                seen.append(lines)

    with beside(2, "lakelog-look") as looks:
        for _ in range(2):
            looks.begin(look)
        try:
            work()
        finally:
            done.set()
        while looks:
            looks.take()
    return seen
