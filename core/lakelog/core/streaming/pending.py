"""What a version has for a stream, and how much of it a batch takes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from lakelog.core.actions import AddFile, Metadata, Protocol
    from lakelog.core.change_feed.commits import ChangeCommit
    from lakelog.core.streaming.stream_options import StreamOptions


@dataclass(frozen=True, slots=True)
class Pending:
    """The files of one version that a stream reads, in order."""

    files: pa.Table | tuple[AddFile, ...]
    """Of a commit whose files are read as they are its actions: a table for each of a thousand
    commits takes longer than to read them. Otherwise `path` and `size` at least, and rows of
    `FILE_SCHEMA` for a whole version.
    """
    whole: bool = False
    """Whether a batch takes all of them or none: both images of an updated row, for example."""
    commit: ChangeCommit | None = None
    """Whose changes they are; `None` for the rows of a whole version."""
    metadata: Metadata | None = None
    """The commit's, if it has any."""
    protocol: Protocol | None = None
    """The commit's, if it has one."""

    def sizes(self, first: int, count: int) -> list[int]:
        """The bytes of some of the files, from number `first` on."""
        if isinstance(self.files, tuple):
            return [each.size for each in self.files[first : first + count]]
        sizes: list[int] = self.files["size"].slice(first, count).to_pylist()
        return sizes


class Room:
    """How much a batch may still take."""

    def __init__(self, options: StreamOptions, *, limited: bool) -> None:
        """Begin a batch, with or without the limits of the options."""
        self._files = options.max_files if limited else None
        self._bytes = options.max_bytes if limited else None
        self._begun = False

    def take(self, pending: Pending, first: int) -> int:
        """How many of a version's files the batch takes, from number `first` on."""
        take = self._take_whole if pending.whole else self._take_some
        count = take(pending, first, len(pending.files) - first)
        self._begun = self._begun or count > 0
        return count

    def _take_some(self, pending: Pending, first: int, count: int) -> int:
        if self._files is not None:
            count = min(count, max(self._files, 0))
        if self._bytes is not None:
            if self._bytes <= 0:
                return 0
            # The file that reaches the limit is still taken.
            sizes = list(accumulate(pending.sizes(first, count)))
            count = min(count, bisect_left(sizes, self._bytes) + 1)
            self._bytes -= sizes[count - 1] if count else 0
        if self._files is not None:
            self._files -= count
        return count

    def _take_whole(self, pending: Pending, first: int, count: int) -> int:
        size = sum(pending.sizes(first, count))
        fits = (self._files is None or count <= self._files) and (
            self._bytes is None or size <= self._bytes
        )
        # However much it is, the first one of a batch is taken: the stream would stand still.
        if self._begun and not fits:
            return 0
        if self._files is not None:
            self._files -= count
        if self._bytes is not None:
            self._bytes -= size
        return count
