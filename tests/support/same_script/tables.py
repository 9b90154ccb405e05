"""The tables on which the script is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from lakelog.core import create_table, write_arrow
from support.merges.kinds import KINDS, arrow

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["TABLES", "lay_out"]

TABLES: Final = (
    "plain",
    "vectors",
    "partitioned",
    "clustered",
    "mapped",
    "feed",
    "generated",
    "nested",
    "tracked",
)


def lay_out(kind: str, path: Path) -> None:
    """Make the table of a kind, with some rows in each of two files: versions 0 to 2, or 3."""
    made = KINDS["plain" if kind == "clustered" else kind]
    files = [[_row(kind, i) for i in ids] for ids in ((1, 2, 3, 4), (5, 6, 7, 8))]
    if kind != "clustered":
        made.lay_out(path, files)
        return
    create_table(str(path), made.schema, cluster_by=["id"])
    for rows in files:
        write_arrow(str(path), arrow(rows, made.given()), mode="append")


def _row(kind: str, i: int) -> dict[str, Any]:
    row: dict[str, Any] = {"id": i, "name": f"n{i}", "n": 10 * i, "x": i / 2}
    match kind:
        case "partitioned":
            row["p"] = ("a", "b c")[i > 4]
        case "mapped":
            row["odd name"] = f"o{i}"
        case "nested":
            row["s"] = {"a": i, "b": "b", "c": {"d": i}}
            row["l"] = [{"e": i}]
            row["m"] = [("k", i)]
    return row
