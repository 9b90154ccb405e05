"""A file system whose credentials are renewed while it is in use.

A writer of hours, or a reader, has one file system from its first file to its last. Each file is
opened by the one whose credentials hold then; its bytes go straight through that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs

if TYPE_CHECKING:
    from collections.abc import Callable


def renewed_filesystem(current: Callable[[], pafs.FileSystem]) -> pafs.FileSystem:
    """A file system that is, at each call, another one.

    Args:
        current: gives the one whose credentials hold for now.
    """
    return pafs.PyFileSystem(_RenewedFiles(current))


def _fixed(filesystem: pafs.FileSystem) -> _RenewedFiles:
    return _RenewedFiles(lambda: filesystem)


class _RenewedFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    def __init__(self, current: Callable[[], pafs.FileSystem]) -> None:
        self._current = current

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RenewedFiles) and other._current == self._current

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._current)

    def __reduce__(self) -> tuple[Any, ...]:
        # Elsewhere nobody renews anything: it goes on as long as the credentials of now do.
        return _fixed, (self._current(),)

    def get_type_name(self) -> str:
        return f"renewed {self._current().type_name}"

    def normalize_path(self, path: str) -> str:
        return str(self._current().normalize_path(path))

    def get_file_info(self, paths: list[str]) -> list[Any]:
        return list(self._current().get_file_info(paths))

    def get_file_info_selector(self, selector: Any) -> list[Any]:
        return list(self._current().get_file_info(selector))

    def create_dir(self, path: str, recursive: bool) -> None:
        self._current().create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._current().delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._current().delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise PermissionError("a table's storage is never emptied as a whole")

    def delete_file(self, path: str) -> None:
        self._current().delete_file(path)

    def move(self, src: str, dest: str) -> None:
        self._current().move(src, dest)

    def copy_file(self, src: str, dest: str) -> None:
        self._current().copy_file(src, dest)

    def open_input_stream(self, path: str) -> Any:
        return self._current().open_input_stream(path)

    def open_input_file(self, path: str) -> Any:
        return self._current().open_input_file(path)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return self._current().open_output_stream(path, metadata=metadata or None)

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        return self._current().open_append_stream(path, metadata=metadata or None)
