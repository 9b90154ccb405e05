"""Finding tables below a folder of any storage, or in a catalog, within bounds."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Final

from lakelog.cli.table_options import table_uri
from lakelog.core.engine.log import log_path
from lakelog.core.engine.tables import listed_by
from lakelog.logstores import log_store_for
from lakelog.logstores.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakelog.core.engine.tables import TableName
    from lakelog.logstores import LogStore

MOST_TABLES: Final = 1_000
_MOST_FOLDERS: Final = 10_000
_MOST_ENTRIES: Final = 20_000
"""Of one folder; more are files of something that is no table."""
_DEEPEST: Final = 8


def walk(place: str, conf: Mapping[str, str], tell: Callable[[str], None]) -> Walk | Names:
    """What looks below a place, which may be a name in a catalog: see `Walk`."""
    names = listed_by(place, conf)
    return Walk(place, conf, tell) if names is None else Names(place, names, tell)


class Names:
    """A look into a catalog, or one schema of it; or at one of its tables."""

    def __init__(
        self, place: str, names: Callable[[], Iterator[TableName]], tell: Callable[[str], None]
    ) -> None:
        """Ask nothing yet.

        Args:
            place: the name.
            names: asks for those of the tables.
            tell: called with what is being done.
        """
        self.left_out: list[str] = []
        self._place, self._names, self._tell = place, names, tell

    def require(self) -> None:
        """Make sure that the catalog is there, and has such a schema or table.

        Raises:
            TableNotFoundError: it has not.
            CatalogError: it can't be reached, or refuses.
        """
        next(self._names(), None)

    def tables(self) -> Iterator[str]:
        """The names of tables, as the catalog lists them."""
        self._tell(f"asking for the tables of {self._place}")
        for at, name in enumerate(islice(self._names(), MOST_TABLES + 1)):
            if at == MOST_TABLES:
                self.left_out.append(
                    f"{self._place}: only the first {at:,} tables are shown. Give a schema."
                )
                return
            yield str(name)


class Walk:
    """A look below one place: the tables, as they are found, and what was left out."""

    def __init__(self, place: str, conf: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Look at nothing yet.

        Args:
            place: the URI of a table, or of a folder.
            conf: the user's; chooses the store.
            tell: called with what is being done.

        Raises:
            click.UsageError: it is no URI of a table or folder.
            LogStoreError: the conf does not lead to a store.
        """
        self.place: str = table_uri(place)
        self._store: LogStore = log_store_for(self.place, conf)
        self._tell = tell
        self.left_out: list[str] = []
        """What was not looked into, in words."""

    def require(self) -> None:
        """Make sure that the place is there.

        Raises:
            FileNotFoundError: nothing is there.
            OSError: it can't be listed.
        """
        for _ in self._store.list_from(f"{self.place}/"):
            return

    def tables(self) -> Iterator[str]:
        """The URIs of tables, nearer ones first; nothing below a table is looked into."""
        waiting, partitions = deque([(self.place, 0)]), deque[tuple[str, int]]()
        folders = found = 0
        while waiting or partitions:
            folder, depth = (waiting or partitions).popleft()
            folders += 1
            if folders > _MOST_FOLDERS or found == MOST_TABLES:
                self.left_out.append(
                    f"{self.place}: the search ended after {folders - 1:,} folders and "
                    f"{found:,} tables. Give a folder further down."
                )
                return
            self._tell(f"searching {folder}")
            try:
                if self._is_table(folder):
                    found += 1
                    yield folder
                elif depth < _DEEPEST:
                    for each in self._folders(folder):
                        # Most likely of a folder of plain Parquet files, which may have thousands.
                        last = "=" in each.rpartition("/")[2]
                        (partitions if last else waiting).append((each, depth + 1))
            except (OSError, LogStoreError) as error:
                self.left_out.append(f"{folder}: {error}")

    def _is_table(self, folder: str) -> bool:
        path = log_path(folder)
        first = next(iter(self._store.list_from(path)), None)
        return first is not None and first.is_directory and first.name == path.rpartition("/")[2]

    def _folders(self, folder: str) -> Iterator[str]:
        for at, each in enumerate(self._store.list_from(f"{folder}/")):
            if at == _MOST_ENTRIES:
                self.left_out.append(f"{folder}: only the first {at:,} entries were looked at.")
                return
            # Others are of engines.
            if each.is_directory and not each.name.startswith((".", "_")):
                yield f"{folder}/{each.name}"
