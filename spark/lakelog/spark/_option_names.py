"""The names of options, and those that look like one and are not.

An option that is misspelt does nothing: the newest version is read for an old one, a whole table is
replaced for a part of it. Only near misses are refused: scripts pass options of other formats, too.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["READ_OPTIONS", "WRITE_OPTIONS", "check_option_names"]

READ_OPTIONS: Final = (
    "columns",
    "endingTimestamp",
    "endingVersion",
    "readChangeData",
    "readChangeFeed",
    "startingTimestamp",
    "startingVersion",
    "timestampAsOf",
    "versionAsOf",
)
WRITE_OPTIONS: Final = (
    "compression",
    "dataChange",
    "maxRecordsPerFile",
    "mergeSchema",
    "overwriteSchema",
    "partitionBy",
    "partitionOverwriteMode",
    "replaceWhere",
    "txnAppId",
    "txnVersion",
    "userMetadata",
)
_BY_LOWER: Final = {name.lower(): name for name in (*READ_OPTIONS, *WRITE_OPTIONS, "path")}
_OPEN: Final = ("delta.", "fs.", "dfs.")
_CLOSE: Final = 0.8
"""Similarity from which a name counts as a misspelling: one or two letters in ten."""
_NOT_YET: Final = {"replaceon": "replaceOn", "replaceusing": "replaceUsing"}
"""Options of other clients by which an overwrite spares rows: passed over, it would take them."""


def check_option_names(names: Iterable[str]) -> None:
    """Refuse options that are nearly ones of ours, and those that must not be passed over.

    Args:
        names: of a read or a write, in any case.

    Raises:
        DeltaAnalysisError: names the option and the nearest that there is.
    """
    for name in names:
        lowered = name.lower()
        if lowered in _BY_LOWER or lowered.startswith(_OPEN):
            continue
        if lowered in _NOT_YET:
            raise DeltaAnalysisError(
                f"the option {_NOT_YET[lowered]} is not known here, and without it the write would "
                "replace other rows: say by replaceWhere which",
                option=name,
            )
        near = difflib.get_close_matches(lowered, _BY_LOWER, n=1, cutoff=_CLOSE)
        if near:
            raise DeltaAnalysisError(
                f"there is no option {name!r}; did you mean {_BY_LOWER[near[0]]}?", option=name
            )
