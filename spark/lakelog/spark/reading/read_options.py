"""Options of a read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from lakelog.core.engine.tables import option
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores.keys import flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.schema import StructType

_CHANGE_FEED = ("readChangeFeed", "readChangeData")


def column_names(text: str | None) -> list[str]:
    """The names in a reader's option `columns`: `a, b`, or `["a", "b"]` where a name has a comma.

    Args:
        text: names separated by commas, or a JSON list of texts.

    Raises:
        DeltaAnalysisError: a list that holds something else than texts.
    """
    given = text or ""
    if given.lstrip().startswith("["):
        try:
            listed = json.loads(given)
        except ValueError:
            # A name may begin with a bracket.
            listed = None
        if listed is not None:
            if not all(isinstance(each, str) for each in listed):
                raise DeltaAnalysisError(
                    f"the option columns is the list {given}, but only strings can be names of "
                    'columns: ["a", "b"]',
                    option="columns",
                )
            return list(listed)
    return [name for each in given.split(",") if (name := each.strip())]


def chosen_columns(schema: StructType, text: str | None, table: str) -> list[str] | None:
    """The columns that a reader's option `columns` names; `None` if it names none.

    Args:
        schema: the table's.
        text: as for `column_names`; names in any case.
        table: its URI, for the error.

    Raises:
        DeltaAnalysisError: the table has no such column, or a list that is not of texts.
    """
    chosen = []
    for name in column_names(text):
        field = schema.get(name)
        if field is None:
            raise DeltaAnalysisError(
                f"the option columns names {name!r}, but {table} has {', '.join(schema.names)}",
                option="columns",
                column=name,
            )
        chosen.append(field.name)
    return chosen or None


def wants_changes(options: Mapping[str, str]) -> bool:
    """Whether a read asks for changes instead of rows.

    Args:
        options: names in lower case.

    Raises:
        DeltaAnalysisError: an option that asks for them is neither `true` nor `false`.
    """
    said = [option(options, flag(name, False)) for name in _CHANGE_FEED]
    return any(said)
