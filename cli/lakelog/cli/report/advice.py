"""What to do about a table, most useful first, each with the command to run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.engine.shown import bytes_text, count_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WORTH_BYTES: Final = 1 << 20
_SKEW: Final = 10
_WIDE: Final = 0.5
"""A lookup that opens more than this share of the files gains nothing from statistics."""
_MANY_FILES: Final = 16
_DELETED: Final = 0.05


def advice(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The steps, ranked by what they would save.

    Args:
        found: what `facts` has gathered.
    """
    table = shlex.quote(found["table"])
    steps = [*_broken(found, table), *_savings(found, table), *_contended(found)]
    return sorted(steps, key=lambda each: -each["weight"])


def _step(weight: float, what: str, saves: str, command: str) -> dict[str, Any]:
    return {"weight": round(weight, 3), "what": what, "saves": saves, "command": command}


def _broken(found: Mapping[str, Any], table: str) -> Iterator[dict[str, Any]]:
    for each in (found.get("doctor") or {}).get("findings", ()):
        if each["status"] == "failed":
            what = f"{each['check']}: {each['summary']}"
            yield _step(1000, what, "a table that can be read and written", each["remedy"])
    if found["troubles"] and found.get("what") is None:
        yield _step(
            999,
            "The table can't be opened.",
            "the table",
            f"lakelog repair {table} --dry-run",
        )


def _savings(found: Mapping[str, Any], table: str) -> Iterator[dict[str, Any]]:
    files = found.get("files")
    if not files or not files["files"]:
        return
    plan, freed, log = (found.get(name) or {} for name in ("optimize", "vacuum", "log"))
    saved = plan.get("files", 0) - plan.get("groups", 0)
    if saved > 0:
        share = saved / files["files"]
        yield _step(
            100 * share + min(saved, 10_000) / 1000,
            f"{count_text(plan['files'], 'file')} can become about {plan['groups']:,}.",
            f"{share:.0%} of the files that a full read opens",
            f"lakelog optimize {table}",
        )
    if freed.get("bytes", 0) >= _WORTH_BYTES:
        share = freed["bytes"] / (freed["bytes"] + files["bytes"])
        yield _step(
            60 * share,
            f"{count_text(freed['files'], 'file')} that no version within the retention needs.",
            f"{bytes_text(freed['bytes'])} of storage",
            f"lakelog vacuum {table}",
        )
    rows = files["rows"] or 0
    if files["deleted_rows"] > _DELETED * (rows + files["deleted_rows"]):
        yield _step(
            40 * files["deleted_rows"] / (rows + files["deleted_rows"]),
            f"{count_text(files['deleted_rows'], 'deleted row')} are still read and skipped.",
            f"rewriting {count_text(files['files_with_deleted_rows'], 'file')} takes them out",
            f"lakelog optimize {table} --purge",
        )
    since, interval = log.get("commits_since_checkpoint", 0), log.get("checkpoint_interval", 10)
    if since > 3 * interval:
        yield _step(
            min(since / interval, 30),
            f"{count_text(since, 'commit')} since the last checkpoint; one is due every "
            f"{interval:,}.",
            f"{count_text(since, 'request')} each time the table is opened",
            f"lakelog checkpoint {table}",
        )
    unknown = files["files_without_row_count"]
    if unknown:
        yield _step(
            20 * unknown / files["files"],
            f"{count_text(unknown, 'file')} have no statistics.",
            "filters can then leave them out",
            f"lakelog repair {table}",
        )
    skew = files.get("largest_to_median")
    if skew is not None and skew > _SKEW and files["partition_count"] > 1:
        yield _step(
            5,
            f"The largest partition has {skew:,.0f} times the bytes of the median one.",
            "evenly sized tasks",
            "Partition by another column, or cluster instead: docs/clustering.md.",
        )
    yield from _unordered(found, table)


def _unordered(found: Mapping[str, Any], table: str) -> Iterator[dict[str, Any]]:
    if found["files"]["files"] < _MANY_FILES:
        return
    columns = [
        each
        for each in (found.get("columns") or {}).get("list", ())
        if each.get("overlap") is not None and each["overlap"] > _WIDE
    ]
    sharp = [
        each
        for each in (found.get("columns") or {}).get("list", ())
        if each["partition"] or (each.get("overlap") is not None and each["overlap"] <= _WIDE)
    ]
    if columns and not sharp:
        name = columns[0]["column"]
        yield _step(
            3,
            "No column's ranges part the files: a lookup by any of them opens most files.",
            "files that a filter need not open",
            f"lakelog optimize {table} --z-order-by {shlex.quote(name)}   "
            "# name the columns that filters use",
        )


def _contended(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for each in (found.get("contention") or {}).get("separate", ()):
        names = " and ".join(dict.fromkeys(each["jobs"]))
        yield _step(
            50,
            f"{names} lose commits to each other.",
            str(each["reason"]),
            f"Separate them by {each['by']}.",
        )
