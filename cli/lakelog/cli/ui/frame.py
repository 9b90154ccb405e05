"""What all pages have around them, and the addresses within them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from lakelog.core.engine.shown import html_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.cli.ui.lake import Known

TABS: Final = {
    "": "Overview",
    "history": "History",
    "version": "Time travel",
    "rows": "Rows",
    "files": "Files",
    "diff": "Compare",
    "conflicts": "Conflicts",
}
"""The pages of a table by the last part of their addresses."""
_HEAD: Final = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">'
    '<link rel="stylesheet" href="/assets/report.css">'
    '<link rel="stylesheet" href="/assets/ui.css">'
)
_SCRIPTS: Final = (
    '<script src="/assets/report.js" defer></script><script src="/assets/ui.js" defer></script>'
)
_LONGEST: Final = 300


def address(table: Known | None, tab: str = "", **fields: Any) -> str:
    """The address of a page, as an attribute's value.

    Args:
        table: whose page it is; None for those of all tables.
        tab: one of `TABS`.
        fields: of the query; None is left out.
    """
    path = f"/{tab}" if table is None else f"/table/{table.key}/{tab}"
    given = {name: value for name, value in fields.items() if value is not None}
    return path + (f"?{html_text(urlencode(given), 10_000)}" if given else "")


def page(
    title: str, body: str, *, table: Known | None = None, tab: str = "", subtitle: str = ""
) -> str:
    """A whole page.

    Args:
        title: its heading, as text.
        body: HTML, made here.
        table: whose page it is.
        tab: which page that is.
        subtitle: HTML below the heading.
    """
    name = html_text(title, _LONGEST)
    what = f"{TABS[tab]} - {name}" if table is not None else name
    return (
        f"{_HEAD}{_SCRIPTS}<title>{what} - lakelog</title></head><body>"
        '<a class="skip" href="#top">Skip to the page</a>'
        f'<header><div class="bar">{_top(table, tab)}</div><h1>{name}</h1>'
        f'<div class="dim subtitle">{subtitle}</div>{_tabs(table, tab)}</header>'
        f'<main id="top" tabindex="-1">{body}</main>'
        "<footer><p>Read-only, and served to this host alone. All times are UTC.</p></footer>"
        "</body></html>\n"
    )


def bare_page(title: str, words: str) -> str:
    """A page that says one thing, for whoever may see no other."""
    return (
        f"{_HEAD}<title>{html_text(title)} - lakelog</title></head><body>"
        f'<main id="top"><h1>{html_text(title)}</h1><p>{html_text(words, 1000)}</p></main>'
        "</body></html>\n"
    )


def trouble(words: str) -> str:
    """Something that could not be done, as a paragraph."""
    return f'<p class="trouble">{html_text(words, 2000)}</p>'


def live(html: str, *, busy: bool = False, every: int = 0) -> str:
    """A part of a page that the script keeps up to date; without a script a link does.

    Args:
        html: what it holds.
        busy: whether it is being made: then it is asked for again at once.
        every: seconds from one look to the next; 0 for none.
    """
    seconds = 1 if busy else every
    return f'<div id="live" data-every="{seconds}" data-busy="{int(busy)}">{html}</div>'


def waiting(doing: str) -> str:
    """That something is being done, and how to see how far it is."""
    return (
        f'<p class="busy" role="status"><span class="wheel" aria-hidden="true"></span>'
        f'{html_text(doing, _LONGEST)}… <a href="">Look again</a></p>'
    )


def form(table: Known, tab: str, fields: Sequence[str], button: str) -> str:
    """A form that asks for a page of a table.

    Args:
        table: whose page it is.
        tab: which page.
        fields: HTML of its fields.
        button: what its button says.
    """
    return (
        f'<form class="tools" action="{address(table, tab)}">{"".join(fields)}'
        f"<button>{html_text(button)}</button></form>"
    )


def field(label: str, name: str, value: Any, kind: str = "text", **attributes: Any) -> str:
    """A labelled field of a form."""
    more = "".join(f' {key}="{html_text(each, 100)}"' for key, each in attributes.items())
    shown = "" if value is None else html_text(value, 10_000)
    return (
        f'<label class="{kind}">{html_text(label)} '
        f'<input type="{kind}" name="{name}" value="{shown}"{more}></label>'
    )


def _top(table: Known | None, tab: str) -> str:
    items = [
        ("/", "Tables", table is None and not tab),
        ("/conflicts", "Conflicts", table is None and tab == "conflicts"),
    ]
    links = "".join(
        f'<li><a href="{path}"{_current(here)}>{name}</a></li>' for path, name, here in items
    )
    return (
        f'<a class="brand" href="/">lakelog</a><nav aria-label="All tables"><ul>{links}</ul></nav>'
    )


def _tabs(table: Known | None, tab: str) -> str:
    if table is None:
        return ""
    links = "".join(
        f'<li><a href="{address(table, each)}"{_current(each == tab)}>{name}</a></li>'
        for each, name in TABS.items()
    )
    return f'<nav class="tabs" aria-label="This table"><ul>{links}</ul></nav>'


def _current(here: bool) -> str:
    return ' aria-current="page"' if here else ""
