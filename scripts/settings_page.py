"""Write docs/settings.md from the registries of keys, or report that it is out of date.

python scripts/settings_page.py            # writes the page
python scripts/settings_page.py --check    # exit code 1 where the page and the code differ
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from written_page import write_or_compare

from lakelog.core.keys import DELTA_KEYS
from lakelog.logstores.keys import HADOOP_KEYS, LAKELOG_KEYS, Key

if TYPE_CHECKING:
    from collections.abc import Iterable

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
COMMAND = "python scripts/settings_page.py"

HEAD = f"""\
# Settings

Every key of a conf that lakelog reads. With Spark they are set on the session; without it they are
the `conf` that `DeltaLog.for_table`, `write_arrow` and their like take. The keys that choose a
store are in [Choosing a store](logstores.md).

The page is written from the code (`{COMMAND}`), and a test fails where they
differ. A key with `[.…]` may go on with a name of your own.
"""

SECTIONS = (
    (
        "lakelog's own",
        "A key that begins with `spark.lakelog.` and is nearly one of these is an error, with the "
        "nearest name.",
        LAKELOG_KEYS,
    ),
    (
        "Delta's and Spark's",
        "They mean what they mean to delta-spark and to Spark.",
        DELTA_KEYS,
    ),
    (
        "Hadoop's",
        "Read with `spark.hadoop.` before them and without. Those of S3 are read for one bucket "
        "as `fs.s3a.bucket.NAME.…`, those of Azure for one account with its host after them.",
        HADOOP_KEYS,
    ),
)
KINDS = {
    "flag": "true or false",
    "whole": "whole number",
    "number": "number",
    "seconds": "seconds",
    "text": "text",
}


HEADER = "| Key | Takes | Default | |\n|---|---|---|---|\n"


def render() -> str:
    """The page."""
    parts = [HEAD]
    for title, words, keys in SECTIONS:
        parts += [f"\n## {title}\n\n{words}\n\n", HEADER]
        parts += [f"{row}\n" for row in _rows(keys)]
    return "".join(parts)


def _rows(keys: Iterable[Key[object]]) -> Iterable[str]:
    for key in sorted(keys, key=lambda each: each.name):
        name = key.name + ("[.…]" if key.is_prefix else "")
        yield f"| `{name}` | {KINDS[key.kind]} | {_default(key.default)} | {key.doc} |"


def _default(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


if __name__ == "__main__":
    sys.exit(write_or_compare(PAGE, render(), COMMAND))
