"""Where the time of a test run goes.

    pytest tests --timings=FOLDER
    python tests/support/timings_report.py FOLDER

Each worker writes one line a phase of a test, one a fixture that it set up, and one a program that
it started, as it goes: a run that hangs or is killed leaves what it had measured.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--timings",
        metavar="FOLDER",
        help="write what each test, fixture and program cost into FOLDER; "
        "`python tests/support/timings_report.py FOLDER` sums it up",
    )


def pytest_configure(config: pytest.Config) -> None:
    folder = config.getoption("--timings")
    if folder:
        config.pluginmanager.register(_Recorder(Path(folder).absolute()), "lakelog-timings")


class _Recorder:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._file: TextIO = (folder / f"{worker}-{os.getpid()}.jsonl").open("w", buffering=1)
        self._pid = os.getpid()
        sys.addaudithook(self._audit)

    def _note(self, kind: str, **values: Any) -> None:
        # A fork of a worker shares its file and would tear the lines.
        if os.getpid() == self._pid and not self._file.closed:
            self._file.write(json.dumps({"kind": kind, **values}) + "\n")

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            argv = args[1]
            words = [argv] if isinstance(argv, str | bytes | os.PathLike) else list(argv)
            self._note("program", argv=[os.fsdecode(str(w))[:120] for w in words[:4]])

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, object, object]:
        started = time.perf_counter()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - started
            self._note("fixture", name=fixturedef.argname, scope=fixturedef.scope, wall=seconds)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        wall, cpu = time.perf_counter(), time.process_time()
        self._note("begin", id=item.nodeid)
        try:
            return (yield)
        finally:
            self._note(
                "test",
                id=item.nodeid,
                wall=time.perf_counter() - wall,
                cpu=time.process_time() - cpu,
                at=time.time(),
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # The controller of xdist sees each report too, and must not count it again.
        if getattr(report, "node", None) is None:
            self._note(
                "phase", id=report.nodeid, when=report.when, wall=report.duration,
                outcome=report.outcome,
            )  # fmt: skip
            if report.failed:
                text = report.longreprtext
                text = text if len(text) <= 6000 else f"{text[:3000]} … {text[-3000:]}"
                self._note("failure", id=report.nodeid, text=text)

    def pytest_sessionstart(self) -> None:
        self._note("machine", when="start", at=time.time(), **_processors())

    def pytest_sessionfinish(self) -> None:
        self._note("machine", when="end", at=time.time(), **_processors())
        self._file.flush()


def _processors() -> dict[str, float]:
    """Seconds that all processors together were busy and idle since the machine started."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    except OSError:
        return {}
    ticks = [int(word) for word in words]
    idle = ticks[3] + ticks[4]
    second = os.sysconf("SC_CLK_TCK")
    return {"busy": (sum(ticks) - idle) / second, "idle": idle / second}
