"""What the commands of `support.cluster_job` make of a table, reckoned without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FEW", "ROWS", "after"]

ROWS = 400
FEW = 40

Rows = dict[int, int]
"""`id` -> `n`; `p` is `id % 2`."""


def after(*commands: str) -> Rows:
    """The rows after these commands, one after the other, on no table."""
    rows: Rows = {}
    for each in commands:
        rows = _AFTER[each](rows)
    return rows


def _merged(rows: Rows) -> Rows:
    source = range(ROWS - FEW, ROWS + FEW)
    new = {i: n + 1 if i in source else n + 5 if i < 3 else n for i, n in rows.items()}
    return new | {i: 7 for i in source if i not in rows}


_AFTER: dict[str, Callable[[Rows], Rows]] = {
    "create": lambda _: dict.fromkeys(range(ROWS), 0),
    "append": lambda rows: rows | dict.fromkeys(range(ROWS, ROWS + FEW), 0),
    "replace": lambda rows: (
        {i: n for i, n in rows.items() if i % 2 == 0}
        | dict.fromkeys(range(1001, 1001 + 2 * FEW, 2), 0)
    ),
    "delete": lambda rows: {i: n for i, n in rows.items() if i % 4 != 1},
    "update": lambda rows: {i: n + 1 if i % 4 == 2 else n for i, n in rows.items()},
    "merge": _merged,
    "optimize": dict,
    "zorder": dict,
}
