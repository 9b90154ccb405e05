"""The page of promises names what there is: every check, and every class that runs them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from lakelog.logstores.conformance import HttpFaultConformance, LogStoreConformance
from support.promises import (
    BROKEN,
    KEPT,
    PROPERTY,
    UNDECLARED,
    UNNAMED,
    Column,
    Promises,
    parse,
    render,
)

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "backends" / "promises.md"
SUITES = {"LogStoreConformance", "SizedConformance", "HttpFaultConformance"}
CHECKS = sorted(
    name.removeprefix("test_")
    for suite in (LogStoreConformance, HttpFaultConformance)
    for name in dir(suite)
    if name.startswith("test_")
)


def _conformance_classes() -> list[str]:
    """Test classes of the kit in tests/conformance, by their bases' names."""
    found: set[str] = set()
    for module in sorted((REPOSITORY / "tests" / "conformance").glob("test_*.py")):
        # Stores that break promises are none that the page tells of.
        if module.name.startswith(("test_kit", "test_store_mutants")):
            continue
        for node in ast.parse(module.read_text()).body:
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base) for base in node.bases}
                if bases & (SUITES | found):
                    found.add(node.name)
    return sorted(found)


@pytest.mark.parametrize("check", CHECKS)
def test_the_page_has_a_row_for_every_check(check: str) -> None:
    assert f"`{check}` |" in PAGE.read_text()


@pytest.mark.parametrize("name", _conformance_classes())
def test_the_page_was_written_by_a_run_of_every_class(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text()


def test_the_page_tells_of_no_breach_and_of_no_server_without_a_name() -> None:
    text = PAGE.read_text()
    assert BROKEN not in text
    assert UNNAMED not in text
    assert KEPT in text


def _report(outcome: Any, undeclared: str = "", cls: str = "TestOne", when: Any = "call") -> Any:
    about = {
        "store": "LocalLogStore",
        "scope": "HOST",
        "class": cls,
        "check": f"test_{CHECKS[0]}",
        "undeclared": undeclared,
        "sizes": {"large_megabytes": 20 if cls == "TestTwo" else 50},
    }
    return pytest.TestReport(
        "t.py::t", ("t.py", 1, "t"), {}, outcome, None, when, user_properties=[(PROPERTY, about)]
    )


@pytest.mark.parametrize(
    ("reports", "cell"),
    [
        ([_report("passed")], KEPT),
        ([_report("passed", "exclusive_create")], UNDECLARED),
        ([_report("passed"), _report("passed", "exclusive_create", "TestTwo")], KEPT),
        ([_report("failed"), _report("passed", cls="TestTwo")], BROKEN),
        ([_report("passed"), _report("failed", cls="TestTwo")], BROKEN),
        ([_report("failed", when="setup")], BROKEN),
    ],
)
def test_of_several_runs_of_one_store_the_worst_is_reported(
    reports: list[Any], cell: str, tmp_path: Path
) -> None:
    promises = Promises(tmp_path / "page.md")
    for report in reports:
        promises.pytest_runtest_logreport(report)
    assert promises.columns["LocalLogStore"].cells == {f"test_{CHECKS[0]}": cell}
    row = next(line for line in render(promises.columns).splitlines() if f"`{CHECKS[0]}`" in line)
    assert row.endswith(f"| {cell} |")


def test_what_did_not_run_is_reported_as_not_run() -> None:
    text = render(
        {"LocalLogStore": Column("disk", {"HOST"}, {"TestOne"}, {}, {"large_megabytes": 50})}
    )
    assert "| one winner among the writers of | one host |" in text
    assert "| largest file, megabytes | 50 |" in text
    assert text.partition("## ")[2].count("| – |") == len(CHECKS)


def test_stores_that_did_not_run_keep_their_columns(tmp_path: Path) -> None:
    cells = {f"test_{CHECKS[0]}": KEPT, f"test_{CHECKS[1]}": UNDECLARED}
    old = {
        "AStore": Column(
            "A 1", {"CLUSTER", "PROCESS"}, {"TestA", "TestB"}, cells, {"many_files": 9}
        ),
        "LocalLogStore": Column("old", {"HOST"}, {"TestOld"}, cells),
    }
    assert parse(render(old)) == old
    page = tmp_path / "page.md"
    page.write_text(render(old))
    promises = Promises(page)
    promises.pytest_runtest_logreport(_report("passed"))
    promises.pytest_sessionfinish(None)  # type: ignore[arg-type]  # it needs none
    now = parse(page.read_text())
    assert now["AStore"] == old["AStore"]
    assert now["LocalLogStore"].classes == {"TestOne"}
    assert now["LocalLogStore"].cells == {f"test_{CHECKS[0]}": KEPT}
    assert now["LocalLogStore"].server.startswith("a local disk")
