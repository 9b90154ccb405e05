"""The report as one HTML page: no network, no library, and every text of the table escaped."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote

from lakelog.cli.report.facts import KINDS
from lakelog.cli.report.pictures import Series, Tile, bars, lines, share_bar, text_of, treemap
from lakelog.cli.report.words import FEATURES, PROPERTIES
from lakelog.cli.table_options import bytes_text, count_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_CELL: Final = 500
"""Characters of a cell; a comment of 10,000 is cut."""
_TILES: Final = 60
_KIND_WORDS: Final = {
    "write": "rows written",
    "change": "rows changed",
    "upkeep": "upkeep",
    "definition": "definition",
}


class Cell(NamedTuple):
    """What a cell shows, and what it is sorted and exported by."""

    text: str
    value: Any
    more: str = ""
    """HTML behind the text, made here."""


def page(found: Mapping[str, Any], made: str) -> str:
    """The page.

    Args:
        found: what `facts` has gathered, without secrets.
        made: when, as text.
    """
    style, script = (
        resources.files("lakelog.cli.report").joinpath(name).read_text("utf-8")
        for name in ("report.css", "report.js")
    )
    parts = [part for part in _sections(found) if part[2]]
    links = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in parts)
    body = "".join(
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{title}</h2>{html}'
        "</section>"
        for name, title, html in parts
    )
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = text_of(found["table"], _CELL)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} - lakelog report</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#top">Skip to the report</a><header><h1>{title}</h1>'
        f'<p class="dim">{_subtitle(found)}</p><nav aria-label="Sections"><ul>{links}</ul></nav>'
        f'</header><main id="top">{body}</main><footer><p>Made by lakelog, {text_of(made)}. '
        "All times are UTC. The page asks no server for anything.</p></footer>"
        f"<script>{script}</script></body></html>\n"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _subtitle(found: Mapping[str, Any]) -> str:
    what = found.get("what")
    if what is None:
        return "The newest version can't be read."
    description = what["description"] or what["name"] or ""
    return f"Version {what['version']:,}, {text_of(_time(what['timestamp']).text)}. " + text_of(
        description, _CELL
    )


def _sections(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    yield "summary", "Summary", _summary(found)
    yield "advice", "What to do", _advice(found)
    yield "history", "Versions", _history(found["history"])
    yield "files", "Files", _files(found)
    yield "partitions", "Partitions", _partitions(found.get("files") or {})
    yield "columns", "Columns", _columns(found.get("columns"))
    yield "log", "The log", _log(found)
    yield "contention", "Contention", _contention(found.get("contention"))
    yield "features", "Features and properties", _features(found.get("what"))
    yield "storage", "Storage", _storage(found["doctor"])


def _summary(found: Mapping[str, Any]) -> str:
    troubles = "".join(
        f'<p class="trouble">{text_of(each, _CELL)}</p>' for each in found["troubles"]
    )
    files, what = found.get("files"), found.get("what")
    if files is None or what is None:
        return troubles
    rows = files["rows"]
    known = "?" if rows is None else f"{rows:,}"
    if files["files_without_row_count"] and rows is not None:
        known += f" in {count_text(files['files'] - files['files_without_row_count'], 'file')}"
    pairs = [
        ("Rows", known),
        ("Size", bytes_text(files["bytes"])),
        ("Files", f"{files['files']:,}"),
        ("Versions left", f"{found['history']['versions']:,}"),
        ("Partitioned by", ", ".join(what["partition_columns"]) or "nothing"),
        ("Created", _time(what["created"]).text or "unknown"),
        ("Commits are safe by", what["store"]["class"].rpartition(".")[2]),
        ("Doctor", found["doctor"]["verdict"].replace("-", " ")),
    ]
    return troubles + _facts(pairs)


def _facts(pairs: Sequence[tuple[str, Any]], style: str = "facts") -> str:
    items = "".join(
        f"<div><dt>{text_of(name)}</dt><dd>{text_of(value, 120)}</dd></div>"
        for name, value in pairs
    )
    return f'<dl class="{style}">{items}</dl>'


def _advice(found: Mapping[str, Any]) -> str:
    steps = found["advice"]
    if not steps:
        return "<p>Nothing: no step would save anything worth it.</p>"
    items = "".join(
        f"<li>{text_of(each['what'], _CELL)} <span class='dim'>Saves {text_of(each['saves'], 200)}."
        f"</span><br><code>{text_of(each['command'], 2000)}</code></li>"
        for each in steps
    )
    return f'<ol class="advice">{items}</ol>'


def _history(found: Mapping[str, Any]) -> str:
    if not found["versions"]:
        return "<p>No commit is left in the log.</p>"
    buckets, grown = found["by_time"], found["growth"]
    html = _figure(
        f"Commits over time, {count_text(found['versions'], 'version')}",
        bars(
            "Commits over time by kind",
            [_day(each["from"]) for each in buckets],
            [
                Series(_KIND_WORDS[kind], f"c{at}", [each[kind] for each in buckets])
                for at, kind in enumerate(KINDS, 1)
            ],
            _plain,
        ),
        "commits-over-time",
        ["From", *(_KIND_WORDS[kind] for kind in KINDS)],
        [[_time(each["from"]), *(_count(each[kind]) for kind in KINDS)] for each in buckets],
    )
    if grown:
        html += '<div class="pair">' + "".join(
            _grown(grown, *each)
            for each in (
                ("Rows", "rows", "c1", _plain, 1),
                ("Bytes", "bytes", "c2", _size, 1024),
                ("Files", "files", "c3", _plain, 1),
            )
        )
        html += "</div>"
    return html + _versions(found)


def _grown(
    grown: Sequence[Mapping[str, Any]], title: str, name: str, style: str, number: Any, unit: int
) -> str:
    labels = [f"version {each['version']:,}, {_day(each['time'])}" for each in grown]
    values = [each[name] for each in grown]
    unknown = sum(value is None for value in values)
    caption = f"{title} after each version"
    if unknown:
        caption += f" (unknown for {count_text(unknown, 'version')})"
    return _figure(
        caption,
        lines(caption, labels, Series(title, style, values), number, unit),
        f"growth-{name}",
        ["Version", "Time", title],
        [
            [_count(each["version"]), _time(each["time"]), _amount(each[name], number)]
            for each in grown
        ],
    )


def _versions(found: Mapping[str, Any]) -> str:
    rows = [
        [
            _count(each["version"]),
            _time(each["time"]),
            each["operation"] or "",
            each["effect"],
            _count(each["files_added"]),
            _count(each["files_removed"]),
            _amount(each["duration_ms"], lambda ms: f"{ms:,} ms"),
            ", ".join(filter(None, (each["user"], each["engine"]))),
            each["parameters"],
            each["note"] or "",
        ]
        for each in found["list"]
    ]
    columns = ["Version", "Time", "Operation", "Effect", "Files added", "Files removed"]
    columns += ["Took", "By", "Parameters", "Note"]
    more = found["versions"] - len(rows)
    caption = f"The newest {count_text(len(rows), 'version')}"
    if more:
        caption += f"; {count_text(more, 'older version')}: lakelog history --all"
    return _table("versions", caption, columns, rows)


def _files(found: Mapping[str, Any]) -> str:
    files = found.get("files")
    if files is None:
        return ""
    sizes = files["sizes"]
    labels = [_range(each) for each in sizes]
    plan = found.get("optimize")
    text = f"{count_text(files['small'], 'file')} below {bytes_text(files['small_below'])}"
    if plan is not None:
        text += (
            f"; OPTIMIZE would put {count_text(plan['files'], 'file')} "
            f"({bytes_text(plan['bytes'])}) together, into about {plan['groups']:,}"
            if plan["files"]
            else "; OPTIMIZE would rewrite none"
        )
    if files["deleted_rows"]:
        text += (
            f". {count_text(files['deleted_rows'], 'deleted row')} in "
            f"{count_text(files['files_with_deleted_rows'], 'file')} are skipped by vectors"
        )
    shown = [Series("files", "c1", [each["files"] for each in sizes])]
    return f"<p>{text_of(text, 400)}.</p>" + _figure(
        "Sizes of files",
        bars("Sizes of files", labels, shown, _plain),
        "file-sizes",
        ["Size", "Files", "Bytes"],
        [
            [label, _count(each["files"]), _amount(each["bytes"], _size)]
            for label, each in zip(labels, sizes, strict=True)
        ],
        opened=True,
    )


def _range(each: Mapping[str, Any]) -> str:
    if each["below"] is None:
        return f"{bytes_text(each['from'])} or more"
    if not each["from"]:
        return f"below {bytes_text(each['below'])}"
    low, high = bytes_text(each["from"]).split(" "), bytes_text(each["below"]).split(" ")
    return f"{' '.join(low[: 1 + (low[1] != high[1])])}\N{EN DASH}{' '.join(high)}"


def _partitions(files: Mapping[str, Any]) -> str:
    parts = files.get("partitions")
    if not parts:
        return ""
    names = files["partition_columns"]
    count, whole = files["partition_count"], files["bytes"]
    tiles = [
        Tile(
            _partition_name(each),
            each["bytes"],
            f"{bytes_text(each['bytes'])}, {count_text(each['files'], 'file')}",
        )
        for each in parts[:_TILES]
        if each["bytes"]
    ]
    rest = whole - sum(tile.size for tile in tiles)
    if rest > 0 and count > len(tiles):
        tiles.append(Tile(f"{count - len(tiles):,} others", rest, bytes_text(int(rest))))
    skew = files["largest_to_median"]
    text = count_text(count, "partition")
    if skew is not None:
        text += f"; the largest has {skew:,.1f} times the bytes of the median one"
    rows = [
        [
            *("null" if value is None else value for value in each["partition_values"].values()),
            _count(each["files"]),
            _amount(each["bytes"], _size),
            _amount(each["rows"], _plain),
            _count(each["small_files"]),
            Cell(
                f"{each['bytes'] / whole:.1%}" if whole else "",
                each["bytes"] / whole if whole else 0,
                share_bar(each["bytes"] / whole) if whole else "",
            ),
        ]
        for each in parts
    ]
    caption = f"The largest {len(parts):,} of {count_text(count, 'partition')}"
    columns = [*names, "Files", "Size", "Rows", "Small files", "Share of bytes"]
    return (
        f"<p>{text_of(text, 300)}.</p><figure><figcaption>Bytes by partition</figcaption>"
        f"{treemap('Bytes by partition', sorted(tiles, key=lambda tile: -tile.size))}</figure>"
        + _table("partition-table", caption, columns, rows, numbers=len(names))
    )


def _partition_name(each: Mapping[str, Any]) -> str:
    return ", ".join(
        "null" if value is None else str(value) for value in each["partition_values"].values()
    )


def _columns(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    rows = []
    for each in found["list"]:
        nulls, overlap = each.get("null_share"), each.get("overlap")
        rows.append(
            [
                each["column"],
                each["type"],
                "partition column" if each["partition"] else "" if each["nullable"] else "not null",
                each.get("min", ""),
                each.get("max", ""),
                _share(nulls),
                _share(overlap),
                _amount(each.get("files_with_bounds"), _plain),
            ]
        )
    caption = f"From the statistics of {count_text(found['files_looked_at'], 'file')}"
    if found["left_out"]:
        caption += f"; {count_text(found['left_out'], 'more column')} left out"
    columns = ["Column", "Type", "Rule", "Minimum", "Maximum", "Nulls", "Opened by a lookup"]
    return (
        "<p>“Opened by a lookup” is the share of files whose range holds a value of the column: "
        "the lower, the better a filter on it leaves files out. Bounds are the log's, and may be "
        "wider than the values.</p>"
        + _table("column-table", caption, [*columns, "Files with bounds"], rows, numbers=5)
    )


def _share(share: float | None) -> Cell:
    if share is None:
        return Cell("", -1)
    return Cell(f"{share:.1%}", share, share_bar(share))


def _log(found: Mapping[str, Any]) -> str:
    log, freed = found.get("log"), found.get("vacuum")
    if log is None:
        return ""
    last = log["last_checkpoint"]
    pairs = [
        ("Oldest version", "none" if log["earliest_version"] is None else log["earliest_version"]),
        ("Commits", f"{log['commits']:,} ({bytes_text(log['commit_bytes'])})"),
        ("Checkpoints", f"{log['checkpoints']:,} ({bytes_text(log['checkpoint_bytes'])})"),
        ("Last checkpoint", "none" if last is None else f"version {last:,}"),
        (
            "Commits since",
            f"{log['commits_since_checkpoint']:,}, one is due every {log['checkpoint_interval']:,}",
        ),
        ("Checksum of the newest", "there" if log["checksum_of_newest"] else "none"),
        ("Removed files kept in mind", f"{log['tombstones']:,}"),
        ("Log kept for", log["log_retention"]),
        ("Removed files kept for", log["file_retention"]),
        ("Applications remembered", f"{log['applications']:,}"),
    ]
    if freed is not None:
        how = "by the log alone" if freed["mode"].lower() == "lite" else "by the folder"
        pairs.append(
            (
                f"VACUUM would free, {how}",
                f"{count_text(freed['files'], 'file')} ({bytes_text(freed['bytes'])})",
            )
        )
    return _facts(pairs)


def _contention(found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    span = f", {found['from']} to {found['to']}" if found["from"] else ""
    text = (
        f"{count_text(found['events'], 'commit event')}{span}: "
        f"{count_text(found['commits'], 'commit')}, {found['lost_commits']:,} lost."
    )
    jobs = [
        [
            each["job"],
            *(_count(each[name]) for name in ("committed", "attempts", "retries", "lost")),
            _count(each["given_up"]),
            _amount(each["backoff_ms"] + each["lock_wait_ms"], lambda ms: f"{ms / 1000:,.1f} s"),
        ]
        for each in found["jobs"]
    ]
    html = f"<p>{text_of(text, 300)}</p>" + _table(
        "jobs",
        "Jobs",
        ["Job", "Committed", "Attempts", "Retries", "Lost", "Gave up", "Waited"],
        jobs,
        numbers=1,
    )
    html += _matrix(found["pairs"])
    lost = [
        [
            _time(each["time"]),
            each["job"],
            each["winner"],
            _amount(each["winner_version"], str),
            str(each["condition"]),
            str(each["partition"] or ""),
        ]
        for each in found["lost"]
    ]
    if lost:
        columns = ["Time", "Lost", "Winner", "At version", "Why", "Partition"]
        html += _table("lost", "Commits that were lost", columns, lost)
    return html


def _matrix(pairs: Sequence[Mapping[str, Any]]) -> str:
    """Who lost to whom: losers down, winners across."""
    if not pairs:
        return ""
    losers = list(dict.fromkeys(each["loser"] for each in pairs))
    winners = list(dict.fromkeys(each["winner"] for each in pairs))
    counts = {(each["loser"], each["winner"]): (each["lost"], each["rebased"]) for each in pairs}
    rows = []
    for loser in losers:
        row: list[Any] = [loser]
        for winner in winners:
            lost, rebased = counts.get((loser, winner), (0, 0))
            row.append(Cell(f"{lost:,} lost, {rebased:,} rebased" if lost or rebased else "", lost))
        rows.append(row)
    return _table(
        "who-lost",
        "Who lost to whom: losers down, winners across",
        ["Job", *winners],
        rows,
        numbers=1,
    )


def _features(what: Mapping[str, Any] | None) -> str:
    if what is None:
        return ""
    protocol = what["protocol"]
    rows = [
        [
            each["name"],
            FEATURES.get(each["name"], "lakelog does not know it."),
            "yes" if each["in_use"] else "no",
            each["read"],
            each["write"],
        ]
        for each in protocol["features"]
    ]
    properties = [
        [name, each["value"], "" if each["default"] is None else each["default"], _meaning(name)]
        for name, each in what["properties"].items()
    ]
    text = (
        f"Readers need protocol version {protocol['min_reader_version']}, writers "
        f"{protocol['min_writer_version']}."
    )
    refused = "".join(
        f'<p class="trouble">{text_of(protocol[name], _CELL)}</p>'
        for name in ("cannot_read", "cannot_write")
        if protocol[name]
    )
    html = f"<p>{text}</p>{refused}"
    if rows:
        columns = ["Feature", "What it is", "In use", "lakelog reads", "lakelog writes"]
        html += _table("feature-table", "Features", columns, rows)
    if properties:
        columns = ["Property", "Value", "Delta's default", "What it does"]
        html += _table("property-table", "Properties that are set", columns, properties)
    return html


def _meaning(name: str) -> str:
    if name.startswith("delta.constraints."):
        return "A CHECK that each row must satisfy."
    if name.startswith("delta.feature."):
        return "A feature that the table was asked to have."
    return PROPERTIES.get(name, "" if name.startswith("delta.") else "Of the table's users.")


def _storage(found: Mapping[str, Any]) -> str:
    store, lock = found["store"], found["commit_lock"]
    pairs = []
    if store is not None:
        pairs += [("Store", store["class"]), ("Chosen by", store["reason"])]
    if lock is not None:
        pairs.append(("Commit lock", f"{lock['kind']}: {lock['reason']}"))
    rows = [
        [each["check"], Cell(each["status"], each["status"]), each["summary"], each["remedy"]]
        for each in found["findings"]
    ]
    return _facts(pairs, "facts wide") + _table(
        "findings",
        "What the doctor saw, without writing",
        ["Check", "Status", "What was seen", "What to do"],
        rows,
        statuses=1,
    )


def _figure(
    caption: str,
    picture: str,
    name: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    opened: bool = False,
) -> str:
    return (
        f"<div><figure><figcaption>{text_of(caption, 200)}</figcaption>{picture}</figure>"
        f"<details{' open' if opened else ''}><summary>The numbers</summary>"
        f"{_table(name, caption, columns, rows, filtered=False)}</details></div>"
    )


def _table(
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
        f'<th scope="col"{_class(right[at])}>{text_of(each)}</th>'
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
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text_of(caption, 200)}">'
        f'<table id="{name}" data-sorts><caption>{text_of(caption, 200)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _is_number(cell: Any) -> bool:
    return isinstance(cell, Cell) and isinstance(cell.value, (int, float))


def _class(right: bool) -> str:
    return ' class="n"' if right else ""


def _cell(each: Any, right: bool, status: bool) -> str:
    if not isinstance(each, Cell):
        return f"<td>{text_of(each, _CELL)}</td>"
    if isinstance(each.value, str) and not status:
        return f'<td class="t" data-v="{text_of(each.value)}">{text_of(each.text)}</td>'
    if status:
        return f'<td class="{text_of(each.value)}">{text_of(each.text)}</td>'
    value = f' data-v="{text_of(each.value)}"' if str(each.value) != each.text else ""
    return f"<td{_class(right)}{value}>{text_of(each.text, _CELL)}{each.more}</td>"


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
    return "" if cell.value == -1 and not cell.text else cell.value


def _spreadsheet(value: Any) -> str:
    """A text that no spreadsheet takes for a formula."""
    text = str(value)[:_CELL]
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _count(value: int) -> Cell:
    return Cell(f"{value:,}", value)


def _amount(value: Any, number: Any) -> Cell:
    return Cell("", -1) if value is None else Cell(number(value), value)


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def _size(value: float) -> str:
    return bytes_text(int(value))


def _time(time: str | None) -> Cell:
    """To the second; sorted and exported as it is in full."""
    return Cell((time or "")[:19].replace("T", " "), time or "")


def _day(time: str | None) -> str:
    return (time or "")[:16].replace("T", " ")
