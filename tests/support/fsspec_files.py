"""fsspec file systems for tests: one with a true exclusive create, and ones that misbehave."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any, ClassVar

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem

from lakelog.contrib.fsspec_store import FsspecLogStore


class LinkFileSystem(LocalFileSystem):  # type: ignore[misc]  # fsspec ships no types
    """The local disk, whose exclusive create is a link: whole, and refused by the kernel."""

    protocol = "linked"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("linked://").rstrip("/")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        target = Path(self._strip_protocol(path))
        draft = target.with_name(f".{uuid.uuid4().hex}.tmp")
        draft.write_bytes(value)
        try:
            if mode == "create":
                os.link(draft, target)
            else:
                draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


class LyingFileSystem(LinkFileSystem):
    """Takes no notice of the mode, as many file systems do."""

    protocol = "lying"

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("lying://").rstrip("/")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        super().pipe_file(path, value)


class HarmedFileSystem(MemoryFileSystem):  # type: ignore[misc]
    """Fails as it is told to, before or after the work."""

    protocol = "harmed"
    before: ClassVar[list[Exception]] = []
    after: ClassVar[list[Exception]] = []
    reading: ClassVar[list[Exception]] = []
    torn: ClassVar[list[int]] = []
    """How many bytes of a create are written before the disk is full."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        inner: str = super()._strip_protocol(str(path).replace("harmed://", "memory://"))
        return inner

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        if mode == "create" and self.before:
            raise self.before.pop()
        if mode == "create" and self.torn:
            super().pipe_file(path, value[: self.torn.pop()], mode=mode)
            raise OSError("the disk is full")
        super().pipe_file(path, value, mode=mode)
        if mode == "create" and self.after:
            raise self.after.pop()

    def cat_file(self, path: str, *args: Any, **kwargs: Any) -> bytes:
        if self.reading:
            raise self.reading.pop()
        found: bytes = super().cat_file(path, *args, **kwargs)
        return found


class SteppedFileSystem(LocalFileSystem):  # type: ignore[misc]
    """The local disk, whose uploads may stop halfway, and whose moves may not replace a file."""

    protocol = "stepped"
    torn: ClassVar[list[int]] = []
    """How many bytes of an upload arrive before the power fails."""
    moves_replace: ClassVar[bool] = True
    answers: ClassVar[bool] = True
    """Whether it says what is there; else it fails."""

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        if not self.answers:
            raise ConnectionResetError("no answer")
        found: dict[str, Any] = super().info(path, **kwargs)
        return found

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix("stepped://").rstrip("/")

    def put_file(self, path1: str, path2: str, callback: Any = None, **kwargs: Any) -> None:
        body = Path(path1).read_bytes()
        Path(path2).write_bytes(body[: self.torn[0]] if self.torn else body)
        if self.torn:
            raise InterruptedError(f"after {self.torn.pop()} bytes")

    def mv(self, path1: str, path2: str, recursive: bool = True, **kwargs: Any) -> None:
        if self.moves_replace or not Path(path2).exists():
            Path(path1).replace(path2)


for each in (LinkFileSystem, LyingFileSystem, HarmedFileSystem, SteppedFileSystem):
    fsspec.register_implementation(each.protocol, each, clobber=True)


class KnowingLogStore(FsspecLogStore):
    """Knows these file systems in every process that it is unpickled in."""
