"""What the SDK tells of blobs, in a client's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores._object_client import ObjectEntry

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["BlobInfo", "entry_of", "metadata_of", "milliseconds"]

_FOLDER_MARK: Final = "hdi_isfolder"
"""Metadata of blobs that stand for a directory, on accounts with a hierarchical namespace and
where Hadoop's drivers made one."""


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """What a HEAD tells."""

    length: int
    modification_time: int
    """Milliseconds since 1970-01-01 UTC."""
    etag: str
    is_folder: bool


def entry_of(item: Any, prefix: str) -> ObjectEntry:
    """A blob, or the name of a folder, relative to what was listed."""
    name = str(item.name)[len(prefix) :]
    if type(item).__name__ == "BlobPrefix":
        return ObjectEntry(name.rstrip("/"), 0, 0, is_prefix=True)
    if metadata_of(item).get(_FOLDER_MARK) == "true":
        return ObjectEntry(name, 0, 0, is_prefix=True)
    return ObjectEntry(name, int(item.size or 0), milliseconds(item.last_modified) or 0)


def milliseconds(when: datetime | None) -> int | None:
    """A time as milliseconds since 1970-01-01 UTC."""
    return None if when is None else int(when.timestamp() * 1000)


def metadata_of(item: Any) -> dict[str, str]:
    """Metadata of a blob; Azure keeps the case of names and ignores it."""
    return {str(name).lower(): str(value) for name, value in (item.metadata or {}).items()}
