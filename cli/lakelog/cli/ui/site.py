"""Which page an address leads to."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import click

from lakelog.cli.ui.conflicts_page import Conflicts
from lakelog.cli.ui.fields import BadFieldError
from lakelog.cli.ui.frame import TABS, page, trouble
from lakelog.cli.ui.lake import READING_ERRORS
from lakelog.cli.ui.list_page import list_page
from lakelog.cli.ui.server import Answer
from lakelog.cli.ui.table_pages import TablePages
from lakelog.core.engine.conditions import text_limit
from lakelog.core.engine.shown import html_text
from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError
from lakelog.logstores.limits import call_with

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.cli.ui.lake import Known, Lake

_MOST_TEXT: Final = 1 << 26
"""Characters that functions of a filter may make of one batch of rows: `rpad(a, 2000000000)`
would take the memory of the process."""


class Site:
    """The pages about the tables of a lake."""

    def __init__(self, lake: Lake, events: Sequence[str]) -> None:
        """Read nothing yet.

        Args:
            lake: the tables.
            events: of jobs, for the pages of conflicts.
        """
        self._lake = lake
        self._conflicts = Conflicts(events, lake.conf, lake.scrubber)

    def answer(self, path: str, fields: Mapping[str, str]) -> Answer:
        """The page of an address.

        Args:
            path: of the address.
            fields: of its query.
        """
        match path.split("/")[1:]:
            case [""]:
                return Answer(list_page(self._lake))
            case ["conflicts"]:
                body = self._conflicts.page(None)
                return Answer(page("Conflicts", body, tab="conflicts"))
            case ["table", key, tab] if tab in TABS:
                table = self._lake.table(key)
                if table is not None:
                    return self._of_table(table, tab, fields)
        words = (
            "There is no such page, or its table is gone. The list shows which tables there are."
        )
        return Answer(page("Not found", trouble(words)), HTTPStatus.NOT_FOUND)

    def _of_table(self, table: Known, tab: str, fields: Mapping[str, str]) -> Answer:
        status = HTTPStatus.OK
        try:
            if tab == "conflicts":
                body = self._conflicts.page(table.uri)
            else:
                show = getattr(TablePages(self._lake, table), tab or "overview")
                body = call_with(text_limit, _MOST_TEXT, lambda: show(fields))
        except (*READING_ERRORS, click.UsageError) as error:
            status = _status(error)
            message = error.message if isinstance(error, click.UsageError) else str(error)
            body = trouble(self._lake.scrubber.text(message))
        uri = html_text(self._lake.scrubber.text(table.uri), 300)
        html = page(table.name, body, table=table, tab=tab, subtitle=f"<code>{uri}</code>")
        return Answer(html, status)


def _status(error: Exception) -> HTTPStatus:
    if isinstance(error, FileNotFoundError):
        return HTTPStatus.NOT_FOUND
    refused = (BadFieldError, DeltaAnalysisError, UnsupportedFeatureError, click.UsageError)
    if isinstance(error, refused):
        return HTTPStatus.BAD_REQUEST
    return HTTPStatus.INTERNAL_SERVER_ERROR
