"""The names of options, and near misses.

An option that is misspelt does nothing: the newest version is read instead of an old one, a whole
table replaced instead of a part. Only near misses are refused: scripts pass options of other
formats too.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Final

from lakelog.core.engine.streams import STREAM_OPTIONS
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable

READ_OPTIONS: Final = (
    *STREAM_OPTIONS,
    "columns",
    "endingTimestamp",
    "endingVersion",
    "readChangeData",
    "readChangeFeed",
    "readOnDriver",
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
    "optimizeWrite",
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
"""Options of other clients that limit an overwrite: if they were ignored, it would replace more."""


def check_option_names(names: Iterable[str]) -> None:
    """Refuse options that nearly match one of ours, and those that must not be ignored.

    Args:
        names: of a read or a write, in any case.

    Raises:
        DeltaAnalysisError: names the option and the nearest existing one.
    """
    for name in names:
        lowered = name.lower()
        if lowered in _BY_LOWER or lowered.startswith(_OPEN):
            continue
        if lowered in _NOT_YET:
            raise DeltaAnalysisError(
                f"the option {_NOT_YET[lowered]} is not supported, and without it the write would "
                "replace other rows: use replaceWhere to say which",
                option=name,
            )
        near = difflib.get_close_matches(lowered, _BY_LOWER, n=1, cutoff=_CLOSE)
        if near:
            raise DeltaAnalysisError(
                f"there is no option {name!r}; did you mean {_BY_LOWER[near[0]]}?", option=name
            )
