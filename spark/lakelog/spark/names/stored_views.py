"""Views whose query reads Delta tables: what is kept of them, and where.

Of a persistent view the catalog has it all. A temporary one is, for all of Spark that lists,
describes and drops views, one of the rows that the query gave when it was made. Its first column
has the query in its metadata, so that whatever becomes of the view becomes of the query too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_KEY = "lakelog.view"
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")


@dataclass(frozen=True, slots=True)
class StoredView:
    """The query of a view, and its columns."""

    text: str
    namespace: tuple[str, ...]
    """Catalog and database of the names in it that have neither; empty where all have them."""
    output: tuple[str, ...]
    """The columns of the query that are shown, as they were when the view was made."""
    names: tuple[str, ...]
    """What the view calls them."""
    types: tuple[str, ...] = ()
    """What the view makes of them; empty: they are what they are in the query."""
    comments: tuple[str | None, ...] = ()
    """Of the columns, where the view has its own."""


def described_view(rows: Sequence[Any]) -> StoredView | None:
    """A persistent view.

    Args:
        rows: what `DESCRIBE TABLE EXTENDED` says.
    """
    columns = []
    for row in rows:
        if not row.col_name:
            break
        columns.append(row)
    details = {row.col_name: row.data_type for row in rows[len(columns) :]}
    text = details.get("View Text")
    if text is None:
        return None
    names = tuple(row.col_name for row in columns)
    listed = details.get("View Query Output Columns", "").strip("[]")
    output = tuple(each.replace("``", "`") for each in _QUOTED.findall(listed))
    if not output and listed:
        output = tuple(listed.split(", "))  # as Spark 4.0 has them
    return StoredView(
        text,
        tuple(part.strip("`") for part in details["View Catalog and Namespace"].split(".")),
        output if len(output) == len(names) else names,
        names,
        tuple(row.data_type for row in columns),
        tuple(row.comment for row in columns),
    )


def with_query(frame: DataFrame, name: Sequence[str], view: StoredView) -> DataFrame:
    """The rows of a temporary view, with its query kept in them.

    Args:
        frame: the rows of now, whose columns the view shows.
        name: that of the view; a DataFrame made of it can get another, and has another query then.
        view: the query.
    """
    kept = {
        "name": [each.lower() for each in name],
        "text": view.text,
        "output": view.output,
        "names": view.names,
        "comments": view.comments,
    }
    first, *others = frame.schema.fields
    # A temporary view has no properties. What a column says of itself lives as long as the view,
    # and every client of a Connect session sees it.
    metadata = {**first.metadata, _KEY: json.dumps(kept)}
    return frame.select(
        sf.col(quoted(first.name)).alias(first.name, metadata=metadata),
        *(quoted(each.name) for each in others),
    )


def kept_view(schema: StructType, name: Sequence[str]) -> StoredView | None:
    """The query of a temporary view; `None` for one that Spark made by itself.

    Args:
        schema: of the view.
        name: of the view.
    """
    text = schema.fields[0].metadata.get(_KEY) if schema.fields else None
    if text is None:
        return None
    kept = json.loads(text)
    if kept["name"] != [each.lower() for each in name]:
        return None
    comments = tuple(kept["comments"])
    return StoredView(kept["text"], (), tuple(kept["output"]), tuple(kept["names"]), (), comments)
