"""The frame of the command line: what exists is listed, loaded when asked for, and exits well."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from lakelog.core.cli import _app
from lakelog.core.cli._app import COMMANDS, app

HEAVY = ("pyspark", "pandas", "boto3", "google.cloud.storage", "azure.storage.blob", "pyarrow")


def _run(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(args))
    return result.exit_code, result.output


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
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 2
    assert result.stderr == "lakelog: these credentials may not read\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom lakelog.core.cli import main\n"
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
    code = (
        f"import sys\nsys.modules[{missing!r}] = None\nfrom lakelog.core.cli import main\nmain()\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    assert "pip install 'lakelog[cli]'" in result.stderr
    assert "Traceback" not in result.stderr
