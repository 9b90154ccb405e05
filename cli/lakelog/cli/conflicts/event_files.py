"""Reading commit events back: from files, folders and globs, local or on any storage.

What is not an event is counted and skipped: logs of other things, the last line of a job that was
killed in the middle of it, the same event written to two places.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import sys
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import orjson

from lakelog.core.engine.tables import normalize_table_uri
from lakelog.core.events import CommitOutcome, CommitStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

_SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".log")
"""Of the files that count in a folder; a file that is named counts whatever its name."""
_WILD: Final = ("*", "?", "[")
_REQUIRED: Final = frozenset(f.name for f in fields(CommitStats) if f.default is MISSING)
_NAMES: Final = frozenset(f.name for f in fields(CommitStats))
_MOST_WINNERS: Final = 1_000_000
"""Each is visited; no attempt ever met more."""
_TEXT, _NUMBER = (str,), (int, float)
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    **dict.fromkeys(("table", "operation", "txn_id", "outcome"), _TEXT),
    **dict.fromkeys(("job", "conflict", "error"), _TEXT),
    **dict.fromkeys(("winner_operation", "winner_txn_id", "winner_engine"), _TEXT),
    **dict.fromkeys(("version", "attempt", "read_version", "winners"), (int,)),
    **dict.fromkeys(("committed_version", "winner_version"), (int,)),
    **dict.fromkeys(("timestamp", "winner_timestamp"), (int,)),
    **dict.fromkeys(("write_ms", "check_ms", "lock_wait_ms", "backoff_ms"), _NUMBER),
    "conflict_partition": (dict,),
    "partition_columns": (list,),
}
"""The fields that are used; the rest is only passed on."""
_Key: TypeAlias = tuple[str, str, int, bool]
_OUTCOMES: Final = {outcome.value: outcome for outcome in CommitOutcome}


@dataclass(slots=True)
class Reading:
    """What was read, and what was skipped."""

    events: list[CommitStats] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    lines: int = 0
    foreign: int = 0
    """Lines that are not commit events."""
    torn: int = 0
    """Last lines that end in the middle."""
    duplicates: int = 0


def read_events(
    places: Sequence[str], conf: Mapping[str, str], tell: Callable[[str], None]
) -> Reading:
    """Read all events of some places.

    Args:
        places: files, folders and globs; paths, or URIs of any storage.
        conf: the user's; leads to the storage.
        tell: called with the file that is being read.

    Raises:
        FileNotFoundError: a place that holds no file.
        OSError: a file can't be read.
    """
    found, seen = Reading(), set[_Key]()
    for place in places:
        opened = _files(place, conf)
        if not opened:
            raise FileNotFoundError(
                f"{place}: no event file found. Give the file that "
                "spark.lakelog.commitEvents.path names, or a folder of such files "
                f"({', '.join(_SUFFIXES)})."
            )
        for file in opened:
            tell(f"reading {file.name}")
            found.files.append(file.name)
            for line in file.lines(0):
                _take(found, seen, line)
    return found


class EventTail:
    """The newest events of some places, read on from where the last look ended.

    A file that became shorter is read from its start. A last line without its end is left for the
    next look, and so are places that hold no file yet.
    """

    def __init__(self, places: Sequence[str], conf: Mapping[str, str], most: int) -> None:
        """Read nothing yet.

        Args:
            places: as for `read_events`.
            conf: the user's; leads to the storage.
            most: how many events are kept; beyond that the oldest are forgotten.
        """
        self._places, self._conf, self._most = places, conf, most
        self._ends: dict[str, int] = {}
        self._seen: set[_Key] = set()
        self.reading: Reading = Reading()
        """What has been read so far."""
        self.forgotten: int = 0
        """Events that were read, and are no longer kept."""

    def look(self) -> bool:
        """Read what came since; whether anything did.

        Raises:
            OSError: a file can't be read.
        """
        before = self.reading.lines
        files = [file for place in self._places for file in _files(place, self._conf)]
        self.reading.files = [file.name for file in files]
        for file in files:
            end = self._ends.get(file.name, 0)
            if file.size == end:
                continue
            end = end if end < file.size else 0
            for line in file.lines(end):
                if not line.endswith(b"\n"):
                    break
                end += len(line)
                _take(self.reading, self._seen, line)
            self._ends[file.name] = end
            self._forget()
        return self.reading.lines != before

    def _forget(self) -> None:
        events = self.reading.events
        for event in events[: -self._most]:
            self._seen.discard(_key(event))
            self.forgotten += 1
        del events[: -self._most]


def _take(found: Reading, seen: set[_Key], line: bytes) -> None:
    if not line.strip():
        return
    found.lines += 1
    event = parse_event(line)
    if event is None:
        # Every event ends with a line break: without one, its writer was cut off.
        if line.endswith(b"\n"):
            found.foreign += 1
        else:
            found.torn += 1
        return
    key = _key(event)
    if key in seen:
        found.duplicates += 1
    else:
        seen.add(key)
        found.events.append(event)


def _key(event: CommitStats) -> _Key:
    # The end of a commit that gave up bears the number of its last attempt.
    return event.table, event.txn_id, event.attempt, event.outcome is CommitOutcome.GIVEN_UP


def parse_event(line: bytes) -> CommitStats | None:
    """The event of a line, or None if it is not one.

    What a logger puts before it, as the time, does not matter.
    """
    start = line.find(b"{")
    try:
        value = orjson.loads(line[start:]) if start >= 0 else None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or not _is_event(value):
        return None
    known = {name: item for name, item in value.items() if name in _NAMES}
    known["outcome"] = _OUTCOMES[known["outcome"]]
    if "partition_columns" in known:
        known["partition_columns"] = tuple(known["partition_columns"])
    # Thousands of events share a few names.
    for name in ("table", "operation"):
        known[name] = sys.intern(known[name])
    return CommitStats(**known)


def _is_event(value: dict[str, Any]) -> bool:
    if not value.keys() >= _REQUIRED:
        return False
    for name, item in value.items():
        kinds = _TYPES.get(name)
        # True is an int to Python only.
        if kinds is not None and (not isinstance(item, kinds) or isinstance(item, bool)):
            return False
    return value["outcome"] in _OUTCOMES and 0 <= value.get("winners", 0) <= _MOST_WINNERS


class _EventFile(NamedTuple):
    name: str
    size: int
    lines: Callable[[int], Iterator[bytes]]
    """The lines from an offset on."""


def _files(place: str, conf: Mapping[str, str]) -> list[_EventFile]:
    """The files of a place, by name."""
    if "://" in place and not place.lower().startswith("file:"):
        return _remote(place, conf)
    path = normalize_table_uri(place) if place.lower().startswith("file:") else place
    names = [path]
    if not Path(path).exists() and any(sign in path for sign in _WILD):
        names = sorted(glob.glob(path, recursive=True))  # noqa: PTH207  # an absolute pattern
    found: list[Path] = []
    for name in names:
        if Path(name).is_dir():
            found += sorted(p for p in Path(name).rglob("*") if p.is_file() and _counts(p.name))
        else:
            found += [Path(name)] if Path(name).exists() else []
    return [_EventFile(str(each), each.stat().st_size, _local_lines(each)) for each in found]


def _counts(name: str) -> bool:
    return name.endswith(_SUFFIXES) and not name.startswith((".", "_"))


def _local_lines(path: Path) -> Callable[[int], Iterator[bytes]]:
    def lines(start: int) -> Iterator[bytes]:
        with path.open("rb") as source:
            source.seek(start)
            yield from source

    return lines


def _remote(place: str, conf: Mapping[str, str]) -> list[_EventFile]:
    from pyarrow.fs import FileSelector, FileType

    from lakelog.logstores import log_store_for

    store = log_store_for(place, conf)
    filesystem, path = store.filesystem, store.filesystem_path(place)
    info = filesystem.get_file_info(path)
    if info.type == FileType.File:
        infos = [info]
    else:
        parts = path.split("/")
        wild = next((i for i, part in enumerate(parts) if any(s in part for s in _WILD)), None)
        base = path if wild is None else "/".join(parts[:wild])
        selector = FileSelector(base, recursive=True, allow_not_found=True)
        infos = sorted(
            (
                each
                for each in filesystem.get_file_info(selector)
                if each.type == FileType.File
                and (_counts(each.base_name) if wild is None else _matches(each.path, path))
            ),
            key=lambda each: each.path,
        )

    def lines_of(name: str) -> Callable[[int], Iterator[bytes]]:
        def lines(start: int) -> Iterator[bytes]:
            # Arrow's own files have no lines.
            with io.BufferedReader(filesystem.open_input_file(name)) as source:
                source.seek(start)
                yield from source

        return lines

    prefix = place[: place.index("://") + 3]
    return [_EventFile(f"{prefix}{each.path}", each.size, lines_of(each.path)) for each in infos]


def _matches(path: str, pattern: str) -> bool:
    """Match part by part: a star does not cross folders; `**` is any number of them."""
    return _parts_match(path.split("/"), pattern.split("/"))


def _parts_match(names: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        return any(_parts_match(names[i:], patterns[1:]) for i in range(len(names) + 1))
    return (
        bool(names)
        and fnmatch.fnmatchcase(names[0], patterns[0])
        and _parts_match(names[1:], patterns[1:])
    )
