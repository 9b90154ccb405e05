"""Plays statements about CHAR and VARCHAR columns, by either engine.

It runs in delta-spark's own environment, too, and so imports nothing of the project's.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

__all__ = ["played"]

_CONDITION = re.compile(r"\[([A-Z][A-Z_]+)")


def played(spark: Any, folder: str, jobs: str) -> list[Any]:
    """Of each case what its last statement gives, or the condition of the error that ended it.

    Args:
        spark: the session; `delta` is a format of it.
        folder: has nothing yet.
        jobs: as JSON, of each its statements, and its number.
    """
    found = []
    for job in json.loads(jobs):
        path, rows = f"{folder}/{job['number']}", []
        try:
            for text in job["statements"]:
                if text.startswith("MARK "):
                    path = _marked(path, *text.split(maxsplit=2)[1:])
                else:
                    rows = _run(spark, path, text)
        except Exception as exc:
            condition = _CONDITION.search(str(exc))
            found.append(condition[1] if condition else type(exc).__name__)
        else:
            found.append(sorted(rows, key=json.dumps))
    return found


def _run(spark: Any, path: str, text: str) -> list[Any]:
    rows = spark.sql(text.replace("{t}", f"delta.`{path}`")).collect()
    return [row.asDict(recursive=True) for row in rows]


def _marked(path: str, column: str, kind: str) -> str:
    """A copy of a table where a STRING has a limit that the writer of its rows did not know of.

    The session knows what it committed, but for a table in another place.
    """
    copied = f"{path}-{column}"
    shutil.copytree(path, copied)
    bare = (
        f'\\"name\\":\\"{column}\\",\\"type\\":\\"string\\",\\"nullable\\":true,\\"metadata\\":{{'
    )
    first = Path(copied, "_delta_log", f"{0:020}.json")
    log = first.read_text("utf-8")
    assert log.count(bare) == 1
    mark = f'\\"__CHAR_VARCHAR_TYPE_STRING\\":\\"{kind}\\"'
    first.write_text(log.replace(bare, bare + mark), "utf-8")
    for each in list(first.parent.glob("*.crc")):
        each.unlink()
    return copied
