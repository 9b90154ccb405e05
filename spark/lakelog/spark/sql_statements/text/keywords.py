"""Words of Spark's SQL by what they mean for the tables of a query."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


QUERY = ("SELECT", "VALUES", "TABLE", "WITH", "FROM", "MAP", "REDUCE")
"""What a query begins with, if not with a parenthesis."""
STARTS = frozenset(QUERY)
ENDS_LIST = _words(
    "WHERE GROUP HAVING ORDER SORT CLUSTER DISTRIBUTE LIMIT OFFSET WINDOW UNION EXCEPT MINUS "
    "INTERSECT SELECT INSERT QUALIFY |> ;"
)
"""What ends the list of tables after FROM."""
LOOKED_AT = ENDS_LIST | _words("( WITH SELECT FROM JOIN , TABLE LATERAL USING")
"""What matters where no table is expected."""
BEFORE_TABLE = _words(
    "AS UNION ALL DISTINCT EXCEPT MINUS INTERSECT EXPLAIN EXTENDED CODEGEN COST FORMATTED QUERY "
    "( , =>"
)
"""After these, TABLE begins a query or an argument."""
NO_ALIAS = ENDS_LIST | _words(
    "ON USING JOIN INNER CROSS LEFT RIGHT FULL OUTER SEMI ANTI NATURAL ANY LATERAL PIVOT UNPIVOT "
    "TABLESAMPLE FOR VERSION TIMESTAMP SYSTEM_VERSION SYSTEM_TIME WITH WHEN SET VALUES FROM MAP "
    "REDUCE TRANSFORM MATCH_RECOGNIZE WATERMARK INTO"
)
"""Words after a table that are not its alias."""
