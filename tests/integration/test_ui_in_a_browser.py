"""`lakelog ui` in a real browser: quiet, readable in every light and width, and live."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.cli.ui.frame import TABS
from lakelog.core import DeltaLog, create_table, delete_rows, optimize, write_arrow
from support.browser import look
from support.open_ui import open_ui
from support.raw_log import PROTOCOL, RawLog, add, metadata
from support.terminal import lakelog_json

if TYPE_CHECKING:
    from support.open_ui import OpenUi

pytestmark = pytest.mark.needs("browser")

HOSTILE = "<script>globalThis.alerted=1<script>\"'><img src=x onerror=globalThis.alerted=2>\x1b[31m"
READY = ["wait", "#live[data-busy='0']"]


def busy(folder: Path) -> str:
    """A folder of tables: one with some kinds of commits, an empty, a broken and a hostile one."""
    orders = str(folder / "sales" / "orders")
    log = DeltaLog.for_table(
        orders, {"spark.lakelog.commitEvents.path": str(folder / "events.jsonl")}
    )
    for day in range(6):
        count = 10 * (day + 1)
        rows = {"id": range(count), "name": [HOSTILE] * count, "day": [f"d{day}"] * count}
        for _ in range(2):
            write_arrow(
                log, pa.table(rows), mode="append", partition_by=["day"], user_metadata=HOSTILE
            )
    delete_rows(log, "id % 5 = 1")
    optimize(log)
    create_table(str(folder / "empty"), "a bigint")
    write_arrow(str(folder / HOSTILE), {"a": [1]})
    holed = RawLog(folder / "holed").commit(PROTOCOL, metadata())
    for name in "abc":
        holed.commit(add(name))
    holed.path(2).unlink()
    return orders


def views(ui: OpenUi, folder: Path) -> dict[str, dict[str, Any]]:
    """All pages, wide; some of them dark, on a phone and without a script."""
    kept = os.environ.get("LAKELOG_SCREENSHOTS")
    shots = Path(kept) if kept else folder / "shots"
    shots.mkdir(parents=True, exist_ok=True)
    base = ui.server.url.partition("/?")[0]
    path = ui.table("orders")
    pages = {"tables": "/", "conflicts": "/conflicts"}
    pages |= {f"table {name}": f"{path}{tab}" for tab, name in TABS.items()}
    pages |= {"hostile": ui.table(HOSTILE), "holed": f"{ui.table('holed')}version", "none": "/x"}
    found: dict[str, dict[str, Any]] = {}
    for name, page in pages.items():
        ready = [READY] if 'id="live"' in ui.get(page, 404 if page == "/x" else 200) else []
        steps = [["goto", f"{base}{page}"], *ready]
        found[name] = {"axe": True, "steps": steps}
        found[f"{name}, phone"] = {"width": 390, "steps": steps}
    for name in ("tables", "table Overview", "table Time travel"):
        found[f"{name}, dark"] = {**found[name], "dark": True}
        steps = [each for each in found[name]["steps"] if each[0] == "goto"]
        found[f"{name}, no script"] = {"script": False, "steps": steps}
    for name, view in found.items():
        view["url"] = ui.server.url
        view["screenshot"] = str(shots / f"ui {name}.png")
    return found


@pytest.mark.one_day_in(4)
def test_all_pages_are_quiet_and_readable(tmp_path: Path) -> None:
    uri = busy(tmp_path)
    with open_ui(str(tmp_path), events=[str(tmp_path / "events.jsonl")]) as ui:
        asked = views(ui, tmp_path)
        base = ui.server.url.partition("/?")[0]
        seen = look(ui.server.url, {"views": asked})
    for name, view in seen.items():
        noise = [each for each in view["said"] if "404" not in each or "none" not in name]
        assert noise == [], name
        assert all(each.startswith(base) for each in view["asked"]), name
        assert not [each for each in view["asked"][2:] if "token" in each], name
        assert view.get("shown", "") == "", name
        assert view.get("violations", []) == [], name
        assert view.get("wide", 0) <= asked[name].get("width", 1280), name
    assert seen["tables"]["paper"] != seen["tables, dark"]["paper"]
    files = lakelog_json("files", uri, "--summary")
    for name in ("tables", "tables, no script", "table Overview, no script"):
        assert f"{files['rows']:,}" in seen[name]["text"], name
    assert HOSTILE.partition("\x1b")[0] in seen["tables"]["text"]


def test_tables_sort_and_filter_and_the_slider_travels(tmp_path: Path) -> None:
    uri = busy(tmp_path)
    with open_ui(str(tmp_path)) as ui:
        base, path = ui.server.url.partition("/?")[0], ui.table("orders")
        seen = look(
            ui.server.url,
            {
                "views": {
                    "tables": {
                        "steps": [READY],
                        "sorts": [["tables", 0, 2], ["tables", 2, 2]],
                        "filters": [["tables", "orders"]],
                    },
                    "history": {
                        "steps": [["goto", f"{base}{path}history"], READY],
                        "sorts": [["versions", 2, 1]],
                    },
                    "slider": {
                        "steps": [
                            ["goto", f"{base}{path}version"],
                            ["press", "input[type=range]", "Home"],
                            ["wait", "#rows caption:has-text('version 0')"],
                            ["press", "input[type=range]", "ArrowRight"],
                            ["wait", "#rows caption:has-text('version 1')"],
                        ]
                    },
                }
            },
        )
    for view in seen.values():
        assert view["said"] == []
    names, rows = seen["tables"]["sorted"]
    assert names == sorted(names, reverse=True)
    assert rows[0] == f"{lakelog_json('files', uri, '--summary')['rows']:,}"
    assert seen["tables"]["filtered"] == [["sales/orders"]]
    history = lakelog_json("history", uri, "--all")["entries"]
    assert seen["history"]["sorted"] == [[str(each["version"]) for each in reversed(history)]]
    assert seen["slider"]["asked"][-1].endswith("/version?v=1")


def test_what_happens_meanwhile_appears_by_itself(tmp_path: Path) -> None:
    """The page's own second question is answered from a lake in which something has happened."""
    uri = busy(tmp_path)
    newest = lakelog_json("history", uri)["newest_version"]
    events = tmp_path / "events.jsonl"
    asked: dict[str, int] = {}
    record = json.loads(events.read_text().splitlines()[-1])
    del record["committed_version"]
    lost = {**record, "outcome": "conflict-failed", "conflict": "x", "job": "the loser"}

    def before(path: str) -> None:
        asked[path] = asked.get(path, 0) + 1
        if path == "/conflicts" and asked[path] == 2:
            with events.open("a") as file:
                file.write(json.dumps({**lost, "txn_id": "another"}) + "\n")
        if path.endswith("/history") and asked[path] == 2:
            write_arrow(uri, {"id": [1], "name": ["x"], "day": ["later"]}, mode="append")

    with open_ui(str(tmp_path), events=[str(events)], before=before) as ui:
        base, path = ui.server.url.partition("/?")[0], ui.table("orders")
        seen = look(
            ui.server.url,
            {
                "views": {
                    "conflicts": {
                        "steps": [
                            ["goto", f"{base}/conflicts"],
                            ["wait", "#jobs td:has-text('the loser')"],
                        ]
                    },
                    "history": {
                        "steps": [
                            ["goto", f"{base}{path}history"],
                            ["wait", f"#versions a:text-is('{newest + 1}')"],
                        ]
                    },
                }
            },
        )
    for view in seen.values():
        assert view["said"] == []
