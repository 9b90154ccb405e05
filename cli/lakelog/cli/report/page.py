"""The report as one HTML page: no network, no library, and every text of the table escaped."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from lakelog.cli.report.elements import (
    CELL,
    Cell,
    amount_cell,
    count_cell,
    data_table,
    day_text,
    fact_list,
    figure,
    number_text,
    size_text,
    time_cell,
)
from lakelog.cli.report.facts import KINDS
from lakelog.cli.report.treemap import Tile, share_bar, treemap
from lakelog.cli.report.words import FEATURES, PROPERTIES
from lakelog.core.engine.shown import (
    Series,
    bars,
    bytes_text,
    count_text,
    html_text,
    lines,
    size_range,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VERSION_COLUMNS: Final = (
    *("Version", "Time", "Operation", "Effect", "Files added", "Files removed"),
    *("Took", "By", "Parameters", "Note"),
)
_TILES: Final = 60
_KIND_WORDS: Final = {
    "write": "rows written",
    "change": "rows changed",
    "upkeep": "upkeep",
    "definition": "definition",
}


class Section(NamedTuple):
    """A part of a page that can be linked to."""

    name: str
    title: str
    html: str


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
    parts = sections(found)
    links = section_links(parts)
    body = section_list(parts)
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    title = html_text(found["table"], CELL)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title} - lakelog report</title><style>{style}</style></head><body>"
        f'<a class="skip" href="#top">Skip to the report</a><header><h1>{title}</h1>'
        f'<p class="dim">{_subtitle(found)}</p><nav aria-label="Sections"><ul>{links}</ul></nav>'
        f'</header><main id="top">{body}</main><footer><p>Made by lakelog, {html_text(made)}. '
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
    return (
        f"Version {what['version']:,}, {html_text(time_cell(what['timestamp']).text)}. "
        + html_text(description, CELL)
    )


def sections(found: Mapping[str, Any]) -> list[Section]:
    """The page's sections, in order; those that have nothing to show are left out.

    Args:
        found: what `facts` has gathered, without secrets.
    """
    return [Section(*each) for each in _all_sections(found) if each[2]]


def section_links(parts: Sequence[Section]) -> str:
    """Links to sections, as items of a list."""
    return "".join(f'<li><a href="#{each.name}">{each.title}</a></li>' for each in parts)


def section_list(parts: Sequence[Section]) -> str:
    """Sections with their headings."""
    return "".join(
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{title}</h2>{html}'
        "</section>"
        for name, title, html in parts
    )


def _all_sections(found: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    yield "summary", "Summary", _summary(found)
    yield "advice", "What to do", _advice(found)
    yield "history", "Versions", _history(found["history"])
    yield "files", "Files", _files(found)
    yield "partitions", "Partitions", _partitions(found.get("files") or {})
    yield "columns", "Columns", _columns(found.get("columns"))
    yield "log", "The log", _log(found)
    yield "contention", "Contention", contention(found.get("contention"))
    yield "features", "Features and properties", _features(found.get("what"))
    yield "storage", "Storage", _storage(found["doctor"])


def _summary(found: Mapping[str, Any]) -> str:
    troubles = "".join(
        f'<p class="trouble">{html_text(each, CELL)}</p>' for each in found["troubles"]
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
        ("Created", time_cell(what["created"]).text or "unknown"),
        ("Commits are safe by", what["store"]["class"].rpartition(".")[2]),
        ("Doctor", found["doctor"]["verdict"].replace("-", " ")),
    ]
    return troubles + fact_list(pairs)


def _advice(found: Mapping[str, Any]) -> str:
    steps = found["advice"]
    if not steps:
        return "<p>Nothing: no step would save anything worth it.</p>"
    items = "".join(
        f"<li>{html_text(each['what'], CELL)} "
        f"<span class='dim'>Saves {html_text(each['saves'], 200)}.</span><br>"
        f"<code>{html_text(each['command'], 2000)}</code></li>"
        for each in steps
    )
    return f'<ol class="advice">{items}</ol>'


def _history(found: Mapping[str, Any]) -> str:
    if not found["versions"]:
        return "<p>No commit is left in the log.</p>"
    buckets, grown = found["by_time"], found["growth"]
    html = figure(
        f"Commits over time, {count_text(found['versions'], 'version')}",
        bars(
            "Commits over time by kind",
            [day_text(each["from"]) for each in buckets],
            [
                Series(_KIND_WORDS[kind], f"c{at}", [each[kind] for each in buckets])
                for at, kind in enumerate(KINDS, 1)
            ],
            number_text,
        ),
        "commits-over-time",
        ["From", *(_KIND_WORDS[kind] for kind in KINDS)],
        [
            [time_cell(each["from"]), *(count_cell(each[kind]) for kind in KINDS)]
            for each in buckets
        ],
    )
    if grown:
        html += '<div class="pair">' + "".join(
            _grown(grown, *each)
            for each in (
                ("Rows", "rows", "c1", number_text, 1),
                ("Bytes", "bytes", "c2", size_text, 1024),
                ("Files", "files", "c3", number_text, 1),
            )
        )
        html += "</div>"
    return html + _versions(found)


def _grown(
    grown: Sequence[Mapping[str, Any]], title: str, name: str, style: str, number: Any, unit: int
) -> str:
    labels = [f"version {each['version']:,}, {day_text(each['time'])}" for each in grown]
    values = [each[name] for each in grown]
    unknown = sum(value is None for value in values)
    caption = f"{title} after each version"
    if unknown:
        caption += f" (unknown for {count_text(unknown, 'version')})"
    return figure(
        caption,
        lines(caption, labels, Series(title, style, values), number, unit),
        f"growth-{name}",
        ["Version", "Time", title],
        [
            [count_cell(each["version"]), time_cell(each["time"]), amount_cell(each[name], number)]
            for each in grown
        ],
    )


def _versions(found: Mapping[str, Any]) -> str:
    listed = found["list"]
    more = found["versions"] - len(listed)
    caption = f"The newest {count_text(len(listed), 'version')}"
    if more:
        caption += f"; {count_text(more, 'older version')}: lakelog history --all"
    return data_table("versions", caption, VERSION_COLUMNS, version_rows(listed))


def version_rows(listed: Sequence[Mapping[str, Any]]) -> list[list[Any]]:
    """The cells of `VERSION_COLUMNS`, of versions as `facts` lists them."""
    return [
        [
            count_cell(each["version"]),
            time_cell(each["time"]),
            each["operation"] or "",
            each["effect"],
            count_cell(each["files_added"]),
            count_cell(each["files_removed"]),
            amount_cell(each["duration_ms"], lambda ms: f"{ms:,} ms"),
            ", ".join(filter(None, (each["user"], each["engine"]))),
            each["parameters"],
            each["note"] or "",
        ]
        for each in listed
    ]


def _files(found: Mapping[str, Any]) -> str:
    files = found.get("files")
    if files is None:
        return ""
    sizes = files["sizes"]
    labels = [size_range(each) for each in sizes]
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
    return f"<p>{html_text(text, 400)}.</p>" + figure(
        "Sizes of files",
        bars("Sizes of files", labels, shown, number_text),
        "file-sizes",
        ["Size", "Files", "Bytes"],
        [
            [label, count_cell(each["files"]), amount_cell(each["bytes"], size_text)]
            for label, each in zip(labels, sizes, strict=True)
        ],
        opened=True,
    )


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
            count_cell(each["files"]),
            amount_cell(each["bytes"], size_text),
            amount_cell(each["rows"], number_text),
            count_cell(each["small_files"]),
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
        f"<p>{html_text(text, 300)}.</p><figure><figcaption>Bytes by partition</figcaption>"
        f"{treemap('Bytes by partition', sorted(tiles, key=lambda tile: -tile.size))}</figure>"
        + data_table("partition-table", caption, columns, rows, numbers=len(names))
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
                amount_cell(each.get("files_with_bounds"), number_text),
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
        + data_table("column-table", caption, [*columns, "Files with bounds"], rows, numbers=5)
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
        (
            "Drafts, under way or left behind",
            f"{log['drafts']:,} ({bytes_text(log['draft_bytes'])})" if log["drafts"] else "none",
        ),
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
    return fact_list(pairs)


def contention(found: Mapping[str, Any] | None) -> str:
    """Who loses commits to whom, by what `conflicts_document` says; nothing for None."""
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
            *(count_cell(each[name]) for name in ("committed", "attempts", "retries", "lost")),
            count_cell(each["given_up"]),
            amount_cell(
                each["backoff_ms"] + each["lock_wait_ms"], lambda ms: f"{ms / 1000:,.1f} s"
            ),
        ]
        for each in found["jobs"]
    ]
    html = f"<p>{html_text(text, 300)}</p>" + data_table(
        "jobs",
        "Jobs",
        ["Job", "Committed", "Attempts", "Retries", "Lost", "Gave up", "Waited"],
        jobs,
        numbers=1,
    )
    html += _matrix(found["pairs"])
    lost = [
        [
            time_cell(each["time"]),
            each["job"],
            each["winner"],
            amount_cell(each["winner_version"], str),
            str(each["condition"]),
            str(each["partition"] or ""),
        ]
        for each in found["lost"]
    ]
    if lost:
        columns = ["Time", "Lost", "Winner", "At version", "Why", "Partition"]
        html += data_table("lost", "Commits that were lost", columns, lost)
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
    return data_table(
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
        f'<p class="trouble">{html_text(protocol[name], CELL)}</p>'
        for name in ("cannot_read", "cannot_write")
        if protocol[name]
    )
    html = f"<p>{text}</p>{refused}"
    if rows:
        columns = ["Feature", "What it is", "In use", "lakelog reads", "lakelog writes"]
        html += data_table("feature-table", "Features", columns, rows)
    if properties:
        columns = ["Property", "Value", "Delta's default", "What it does"]
        html += data_table("property-table", "Properties that are set", columns, properties)
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
    return fact_list(pairs, "facts wide") + data_table(
        "findings",
        "What the doctor saw, without writing",
        ["Check", "Status", "What was seen", "What to do"],
        rows,
        statuses=1,
    )
