"""The pages of one table: overview, history, a version, rows, files, and two versions compared."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from lakelog.cli.describe.description import shown_properties
from lakelog.cli.describe.schema_tree import schema_tree
from lakelog.cli.diff.comparison import comparison
from lakelog.cli.diff.diff_command import FILE_GROUPS, difference, shown_value, sums_text
from lakelog.cli.files import file_list
from lakelog.cli.history import entry_facts
from lakelog.cli.report.elements import (
    Cell,
    amount_cell,
    count_cell,
    data_table,
    fact_list,
    number_text,
    size_text,
    time_cell,
)
from lakelog.cli.report.facts import version_facts
from lakelog.cli.report.growth import Version
from lakelog.cli.report.page import (
    VERSION_COLUMNS,
    section_links,
    section_list,
    sections,
    version_rows,
)
from lakelog.cli.sample.printed_values import json_rows
from lakelog.cli.sample.printed_values import text_of as value_text
from lakelog.cli.table_options import looked_at
from lakelog.cli.ui.fields import number, text
from lakelog.cli.ui.frame import address, field, form, live, trouble, waiting
from lakelog.cli.ui.lake import READING_ERRORS
from lakelog.core.engine.log import list_log
from lakelog.core.engine.shown import bytes_text, count_text, html_text, time_text
from lakelog.core.engine.tables import read_history
from lakelog.core.errors import DeltaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from lakelog.cli.ui.lake import Known, Lake
    from lakelog.core import DeltaLog, HistoryEntry, Progress, Snapshot

_PATIENCE: Final = 2.0
"""Seconds that a page waits for a report, so that small tables come at once."""
_EVERY: Final = 10
_VERSIONS: Final = 50
_FILES: Final = 100
_ROWS: Final = 10
MOST_ROWS: Final = 1_000
_SECONDS: Final = 20.0
"""For a filter to find rows."""


class TablePages:
    """What can be seen of one table."""

    def __init__(self, lake: Lake, table: Known) -> None:
        """Read nothing yet.

        Args:
            lake: holds what was read.
            table: one of its tables.
        """
        self._lake, self._table = lake, table
        self._log: DeltaLog = lake.log(table)
        self._clean = lake.scrubber.data

    def overview(self, _: Mapping[str, str]) -> str:
        """The report, as soon as it is gathered."""
        version = self._lake.newest(self._log)
        gathered = self._lake.report(self._log, version)
        work, found, note = gathered.work, gathered.older, ""
        if work.is_done(_PATIENCE):
            found = work.value()
        else:
            note = waiting(work.doing)
        if found is None:
            return live(note, busy=True)
        parts = sections(found)
        links = f'<nav class="parts" aria-label="Sections"><ul>{section_links(parts)}</ul></nav>'
        return live(note + links + section_list(parts), busy=bool(note), every=_EVERY)

    def history(self, fields: Mapping[str, str]) -> str:
        """Some versions, newest first, two of which can be picked to compare."""
        log, newest = self._log, self._lake.newest(self._log)
        last = number(fields, "before", newest, most=newest)
        first = max(last - _VERSIONS + 1, 0)
        listing = list_log(log.store, log.table, first, last)
        html = _holes(listing.commits, first, last)
        found: list[HistoryEntry] = []
        try:
            found += read_history(log.store, log.table, last, last - first + 1)
        except DeltaError:
            for each in sorted(listing.commits, reverse=True):
                try:
                    found += read_history(log.store, log.table, each, 1)
                except DeltaError as error:
                    html += trouble(self._lake.scrubber.text(str(error)))
        rows = version_rows(self._clean([version_facts(_as_version(each)) for each in found]))
        for at, (row, version) in enumerate(zip(rows, found, strict=True)):
            for name in ("Files added", "Files removed"):
                row[VERSION_COLUMNS.index(name)] = ""  # not looked at
            row[0] = row[0]._replace(link=address(self._table, "version", v=version.version))
            row[:0] = [
                Cell("", -1, _radio(end, version.version, chosen=at == (1 if end == "from" else 0)))
                for end in ("from", "to")
            ]
        caption = f"Versions {first:,} to {last:,} of {newest:,}"
        html += data_table("versions", caption, *_filled(("From", "To", *VERSION_COLUMNS), rows))
        compare = (
            f'<form id="compare" action="{address(self._table, "diff")}">'
            "<button>Compare the two picked</button></form>"
        )
        turn = _turn(
            ("Newer", address(self._table, "history", before=last + _VERSIONS), last < newest),
            ("Older", address(self._table, "history", before=first - 1), first > 0 and rows != []),
        )
        return live(f'{html}<div class="tools">{compare}{turn}</div>', every=_EVERY)

    def version(self, fields: Mapping[str, str]) -> str:
        """The table as it was at a version or time, and the commit that made it so."""
        log = self._log
        newest = self._lake.newest(log)
        at = text(fields, "at")
        wanted = number(fields, "v", newest)
        if at is not None:
            wanted = looked_at(log, None, at).version
        oldest = list_log(log.store, log.table).earliest() or 0
        table, moment = self._table, field("At (UTC)", "at", at, "datetime-local", step=1)
        slider = (
            f'<div class="forms"><form class="tools travel" action="{address(table, "version")}">'
            + field("Version", "v", wanted, "range", min=oldest, max=newest)
            + f'<output aria-hidden="true">{wanted:,}</output><button>Show</button>'
            + f"</form>{form(table, 'version', [moment], 'Show')}</div>"
        )
        turn = _turn(
            ("Oldest", address(table, "version", v=oldest), wanted > oldest),
            ("Previous", address(table, "version", v=wanted - 1), wanted > oldest),
            ("Next", address(table, "version", v=wanted + 1), wanted < newest),
            ("Newest", address(table, "version"), wanted < newest),
        )
        return slider + live(turn + self._state(wanted))

    def rows(self, fields: Mapping[str, str]) -> str:
        """Some rows of a version."""
        version = number(fields, "v", self._lake.newest(self._log))
        where, columns = text(fields, "where"), text(fields, "columns")
        limit = number(fields, "limit", _ROWS, most=MOST_ROWS)
        asked = form(
            self._table,
            "rows",
            [
                field("Version", "v", version, "number", min=0),
                field("Where (SQL)", "where", where, placeholder="day >= '2026-01-01'"),
                field("Columns", "columns", columns, placeholder="all, or a, b"),
                field("Rows", "limit", limit, "number", min=1, max=MOST_ROWS),
            ],
            "Show",
        )
        return asked + self._part(lambda: self._rows(version, limit, where, columns))

    def files(self, fields: Mapping[str, str]) -> str:
        """The live files of a version, page by page."""
        version = number(fields, "v", self._lake.newest(self._log))
        where, start = text(fields, "where"), number(fields, "from", 0)
        asked = form(
            self._table,
            "files",
            [
                field("Version", "v", version, "number", min=0),
                field("Where (SQL)", "where", where, placeholder="day >= '2026-01-01'"),
            ],
            "Show",
        )
        return asked + self._part(lambda: self._files(version, where, start))

    def diff(self, fields: Mapping[str, str]) -> str:
        """What differs between two versions."""
        newest = self._lake.newest(self._log)
        after = number(fields, "to", newest)
        before = number(fields, "from", max(after - 1, 0))
        asked = form(
            self._table,
            "diff",
            [
                field("From version", "from", before, "number", min=0, max=newest),
                field("To version", "to", after, "number", min=0, max=newest),
            ],
            "Compare",
        )
        return asked + self._part(lambda: self._diff(before, after))

    def _part(self, make: Any) -> str:
        """A part of a page, or what is wrong; what was asked for stays in the form above it."""
        try:
            html: str = make()
        except READING_ERRORS as error:
            return trouble(self._lake.scrubber.text(str(error)))
        return html

    def _state(self, version: int) -> str:
        commit = self._part(lambda: self._commit(version))
        try:
            self._lake.snapshot(self._log, version)
        except READING_ERRORS as error:
            return trouble(self._lake.scrubber.text(str(error))) + commit
        html = self._part(lambda: self._held(version)) + commit
        return f"{html}<h2>Rows</h2>{self._part(lambda: self._rows(version, _ROWS, None, None))}"

    def _held(self, version: int) -> str:
        snapshot = self._lake.snapshot(self._log, version)
        sums = file_list.sums(snapshot.file_table)
        rows = "?" if sums["rows"] is None else f"{sums['rows']:,}"
        if sums["files_without_row_count"] and sums["rows"] is not None:
            rows += " or more"
        columns = self._clean(schema_tree(snapshot.schema, snapshot.partition_columns))
        properties = self._clean(shown_properties(snapshot.metadata))
        html = fact_list(
            [
                ("Version", f"{version:,}"),
                ("Time", time_cell(time_text(snapshot.timestamp)).text),
                ("Rows", rows),
                ("Size", bytes_text(sums["bytes"])),
                ("Files", f"{sums['files']:,}"),
                ("Columns", f"{len(snapshot.schema):,}"),
            ]
        )
        html += data_table(
            "columns", "Columns", ("Column", "Type", "Rule", "Remark"), columns, filtered=False
        )
        if properties:
            html += data_table(
                "properties",
                "Properties that were set",
                ("Property", "Value"),
                [[name, each["value"]] for name, each in properties.items()],
            )
        return html

    def _commit(self, version: int) -> str:
        found = read_history(self._log.store, self._log.table, version, 1)
        entry = next((each for each in found if each.version == version), None)
        if entry is None:
            return trouble(f"There is no commit of version {version:,} in the log.")
        known = self._clean(entry_facts(entry))
        pairs = [(name.replace("_", " "), value) for name, value in known.items()]
        rows = [
            [f"{name}: {inner}" if inner else name, shown]
            for name, value in pairs
            for inner, shown in (value.items() if isinstance(value, dict) else (("", value),))
            if shown not in (None, "")
        ]
        links = _turn(
            (
                "What it changed",
                address(self._table, "diff", **{"from": version - 1, "to": version}),
                version > 0,
            ),
            ("Rows", address(self._table, "rows", v=version), True),
            ("Files", address(self._table, "files", v=version), True),
        )
        return (
            "<h2>The commit</h2>"
            + data_table("commit", f"Version {version:,}", ("Field", "Value"), rows, filtered=False)
            + links
        )

    def _rows(self, version: int, limit: int, where: str | None, columns: str | None) -> str:
        names = None if columns is None else [each.strip() for each in columns.split(",")]
        snapshot = self._lake.snapshot(self._log, version)
        found, is_whole = _some_rows(snapshot, limit, where, names)
        note = (
            ""
            if is_whole
            else trouble(
                f"Only {_SECONDS:.0f} seconds were searched: there may be more. Narrow the filter "
                "to partitions or columns with statistics."
            )
        )
        if not found.num_rows:
            return note + '<p class="empty">No rows.</p>'
        cells = [[_value(each) for each in row.values()] for row in json_rows(found)]
        caption = f"{count_text(found.num_rows, 'row')} of version {version:,}"
        return note + data_table("rows", caption, found.column_names, cells)

    def _files(self, version: int, where: str | None, start: int) -> str:
        snapshot = self._lake.snapshot(self._log, version)
        files = snapshot.file_table_for(where)
        sums = file_list.sums(files)
        shown = self._clean(file_list.shown_rows(snapshot, files, (), _FILES, start))
        of = f" of {snapshot.num_files:,}" if where else ""
        text_ = f"{count_text(sums['files'], 'file')}{of}, {bytes_text(sums['bytes'])}"
        if sums["rows"] is not None:
            text_ += f", {count_text(sums['rows'], 'row')}"
        if not shown:
            return f'<p class="empty">{html_text(text_)}.</p>'
        names = list(shown[0]["partition_values"])
        rows = [
            [
                *("null" if each is None else each for each in file["partition_values"].values()),
                amount_cell(file["bytes"], size_text),
                amount_cell(file["rows"], number_text),
                count_cell(file["deleted_rows"]),
                time_cell(file["modified"]),
                file["path"],
            ]
            for file in shown
        ]
        columns = (*names, "Size", "Rows", "Deleted rows", "Modified", "Path")
        caption = f"Files {start + 1:,} to {start + len(shown):,} of {len(files):,}, by path"
        given = {"v": version, "where": where}
        turn = _turn(
            (
                "Previous",
                address(self._table, "files", **given, **{"from": max(start - _FILES, 0)}),
                start > 0,
            ),
            (
                "Next",
                address(self._table, "files", **given, **{"from": start + _FILES}),
                start + _FILES < len(files),
            ),
        )
        return f"<p>{html_text(text_, 300)}.</p>{data_table('files', caption, columns, rows)}{turn}"

    def _diff(self, before: int, after: int) -> str:
        earlier = self._lake.snapshot(self._log, min(before, after))
        later = self._lake.snapshot(self._log, max(before, after), earlier)
        old, new = (earlier, later) if before < after else (later, earlier)
        found = self._clean(comparison(old, new))
        ends = (f"Version {before:,}", f"Version {after:,}")
        numbers = [
            ["time (UTC)", found["from"]["timestamp"], found["to"]["timestamp"], ""],
            *(difference(name, found["from"], found["to"]) for name in ("files", "rows", "bytes")),
        ]
        html = data_table(
            "numbers", "In numbers", ("What", *ends, "Difference"), numbers, filtered=False
        )
        groups = [["in both", count_text(found["files"]["in_both"], "file")]]
        groups += [[name, sums_text(found["files"][key])] for key, name in FILE_GROUPS.items()]
        html += data_table("changed-files", "Files", ("Group", "How many"), groups, filtered=False)
        if found["columns"]:
            columns = [
                [each["column"], each["change"], *map(shown_value, (each["before"], each["after"]))]
                for each in found["columns"]
            ]
            names = ("Column", "Change", "Before", "After")
            html += data_table("changed-columns", "Columns", names, columns)
        others = {name: found[name] for name in ("partition_columns", "name", "description")}
        for name, caption, pairs in (
            ("changed-properties", "Properties", found["properties"]),
            ("changed-table", "Table", {key: pair for key, pair in others.items() if pair}),
            ("changed-protocol", "Protocol", _protocol(found["protocol"])),
            ("changed-domains", "Domain metadata", found["domains"]),
            ("changed-applications", "Progress of applications", found["transactions"]),
        ):
            html += _pairs(name, caption, pairs)
        return html


def _pairs(name: str, caption: str, pairs: Mapping[str, Any]) -> str:
    if not pairs:
        return ""
    rows = [
        [key.replace("_", " "), shown_value(each["before"]), shown_value(each["after"])]
        for key, each in pairs.items()
    ]
    return data_table(name, caption, ("What", "Before", "After"), rows, filtered=False)


def _protocol(found: Mapping[str, Any] | None) -> dict[str, Any]:
    if found is None:
        return {}
    pairs: dict[str, Any] = {
        name: {"before": found["before"][name], "after": found["after"][name]}
        for name in ("min_reader_version", "min_writer_version")
    }
    pairs["features added"] = {"before": None, "after": found["features_added"]}
    pairs["features dropped"] = {"before": found["features_dropped"], "after": None}
    return pairs


class _TimeIsUpError(Exception):
    """A filter was searched for as long as a page may take."""


def _some_rows(
    snapshot: Snapshot, limit: int, where: str | None, columns: Sequence[str] | None
) -> tuple[pa.Table, bool]:
    """Rows, and whether there was time to look for all that were asked for."""
    import pyarrow

    from lakelog.core import Scan

    ends = time.monotonic() + _SECONDS
    batches, is_whole = list[pyarrow.RecordBatch](), True

    def watch(read: Progress) -> None:
        # Rows that were just found are still to come.
        if time.monotonic() > ends and read.done == sum(each.num_rows for each in batches):
            raise _TimeIsUpError

    scan = Scan(snapshot, columns, where, limit=limit, progress=watch)
    try:
        for batch in scan.to_batches():
            batches.append(batch)
            if time.monotonic() > ends:
                raise _TimeIsUpError
    except _TimeIsUpError:
        is_whole = False
    return pyarrow.Table.from_batches(batches, scan.schema), is_whole


def _filled(
    columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[list[str], list[list[Any]]]:
    """Columns and rows without the columns in which no row has anything."""
    kept = [
        at for at in range(len(columns)) if any(row[at] not in ("", Cell("", -1)) for row in rows)
    ]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _value(value: Any) -> Any:
    if value is None:
        return Cell("null", -1)
    shown = value_text(value)
    number_like = isinstance(value, (int, float)) and not isinstance(value, bool)
    return Cell(shown, value) if number_like else shown


def _as_version(entry: HistoryEntry) -> Version:
    """A version by its commitInfo alone: the files of 50 commits may be millions."""
    user = entry.commit_info.get("userName")
    return Version(
        entry.version,
        entry.timestamp,
        entry.operation,
        entry.parameters,
        entry.metrics,
        entry.engine_info,
        user if isinstance(user, str) else None,
        entry.user_metadata,
    )


def _holes(found: Iterable[int], first: int, last: int) -> str:
    there = set(found)
    gaps = sorted(set(range(min(there, default=last), last + 1)) - there)
    html = ""
    if gaps:
        shown = ", ".join(f"{each:,}" for each in gaps)
        html = trouble(f"Missing from the log, though later commits are there: version {shown}.")
    if min(there, default=last) > first:
        html += "<p>Older commits were cleaned up.</p>"
    return html


def _radio(end: str, version: int, *, chosen: bool) -> str:
    checked = " checked" if chosen else ""
    return (
        f'<input type="radio" form="compare" name="{end}" value="{version}"{checked} '
        f'aria-label="Compare {end} version {version}">'
    )


def _turn(*links: tuple[str, str, bool]) -> str:
    shown = "".join(f'<li><a href="{path}">{name}</a></li>' for name, path, here in links if here)
    return f'<ul class="turn">{shown}</ul>' if shown else ""
