"""Programs that tests need are installed before the first test, and only those that are needed.

What builds a program is decorated with `tool`; a fixture of that name, or a mark, asks for it:

    @pytest.mark.needs("minio", "dynamodb")
    def test_…(request): …

A build takes minutes, and a test is bounded in time; so a test that uses a program that it does
not announce fails, whether or not the program happens to be there.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.tools import TOOLS, NotAnnouncedError, announce

if TYPE_CHECKING:
    from collections.abc import Iterable

# Fixtures whose name is not their tool's.
FIXTURES = {"redis_url": "redis"}
# What a test's parameter says of them: the names of `support.backends`.
PARAMETERS = {
    "minio and DynamoDB": ("minio", "dynamodb"),
    "fake GCS": ("fake_gcs",),
    "HDFS": ("hdfs",),
}
# What a fixture does without, but slower: each of them starts a Spark.
_QUICKER = {"spark": "spark_classes", "delta_spark": "delta_spark_classes"}
# What is a moment's work where it is installed needs no line on the terminal.
_WORTH_TELLING = 3.0


def wanted(items: list[pytest.Item]) -> set[str]:
    """The tools that these tests announce."""
    names: set[str] = set()
    for item in items:
        fixtures: Iterable[str] = getattr(item, "fixturenames", ())
        names.update(FIXTURES.get(name, name) for name in fixtures)
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        for value in filter(lambda each: isinstance(each, str), parameters.values()):
            names.update(PARAMETERS.get(value, (value,)))
        for mark in item.iter_markers("needs"):
            unknown = set(mark.args) - set(TOOLS)
            if unknown:
                raise pytest.UsageError(f"{item.nodeid} needs {unknown}, which no tool is")
            names.update(mark.args)
    return names & set(TOOLS)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-programs",
        action="store_true",
        help="leave out tests that need a server or a peer, and fail one that starts a JVM",
    )
    parser.addoption(
        "--programs-only",
        action="store_true",
        help="build what the tests need, say how long each program took, and run no test",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--no-programs"):
        sys.addaudithook(_refuse_java)
    config.addinivalue_line("markers", "needs(*tools): programs to install before the tests begin")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--no-programs"):
        kept: list[pytest.Item] = []
        left_out: list[pytest.Item] = []
        for item in items:
            (left_out if wanted([item]) else kept).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_collection_finish(session: pytest.Session) -> None:
    if session.config.option.collectonly or session.config.getoption("--programs-only"):
        return
    if session.config.getoption("--no-programs"):
        announce(set())
        return
    announce(None)
    for name in _built_for(session.items):
        started = time.monotonic()
        try:
            TOOLS[name]()
        except RuntimeError:
            # Who uses it skips, and says what is missing.
            continue
        _tell(session.config, name, time.monotonic() - started)
    announce(wanted(session.items))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With `--programs-only`, build all in place of the tests; go on after a failure, so that one
    run tells of each."""
    if not session.config.getoption("--programs-only"):
        return None
    announce(None)
    for name in _built_for(session.items):
        print(f"{name}: ", end="", flush=True)
        started = time.monotonic()
        try:
            TOOLS[name]()
        except RuntimeError as error:
            session.testsfailed += 1
            print(f"not available: {error}")
        else:
            print(f"ready ({time.monotonic() - started:.0f} s)")
    return True


def _built_for(items: list[pytest.Item]) -> list[str]:
    """The tools of these tests, and those without which they only take longer."""
    fixtures = {name for item in items for name in getattr(item, "fixturenames", ())}
    # Making one costs more than a run of a few tests gets back.
    wants_quicker = os.environ.get("LAKELOG_CLASS_ARCHIVES") != "never"
    quicker = {_QUICKER[each] for each in fixtures & _QUICKER.keys() if wants_quicker}
    return sorted(wanted(items) | quicker)


def _refuse_java(event: str, args: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        argv = args[1]
        first = argv if isinstance(argv, str | bytes | os.PathLike) else next(iter(argv))
        if Path(os.fsdecode(first)).name in ("java", "spark-submit", "spark-class"):
            raise NotAnnouncedError("this test starts a JVM, so it is none for `make unit`")


def _tell(config: pytest.Config, name: str, seconds: float) -> None:
    first = os.environ.get("PYTEST_XDIST_WORKER", "gw0") == "gw0"
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if seconds >= _WORTH_TELLING and first and capture is not None:
        with capture.global_and_fixture_disabled():
            os.write(2, f"installed {name} for the tests ({seconds:.0f} s)\n".encode())
