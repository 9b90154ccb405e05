"""The kit catches stores that break a promise: each promise has a store that breaks it alone."""

from __future__ import annotations

import importlib
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.logstores import LocalLogStore, LogStore, MemoryLogStore
from lakelog.logstores.conformance import LogStoreConformance, PromiseBrokenError, run_conformance
from lakelog.logstores.conformance.checks import crashes
from support.kit_sizes import SizedConformance

if TYPE_CHECKING:
    from types import ModuleType


def _load(name: str) -> ModuleType:
    """Import by a name that racing processes can import too: they get this `sys.path`."""
    here = str(Path(__file__).parent)
    if here not in sys.path:
        sys.path.append(here)
    return importlib.import_module(name)


BROKEN: dict[str, Any] = {
    name: value
    for module in map(_load, ("broken_files", "broken_order", "broken_lives", "broken_bytes"))
    for name, value in vars(module).items()
    if hasattr(value, "breaks")
}
HONEST: Any = vars(_load("broken_order"))["HonestlyUnsafe"]
MEMBERS = sorted(name for name in vars(LogStore) if not name.startswith("_"))
CHECKS = sorted(name for name in dir(LogStoreConformance) if name.startswith("test_"))


class Quick(LogStoreConformance):
    """Sizes that still catch."""

    large_megabytes = 41
    race_rounds = 10
    race_processes = 3


def root_for(cls: type[LogStore], tmp_path: Path) -> str:
    return str(tmp_path) if issubclass(cls, LocalLogStore) else f"memory://{uuid.uuid4().hex}/t"


@pytest.mark.parametrize("name", BROKEN)
def test_a_store_that_breaks_a_promise_is_caught_by_the_check_of_that_promise(
    name: str, tmp_path: Path
) -> None:
    broken = BROKEN[name]
    check = getattr(Quick(), f"test_{broken.breaks}")
    # Mostly it is an expectation that fails; else the store's own error comes through.
    with pytest.raises((PromiseBrokenError, OSError, RuntimeError, TypeError)):
        check(broken({}), root_for(broken, tmp_path))
    for file in getattr(broken, "held", ()):
        file.close()


def test_writers_that_die_are_no_forks_of_a_process_with_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[str] = []

    def noting(store: LogStore, mode: str, path: str, point: str) -> tuple[int, bool]:
        started.append(point)
        return fate(store, mode, path, point)

    fate = crashes._fate
    monkeypatch.setattr(crashes, "_fate", noting)
    for name, wanted in (("HasAThread", 7), ("LocalLogStore", 0)):
        store = vars(_load("threaded_store"))[name]({})
        Quick().test_a_writer_that_is_killed_leaves_all_or_nothing(store, str(tmp_path))
        assert len(started) == (wanted if sys.platform == "linux" else 7)
        started.clear()


@pytest.mark.parametrize("check", CHECKS)
def test_every_check_has_a_store_that_it_must_catch(check: str) -> None:
    breakers = [name for name, cls in BROKEN.items() if f"test_{cls.breaks}" == check]
    assert breakers, f"nothing shows that {check} can fail"


@pytest.mark.parametrize("member", MEMBERS)
def test_every_member_of_the_contract_is_broken_alone_by_a_store_that_is_caught(
    member: str,
) -> None:
    """What the core calls on a store is a member of it (mypy holds that), so none goes unchecked.

    A store that breaks `read` as well would be caught by it, and tell nothing of `read_bytes`.
    """
    alone = [name for name, cls in BROKEN.items() if _own_members(cls) == {member}]
    assert alone, f"no store in broken_*.py breaks {member} and nothing else"


def _own_members(cls: type[LogStore]) -> set[str]:
    """The members that a broken store does differently from the sound one that it is built on."""
    mro = cls.__mro__
    own = mro[: next(n for n, base in enumerate(mro) if base.__module__.startswith("lakelog."))]
    return {name for base in own for name in vars(base)} & set(MEMBERS)


def test_a_store_that_declares_what_it_lacks_passes() -> None:
    root = f"memory://{uuid.uuid4().hex}/t"
    report = run_conformance(HONEST, root, suite=SizedConformance)
    assert report.ok, str(report)


def test_the_runner_reports_each_promise_with_what_was_seen() -> None:
    root = f"memory://{uuid.uuid4().hex}/t"
    report = run_conformance(
        BROKEN["IgnoresOverwriteFalse"],
        root,
        suite=Quick,
        only=[
            "a_taken_name_is_refused_and_kept",
            "test_an_empty_file_is_a_file",
            "closing_twice_is_allowed",
        ],
    )
    assert not report.ok
    assert [result.name for result in report.failures] == [
        "a_taken_name_is_refused_and_kept",
        "an_empty_file_is_a_file",
    ]
    first = report.failures[0]
    assert first.problem is not None
    assert "wanted FileExistsError" in first.problem
    assert first.promise.startswith("A second create raises FileExistsError")
    text = str(report)
    assert "broken_files.IgnoresOverwriteFalse" in text
    assert "1 of 3 promises kept" in text
    assert "FAIL" in text


def test_the_runner_refuses_checks_that_do_not_exist() -> None:
    with pytest.raises(ValueError, match="no such check: emty_file; did you mean an_empty_file_is"):
        run_conformance(MemoryLogStore, "memory://x/t", only=["emty_file"])
    with pytest.raises(ValueError, match=r"no such check: zzz; there are a_foreign_file\w+, a_"):
        run_conformance(MemoryLogStore, "memory://x/t", only=["test_zzz"])


def test_the_runner_tells_what_a_store_does_not_declare_and_each_step() -> None:
    heard: list[tuple[str, bool]] = []
    root = f"memory://{uuid.uuid4().hex}/t"
    only = ["an_empty_file_is_a_file", "of_racing_processes_exactly_one_wins"]
    report = run_conformance(
        MemoryLogStore,
        root,
        only=only,
        progress=lambda name, result: heard.append((name, bool(result))),
    )
    assert heard == [(name, done) for name in only for done in (False, True)]
    assert report.ok
    assert [result.undeclared for result in report.results] == [
        "",
        "exclusive_create does not cover other processes",
    ]
    assert "n/d" in str(report)


def test_a_racing_process_that_dies_is_a_failure_and_no_hang(tmp_path: Path) -> None:
    suite = Quick()
    with pytest.raises(PromiseBrokenError, match="a racing process died"):
        suite.test_of_racing_processes_exactly_one_wins(BROKEN["DiesInTheRace"]({}), str(tmp_path))
