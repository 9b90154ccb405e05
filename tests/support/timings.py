"""Where the time of a test run goes.

    pytest tests --timings=FOLDER
    cd tests && python -m support.timings FOLDER

Each worker writes one line a phase of a test, one a fixture that it set up, and one a program that
it started, as it goes: a run that hangs or is killed leaves what it had measured.
"""

from __future__ import annotations

import collections
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

SLOWEST = 25


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--timings",
        metavar="FOLDER",
        help="write what each test, fixture and program cost into FOLDER; "
        "`python -m support.timings FOLDER` sums it up",
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
            self._note("phase", id=report.nodeid, when=report.when, wall=report.duration)

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


def _lines(folder: Path) -> Iterable[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield json.loads(line)


def _program(argv: list[str]) -> str:
    name = Path(argv[0]).name
    script = next((Path(w).name for w in argv[1:] if w.endswith(".py")), "")
    module = argv[argv.index("-m") + 1] if "-m" in argv[:-1] else ""
    return " ".join(filter(None, (name, script or module or ("-c" if "-c" in argv else ""))))


def _table(title: str, rows: Iterable[tuple[str, float, int]], limit: int = SLOWEST) -> None:
    print(f"\n| {title} | seconds | times |\n|---|--:|--:|")
    for name, seconds, times in sorted(rows, key=lambda row: -row[1])[:limit]:
        print(f"| `{name}` | {seconds:.1f} | {times} |")


def main(folder: str) -> int:
    """Print where the time went, as tables in Markdown."""
    sums: dict[str, dict[str, list[float]]] = collections.defaultdict(
        lambda: collections.defaultdict(list)
    )
    programs: collections.Counter[str] = collections.Counter()
    machine: list[dict[str, Any]] = []
    cpu = 0.0
    for line in _lines(Path(folder)):
        match line["kind"]:
            case "test":
                parts = line["id"].split("::")[0].split("/")
                sums["folder"]["/".join(parts[:2])].append(line["wall"])
                sums["file"]["/".join(parts)].append(line["wall"])
                sums["test"][line["id"]].append(line["wall"])
                cpu += line["cpu"]
            case "phase":
                sums["phase"][line["when"]].append(line["wall"])
            case "fixture":
                sums["fixture"][f"{line['name']} ({line['scope']})"].append(line["wall"])
            case "program":
                programs[_program(line["argv"])] += 1
            case "machine":
                machine.append(line)
    if not sums:
        print(f"no timings in {folder}", file=sys.stderr)
        return 1
    starts = [m for m in machine if m["when"] == "start"]
    ends = [m for m in machine if m["when"] == "end"]
    if starts and ends:
        first, last = min(starts, key=lambda m: m["at"]), max(ends, key=lambda m: m["at"])
        wall = last["at"] - first["at"]
        print(f"{wall:.0f} s of wall time; {cpu:.0f} s of CPU in the workers themselves")
        if "busy" in first:
            busy, idle = last["busy"] - first["busy"], last["idle"] - first["idle"]
            print(f"processors busy for {busy:.0f} s, idle for {idle:.0f} s")
    for title in ("folder", "phase", "fixture", "file", "test"):
        _table(title, ((n, sum(v), len(v)) for n, v in sums[title].items()))
    print("\n| program started | times |\n|---|--:|")
    for name, times in programs.most_common(SLOWEST):
        print(f"| `{name}` | {times} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
