"""Every test of `dbt-tests-adapter`, as the package has it; pytest collects them in dbt's Python.

The package holds classes to derive from. Of each family the last ones are taken: those before them
have no models of their own.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

# What Spark does not have, dbt-spark runs on Databricks alone, or is about Postgres by name; and
# macros of dbt-spark, whose SQL no format of tables changes.
_ELSEWHERE = (
    *("materialized_view", "functions", "python_model", "dbt_debug", "catalog_integrations"),
    "utils",
)
# dbt-spark looks at all 20,000 rows of its seed for each of them, for hours.
_TOO_LONG = "BaseSeedSpecificFormats"

_CONFS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.ui.showConsoleProgress": "false",
}


@pytest.fixture(scope="class")
def dbt_profile_target() -> dict[str, Any]:
    """The profile that docs/dbt.md has."""
    return {
        "type": "spark",
        "method": "session",
        "host": "NA",
        "threads": 1,
        "server_side_parameters": dict(_CONFS),
    }


@pytest.fixture(scope="class")
def dbt_project_yml(project_root: Any, dbt_project_yml: dict[str, Any]) -> dict[str, Any]:
    """The project of a test, with what makes its tables those of Delta."""
    for kind in ("models", "seeds", "snapshots"):
        dbt_project_yml.setdefault(kind, {}).setdefault("+file_format", "delta")
    dbt_project_yml["models"].setdefault("+incremental_strategy", "merge")
    Path(project_root, "dbt_project.yml").write_text(yaml.safe_dump(dbt_project_yml))
    return dbt_project_yml


def _found() -> Iterator[type]:
    package = importlib.import_module("dbt.tests.adapter")
    (root,) = map(Path, package.__path__)
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        if parts[0] in _ELSEWHERE or parts[-1] == "__init__":
            continue
        module = importlib.import_module(".".join([package.__name__, *parts]))
        for name, value in vars(module).items():
            if not inspect.isclass(value) or value.__module__ != module.__name__:
                continue
            if name == _TOO_LONG or name.startswith("Test"):
                continue
            if any(each.startswith("test") for each in dir(value)):
                yield value


_classes = list(_found())
_derived_from = {base for each in _classes for base in each.__mro__[1:]}
for _each in _classes:
    if _each not in _derived_from:
        _name = f"Test{_each.__name__}"
        globals()[_name] = type(_name, (_each,), {"__module__": __name__})
