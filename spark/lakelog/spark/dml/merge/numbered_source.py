"""The source of a MERGE: evaluated once, its rows numbered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.writing.by_driver import arrow_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from lakelog.core.schema import StructType

NUMBER = "__lakelog_source"
"""The column that numbers the source's rows."""
_BROADCAST_ROWS = 1_000_000
_BROADCAST_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class MergeSource:
    """Rows to merge into a table.

    The source may give other rows each time it is evaluated (`rand()`, a stream's batch, a table
    that another process changes), and a MERGE looks at it more than once. So its rows are kept by
    the executors, and those are what every step sees.
    """

    df: DataFrame
    """Its columns under their own names and aliases, under those of `source_column`, and `NUMBER`.
    """
    schema: StructType
    """Of its own columns."""
    rows: int
    bounds: tuple[Any, ...]
    """The least and the greatest value of each of the columns that were asked for."""

    @classmethod
    def planned(cls, frame: DataFrame) -> MergeSource:
        """The source as it will look; none of its rows is evaluated, and none counted."""
        schema = to_delta_schema(frame.schema)
        return cls(_named(frame, schema), schema, -1, ())

    def evaluated(self, keys: Sequence[str] = ()) -> MergeSource:
        """Evaluate the rows.

        Args:
            keys: columns whose bounds are wanted.
        """
        df = self.df.localCheckpoint()
        wanted = [sf.count(sf.lit(1))]
        for key in keys:
            column = source_column(self.schema, key)
            wanted += [sf.min(column), sf.max(column)]
        names = [f"c{i}" for i in range(len(wanted))]
        found = df.select(*(w.alias(n) for w, n in zip(wanted, names, strict=True))).toArrow()
        values = [found.column(i)[0] for i in range(found.num_columns)]
        return MergeSource(df, self.schema, int(values[0].as_py()), tuple(values[1:]))

    def fetched(self, most: int) -> pa.Table | None:
        """The rows, without their numbers, where they were evaluated and are few.

        Args:
            most: so many are few, if they are not wide.
        """
        width = 16 * (len(self.schema.fields) + 1)
        if not 0 <= self.rows <= min(most, _BROADCAST_BYTES // width):
            return None
        names = self.schema.names
        columns = [source_column(self.schema, each).alias(each) for each in names]
        return arrow_of(self.df.select(*columns))

    @property
    def joined(self) -> DataFrame:
        """The rows for a join with the table; few of them go to every executor."""
        width = 16 * (len(self.schema.fields) + 1)
        few = self.rows <= min(_BROADCAST_ROWS, _BROADCAST_BYTES // width)
        return sf.broadcast(self.df) if few else self.df


def source_column(schema: StructType, name: str) -> Column:
    """A column of the source by a name that nothing else in a join has."""
    at = next(i for i, each in enumerate(schema) if each.name == name)
    return sf.col(f"__lakelog_s{at}")


def _named(frame: DataFrame, schema: StructType) -> DataFrame:
    copies = [f"{quoted(f.name)} AS __lakelog_s{i}" for i, f in enumerate(schema)]
    named = frame.selectExpr("*", *copies)
    return named.select("*", sf.monotonically_increasing_id().alias(NUMBER))
