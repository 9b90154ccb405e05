"""The report in a real browser: quiet, readable in every light and width, sorted by hand."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, alter, create_table, delete_rows, optimize, write_arrow
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.browser import look
from support.raw_log import PROTOCOL, RawLog, metadata
from support.terminal import lakelog, lakelog_json

pytestmark = pytest.mark.needs("browser")

HOSTILE = (
    "<script>globalThis.alerted=1</script>\"'><img src=x onerror=globalThis.alerted=2>\x1b[31m"
)


def busy(folder: Path) -> str:
    """All kinds of commits, mapped columns, vectors, partitions with hostile values, events."""
    uri = str(folder / "busy")
    long, text = PrimitiveType("long"), PrimitiveType("string")
    create_table(
        uri,
        StructType(
            (StructField("id", long), StructField(f"n {HOSTILE}", text), StructField("day", text))
        ),
        partition_by=["day"],
        name=HOSTILE,
        description=f"{HOSTILE} \u202e {'long ' * 1000}{'l' * 5000}",
        properties={
            "delta.columnMapping.mode": "name",
            "delta.enableDeletionVectors": "true",
            f"own.{HOSTILE}": HOSTILE,
        },
    )
    log = DeltaLog.for_table(uri, {"spark.lakelog.commitEvents.path": str(folder / "events.jsonl")})
    for day in range(5):
        count = 10 * (day + 1) ** 2
        values = [None if at % 3 else HOSTILE for at in range(count)]
        rows = {
            "id": range(count),
            f"n {HOSTILE}": values,
            "day": [f"{day} {HOSTILE}"[:60]] * count,
        }
        for _ in range(2):
            write_arrow(log, pa.table(rows), mode="append", user_metadata=HOSTILE)
    delete_rows(log, "id % 5 = 1")
    optimize(log)
    alter.set_properties(log, {"delta.checkpointInterval": "5"})
    return uri


def empty(folder: Path) -> str:
    create_table(str(folder / "empty"), "a bigint")
    return str(folder / "empty")


def small(folder: Path) -> str:
    write_arrow(str(folder / "small"), {"a": [1]})
    return str(folder / "small")


def holed(folder: Path) -> str:
    log = RawLog(folder / "holed").commit(PROTOCOL, metadata())
    add = {"partitionValues": {}, "size": 5, "modificationTime": 1, "dataChange": True}
    for name in "abc":
        log.commit({"add": {"path": name, **add}})
    log.path(2).unlink()
    return str(folder / "holed")


def views(folder: Path, **more: Any) -> dict[str, Any]:
    kept = os.environ.get("LAKELOG_SCREENSHOTS")
    shots = Path(kept) if kept else folder
    shots.mkdir(parents=True, exist_ok=True)
    each = {
        "wide": {"axe": True, **more},
        "dark": {"axe": True, "dark": True},
        "phone": {"width": 390},
        "printed": {"dark": True, "steps": [["print"]]},
        "without script": {"script": False},
    }
    for name, view in each.items():
        view["screenshot"] = str(shots / f"report {folder.name} {name}.png")
    return {"views": each}


@pytest.mark.parametrize("make", [busy, empty, small, holed])
@pytest.mark.one_day_in(4, 3)
def test_a_report_is_quiet_and_readable(tmp_path: Path, make: Any) -> None:
    uri, path = make(tmp_path), tmp_path / "r.html"
    events = ["--events", str(tmp_path / "events.jsonl")] if make is busy else []
    assert lakelog("report", uri, "-o", str(path), *events).code == 0
    seen = look(path.as_uri(), views(tmp_path))
    for name, view in seen.items():
        assert view["said"] == [], name
        assert view["asked"] == [path.as_uri()], name
        assert uri in view["text"], name
        assert view.get("shown", "") == "", name
    assert seen["wide"]["violations"] == []
    assert seen["dark"]["violations"] == []
    assert seen["phone"]["wide"] <= 390
    assert seen["wide"]["paper"] != seen["dark"]["paper"]
    # On paper: light whatever the screen is, whole tables, and nothing to press.
    assert seen["printed"]["paper"] == seen["wide"]["paper"]
    assert (seen["printed"]["tools"], seen["printed"]["cut"]) == (False, False)
    assert seen["wide"]["tools"]


def test_tables_sort_and_filter_and_have_the_numbers_of_the_commands(tmp_path: Path) -> None:
    uri, path = busy(tmp_path), tmp_path / "r.html"
    assert lakelog("report", uri, "-o", str(path)).code == 0
    asked = {
        # By version ascending, by operation descending, and by bytes of partitions ascending.
        "sorts": [["versions", 0, 1], ["versions", 2, 2], ["partition-table", 2, 1]],
        "filters": [["versions", "OPTIMIZE"], ["column-table", "day"]],
        "hover": ".tile rect",
    }
    found = look(path.as_uri(), {"views": {"wide": asked}})["wide"]
    history = lakelog_json("history", uri, "--all")["entries"]
    versions, operations, sizes = found["sorted"]
    assert versions == [str(each["version"]) for each in reversed(history)]
    assert operations == sorted((e["operation"] for e in history), reverse=True)
    files = lakelog_json("files", uri, "--summary")
    assert len(sizes) == files["partition_count"]
    assert found["filtered"][0] == [
        str(each["version"]) for each in reversed(history) if "OPTIMIZE" in json.dumps(each)
    ]
    assert found["filtered"][1] == ["day"]
    light, says = found["hovered"]
    assert light == "brightness(1.15)"
    largest = max(files["partitions"], key=lambda each: each["bytes"])
    assert says.endswith(f", {largest['files']:,} file{'s'[: largest['files'] > 1]}")
    for number in (f"{files['rows']:,}", f"{files['files']:,}"):
        assert number in found["text"]
