"""Arguments that take several names, and get one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["several"]


def several(names: str | Iterable[str]) -> list[str]:
    """The names; a text is one name, and not its letters, as in PySpark's `partitionBy("day")`."""
    return [names] if isinstance(names, str) else list(names)
