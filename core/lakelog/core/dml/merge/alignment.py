"""How a value of one type becomes the value of a column of another: structs by name.

UPDATE and MERGE cast what they assign by Spark's ANSI rules, text to numbers included, and match
the fields of structs by name. Which casts there are is decided here, before any row is read; an
engine makes them, and finds the values for which one has no result.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.core.dml.merge.new_rows import Built, Given, Kept, Nothing, Taken
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructType,
)
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.diff import same_type
from lakelog.core.schema.parts import paired_parts
from lakelog.core.schema.types import is_variant_like

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core.dml.merge.new_rows import Value

_NUMBERS: Final = frozenset({"byte", "short", "integer", "long", "float", "double"})
_TIMES: Final = frozenset({"date", "timestamp", "timestamp_ntz"})


def can_store(source: DataType, target: DataType, *, grows: bool = False) -> bool:
    """Whether values of a type can be assigned to a column of another, by casts of ANSI mode.

    Some values may still have no result, as a text that is not a number.

    Args:
        source: of the values.
        target: of the column.
        grows: whether a struct of the values may have fields that the column's lacks.
    """
    match source, target:
        case PrimitiveType("void"), _:
            return True
        case StructType(), PrimitiveType("variant"):
            return is_variant_like(source)
        case StructType(), StructType():
            fields = ((f, target.get(f.name)) for f in source)
            return all(
                grows if t is None else can_store(f.data_type, t.data_type, grows=grows)
                for f, t in fields
            )
    if parts := paired_parts(source, target):
        return all(can_store(theirs, ours, grows=grows) for _, theirs, ours in parts)
    if any(isinstance(each, StructType | ArrayType | MapType) for each in (source, target)):
        return False
    return _atoms(_kind(source), _kind(target))


def _kind(part: DataType) -> str:
    if isinstance(part, DecimalType):
        return "number"
    name = part.name if isinstance(part, PrimitiveType) else ""
    return "number" if name in _NUMBERS else name


def _atoms(source: str, target: str) -> bool:
    if source == target:
        return True
    if "variant" in (source, target):
        return False
    if target == "string":
        return True
    if source == "string":
        return True
    if {source, target} <= {"number", "boolean"}:
        return True
    if source in _TIMES and target in _TIMES:
        return True
    return {source, target} == {"number", "timestamp"}


def aligned(
    value: Kept | Taken | Given,
    source: DataType,
    target: DataType,
    column: Sequence[str],
    *,
    evolves: bool = False,
    kept: Kept | None = None,
    kept_type: DataType | None = None,
) -> Value:
    """A value in the form of its column: a struct field by field, anything else as it is.

    Args:
        value: what is assigned.
        source: its type.
        target: the type of the column or field.
        column: the path of that, for messages.
        evolves: whether the value may lack fields of the target, which then are null.
        kept: what the target's row has there, where fields that the value lacks keep theirs.
        kept_type: the type of that.

    Raises:
        DeltaAnalysisError: there is no such cast, or the fields of the structs differ.
    """
    evolves = evolves or (isinstance(value, Given) and value.evolves)
    if not isinstance(source, StructType) or not isinstance(target, StructType):
        _check_stored(source, target, column, evolves=evolves)
        return value
    if same_type(source, target) and source.names == target.names:
        return value
    _check_fields(source, target, column, evolves=evolves)
    old = kept_type if isinstance(kept_type, StructType) else StructType()
    fields = []
    for field in target:
        path = (*column, field.name)
        before = old.get(field.name) if kept is not None else None
        of_target = None if before is None or kept is None else _field_of(kept, before.name)
        given = source.get(field.name)
        found: Value
        if given is not None:
            found = aligned(
                _field_of(value, given.name),
                given.data_type,
                field.data_type,
                path,
                evolves=evolves,
                kept=of_target if isinstance(of_target, Kept) else None,
                kept_type=None if before is None else before.data_type,
            )
        elif before is not None and isinstance(of_target, Kept):
            found = aligned(of_target, before.data_type, field.data_type, path, evolves=True)
        else:
            found = Nothing()
        fields.append((field, found))
    null_where: tuple[Kept | Taken | Given, ...] = (value,)
    if kept is not None and _keeps_any(source, old):
        # A struct of which the target has more than the source stays where it has them.
        null_where = (value, kept)
    return Built(tuple(fields), null_where)


def _field_of(value: Kept | Taken | Given, name: str) -> Kept | Taken | Given:
    return replace(value, path=(*value.path, name))


def _keeps_any(source: StructType, old: StructType) -> bool:
    """Whether the target's struct has a field, at any depth, that the source's lacks."""
    for field in old:
        given = source.get(field.name)
        if given is None:
            return True
        theirs, ours = given.data_type, field.data_type
        if not isinstance(theirs, StructType) or not isinstance(ours, StructType):
            continue
        if _keeps_any(theirs, ours):
            return True
    return False


def _check_fields(
    source: StructType, target: StructType, column: Sequence[str], *, evolves: bool
) -> None:
    extra = [name for name in source.names if target.get(name) is None]
    missing = [name for name in target.names if source.get(name) is None]
    if not extra and (evolves or not missing):
        return
    what = [f"the table's lacks {', '.join(extra)}"] if extra else []
    what += [f"the value's lacks {', '.join(missing)}"] if missing and not evolves else []
    raise DeltaAnalysisError(
        f"[DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION] Cannot cast {source} to {target}. All nested "
        f"columns must match: of the struct {dotted(column)} {' and '.join(what)}. Give it all "
        "fields, assign them one by one, or let the schema evolve.",
        column=dotted(column),
        source=str(source),
        target=str(target),
    )


def _check_stored(
    source: DataType, target: DataType, column: Sequence[str], *, evolves: bool
) -> None:
    match source, target:
        case StructType(), StructType():
            _check_fields(source, target, column, evolves=evolves)
            for theirs in source:
                ours = target.get(theirs.name)
                assert ours is not None  # or the fields would differ
                path = (*column, ours.name)
                _check_stored(theirs.data_type, ours.data_type, path, evolves=evolves)
        case _ if parts := paired_parts(source, target):
            for step, given, wanted in parts:
                _check_stored(given, wanted, (*column, step), evolves=evolves)
        case _ if not can_store(source, target):
            raise DeltaAnalysisError(
                f"[DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION] the column {dotted(column)} of type "
                f"{target} can't be set to a value of type {source}: there is no such cast",
                column=dotted(column),
                source=str(source),
                target=str(target),
            )
