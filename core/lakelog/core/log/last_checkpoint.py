"""`_last_checkpoint`: the hint that saves a reader from listing the whole log.

It is only ever a hint. Missing, torn, wrong or pointing at nothing: the reader lists from the
start and finds the same state, a little later.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from hashlib import md5
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from lakelog.core.log.file_names import LAST_CHECKPOINT, log_path
from lakelog.core.log.own_files import OwnFiles
from lakelog.logstores.errors import StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from lakelog.logstores.contract import LogStore

_log = logging.getLogger("lakelog")


@dataclass(frozen=True, slots=True, kw_only=True)
class LastCheckpoint:
    """What the hint says."""

    version: int
    size: int = -1
    """Actions (rows) of the checkpoint; -1 where unknown."""
    parts: int | None = None
    """How many files, where there is more than one."""
    size_in_bytes: int | None = None
    num_of_add_files: int | None = None
    v2: Mapping[str, Any] | None = None
    """Of a V2 checkpoint: name (`path`), `sizeInBytes` and `modificationTime` of its top level."""

    def to_json(self) -> str:
        """The content of the file, with its checksum."""
        value: dict[str, Any] = {"version": self.version, "size": self.size}
        if self.parts is not None:
            value["parts"] = self.parts
        if self.size_in_bytes is not None:
            value["sizeInBytes"] = self.size_in_bytes
        if self.num_of_add_files is not None:
            value["numOfAddFiles"] = self.num_of_add_files
        if self.v2 is not None:
            value["v2Checkpoint"] = dict(self.v2)
        return orjson.dumps({**value, "checksum": hint_checksum(value)}).decode()


def read_last_checkpoint(store: LogStore, table: str) -> LastCheckpoint | None:
    """Read the hint; `None`, with a warning in the log, where it can't be relied on.

    Raises:
        StorageUnavailableError: the storage served nothing for as long as the store may ask.
    """
    path = log_path(table, LAST_CHECKPOINT)
    try:
        return _parse("\n".join(store.read(path)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as exc:
        # Usually the whole log is not readable then, and the listing that follows says so, once.
        _log.info("ignoring the checkpoint hint %s: %s", path, exc)
        return None
    except StorageUnavailableError:
        # The store has retried for as long as it may: going on would take as long again.
        raise
    except (OSError, ValueError) as exc:
        _log.warning("ignoring the checkpoint hint %s: %s", path, exc)
        return None


def write_last_checkpoint(store: LogStore, table: str, hint: LastCheckpoint) -> bool:
    """Publish the hint, unless there is a newer one; say whether it was written.

    Where the store does not overwrite atomically it is read back, and a torn one written again.
    """
    known = read_last_checkpoint(store, table)
    if known is not None and known.version > hint.version:
        return False
    path, own = log_path(table, LAST_CHECKPOINT), OwnFiles(store, table)
    own.replace(path, [hint.to_json()])
    if store.capabilities.atomic_overwrite or _stands(store, table, hint):
        return True
    own.replace(path, [hint.to_json()])
    if _stands(store, table, hint):
        return True
    _log.warning("%s was written and reads otherwise: readers list the whole log", path)
    return False


def _stands(store: LogStore, table: str, hint: LastCheckpoint) -> bool:
    """Whether the hint, or another writer's newer one, can be read."""
    seen = read_last_checkpoint(store, table)
    return seen is not None and (seen == hint or seen.version > hint.version)


def hint_checksum(value: dict[str, Any]) -> str:
    """MD5 over the canonical form of the JSON (PROTOCOL.md, "JSON checksum")."""
    body = {key: item for key, item in value.items() if key != "checksum"}
    text = ",".join(sorted(_leaves(body, "")))
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _leaves(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict):
        steps = [(_quoted(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        steps = [(str(index), item) for index, item in enumerate(value)]
    else:
        yield f"{path}={_quoted(value) if isinstance(value, str) else json.dumps(value)}"
        return
    for step, item in steps:
        yield from _leaves(item, f"{path}+{step}" if path else step)


def _quoted(text: str) -> str:
    # With an empty `safe`, `quote` leaves exactly A-Z a-z 0-9 _ . - ~ bare.
    return f'"{quote(text, safe="")}"'


def _parse(text: str) -> LastCheckpoint:
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    checksum = value.get("checksum")
    if checksum is not None and checksum != hint_checksum(value):
        raise ValueError("its checksum does not match")
    version = value.get("version")
    if type(version) is not int or not 0 <= version < 1 << 63:
        raise ValueError(f"its version is {version!r}")
    return LastCheckpoint(
        version=version,
        size=_number(value, "size") if value.get("size") is not None else -1,
        parts=_number(value, "parts"),
        size_in_bytes=_number(value, "sizeInBytes"),
        num_of_add_files=_number(value, "numOfAddFiles"),
        v2=v2 if isinstance(v2 := value.get("v2Checkpoint"), dict) else None,
    )


def _number(value: dict[str, Any], key: str) -> Any:
    number = value.get(key)
    if number is not None and type(number) is not int:
        raise ValueError(f"its {key} is {number!r}")
    return number


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("it has a duplicate key")
    return value
