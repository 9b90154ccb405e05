"""What a table says of nulls, in the schema of the DataFrame that is read from it.

Spark makes every column nullable that it reads from files, whatever schema it is given, and no
public call tells it better: an expression that is never null would be one that no filter is pushed
through. So the plan stays as it is, and the DataFrame itself says what the table's log does, as it
does in delta-spark. What is derived from it (`select`, `where`) says what Spark's plan knows.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import StructType

from lakelog.spark.reading.spark_scan import readable_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakelog.core.schema import StructType as TableSchema

_STATED: Final = "_lakelog_stated"


def with_stated_nulls(
    df: DataFrame, schema: TableSchema, columns: Sequence[str] | None = None
) -> DataFrame:
    """The same DataFrame, whose `schema` says of each column and field whether it may be null.

    Args:
        df: rows of the table, in a DataFrame not shared with others; it is changed.
        schema: the table's.
        columns: names of that schema, in the order of the DataFrame; all if `None`.
    """
    stated = readable_schema(schema, nulls=True)
    if stated == readable_schema(schema):
        return df
    if columns is not None:
        stated = StructType([stated[name] for name in columns])
    return _state(df, stated)


def with_known_nulls(df: DataFrame, schema: TableSchema) -> DataFrame:
    """The same for rows that have columns of a table, and others of which nothing is stated.

    Args:
        df: see `with_stated_nulls`.
        schema: the table's.
    """
    stated = readable_schema(schema, nulls=True)
    if stated == readable_schema(schema):
        return df
    known = {each.name: each for each in stated}
    return _state(df, StructType([known.get(each.name, each) for each in df.schema]))


def with_nulls_of(df: DataFrame, frame: DataFrame) -> DataFrame:
    """Rows that have columns of another DataFrame, some or all, with what that one states.

    Args:
        df: the rows; it is changed.
        frame: may have come out of `with_stated_nulls`.
    """
    # Not by `hasattr`: over Connect a DataFrame takes any name for that of a column.
    if _STATED not in vars(frame) or _STATED in vars(df):
        return df
    known = {each.name.lower(): each for each in frame.schema}
    return _state(df, StructType([known[name.lower()] for name in df.columns]))


def _state(df: DataFrame, schema: StructType) -> DataFrame:
    frame: Any = df
    kind: Any = type(df)
    frame.__class__ = _stating(kind)
    setattr(frame, _STATED, schema)
    return df


@functools.cache
def _stating(cls: Any) -> Any:
    """The class of a DataFrame, classic or Connect, whose schema is one that it was given."""

    class Stating(cls):  # type: ignore[misc]  # PySpark has two classes
        @property
        def schema(self) -> Any:
            return getattr(self, _STATED)

        def printSchema(self, level: int | None = None) -> None:  # noqa: N802  # PySpark's name
            shown = self.schema.treeString(level) if level else self.schema.treeString()
            print(shown)  # noqa: T201  # as PySpark does

    Stating.__name__, Stating.__qualname__ = cls.__name__, cls.__qualname__
    Stating.__module__, Stating.__doc__ = cls.__module__, cls.__doc__
    return Stating
