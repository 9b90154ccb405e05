"""What the commands of a page for a clone name: files, extras, targets of make, options of pytest.

Such a block can't run within a test, because it installs lakelog or runs the tests. But each name
in it can be looked up.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
import tomllib
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from support.pages import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

__all__ = ["commands", "missing", "targets"]

_FOR_PATHS: Final = ("python", "docker", "airflow", "dagster", "dbt", "source", "python3")
"""Programs whose arguments are looked at for paths alone."""
_FOLDERS: Final = ("benchmarks/", "docker/", "docs/", "examples/", "scripts/", "tests/")
_MAKEFILE: Final = (REPOSITORY / "Makefile").read_text("utf-8")
_PROJECT: Final[Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]


def targets() -> set[str]:
    """The targets of the Makefile that can be asked for."""
    return set(re.findall(r"^([a-z-]+):.*## ", _MAKEFILE, re.MULTILINE))


def commands(code: str) -> Iterator[list[str]]:
    """The commands of a block, each as its words."""
    for line in re.sub(r"\\\n\s*", "", code).splitlines():
        words: list[str] = []
        for word in [*shlex.split(line, comments=True), "&&"]:
            if word != "&&":
                words.append(word)
            elif words:
                yield words
                words = []


def missing(command: list[str], config: pytest.Config) -> list[str]:
    """The words of a command that name something that isn't there."""
    found = [word for word in command if not _path_is_there(word)]
    while command and re.match(r"[A-Z_]+=", command[0]):
        found += _missing_variables([command[0]])
        command = command[1:]
    if not command:
        return found
    program, arguments = command[0].rpartition("/")[2], command[1:]
    if program in ("python", "python3") and arguments[:2] == ["-m", "pytest"]:
        program, arguments = "pytest", arguments[2:]
    match program:
        case "export":
            return found + _missing_variables(arguments)
        case "cd":
            known = (_PROJECT["name"], *(each.rstrip("/") for each in _FOLDERS))
            return found + [
                each for each in arguments if each not in known and not (REPOSITORY / each).is_dir()
            ]
        case "make":
            return found + _missing_for_make(arguments)
        case "pip":
            return found + _missing_for_pip(arguments)
        case "pytest":
            return found + [each for each in arguments if not _pytest_knows(each, config)]
        case "python" if arguments[0] == "-m":
            name = arguments[1]
            file = REPOSITORY / "tests" / name.replace(".", "/")
            there = file.is_dir() or file.with_suffix(".py").is_file() or find_spec(name)
            return found if there else [*found, name]
        case "python" if arguments[0] == "-c":
            ast.parse(arguments[1])
            return found
        case "lakelog":
            return found + _missing_for_lakelog(arguments)
        case _:
            return found if program in _FOR_PATHS else [*found, program]


def _path_is_there(word: str) -> bool:
    value = word.rpartition("=")[2].replace("$PWD/", "")
    return not value.startswith(_FOLDERS) or (REPOSITORY / value).exists()


def _missing_variables(assignments: list[str]) -> list[str]:
    names = [each.partition("=")[0] for each in assignments]
    return [name for name in names if name.startswith("LAKELOG_") and name not in _variables()]


@functools.cache
def _variables() -> set[str]:
    """The variables that the tests read."""
    tests = (file.read_text("utf-8") for file in (REPOSITORY / "tests").rglob("*.py"))
    read = re.compile(r"""(?:environ(?:\.get\(|\[)|= )["'](LAKELOG_\w+)""")
    return {name for text in tests for name in read.findall(text)}


def _missing_for_make(arguments: list[str]) -> list[str]:
    return [
        each
        for each in arguments
        if (
            f"$({each.partition('=')[0]})" not in _MAKEFILE
            if "=" in each
            else each not in targets()
        )
    ]


def _missing_for_pip(arguments: list[str]) -> list[str]:
    """Extras that lakelog hasn't, another version of its wheel, releases that no test installs."""
    extras = _PROJECT["optional-dependencies"]
    known = "".join(
        (REPOSITORY / file).read_text("utf-8")
        for file in (
            "pyproject.toml",
            "tests/support/dbt_tool.py",
            "tests/support/recipes/__init__.py",
        )
    )
    found = []
    for each in arguments[1:]:
        ours = re.fullmatch(r"(?:\.|\./(?P<wheel>\S+\.whl))(?:\[(?P<extras>.*)\])?", each)
        if ours:
            found += [
                name for name in (ours["extras"] or "").split(",") if name and name not in extras
            ]
            wheel = ours["wheel"]
            if wheel and not wheel.startswith(
                f"{_PROJECT['name']}-{_PROJECT['version']}-py3-none-any"
            ):
                found.append(each)
        elif re.search(r"[=<>]", each) and f'"{each}"' not in known:
            found.append(each)
    return found


def _pytest_knows(word: str, config: pytest.Config) -> bool:
    if not word.startswith("--"):
        return True
    try:
        config.getoption(word.partition("=")[0].removeprefix("--").replace("-", "_"))
    except ValueError:
        return False
    return True


def _missing_for_lakelog(arguments: list[str]) -> list[str]:
    import click

    from lakelog.cli.app import app

    return [] if arguments[0] in app.list_commands(click.Context(app)) else arguments[:1]
