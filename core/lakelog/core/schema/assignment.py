"""Which field of a table's struct a field of a given struct is: by name, or by position.

The columns of an INSERT are found by position, and so are the fields of structs within them, unless
the names alone say where each goes. What says both, one thing by name and another by position, is
refused: each of the two would put values where somebody did not mean them to be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import SchemaMismatchError
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.parts import paired_parts, with_parts
from lakelog.core.schema.types import (
    DataType,
    DecimalType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.upcasts import widens_unasked

if TYPE_CHECKING:
    from collections.abc import Sequence


def fits_by_name(
    table: DataType, given: DataType, *, in_order: bool = False, widens: bool = False
) -> bool:
    """Whether a given type has every field of the table's under its very name, and of its type.

    Args:
        table: the type of the column.
        given: of what it is to hold; it may have more fields.
        in_order: whether a struct of as many fields must also have them where the table does, but
            for those within arrays and maps.
        widens: whether the table widens types.
    """
    if isinstance(table, StructType) and isinstance(given, StructType):
        if in_order and len(table) == len(given) and _out_of_order(table, given):
            return False
        exact = {each.name: each.data_type for each in given}
        return all(
            each.name in exact
            and fits_by_name(each.data_type, exact[each.name], in_order=in_order, widens=widens)
            for each in table
        )
    if parts := paired_parts(table, given):
        return all(fits_by_name(ours, theirs, widens=widens) for _, ours, theirs in parts)
    return table == given or (widens and widens_unasked(table, given))


def named_by_position(table: DataType, given: DataType, path: Sequence[str]) -> DataType:
    """A given type with the names that the table has for its fields, by their positions.

    Fields past the table's keep their names.

    Args:
        table: the type of the column.
        given: of what it is to hold.
        path: of the column, for messages.

    Raises:
        SchemaMismatchError: a struct with fewer fields than the table's, or with a field of a name
            that the table has at another position.
    """
    if isinstance(table, StructType) and isinstance(given, StructType):
        _check_positions(table, given, path)
        fields = [
            StructField(
                ours.name,
                named_by_position(ours.data_type, theirs.data_type, (*path, ours.name)),
                theirs.nullable,
                theirs.metadata,
            )
            for ours, theirs in zip(table, given, strict=False)
        ]
        return StructType((*fields, *given.fields[len(table) :]))
    parts = paired_parts(table, given)
    return with_parts(given, [named_by_position(a, b, (*path, step)) for step, a, b in parts])


def fitting(ours: DataType, theirs: DataType, *, widens: bool) -> DataType:
    """A given type with the table's own types where values are cast to them.

    Args:
        ours: the type of the column.
        theirs: of what it is to hold.
        widens: whether the table widens types.
    """
    match ours, theirs:
        case StructType(), StructType():
            fields = []
            for field in theirs:
                known = ours.get(field.name)
                kind = field.data_type
                if known is not None:
                    kind = fitting(known.data_type, kind, widens=widens)
                fields.append(field.with_type(kind))
            return StructType(tuple(fields))
        case PrimitiveType() | DecimalType(), PrimitiveType() | DecimalType():
            grows = ours == _VOID or (widens and widens_unasked(ours, theirs))
            return theirs if grows else ours
        case _:
            parts = paired_parts(ours, theirs)
            return with_parts(theirs, [fitting(a, b, widens=widens) for _, a, b in parts])


_VOID = PrimitiveType("void")


def _check_positions(table: StructType, given: StructType, path: Sequence[str]) -> None:
    if len(given) < len(table):
        raise SchemaMismatchError(
            f"[DELTA_INSERT_COLUMN_ARITY_MISMATCH] the struct {dotted(path)} has {len(table)} "
            f"fields ({', '.join(table.names)}), but the value has {len(given)} "
            f"({', '.join(given.names)}): an INSERT gives a struct all of its fields. Give NULL "
            "for the ones that are missing",
            column=dotted(path),
            expected=table.names,
            given=given.names,
        )
    wrong = _out_of_order(table, given)
    if wrong is not None:
        raise SchemaMismatchError(
            f"[INCOMPATIBLE_DATA_FOR_TABLE.UNEXPECTED_COLUMN_NAME] the fields of the struct "
            f"{dotted(path)} are {', '.join(table.names)}, and the value has them in another "
            f"order: {', '.join(given.names)}. An INSERT finds fields by position here, which "
            f"would put {wrong} elsewhere. Give the fields in the table's order, or name and type "
            "them as the table does, and the query's columns as well: they are found by name then",
            column=dotted(path),
            expected=table.names,
            given=given.names,
        )


def _out_of_order(table: StructType, given: StructType) -> str | None:
    """A given field whose name the table has at another position."""
    places = {name.lower(): at for at, name in reversed([*enumerate(table.names)])}
    for at, name in enumerate(given.names):
        if places.get(name.lower(), at) != at:
            return name
    return None
