"""The modules by which an engine gets at the core."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from lakelog.core import engine

FOLDER = Path(engine.__file__).parent
MODULES = sorted(each.stem for each in FOLDER.glob("*.py") if each.stem != "__init__")
MOST_MODULES = 15
"""What somebody who builds an engine has to look through."""


def _imported(module: str) -> dict[str, str]:
    """Name -> home: what type checkers take the module to show."""
    tree = ast.parse((FOLDER / f"{module}.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    nodes = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {each.name: str(node.module) for node in nodes for each in node.names}


def test_the_door_is_small() -> None:
    assert len(list(FOLDER.glob("*.py"))) <= MOST_MODULES


@pytest.mark.parametrize("module", MODULES)
def test_a_module_gives_the_names_that_it_is_said_to_have(module: str) -> None:
    door = importlib.import_module(f"lakelog.core.engine.{module}")
    for name, home in _imported(module).items():
        assert getattr(door, name) is getattr(importlib.import_module(home), name), name


def test_nothing_is_shown_twice() -> None:
    shown = [each for module in MODULES for each in _imported(module).items()]
    assert len(shown) == len(set(shown))


def test_what_is_not_there_is_an_attribute_error() -> None:
    scan = importlib.import_module("lakelog.core.engine.scan")
    with pytest.raises(AttributeError, match=r"'lakelog\.core\.engine\.scan' .* 'plan'"):
        _ = scan.plan
