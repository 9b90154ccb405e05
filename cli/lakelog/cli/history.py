"""`lakelog history <uri>`: the commits of a table, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.output import heading, line, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import (
    all_option,
    bytes_text,
    count_text,
    limit_option,
    one_line,
    table_uri,
    time_text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core import HistoryEntry

_LIMIT: Final = 20
_SAYS_NOTHING: Final = (None, False, "", "[]", "{}", "null", "false")
_COUNTS: Final = (
    ("written", "row", ("numOutputRows", "numAddedRows")),
    ("inserted", "row", ("numTargetRowsInserted",)),
    ("updated", "row", ("numUpdatedRows", "numTargetRowsUpdated")),
    ("deleted", "row", ("numDeletedRows", "numTargetRowsDeleted")),
    ("copied", "row", ("numCopiedRows", "numTargetRowsCopied")),
    ("added", "file", ("numFiles", "numAddedFiles", "numTargetFilesAdded", "numConvertedFiles")),
    ("removed", "file", ("numRemovedFiles", "numTargetFilesRemoved", "numDeletedFiles")),
    ("added", "byte", ("numOutputBytes", "numAddedBytes", "numTargetBytesAdded")),
    ("removed", "byte", ("numRemovedBytes", "numTargetBytesRemoved")),
)
"""What is shown of an operation's metrics, by the names that Delta's operations give them."""


@click.command(short_help="The commits of a table, newest first.")
@uri_argument
@conf_options
@limit_option(_LIMIT, "How many versions to show.")
@all_option
@json_option
def command(uri: str, conf: dict[str, str], limit: int, everything: bool, as_json: bool) -> None:
    """Show the commits of the table URI, newest first: when, by whom, with what effect.

    Reads the commits that it shows and no others, so that a long log costs no more than a short
    one. Also works on tables that need features which lakelog does not have.
    """
    from lakelog.core.engine.log import find_segment
    from lakelog.core.engine.tables import read_history
    from lakelog.logstores import log_store_for

    name, scrubber = table_uri(uri), Scrubber(conf)
    with progress() as tell:
        tell("looking for the newest version")
        store = log_store_for(name, conf)
        newest = find_segment(store, name).version
        tell("reading commits")
        entries = read_history(store, name, newest, None if everything else limit)
    if as_json:
        print_json(
            scrubber.data(
                {
                    "table": name,
                    "newest_version": newest,
                    "entries": [entry_facts(each) for each in entries],
                }
            )
        )
        return
    heading(f"{scrubber.text(name)}, version {newest}")
    _print(entries, scrubber)
    if entries and not everything and len(entries) == limit and entries[-1].version:
        line(f"Older versions: --limit {2 * limit}, or --all.")


def _print(entries: Sequence[HistoryEntry], scrubber: Scrubber) -> None:
    noted = any(each.user_metadata for each in entries)
    columns = ["Version", "Time (UTC)", "Operation", "What", "Isolation", "Engine"]
    rows = []
    for each in entries:
        row = [
            str(each.version),
            time_text(each.timestamp),
            each.operation or "",
            "; ".join(filter(None, (parameters_text(each.parameters), effect_text(each.metrics)))),
            _isolation(each),
            each.engine_info or "",
        ]
        rows.append(
            [scrubber.text(one_line(c)) for c in (*row, each.user_metadata or "")[: 6 + noted]]
        )
    table(
        [*columns, "Note"] if noted else columns,
        rows,
        whole=("Version", "Time (UTC)", "Operation"),
        spare=[*(["Note"] if noted else []), "Isolation", "Engine"],
    )


def _isolation(entry: HistoryEntry) -> str:
    kind = "blind append" if entry.is_blind_append else ""
    return ", ".join(part for part in (entry.isolation_level, kind) if part)


def parameters_text(parameters: Mapping[str, Any]) -> str:
    """The parameters worth showing: neither empty nor false."""
    return ", ".join(
        f"{name}={value}" for name, value in parameters.items() if value not in _SAYS_NOTHING
    )


def effect_text(metrics: Mapping[str, Any]) -> str:
    """Rows, files and bytes: `10 rows written, 1 file added, 2.0 KiB added`."""
    known = {_camel(name): value for name, value in metrics.items()}
    if "numTargetRowsInserted" in known:
        # A MERGE counts its inserts and updates, and then the total of both.
        known.pop("numOutputRows", None)
    parts = []
    for verb, unit, names in _COUNTS:
        count = next((found for found in map(known.get, names) if found is not None), None)
        number = _number(count)
        if isinstance(number, int) and number:
            text = bytes_text(number) if unit == "byte" else count_text(number, unit)
            parts.append(f"{text} {verb}")
    return ", ".join(parts)


def _camel(name: str) -> str:
    """delta-rs writes `num_added_files` for `numAddedFiles`."""
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def _number(value: Any) -> Any:
    """Metrics are texts in the log."""
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        return int(value)
    return value


def entry_facts(entry: HistoryEntry) -> dict[str, Any]:
    """One version as JSON values; `docs/cli.md` documents them."""
    return {
        "version": entry.version,
        "timestamp": time_text(entry.timestamp),
        "operation": entry.operation,
        "parameters": dict(entry.parameters),
        "metrics": {name: _number(value) for name, value in entry.metrics.items()},
        "read_version": entry.read_version,
        "isolation_level": entry.isolation_level,
        "blind_append": entry.is_blind_append,
        "user_metadata": entry.user_metadata,
        "engine": entry.engine_info,
        "txn_id": entry.commit_info.get("txnId"),
    }
