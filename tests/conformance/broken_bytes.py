"""Stores that break one promise each in `read_bytes`, in large files, or in what they tell.

`breaks` names the check of the kit that must catch the store. Each breaks one member of the
contract alone: a check of another member does not see it.
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from lakelog.logstores import MemoryLogStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

READ_BYTES = "read_bytes_gives_the_file_that_is_there"


class DropsTheLastLine(MemoryLogStore):
    """A range that ends a line too early: a table whose last commit has no file."""

    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> bytes:
        return b"".join(super().read_bytes(path).splitlines(keepends=True)[:-1])


class DropsTheFirstLine(MemoryLogStore):
    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> bytes:
        return super().read_bytes(path).partition(b"\n")[2]


class GivesOneBufferful(MemoryLogStore):
    """One `recv` for all."""

    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> bytes:
        return super().read_bytes(path)[: 1 << 14]


class GivesALineTwice(MemoryLogStore):
    """A ranged read that is resumed one line too early."""

    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> bytes:
        lines = super().read_bytes(path).splitlines(keepends=True)
        return b"".join(lines[:2] + lines[1:])


class JoinsWithoutTheLastEnd(MemoryLogStore):
    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> bytes:
        return "\n".join(self.read(path)).encode()


class RemembersBytes(MemoryLogStore):
    """A cache that no overwrite empties."""

    breaks: ClassVar[str] = READ_BYTES

    cache: ClassVar[dict[str, bytes]] = {}

    def read_bytes(self, path: str) -> bytes:
        return self.cache.setdefault(path, super().read_bytes(path))


class ReplacesWhatItCannotDecode(MemoryLogStore):
    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> bytes:
        return super().read_bytes(path).decode("ascii", "replace").encode()


class GivesNoBytesForAMissingFile(MemoryLogStore):
    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> bytes:
        with contextlib.suppress(FileNotFoundError):
            return super().read_bytes(path)
        return b""


class GivesAView(MemoryLogStore):
    breaks: ClassVar[str] = READ_BYTES

    def read_bytes(self, path: str) -> Any:
        return memoryview(super().read_bytes(path))


class GivesHalfOfALargeFile(MemoryLogStore):
    breaks: ClassVar[str] = "a_large_file_is_kept_whole"

    def read_bytes(self, path: str) -> bytes:
        return super().read_bytes(path)[: 40 << 20]


# Large files


class JoinsItsPartsOverWhatIsThere(MemoryLogStore):
    """The condition is in the small upload only; completing a multipart one has none."""

    breaks: ClassVar[str] = "of_large_files_exactly_one_wins_too"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        large = sum(map(len, kept)) > 8 << 20
        if large:
            # Parts take their time to go up; in memory they would not.
            threading.Event().wait(0.1)
        super().write(path, kept, overwrite=overwrite or large)


class LooksOnceBeforeItsParts(MemoryLogStore):
    """Looks for the name when the first part goes up, and not when they are joined."""

    breaks: ClassVar[str] = "of_large_files_exactly_one_wins_too"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        with contextlib.suppress(FileNotFoundError):
            super().read_bytes(path)
            super().write(path, lines, overwrite=overwrite)
            return
        kept = list(lines)
        large = sum(map(len, kept)) > 8 << 20
        if large:
            # Parts take their time to go up; in memory they would not.
            threading.Event().wait(0.1)
        super().write(path, kept, overwrite=overwrite or large)


class KeepsALargeRefusedFile(MemoryLogStore):
    breaks: ClassVar[str] = "of_large_files_exactly_one_wins_too"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        try:
            super().write(path, kept, overwrite=overwrite)
        except FileExistsError:
            if sum(map(len, kept)) > 8 << 20:
                super().write(path, kept, overwrite=True)
            raise


# What it tells


class ShowsAllSettings(MemoryLogStore):
    breaks: ClassVar[str] = "no_error_shows_a_secret"

    def settings(self) -> Mapping[str, str]:
        return dict(self.conf)


class ForgetsItsConf(MemoryLogStore):
    breaks: ClassVar[str] = "a_store_can_be_pickled_and_copied"

    @property
    def conf(self) -> Mapping[str, str]:
        return {"made.by": str(id(self))}


class HasNoFileSystem(MemoryLogStore):
    breaks: ClassVar[str] = "the_file_system_shows_the_same_storage"

    @property
    def filesystem(self) -> Any:
        import pyarrow.fs

        return pyarrow.fs.LocalFileSystem()
