"""What `lakelog.cli` and the command `lakelog` show."""

from __future__ import annotations

import importlib

import pytest

from lakelog.cli.app import COMMANDS

# A name that goes from here is a name that breaks somebody's import.
SURFACE = {
    "lakelog.cli": """
        main
    """,
}


@pytest.mark.parametrize("module", SURFACE)
def test_the_public_names_are_these(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(SURFACE[module].split())
    assert not [name for name in found.__all__ if not hasattr(found, name)]


def test_the_commands_are_these() -> None:
    assert sorted(COMMANDS) == sorted(
        [
            "alter",
            "append",
            "checkpoint",
            "clone",
            "conflicts",
            "conformance",
            "convert",
            "delete",
            "describe",
            "diff",
            "doctor",
            "drop",
            "files",
            "history",
            "manifest",
            "merge",
            "migrate",
            "optimize",
            "properties",
            "rename",
            "repair",
            "report",
            "restore",
            "run",
            "sample",
            "schema",
            "serve",
            "ui",
            "update",
            "vacuum",
            "write",
        ]
    )
