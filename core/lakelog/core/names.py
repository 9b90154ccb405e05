"""Arguments that take several names, and get one."""

from __future__ import annotations

from collections.abc import Iterable

from lakelog.core.errors import DeltaAnalysisError

__all__ = ["several"]


def several(names: object) -> list[str]:
    """The names; a text is one name, and not its letters, as in PySpark's `partitionBy("day")`.

    Raises:
        DeltaAnalysisError: they are no names.
    """
    if isinstance(names, str):
        return [names]
    found = list(names) if isinstance(names, Iterable) else [names]
    texts = [each for each in found if isinstance(each, str)]
    if len(texts) < len(found):
        raise DeltaAnalysisError(f"names of columns must be texts, but they are {names!r}")
    return texts
