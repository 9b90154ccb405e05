"""`lakelog history <uri>`: the commits of a table, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.output import heading, line, print_json, progress, table
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import (
    all_option,
    limit_option,
    one_line,
    place_and_store,
    refuse_governed,
)
from lakelog.core.engine.shown import effect_text, metric_value, parameters_text, time_text
from lakelog.core.engine.tables import one_call

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.core import HistoryEntry

_LIMIT: Final = 20


@click.command(short_help="The commits of a table, newest first.")
@uri_argument
@conf_options
@limit_option(_LIMIT, "How many versions to show.")
@all_option
@json_option
@one_call()
def command(uri: str, conf: dict[str, str], limit: int, everything: bool, as_json: bool) -> None:
    """Show the commits of the table URI, newest first: when, by whom, with what effect.

    Reads the commits that it shows and no others, so that a long log costs no more than a short
    one. Also works on tables that need features which lakelog does not have.
    """
    from lakelog.core.engine.log import find_segment
    from lakelog.core.engine.tables import read_history

    scrubber = Scrubber(conf)
    with progress() as tell:
        tell("looking for the newest version")
        name, store = place_and_store(uri, conf)
        newest = find_segment(store, name).version
        tell("reading commits")
        entries = read_history(store, name, newest, None if everything else limit)
        # Tables that a catalog governs have these times: of others nothing more is read.
        if any("inCommitTimestamp" in each.commit_info for each in entries):
            refuse_governed(store, name, newest)
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


def entry_facts(entry: HistoryEntry) -> dict[str, Any]:
    """One version as JSON values; `docs/cli.md` documents them."""
    return {
        "version": entry.version,
        "timestamp": time_text(entry.timestamp),
        "operation": entry.operation,
        "parameters": dict(entry.parameters),
        "metrics": {name: metric_value(value) for name, value in entry.metrics.items()},
        "read_version": entry.read_version,
        "isolation_level": entry.isolation_level,
        "blind_append": entry.is_blind_append,
        "user_metadata": entry.user_metadata,
        "engine": entry.engine_info,
        "txn_id": entry.commit_info.get("txnId"),
    }
