"""No command lets a table, a URI or a log of others speak to the terminal, or shows a secret."""

from __future__ import annotations

import json
import logging
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cli import startup
from lakelog.cli.app import COMMANDS, app
from lakelog.cli.output import error_line, facts, line, print_csv, print_json, table
from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.engine.shown import printable
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.examples import examples
from support.raw_log import RawLog
from support.terminal import runner, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ESCAPES = (
    "\x1b[2J",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b]0;title\x1b\\",
    "\x9b31m",
    "\x9d52;c;eA==\x9c",
    "\u202ecod.exe\u202c",
    "\u2066x\u2069",
    "\u061c",
    "\u2028",
    "\x7f",
    "\x08\x08",
    "\r",
    "\U000e0041",
    "\ufeff",
)
HOSTILE = "[bold]x" + "".join(ESCAPES)
SEEN = {"\n", "\u200c", "\u200d"}


def spoken(text: str) -> set[str]:
    """Characters that a terminal obeys, or hides."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return {each for each in text if unicodedata.category(each) in kinds} - SEEN


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table that says it everywhere: names, comments, properties, values, paths, history."""
    folder = tmp_path_factory.mktemp("hostile") / f"t{HOSTILE.replace('/', '')}"
    path = str(folder)
    text = PrimitiveType("string")
    column = f"n{HOSTILE}"
    schema = StructType(
        (
            StructField("id", PrimitiveType("long"), metadata={"comment": HOSTILE}),
            StructField(column, text, metadata={"comment": HOSTILE}),
            StructField("p", text),
        )
    )
    create_table(
        path,
        schema,
        name=HOSTILE,
        description=HOSTILE,
        partition_by=["p"],
        properties={
            "delta.columnMapping.mode": "name",
            f"own.{HOSTILE}": HOSTILE,
            "delta.enableDeletionVectors": "true",
        },
        user_metadata=HOSTILE,
    )
    for number in range(3):
        rows = pa.table({"id": [number, number + 10], column: [HOSTILE] * 2, "p": [HOSTILE] * 2})
        write_arrow(
            path, rows, mode="append", user_metadata=HOSTILE, app_id=HOSTILE, app_version=number
        )
    delete_rows(path, "id = 0", user_metadata=HOSTILE)
    return path


def events(folder: Path, uri: str) -> str:
    """A file of commit events, two of which met."""
    file = folder / "events.jsonl"
    log = DeltaLog.for_table(uri, {"spark.lakelog.commitEvents.path": str(file)})
    write_arrow(log, pa.table({"id": [7], f"n{HOSTILE}": ["x"], "p": ["y"]}), mode="append")
    record = json.loads(file.read_text().split("\n")[0])
    met = {**record, "outcome": "conflict", "conflict": HOSTILE, "job": HOSTILE, "table": HOSTILE}
    file.write_text("".join(f"{json.dumps(each)}\n" for each in (record, met, met)))
    return str(file)


ARGUMENTS: dict[str, list[list[str]]] = {
    "alter": [["{uri}", "--drop", "nothing"]],
    "clone": [["{uri}", "{new}"]],
    "convert": [["{uri}"]],
    "merge": [["{uri}", "{rows}", "--on", "target.id = source.id"]],
    "rename": [["{uri}", "new"]],
    "repair": [["{uri}", "--dry-run"]],
    "report": [["{uri}", "-o", "{new}"], ["{uri}", "--json"]],
    "append": [["{uri}", "--app-id", f"a{HOSTILE}"]],
    "write": [["{uri}", "{rows}"], ["{uri}", "{rows}", "--mode", "append"]],
    "checkpoint": [["{uri}"], ["{uri}", "--dry-run"]],
    "conflicts": [["{events}"]],
    "delete": [["{uri}", "--where", "id = 11"], ["{uri}", "--where", "nothing = 1"]],
    "describe": [["{uri}"]],
    "diff": [["{uri}", "0"], ["{uri}", "1", "3"]],
    "doctor": [["{uri}", "--read-only"]],
    "drop": [["{uri}", "--yes"]],
    "files": [["{uri}"], ["{uri}", "--stats"], ["{uri}", "--summary"]],
    "history": [["{uri}"]],
    "manifest": [["{uri}"]],
    "migrate": [["{uri}", "--to", "conditional"]],
    "optimize": [["{uri}", "--dry-run"], ["{uri}"]],
    "properties": [["{uri}"], ["{uri}", "--set", f"a.{HOSTILE}={HOSTILE}", "--dry-run"]],
    "restore": [["{uri}", "--version", "1", "--dry-run"], ["{uri}", "--version", "99"]],
    "sample": [
        ["{uri}"],
        ["{uri}", "--column", f"n{HOSTILE}"],
        ["{uri}", "--column", "nothing"],
        ["{uri}", "--format", "jsonl"],
    ],
    "schema": [["{uri}"], ["{uri}", "--sql"]],
    "update": [["{uri}", "--set", "id=id + 1", "--where", "id = 12"], ["{uri}", "--set", "x=1"]],
    "vacuum": [["{uri}", "--dry-run"]],
    # Speaks of no table; the kit makes its own.
    "conformance": [],
    "serve": [],
    "run": [],
    # Prints its own address alone; `ui/test_ui_pages.py` looks at its pages.
    "ui": [],
}
NO_JSON = {("sample", "--format"), ("schema", "--sql")}


def runs() -> list[tuple[str, list[str]]]:
    found = []
    for command, ways in ARGUMENTS.items():
        for way in ways:
            found.append((command, way))
            if not any((command, option) in NO_JSON for option in way):
                found.append((command, [*way, "--json"]))
    return found


def filled(way: list[str], uri: str, folder: Path) -> list[str]:
    """The arguments, with places in a folder for what they name."""
    named = folder / HOSTILE.replace("/", "")
    rows = folder / f"{named.name}.json"
    rows.write_text('{"id": 21, "p": "y"}\n')
    given = {"{uri}": uri, "{new}": str(named), "{rows}": str(rows)}
    if "{events}" in way:
        given["{events}"] = events(folder, uri)
    return [given.get(each, each) for each in way]


def test_every_command_is_driven() -> None:
    assert ARGUMENTS.keys() == COMMANDS.keys()


@pytest.mark.parametrize(
    ("command", "way"), runs(), ids=[f"{number} {each[0]}" for number, each in enumerate(runs())]
)
def test_nothing_of_a_table_reaches_the_terminal_as_a_command(
    command: str, way: list[str], uri: str, tmp_path: Path
) -> None:
    result = runner().invoke(app, [command, *filled(way, uri, tmp_path)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert said(result)
    assert not spoken(result.stdout + result.stderr)
    if "--json" in way and result.exit_code == 0:
        shown = json.dumps(json.loads(result.stdout), ensure_ascii=False)
        assert command in ("doctor", "optimize", "vacuum", "checkpoint", "migrate") or (
            "\\u001b" in shown or command in ("delete", "update", "restore", "manifest")
        )


BROKEN: dict[str, Callable[[RawLog], object]] = {
    "not JSON": lambda log: log.path(0).write_text(HOSTILE),
    "another action": lambda log: log.path(0).write_text(json.dumps({"add": {"path": HOSTILE}})),
    "a feature": lambda log: log.path(0).write_text(
        json.dumps(
            {
                "protocol": {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": [HOSTILE],
                    "writerFeatures": [HOSTILE],
                }
            }
        )
    ),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize(
    "command", sorted(set(ARGUMENTS) - {"conformance", "serve", "conflicts", "run", "ui"})
)
def test_nor_of_a_table_that_can_not_be_read(command: str, name: str, tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t").create()
    BROKEN[name](log)
    way = filled(ARGUMENTS[command][0], log.table, tmp_path)
    result = runner().invoke(app, [command, *way])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert not spoken(said(result))


@settings(max_examples=examples(24), deadline=None)
@given(st.text(), st.text())
def test_json_is_the_same_document_with_nothing_for_a_terminal(name: str, value: str) -> None:
    capture = runner()
    data = {name: [value, {"x": name}], "n": 1}
    with capture.isolation() as streams:
        print_json(data)
        sys.stdout.flush()
        out = streams[0].getvalue().decode("utf-8", "surrogatepass")
    assert json.loads(out) == data
    assert not spoken(out)


@settings(max_examples=examples(24), deadline=None)
@given(st.text())
def test_what_is_printed_for_people_is_escaped_once(text: str) -> None:
    shown = printable(text)
    assert not spoken(shown)
    assert "\n" not in shown
    assert printable(shown) == shown
    assert (shown == text) == (not spoken(text) and "\n" not in text)


def test_every_way_to_print_escapes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line(HOSTILE)
    error_line(HOSTILE)
    facts([(HOSTILE, HOSTILE)])
    table([HOSTILE], [[HOSTILE], [(HOSTILE, "red")]], whole=[HOSTILE], spare=[HOSTILE])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_csv([HOSTILE], [[HOSTILE]])
    said = capsys.readouterr()
    assert "[bold]x" in said.out
    assert not spoken(said.out + said.err)


def test_warnings_and_tracebacks_of_the_program_are_escaped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    last = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(logging, "lastResort", last)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    startup.escape_what_others_print()
    last.handle(logging.LogRecord("lakelog", logging.WARNING, "", 1, "%s", (HOSTILE,), None))
    error = RuntimeError(HOSTILE)
    sys.excepthook(RuntimeError, error, None)
    said = capsys.readouterr().err
    assert said.count("[bold]x") == 2
    assert not spoken(said)


SECRETS = ["hunter2hunter2", "wJalr/XUtn+FEMI/K7MDENG=", "a:b@c%40"]
REFUSED = [
    *(f"s3a://AKIAKEY:{secret}@bucket/t" for secret in SECRETS),
    *(f"{scheme}://user:hunter2hunter2@host/t" for scheme in ("gs", "hdfs", "oss", "x-own")),
    "abfss://c@account.dfs.core.windows.net/t?sv=1&sig=hunter2hunter2",
    "s3://bucket/t?X-Amz-Signature=hunter2hunter2&x=1",
]
WITHOUT_BUCKET = ["s3a:/bucket/t", "s3:bucket/t", "s3a:///t", "gs:/b/t", "abfss:/c/t", "az:/c/t"]


@pytest.mark.parametrize("command", sorted(set(ARGUMENTS) - {"serve", "conflicts"}))
def test_a_uri_that_is_none_is_reported_in_a_line(
    command: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ways: list[list[str]] = ARGUMENTS[command] or [["{uri}"]]
    for uri in (*REFUSED, *WITHOUT_BUCKET, "s3a://", "s3a://b!d/t", "abfss://@x/t"):
        given: Any = [uri if each == "{uri}" else each for each in ways[0]]
        result = runner().invoke(app, [command, *given])
        # To the doctor it is a finding.
        code = 1 if command == "doctor" else 2
        assert result.exit_code == code, (uri, said(result), result.exception)
        assert isinstance(result.exception, SystemExit), (uri, result.exception)
        printed = said(result) + caplog.text
        assert not [each for each in (*SECRETS, "K7MDENG") if each in printed], uri
