"""Which files of a table have their partition values in folder names, and which do not.

The log alone is authoritative: a folder name is decoration (PROTOCOL.md, "Add File and Remove
File"). But Spark prunes partitions in its own planner only where it finds the values in folders.
So every folder is compared with the log, and Spark gets to parse folders that agree, or that
differ by a plain translation of texts (a timestamp spelled in another zone); the values of all
other files are attached from the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote

import pyarrow as pa

from lakelog.core.engine.scan import cast_text
from lakelog.core.engine.tables import data_path
from lakelog.core.engine.values import pc
from lakelog.core.schema import PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LONG = PrimitiveType("long")

_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

Text: TypeAlias = str | None


@dataclass(slots=True)
class HiveLayout:
    """Files in folders `key=value/…` below the table, all with the same keys in the same order."""

    keys: tuple[str, ...]
    """Every key of the folders; those that are not partition columns are ignored."""
    files: list[str] = field(default_factory=list)
    """Storage paths."""
    texts: dict[str, dict[Text, Text]] = field(default_factory=dict)
    """Partition column -> the folder's text -> the log's text."""

    def translations(self, column: str) -> Mapping[Text, Text]:
        """The texts of the column's folders where the log has another one."""
        return {a: b for a, b in self.texts[column].items() if a != b}


@dataclass(slots=True)
class LooseLayout:
    """Files whose partition values are only in the log."""

    files: list[str] = field(default_factory=list)
    values: list[tuple[Text, ...]] = field(default_factory=list)
    """For each file the log's texts, in the order of the partition columns."""


Layout: TypeAlias = HiveLayout | LooseLayout


def layouts(
    table: str, files: pa.Table, columns: Sequence[str], all_columns: Sequence[str]
) -> list[Layout]:
    """Sort the files of a table by how Spark can learn their partition values.

    Args:
        table: the table's URI.
        files: rows of `FILE_SCHEMA`.
        columns: the partition columns.
        all_columns: every column; a foreign folder key of such a name would shadow it.
    """
    paths = files.column("path").to_pylist()
    if not columns:
        return [LooseLayout([data_path(table, p) for p in paths], [()] * len(paths))]
    names = {c.lower() for c in all_columns}
    hive: dict[tuple[str, ...], HiveLayout] = {}
    loose = LooseLayout()
    folders: dict[str, tuple[tuple[str, Text], ...] | None] = {}
    for path, values in zip(paths, _values(files, columns), strict=True):
        folder = path.rpartition("/")[0]
        if folder not in folders:
            folders[folder] = _parse(folder, columns, names)
        pairs = folders[folder]
        if pairs is None or not _join(hive, pairs, dict(zip(columns, values, strict=True))):
            loose.files.append(data_path(table, path))
            loose.values.append(values)
        else:
            hive[tuple(k for k, _ in pairs)].files.append(data_path(table, path))
    found: list[Layout] = [each for each in hive.values() if each.files]
    return [*found, loose] if loose.files else found


def without_fractions(files: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The files, with `1` for `1.5` as the value of columns of whole numbers.

    Delta casts so in every mode of Spark, but Spark's own cast refuses it in ANSI mode.

    Args:
        files: rows of `FILE_SCHEMA`, whose partition values can be read.
        columns: the partition columns of whole numbers.
    """
    maps = files["partition_values"]
    fractions = [pc.match_substring(pc.map_lookup(maps, name, "first"), ".") for name in columns]
    if not any(pc.any(each).as_py() for each in fractions):
        return files
    known = (dict(entries or ()) for entries in maps.to_pylist())
    whole = [
        [(k, str(cast_text(v, _LONG)) if v and k in columns else v) for k, v in each.items()]
        for each in known
    ]
    at = files.column_names.index("partition_values")
    return files.set_column(at, "partition_values", pa.array(whole, maps.type))


def _values(files: pa.Table, columns: Sequence[str]) -> Iterator[tuple[Text, ...]]:
    for entries in files.column("partition_values").to_pylist():
        known = dict(entries or ())
        # The empty string is a null of every type.
        yield tuple(known.get(c) or None for c in columns)


def _parse(
    folder: str, columns: Sequence[str], names: set[str]
) -> tuple[tuple[str, Text], ...] | None:
    """The keys and texts of a relative folder; `None` where Spark would read something else."""
    if folder.startswith("/") or ":/" in folder:
        return None
    pairs: list[tuple[str, Text]] = []
    for part in unquote(folder).split("/"):
        key, equals, text = part.partition("=")
        if not equals or not key or not text:
            return None
        value = _unescape(text)
        pairs.append((_unescape(key), None if value == _NULL_FOLDER else value))
    keys = [k for k, _ in pairs]
    if len({k.lower() for k in keys}) < len(keys) or not set(columns) <= set(keys):
        return None
    foreign = {k.lower() for k in keys if k not in columns}
    return None if foreign & names else tuple(pairs)


def _unescape(text: str) -> str:
    """Undo Hive's escaping, which knows ASCII only: `%C3%BC` is two characters there, not `ü`."""
    return unquote(text, encoding="latin-1") if "%" in text else text


def _join(
    hive: dict[tuple[str, ...], HiveLayout],
    pairs: tuple[tuple[str, Text], ...],
    values: Mapping[str, Text],
) -> bool:
    """Try to add a file to its layout: each folder name may mean only one value."""
    keys = tuple(k for k, _ in pairs)
    layout = hive.setdefault(keys, HiveLayout(keys, texts={c: {} for c in values}))
    pair_values = dict(pairs)
    if any(layout.texts[c].get(pair_values[c], v) != v for c, v in values.items()):
        return False
    for column, value in values.items():
        layout.texts[column][pair_values[column]] = value
    return True
