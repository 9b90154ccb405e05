"""The same checks without pytest, with a report."""

from __future__ import annotations

import difflib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from lakelog.logstores.conformance.checks.expect import CheckNotRunError
from lakelog.logstores.conformance.checks.store_suite import LogStoreConformance
from lakelog.logstores.resolution import class_path_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lakelog.logstores.conformance.http.fault_suite import HttpFaultConformance
    from lakelog.logstores.contract import Capabilities, LogStore

_Suite = TypeVar("_Suite")


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
    undeclared: str = ""
    """What the store does not declare, so that the check had less, or nothing, to hold it to."""
    not_run: str = ""
    """Why the check was not run, where that is not the store's matter: a missing package."""

    @property
    def ok(self) -> bool:
        """Whether nothing was seen against the promise, as far as it was declared."""
        return self.problem is None

    def __str__(self) -> str:
        mark = "FAIL" if not self.ok else "n/d " if self.undeclared else "ok  "
        mark = "n/r " if self.not_run else mark
        text = f"{mark} {self.seconds:6.2f} s  {self.name.replace('_', ' ')}"
        note = self.problem or (f"not declared: {self.undeclared}" if self.undeclared else "")
        note = f"not run: {self.not_run}" if self.not_run else note
        return f"{text}\n                {note}" if note else text


@dataclass(frozen=True, slots=True)
class Report:
    """What became of all of them. `str(report)` is for people."""

    store: str
    capabilities: Capabilities
    results: tuple[CheckResult, ...]

    @property
    def ok(self) -> bool:
        """Whether every promise was kept whose check was run; see `not_run`."""
        return all(result.ok for result in self.results)

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if not result.ok)

    @property
    def not_run(self) -> tuple[CheckResult, ...]:
        """The checks that were not run, for a reason that is not the store's."""
        return tuple(result for result in self.results if result.not_run)

    def __str__(self) -> str:
        lines = [f"{self.store}: {self.capabilities}"]
        for result in self.results:
            lines.append(str(result))
        kept = len(self.results) - len(self.failures) - len(self.not_run)
        lines.append(f"{kept} of {len(self.results)} promises kept")
        return "\n".join(lines)


def run_conformance(
    make_store: Callable[[], LogStore],
    root: str,
    *,
    suite: type[LogStoreConformance] = LogStoreConformance,
    only: Iterable[str] | None = None,
    progress: Callable[[str, CheckResult | None], None] | None = None,
) -> Report:
    """Run every check on a store, each on an instance of its own.

    Args:
        make_store: makes the store.
        root: URI of a folder that exists or can be created; files stay below it.
        suite: a subclass with other sizes or another `another`.
        only: names of checks, with or without `test_`; all by default.
        progress: called with a check's name and `None` before it, and with its result after it.

    Raises:
        ValueError: `only` names a check that does not exist.
    """
    checks = check_names(suite, only)
    first = make_store()
    described = _described(first)
    first.close()

    def run(instance: LogStoreConformance, name: str) -> None:
        store = make_store()
        try:
            getattr(instance, name)(store, root)
        finally:
            store.close()

    return Report(*described, _results(suite, checks, run, progress))


def run_fault_conformance(
    behind: Callable[[str], LogStore],
    endpoint: str,
    root: str,
    *,
    suite: type[HttpFaultConformance],
    only: Iterable[str] | None = None,
    progress: Callable[[str, CheckResult | None], None] | None = None,
) -> Report:
    """Run the fault checks on a store of an HTTP service.

    Args:
        behind: makes the store for the URL of an endpoint; see `HttpFaultConformance`.
        endpoint: the service's URL.
        root: URI of a folder that exists or can be created; files stay below it.
        suite: a subclass with the service's dialect.
        only: names of checks, with or without `test_`; all by default.
        progress: called with a check's name and `None` before it, and with its result after it.

    Raises:
        ValueError: `only` names a check that does not exist.
    """
    checks = check_names(suite, only)
    first = behind(endpoint)
    described = _described(first)
    first.close()

    def run(instance: HttpFaultConformance, name: str) -> None:
        getattr(instance, name)(behind, endpoint, root)

    return Report(*described, _results(suite, checks, run, progress))


def check_names(suite: type, only: Iterable[str] | None = None) -> list[str]:
    """The names of a suite's checks, as methods.

    Raises:
        ValueError: `only` names one that does not exist.
    """
    checks = [name for name in dir(suite) if name.startswith("test_")]
    if only is None:
        return checks
    wanted = {name if name.startswith("test_") else f"test_{name}" for name in only}
    for name in sorted(wanted - set(checks)):
        known = [check.removeprefix("test_") for check in checks]
        near = difflib.get_close_matches(name.removeprefix("test_"), known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise ValueError(f"no such check: {name.removeprefix('test_')}; {hint}")
    return [name for name in checks if name in wanted]


def _described(store: LogStore) -> tuple[str, Capabilities]:
    return class_path_of(type(store)), store.capabilities


def _results(
    suite: type[_Suite],
    checks: list[str],
    run: Callable[[_Suite, str], None],
    progress: Callable[[str, CheckResult | None], None] | None,
) -> tuple[CheckResult, ...]:
    results = []
    for name in checks:
        short = name.removeprefix("test_")
        if progress is not None:
            progress(short, None)
        instance, problem, not_run, started = suite(), None, "", time.perf_counter()
        try:
            run(instance, name)
        except CheckNotRunError as error:
            not_run = str(error)
        except Exception as error:  # noqa: BLE001, RUF100  # whatever a store raises is the finding
            problem = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - started
        promise = " ".join((getattr(suite, name).__doc__ or "").split())
        undeclared = getattr(instance, "undeclared", "")
        results.append(CheckResult(short, promise, problem, seconds, undeclared, not_run))
        if progress is not None:
            progress(short, results[-1])
    return tuple(results)
