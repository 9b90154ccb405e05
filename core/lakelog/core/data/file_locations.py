"""Where data files are, as far as a reader may follow a log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lakelog.core.errors import CorruptLogError
from lakelog.core.paths import data_path, is_local

if TYPE_CHECKING:
    from collections.abc import Iterable


class DataPlaces:
    """Locates the files that a log names, and refuses those that only seem to be the table's.

    A relative path is a file of the table: one that leaves it by `..`, or through a link of the
    local file system, would make a reader of the table read files outside the table. An absolute
    path says where it leads, and is followed, as shallow clones want it.
    """

    def __init__(self, table: str) -> None:
        """Start with no path checked.

        Args:
            table: its URI.
        """
        self._table = table
        self._is_local = is_local(table)
        self._inside: dict[str, bool] = {}

    def resolve(self, paths: Iterable[str]) -> list[str]:
        """The storage paths of the files that actions name.

        Args:
            paths: the actions' `path`s.

        Raises:
            CorruptLogError: one of them leaves the table.
        """
        found = []
        for path in paths:
            place = data_path(self._table, path)
            self.check(place, path)
            found.append(place)
        return found

    def check(self, place: str, path: str) -> None:
        """Refuse a file of the table's own folder that is a link to somewhere else.

        Args:
            place: where the storage keeps it.
            path: as the log spells it.

        Raises:
            CorruptLogError: it is one, or a folder on the way is.
        """
        if not self._is_local or path.startswith("/") or path[:5].lower() == "file:":
            return  # an absolute path means what it leads to
        folder = place.rpartition("/")[0]
        if folder not in self._inside:
            self._inside[folder] = self._is_inside(folder)
        is_link = os.path.islink(place)  # noqa: PTH114 # a table may have a million files
        if not self._inside[folder] or (is_link and not self._is_inside(place)):
            raise CorruptLogError(
                f"the log of {self._table} names the file {path}, but a link on the way leads out "
                f"of the table, to {os.path.realpath(place)}. It was not touched. Use an absolute "
                "path for the file in the log, or put the file itself where the link is.",
                table=self._table,
                path=path,
            )

    def _is_inside(self, place: str) -> bool:
        root = os.path.realpath(self._table)
        return f"{os.path.realpath(place)}/".startswith(f"{root.rstrip('/')}/")
