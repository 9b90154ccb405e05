"""What files say that are replaced while a server runs, as a token or a certificate that ends."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_logger = logging.getLogger("lakelog")
T = TypeVar("T")


class RotatedFiles(Generic[T]):
    """Calling it gives what the files say now; where that can't be used, what they said before."""

    def __init__(self, read: Callable[[], T], *paths: Path) -> None:
        """Read them.

        Args:
            read: makes of them what is used.
            paths: the files. They are read again when one of them was changed or replaced.

        Raises:
            Exception: what `read` raises.
        """
        self._read, self._paths = read, paths
        self._mutex = threading.Lock()
        # Before they are read: what is written meanwhile is read the next time.
        self._seen = self._stamps()
        self._value = read()

    def __call__(self) -> T:
        """See the class; asks the system for the times of the files, and no more as a rule."""
        with self._mutex:
            seen = self._stamps()
            if seen != self._seen:
                self._seen = seen
                self._read_again()
            return self._value

    def _read_again(self) -> None:
        names = ", ".join(map(str, self._paths))
        try:
            self._value = self._read()
        except Exception as exc:
            # As between a certificate and its key: the next change is looked at again.
            _logger.warning("%s: what was read before is still used: %s", names, exc)
        else:
            _logger.info("%s: read again", names)

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        return [_stamp(each) for each in self._paths]


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
