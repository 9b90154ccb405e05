"""How the schema of a table grows by a MERGE: by what its clauses assign, and no more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.assignment import fitting
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.schema_evolution import merge_schemas

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_VOID = PrimitiveType("void")


def evolved_schema(
    target: StructType,
    source: StructType,
    assigned: Collection[tuple[str, ...]],
    *,
    widens: bool = False,
) -> StructType:
    """The table's schema with the columns and fields that are assigned and that it lacks.

    A new one has the type that the source's column of the same name has. An existing column keeps
    its type, since what is assigned is cast to it, unless the table widens types.

    Args:
        target: the table's, as it is.
        source: of the rows that are merged into it.
        assigned: the paths that clauses with a source row assign.
        widens: whether the table has type widening.

    Raises:
        DeltaAnalysisError: a new column of type void.
        SchemaMismatchError: a struct or an array where the table has something else.
    """
    lowered = {tuple(part.lower() for part in path) for path in assigned}
    introduced = _assigned(source, (), lowered)
    _refuse_void(target, introduced, ())
    fitted = fitting(target, introduced, widens=widens)
    assert isinstance(fitted, StructType)  # a struct stays one
    return merge_schemas(target, fitted, allow_type_widening=widens)


def _assigned(
    source: StructType, above: tuple[str, ...], assigned: Collection[tuple[str, ...]]
) -> StructType:
    """The fields that are assigned, whole or in part."""
    fields: list[StructField] = []
    for field in source:
        path = (*above, field.name.lower())
        if path in assigned:
            fields.append(field)
        elif isinstance(field.data_type, StructType) and any(
            each[: len(path)] == path for each in assigned
        ):
            fields.append(field.with_type(_assigned(field.data_type, path, assigned)))
    return StructType(tuple(fields))


def _refuse_void(target: StructType, new: StructType, above: Sequence[str]) -> None:
    for field in new:
        path = (*above, field.name)
        ours = target.get(field.name)
        inner = StructType() if ours is None else ours.data_type
        if ours is None and field.data_type == _VOID:
            raise DeltaAnalysisError(
                f"[DELTA_MERGE_ADD_VOID_COLUMN] Cannot add column {dotted(path)} with type VOID. "
                "Please explicitly specify a non-void type.",
                column=dotted(path),
            )
        if isinstance(field.data_type, StructType) and isinstance(inner, StructType):
            _refuse_void(inner, field.data_type, path)
