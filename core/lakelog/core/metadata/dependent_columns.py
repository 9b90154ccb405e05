"""Columns that a CHECK constraint or a generated column of the table refers to.

Such a column can't be dropped, renamed, or given another type: the rule would lose its meaning
for rows that are in the table, and every write after that would fail on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.parse.sql import referenced_columns
from lakelog.core.schema import DataType, StructType
from lakelog.core.schema.column_paths import dotted, walk
from lakelog.core.schema.diff import same_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.features.table_properties import TableProperties

_GENERATED = "delta.generationExpression"


class _Rule(NamedTuple):
    """An expression that the table keeps."""

    name: str
    sql: str
    what: str
    codes: tuple[str, str]
    """The error conditions of a column that is gone, and of one that has another type."""


def check_dependent_columns(
    old: tuple[StructType, TableProperties] | None, new: tuple[StructType, TableProperties]
) -> None:
    """Refuse a schema that a rule of the table no longer fits.

    Args:
        old: schema and properties as they are; `None` for a new table.
        new: the same as they will be.

    Raises:
        DeltaAnalysisError: a rule names a column that is not there, or no longer, or that gets
            another type. Names the rule.
    """
    schema = new[0]
    before = {rule.name: rule for rule in _rules(*old)} if old else {}
    for rule in _rules(*new):
        kept = old is not None and before.get(rule.name) == rule
        for path in sorted(referenced_columns(rule.sql)):
            was = _find(old[0], path) if old is not None and kept else None
            now = _find(schema, path)
            if now is None and (was is not None or not kept):
                raise _missing(rule, path, schema, dropped=was is not None)
            if was is not None and now is not None and not _compatible(was, now):
                raise _retyped(rule, path, was, now)


def _rules(schema: StructType, properties: TableProperties) -> Iterator[_Rule]:
    for name, sql in properties.constraints.items():
        codes = ("DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE", "DELTA_CONSTRAINT_DATA_TYPE_MISMATCH")
        yield _Rule(name, sql, f"the CHECK constraint {name} ({sql})", codes)
    for path, field in walk(schema):
        generation = field.metadata.get(_GENERATED)
        if isinstance(generation, str):
            name = dotted(path)
            codes = (
                "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
                "DELTA_GENERATED_COLUMNS_DATA_TYPE_MISMATCH",
            )
            yield _Rule(name, generation, f"the generated column {name} ({generation})", codes)


def _compatible(was: DataType, now: DataType) -> bool:
    # A struct may get more fields: what the rule says of the others stays.
    return same_type(was, now) or (isinstance(was, StructType) and isinstance(now, StructType))


def _find(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    """The type at a path; that of a map or an array stands for what is in it."""
    kind: DataType = schema
    for name in path:
        if not isinstance(kind, StructType):
            return kind
        field = kind.get(name)
        if field is None:
            return None
        kind = field.data_type
    return kind


def _missing(
    rule: _Rule, path: tuple[str, ...], schema: StructType, *, dropped: bool
) -> DeltaAnalysisError:
    column = dotted(path)
    if dropped:
        text = (
            f"[{rule.codes[0]}] The column {column} can't be dropped or renamed: {rule.what} "
            "refers to it. Drop that first."
        )
    else:
        known = ", ".join(schema.names) or "none"
        text = (
            f"[UNRESOLVED_COLUMN] {rule.what[0].upper()}{rule.what[1:]} refers to the column "
            f"{column}, which the table does not have. It has {known}."
        )
    return DeltaAnalysisError(text, column=column, rule=rule.name)


def _retyped(
    rule: _Rule, path: tuple[str, ...], was: DataType, now: DataType
) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"[{rule.codes[1]}] The column {dotted(path)} has the type {was} and can't be changed to "
        f"{now}: {rule.what} refers to it. Drop that first, and add it again after the change.",
        column=dotted(path),
        rule=rule.name,
    )
