"""Temporary views that statements change: which table they mean, and which of them mean none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.names.frame_views import GLOBAL, source_of_view
from lakelog.spark.names.lookup import forget
from lakelog.spark.reading.reader import DeltaReader
from lakelog.spark.sql_statements.queries.named_tables import Place, entry_of, path_in, place_of
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.table.delta_table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from lakelog.spark.names.catalog_entries import Entry
    from lakelog.spark.sql_statements.text.tokens import Token

_UNKNOWN = ("[INTERNAL_ERROR]", "UNSUPPORTED_FEATURE.TABLE_OPERATION")
"""What Spark says to DELETE, UPDATE and MERGE of a view."""


def written_place(spark: SparkSession, parts: Sequence[str], verb: str) -> Place | None:
    """The Delta table whose rows a statement changes, by its name or by that of a view.

    As for delta-spark, a temporary view of a DataFrame that is a whole table means the table, and
    for DELETE, UPDATE and MERGE so does one of `SELECT * FROM t`.

    Args:
        spark: the session.
        parts: the name.
        verb: of the statement: `INSERT`, `DELETE`, `UPDATE`, `MERGE`.

    Returns:
        `None` where it is Spark's: no table of ours, and no view that is known to be.

    Raises:
        DeltaAnalysisError: a view that reads a table and does not mean it.
    """
    found = place_of(spark, parts)
    if found is not None:
        return found
    # Others have one part alone.
    may_be_view = len(parts) == 1 or parts[0].lower() == GLOBAL
    entry = entry_of(spark, parts) if may_be_view else None
    # What becomes of a persistent view as a target is Spark's to say.
    if entry is None or entry.kind != "temporary view":
        return None
    if entry.view is not None:
        if verb == "INSERT":
            raise DeltaAnalysisError(
                f"[EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE] 'INSERT' expects a table but {entry.text} "
                "is a view: name the table that its query reads",
                view=entry.text,
            )
        return _table_of_query(spark, entry, verb)
    source = source_of_view(spark, entry.parts)
    if source is None:
        return None
    if source.older:
        raise _older(entry, verb)
    return Place(source.path, tuple(parts), view=entry.parts)


def may_mean_table(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Whether an INSERT into a name is ours to see to."""
    if path_in(parts) is not None:
        return True
    entry = entry_of(spark, parts)
    return entry is not None and (entry.is_delta or entry.kind == "temporary view")


def refreshed(spark: SparkSession, place: Place) -> None:
    """Let the view of a DataFrame show the table as it is now; nothing happens for other names."""
    source = source_of_view(spark, place.view) if place.view else None
    if source is None:
        return
    # A DataFrame stays at the version that it was planned at: only a new one has the new rows.
    frame = DeltaReader(spark).options(**source.options).load(source.path)
    if source.alias is not None:
        frame = frame.alias(source.alias)
    name = place.view[-1]
    if place.view[0] == GLOBAL:
        frame.createOrReplaceGlobalTempView(name)
    else:
        frame.createOrReplaceTempView(name)
    forget()


def refused_by_spark(
    spark: SparkSession, parts: Sequence[str], verb: str, error: Exception
) -> DeltaAnalysisError | None:
    """What to say where Spark has no words for a change of rows of a temporary view.

    Args:
        spark: the session.
        parts: the name in the statement.
        verb: see `written_place`.
        error: Spark's.
    """
    entry = entry_of(spark, parts)
    unknown = any(each in str(error) for each in _UNKNOWN)
    if not unknown or entry is None or entry.kind != "temporary view":
        return None
    return DeltaAnalysisError(
        f"[DELTA_UNSUPPORTED_SOURCE] {verb} destination only supports Delta sources: {entry.text} "
        "is a temporary view that is not known to be a whole Delta table. Name the table, by its "
        "path as delta.`/its/path` or by its name",
        view=entry.text,
    )


def _older(entry: Entry, verb: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        "[DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION] Expect a full scan of the latest version of "
        f"the Delta source: the view {entry.text} shows an older version, and {verb} changes the "
        "newest. Name the table itself",
        view=entry.text,
    )


def _table_of_query(spark: SparkSession, entry: Entry, verb: str) -> Place:
    """The table that the query of a view is all rows and columns of."""
    view = entry.view
    assert view is not None
    query = Statement(view.text)
    found = query.references
    whole = len(found) == 1 and not found[0].is_call and not found[0].options[1]
    shown = _shown(query.tokens, found[0].first, found[0].end) if whole else None
    same = [each.lower() for each in view.output] == [each.lower() for each in view.names]
    if shown is None or not same:
        raise _not_whole(entry, verb)
    if found[0].travel is not None:
        raise _older(entry, verb)
    place = written_place(spark, found[0].parts, verb)
    if place is None:
        raise _not_whole(entry, verb)
    if shown and [each.lower() for each in shown] != _columns(spark, place):
        raise _not_whole(entry, verb)
    return Place(place.path, entry.parts, view=place.view)


def _columns(spark: SparkSession, place: Place) -> list[str]:
    log = DeltaTable.forPath(spark, place.path).log
    return [each.lower() for each in log.snapshot.schema.names]


def _shown(tokens: Sequence[Token], first: int, end: int) -> list[str] | None:
    """The columns that a query has of its only table, with nothing done to its rows.

    Args:
        tokens: those of the query.
        first: where the name of the table begins.
        end: the token after it.

    Returns:
        Their names; none where it is `*`. `None`: the query is another.
    """
    low, high = 0, len(tokens)
    shown: list[str] = []
    while True:
        if low < first and tokens[low].text == "(" and tokens[high - 1].text == ")":
            low, high = low + 1, high - 1
            continue
        at = low
        if tokens[low].upper == "TABLE" and low + 1 == first:
            return shown if end == high else None
        if tokens[low].upper == "SELECT":
            items = _items(tokens, low + 1)
            if items is None:
                return None
            names, at = items
            if names and shown and [n.lower() for n in names] != [n.lower() for n in shown]:
                return None
            shown = names or shown
        if at >= high or tokens[at].upper != "FROM":
            return None
        at += 1
        if at == first:
            return shown if _is_alias(tokens, end, high) else None
        close = _closing(tokens, at, high) if tokens[at].text == "(" else None
        if close is None or not _is_alias(tokens, close + 1, high):
            return None
        low, high = at + 1, close


def _items(tokens: Sequence[Token], at: int) -> tuple[list[str], int] | None:
    """What is between SELECT and FROM: `*`, or plain names; and where that ends."""
    if tokens[at].text == "*":
        return [], at + 1
    names = []
    while at < len(tokens) and (name := tokens[at].name) is not None:
        names.append(name)
        at += 1
        if at >= len(tokens) or tokens[at].text != ",":
            return names, at
        at += 1
    return None


def _is_alias(tokens: Sequence[Token], at: int, high: int) -> bool:
    """Whether there is nothing, or an alias alone."""
    if at < high and tokens[at].upper == "AS":
        return at + 2 == high and tokens[at + 1].name is not None
    if at + 1 == high:
        return tokens[at].name is not None
    return at == high


def _closing(tokens: Sequence[Token], at: int, high: int) -> int | None:
    depth = 0
    for number in range(at, high):
        depth += (tokens[number].text == "(") - (tokens[number].text == ")")
        if not depth:
            return number
    return None


def _not_whole(entry: Entry, verb: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"[DELTA_UNSUPPORTED_SOURCE] {verb} destination only supports Delta sources: the temporary "
        f"view {entry.text} is not all rows and columns of one Delta table, as SELECT * FROM t is. "
        "Name the table that is to be changed",
        view=entry.text,
    )
