"""What a transaction read, as far as it decides conflicts."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from lakelog.core.actions.file_keys import are_among
from lakelog.core.arrays import array_of
from lakelog.core.compute import pc

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from lakelog.core.expressions.tree import Expression

Handed: TypeAlias = "dict[str, tuple[int, Mapping[str, Any] | None]]"
"""Path of a live file -> its size and its deletion vector."""


class ReadSet:
    """The predicates, files and applications that a transaction looked at.

    Files are kept as the columns that they came in: paths are looked up among them only when there
    may be a conflict.
    """

    def __init__(self) -> None:
        self.whole_table = False
        self.app_ids: set[str] = set()
        self.predicates: list[Expression | None] = []
        """One entry a read; `None` is a read without predicate."""
        self.partitions: set[tuple[Any, ...]] = set()
        """Keys of the partitions that a dynamic overwrite replaces."""
        self._replaces = False
        self._tables: list[pa.Table] = []
        self._seen: list[pa.Table] = []

    def copy(self) -> ReadSet:
        """The same, to which more can be added."""
        other = copy(self)
        for name, value in vars(self).items():
            setattr(other, name, copy(value))
        return other

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the table's contents was read; a commit then is a blind append."""
        return not (self.whole_table or self.predicates or self._replaces or self._tables)

    @property
    def is_unlimited(self) -> bool:
        """Whether some read had no condition: an append anywhere in the table concerns it."""
        return self.whole_table or None in self.predicates

    @property
    def num_files(self) -> int:
        """How many files were read; one that was read twice counts twice."""
        return sum(table.num_rows for table in self._tables)

    def add_predicate(self, predicate: Expression | None) -> None:
        """Record that every row that matches was read, whether there was one or not."""
        # Each is evaluated against each winner's files; a MERGE asks with one condition many times.
        if predicate not in self.predicates:
            self.predicates.append(predicate)

    def add_files(self, files: pa.Table) -> None:
        """Record the files of a file table as read."""
        if files.num_rows:
            # Without the statistics, which are most of a file table: a transaction may live for
            # hours.
            self._tables.append(files.select(["path", "partition_values"]))
            self.add_seen(files)

    def add_seen(self, files: pa.Table) -> None:
        """Remember files of the table that were handed out, whether they count as read or not."""
        self._seen.append(files.select(["path", "size", "deletion_vector"]))

    def seen(self, paths: Collection[str]) -> Handed:
        """Those of some paths, as they are spelled, that were handed out as live files.

        Returns:
            What the table that was read has of them.
        """
        found: Handed = {}
        if not paths or not self._seen:
            return found
        wanted = array_of(list(paths), pa.string())
        for files in self._seen:
            hits = files.filter(pc.is_in(files["path"], value_set=wanted))
            for path, size, vector in zip(*(c.to_pylist() for c in hits.columns), strict=True):
                found[path] = (size, vector)
        return found

    def add_partitions(self, keys: Iterable[tuple[Any, ...]]) -> None:
        """Record partitions, by `partition_key`, as replaced whole; even none counts as a read."""
        # Beside the keys: an overwrite of no partition has decided by what the table holds, and is
        # no blind append.
        self._replaces = True
        self.partitions.update(keys)

    def find_file(
        self, table: str, paths: Sequence[str]
    ) -> tuple[str, dict[str, str | None]] | None:
        """The first of the read files that one of `paths` refers to, however either is encoded.

        Args:
            table: the table's URI.
            paths: `path`s of actions.

        Returns:
            The path, as it was read, and its partition values; or None.
        """
        if not paths or not self._tables:
            return None
        for files in self._tables:
            hits = files.filter(are_among(table, files["path"], paths))
            if hits.num_rows:
                values = hits["partition_values"][0].as_py() or []
                return hits["path"][0].as_py(), dict(values)
        return None
