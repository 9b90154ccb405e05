"""How values look in notebooks: small HTML tables and pictures, every text of them escaped.

What a cell shows must cost next to nothing and can't fail in the place of the cell: of long lists
the first and the last rows are shown, and no data file is read. The colours are those of the
notebook, light or dark; only marks have one of their own, which is seen on both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeGuard

from lakelog.core.shown.texts import bytes_text, count_text, html_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pyarrow as pa

_LONGEST: Final = 300
_FIRST: Final = 40
_LAST: Final = 10
"""Rows of a long table that are shown: its first and its last."""
_BARS: Final = 60
_STYLE: Final = """
.lakelog{font-size:.92em;line-height:1.4;text-align:left}
.lakelog table{display:block;width:fit-content;max-width:100%;overflow-x:auto;border:0;
border-collapse:collapse;margin:.2em 0 .9em}
div.lakelog.lakelog th,div.lakelog.lakelog td{text-align:left;vertical-align:top;white-space:normal;
min-width:2.5em;max-width:28em;padding:.2em .8em .2em .3em;border:0;
border-bottom:1px solid rgba(128,128,128,.35);overflow-wrap:break-word;unicode-bidi:isolate}
div.lakelog.lakelog th,div.lakelog.lakelog .t{white-space:nowrap}
div.lakelog.lakelog .n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}
div.lakelog.lakelog .w{min-width:15em}
.lakelog .dim{opacity:.7}
.lakelog figure{margin:0 0 .9em;width:100%;text-align:left}
.lakelog svg{display:block;width:100%;max-width:44em;height:auto}
.lakelog svg text{font:12px sans-serif;fill:currentColor}
.lakelog .grid{stroke:currentColor;opacity:.25}
.lakelog .c1{fill:#3f86d0}.lakelog .c3{fill:#d2741a}
.lakelog span.c1{background:#3f86d0}.lakelog span.c3{background:#d2741a}
.lakelog .legend{display:flex;gap:1em;list-style:none;margin:0;padding:0}
.lakelog .key{display:inline-block;width:.8em;height:.8em;margin-right:.35em}
"""
"""Twice the class where a notebook has rules of its own, so that these win."""
_WIDE: Final = 24
"""Characters from which a text needs room to be readable."""


class ShownFields:
    """A result, a dataclass, that a notebook shows as a table of its fields."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        parts = []
        for each in fields(self):  # type: ignore[arg-type]
            items = getattr(self, each.name)
            if isinstance(items, tuple) and items and all(map(is_dataclass, items)):
                names = [field.name for field in fields(items[0])]
                parts.append((each.name, html_table(each.name, names, items, _record(names))))
            elif _is_arrow_table(items) and items.num_rows:
                parts.append((each.name, _arrow_table(each.name, items)))
        pairs = [*_pairs(self, {name for name, _ in parts})]
        return html_page(
            html_table(type(self).__name__, ("", ""), pairs), *(table for _, table in parts)
        )


def _record(names: Sequence[str]) -> Callable[[Any], list[Any]]:
    return lambda item: [getattr(item, name) for name in names]


def _is_arrow_table(value: object) -> TypeGuard[pa.Table]:
    return type(value).__module__ == "pyarrow.lib" and hasattr(value, "column_names")


def _arrow_table(caption: str, table: Any) -> str:
    def cells(at: int) -> list[Any]:
        (row,) = table.slice(at, 1).to_pylist()
        return [_value(name, value) for name, value in row.items()]

    return html_table(caption, table.column_names, range(table.num_rows), cells)


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
            yield f"{before}{name}", _value(name, value)


def _value(name: str, value: Any) -> Any:
    """A value as people read it, by what its name says that it is."""
    if isinstance(value, float):
        return Number(bytes_text(round(value)) if name == "avg" else f"{value:.6g}")
    if isinstance(value, int) and not isinstance(value, bool):
        if name.endswith(("_time_ms", "modificationTime")) or name in ("cutoff", "timestamp"):
            return Number(time_text(value) or "")
        if name in ("min", "max", "total_size", "length") or name.lower().endswith("bytes"):
            return Number(bytes_text(value))
    return value


class Number(NamedTuple):
    """A number, or a time, as text: it is kept in one piece, at the right."""

    text: str


def html_page(*parts: str) -> str:
    """Tables and pictures as what a cell shows, with the style that they share."""
    return f'<div class="lakelog"><style>{_STYLE}</style>{"".join(parts)}</div>'


def html_table(
    caption: str,
    names: Sequence[str],
    items: Sequence[Any],
    cells: Callable[[Any], Iterable[Any]] = tuple,
) -> str:
    """A table with a heading; of a long one the first and the last rows.

    Args:
        caption: above the table.
        names: of the columns.
        items: one a row.
        cells: the values of an item; `None` is an empty cell, and long texts are cut.
    """
    count = len(items)
    shown = [_row(cells(items[at])) for at in range(min(count, _FIRST))]
    if count > _FIRST:
        left = count - _FIRST - _LAST
        if left > 0:
            text = f"… {left:,} more …"
            shown.append(f'<tr><td class="dim" colspan="{len(names)}">{text}</td></tr>')
        shown += [_row(cells(items[at])) for at in range(max(_FIRST, count - _LAST), count)]
    head = "".join(f"<th>{html_text(name, _LONGEST)}</th>" for name in names)
    head = f"<thead><tr>{head}</tr></thead>" if any(names) else ""
    title = f"<b>{html_text(caption, _LONGEST)}</b>" if caption else ""
    return f"<div>{title}<table>{head}<tbody>{''.join(shown)}</tbody></table></div>"


def _row(values: Iterable[Any]) -> str:
    return f"<tr>{''.join(map(_cell, values))}</tr>"


def _cell(value: Any) -> str:
    if isinstance(value, Number):
        return f'<td class="n">{html_text(value.text, _LONGEST)}</td>'
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td class="n">{value}</td>'
    if isinstance(value, datetime):
        return f'<td class="t">{value.isoformat(" ", "milliseconds")}</td>'
    text = _text(value)
    style = ' class="w"' if len(text) > _WIDE else ""
    return f"<td{style}>{html_text(text, _LONGEST)}</td>"


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={_text(each)}" for name, each in value.items())
    if isinstance(value, (tuple, list)):
        return ", ".join(map(_text, value))
    return str(value)


def rows_page(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The rows of an answer; a single one from top to bottom, for it has many columns."""
    if len(rows) == 1:
        return html_page(html_table("", ("", ""), [*zip(names, rows[0], strict=True)]))
    return html_page(html_table(count_text(len(rows), "row"), names, rows))


def progress_page(steps: Iterable[tuple[str, int, int | None, str]]) -> str:
    """How far the steps of an operation are.

    Args:
        steps: each by its name, how much of it is done and of how much, and both as text.
    """
    rows = []
    for name, done, total, amount in steps:
        label = html_text(name, _LONGEST)
        end = "" if total is None else f' value="{done}" max="{max(total, 1)}"'
        rows.append(
            f'<tr><td>{label}</td><td><progress aria-label="{label}"{end}></progress></td>'
            f'<td class="n">{html_text(amount)}</td></tr>'
        )
    return html_page(f"<table><tbody>{''.join(rows)}</tbody></table>")


def rows_picture(versions: Sequence[tuple[int, int, int]]) -> str:
    """How many rows each version wrote and deleted; nothing where there is nothing to compare.

    Args:
        versions: each with its rows written and deleted, ascending.
    """
    from lakelog.core.shown.pictures import Canvas, Series, bars

    if len(versions) < 3 or not any(chain.from_iterable(each[1:] for each in versions)):
        return ""
    # As many neighbours in one bar as it takes.
    step = -(-len(versions) // _BARS)
    groups = [versions[at : at + step] for at in range(0, len(versions), step)]
    labels = [
        f"{group[0][0]:,}" if len(group) == 1 else f"{group[0][0]:,}–{group[-1][0]:,}"
        for group in groups
    ]
    title = "Rows by version" if step == 1 else f"Rows by {step:,} versions"
    parts = [
        Series(name, style, [sum(each[at] for each in group) for group in groups])
        for name, style, at in (("rows written", "c1", 1), ("rows deleted", "c3", 2))
    ]
    shown = [part for part in parts if any(part.values)]
    return _figure(title, bars(title, labels, shown, "{:,.0f}".format, Canvas(720, 150)))


def sizes_picture(classes: Sequence[tuple[str, int]]) -> str:
    """How many files there are of which size.

    Args:
        classes: each with how many files are of this size.
    """
    from lakelog.core.shown.pictures import Canvas, Series, bars

    title = f"Sizes of {count_text(sum(count for _, count in classes), 'file')}"
    labels, counts = zip(*classes, strict=True)
    shown = [Series("files", "c1", counts)]
    return _figure(title, bars(title, labels, shown, "{:,.0f}".format, Canvas(720, 150)))


def _figure(title: str, picture: str) -> str:
    return f"<figure><figcaption><b>{html_text(title)}</b></figcaption>{picture}</figure>"
