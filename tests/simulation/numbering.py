"""Row ids and commit times: what they must be in every history, by the log's lines alone."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TIMES = {"delta.enableInCommitTimestamps": "true"}
IDS = {"delta.enableRowTracking": "true"}
SWITCHES = (TIMES, IDS)
"""What the orders of the kind `switch on` set."""
FEATURES = frozenset({"inCommitTimestamp", "rowTracking"})
MARK = "delta.rowTracking"
_SINCE = "delta.inCommitTimestampEnablementVersion"
_AT = "delta.inCommitTimestampEnablementTimestamp"
_RECORDS = (_SINCE, _AT, "delta.rowTracking.materialized")


class Numbered(enum.Enum):
    """Whether a table has row ids and commit times."""

    NO = enum.auto()
    SUPPORTED = enum.auto()
    """The protocol has both features; the orders `switch on` may switch them on."""
    ON = enum.auto()
    """Both are on from the first version."""

    @property
    def settings(self) -> dict[str, str]:
        """The properties of the table, to begin with."""
        return {**TIMES, **IDS} if self is Numbered.ON else {}

    @property
    def features(self) -> frozenset[str]:
        """The features of the protocol, beside the others."""
        return frozenset() if self is Numbered.NO else FEATURES


def plain(settings: Mapping[str, str]) -> dict[str, str]:
    """Properties without those that a commit adds by itself."""
    return {k: v for k, v in settings.items() if not k.startswith(_RECORDS)}


def mark_line(mark: int) -> dict[str, Any]:
    """The action that says the highest id."""
    said = json.dumps({"rowIdHighWaterMark": mark})
    return {"domainMetadata": {"domain": MARK, "configuration": said, "removed": False}}


def wrong_ids(actions: Mapping[int, list[dict[str, Any]]]) -> Iterator[str]:
    """What is wrong with the row ids of a log: the promise is that no id is ever given twice.

    Args:
        actions: version -> the values of its lines. No file is added twice in these histories.
    """
    taken: dict[int, str] = {}
    mark = -1
    for version, found in sorted(actions.items()):
        said = [each["domainMetadata"] for each in found if "domainMetadata" in each]
        marks = [each["configuration"] for each in said if each["domain"] == MARK]
        if len(marks) > 1:
            yield f"version {version} sets {len(marks)} marks"
        before, mark = mark, json.loads(marks[0])["rowIdHighWaterMark"] if marks else mark
        if mark < before:
            yield f"version {version} sets the mark back from {before} to {mark}"
        for add in (each["add"] for each in found if "add" in each):
            path, first = add["path"], add.get("baseRowId")
            if first is None or add.get("defaultRowCommitVersion") != version:
                at = add.get("defaultRowCommitVersion")
                yield f"{path} of version {version} has the row id {first} and says version {at}"
                continue
            for row_id in range(first, first + json.loads(add["stats"])["numRecords"]):
                if row_id in taken or not before < row_id <= mark:
                    other = taken.get(row_id)
                    yield f"{path} has the row id {row_id} (mark {mark}), as has {other}"
                taken[row_id] = path


def wrong_times(actions: Mapping[int, list[dict[str, Any]]]) -> Iterator[str]:
    """What is wrong with the commit times of a log: from where they are on, they ascend."""
    on, last = False, -1
    for version, found in sorted(actions.items()):
        if "commitInfo" not in found[0]:
            yield f"version {version} does not begin with its commitInfo"
            continue
        time = found[0]["commitInfo"].get("inCommitTimestamp")
        heads = [each["metaData"] for each in found if "metaData" in each]
        settings = heads[0]["configuration"] if heads else {}
        was_on = on
        on = on or settings.items() >= TIMES.items()
        if not on:
            if time is not None:
                yield f"version {version} carries a time, and needs none"
            continue
        if time is None or time <= last:
            yield f"version {version} carries the time {time}, after {last}"
            continue
        last = time
        recorded = (settings.get(_SINCE), settings.get(_AT))
        if version and not was_on and recorded != (str(version), str(time)):
            yield f"version {version} switches times on at {time}, and records {recorded}"
