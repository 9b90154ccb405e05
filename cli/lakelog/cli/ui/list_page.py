"""The list of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lakelog.cli.report.elements import (
    Cell,
    amount_cell,
    data_table,
    fact_list,
    number_text,
    size_text,
    time_cell,
)
from lakelog.cli.report.treemap import sparkline
from lakelog.cli.ui.frame import address, live, page, trouble, waiting
from lakelog.cli.ui.lake import DAYS
from lakelog.core.engine.shown import bytes_text, count_text, html_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.cli.ui.lake import Lake, Row

_PATIENCE = 1.0
"""Seconds that a page waits for the look at all tables, so that few tables come at once."""
_EVERY = 15
_COLUMNS = (
    "Table",
    "Version",
    "Rows",
    "Size",
    "Files",
    "Last commit",
    f"Last {DAYS} days",
    "Health",
)


def list_page(lake: Lake) -> str:
    """All tables that were found, with their numbers as far as they were looked at."""
    found = lake.tables(_PATIENCE)
    rows = found.rows
    html = waiting(found.doing) if found.doing else ""
    html += "".join(trouble(each) for each in found.left_out)
    if rows:
        html += _sums(rows)
        html += data_table(
            "tables", count_text(len(rows), "table"), _COLUMNS, [_cells(each) for each in rows]
        )
    elif not found.doing:
        html += (
            '<p class="empty">There is no Delta table here: a folder is one if it holds '
            "<code>_delta_log</code>. Tables that are made later appear by themselves.</p>"
        )
    places = ", ".join(
        f"<code>{html_text(lake.scrubber.text(each), 300)}</code>" for each in lake.places
    )
    return page(
        "Tables", live(html, busy=found.doing is not None, every=_EVERY), subtitle=f"Below {places}"
    )


def _sums(rows: Sequence[Row]) -> str:
    sick = [each for each in rows if each.trouble or _failed(each)]
    return fact_list(
        [
            ("Tables", f"{len(rows):,}"),
            ("Rows", f"{sum(each.rows or 0 for each in rows):,}"),
            ("Size", bytes_text(sum(each.size or 0 for each in rows))),
            ("Versions today", f"{sum(sum(each.by_day[-1:]) for each in rows):,}"),
            ("To look after", f"{len(sick):,}"),
        ]
    )


def _failed(row: Row) -> list[str]:
    return [each["check"] for each in row.findings if each["status"] == "failed"]


def _cells(row: Row) -> list[Any]:
    many = sum(row.by_day)
    title = f"{count_text(many, 'version')} in {DAYS} days"
    by_day = Cell(f"{many:,}", many, " " + sparkline(title, row.by_day)) if row.by_day else ""
    rows = amount_cell(row.rows, number_text)
    if row.rows_at_least and row.rows is not None:
        rows = rows._replace(text=f"{rows.text} or more")
    return [
        Cell(row.table.name, row.table.name, link=address(row.table)),
        amount_cell(row.version, number_text),
        rows,
        amount_cell(row.size, size_text),
        amount_cell(row.files, number_text),
        time_cell(row.time),
        by_day if row.by_day else amount_cell(None, number_text),
        _health(row),
    ]


def _health(row: Row) -> Cell:
    failed = _failed(row)
    notes = [each["check"] for each in row.findings if each["status"] == "note"]
    if row.trouble or failed:
        what = f"{len(failed)} to fix: {', '.join(failed)}" if failed else "can't be read"
        return Cell("", f"0 {what}", _badge("failed", what, row.trouble or ""))
    if not row.looked_at:
        return Cell("", "3", '<span class="dim">not yet</span>')
    fine = _badge("fine", "fine", "")
    if notes:
        what = count_text(len(notes), "note")
        hint = html_text(", ".join(notes), 500)
        return Cell("", f"1 {what}", f'{fine} <span class="dim" title="{hint}">{what}</span>')
    return Cell("", "2 fine", fine)


def _badge(status: str, what: str, more: str) -> str:
    hint = f' title="{html_text(more, 500)}"' if more else ""
    return f'<span class="badge {status}"{hint}>{html_text(what, 120)}</span>'
