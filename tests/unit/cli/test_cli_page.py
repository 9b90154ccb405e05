"""docs/cli.md says what the commands do: their options, and the JSON that comes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.cli.app import COMMANDS, app
from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile, SetTransaction
from lakelog.core.alter import set_properties
from lakelog.core.errors import ConcurrentAppendException
from support.tables import add_file, new_table, schema_json
from support.terminal import lakelog

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
DESCRIBED = (
    "history",
    "describe",
    "schema",
    "sample",
    "diff",
    "files",
    "delete and update",
    "properties",
    "checkpoint",
    "manifest",
    "optimize",
    "write",
    "merge",
    "alter",
    "clone",
    "convert",
    "repair",
    "restore",
    "vacuum",
    "serve",
    "conflicts",
)
SHARED = {"--catalog", "--conf", "--conf-file", "--json", "--help"}


def _section(name: str) -> str:
    found = re.search(rf"^## {name}\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, name
    return found[1]


def _examples(name: str) -> list[Any]:
    return [
        json.loads(text) for text in re.findall(r"```json\n(.*?)```", _section(name), re.DOTALL)
    ]


def _fields(value: Any, path: str = "") -> set[str]:
    """The paths of all fields; lists by their first item."""
    if isinstance(value, list):
        return _fields(value[0], path + "[]") if value else set()
    if not isinstance(value, dict):
        return set()
    found: set[str] = set()
    for key, item in value.items():
        found |= {f"{path}.{key}"} | _fields(item, f"{path}.{key}")
    return found


@pytest.fixture
def lake(tmp_path: Path) -> tuple[str, str]:
    """A table of which there is something to say everywhere, and events of two jobs."""
    table, events = str(tmp_path / "flights"), str(tmp_path / "events.jsonl")
    log = new_table(
        table,
        schema=schema_json(id="long", day="string"),
        partition_by=["day"],
        properties={"delta.checkpointInterval": "100"},
    )
    stats = '{"numRecords":1,"minValues":{"id":1},"maxValues":{"id":2},"nullCount":{"id":0}}'
    first = AddFile(
        path="f0",
        partition_values={"day": "1"},
        size=1,
        modification_time=1,
        data_change=True,
        stats=stats,
    )
    progress = SetTransaction(app_id="stream-7", version=1)
    log.start_transaction().commit(
        [progress, first],
        Operation.write("Append", metrics={"numFiles": 1, "numOutputRows": 1, "numOutputBytes": 1}),
    )
    log.checkpoint()
    conf = {"spark.lakelog.commitEvents.path": events}
    loser = DeltaLog.for_table(table, {**conf, "spark.app.name": "cleaner"}).start_transaction()
    loser.filter_files("day = '1'")
    winner = DeltaLog.for_table(table, {**conf, "spark.app.name": "loader"}).start_transaction()
    metrics = {"numFiles": 1, "numOutputRows": 1, "numOutputBytes": 1}
    winner.commit([add_file("f1", day="1")], Operation.write("Append", metrics=metrics))
    with pytest.raises(ConcurrentAppendException):
        loser.commit([add_file("f2", day="1")], Operation(name="UPDATE"))
    return table, events


@pytest.mark.parametrize(
    ("name", "which", "options", "free"),
    [
        ("history", 0, ("--limit", "1"), ()),
        ("describe", 0, (), (".schema",)),
        ("files", 0, ("--where", "day = '1' and id = 1", "--stats", "id"), ()),
        ("files", 1, ("--summary",), ()),
        ("checkpoint", 0, (), ()),
        ("manifest", 0, (), ()),
        ("optimize", 0, ("--dry-run",), ()),
        ("repair", 0, ("--dry-run",), ()),
        ("restore", 0, ("--version", "0", "--dry-run"), ()),
        ("vacuum", 0, ("--dry-run",), ()),
        ("conflicts", 0, (), ()),
    ],
)
def test_the_documented_json_is_what_comes(
    lake: tuple[str, str], name: str, which: int, options: tuple[str, ...], free: tuple[str, ...]
) -> None:
    outcome = lakelog(name, lake[name == "conflicts"], *options, "--json")
    assert outcome.err == ""
    real, documented = json.loads(outcome.out), _examples(name)[which]
    assert list(real) == list(documented), "the same fields in the same order"
    came, shown = _fields(real), _fields(documented)
    assert {f for f in came if not f.startswith(free)} == {
        f for f in shown if not f.startswith(free)
    }


def test_the_documented_json_of_commands_that_make_and_change_tables_is_what_comes(
    tmp_path: Path,
) -> None:
    table, rows = str(tmp_path / "flights"), tmp_path / "rows.csv"
    rows.write_text("id,day\n1,a\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    for name, arguments in {
        "write": (table, str(rows)),
        "merge": (table, str(rows), "--on", "target.id = source.id"),
        "alter": (table, "--add", "gate string"),
        "clone": (table, str(tmp_path / "copy")),
        "convert": (str(folder),),
    }.items():
        real = json.loads(lakelog(name, *arguments, "--json").out)
        (documented,) = _examples(name)
        assert list(real) == list(documented)
        assert _fields(documented) <= _fields(real)


def test_the_documented_json_of_an_update_is_what_comes(tmp_path: Path) -> None:
    table = str(tmp_path / "flights")
    write_arrow(table, pa.table({"day": ["2026-01-31"], "delay": [20], "late": [False]}))
    (documented,) = _examples("delete and update")
    options = ("--set", "late=delay > 15", "--where", documented["where"])
    real = json.loads(lakelog("update", table, *options, "--json").out)
    assert list(real) == list(documented)
    assert list(real["metrics"]) == list(documented["metrics"])
    assert real["set"] == documented["set"]


@pytest.mark.parametrize(
    ("name", "options", "free"),
    [
        ("schema", (), (".schema",)),
        ("sample", ("--limit", "1"), ()),
        ("diff", ("0",), (".columns", ".properties", ".transactions")),
        (
            "properties",
            ("--set", "delta.enableDeletionVectors=true", "--yes"),
            (".properties", ".changed"),
        ),
    ],
)
def test_the_documented_json_of_a_table_with_rows_is_what_comes(
    name: str, options: tuple[str, ...], free: tuple[str, ...], tmp_path: Path
) -> None:
    table = str(tmp_path / "flights")
    write_arrow(table, pa.table({"id": [1], "day": ["2026-01-31"]}), mode="append")
    set_properties(table, {"delta.enableChangeDataFeed": "true"})
    (documented,) = _examples(name)
    real = json.loads(lakelog(name, table, *options, "--json").out)
    assert list(real) == list(documented), "the same fields in the same order"
    assert {f for f in _fields(real) if not f.startswith(free)} == {
        f for f in _fields(documented) if not f.startswith(free)
    }


@pytest.mark.parametrize("name", DESCRIBED)
def test_every_option_of_a_command_is_on_the_page_and_the_other_way_round(name: str) -> None:
    commands = [app.get_command(click.Context(app), each) for each in name.split(" and ")]
    real = {
        option
        for command in commands
        for param in command.params  # type: ignore[union-attr]
        if isinstance(param, click.Option)
        for option in param.opts
        if option.startswith("--")
    }
    documented = set(
        re.findall(r"--[a-z][a-z-]*", re.sub(r"```.*?```", "", _section(name), flags=re.S))
    )
    shared_prose = {"--version", "--timestamp"}
    assert real - documented - SHARED - shared_prose == set()
    assert documented - real - SHARED == set()


def test_the_page_lists_every_command() -> None:
    listed = set(re.findall(r"^\| \[?`lakelog ([a-z]+) ", PAGE, re.MULTILINE))
    assert listed == set(COMMANDS)
