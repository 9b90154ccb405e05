"""Plan and apply the models of `examples/sqlmesh`; those in `RESTATE` once more."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

# DuckDB finds the extension in the home, as if it had been downloaded.
duckdb: Any = importlib.import_module("duckdb")
delta: Any = importlib.import_module("duckdb_extension_delta")
(extension,) = Path(delta.__file__).parent.glob("extensions/*/delta.duckdb_extension")
(platform,) = duckdb.execute("PRAGMA platform").fetchone()
home = Path.home() / ".duckdb" / "extensions" / extension.parent.name / platform
home.mkdir(parents=True, exist_ok=True)
(home / extension.name).write_bytes(extension.read_bytes())

sqlmesh: Any = importlib.import_module("sqlmesh")
console: Any = importlib.import_module("sqlmesh.core.console")
console.set_console(console.NoopConsole())
context: Any = sqlmesh.Context(paths=[os.environ["PROJECT"]])
again = os.environ.get("RESTATE", "").split()
ended = "well"
try:
    context.plan(auto_apply=True, no_prompts=True, restate_models=again or None)
except Exception as error:
    ended = type(error).__name__
rows = context.fetchdf("SELECT day::TEXT, country, orders, amount FROM sales.daily ORDER BY ALL")
print(json.dumps([ended, rows.to_numpy().tolist()]))
