"""Write batches by `examples/checks/with_pandera.py`."""

from __future__ import annotations

import importlib
import json
from typing import Any

from lakelog.core import read_arrow

pl: Any = importlib.import_module("polars")
recipe: Any = importlib.import_module("with_pandera")

mixed = {"id": [1, 2, -3], "country": ["DE", "XX", "FR"], "amount": [1.5, 2.0, None]}
counts = [recipe.load(pl.DataFrame(mixed)), recipe.load(pl.DataFrame(mixed).head(1))]
try:
    recipe.load(pl.DataFrame({"id": ["a"], "country": ["DE"], "amount": [1.0]}))
except recipe.pa.errors.SchemaErrors as error:
    counts.append(type(error).__name__)
tables = [read_arrow(table).to_pylist() for table in (recipe.ORDERS, recipe.REFUSED)]
print(json.dumps([counts, *tables]))
