"""The lock table as the commit protocol needs it: one request per method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow


class RowTakenError(Exception):
    """There is a row of that key already."""

    def __init__(self, row: CommitRow | None) -> None:
        """Keep the row, where the service returned it."""
        super().__init__("the key has a row")
        self.row = row


class RowTable(ABC):
    """Rows by `tablePath` and `fileName`. Nothing is repeated here, and all reads are consistent.

    Every method raises `TryAgainError` for throttling, timeouts, broken connections and 5xx, and
    `LockTableError`, `PermissionError` or `OSError` for what no retry can fix.
    """

    @property
    @abstractmethod
    def place(self) -> str:
        """The table's name and where it is, for messages."""

    @abstractmethod
    def get(self, table_path: str, file_name: str) -> CommitRow | None:
        """One row."""

    @abstractmethod
    def newest(self, table_path: str) -> CommitRow | None:
        """The row whose file name is the last in string order."""

    @abstractmethod
    def insert(self, row: CommitRow) -> None:
        """Put a row where there is none.

        Raises:
            RowTakenError: there is one.
        """

    @abstractmethod
    def replace(self, row: CommitRow) -> None:
        """Put a row, whatever is there."""

    @abstractmethod
    def rows(self, table_path: str) -> Iterator[CommitRow]:
        """All rows of a table, ascending by file name. Takes several requests."""

    @abstractmethod
    def delete(self, row: CommitRow) -> None:
        """Delete a row. Only `migrate` does: no commit ever does."""
