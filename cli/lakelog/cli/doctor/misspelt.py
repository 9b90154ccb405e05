"""Keys that look like a known one but are not: settings that silently do nothing.

And comments that became part of a value.

Only near misses are reported. Hadoop knows hundreds of `fs.*` keys that concern the JVM's clients
alone, and a conf that is shared with them may well contain them.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final

from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.keys import HADOOP_KEYS, LAKELOG_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CLOSE: Final = 0.84
"""Similarity from which a key counts as a misspelling: one or two letters in a dozen."""
_BUCKET: Final = "fs.s3a.bucket."
_COMMENT: Final = re.compile(r"\s#")

KNOWN: Final = tuple(key.name.removeprefix("spark.") for key in (*HADOOP_KEYS, *LAKELOG_KEYS))
"""Keys without `spark.` and `spark.hadoop.`; those of Azure may end in an account's host."""


_OPEN: Final = tuple(
    key.name.removeprefix("spark.") + "." for key in (*HADOOP_KEYS, *LAKELOG_KEYS) if key.is_prefix
)
"""Prefixes of keys that end in an account, a name service, or anything."""


def misspelt(conf: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each key that is nearly a known one, and for a comment after a value.

    Args:
        conf: the user's; no value is shown.
    """
    for key in sorted(conf):
        prefix = next((p for p in ("spark.hadoop.", "spark.") if key.startswith(p)), "")
        named = list(_names(key[len(prefix) :]))
        if any(_is_known(name) for _, name in named):
            if _COMMENT.search(conf[key]):
                summary = f"the value of {key} contains ' #' and the text after it"
                remedy = "In spark-defaults.conf, a comment needs a line of its own."
                yield Finding("settings", Status.NOTE, summary, remedy)
            continue
        for before, name in named:
            near = difflib.get_close_matches(name, KNOWN, n=1, cutoff=_CLOSE)
            if near:
                meant = prefix + before + near[0].removeprefix("fs.s3a." if before else "")
                summary = f"nothing reads the key {key}"
                yield Finding("settings", Status.NOTE, summary, f"Did you mean {meant}?")
                break


def _names(key: str) -> Iterator[tuple[str, str]]:
    """What stands for a bucket alone, and the key that counts: a bucket's name may have dots."""
    if not key.startswith(_BUCKET):
        yield "", key
        return
    parts = key.removeprefix(_BUCKET).split(".")
    for at in range(1, len(parts)):
        yield f"{_BUCKET}{'.'.join(parts[:at])}.", "fs.s3a." + ".".join(parts[at:])


def _is_known(name: str) -> bool:
    return name in KNOWN or name.startswith(_OPEN)
