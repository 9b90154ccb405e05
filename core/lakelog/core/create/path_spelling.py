"""How the log names files whose paths have letters beyond ASCII: the caller has to choose.

Clients compare the log's text with names without agreeing on the spelling. delta-spark 4.4 leaves
such letters as they are, and its VACUUM takes a live file whose letters are percent-encoded for a
leftover and deletes it. deltalake 1.6 encodes them, and its own removes don't take out a file that
a checkpoint names bare: deleted rows come back. No spelling is safe with both.
"""

from __future__ import annotations

import functools
import logging
from typing import TYPE_CHECKING, Final

from lakelog.core.arguments import refusal
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.paths import encode_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CHOICES: Final = ("refuse", "bare", "encoded")
_SHOWN: Final = 10
_RISKS: Final = {
    "bare": "their letters stand in the log as they are, as delta-spark writes them: don't let "
    "deltalake delete, update or overwrite this table, deleted rows may come back",
    "encoded": "their letters are percent-encoded in the log, as deltalake writes them: don't let "
    "delta-spark VACUUM this table, it deletes these live files",
}
_logger = logging.getLogger("lakelog")


def spelling_for(choice: object, table: str, paths: Sequence[str]) -> Callable[[str], str]:
    """What makes the log's text of a file's path.

    A choice that has a risk for these files is logged as a warning, which names them.

    Args:
        choice: `refuse`, `bare` or `encoded`.
        table: its URI, for messages.
        paths: of the files, relative to the table and not encoded.

    Raises:
        DeltaAnalysisError: another choice; or it is to refuse such paths, and there are some.
    """
    if choice not in _CHOICES:
        raise refusal(choice, "non_ascii_paths", "'refuse', 'bare' or 'encoded'")
    odd = [path for path in paths if not path.isascii()]
    if not odd:
        return encode_path
    shown = ", ".join(odd[:_SHOWN])
    if len(odd) > _SHOWN:
        shown += f" and {len(odd) - _SHOWN:,} more"
    if choice == "refuse":
        raise DeltaAnalysisError(
            f"{len(odd):,} of {len(paths):,} files of {table} have paths with letters beyond "
            f"ASCII: {shown}. There is no spelling of them that all clients understand. Rename "
            "the files, or write their rows with write_arrow, which names folders in ASCII alone. "
            "Or convert them as they are with non_ascii_paths='bare', if delta-spark is used on "
            "this table and deltalake never changes it, or with non_ascii_paths='encoded', if "
            "deltalake is and delta-spark never runs VACUUM on it: that would delete these files. "
            "Nothing was converted.",
            table=table,
            path=odd[0],
            paths=odd,
        )
    _logger.warning("%s: of the files %s %s", table, shown, _RISKS[str(choice)])
    return functools.partial(encode_path, bare=choice == "bare")
