"""Settings out of a Spark conf, under the names that users already have for Hadoop.

A Hadoop setting reaches Spark's conf as `spark.hadoop.<key>`; a conf that comes from elsewhere may
have `<key>` alone. Both are read, and two different values are refused.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from lakelog.logstores.errors import InconsistentLogStoreConfError
from lakelog.logstores.locations import STARS, without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping


_HADOOP = "spark.hadoop."
_SECRET_PARTS = (
    "secret",
    "password",
    "token",
    "account.key",
    "access.key",
    "sas",
    "private",
    "credential",
    "encryption.key",
    "connection.string",
    "connectionstring",
)
_SECRET_WORDS = ("secret", "password", "token", "credential", "private")
_SECRET_PAIRS = ("account.key", "access.key", "secret.key", "encryption.key", "connection.string")
_NO_SECRET_ENDS = (".provider", ".provider.path", ".type", ".endpoint")
"""Keys that speak of secrets and name only who has them."""
_STORAGE_KEYS = (
    "fs.",
    "dfs.",
    "hadoop.",
    "delta.logStore.",
    "io.delta.storage.",
    "lakelog.",
    "databricks.delta.commitLock.",
)


def hadoop_setting(conf: Mapping[str, str], *keys: str) -> str | None:
    """The value of the first of some Hadoop keys that is set, with or without `spark.hadoop.`.

    Raises:
        InconsistentLogStoreConfError: the two spellings of one key have two values. The values
            are not shown: they may be secrets.
    """
    for key in keys:
        both = {conf[name] for name in (_HADOOP + key, key) if name in conf}
        if len(both) > 1:
            raise InconsistentLogStoreConfError(
                f"{_HADOOP}{key} and {key} have two values. Keep one of them."
            )
        if both:
            return both.pop().strip() or None
    return None


def masked(key: str, value: str) -> str:
    """The value as it may be shown to people: stars where it, or its key, speaks of a secret.

    So does a key with a letter too many or too few: a mistyped key still carries the secret.
    """
    lowered = key.lower()
    if lowered.endswith(_NO_SECRET_ENDS):
        return without_secrets(value)
    secret = any(part in lowered for part in _SECRET_PARTS) or _nearly_secret(lowered)
    return STARS if secret else without_secrets(value)


def _nearly_secret(key: str) -> bool:
    words = key.split(".")
    pairs = [f"{first}.{second}" for first, second in itertools.pairwise(words)]
    import difflib

    return any(difflib.get_close_matches(word, _SECRET_WORDS, 1, 0.8) for word in words) or any(
        difflib.get_close_matches(pair, _SECRET_PAIRS, 1, 0.85) for pair in pairs
    )


def storage_settings(conf: Mapping[str, str]) -> dict[str, str]:
    """The keys of a conf that concern storage, in order of name, with secrets masked."""
    return {key: masked(key, conf[key]) for key in sorted(conf) if _of_storage(key)}


def _of_storage(key: str) -> bool:
    return key.removeprefix("spark.").removeprefix("hadoop.").startswith(_STORAGE_KEYS)
