"""Keys of partitions, equal for different spellings of the same values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.compute import pc
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_mapping import physical_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.schema import StructType


def partition_key(
    values: Mapping[str, str | None], partition_schema: StructType, *, session_tz: str = "UTC"
) -> tuple[Any, ...]:
    """The typed partition values in schema order, equal for all spellings of one partition.

    A value that does not parse is its own key.
    """
    key: list[Any] = []
    for each in partition_schema:
        text, limit = values.get(physical_name(each)), limit_of(each)
        if text is not None and limit is not None:
            text = limit.padded(text)
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
    spelled = encode_partition_values(files, names)
    hits = [
        text.as_py()
        for text in pc.unique(spelled)
        if partition_key(
            decode_partition_values(text.as_py(), names), partition_schema, session_tz=session_tz
        )
        in keys
    ]
    return files.filter(pc.is_in(spelled, value_set=array_of(hits, pa.string())))


def encode_partition_values(files: pa.Table, names: Sequence[str]) -> Any:
    r"""One string per file with all its partition values, so that equal ones can be grouped.

    Values are joined by `\x01`; within them `\` is doubled and `\x01` becomes `\1`, and a null
    is `\0`: no two lists of values share a string.
    """
    columns = []
    for name in names:
        values = pc.map_lookup(files["partition_values"], name, "first")
        values = pc.replace_substring(values, "\\", "\\\\")
        values = pc.replace_substring(values, "\x01", "\\1")
        columns.append(pc.fill_null(values, "\\0"))
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, "\x01")


def decode_partition_values(text: str, names: Sequence[str]) -> dict[str, str | None]:
    """The partition values that `encode_partition_values` encoded."""
    values = text.split("\x01")
    return {
        name: None if value == "\\0" else _unescape(value)
        for name, value in zip(names, values, strict=True)
    }


def _unescape(value: str) -> str:
    return "\\".join(part.replace("\\1", "\x01") for part in value.split("\\\\"))
