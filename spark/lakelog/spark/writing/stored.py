"""Values cast to the types that columns store them in, as Columns of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import TimestampType

from lakelog.core.engine.merge import can_store
from lakelog.core.engine.schemas import (
    TYPES,
    differences,
    dotted,
    fitting,
    merge_schemas,
    named_by_position,
    same_type,
)
from lakelog.core.errors import SchemaMismatchError
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.spark.session.job_errors import failing
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.spark_types import to_delta_schema, to_spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType as SparkType

    from lakelog.core import Snapshot

_NUMBERS = frozenset({"byte", "short", "integer", "long", "float", "double"})


def cast_by_name(frame: DataFrame, snapshot: Snapshot, *, grows: bool) -> DataFrame:
    """The rows with the values cast that a writer does not cast on its own, column by column.

    Args:
        frame: columns and fields are found by their names; what has no cast stays as it is.
        snapshot: of the table.
        grows: whether the table's schema grows by them.
    """
    widens = grows and snapshot.properties.type_widening
    columns, is_cast = [], False
    for given in to_delta_schema(frame.schema):
        column, field = sf.col(quoted(given.name)), snapshot.schema.get(given.name)
        if field is not None and _needs_cast(field, given, widens=widens):
            is_cast = True
            column = inserted(column, given.data_type, field, by_name=True, widens=widens)
        columns.append(column)
    return frame.select(*columns) if is_cast else frame


def _needs_cast(field: StructField, given: StructField, *, widens: bool) -> bool:
    if not can_store(given.data_type, field.data_type, grows=True):
        return False
    wanted = field.with_type(fitting(field.data_type, given.data_type, widens=widens))
    found = differences(StructType((wanted,)), StructType((given,)))
    return any(each.problem == TYPES for each in found)


def inserted(
    column: Column, source: DataType, field: StructField, *, by_name: bool, widens: bool
) -> Column:
    """A value as INSERT gives it to a column, with the fields that the column's struct lacks.

    Args:
        column: the value.
        source: its type.
        field: the table's column.
        by_name: whether the fields of structs are found by name, and not by position.
        widens: whether the table's schema grows by this, and widens types.

    Raises:
        SchemaMismatchError: there is no such cast, or a struct's fields say something else than
            their positions, or are too few.
    """
    target = field.data_type
    if not by_name:
        named = named_by_position(target, source, (field.name,))
        if not same_type(named, source):
            source, column = named, column.cast(spark_type(named))
    if not can_store(source, target, grows=True):
        raise SchemaMismatchError(
            f"[DELTA_FAILED_TO_MERGE_FIELDS] Failed to merge fields: a value of the type {source} "
            f"can't be stored in the column {field.name}, which is {target}",
            column=field.name,
        )
    new = StructField(field.name, fitting(target, source, widens=widens))
    grown = merge_schemas(StructType((field,)), StructType((new,)), allow_type_widening=widens)
    found = stored(column, source, grown.fields[0].data_type, (field.name,))
    return found.alias(field.name)


def spark_type(kind: DataType) -> SparkType:
    """A type as PySpark has it."""
    return to_spark_schema(StructType((StructField("x", kind),)))["x"].dataType


def null_of(kind: DataType) -> Column:
    """Null in the type of a column."""
    found = spark_type(kind)
    # A type is nine calls of Java, and its name is one; what `timestamp` names, a conf decides.
    is_name = isinstance(kind, PrimitiveType) and not isinstance(found, TimestampType)
    return sf.lit(None).cast(found.simpleString() if is_name else found)


def stored(column: Column, source: DataType, target: DataType, path: Sequence[str]) -> Column:
    """A value cast to the type that it is stored in, by Spark's ANSI rules whatever the session's.

    Args:
        column: the value.
        source: its type.
        target: of the column or field.
        path: of that, for messages.
    """
    if same_type(source, target):
        return column
    wanted = spark_type(target)
    match source, target:
        case ArrayType(), ArrayType():
            parts = source.element_type, target.element_type
            return sf.transform(column, lambda each: _inside(each, *parts, path))
        case MapType(), MapType():
            keys, values = (
                (source.key_type, target.key_type),
                (source.value_type, target.value_type),
            )
            changed = sf.transform_keys(column, lambda key, _: stored(key, *keys, path))
            return sf.transform_values(changed, lambda _, each: _inside(each, *values, path))
        case StructType(), StructType():
            return _inside(column, source, target, path)
    if source == PrimitiveType("void"):
        return column.cast(wanted)
    tried = column.try_cast(wanted)
    bad = column.isNotNull() & tried.isNull()
    return sf.when(bad, sf.expr(failing(_failure(source, target, path))).cast(wanted)).otherwise(
        tried
    )


def _failure(source: DataType, target: DataType, path: Sequence[str]) -> str:
    if _is_number(source) and _is_number(target):
        return (
            f"[DELTA_CAST_OVERFLOW_IN_TABLE_WRITE] Failed to write a value of {source} type into "
            f"the {target} type column {dotted(path)} due to an overflow. Use `try_cast` on the "
            "input value to tolerate overflow and return NULL instead."
        )
    return (
        f"[CAST_INVALID_INPUT] A value of the type {source} that was assigned to the column "
        f"{dotted(path)} cannot be cast to {target} because it is malformed. Use `try_cast` to "
        "tolerate malformed input and return NULL instead."
    )


def _is_number(kind: DataType) -> bool:
    return isinstance(kind, DecimalType) or (
        isinstance(kind, PrimitiveType) and kind.name in _NUMBERS
    )


def _inside(column: Column, source: DataType, target: DataType, path: Sequence[str]) -> Column:
    """A value within an array or a map; the fields of structs are found by name."""
    if not isinstance(source, StructType) or not isinstance(target, StructType):
        return stored(column, source, target, path)
    fields = []
    for field in target:
        found = source.get(field.name)
        inner = (
            null_of(field.data_type)
            if found is None
            else stored(
                column.getField(found.name), found.data_type, field.data_type, (*path, field.name)
            )
        )
        fields.append(inner.alias(field.name))
    nothing = null_of(target)
    return sf.when(column.isNull(), nothing).otherwise(sf.struct(*fields))
