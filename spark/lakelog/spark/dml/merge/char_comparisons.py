"""Comparisons of a CHAR column of a MERGE's table with text of its source, which is filled up.

Spark fills up constants and other CHAR columns alone. So a source's `'a'` would not find what the
table has of it, `'a  '`, and a MERGE would insert it anew each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.engine.conditions import parse_sql
from lakelog.core.engine.schemas import limit_of
from lakelog.core.errors import DeltaError
from lakelog.core.schema import PrimitiveType
from lakelog.spark.dml.merge.clause_values import as_column

if TYPE_CHECKING:
    from pyspark.sql import Column

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
        from sqlglot import exp

        try:
            root = parse_sql(sql)
        except DeltaError:
            return sql
        kinds = exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE
        spans = []
        for node in root.find_all(*kinds):
            found = compared_columns(node, self.target, self.source, self.alias)
            if found is None:
                continue
            ours, theirs, named = found
            limit = limit_of(ours)
            if limit is None or not limit.pads or theirs.data_type != _STRING:
                continue
            parts = named.parts
            start, end = parts[0].meta.get("start"), parts[-1].meta.get("end")
            if start is not None and end is not None:
                spans.append((start, end + 1, limit.length))
        for start, end, length in sorted(spans, reverse=True):
            text = f"rtrim({sql[start:end]})"
            filled = f"IF(length({text}) <= {length}, rpad({text}, {length}, ' '), {text})"
            sql = sql[:start] + filled + sql[end:]
        return sql


def compared_columns(
    node: Any, target: StructType, source: StructType, alias: str | None
) -> tuple[StructField, StructField, Any] | None:
    """The columns of a comparison of one of the table with one of the source.

    Args:
        node: the comparison.
        target: the table's schema.
        source: the source's.
        alias: what the MERGE calls the table.

    Returns:
        The table's column, the source's, and where that is named; `None` of other operands.
    """

    def is_mine(path: tuple[str, ...]) -> bool:
        if len(path) == 1:
            return target.get(path[0]) is not None and source.get(path[0]) is None
        return alias is not None and len(path) == 2 and path[0].lower() == alias.lower()

    sides = [(column_path_of(each), each) for each in (node.this, node.expression)]
    mine = [path for path, _ in sides if path is not None and is_mine(path)]
    others = [(p, each) for p, each in sides if p is not None and p not in mine]
    if len(mine) != 1 or len(others) != 1 or len(others[0][0]) not in (1, 2):
        return None
    other, named = others[0]
    if len(other) == 2 and (source.get(other[0]) or target.get(other[0])) is not None:
        return None  # a field of a struct, perhaps
    ours, theirs = target.get(mine[0][-1]), source.get(other[-1])
    return None if ours is None or theirs is None else (ours, theirs, named)


def column_path_of(node: Any) -> tuple[str, ...] | None:
    """The names in `a` or `a.b`; `None` for anything else."""
    from sqlglot import exp

    if not isinstance(node, exp.Column):
        return None
    parts = node.parts
    named = all(isinstance(each, exp.Identifier) for each in parts)
    return tuple(each.name for each in parts) if named else None
