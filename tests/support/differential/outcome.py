"""How a scenario ended, in the words that lakelog and delta-spark share."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakelog.core.errors import DeltaConcurrentModificationException
from support.delta_spark_peer import DeltaSparkError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.differential.lines import Line

CONFLICTS: Final = {each.__name__ for each in DeltaConcurrentModificationException.__subclasses__()}
"""The exceptions that have the same name on both sides."""
_CONDITION: Final = re.compile(r"\[(DELTA_[A-Z_]+(?:\.[A-Z_]+)?)\]")
_PROVENANCE: Final = ("operation", "readVersion", "isolationLevel", "isBlindAppend", "tags")
# Each client's own clock and ids; delta-spark 4.4 spells out empty and default values.
_VOLATILE: Final = {"deletionTimestamp", "modificationTime", "createdTime", "lastUpdated"}
_DEFAULTS: Final[dict[str, Any]] = {"tags": {}, "configuration": {}, "stats": ""}
_ORDER: Final = {"commitInfo": 0, "metaData": 1, "protocol": 2}
_FUTURE: Final = 3_000_000_000_000


@dataclass(frozen=True)
class Outcome:
    """How it ended."""

    verdict: str
    """`version 2`, `nothing to commit`, or the exception and its error condition."""
    said: str = ""
    """The message of an error."""
    lines: tuple[Line, ...] = ()
    """What the commit holds, without what differs from run to run."""
    data_change: bool | None = None
    """`commitInfo.dataChange`; delta-spark 4.4 writes none."""

    @property
    def changes_rows(self) -> bool:
        """Whether a file of the commit says that it changes rows."""
        return any(value.get("dataChange", False) for line in self.lines for value in line.values())

    def __str__(self) -> str:
        """Everything, for a reader."""
        parts = [self.verdict, self.said, *map(json.dumps, self.lines)]
        return "\n    ".join(filter(None, parts))


def outcome_of(run: Callable[[], int | None], path: Path) -> Outcome:
    """Run a scenario's steps on the table at a path, and see how it ends."""
    try:
        version = run()
    except DeltaSparkError as exc:
        return _error(exc.kind, str(exc))
    except Exception as exc:
        return _error(type(exc).__name__, str(exc))
    if version is None:
        return Outcome("nothing to commit")
    text = (path / "_delta_log" / f"{version:020d}.json").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    said = lines[0].get("commitInfo", {})
    own_time = said.get("inCommitTimestamp")
    settled = [_settled(line, own_time) for line in lines]
    # Metadata and protocol stand in either order in a new table, and mean the same.
    settled.sort(key=lambda line: _ORDER.get(next(iter(line)), len(_ORDER)))
    return Outcome(
        f"version {version}",
        lines=tuple(settled),
        data_change=said.get("dataChange"),
    )


def _error(kind: str, message: str) -> Outcome:
    found = _CONDITION.search(message)
    shared = kind if kind in CONFLICTS else "refused"
    said = f"{kind}: {message.split('at org.apache', 1)[0].strip()[:600]}"
    return Outcome(f"{shared} {found[1] if found else ''}".rstrip(), said)


def _settled(line: Line, own_time: int | None) -> Line:
    ((kind, value),) = line.items()
    if kind == "commitInfo":
        kept = {key: value[key] for key in _PROVENANCE if value.get(key) is not None}
        if "inCommitTimestamp" in value:
            # Ours and theirs ran at different moments; one from the future is no clock's.
            at = value["inCommitTimestamp"]
            kept["inCommitTimestamp"] = at if at > _FUTURE else "now"
    else:
        kept = {
            key: item
            for key, item in value.items()
            if item is not None and key not in _VOLATILE and item != _DEFAULTS.get(key, ...)
        }
    if kind == "metaData" and own_time is not None:
        stated = kept.get("configuration", {})
        kept["configuration"] = {
            k: "this commit's" if v == str(own_time) else v for k, v in stated.items()
        }
    if kind == "remove":
        # delta-spark leaves out a null value here, which means the same.
        values = kept.get("partitionValues", {})
        kept["partitionValues"] = {k: v for k, v in values.items() if v is not None}
    for key in ("stats", "schemaString"):
        if key in kept:
            kept[key] = json.loads(kept[key])
    for key in ("readerFeatures", "writerFeatures"):
        if key in kept:
            kept[key] = sorted(kept[key])
    return {kind: kept}
