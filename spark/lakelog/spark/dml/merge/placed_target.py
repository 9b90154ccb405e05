"""The table of a MERGE as a DataFrame: its rows, and the place of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lakelog.spark.dml.given_frames import under
from lakelog.spark.reading.read_files import positioned_df
from lakelog.spark.reading.row_positions import FILE, METADATA, ROW
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from lakelog.core import Expression, Snapshot
    from lakelog.core.engine.rows import MovedRowIds
    from lakelog.core.schema import StructType

IDS = ("__lakelog_row_id", "__lakelog_row_version")
"""The columns of row ids, as the files have them."""
_METADATA = "__lakelog_metadata"


@dataclass(frozen=True, slots=True)
class MergeTarget:
    """The rows of some files."""

    df: DataFrame
    """The table's columns under their own names, after the alias, and under those of `column`;
    `METADATA`, where an expression may mean it; their places; `IDS`, where the table tracks rows.
    """
    schema: StructType
    """The table's, or of the columns that are looked at."""
    alias: str | None
    numbers: Mapping[str, int]
    """Of the files, by the values of `FILE`."""
    tracked: bool
    frame: DataFrame | None = None
    """Under whose columns the table's are known too."""
    metadata: bool = False
    """Whether it has `METADATA`."""

    @classmethod
    def over(
        cls,
        spark: SparkSession,
        snapshot: Snapshot,
        files: pa.Table,
        alias: str | None,
        ids: MovedRowIds | None,
        frame: DataFrame | None = None,
        *,
        columns: StructType | None = None,
        prune: Expression | None = None,
        metadata: bool = False,
    ) -> MergeTarget:
        """The rows of files.

        Args:
            spark: the session.
            snapshot: the version.
            files: rows of its `file_table`.
            alias: what the MERGE calls the table.
            ids: of a table that tracks rows.
            frame: see the field.
            columns: some of the table's, which are all that is looked at; default: all.
            prune: row groups without a row for which it is true may be left out.
            metadata: see the field.
        """
        schema = snapshot.read_schema if columns is None else columns
        wanted = schema if ids is None else ids.add_id_columns(schema)
        found = positioned_df(spark, snapshot, files, schema=wanted, prune=prune, metadata=metadata)
        # Texts: a Column by its name, and one for its alias, are a dozen calls of Java each.
        shown = [
            *(quoted(f.name) for f in schema),
            *(f"{quoted(f.name)} AS {_copy(i)}" for i, f in enumerate(schema)),
            *([METADATA, f"{METADATA} AS {_METADATA}"] if metadata else []),
            FILE,
            ROW,
        ]
        if ids is not None:
            hidden = [f.name for f in wanted][len(schema.fields) :]
            shown += [f"{quoted(h)} AS {n}" for h, n in zip(hidden, IDS, strict=True)]
        df = under(frame, found.df.selectExpr(*shown))
        named = df if alias is None else df.alias(alias)
        return cls(named, schema, alias, found.numbers, ids is not None, frame, metadata)

    def column(self, name: str) -> Column:
        """A column by a name that nothing else in a join has."""
        return sf.col(_copy(next(i for i, f in enumerate(self.schema) if f.name == name)))

    @property
    def hidden(self) -> list[str]:
        """The names of what no expression names: copies of the columns, places and ids."""
        ids = IDS if self.tracked else ()
        of_file = (_METADATA,) if self.metadata else ()
        return [
            *(_copy(i) for i in range(len(self.schema.fields))),
            *of_file,
            FILE,
            ROW,
            *ids,
        ]

    def alone(self, frame: DataFrame, *more: str) -> DataFrame:
        """Of a join with the source what the table brought, for expressions that see no other.

        Args:
            frame: has `hidden`.
            more: names of other columns to keep.
        """
        own = [f"{_copy(i)} AS {quoted(f.name)}" for i, f in enumerate(self.schema)]
        own += [f"{_METADATA} AS {METADATA}"] if self.metadata else []
        df = under(self.frame, frame.selectExpr(*own, *self.hidden, *more))
        return df if self.alias is None else df.alias(self.alias)


def _copy(at: int) -> str:
    return f"__lakelog_t{at}"
