"""Views over tables of ours: their rows, rebuilt from their query at each use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.sql_statements.text.syntax_errors import located
from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from lakelog.spark.names.catalog_entries import Entry
    from lakelog.spark.sql_statements.text.references import Reference
    from lakelog.spark.sql_statements.text.statement import Statement


def as_view(frame: DataFrame, entry: Entry) -> DataFrame:
    """The rows of a view's query under the names, and with the columns, that the view has.

    A view made as `SELECT *` keeps the columns that there were then.

    Args:
        frame: what its query gives now.
        entry: the view.

    Raises:
        DeltaAnalysisError: a column is gone.
    """
    view = entry.view
    assert view is not None
    try:
        return view_columns(frame, view.output, view.names, view.comments, view.types)
    except KeyError as exc:
        raise DeltaAnalysisError(
            f"[INCOMPATIBLE_VIEW_SCHEMA_CHANGE] The query of the view {entry.text} gives no column "
            f"{exc.args[0]} any more, which it did when the view was made: its columns are "
            f"{', '.join(frame.columns)}. Make the view again with CREATE OR REPLACE",
            view=entry.text,
        ) from None


def view_columns(
    frame: DataFrame,
    output: Sequence[str],
    names: Sequence[str],
    comments: Sequence[str | None],
    types: Sequence[str] = (),
) -> DataFrame:
    """Some columns of a query, under other names.

    Args:
        frame: what the query gives.
        output: the columns of it.
        names: their new names.
        comments: their new comments, where they have some.
        types: what they are to be, as SQL; empty: what they are.

    Raises:
        KeyError: there is no such column.
    """
    fields = {each.name.lower(): each for each in frame.schema.fields}
    if len(fields) < len(frame.columns):
        return frame.toDF(*names)  # two columns of one name: by their places
    wanted: list[Column] = []
    for number, (column, name) in enumerate(zip(output, names, strict=True)):
        field = fields.get(column.lower())
        if field is None:
            raise KeyError(column)
        found = sf.col(quoted(field.name))
        if types and types[number] != field.dataType.simpleString():
            found = found.cast(types[number])
        comment = comments[number] if comments else None
        metadata = field.metadata if comment is None else {**field.metadata, "comment": comment}
        wanted.append(found.alias(name, metadata=metadata))
    return frame.select(*wanted)


def recursive_view(name: str) -> DeltaAnalysisError:
    """The error for a view that would read itself."""
    return DeltaAnalysisError(
        f"[RECURSIVE_VIEW] Recursive view {name} detected: its query reads the view itself, "
        "at once or by another view. Give one of them another name",
        view=name,
    )


def refuse_lasting(statement: Statement, reference: Reference) -> None:
    """Refuse Spark's own statements that keep a query over a table of ours.

    Spark keeps their text, and evaluates it again where lakelog does not see it.

    Args:
        statement: the statement.
        reference: the first table of ours in it.

    Raises:
        SqlSyntaxError: it is one.
    """
    words = [each.upper for each in statement.tokens[:8]]
    is_view = words[:1] in (["CREATE"], ["ALTER"]) and "VIEW" in words
    if is_view or words[:2] in (["CACHE", "TABLE"], ["CACHE", "LAZY"]):
        raise located(
            statement.text,
            statement.tokens[reference.first].start,
            "[UNSUPPORTED_FEATURE] this form of the statement keeps its query for later, and the "
            "query reads a Delta table: use CREATE [OR REPLACE] [TEMPORARY] VIEW name "
            "[(columns)] [COMMENT '…'] AS query, or CACHE TABLE name AS query",
        )
