"""The options of a stream out of a table, with Delta's names."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from lakelog.core.conf import illegal_option, option
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.streaming.tracking.permission import ALLOWING_OPTIONS
from lakelog.logstores.keys import flag, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STREAM_OPTIONS: Final = (
    *ALLOWING_OPTIONS,
    "excludeRegex",
    "failOnDataLoss",
    "ignoreChanges",
    "ignoreDeletes",
    "ignoreFileDeletion",
    "maxBytesPerTrigger",
    "maxFilesPerTrigger",
    "schemaLocation",
    "schemaTrackingLocation",
    "skipChangeCommits",
    "streamingSourceTrackingId",
)
_TRACKING: Final = ("schematrackinglocation", "schemalocation")
_MOST_FILES: Final = 1000
_BYTES: Final = re.compile(r"([0-9]+)\s*([a-z]*)")
_UNITS: Final = {
    **dict.fromkeys(("", "b"), 1),
    **dict.fromkeys(("k", "kb"), 1 << 10),
    **dict.fromkeys(("m", "mb"), 1 << 20),
    **dict.fromkeys(("g", "gb"), 1 << 30),
    **dict.fromkeys(("t", "tb"), 1 << 40),
    **dict.fromkeys(("p", "pb"), 1 << 50),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """Where a stream begins, how much a batch takes, and which commits it may pass over."""

    starting_version: int | Literal["latest"] | None = None
    starting_timestamp: int | None = None
    """Milliseconds since the epoch."""
    max_files: int | None = _MOST_FILES
    max_bytes: int | None = None
    """A batch has at least one file, however large."""
    ignore_deletes: bool = False
    """Whether commits that only remove files are passed over."""
    ignore_changes: bool = False
    """Whether of commits that change rows the new files are read: rows come again."""
    skip_change_commits: bool = False
    """Whether commits that remove files are passed over, whatever they add."""
    exclude: re.Pattern[str] | None = None
    """Files whose path it finds itself in are left out."""
    fail_on_data_loss: bool = True
    tracking_location: str | None = None
    """Where the stream keeps a log of its columns; `None`: it has those that the table has."""
    tracking_id: str | None = None
    """Tells two streams apart that read one table within one query."""
    allowed: Mapping[str, str] = field(default_factory=dict)
    """Of `ALLOWING_OPTIONS`, in lower case: which changes of columns the stream goes past."""

    @classmethod
    def from_options(
        cls, options: Mapping[str, str], millis: Callable[[str], int]
    ) -> StreamOptions:
        """Read the options.

        Args:
            options: names in any case -> values as Spark passes them.
            millis: turns the text of a time into epoch milliseconds.

        Raises:
            DeltaAnalysisError: a value that can't be read, two starts, or an option that asks for
                what there is not.
        """
        given = {key.lower(): str(value) for key, value in options.items()}
        version, time = given.get("startingversion"), given.get("startingtimestamp")
        if version is not None and time is not None:
            raise DeltaAnalysisError(
                "[DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET] Please either provide "
                "'startingVersion' or 'startingTimestamp'"
            )
        files, size = given.get("maxfilespertrigger"), given.get("maxbytespertrigger")
        only_bytes = files is None and size is not None
        return cls(
            starting_version=None if version is None else _version(version),
            starting_timestamp=None if time is None else _moment(time, millis),
            max_files=None if only_bytes else _count("maxFilesPerTrigger", files),
            max_bytes=None if size is None else _bytes("maxBytesPerTrigger", size),
            ignore_deletes=option(given, flag("ignoreDeletes", False)),
            # The first name is an old one for the second.
            ignore_changes=option(given, flag("ignoreFileDeletion", False))
            or option(given, flag("ignoreChanges", False)),
            skip_change_commits=option(given, flag("skipChangeCommits", False)),
            exclude=_pattern(given.get("excluderegex")),
            fail_on_data_loss=option(given, flag("failOnDataLoss", True)),
            tracking_location=next((given[each] for each in _TRACKING if given.get(each)), None),
            tracking_id=given.get("streamingsourcetrackingid") or None,
            allowed={
                each.lower(): given[each.lower()]
                for each in ALLOWING_OPTIONS
                if each.lower() in given
            },
        )


def _moment(text: str, millis: Callable[[str], int]) -> int:
    try:
        return millis(text)
    except DeltaAnalysisError as exc:
        raise DeltaAnalysisError(
            f"[DELTA_TIMESTAMP_INVALID] The provided timestamp ('{text}') cannot be converted to a "
            "valid timestamp: startingTimestamp takes a date, or a time such as 2026-01-31 12:00",
            option="startingTimestamp",
            value=text,
        ) from exc


def _version(text: str) -> int | Literal["latest"]:
    if text.strip().lower() == "latest":
        return "latest"
    return _whole("startingVersion", text, 0, "a version, or latest")


def _count(name: str, text: str | None) -> int:
    return _MOST_FILES if text is None else _whole(name, text, 1, "a positive integer")


def _whole(name: str, text: str, least: int, expected: str) -> int:
    try:
        return int(meaning("whole", text, least))
    except ValueError:
        raise illegal_option(name, text, expected) from None


def _bytes(name: str, text: str) -> int:
    found = _BYTES.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS or not int(found[1]):
        raise illegal_option(name, text, "a size configuration such as '10g'")
    return int(found[1]) * _UNITS[found[2]]


def _pattern(text: str | None) -> re.Pattern[str] | None:
    if text is None:
        return None
    try:
        with warnings.catch_warnings():
            # Sets within sets, which Java's patterns have, would be read as something else.
            warnings.simplefilter("error", FutureWarning)
            return re.compile(text)
    except (re.error, FutureWarning) as exc:
        raise DeltaAnalysisError(
            "[DELTA_REGEX_OPT_SYNTAX_ERROR] Please recheck your syntax for 'excludeRegex': "
            f"{text!r} ({exc}). It is read as a pattern of Python's.",
            option="excludeRegex",
            value=text,
        ) from exc
