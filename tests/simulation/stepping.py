"""A store between whose calls others act."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from lakelog.logstores import LocalLogStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


class Killed(BaseException):
    """The process is gone."""


class SteppingStore(LocalLogStore):
    """Lets others act before each of its calls, those that threads make aside."""

    act: Callable[[], None] = staticmethod(lambda: None)

    def _step(self) -> None:
        if threading.current_thread() is threading.main_thread():
            self.act()

    def read_bytes(self, path: str) -> bytes:
        self._step()
        return super().read_bytes(path)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self._step()
        super().write(path, lines, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[Any]:
        self._step()
        return super().list_from(path)

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        self._step()
        found = super().delete_files(paths[:1])
        self._step()
        return found | super().delete_files(paths[1:])
