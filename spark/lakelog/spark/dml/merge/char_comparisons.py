"""Comparisons of a CHAR column of a MERGE's table with text of its source, which is filled up.

Spark pads only constants and other CHAR columns. So a source's `'a'` would not match the table's
`'a  '`, and each MERGE would insert it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.engine.conditions import Compare, Name, parse_sql, walk
from lakelog.core.engine.merge import column_of
from lakelog.core.engine.schemas import limit_of
from lakelog.core.errors import DeltaError
from lakelog.core.schema import PrimitiveType
from lakelog.spark.dml.merge.clause_values import as_column

if TYPE_CHECKING:
    from pyspark.sql import Column

    from lakelog.core import Expression
    from lakelog.core.schema import StructField, StructType

_STRING = PrimitiveType("string")


@dataclass(frozen=True, slots=True)
class CharComparisons:
    """Makes the Columns of a MERGE's expressions."""

    target: StructType
    source: StructType
    alias: str | None
    """What the MERGE calls the table."""

    def column(self, given: str | Column) -> Column:
        """An expression as a Column, with text of the source filled up beside a CHAR."""
        limits = [limit_of(each) for each in self.target]
        has_char = any(each is not None and each.pads for each in limits)
        has_text = any(each.data_type == _STRING for each in self.source)
        if has_char and has_text and isinstance(given, str):
            return as_column(self.filled_up(given))
        return as_column(given)

    def filled_up(self, sql: str) -> str:
        """The same text with each such comparison by the value that the table would have."""
        try:
            root = parse_sql(sql)
        except DeltaError:
            return sql
        spans = []
        for node in walk(root):
            found = self._compared(node)
            if found is None:
                continue
            ours, theirs, named = found
            limit = limit_of(ours)
            if limit is None or not limit.pads or theirs.data_type != _STRING:
                continue
            if named.span is not None:
                spans.append((*named.span, limit.length))
        for start, end, length in sorted(spans, reverse=True):
            text = f"rtrim({sql[start:end]})"
            filled = f"IF(length({text}) <= {length}, rpad({text}, {length}, ' '), {text})"
            sql = sql[:start] + filled + sql[end:]
        return sql

    def _compared(self, node: Expression) -> tuple[StructField, StructField, Name] | None:
        """The columns of a comparison of one of the table with one of the source.

        Returns:
            The table's column, the source's, and where that is named; `None` of other operands.
        """
        if not isinstance(node, Compare):
            return None
        ours, theirs = None, None
        for each in (node.left, node.right):
            if not isinstance(each, Name):
                return None
            found = column_of(each.path, self.target, self.source, self.alias)
            if found is not None and found[0]:
                ours = found[1]
            elif found is not None:
                theirs = found[1], each
        return None if ours is None or theirs is None else (ours, *theirs)
