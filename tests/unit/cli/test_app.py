"""The frame of the command line: what exists is listed, loaded when asked for, and exits well."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pyarrow as pa
import pytest

from lakelog.cli import app as _app
from lakelog.cli.app import COMMANDS, SECTIONS, app
from lakelog.core import write_arrow
from support.terminal import runner, said

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = (
    "lakelog.core.delta_log",
    "lakelog.cli.doctor.doctor_command",
    "pyspark",
    "pandas",
    "boto3",
    "google.cloud.storage",
    "azure.storage.blob",
    "pyarrow",
)


def _run(*args: str) -> tuple[int, str]:
    result = runner().invoke(app, list(args))
    return result.exit_code, said(result)


def test_help_lists_the_commands_with_a_line_each() -> None:
    code, output = _run("--help")
    assert code == 0
    assert all(name in output for name in COMMANDS)
    assert "Probe a storage" in output


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_that_is_listed_is_a_click_command_with_help(name: str) -> None:
    code, output = _run(name, "--help")
    assert code == 0
    assert f"{name} [OPTIONS]" in output


def test_every_command_has_its_place_in_the_help_with_its_own_short_help() -> None:
    listed = [pair for section in SECTIONS.values() for pair in section.items()]
    assert sorted(name for name, _ in listed) == sorted(COMMANDS)
    for name, text in listed:
        command = app.get_command(click.Context(app), name)
        assert command is not None
        assert command.short_help == text


def test_a_misspelt_command_is_told_the_right_one() -> None:
    code, output = _run("docter")
    assert code == 2
    assert "Did you mean 'doctor'" in output


def test_the_version_is_that_of_the_package() -> None:
    assert _run("--version") == (0, f"lakelog {importlib.metadata.version('lakelog')}\n")


def test_an_error_of_the_layers_below_is_one_line_and_exit_code_2(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @click.command()
    def failing() -> None:
        raise PermissionError("these credentials may not read")

    monkeypatch.setattr(_app._LazyGroup, "get_command", lambda *_: failing)
    result = runner().invoke(app, ["doctor"])
    assert result.exit_code == 2
    assert result.stderr == "lakelog: these credentials may not read\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom lakelog.cli import main\n"
        "sys.argv = ['lakelog', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stderr.strip() == "[]"


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_the_program_says_what_to_install(missing: str) -> None:
    code = f"import sys\nsys.modules[{missing!r}] = None\nfrom lakelog.cli import main\nmain()\n"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    assert "pip install '.[cli]'" in result.stderr
    assert "Traceback" not in result.stderr


RUN = "import sys\nfrom lakelog.cli import main\n"


def _program(before: str, *args: str) -> list[str]:
    return [sys.executable, "-c", f"{RUN}{before}\nsys.argv = {['lakelog', *args]!r}\nmain()\n"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("tables") / "t")
    for n in range(3):
        write_arrow(uri, pa.table({"n": [n]}), mode="append")
    return uri


@pytest.mark.parametrize("command", ["history", "files", "describe", "conformance", "doctor"])
def test_ctrl_c_ends_every_command_with_130(command: str, tmp_path: Path) -> None:
    # At the first look at the storage, wherever the command takes it.
    interrupt = (
        "from lakelog.logstores import LocalLogStore\n"
        "def ctrl_c(*_, **__):\n    raise KeyboardInterrupt\n"
        "LocalLogStore.list_from = LocalLogStore.write = ctrl_c\n"
        "LocalLogStore.read = LocalLogStore.read_bytes = ctrl_c"
    )
    done = subprocess.run(
        _program(interrupt, command, str(tmp_path)), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.strip()) == (130, "lakelog: interrupted")


@pytest.mark.parametrize(
    "args", [("history",), ("history", "--json"), ("files",), ("sample", "--format", "csv")]
)
def test_a_reader_that_has_seen_enough_is_no_failure(args: tuple[str, ...], table: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            _program("", args[0], table, *args[1:]), stdout=pipe, stderr=subprocess.PIPE
        )
    assert (done.returncode, done.stderr) == (0, b"")
