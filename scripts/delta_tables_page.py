"""Write docs/delta-tables.md from `lakelog.spark`, or report that it is out of date.

python scripts/delta_tables_page.py                  # writes the page
python scripts/delta_tables_page.py --check          # exit code 1 where page and code differ
python scripts/delta_tables_page.py --read FOLDER    # first reads delta-spark's package there

What delta-spark has is in `delta_tables.json`, which `--read` writes.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import pkgutil
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

from written_page import write_or_compare

import lakelog.spark

PAGE = Path(__file__).parents[1] / "docs" / "delta-tables.md"
COMMAND = "python scripts/delta_tables_page.py"

RECORD = Path(__file__).with_name("delta_tables.json")
"""Class of delta-spark's `delta.tables` -> its public methods with their arguments (`...` is any
default that is no literal), or the fields of a data class, without arguments."""

HEAD = f"""\
# delta.tables, method by method

Every public method of delta-spark's Python package `delta.tables`, and what lakelog has of it. The
page is written from the source of both (`{COMMAND}`), and a test fails
where they differ.

*Yes*: the method is there under its own name, with delta-spark's arguments, in their order and with
their defaults; it may take more. *Refused on purpose*: it is there, and its error says what to use
instead. *Other arguments*: a call of delta-spark's may mean something else. *Missing*: it is not
there yet.
"""


def read_package(folder: Path) -> dict[str, dict[str, str | None]]:
    """The public classes and methods of delta-spark's `delta.tables`, from its source.

    Args:
        folder: has the package `delta`.
    """
    tree = ast.parse((folder / "delta" / "tables.py").read_text("utf-8"))
    found: dict[str, dict[str, str | None]] = {}
    for each in tree.body:
        if not isinstance(each, ast.ClassDef) or each.name.startswith("_"):
            continue
        methods: dict[str, str | None] = {}
        for node in each.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                # Of the forms of an overloaded method the last has the arguments of all.
                methods[node.name] = _arguments(node.args)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                methods[node.target.id] = None
        found[each.name] = dict(sorted(methods.items()))
    return found


def _arguments(given: ast.arguments) -> str:
    named = given.args[1:]
    defaults = [None] * (len(named) - len(given.defaults)) + list(given.defaults)
    shown = [
        each.arg if default is None else f"{each.arg}={_default(default)}"
        for each, default in zip(named, defaults, strict=True)
    ]
    if given.vararg is not None:
        shown.append(f"*{given.vararg.arg}")
    return ", ".join(shown)


def _default(node: ast.expr) -> str:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return "..."
    # Which empty dict it is does not matter.
    return "..." if isinstance(value, dict | list) else repr(value)


def ours(name: str) -> type | None:
    """The class of a name in `lakelog.spark`; `None` where it has none."""
    if name in lakelog.spark.__all__:
        found = getattr(lakelog.spark, name)
        return found if isinstance(found, type) else None
    for module in pkgutil.walk_packages(lakelog.spark.__path__, "lakelog.spark."):
        if not module.ispkg and name in (Path(str(_path(module.name))).read_text("utf-8")):
            found = vars(importlib.import_module(module.name)).get(name)
            if isinstance(found, type):
                return found
    return None


def _path(module: str) -> object:
    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


def takes(method: Any, wanted: str) -> bool:
    """Whether a method takes some arguments in their order and with their defaults, or more.

    Args:
        method: of a class, with or without `self`.
        wanted: the arguments: `path, mode=None, *names`.
    """
    found = [p for p in inspect.signature(method).parameters.values() if p.name != "self"]
    named = [each for each in wanted.split(", ") if each]
    for each, parameter in zip_longest(named, found):
        if each is None:
            if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
                continue
            return False
        name, _, default = each.partition("=")
        if parameter is None or name.removeprefix("*") != parameter.name:
            return False
        if name.startswith("*") != (parameter.kind is parameter.VAR_POSITIONAL):
            return False
        has = parameter.default is not parameter.empty
        if has != bool(default) or (has and default not in ("...", repr(parameter.default))):
            return False
    return True


def state(cls: type | None, method: str, arguments: str | None) -> str:
    """What there is of a method, in words; the arguments of a field are `None`."""
    # A field without a default is an annotation only.
    if cls is None or not (hasattr(cls, method) or method in inspect.get_annotations(cls)):
        return "**missing**"
    if arguments is not None and not takes(getattr(cls, method), arguments):
        return "**other arguments**"
    doc = inspect.getdoc(getattr(cls, method, None)) or ""
    return "refused on purpose" if doc.startswith("Refuse") else "yes"


def page() -> str:
    """The page as the code says."""
    parts = [HEAD]
    for name, methods in json.loads(RECORD.read_text("utf-8")).items():
        cls = ours(name)
        rows = [(method, state(cls, method, taken)) for method, taken in methods.items()]
        have = sum(each == "yes" for _, each in rows)
        parts.append(f"\n## {name}\n\n{have} of {len(rows)}.\n\n| Method | lakelog |\n|---|---|\n")
        parts += [f"| `{method}` | {each} |\n" for method, each in rows]
        more = sorted(set(_own_methods(cls)) - set(methods)) if name == "DeltaTable" else []
        if more:
            shown = ", ".join(f"`{each}`" for each in more)
            parts.append(f"\nBeside these, lakelog has {shown}.\n")
    return "".join(parts)


def _own_methods(cls: type | None) -> list[str]:
    return [] if cls is None else [name for name in dir(cls) if not name.startswith("_")]


def main() -> int:
    """Write the page or, with `--check`, compare it."""
    arguments = sys.argv[1:]
    if "--read" in arguments:
        found = read_package(Path(arguments[arguments.index("--read") + 1]))
        RECORD.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return write_or_compare(PAGE, page(), COMMAND)


if __name__ == "__main__":
    sys.exit(main())
