"""What only the program does, and not its commands where a test or another program calls them."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["is_program", "keep_pandas_out"]

is_program = False
"""Set by `main`."""


def keep_pandas_out() -> None:
    """Have pyarrow never load pandas, which takes longer than all else that a command does.

    pyarrow looks for it once, at the first array that it makes of Python's objects, so that it
    knows pandas's own when it sees them; no command has any. Other code that wants pandas still
    gets it.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    finder: Any = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([None])
    finally:
        sys.meta_path.remove(finder)


class _NoPandas:
    """Finds that pandas is not installed."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
