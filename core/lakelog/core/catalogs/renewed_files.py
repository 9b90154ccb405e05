"""A file system whose credentials are renewed while it is in use.

A writer of hours, or a reader, has one file system from its first file to its last. Each file is
opened by the one whose credentials hold then; its bytes go straight through that. Sent to another
process, it is the one that it was when it was sent.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

import pyarrow.fs as pafs

from lakelog.core.clock import utc_time
from lakelog.core.errors import CatalogError

if TYPE_CHECKING:
    from collections.abc import Callable

_here: WeakSet[_RenewedFiles] = WeakSet()
"""Those that were sent to this process and are in use."""
_EXPIRED: Final = re.compile("expired", re.IGNORECASE)
"""In the codes and the texts by which storages say so."""


@dataclass(frozen=True, slots=True)
class SentFiles:
    """A file system that goes elsewhere, where nobody renews its credentials."""

    filesystem: pafs.FileSystem
    ends_at_ms: int | None
    """When they end: milliseconds since the epoch; None for never."""
    table: str
    """Its name, as SQL spells it."""
    catalog: str

    def ended(self, said: OSError) -> CatalogError | None:
        """What a failure means, where it is that they have ended.

        Args:
            said: what the file system raised.
        """
        if isinstance(said, CatalogError) or self.ends_at_ms is None:
            return None
        is_over = time.time() * 1000 >= self.ends_at_ms
        if isinstance(said, FileNotFoundError) or not (is_over or _EXPIRED.search(str(said))):
            return None
        ended = utc_time(self.ends_at_ms).isoformat(timespec="seconds")
        return CatalogError(
            f"the credentials that the catalog {self.catalog} vended for {self.table} have ended, "
            f"at {ended}: a task has those that its job began with, and only the driver asks for "
            "others. Run it again, and make a DataFrame that was read before anew: each job of a "
            "statement or of a micro-batch gets fresh ones. What takes longer than they live needs "
            "smaller jobs, credentials that live longer, or the storage's own keys in the conf "
            f"and spark.lakelog.catalog.{self.catalog}.credentials = own. ({said})",
            table=self.table,
        )


def ended_credentials(said: OSError) -> CatalogError | None:
    """What a failure means, where it is that credentials have ended that were sent here.

    Args:
        said: what a file system raised.
    """
    found = (each.sent.ended(said) for each in tuple(_here) if each.sent is not None)
    return next((each for each in found if each is not None), None)


def renewed_filesystem(
    current: Callable[[], pafs.FileSystem], travelling: Callable[[], SentFiles]
) -> pafs.FileSystem:
    """A file system that is, at each call, another one.

    Args:
        current: gives the one whose credentials hold for now.
        travelling: gives the one that goes elsewhere, when it is pickled.
    """
    return pafs.PyFileSystem(_RenewedFiles(current, travelling))


def _arrived(sent: SentFiles) -> _RenewedFiles:
    found = _RenewedFiles(lambda: sent.filesystem, lambda: sent)
    found.sent = sent
    _here.add(found)
    return found


class _RenewedFiles(pafs.FileSystemHandler):  # type: ignore[misc]  # pyarrow ships no types
    sent: SentFiles | None = None
    """What it is elsewhere."""

    def __init__(
        self, current: Callable[[], pafs.FileSystem], travelling: Callable[[], SentFiles]
    ) -> None:
        self._current, self._travelling = current, travelling

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _RenewedFiles) and other._current == self._current

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self._current)

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self._travelling(),)

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
