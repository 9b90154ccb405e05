"""`lakelog report <uri>`: a table as one HTML page."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from lakelog.cli.output import line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log
from lakelog.core.engine.shown import bytes_text, time_text
from lakelog.core.engine.tables import one_call


@click.command(short_help="A table as one HTML page: growth, files, columns, advice.")
@uri_argument
@conf_options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write the page; <table>-report.html in this folder by default.",
)
@click.option(
    "--events",
    multiple=True,
    metavar="EVENTS",
    help="Commit events of jobs, as lakelog conflicts takes them. May be repeated.",
)
@json_option
@one_call()
def command(
    uri: str, conf: dict[str, str], output: Path | None, events: tuple[str, ...], as_json: bool
) -> None:
    """Write a page about the table URI, which opens in a browser without any network.

    It shows how the table grew, the sizes of its files and what OPTIMIZE would do, partitions,
    columns and how well they part the files, the log and what VACUUM would free, features,
    properties, what the doctor sees without writing, and what to do, most useful first. Nothing is
    written to the table. Of a table that can't be opened it shows what can be read.
    """
    if as_json and output is not None:
        raise click.UsageError("--json and --output don't go together.")
    from lakelog.cli.report.facts import facts

    with progress() as tell:
        log = open_log(uri, conf)
        found = Scrubber(conf).data(facts(log, events, tell))
    if as_json:
        print_json(found)
        return
    path = output or Path(f"{_file_name(found['table'])}-report.html")
    size = _write(path, found)
    for each in found["troubles"]:
        line(f"Not shown: {each}", "yellow")
    line(f"The report is in {path.absolute()} ({bytes_text(size)}).", "green")


def _file_name(table: str) -> str:
    last = table.rstrip("/").rpartition("/")[2]
    kept = "".join(each if each.isalnum() or each in "-_." else "-" for each in last).strip(".-")
    return kept[:100] or "table"


def _write(path: Path, found: dict[str, Any]) -> int:
    """Write the page whole or not at all; its size in bytes."""
    from lakelog.cli.report.page import page

    data = page(found, time_text(int(time.time() * 1000)) or "").encode("utf-8", "replace")
    handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=".report-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # As `open` would have made it: whoever may read the folder may read the page.
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
    return len(data)
