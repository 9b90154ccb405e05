"""`_metadata` in queries: a view does not pass it on, so the rows get it as a column of their own.

That column is kept out of every `*` of the queries that read those rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException

from lakelog.spark.reading.row_ids import ROW_FIELDS
from lakelog.spark.session.unlogged import analyse
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from lakelog.spark.sql_statements.text.references import Reference
    from lakelog.spark.sql_statements.text.statement import Edit
    from lakelog.spark.sql_statements.text.tokens import Token

_METADATA = "_metadata"
"""What Spark calls the struct of facts about the file of each row."""
_BEFORE_STAR = ("SELECT", "DISTINCT", "ALL", ",", ".")


def names_metadata(tokens: Sequence[Token]) -> bool:
    """Whether a text may name the column."""
    return any((each.name or "").lower() == _METADATA for each in tokens)


def names_row_ids(tokens: Sequence[Token]) -> bool:
    """Whether a text that names the column may mean what it says of rows that are tracked."""
    for at, each in enumerate(tokens):
        if (each.name or "").lower() != _METADATA:
            continue
        after = [(token.name or token.text).lower() for token in tokens[at + 1 : at + 3]]
        if after[:1] != ["."] or after[1:2] == ["*"] or set(after) & set(ROW_FIELDS):
            return True
    return False


def with_metadata(frame: DataFrame) -> DataFrame | None:
    """The rows with the column at their end; `None` for rows that don't have it."""
    if _METADATA in (each.lower() for each in frame.columns):
        return None
    try:
        shown = frame.select("*", frame.metadataColumn(_METADATA))
        analyse(shown)
    except AnalysisException:
        return None
    return shown


def star_edits(tokens: Sequence[Token], tables: Sequence[Reference]) -> list[Edit] | None:
    """What keeps the column of some tables out of the stars of a text.

    Args:
        tokens: those of the text.
        tables: whose rows have the column.

    Returns:
        The edits; `None` where it is unclear how a query uses the columns of a table.
    """
    # Why not write the columns out in place of the star: those of a join, a subquery or a view are
    # known to Spark alone.
    selects: dict[int, list[Reference]] = {}
    for each in tables:
        at = _select_of(tokens, each.first)
        if at is None:
            return None
        selects.setdefault(at, []).append(each)
    if any(each.upper == "NATURAL" for each in tokens):
        return None
    edits: list[Edit] = []
    for at, read in selects.items():
        names = [_alias(tokens, each) for each in read]
        depth = 0
        for number in range(at + 1, read[0].first):
            token = tokens[number]
            depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
            before = tokens[number - 1]
            if token.text != "*" or before.upper not in (*_BEFORE_STAR, "("):
                continue
            if depth:
                if before.text != "(" or tokens[number - 2].upper != "COUNT":
                    return None
                continue
            hidden = [f"{quoted(name)}.{_METADATA}" for name in names]
            if before.text == ".":
                owner = (tokens[number - 2].name or "").lower()
                hidden = [
                    full for name, full in zip(names, hidden, strict=True) if name.lower() == owner
                ]
            if hidden:
                edits.append(_except(tokens, number, ", ".join(hidden)))
    return edits


def _except(tokens: Sequence[Token], star: int, hidden: str) -> Edit:
    after = tokens[star + 1 : star + 3]
    if len(after) == 2 and after[0].upper == "EXCEPT" and after[1].text == "(":
        return after[1].end, after[1].end, f"{hidden}, "
    return tokens[star].end, tokens[star].end, f" EXCEPT ({hidden})"


def _alias(tokens: Sequence[Token], table: Reference) -> str:
    """What a query calls a table."""
    if table.alias_at is not None:
        return table.parts[-1]
    at = table.end
    if tokens[at].upper == "AS":
        at += 1
    return tokens[at].name or table.parts[-1]


def _select_of(tokens: Sequence[Token], table: int) -> int | None:
    """The SELECT in whose FROM a table is."""
    depth, passed_from = 0, False
    for at in range(table - 1, -1, -1):
        text = tokens[at].text
        if text in (")", "]"):
            depth += 1
        elif text in ("(", "["):
            # Out of parentheses around a join, but not out of a query that has no SELECT.
            if not depth and passed_from:
                return None
            depth = max(depth - 1, 0)
        elif not depth and tokens[at].upper == "FROM":
            passed_from = True
        elif not depth and tokens[at].upper == "SELECT":
            return at if passed_from else None
    return None
