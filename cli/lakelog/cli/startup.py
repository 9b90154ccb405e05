"""What only the program does, and not its commands where a test or another program calls them."""

from __future__ import annotations

import logging
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import TracebackType

is_program = False
"""Set by `main`."""


def escape_what_others_print() -> None:
    """Also escape text that reaches standard error past `output`: log records and tracebacks.

    They quote tables as errors do.
    """
    from lakelog.core.engine.shown import printable

    class Escaped(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return printable(super().format(record), line_breaks=True)

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        text = "".join(traceback.format_exception(kind, error, trace))
        sys.stderr.write(printable(text, line_breaks=True))

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(Escaped())
    sys.excepthook = hook


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
