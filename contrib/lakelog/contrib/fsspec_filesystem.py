"""The file system of a `FsspecLogStore` for pyarrow, perhaps needed before any path is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyarrow.fs import FSSpecHandler, PyFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable


class _LaterHandler(FSSpecHandler):  # type: ignore[misc]  # pyarrow ships no types
    """pyarrow's handler, on a file system that is known by its first use."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made

    @property
    def fs(self) -> Any:
        return self._made()


def filesystem_of(made: Callable[[], Any]) -> PyFileSystem:
    """A pyarrow file system on the fsspec one that `made` gives when it is used."""
    return PyFileSystem(_LaterHandler(made))
