"""What a schema must satisfy for Delta to store it: names, types, partition columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lakelog.core.arguments import check_text
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.column_paths import dotted, map_types, quoted, walk
from lakelog.core.schema.parts import parts_of
from lakelog.core.schema.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    is_known,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_ILLEGAL = frozenset(" ,;{}()\n\t=")
"""Characters with a meaning in Parquet's own schema text."""

_VOID = PrimitiveType("void")

_UNPARTITIONABLE = (StructType, ArrayType, MapType)


def check_schema(
    schema: StructType,
    partition_columns: Sequence[str] = (),
    *,
    column_mapping: bool = False,
) -> None:
    """Refuse a schema that Delta can't store.

    Args:
        schema: the table's.
        partition_columns: names, spelled as in the schema (`resolve_columns`).
        column_mapping: with it files do not hold the names, so that any character is allowed.

    Raises:
        DeltaAnalysisError: the first rule broken, with every column that breaks it.
    """
    check_unique(schema)
    if not column_mapping:
        _check_characters(schema)
    _check_types(schema)
    _check_partitioning(schema, partition_columns)


def check_known(kind: DataType, path: tuple[str, ...] = ()) -> None:
    """Refuse types that this version of lakelog can't read or write.

    Args:
        kind: a schema, or a type within one.
        path: the column that has it.

    Raises:
        DeltaAnalysisError: names the first such column.
    """
    for column, part in _parts(kind, path):
        if not is_known(part):
            name = dotted(column) or "(the value)"
            raise DeltaAnalysisError(
                f"Column {name} has type {part}, which this version of lakelog can't read or "
                "write. Read the table's other columns: name those that you need, as in "
                'to_arrow(columns=[…]) or option("columns", …).',
                column=name,
                type=str(part),
            )


def resolve_columns(schema: StructType, names: Iterable[str], what: str = "column") -> list[str]:
    """The names in the schema's own spelling, matched ignoring case.

    Args:
        schema: the table's.
        names: as a user spells them.
        what: the kind of column, for the message.

    Raises:
        DeltaAnalysisError: the schema has no such column.
    """
    found = []
    for name in names:
        field = schema.get(name)
        if field is None:
            known = ", ".join(map(quoted, schema.names)) or "none"
            raise DeltaAnalysisError(
                f"[DELTA_COLUMN_NOT_FOUND] There is no {what} {quoted(name)} in the schema; it has "
                f"{known}.",
                column=name,
                columns=schema.names,
            )
        found.append(field.name)
    return found


def partition_schema(schema: StructType, partition_columns: Sequence[str]) -> StructType:
    """The fields of the partition columns, in the order of partitioning.

    Raises:
        DeltaAnalysisError: the schema has no such column.
    """
    names = resolve_columns(schema, partition_columns, "partition column")
    by_name = {field.name: field for field in schema}
    return StructType(tuple(by_name[name] for name in names))


def as_nullable(schema: StructType) -> StructType:
    """The schema with null allowed everywhere, as Delta stores that of a DataFrame.

    A DataFrame's own nullability only reflects what its plan happens to know; as a rule of the
    table it would refuse the next write.
    """

    def loosen(part: DataType) -> DataType:
        match part:
            case StructType():
                fields = (StructField(f.name, f.data_type, True, f.metadata) for f in part)
                return StructType(tuple(fields))
            case ArrayType(element):
                return ArrayType(element)
            case MapType(key, value):
                return MapType(key, value)
            case _:
                return part

    loose = map_types(schema, loosen)
    assert isinstance(loose, StructType)  # a struct stays one
    return loose


def without_void(schema: StructType) -> StructType:
    """The schema without columns of type void, nested ones in structs included.

    They hold nothing but nulls and Parquet can't hold them, so that writers leave them out.
    """

    def drop(part: DataType) -> DataType:
        if isinstance(part, StructType):
            return StructType(tuple(f for f in part if f.data_type != _VOID))
        return part

    kept = map_types(schema, drop)
    assert isinstance(kept, StructType)  # a struct stays one
    return kept


def check_holds_rows(data: StructType, table: StructType, uri: str) -> None:
    """Refuse data whose rows no file could hold.

    Args:
        data: the schema of the rows.
        table: that of the table which they are for, after the write.
        uri: the table, for the message.

    Raises:
        DeltaAnalysisError: it has no column, or none that is of a type in the table.
    """
    held = without_void(table)
    if any(held.get(name) is not None for name in data.names):
        return
    what = f"only columns of type void ({', '.join(data.names)})" if data.fields else "no columns"
    raise DeltaAnalysisError(
        f"[DELTA_EMPTY_DATA] the data for {uri} has {what}, so no file could hold its rows. Give "
        "it a column with a type"
        + ("; cast the nulls to the type that they should have." if data.fields else "."),
        table=uri,
        columns=data.names,
    )


def check_unique(schema: StructType) -> None:
    """Refuse columns, nested ones too, whose names differ by case alone, or not at all.

    Raises:
        DeltaAnalysisError: names all of them.
    """
    paths = [path for path, _ in walk(schema)]
    names = [dotted(path).lower() for path in paths]
    if len(set(names)) == len(names):
        return
    counts = Counter(names)
    twice = [path for path, name in zip(paths, names, strict=True) if counts[name] > 1]
    raise _refused(
        "DELTA_DUPLICATE_COLUMNS_FOUND",
        "Names must differ by more than upper and lower case, and these do not:",
        twice,
        "Rename them.",
    )


def odd_names(schema: StructType) -> list[tuple[str, ...]]:
    """The columns, nested ones too, whose names only column mapping allows."""
    return [path for path, _ in walk(schema) if _ILLEGAL & set(path[-1])]


def _check_characters(schema: StructType) -> None:
    for path, _ in walk(schema):
        check_text(path[-1], "the name of a column", needed=True)
    empty = [path for path, _ in walk(schema) if not path[-1]]
    if empty:
        raise _refused("DELTA_EMPTY_COLUMN_NAME", "A column has no name:", empty, "Name it.")
    bad = odd_names(schema)
    if bad:
        raise _refused(
            "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
            r"Column names must not contain any of the characters ' ,;{}()\n\t=':",
            bad,
            "Rename them, or set the table property delta.columnMapping.mode=name.",
        )


def _check_types(schema: StructType) -> None:
    within = [path for path, part in _parts(schema, ()) if _holds_void(part)]
    if within:
        raise _refused(
            "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
            "Arrays and maps can't hold values of type void:",
            within,
            "Cast their values to another type.",
        )
    wrong = [
        path
        for path, part in _parts(schema, ())
        if isinstance(part, DecimalType) and not 0 <= part.scale <= part.precision <= 38
    ]
    if wrong:
        raise _refused(
            "DELTA_UNSUPPORTED_DATA_TYPES",
            "Decimals have at most 38 digits, and a scale from 0 to the number of digits:",
            wrong,
            "Cast them to a decimal within these limits.",
        )
    hollow = [
        path
        for path, part in _parts(schema, ())
        if path and isinstance(part, StructType) and part.fields and not without_void(part).fields
    ]
    if hollow:
        raise _refused(
            "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.STRUCT_ALL_VOID_FIELDS",
            "A struct needs at least one field that is not of type void:",
            hollow,
            "Cast one of its fields to another type.",
        )
    if schema.fields and not without_void(schema).fields:
        raise _refused(
            "DELTA_CANNOT_WRITE_EMPTY_SCHEMA.TABLE_ALL_VOID_COLUMNS",
            "A table needs at least one column that is not of type void, and this one has only",
            [(name,) for name in schema.names],
            "Cast one of them to another type.",
        )


def _check_partitioning(schema: StructType, partition_columns: Sequence[str]) -> None:
    for name in partition_columns:
        spelled = resolve_columns(schema, [name], "partition column")[0]
        if spelled != name:
            raise DeltaAnalysisError(
                f"The partition column {quoted(name)} is spelled {quoted(spelled)} in the schema.",
                column=name,
            )
    twice = [name for name, count in Counter(partition_columns).items() if count > 1]
    if twice:
        raise _refused(
            "DELTA_DUPLICATE_COLUMNS_FOUND",
            "A table can be partitioned by a column only once:",
            [(name,) for name in twice],
            "Name it once.",
        )
    by_name = {field.name: field.data_type for field in schema}
    bad = [
        name
        for name in partition_columns
        if isinstance(by_name[name], _UNPARTITIONABLE)
        or by_name[name] in (_VOID, PrimitiveType("variant"))
    ]
    if bad:
        raise _refused(
            "DELTA_INVALID_PARTITION_COLUMN_TYPE",
            "A table can't be partitioned by nested columns, void or variant:",
            [(name,) for name in bad],
            "Partition by a column of a simple type.",
        )
    if partition_columns and len(partition_columns) == len(schema):
        raise _refused(
            "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
            "A table can't be partitioned by all of its columns:",
            [(name,) for name in partition_columns],
            "Leave at least one out.",
        )


def _holds_void(part: DataType) -> bool:
    return any(_is_void(each) for _, each in parts_of(part))


def _is_void(part: DataType) -> bool:
    """Void itself, or a struct that holds it: inside a container neither can be left out."""
    return part == _VOID or (
        isinstance(part, StructType) and any(_is_void(field.data_type) for field in part)
    )


def _parts(data_type: DataType, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], DataType]]:
    """Every type within a type, itself included, with the path of the column that has it."""
    fields = data_type if isinstance(data_type, StructType) else ()
    found = [(path, data_type)]
    for step, each in [*((f.name, f.data_type) for f in fields), *parts_of(data_type)]:
        found += _parts(each, (*path, step))
    return found


def _refused(
    code: str, rule: str, paths: Sequence[tuple[str, ...]], remedy: str
) -> DeltaAnalysisError:
    columns = [dotted(path) for path in paths]
    return DeltaAnalysisError(f"[{code}] {rule} {', '.join(columns)}. {remedy}", columns=columns)


def as_list(names: object) -> list[str]:
    """The names; a string is one name, not a list of letters, as in PySpark's `partitionBy("day")`.

    Raises:
        DeltaAnalysisError: they are not names.
    """
    if isinstance(names, str):
        return [names]
    found = list(names) if isinstance(names, Iterable) else [names]
    texts = [each for each in found if isinstance(each, str)]
    if len(texts) < len(found):
        raise DeltaAnalysisError(f"column names must be strings, not {names!r}")
    return texts
