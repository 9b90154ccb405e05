"""What a listing of a table's folder tells."""

from __future__ import annotations

from typing import NamedTuple


class FoundFile(NamedTuple):
    """A file that is not hidden."""

    path: str
    """Relative to the table's folder, as the storage spells it."""
    size: int
    """Bytes."""
    modified: int
    """Milliseconds since 1970-01-01 UTC, by the storage's clock."""


class FoundFolder(NamedTuple):
    """A folder that is not hidden."""

    path: str
    modified: int
    is_empty: bool
    """Whether there is nothing in it but empty folders; false on storage without real folders."""


class Tree:
    """What a listing has found."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.files: list[FoundFile] = []
        """Without those that were not asked for."""
        self.folders: list[FoundFolder] = []
        self.seen = 0
        """How many files there are that are not hidden."""
        self.links: list[str] = []
        """Links that are not hidden, on a local file system; none was followed."""
        self.checksums: set[str] = set()
        """Hadoop's `.x.crc` beside the file `x`, on a local file system."""


def is_plain(path: str) -> bool:
    """Whether a relative path is one that a URI can spell in just one way."""
    parts = path.split("/")
    if "" in parts or "." in parts or ".." in parts:
        return False
    try:
        path.encode()
    except UnicodeEncodeError:  # a name that is not UTF-8
        return False
    return True
