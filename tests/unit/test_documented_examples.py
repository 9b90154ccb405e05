"""The list of the examples of Delta's documentation names tests that exist, and all of them."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
MODULES = ("test_delta_documentation.py", "test_delta_documentation_more.py")


def _listed() -> set[str]:
    # Read, not imported: the module needs Spark's part, and this none of it.
    tree = ast.parse((TESTS / "support" / "documented.py").read_text(encoding="utf-8"))
    text = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return {str(each) for each in text if str(each).startswith("test_")}


def test_each_example_has_a_test_and_each_test_is_listed() -> None:
    found = set()
    for module in MODULES:
        tree = ast.parse((TESTS / "integration" / module).read_text(encoding="utf-8"))
        functions = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        found |= {name for name in functions if name.startswith("test_")}
    assert _listed() == found
