"""Write batches by `examples/checks/with_great_expectations.py`, and check the table."""

from __future__ import annotations

import importlib
import json
from typing import Any

from lakelog.core import write_arrow

pd: Any = importlib.import_module("pandas")
recipe: Any = importlib.import_module("with_great_expectations")

good = {"id": [1, 2], "country": ["DE", "FR"], "amount": [1.0, 2.0]}
said = [recipe.load(pd.DataFrame(good)), recipe.audit()]
try:
    recipe.load(pd.DataFrame({"id": [3], "country": ["XX"], "amount": [3.0]}))
except ValueError as error:
    said.append(str(error))
# Another job, which checks nothing.
write_arrow(recipe.ORDERS, {"id": [2], "country": ["FR"], "amount": [3.0]}, mode="append")
print(json.dumps([*said, recipe.audit()]))
