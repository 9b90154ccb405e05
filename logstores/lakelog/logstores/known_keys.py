"""The keys of a conf that only lakelog reads, and keys that look like one and are not.

A key that nothing reads is a setting that silently does nothing: a time budget, or the store
itself. Only near misses are refused. A conf is shared with other clients, and with custom stores.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import UnknownLogStoreKeyError
from lakelog.logstores.keys import LAKELOG_KEYS, LAKELOG_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAMES: Final = tuple(key.name.removeprefix(LAKELOG_PREFIX) for key in LAKELOG_KEYS)
"""The keys that only lakelog reads, without their common prefix."""
_BY_LOWER: Final = {name.lower(): name for name in _NAMES}
_OPEN: Final = tuple(
    key.name.removeprefix(LAKELOG_PREFIX) + "." for key in LAKELOG_KEYS if key.is_prefix
)
"""Prefixes of keys that may end in anything."""
_WHOLE: Final = {f"{LAKELOG_PREFIX}{name}".lower(): f"{LAKELOG_PREFIX}{name}" for name in _NAMES}
_CLOSE: Final = 0.84
"""Similarity from which a name counts as a misspelling: one or two letters in a dozen."""
_ALIKE_AS_A_WHOLE: Final = 0.92
_FAMILIES: Final = {
    "lakelog": 0.8,
    "delta.logStore": _CLOSE,
    "databricks.delta": 0.92,
    "io.delta.storage": 0.92,
}
"""What Delta's keys and ours begin with, after `spark.` -> how alike a misspelling must be."""


def refuse_misspelt_keys(keys: Iterable[str]) -> None:
    """Refuse a key that is nearly one of lakelog's, or nearly begins as Delta's keys do.

    Raises:
        UnknownLogStoreKeyError: names the key and the nearest that is read.
    """
    for key in keys:
        nearest = _nearest(key)
        if nearest is not None:
            raise UnknownLogStoreKeyError(f"nothing reads the key {key}; did you mean {nearest}?")


@functools.lru_cache(maxsize=4096)
def _nearest(key: str) -> str | None:
    """The key most likely intended; `None` for one that is read or belongs to another product."""
    import difflib

    if key.startswith(LAKELOG_PREFIX):
        return _nearest_of_ours(key.removeprefix(LAKELOG_PREFIX))
    if key.lower().startswith(LAKELOG_PREFIX[:7]):
        # As a whole first: where a dot is missing, the parts are others.
        near = difflib.get_close_matches(key.lower(), _WHOLE, n=1, cutoff=_ALIKE_AS_A_WHOLE)
        if near:
            return _WHOLE[near[0]]
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
    return None


def _nearest_of_ours(name: str) -> str | None:
    if name in _NAMES or name.startswith(_OPEN):
        return None
    import difflib

    near = difflib.get_close_matches(name.lower(), _BY_LOWER, n=1, cutoff=_CLOSE)
    return f"{LAKELOG_PREFIX}{_BY_LOWER[near[0]]}" if near else None
