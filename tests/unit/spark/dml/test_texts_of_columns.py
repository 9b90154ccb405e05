"""The text of a Column decides nothing: it is for people, or asks a question that Spark answers."""

from __future__ import annotations

import ast
from pathlib import Path

import lakelog.spark

SPARK = Path(lakelog.spark.__file__).parent

# Where a text is looked at, and what has the last word there.
ASKS = {
    "dml/column_text.py _guesses": "sameSemantics of two projections",
    "dml/merge/checked_expressions.py refuse_stars": "the analysis of an order by the expression",
    "dml/given_expressions.py may_ask_metadata": "the analysis, which need not use what is there",
    "dml/needed.py columns_needed": "the analysis over fewer columns",
    "format/enable_names.py _forgetting": "names of views, and of no Column",
    "format/enable_names.py method": "the same",
}
COLUMNS = {"column", "condition", "expression", "given"}
LOOKS = {
    *("search", "match", "fullmatch", "findall", "finditer", "sub", "split"),
    *("startswith", "endswith", "find", "index", "count", "partition"),
}


def _is_text(node: ast.AST, known: set[str]) -> bool:
    """Whether something within a node is the text of a Column."""
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and each.id in known | {"text_of"}:
            return True
        if isinstance(each, ast.Attribute) and each.attr in ("toString", "_jc", "_expr"):
            return True
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "str":
            inside = each.args[0] if each.args else None
            name = getattr(inside, "id", getattr(inside, "attr", ""))
            if name in COLUMNS or name.endswith("_column"):
                return True
    return False


def _looks_at_a_text(function: ast.FunctionDef) -> bool:
    known: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and _is_text(node.value, known):
            known |= {each.id for each in node.targets if isinstance(each, ast.Name)}
    for node in ast.walk(function):
        parts: list[ast.AST] = []
        if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in LOOKS:
            parts = [*ast.iter_child_nodes(node)]
        if any(_is_text(each, known) for each in parts):
            return True
    return False


def test_no_function_judges_by_the_text_of_a_column() -> None:
    found = set()
    for path in sorted(SPARK.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if "Column" not in source and "text_of" not in source:
            continue
        for each in ast.walk(ast.parse(source)):
            if isinstance(each, ast.FunctionDef) and _looks_at_a_text(each):
                found.add(f"{path.relative_to(SPARK).as_posix()} {each.name}")
    assert found == set(ASKS)


OLD = """
def name(self, column):
    for each in self.names:
        if str(column) == str(col(each)):
            return each

def has_query(given):
    text = text_of(given)
    return QUERY.search(text) is not None

def shown(given):
    return f"{text_of(given)} is refused"
"""


def test_the_rule_sees_what_it_forbids() -> None:
    functions = [each for each in ast.parse(OLD).body if isinstance(each, ast.FunctionDef)]
    assert [_looks_at_a_text(each) for each in functions] == [True, True, False]
