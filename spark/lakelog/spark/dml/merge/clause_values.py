"""What a clause gives a column, as a Column of Spark: the trees of `commands.merge.new_rows`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from lakelog.core.engine.merge import Built, Default, Given, Kept, Nothing, Taken, aligned
from lakelog.core.schema import DataType, StructType
from lakelog.spark.writing.enforced_rules import checked_default
from lakelog.spark.writing.stored import null_of, spark_type, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lakelog.core import DeltaConf
    from lakelog.core.engine.merge import NewColumn, Value


def as_column(given: str | Column) -> Column:
    """SQL text or a Column, as a Column."""
    return sf.expr(given) if isinstance(given, str) else given


def given_in(value: Value) -> list[Any]:
    """The user's expressions in a tree."""
    match value:
        case Given(expression=expression):
            return [expression]
        case Built(fields=fields, null_where=null_where):
            parts = [each for _, inner in fields for each in given_in(inner)]
            return [*parts, *(each for inner in null_where for each in given_in(inner))]
    return []


def check_given(
    value: Value, types: Mapping[int, DataType], target: DataType, path: Sequence[str]
) -> None:
    """Refuse user's expressions whose types their columns can't hold, though no row gets them.

    Args:
        value: of a column or field.
        types: `id` of an expression -> its type.
        target: the type of the column or field.
        path: of that, for messages.

    Raises:
        DeltaAnalysisError: there is no such cast, or the fields of structs differ.
    """
    if isinstance(value, Given) and not value.path:
        aligned(value, types[id(value.expression)], target, path)
    elif isinstance(value, Built):
        for field, inner in value.fields:
            check_given(inner, types, field.data_type, (*path, field.name))


def check_defaults(columns: Sequence[NewColumn], table: str, conf: DeltaConf) -> None:
    """Refuse to give a column a DEFAULT that Spark is not to run for a table.

    Raises:
        DeltaAnalysisError: names the column and what its default calls.
    """
    for each in columns:
        if isinstance(each.value, Default):
            checked_default(each.field, table, conf)


class RowValues:
    """Makes the Columns of new rows."""

    def __init__(
        self,
        target: Callable[[str], Column],
        source: Callable[[str], Column],
        schemas: tuple[StructType, StructType],
        types: Mapping[int, DataType],
        column: Callable[[str | Column], Column] = as_column,
    ) -> None:
        """Prepare.

        Args:
            target: gives a column of the table by its name.
            source: gives a column of the source by its name.
            schemas: of the table and the source.
            types: `id` of a user's expression -> its type.
            column: makes a Column of such an expression.
        """
        self._column = column
        self._target = target
        self._source = source
        self._schemas = schemas
        self._types = types

    def of(self, column: NewColumn) -> Column:
        """The value of a column, in its type; it must be neither generated nor numbered."""
        field = column.field
        return self._value(column.value, field.data_type, (field.name,))

    def _value(self, value: Value, target: DataType, path: Sequence[str]) -> Column:
        match value:
            case Nothing():
                return null_of(target)
            case Default(sql=sql):
                return sf.expr(f"({sql}\n)").cast(spark_type(target))
            case Built():
                return self._built(value, target, path)
            case Kept() | Taken() | Given():
                source = self._type(value)
                if isinstance(value, Given) and isinstance(source, StructType):
                    tree = aligned(value, source, target, path)
                    if isinstance(tree, Built):
                        return self._built(tree, target, path)
                elif isinstance(value, Given):
                    aligned(value, source, target, path)
                return stored(self._plain(value), source, target, path)
        raise AssertionError(f"{value} is computed from the other columns")

    def _built(self, value: Built, target: DataType, path: Sequence[str]) -> Column:
        fields = [
            self._value(inner, field.data_type, (*path, field.name)).alias(field.name)
            for field, inner in value.fields
        ]
        made = sf.struct(*fields)
        if not value.null_where:
            return made
        null = self._plain(value.null_where[0]).isNull()
        for each in value.null_where[1:]:
            null &= self._plain(each).isNull()
        return sf.when(null, null_of(target)).otherwise(made)

    def _plain(self, value: Kept | Taken | Given) -> Column:
        match value:
            case Given(expression=expression, path=path):
                column, rest = self._column(expression), path
            case Kept(path=path):
                column, rest = self._target(path[0]), path[1:]
            case Taken(path=path):
                column, rest = self._source(path[0]), path[1:]
        for name in rest:
            column = column.getField(name)
        return column

    def _type(self, value: Kept | Taken | Given) -> DataType:
        found: DataType
        match value:
            case Given(expression=expression, path=path):
                found = self._types[id(expression)]
            case Kept(path=path):
                found = self._schemas[0]
            case Taken(path=path):
                found = self._schemas[1]
        for name in path:
            assert isinstance(found, StructType)
            field = found.get(name)
            assert field is not None
            found = field.data_type
        return found
