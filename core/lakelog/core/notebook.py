"""How values look in notebooks: small HTML tables, every text of them escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 300


def html_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with a heading.

    Args:
        caption: above the table.
        names: of the columns.
        rows: their values; `None` is an empty cell, and long texts are cut.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>" for row in rows
    )
    return (
        f"<div><b>{escape(caption)}</b><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
