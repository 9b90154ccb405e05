"""Tables whose files and commits are as old as a test wants them."""

from __future__ import annotations

import os
import time
from pathlib import Path

HOUR = 3600.0
UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}
"""Lets VACUUM take any retention."""


def age(path: str | Path, hours: float) -> None:
    """Let a file or folder have been changed so many hours ago."""
    then = time.time() - hours * HOUR
    os.utime(path, (then, then), follow_symlinks=False)


def age_all(uri: str | Path, hours: float) -> None:
    """Let everything in a table's folder, the log too, be so many hours old."""
    for folder, _, names in os.walk(uri):
        for name in names:
            age(Path(folder) / name, hours)
        age(folder, hours)


def put(uri: str | Path, path: str, hours: float = 1000, text: str = "x") -> Path:
    """Make a file in a table's folder that no version knows."""
    made = Path(uri) / path
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text(text)
    age(made, hours)
    return made


def data_files(uri: str | Path) -> set[str]:
    """All files outside of the log, relative to the table's folder."""
    found = (each for each in Path(uri).rglob("*") if each.is_file() or each.is_symlink())
    names = (each.relative_to(uri).as_posix() for each in found)
    return {name for name in names if not name.startswith("_delta_log/")}
