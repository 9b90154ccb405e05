"""The DataFrames that `DeltaTable.toDF` gave: expressions may name their columns, `df["x"]`.

Such a column stands for one attribute of that DataFrame's plan. A command reads other files than
the DataFrame did, with places beside the columns. So its rows are put into a union under the
DataFrame, emptied: a union's columns are those of its first branch, and Spark drops the empty one
when it optimises, so that filters still reach the files. Spark Connect finds such columns by the
DataFrame that they were asked of, and not through a union: there they are refused.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import Column

from lakelog.spark.dml.given_expressions import names_another_frame
from lakelog.spark.session.session import is_connect
from lakelog.spark.session.unlogged import analyse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

    from lakelog.core import Snapshot

_MOST = 4
"""So many are remembered, each of another version."""


class GivenFrames:
    """What `toDF` of one `DeltaTable`, and of its aliases, gave last."""

    def __init__(self) -> None:
        """Remember none yet."""
        self._frames: deque[tuple[weakref.ref[Snapshot], DataFrame]] = deque(maxlen=_MOST)

    def of(self, snapshot: Snapshot, make: Callable[[], DataFrame]) -> DataFrame:
        """The DataFrame of a snapshot: the same one each time, so that columns of two calls mix.

        Args:
            snapshot: the version, as an object: a table that was recreated has the same numbers.
            make: plans the DataFrame.
        """
        for known, frame in self._frames:
            if known() is snapshot:
                return frame
        made = make()
        self._frames.appendleft((weakref.ref(snapshot), made))
        return made

    def known_to(
        self,
        rows: DataFrame,
        given: Iterable[object],
        alias: str | None,
        source: DataFrame | None = None,
    ) -> DataFrame | None:
        """The DataFrame whose columns some expressions name.

        Args:
            rows: that the command reads.
            given: SQL texts and Columns.
            alias: what these call the rows.
            source: other rows that the expressions see.

        Returns:
            `None` where `rows` are all that they can mean.
        """
        columns = [each for each in given if isinstance(each, Column)]
        if not columns or is_connect(rows):
            return None
        for _, frame in self._frames:
            if not _fits(frame, rows):
                continue
            seen = under(frame, rows)
            seen = seen if alias is None else seen.alias(alias)
            seen = seen if source is None else seen.join(source)
            if all(_resolves(seen, each) for each in columns):
                return frame
        return None


def under(frame: DataFrame | None, rows: DataFrame) -> DataFrame:
    """Rows whose first columns are also known as those of a DataFrame.

    Args:
        frame: has the first columns of the rows; `None` changes nothing.
        rows: the rows.
    """
    if frame is None:
        return rows
    # Typed nulls for the others, which Spark adds: from here each would be dozens of calls of Java.
    return frame.where("false").unionByName(rows, allowMissingColumns=True)


def _fits(frame: DataFrame, rows: DataFrame) -> bool:
    """Whether the table still has the columns that it had."""
    old, new = frame.schema.fields, rows.schema.fields
    return _shape(old) == _shape(new[: len(old)])


def _shape(fields: Sequence[StructField]) -> list[tuple[str, str]]:
    # Without nulls: a table says more of them than Spark's plan of its files.
    return [(each.name, each.dataType.simpleString()) for each in fields]


def _resolves(rows: DataFrame, column: Column) -> bool:
    try:
        analyse(rows.select(column))
    except AnalysisException as exc:
        return not names_another_frame(exc)
    return True
