"""Errors that show the place in a statement."""

from __future__ import annotations

from lakelog.core.errors import DeltaAnalysisError

_SHOWN = 200


class SqlSyntaxError(DeltaAnalysisError):
    """A statement of Delta's that can't be read; the message shows where.

    Fields: `line` and `column`, both from 1.
    """


class NoDeltaTableError(SqlSyntaxError):
    """A statement that begins like one which Delta alone has, and names no Delta table.

    It may be a statement of another extension of Spark's.
    """


def located(
    sql: str, at: int, message: str, kind: type[SqlSyntaxError] = SqlSyntaxError
) -> SqlSyntaxError:
    """The error for a place in a text.

    Args:
        sql: the whole text.
        at: the offset of the place.
        message: what is wrong, with Spark's or Delta's condition in brackets if there is one.
        kind: its class.
    """
    line, column, shown = marked_place(sql, at)
    return kind(
        f"{message} (line {line}, column {column})\n\n{shown}", sql=sql, line=line, column=column
    )


def marked_place(sql: str, at: int) -> tuple[int, int, str]:
    """The line and the column of a place, both from 1, and the line with a mark below it.

    Args:
        sql: the whole text.
        at: the offset of the place.
    """
    begin = sql.rfind("\n", 0, at) + 1
    line, column = sql.count("\n", 0, at) + 1, at - begin + 1
    end = sql.find("\n", at)
    shown = sql[begin : len(sql) if end < 0 else end]
    lead = column - 1
    if len(shown) > _SHOWN:
        cut = max(0, lead - _SHOWN // 2)
        shown, lead = shown[cut : cut + _SHOWN], lead - cut
    return line, column, f"{shown}\n{'-' * lead}^^^"
