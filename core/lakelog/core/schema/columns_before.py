"""Rows of a version in the columns of a later one: which of those were which of these.

A commit that removes files may change the columns too: RESTORE, CLONE, an overwrite with another
schema. What it removed is stored as the version before said, and its change data feed has the
columns of the version after.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.schema.column_mapping import ID_KEY, NAME_KEY, physical_name
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.parts import paired_parts, with_parts
from lakelog.core.schema.types import (
    DataType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.upcasts import is_plain_text, is_upcast, is_widening

if TYPE_CHECKING:
    from collections.abc import Iterator


def columns_of(now: StructType, then: StructType) -> dict[str, StructField]:
    """The columns that two versions share: the later one's names -> the earlier one's fields.

    Columns are the same where files know them by the same name. A column that was dropped and
    added again, or mapped on one side alone, is the same where readers know it by the same name.

    Args:
        now: the later version's, as `read_schema` has it.
        then: the earlier version's, likewise.
    """
    stored = {physical_name(each): each for each in then}
    found = {
        each.name: stored.pop(physical_name(each)) for each in now if physical_name(each) in stored
    }
    left = {each.name.lower(): each for each in reversed([*stored.values()])}
    for each in now:
        if each.name not in found and each.name.lower() in left:
            found[each.name] = left.pop(each.name.lower())
    return found


def as_stored_before(now: StructType, then: StructType) -> StructType:
    """The later version's columns under the names and ids by which the earlier one's files have
    them, to be matched by these whatever the mode of either version is.

    Args:
        now: the later version's, as `read_schema` has it.
        then: the earlier version's, likewise.
    """
    same = columns_of(now, then)
    return StructType(tuple(_field(each, same.get(each.name)) for each in now))


def _field(now: StructField, then: StructField | None) -> StructField:
    if then is None:
        return now
    kept = {key: value for key, value in now.metadata.items() if key not in (ID_KEY, NAME_KEY)}
    metadata = {**kept, NAME_KEY: physical_name(then)}
    if ID_KEY in then.metadata:
        metadata[ID_KEY] = then.metadata[ID_KEY]
    kind = _kind(now.data_type, then.data_type)
    return replace(now, data_type=kind, metadata=metadata)


def _kind(now: DataType, then: DataType) -> DataType:
    if isinstance(now, StructType) and isinstance(then, StructType):
        return as_stored_before(now, then)
    return with_parts(now, [_kind(*each) for _, *each in paired_parts(now, then)])


def lossy_columns(now: StructType, then: StructType) -> list[str]:
    """The later version's columns whose type does not hold all values that they had before.

    Args:
        now: the later version's, as `read_schema` has it.
        then: the earlier version's, likewise.
    """
    return [*_lossy_paths(now, then, ())]


def _lossy_paths(now: DataType, then: DataType, path: tuple[str, ...]) -> Iterator[str]:
    match now, then:
        case StructType(), StructType():
            same = columns_of(now, then)
            for each in now:
                if each.name in same:
                    inner = (*path, each.name)
                    yield from _lossy_paths(each.data_type, same[each.name].data_type, inner)
        case _ if parts := paired_parts(now, then):
            for step, one, other in parts:
                yield from _lossy_paths(one, other, (*path, step))
        case _ if not _holds(now, then):
            yield f"{dotted(path)} ({then} to {now})"


def _holds(now: DataType, then: DataType) -> bool:
    if now == then or is_upcast(then, now) or is_widening(then, now):
        return True
    return now == PrimitiveType("string") and is_plain_text(then)
