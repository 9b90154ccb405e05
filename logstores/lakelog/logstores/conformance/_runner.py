"""The same checks without pytest, with a report."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.logstores.conformance._suite import LogStoreConformance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakelog.logstores._contract import LogStore

__all__ = ["CheckResult", "Report", "run_conformance"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of one check."""

    name: str
    """The name of the method, without `test_`."""
    promise: str
    """The promise, in a sentence."""
    problem: str | None
    """What was seen instead; `None` when the promise was kept."""
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the promise was kept."""
        return self.problem is None


@dataclass(frozen=True, slots=True)
class Report:
    """What became of all of them. `str(report)` is for people."""

    store: str
    capabilities: str
    results: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Whether every promise was kept."""
        return all(result.ok for result in self.results)

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if not result.ok)

    def __str__(self) -> str:
        lines = [f"{self.store}: {self.capabilities}"]
        for result in self.results:
            mark = "ok  " if result.ok else "FAIL"
            lines.append(f"{mark} {result.seconds:6.2f} s  {result.name.replace('_', ' ')}")
            if result.problem is not None:
                lines.append(f"                {result.problem}")
        kept = len(self.results) - len(self.failures)
        lines.append(f"{kept} of {len(self.results)} promises kept")
        return "\n".join(lines)


def run_conformance(
    make_store: Callable[[], LogStore],
    root: str,
    *,
    suite: type[LogStoreConformance] = LogStoreConformance,
    only: Iterable[str] | None = None,
) -> Report:
    """Run every check on a store, each on an instance of its own.

    Args:
        make_store: makes the store.
        root: URI of a folder that exists or can be made; files stay below it.
        suite: a subclass with other sizes or another `another`.
        only: names of checks, with or without `test_`; all by default.

    Raises:
        ValueError: `only` names a check that does not exist.
    """
    checks = [name for name in dir(suite) if name.startswith("test_")]
    if only is not None:
        wanted = {name if name.startswith("test_") else f"test_{name}" for name in only}
        if unknown := sorted(wanted - set(checks)):
            raise ValueError(f"no such checks: {', '.join(unknown)}; there are {', '.join(checks)}")
        checks = [name for name in checks if name in wanted]
    first = make_store()
    kind = type(first)
    capabilities = str(first.capabilities)
    first.close()
    results = tuple(_run(suite, name, make_store, root) for name in checks)
    return Report(f"{kind.__module__}.{kind.__qualname__}", capabilities, results)


def _run(
    suite: type[LogStoreConformance], name: str, make_store: Callable[[], LogStore], root: str
) -> CheckResult:
    check: Any = getattr(suite(), name)
    problem = None
    started = time.perf_counter()
    try:
        store = make_store()
        try:
            check(store, root)
        finally:
            store.close()
    except Exception as error:  # noqa: BLE001, RUF100  # whatever a store raises is the finding
        problem = f"{type(error).__name__}: {error}"
    seconds = time.perf_counter() - started
    promise = " ".join((check.__doc__ or "").split())
    return CheckResult(name.removeprefix("test_"), promise, problem, seconds)
