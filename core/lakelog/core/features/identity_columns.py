"""Numbers for identity columns, and the mark that says how far they have come.

The high-water mark is stored in the table's schema, so a commit that assigns numbers changes the
metadata: two such commits conflict, and no number is assigned twice. A commit without any other
change of metadata says so by a tag, and then does not conflict with writers that assign none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructField, StructType
from lakelog.core.schema.column_fills import HIGH_WATER_MARK, identity_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import Metadata
    from lakelog.core.schema.column_fills import Identity

IDENTITY_TAG: Final = "delta.identity.schemaUpdate"
"""The tag of a commit whose metadata differs in high-water marks alone."""
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


def identity_columns(schema: StructType) -> dict[str, Identity]:
    """The identity columns of a table by name.

    Raises:
        CorruptLogError: a column with a part of an identity's metadata.
    """
    found = {field.name: identity_of(field) for field in schema}
    return {name: each for name, each in found.items() if each is not None}


def missing_identities(schema: StructType, data: StructType, table: str) -> dict[str, Identity]:
    """The identity columns that a writer must number, since the data lacks them.

    Raises:
        DeltaAnalysisError: the data has one that is `GENERATED ALWAYS`.
    """
    missing = {}
    for name, each in identity_columns(schema).items():
        if data.get(name) is None:
            missing[name] = each
        elif not each.allow_explicit:
            raise DeltaAnalysisError(
                "[DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED] Providing values for "
                f"GENERATED ALWAYS AS IDENTITY column {name} is not supported. Leave the column "
                f"out of the data; {table} numbers the rows itself.",
                column=name,
                table=table,
            )
    return missing


def check_capacity(name: str, sequence: Identity, last_index: int, table: str) -> None:
    """Refuse numbers that a `long` does not hold.

    Args:
        name: the column's.
        sequence: the column's.
        last_index: of the last number that is wanted.
        table: for the message.

    Raises:
        DeltaAnalysisError: there are not that many left.
    """
    if _LEAST <= sequence.value(last_index) <= _MOST:
        return
    raise DeltaAnalysisError(
        f"the identity column {name} of {table} has run out of numbers: the next would overflow a "
        f"bigint (start {sequence.start}, step {sequence.step}, last {sequence.high_water_mark}). "
        "Nothing was written.",
        column=name,
        table=table,
    )


def advanced_mark(sequence: Identity, least: int, most: int) -> int:
    """The mark of a sequence after numbers that were written.

    Args:
        sequence: the column's, as it was.
        least: the least number written.
        most: the greatest number written.
    """
    furthest = most if sequence.step > 0 else least
    index = (furthest - sequence.start) // sequence.step
    return sequence.value(max(index, sequence.taken - 1, 0))


def with_marks(metadata: Metadata, marks: Mapping[str, int]) -> Metadata:
    """The metadata with other high-water marks.

    Args:
        metadata: the table's.
        marks: column -> its new mark.
    """
    schema = StructType.from_json(metadata.schema_string)
    fields = (_marked(field, marks.get(field.name)) for field in schema)
    return replace(metadata, schema_string=StructType(tuple(fields)).to_json())


def moves_marks_only(ours: Metadata, theirs: Metadata) -> bool:
    """Whether another writer's metadata differs from ours in high-water marks alone."""
    return _without_marks(theirs) == _without_marks(ours)


def _without_marks(metadata: Metadata) -> Metadata:
    schema = StructType.from_json(metadata.schema_string)
    fields = (_marked(field, None, drop=True) for field in schema)
    return replace(metadata, schema_string=StructType(tuple(fields)).to_json())


def _marked(field: StructField, mark: int | None, *, drop: bool = False) -> StructField:
    if mark is None and not drop:
        return field
    kept = {key: value for key, value in field.metadata.items() if key != HIGH_WATER_MARK}
    more = {} if mark is None else {HIGH_WATER_MARK: mark}
    return StructField(field.name, field.data_type, field.nullable, {**more, **kept})
