"""`lakelog diff <uri> <from> [<to>]`: what differs between two versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.output import facts, heading, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import looked_at, one_line, open_log, whole_number
from lakelog.core.engine.shown import bytes_text, count_text
from lakelog.core.engine.tables import one_call

if TYPE_CHECKING:
    from lakelog.core import DeltaLog, Snapshot

FILE_GROUPS: Final = {
    "added": "added",
    "removed": "removed",
    "with_other_deletion_vector": "other deletion vector",
}
"""What happened to files, as `comparison` and as people name it."""


@click.command(short_help="What differs between two versions of a table.")
@uri_argument
@click.argument("before", metavar="FROM")
@click.argument("after", metavar="[TO]", required=False)
@conf_options
@json_option
@one_call()
def command(uri: str, before: str, after: str | None, conf: dict[str, str], as_json: bool) -> None:
    """Compare two versions of the table URI: columns, files, rows, properties, protocol.

    FROM and TO are versions, or times (ISO 8601, UTC without a zone), which mean the newest version
    at or before them. Without TO it is the newest version. No data file is opened; rows are counted
    by statistics.
    """
    scrubber = Scrubber(conf)
    with progress() as tell:
        tell("reading the log")
        log = open_log(uri, conf)
        old, new = _version(log, before), _version(log, after)
        tell("comparing the files")
        from lakelog.cli.diff.comparison import comparison

        found = scrubber.data(comparison(old, new))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _version(log: DeltaLog, text: str | None) -> Snapshot:
    if text is None:
        return looked_at(log, None, None)
    number = whole_number(text)
    if number is None and text.isdecimal():
        raise click.UsageError(f"No version has so many digits: {text[:50]!r}.")
    return looked_at(log, number, text if number is None else None)


def _print(found: dict[str, Any]) -> None:
    before, after = found["from"], found["to"]
    heading(f"{found['table']}, version {before['version']} to version {after['version']}")
    table(
        ("", f"Version {before['version']}", f"Version {after['version']}", "Difference"),
        [
            ("time (UTC)", before["timestamp"], after["timestamp"], ""),
            *(difference(name, before, after) for name in ("files", "rows", "bytes")),
        ],
    )
    facts([("files in both", f"{found['files']['in_both']:,}")])
    facts([(name, sums_text(found["files"][key])) for key, name in FILE_GROUPS.items()])
    if found["columns"]:
        heading("Columns")
        table(
            ("Column", "Change", "Before", "After"),
            [
                (
                    each["column"],
                    each["change"],
                    shown_value(each["before"]),
                    shown_value(each["after"]),
                )
                for each in found["columns"]
            ],
        )
    _print_pairs("Properties", found["properties"])
    others = {name: found[name] for name in ("partition_columns", "name", "description")}
    _print_pairs("Table", {name: pair for name, pair in others.items() if pair})
    _print_protocol(found["protocol"])
    _print_pairs("Domain metadata", found["domains"])
    _print_pairs("Progress of applications", found["transactions"])


def difference(name: str, before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    """A number of two versions: its name, both values, and what lies between them."""
    shown = bytes_text if name == "bytes" else "{:,}".format
    old, new = before[name], after[name]
    if name == "rows" and (before[_UNKNOWN] or after[_UNKNOWN]):
        return (name, *(_at_least(each) for each in (before, after)), "?")
    sign = "+" if new > old else "-" if new < old else ""
    return (name, shown(old), shown(new), f"{sign}{shown(abs(new - old))}")


def _at_least(sums: dict[str, Any]) -> str:
    if sums["rows"] is None:
        return "?"
    return f"{sums['rows']:,}" + (" or more" if sums[_UNKNOWN] else "")


_UNKNOWN: Final = "files_without_row_count"


def sums_text(sums: dict[str, Any]) -> str:
    """`2 files, 1.5 MiB, 10 rows`."""
    text = f"{count_text(sums['files'], 'file')}, {bytes_text(sums['bytes'])}"
    if not sums["files"]:
        return "none"
    if sums["rows"] is not None:
        text += f", {count_text(sums['rows'], 'row')}"
    if sums[_UNKNOWN]:
        text += f", {count_text(sums[_UNKNOWN], 'file')} without a row count"
    return text


def shown_value(value: Any) -> str:
    """A value before or after, in one line."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value)) or "none"
    return one_line(value)


def _print_pairs(title: str, pairs: dict[str, Any]) -> None:
    if pairs:
        heading(title)
        rows = [
            (name, shown_value(each["before"]), shown_value(each["after"]))
            for name, each in pairs.items()
        ]
        table(("", "Before", "After"), rows)


def _print_protocol(protocol: dict[str, Any] | None) -> None:
    if protocol is None:
        return
    heading("Protocol")
    facts(
        [
            (
                when,
                f"reader {protocol[when]['min_reader_version']}, "
                f"writer {protocol[when]['min_writer_version']}",
            )
            for when in ("before", "after")
        ]
        + [
            (f"features {what}", ", ".join(protocol[f"features_{what}"]))
            for what in ("added", "dropped")
            if protocol[f"features_{what}"]
        ]
    )
