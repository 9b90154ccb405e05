"""What a transaction read: the part of its state that conflicts are judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.column_mapping import physical_name
from lakelog.core.compute import pc
from lakelog.core.file_keys import are_among
from lakelog.core.partition_casts import cast_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.expressions import Expression
    from lakelog.core.schema import StructType

__all__ = [
    "ReadSet",
    "files_in_partitions",
    "partition_key",
    "partition_keys",
    "spelled_partitions",
    "unspelled",
]


class ReadSet:
    """The predicates, files and applications that a transaction looked at.

    Files are kept as the columns that they came in: only a conflict makes somebody look for a
    path among them.
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
        if predicate not in self.predicates:
            self.predicates.append(predicate)

    def add_files(self, files: pa.Table) -> None:
        """Record the files of a file table as read."""
        if files.num_rows:
            self._tables.append(files.select(["path", "partition_values"]))

    def add_partitions(self, keys: Iterable[tuple[Any, ...]]) -> None:
        """Record partitions, by `partition_key`, as replaced whole; none is a read, too."""
        self._replaces = True
        self.partitions.update(keys)

    def find_file(
        self, table: str, paths: Sequence[str]
    ) -> tuple[str, dict[str, str | None]] | None:
        """The first of the read files that one of `paths` means, however either is spelled.

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


def partition_key(
    values: Mapping[str, str | None], partition_schema: StructType, *, session_tz: str = "UTC"
) -> tuple[Any, ...]:
    """What two spellings of one partition have in common: the typed values, in schema order.

    A value that does not parse stands for itself.
    """
    key: list[Any] = []
    for each in partition_schema:
        text = values.get(physical_name(each))
        try:
            key.append(cast_text(text, each.data_type, session_tz))
        except (ValueError, ArithmeticError):
            key.append(("unparsed", text))
    return tuple(key)


def partition_keys(
    adds: Iterable[AddFile], partition_schema: StructType, *, session_tz: str = "UTC"
) -> set[tuple[Any, ...]]:
    """The keys of the partitions that files lie in."""
    return {
        partition_key(add.partition_values, partition_schema, session_tz=session_tz) for add in adds
    }


def files_in_partitions(
    files: pa.Table,
    keys: set[tuple[Any, ...]],
    partition_schema: StructType,
    *,
    session_tz: str = "UTC",
) -> pa.Table:
    """The rows of a file table that lie in the partitions of these keys."""
    if not keys:
        return files.slice(0, 0)
    if not len(partition_schema):
        return files
    names = [physical_name(each) for each in partition_schema]
    spelled = spelled_partitions(files, names)
    hits = [
        text.as_py()
        for text in pc.unique(spelled)
        if partition_key(unspelled(text.as_py(), names), partition_schema, session_tz=session_tz)
        in keys
    ]
    return files.filter(pc.is_in(spelled, value_set=pa.array(hits, pa.string())))


def spelled_partitions(files: pa.Table, names: Sequence[str]) -> Any:
    r"""One text a file that spells all its partition values, so that equal ones can be grouped.

    Values are joined by `\x01`; within them `\` is doubled and `\x01` becomes `\1`, and a null
    is `\0`: no two lists of values share a text.
    """
    columns = []
    for name in names:
        values = pc.map_lookup(files["partition_values"], name, "first")
        values = pc.replace_substring(values, "\\", "\\\\")
        values = pc.replace_substring(values, "\x01", "\\1")
        columns.append(pc.fill_null(values, "\\0"))
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, "\x01")


def unspelled(text: str, names: Sequence[str]) -> dict[str, str | None]:
    """The partition values that `spelled_partitions` made a text of."""
    values = text.split("\x01")
    return {
        name: None if value == "\\0" else _unescape(value)
        for name, value in zip(names, values, strict=True)
    }


def _unescape(value: str) -> str:
    return "\\".join(part.replace("\\1", "\x01") for part in value.split("\\\\"))
