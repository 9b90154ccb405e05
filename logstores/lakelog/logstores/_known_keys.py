"""The keys of a conf that only lakelog reads, and keys that look like one and are not.

A key that nobody reads is a setting that silently does nothing: a time budget, or the store itself.
Only near misses are refused. A conf is shared with other clients, and with stores of one's own.
"""

from __future__ import annotations

import difflib
import functools
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import UnknownLogStoreKeyError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LAKELOG_KEYS", "refuse_misspelt_keys"]

LAKELOG_KEYS: Final = (
    "azure.account",
    "azure.apiVersion",
    "azure.endpoint",
    "azure.lease.duration",
    "azure.lease.wait",
    "commit.maxBackoff",
    "commit.timeBudget",
    "commitEvents.job",
    "commitEvents.path",
    "deletionVectors.maxInlineBytes",
    "fsspec.exclusiveCreate",
    "fsspec.wholeFiles",
    "gcs.minWriteInterval",
    "identity.maxTasks",
    "log.maxBytes",
    "read.path",
    "replay",
    "replay.minBytes",
    "s3dynamodb.access.key",
    "s3dynamodb.createTable",
    "s3dynamodb.endpoint",
    "s3dynamodb.guard",
    "s3dynamodb.keyScheme",
    "s3dynamodb.secret.key",
    "s3dynamodb.session.token",
    "store.connect.timeBudget",
    "store.endpointProbe",
    "store.request.timeout",
    "store.retry.timeBudget",
    "unsafe.singleWriter",
    "write.path",
)
"""Each behind `spark.lakelog.`; those of Azure may go on with an account's host."""
_BY_LOWER: Final = {name.lower(): name for name in LAKELOG_KEYS}
_OPEN: Final = ("fsspec.options.", *(f"{name}." for name in LAKELOG_KEYS if name[:5] == "azure"))
"""What keys of any ending begin with."""
_OURS: Final = "spark.lakelog."
_WHOLE: Final = {f"{_OURS}{name}".lower(): f"{_OURS}{name}" for name in LAKELOG_KEYS}
_CLOSE: Final = 0.84
"""Similarity from which a name counts as a misspelling: one or two letters in a dozen."""
_FAMILIES: Final = {
    "lakelog": 0.8,
    "delta.logStore": _CLOSE,
    "databricks.delta": 0.92,
    "io.delta.storage": 0.92,
}
"""What the keys of Delta and of ours begin with, behind `spark.` -> how alike a misspelling is."""


def refuse_misspelt_keys(keys: Iterable[str]) -> None:
    """Refuse a key that is nearly one of lakelog's, or nearly begins as Delta's keys do.

    Raises:
        UnknownLogStoreKeyError: names the key and the nearest that is read.
    """
    for key in keys:
        nearest = _nearest(key)
        if nearest is not None:
            raise UnknownLogStoreKeyError(f"nobody reads the key {key}; did you mean {nearest}?")


@functools.lru_cache(maxsize=4096)
def _nearest(key: str) -> str | None:
    """The key that is meant; `None` for one that is read, and for one that is somebody else's."""
    if key.startswith(_OURS):
        return _nearest_of_ours(key.removeprefix(_OURS))
    prefix = "spark." if key.startswith("spark.") else ""
    parts = key.removeprefix("spark.").split(".")
    for family, alike in _FAMILIES.items():
        size = family.count(".") + 1
        begin, rest = ".".join(parts[:size]), parts[size:]
        # Without `spark.` only the keys that choose a store are read.
        if not rest or begin == family or not (prefix or family == "delta.logStore"):
            continue
        if difflib.SequenceMatcher(None, begin.lower(), family.lower()).ratio() >= alike:
            found = ".".join((prefix + family, *rest))
            return _nearest(found) or found
    if key.lower().startswith(_OURS[:7]):
        # A dot may be what is missing.
        near = difflib.get_close_matches(key.lower(), _WHOLE, n=1, cutoff=0.92)
        return _WHOLE[near[0]] if near else None
    return None


def _nearest_of_ours(name: str) -> str | None:
    if name in LAKELOG_KEYS or name.startswith(_OPEN):
        return None
    near = difflib.get_close_matches(name.lower(), _BY_LOWER, n=1, cutoff=_CLOSE)
    return f"{_OURS}{_BY_LOWER[near[0]]}" if near else None
