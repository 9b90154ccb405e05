"""DELETE and UPDATE cases played by lakelog without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.core import delete_rows, update_rows

if TYPE_CHECKING:
    from pathlib import Path

    from support.row_changes.cases import Step


def run_in_core(step: Step, path: Path) -> dict[str, Any]:
    """Do a step to the table at a path; it returns nothing, as Spark's methods."""
    # The core has no name for the table.
    values = {_bare(step, k): _bare(step, v) for k, v in step.values.items()}
    condition = None if step.condition is None else _bare(step, step.condition)
    if step.values:
        update_rows(str(path), values, condition)
    else:
        delete_rows(str(path), condition)
    return {}


def _bare(step: Step, text: str) -> str:
    return text if step.alias is None else text.replace(f"{step.alias}.", "")
