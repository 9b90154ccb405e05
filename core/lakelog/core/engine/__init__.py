"""The one door for engines: what Spark, the program, or an engine of your own may ask of the core.

| an engine wants to | it asks |
|---|---|
| open, make or alter a table | `lakelog.core` (`DeltaLog`, `create_table`), `tables` |
| read rows | `scan`, `conditions` |
| write rows | `write`, `rows` |
| delete, update or merge rows | `dml`, `merge` |
| commit, and say what was done | `commit` |
| follow a table | `streams` |
| replay a large log on many machines | `log` |
| run maintenance | `lakelog.core` (`optimize`, `vacuum`), `maintenance` |
| speak of columns and values | `lakelog.core.schema`, `schemas`, `values` |

The import contracts hold that `lakelog.spark` and `lakelog.cli` see of the core what these modules
show, its public modules, and nothing else. What is behind the door may be moved and renamed. Before
a name is added here: does an engine ask for it, or for something that it is a step of?

A name is imported from its home at its first use, so that a module costs what is used of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def offers(door: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module that shows names of others.

    Args:
        door: the module's name.
        homes: module -> its names that are shown, separated by spaces.
    """
    shown = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in shown:
            raise AttributeError(f"module {door!r} has no attribute {name!r}")
        # Not kept: a test that replaces a name in its home has it replaced here as well.
        return getattr(importlib.import_module(shown[name]), name)

    return get
