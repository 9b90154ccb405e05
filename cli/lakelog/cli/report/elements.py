"""The parts that pages are put together of: facts, figures, and tables that sort and export."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from lakelog.core.engine.shown import bytes_text, html_text

if TYPE_CHECKING:
    from collections.abc import Sequence

CELL: Final = 500
"""Characters of a cell; a comment of 10,000 is cut."""


class Cell(NamedTuple):
    """What a cell shows, and what it is sorted and exported by."""

    text: str
    value: Any
    more: str = ""
    """HTML behind the text, made here."""
    link: str = ""
    """Where the text leads to; an address made here."""


def fact_list(pairs: Sequence[tuple[str, Any]], style: str = "facts") -> str:
    """Names and values as cards.

    Args:
        pairs: name and value.
        style: classes of the style sheet.
    """
    items = "".join(
        f"<div><dt>{html_text(name)}</dt><dd>{html_text(value, 120)}</dd></div>"
        for name, value in pairs
    )
    return f'<dl class="{style}">{items}</dl>'


def figure(
    caption: str,
    picture: str,
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    opened: bool = False,
) -> str:
    """A picture and its numbers.

    Args:
        caption: what it shows.
        picture: SVG.
        name: the id of the table of its numbers.
        columns: of that table.
        rows: of that table.
        opened: whether the numbers are shown at first.
    """
    return (
        f"<div><figure><figcaption>{html_text(caption, 200)}</figcaption>{picture}</figure>"
        f"<details{' open' if opened else ''}><summary>The numbers</summary>"
        f"{data_table(name, caption, columns, rows, filtered=False)}</details></div>"
    )


def data_table(
    name: str,
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    numbers: int | None = None,
    statuses: int | None = None,
    filtered: bool = True,
) -> str:
    """A table that sorts, and its rows as CSV.

    Args:
        name: its id.
        caption: what it shows.
        columns: their names.
        rows: texts, or cells that are sorted by a value.
        numbers: from which column on cells are numbers; found by their values if None.
        statuses: which column has the words of the doctor.
        filtered: whether there is a field to filter by.
    """
    right = [
        at >= numbers
        if numbers is not None
        else bool(rows) and all(_is_number(row[at]) for row in rows)
        for at in range(len(columns))
    ]
    head = "".join(
        f'<th scope="col"{_class(right[at])}>{html_text(each)}</th>'
        for at, each in enumerate(columns)
    )
    body = "".join(
        "<tr>"
        + "".join(_cell(each, right[at], at == statuses) for at, each in enumerate(row))
        + "</tr>"
        for row in rows
    )
    tools = (
        f'<label hidden>Filter <input type="search" data-filters="{name}"></label>'
        "<span data-count></span>"
        if filtered and len(rows) > 1
        else ""
    )
    link = _csv(columns, rows)
    return (
        f'<div class="tools">{tools}<a download="{name}.csv" href="{link}">CSV</a></div>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{html_text(caption, 200)}">'
        f'<table id="{name}" data-sorts><caption>{html_text(caption, 200)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Cell) and isinstance(cell.value, (int, float))


def _class(right: bool) -> str:
    return ' class="n"' if right else ""


def _cell(each: Any, right: bool, status: bool) -> str:
    if not isinstance(each, Cell):
        return f"<td>{html_text(each, CELL)}</td>"
    shown = html_text(each.text, CELL)
    if each.link:
        shown = f'<a href="{each.link}">{shown}</a>'
    if status:
        return f'<td class="{html_text(each.value)}">{shown}{each.more}</td>'
    style = ' class="t"' if isinstance(each.value, str) and not each.link else _class(right)
    value = f' data-v="{html_text(each.value)}"' if str(each.value) != each.text else ""
    return f"<td{style}{value}>{shown}{each.more}</td>"


def _csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(map(_spreadsheet, columns))
    for row in rows:
        writer.writerow(
            [_exported(each) if isinstance(each, Cell) else _spreadsheet(each) for each in row]
        )
    return "data:text/csv;charset=utf-8," + quote(text.getvalue(), safe="", errors="replace")


def _exported(cell: Cell) -> Any:
    return "" if cell.value == -1 and cell.text in ("", "null") else cell.value


def _spreadsheet(value: Any) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = str(value)[:CELL]
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def count_cell(value: int) -> Cell:
    """A count, with its thousands apart."""
    return Cell(f"{value:,}", value)


def amount_cell(value: Any, number: Any) -> Cell:
    """A number as a function spells it; nothing for None."""
    return Cell("", -1) if value is None else Cell(number(value), value)


def number_text(value: float) -> str:
    """A number, with its thousands apart."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def size_text(value: float) -> str:
    """Bytes, in the unit that fits."""
    return bytes_text(int(value))


def time_cell(time: str | None) -> Cell:
    """To the second; sorted and exported as it is in full."""
    return Cell((time or "")[:19].replace("T", " "), time or "")


def day_text(time: str | None) -> str:
    """A time to the minute."""
    return (time or "")[:16].replace("T", " ")
