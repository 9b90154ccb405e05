"""The contract's quieter promises on the real storage: permissions, reads, listings, times.

`conformance` tests a store to the last promise; these check whether this storage, with these
settings and credentials, does what a table needs, in a second or two.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.logstores.contract import LogStore

_HINT: Final = "_last_checkpoint"
_NAMES: Final = ("b", "a", "10", "9", "B", "ä", "~", "😀", "\uff5e", "a.b", "a-b", "z")
"""Names whose order differs between bytes, UTF-16, numbers and dictionaries."""

_T = TypeVar("_T")


@dataclass(slots=True)
class Latencies:
    """Milliseconds of single operations, by name."""

    samples: dict[str, list[float]] = field(default_factory=dict)

    def timed(self, name: str, operation: Callable[[], _T]) -> _T:
        """Run an operation and record how long it took."""
        started = time.perf_counter()
        result = operation()
        self.samples.setdefault(name, []).append((time.perf_counter() - started) * 1000)
        return result

    def summary(self) -> dict[str, dict[str, float]]:
        """For each operation the number of samples, median, 90th percentile and maximum."""
        return {
            name: {
                "samples": len(taken),
                "p50_ms": round(_percentile(taken, 0.5), 2),
                "p90_ms": round(_percentile(taken, 0.9), 2),
                "max_ms": round(max(taken), 2),
            }
            for name, taken in self.samples.items()
        }


class FileProbe:
    """Writes, reads and lists in a log of its own.

    Attributes:
        latencies: of the operations that succeeded.
        wrote: whether anything was written.
    """

    def __init__(self, store: LogStore, log: str, samples: int) -> None:
        """Probe in a folder.

        Args:
            store: any.
            log: URI of an empty folder whose name is `_delta_log`.
            samples: how often each operation is timed.
        """
        self._store = store
        self._log = log
        self._samples = samples
        self.latencies: Latencies = Latencies()
        self.wrote: bool = False

    def findings(self) -> Iterator[Finding]:
        """Run all; what depends on a failed step is skipped.

        Raises:
            LogStoreError: the store refuses to work at all.
        """
        put = self._try("put", "overwrite a file", self._overwrites)
        yield put
        create = self._try("conditional-put", "create a file", self._creates)
        yield create
        if create.status is Status.FAILED and put.status is Status.FAILED:
            return
        yield self._try("get", "read a file", self._reads)
        yield self._try("list", "list a folder", self._lists)
        if create.status is Status.FINE:
            yield self._try("latency", "repeat all these", self._times)

    def modification_time(self) -> tuple[float, float, float] | None:
        """When a file was made by the storage's clock, and by ours before and after.

        In seconds since 1970; `None` if the storage does not report it.
        """
        before = time.time()
        self._store.write(self._path("clock"), ["now"], overwrite=True)
        after = time.time()
        for status in self._store.list_from(self._path("clock")):
            if status.name == "clock" and status.modification_time:
                return status.modification_time / 1000, before, after
        return None

    def _path(self, name: str) -> str:
        return f"{self._log}/{name}"

    def _try(self, check: str, doing: str, step: Callable[[], Finding]) -> Finding:
        try:
            return step()
        except (OSError, ValueError, LogStoreError) as error:
            return Finding.failed(check, error, doing)

    def _overwrites(self) -> Finding:
        path = self._path(_HINT)
        for text in ("first", "second"):
            self._store.write(path, [text], overwrite=True)
            self.wrote = True
            found = self._lines(path)
            if found != [text]:
                return _broken("put", f"an overwritten file was read back as {found!r}")
        return Finding("put", Status.FINE, "files can be replaced, and read back as replaced")

    def _creates(self) -> Finding:
        # Two, because a commit may look for the one before it.
        for number in range(2):
            path = self._commit(number)
            self._store.write(path, [f"commit {number}"])
            self.wrote = True
            found = self._lines(path)
            if found != [f"commit {number}"]:
                return _broken("conditional-put", f"a created file was read back as {found!r}")
        return Finding("conditional-put", Status.FINE, "files can be created")

    def _reads(self) -> Finding:
        missing = self._path("00000000000000009999.json")
        try:
            found = self._lines(missing)
        except FileNotFoundError:
            return Finding("get", Status.FINE, "every write was read back at once")
        return _broken("get", f"a file that was never written was read as {found!r}")

    def _lists(self) -> Finding:
        for name in _NAMES:
            self._store.write(self._path(name), [name], overwrite=True)
            if name not in self._listed(""):
                return _broken("list", f"a listing right after a write lacks the file {name!r}")
        listed = self._listed("")
        if listed != sorted(listed):
            return _broken("list", f"a listing is out of order: {listed}")
        tail = [name for name in listed if name >= "a"]
        if self._listed("a") != tail:
            return _broken("list", f"a listing from 'a' gave {self._listed('a')}, not {tail}")
        return Finding(
            "list",
            Status.FINE,
            f"{len(_NAMES)} files were listed right after each was written, in order",
        )

    def _lines(self, path: str) -> list[str]:
        return list(self._store.read(path))

    def _listed(self, start: str) -> list[str]:
        return [status.name for status in self._store.list_from(self._path(start))]

    def _times(self) -> Finding:
        timed = self.latencies.timed
        for number in range(2, 2 + self._samples):
            path = self._commit(number)
            timed("create", partial(self._store.write, path, ["x" * 200]))
            timed("read", partial(self._lines, path))
            timed("list", partial(self._listed, path.rpartition("/")[2]))
        summary = self.latencies.summary()
        medians = ", ".join(f"{name} {of['p50_ms']:g} ms" for name, of in summary.items())
        return Finding("latency", Status.FINE, f"medians: {medians}", measured=summary)

    def _commit(self, number: int) -> str:
        return self._path(f"{number:020d}.json")


def _broken(check: str, seen: str) -> Finding:
    return Finding(
        check,
        Status.FAILED,
        seen,
        "This storage does not keep the promises that a table's log relies on: use another one, or "
        "look for a cache in between. `lakelog conformance <uri>` shows more.",
    )


def _percentile(samples: list[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
