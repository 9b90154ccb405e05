"""How values look in notebooks: small HTML tables, every text of them escaped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LONGEST = 300


class ShownFields:
    """A result, a dataclass, that a notebook shows as a table of its fields."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        several = [
            (each.name, items)
            for each in fields(self)  # type: ignore[arg-type]
            if isinstance(items := getattr(self, each.name), tuple) and _are_records(items)
        ]
        apart = {name for name, _ in several}
        shown = html_table(type(self).__name__, ("", ""), _pairs(self, apart))
        for name, items in several:
            names = [each.name for each in fields(items[0])]
            rows = ([getattr(item, each) for each in names] for item in items)
            shown += html_table(name, names, rows)
        return shown


def _are_records(items: tuple[Any, ...]) -> bool:
    return bool(items) and all(is_dataclass(each) for each in items)


def _pairs(record: Any, apart: Iterable[str] = (), before: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values, those within a value by their path."""
    if isinstance(record, Mapping):
        found = list(record.items())
    else:
        found = [(f.name, getattr(record, f.name)) for f in fields(record) if f.repr]
    for name, value in found:
        if name in apart:
            continue
        if isinstance(value, Mapping) or is_dataclass(value):
            yield from _pairs(value, before=f"{before}{name}.")
        else:
            shown = ", ".join(map(str, value)) if isinstance(value, (tuple, list)) else value
            yield f"{before}{name}", shown


def html_table(caption: str, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table with a heading.

    Args:
        caption: above the table.
        names: of the columns.
        rows: their values; `None` is an empty cell, and long texts are cut.
    """
    # Its table of entities is long, and commands are imported where no notebook is.
    from html import escape

    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(value)}</td>' for value in row)}</tr>" for row in rows
    )
    return (
        f"<div><b>{escape(caption)}</b><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _text(value: Any) -> str:
    from html import escape

    text = "" if value is None else str(value)
    return escape(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
