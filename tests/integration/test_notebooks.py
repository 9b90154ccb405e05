"""What a real kernel shows: tables, pictures, and progress, in threads and interrupted too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.browser import look
from support.notebook import run_cells

pytestmark = pytest.mark.needs("notebook")

HOSTILE = (
    "<script>globalThis.alerted=1</script>\"'><img src=x onerror=globalThis.alerted=2>\x1b[31m"
)

SETUP = f"""
import threading
import lakelog.core.progress
from lakelog.core import (
    DeltaLog, Progress, alter, create_table, delete_rows, merge, optimize, scan, vacuum, write_arrow
)
lakelog.core.progress._PATIENCE = -1.0
hostile = {HOSTILE!r}
uri = "lake/flights"
create_table(
    uri,
    "day date COMMENT 'when', carrier string, delay double NOT NULL, "
    "more struct<a: bigint, b: array<string>>",
    partition_by="day", name=hostile, properties={{"delta.enableDeletionVectors": "true"}},
)
import datetime as dt
log = DeltaLog.for_table(uri)
for day in range(1, 13):
    count = 50 * (1 + day % 5)
    rows = {{
        "day": [dt.date(2026, 1, day)] * count,
        "carrier": [hostile if n % 3 else "UA" for n in range(count)],
        "delay": [float(n) for n in range(count)],
        "more": [{{"a": n, "b": ["x"]}} for n in range(count)],
    }}
    write_arrow(log, rows, mode="append", user_metadata=hostile)
changed = delete_rows(log, "delay > 100")
"""


def bundles(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    assert not [each for each in outputs if each["output_type"] == "error"], outputs
    return [each["data"] for each in outputs if "data" in each]


def texts(outputs: list[dict[str, Any]]) -> str:
    return "".join(each["text"] for each in outputs if each["output_type"] == "stream")


def test_values_are_tables_and_stay_text_for_terminals(tmp_path: Path) -> None:
    shown = {
        "log.update()": "day",
        "log.snapshot.schema": "struct&lt;",
        "log.snapshot.properties": "delta.enableDeletionVectors",
        "log.history()": "rows deleted",
        "log.history()[0]": "DELETE",
        "log.snapshot.scan('day', 'delay > 3')": "delay &gt; 3",
        "changed": "metrics.numDeletedRows",
        "optimize(log, dry_run=True)": "metrics.files_removed.total_size",
        "vacuum(log, dry_run=True)": "size_in_bytes",
    }
    setup, *found = run_cells([SETUP, *shown], tmp_path)
    assert setup == []
    for code, wanted, outputs in zip(shown, shown.values(), found, strict=True):
        (bundle,) = bundles(outputs)
        assert bundle.keys() == {"text/plain", "text/html"}, code
        assert wanted in bundle["text/html"], code
        for mark in ("<script", "<img", "\x1b"):
            assert mark not in bundle["text/html"], code
        assert "<div" not in bundle["text/plain"], code
        assert len(bundle["text/html"]) < 40_000, code


def test_progress_is_drawn_by_html_alone(tmp_path: Path) -> None:
    writes = "write_arrow(log, rows, mode='append', progress='auto')"
    cells = [
        SETUP,
        writes,
        f"worker = threading.Thread(target=lambda: {writes}); worker.start(); worker.join()",
        "print('rich' in __import__('sys').modules, 'ipywidgets' in __import__('sys').modules)",
    ]
    _, done, threaded, loaded = run_cells(cells, tmp_path)
    for outputs in (done, threaded):
        drawn = [each for each in bundles(outputs) if "<progress" in each.get("text/html", "")]
        assert len(drawn) == 1, outputs
        assert 'value="150" max="150"' in drawn[0]["text/html"]
        assert drawn[0]["text/plain"] == "writing: 150 of 150 rows"
        assert not texts(outputs)
    assert texts(loaded) == "False False\n"


STOPPED = """
with lakelog.core.progress.progress_callback("auto") as report:
    report(Progress(text="copying", done=3, total=9, unit="files"))
    report(Progress(text="copying", done=4, total=9, unit="files"))
    {stop}
    __import__("time").sleep(60)
"""


def test_a_failure_and_an_interrupt_leave_the_bar_where_it_was(tmp_path: Path) -> None:
    interrupt = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    cells = [SETUP, *(STOPPED.format(stop=each) for each in ("1 / 0", interrupt))]
    cells.append("write_arrow('lake/after', {'id': [1]}, progress='auto')")
    _, failed, interrupted, after = run_cells(cells, tmp_path)
    for outputs, error in ((failed, "ZeroDivisionError"), (interrupted, "KeyboardInterrupt")):
        assert [each["ename"] for each in outputs if each["output_type"] == "error"] == [error]
        (drawn,) = [each["data"] for each in outputs if "data" in each]
        assert drawn["text/plain"] == "copying: 4 of 9 files"
    drawn, value = bundles(after)
    assert drawn["text/plain"] == "writing: 1 of 1 rows"
    assert value == {"text/plain": "0"}


@pytest.mark.one_day_in(2, 1)
@pytest.mark.parametrize("variable", ["VSCODE_PID", "DATABRICKS_RUNTIME_VERSION"])
def test_notebooks_that_would_repeat_the_picture_get_text(tmp_path: Path, variable: str) -> None:
    cells = [SETUP, "version = write_arrow(log, rows, mode='append', progress='auto')"]
    _, outputs = run_cells(cells, tmp_path, env={variable: "1"})
    assert bundles(outputs) == []
    assert texts(outputs).endswith("\rwriting: 150 of 150 rows\n")


@pytest.mark.needs("browser")
def test_a_rendered_notebook_is_readable_in_both_lights(tmp_path: Path) -> None:
    pages = {theme: tmp_path / f"{theme}.html" for theme in ("light", "dark")}
    values = ["log.update()", "log.history()", "changed", "vacuum(log, dry_run=True)"]
    run_cells([SETUP, *values], tmp_path, pages=pages)
    folder = Path(os.environ.get("LAKELOG_SCREENSHOTS") or tmp_path)
    for theme, page in pages.items():
        picture = str(folder / f"notebook-{theme}.png")
        view = {"dark": theme == "dark", "screenshot": picture}
        (seen,) = look(page.as_uri(), {"views": {"page": view}}).values()
        assert seen["shown"] == ""  # no script of the table's has run
        assert seen["wide"] == 1280  # nothing sticks out
        assert HOSTILE.partition("\x1b")[0] in seen["text"]
        assert "Rows by version" in seen["text"]
