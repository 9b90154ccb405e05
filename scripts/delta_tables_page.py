"""Write docs/delta-tables.md from `lakelog.spark`, or report that it is out of date.

python scripts/delta_tables_page.py            # writes the page
python scripts/delta_tables_page.py --check    # exit code 1 where the page and the code differ
"""

from __future__ import annotations

import importlib.util
import inspect
import pkgutil
import sys
from pathlib import Path

import lakelog.spark

PAGE = Path(__file__).parents[1] / "docs" / "delta-tables.md"
COMMAND = "python scripts/delta_tables_page.py"

METHODS = {
    "DeltaTable": (
        *("addFeatureSupport", "alias", "clone", "cloneAtTimestamp", "cloneAtVersion"),
        *("convertToDelta", "create", "createIfNotExists", "createOrReplace", "delete", "detail"),
        *("dropFeatureSupport", "forName", "forPath", "generate", "history", "isDeltaTable"),
        *("merge", "optimize", "replace", "restoreToTimestamp", "restoreToVersion", "toDF"),
        *("update", "upgradeTableProtocol", "vacuum"),
    ),
    "DeltaTableBuilder": (
        *("addColumn", "addColumns", "clusterBy", "comment", "execute", "location"),
        *("partitionedBy", "property", "tableName"),
    ),
    "DeltaMergeBuilder": (
        *("execute", "whenMatchedDelete", "whenMatchedUpdate", "whenMatchedUpdateAll"),
        *("whenNotMatchedBySourceDelete", "whenNotMatchedBySourceUpdate"),
        *("whenNotMatchedInsert", "whenNotMatchedInsertAll", "withSchemaEvolution"),
    ),
    "DeltaOptimizeBuilder": ("executeCompaction", "executeZOrderBy", "where"),
    "IdentityGenerator": ("start", "step"),
}
"""Class of delta-spark's `delta.tables` -> its public methods, or the fields of a data class."""

HEAD = f"""\
# delta.tables, method by method

Every public method of delta-spark's Python package `delta.tables`, and what lakelog has of it. The
page is written from the code (`{COMMAND}`), and a test fails where they
differ.

*Yes*: the method is there under its own name, with delta-spark's arguments. *Refused on purpose*:
it is there, and its error says what to use instead. *Missing*: it is not there yet.
"""


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


def state(cls: type | None, method: str) -> str:
    """What there is of a method, in words."""
    # A field without a default is an annotation only.
    if cls is None or not (hasattr(cls, method) or method in inspect.get_annotations(cls)):
        return "**missing**"
    doc = inspect.getdoc(getattr(cls, method, None)) or ""
    return "refused on purpose" if doc.startswith("Refuse") else "yes"


def page() -> str:
    """The page as the code says."""
    parts = [HEAD]
    for name, methods in METHODS.items():
        cls = ours(name)
        rows = [(method, state(cls, method)) for method in methods]
        have = sum(each == "yes" for _, each in rows)
        parts.append(f"\n## {name}\n\n{have} of {len(rows)}.\n\n| Method | lakelog |\n|---|---|\n")
        parts += [f"| `{method}` | {each} |\n" for method, each in rows]
        more = sorted(set(_own_methods(cls)) - set(methods)) if name == "DeltaTable" else []
        if more:
            listed = ", ".join(f"`{each}`" for each in more)
            parts.append(f"\nBeside these, lakelog has {listed}.\n")
    return "".join(parts)


def _own_methods(cls: type | None) -> list[str]:
    return [] if cls is None else [name for name in dir(cls) if not name.startswith("_")]


def main() -> int:
    """Write the page or, with `--check`, compare it."""
    wanted = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{PAGE} is out of date: run {COMMAND}", file=sys.stderr)  # noqa: T201
    return 1


if __name__ == "__main__":
    sys.exit(main())
