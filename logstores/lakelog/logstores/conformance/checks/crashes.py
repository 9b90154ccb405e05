"""Checks of writers that die: by an interrupt, and by SIGKILL at each step of a write."""

from __future__ import annotations

import itertools
import signal
from typing import TYPE_CHECKING

from lakelog.logstores.conformance.checks.base import Checks
from lakelog.logstores.conformance.checks.expect import (
    PromiseBrokenError,
    expect,
    expect_equal,
    fresh_folder,
    is_hidden,
    names,
    names_or_none,
    raw_bytes,
    read_or_none,
)
from lakelog.logstores.conformance.processes.children import PATIENCE, Child
from lakelog.logstores.conformance.processes.racers import payload
from lakelog.logstores.conformance.processes.victims import LINES
from lakelog.logstores.threads import at_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import LogStore

OLD = payload(3, 300)
AT_ONCE = 4
"""Writers that die side by side."""
_Victim = tuple[str, str, str]
"""What it does, to which path, and where it dies."""


class CrashChecks(Checks):
    """A writer that dies leaves all of its file or nothing, and stops no other writer."""

    def test_an_interrupt_leaves_nothing(self, store: LogStore, root: str) -> None:
        """Ctrl-C during a write acts as any failure: no file, no remains, a free name."""
        folder = fresh_folder(store, root)
        path = folder + "/0.json"
        for kind in (KeyboardInterrupt, SystemExit, GeneratorExit):
            try:
                store.write(path, _interrupted(kind))
            except kind:
                pass
            else:
                raise PromiseBrokenError(f"a {kind.__name__} was swallowed")
            expect_equal(names_or_none(store, folder), [], f"the names after a {kind.__name__}")
        store.write(path, ["after"])
        expect_equal(read_or_none(store, path), ["after"], "the name used again")

    def test_a_writer_that_is_killed_leaves_all_or_nothing(
        self, store: LogStore, root: str
    ) -> None:
        """SIGKILL at each step of a create: the name is free or holds the file; others go on."""
        folder = fresh_folder(store, root)
        if not self.shared_with_processes(store, folder):
            return
        points = self._points()
        paths = [f"{folder}/{number:020d}.json" for number in range(len(points))]
        victims = [("create", *each) for each in zip(paths, points, strict=True)]
        fates = self._kill(store, victims)
        rival = self.another(store)
        for path, point, acknowledged in zip(paths, points, fates, strict=True):
            what = f"the file whose writer was killed {point}"
            seen = read_or_none(rival, path)
            expect(seen in (None, LINES), f"{what} holds {len(seen or [])} of {len(LINES)} lines")
            try:
                rival.write(path, ["rival"])
            except FileExistsError:
                seen = LINES
            else:
                expect(seen is None and not acknowledged, f"{what} was there, and was replaced")
                seen = ["rival"]
            expect_equal(read_or_none(rival, path), seen, what)
        self._others_go_on(rival, folder, len(points))

    def test_a_replacement_that_is_killed_leaves_the_old_or_the_new(
        self, store: LogStore, root: str
    ) -> None:
        """SIGKILL at each step of an overwrite or a staging: the old file or the new one."""
        folder = fresh_folder(store, root)
        if not self.shared_with_processes(store, folder):
            return
        modes = ["staged"] + ["overwrite"] * store.capabilities.atomic_overwrite
        points = self._points()
        rival = self.another(store)
        deaths = itertools.product(modes, points)
        victims = [
            (mode, f"{folder}/{number:020d}.json", point)
            for number, (mode, point) in enumerate(deaths)
        ]
        for _, path, _ in victims:
            rival.write(path, OLD)
        fates = self._kill(store, victims)
        for (mode, path, point), acknowledged in zip(victims, fates, strict=True):
            what = f"the file whose {mode} was killed {point}"
            allowed = (LINES,) if acknowledged else (OLD, LINES)
            expect(read_or_none(rival, path) in allowed, f"{what} is neither old nor new")
            rival.write(path, ["next"], overwrite=True)
            expect_equal(raw_bytes(rival, path), b"next\n", f"{what}, overwritten")
        self._others_go_on(rival, folder, len(victims))

    def _points(self) -> list[str]:
        """Where the victims die: in their lines, and at parts of the time that the rest takes."""
        ends = [f"after {n}/{self.crash_rounds}" for n in range(1, self.crash_rounds + 1)]
        return ["at line 0", f"at line {len(LINES) // 2}", f"at line {len(LINES)}", *ends]

    def _kill(self, store: LogStore, victims: list[_Victim]) -> list[bool]:
        """Let a process die for each of them; whether its write had returned by then."""
        fates = _fates_of_forks(store, victims)
        if fates is None:
            fates = at_once(lambda each: _fate(store, *each), victims, AT_ONCE, "victims")
        for (code, _), (_, _, point) in zip(fates, victims, strict=True):
            expect_equal(code, -signal.SIGKILL, f"the exit code of a writer killed {point}")
        return [returned for _, returned in fates]

    def _others_go_on(self, rival: LogStore, folder: str, done: int) -> None:
        path = f"{folder}/{done:020d}.json"
        rival.write(path, ["next"])
        wanted = [f"{number:020d}.json" for number in range(done + 1)]
        expect_equal(names(rival, folder + "/0"), wanted, "the log after the crashes")
        seen = [name for name in names(rival, folder + "/") if not is_hidden(name)]
        expect_equal(seen, wanted, "names that are not hidden, after the crashes")


def _fates_of_forks(store: LogStore, victims: list[_Victim]) -> list[tuple[int, bool]] | None:
    """The exit codes and whether the writes had returned; None where forks would be no good."""
    groups = [victims[n : n + AT_ONCE] for n in range(0, len(victims), AT_ONCE)]
    patience = PATIENCE * (len(groups) + 1)
    fates: list[tuple[int, bool]] = []
    with Child("victims:let_die", store, patience=patience) as parent:
        try:
            if not parent.hear():
                return None
            for group in groups:
                parent.tell(group)
                fates += [(code, returned) for code, returned in parent.hear()]
        except EOFError as error:
            raise PromiseBrokenError(str(error)) from None
    return fates


def _fate(store: LogStore, mode: str, path: str, point: str) -> tuple[int, bool]:
    """The same of one in a process of its own."""
    with Child("victims:die_writing", store, mode, path, point) as child:
        answer: object
        try:
            answer = child.hear()
        except EOFError:
            answer = None
    return child.end(), answer == "returned"


def _interrupted(kind: type[BaseException]) -> Iterator[str]:
    yield "x" * (1 << 20)
    raise kind
