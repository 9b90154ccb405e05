"""`lakelog files <uri>`: the live files of a version."""

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
    open_log,
    opened,
    version_options,
)
from lakelog.core.engine.shown import bytes_text, count_text, size_classes, size_range

if TYPE_CHECKING:
    from lakelog.core import Snapshot

_LIMIT: Final = 100


@click.command(short_help="The live files of a version, or a summary of them.")
@uri_argument
@conf_options
@version_options
@click.option(
    "--where",
    "condition",
    metavar="SQL",
    help="Only files that may hold rows that match a condition: \"day >= '2026-01-01'\".",
)
@click.option(
    "--stats",
    "columns",
    metavar="COLUMN",
    multiple=True,
    help="Show a column's minimum, maximum and nulls, as the log has them. May be repeated.",
)
@click.option("--summary", is_flag=True, help="Totals, sizes and partitions instead of files.")
@limit_option(_LIMIT, "How many files, or partitions, to show.")
@all_option
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    version: int | None,
    timestamp: str | None,
    condition: str | None,
    columns: tuple[str, ...],
    summary: bool,
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """List the live files of the table URI, by path, with what the log says of them.

    --where prunes by partition values and statistics, as a read with this filter would: what is
    listed is what would be opened.
    """
    if summary and columns:
        raise click.UsageError("Give --summary or --stats, not both.")
    scrubber = Scrubber(conf)
    with progress() as tell:
        tell("reading the log")
        snapshot = opened(open_log(uri, conf), version, timestamp)
        tell("reading the list of files")
        found = _document(snapshot, condition, columns, summary, None if everything else limit)
    found["table"] = scrubber.text(found["table"])
    if as_json:
        print_json(found)
    else:
        _print(found)


def _document(
    snapshot: Snapshot,
    condition: str | None,
    columns: tuple[str, ...],
    summary: bool,
    limit: int | None,
) -> dict[str, Any]:
    from lakelog.cli.files import file_list

    mapped = file_list.is_mapped(snapshot)
    wanted = [file_list.stats_column(name, snapshot.schema, mapped=mapped) for name in columns]
    files = snapshot.file_table_for(condition)
    found: dict[str, Any] = {
        "table": snapshot.table,
        "version": snapshot.version,
        "where": condition,
        "live_files": snapshot.num_files,
        **file_list.sums(files),
    }
    if not summary:
        return {**found, "list": file_list.shown_rows(snapshot, files, wanted, limit)}
    found["sizes"] = size_classes(files)
    if snapshot.partition_columns:
        partitions = file_list.sums_by_partition(snapshot, files)
        found["partition_count"] = len(partitions)
        found["partitions"] = partitions[:limit]
    return found


def _print(found: dict[str, Any]) -> None:
    heading(f"{found['table']}, version {found['version']}")
    line(_headline(found))
    line()
    if "list" in found:
        _print_files(found)
    else:
        _print_summary(found)


def _headline(found: dict[str, Any]) -> str:
    of = f" of {found['live_files']:,}" if found["where"] else ""
    text = f"{count_text(found['files'], 'file')}{of}, {bytes_text(found['bytes'])}"
    if found["rows"] is not None:
        text += f", {count_text(found['rows'], 'row')}"
    if found["files_without_row_count"]:
        text += f", {count_text(found['files_without_row_count'], 'file')} without a row count"
    return text


def _print_files(found: dict[str, Any]) -> None:
    rows = found["list"]
    if not rows:
        return
    stats = list(rows[0].get("stats", ()))
    partitions = list(rows[0]["partition_values"])
    deleted = any(row["deleted_rows"] for row in rows)
    columns = [*partitions, "Size", "Rows", *(["Deleted"] if deleted else []), "Modified (UTC)"]
    for name in stats:
        columns += [f"min({name})", f"max({name})", f"nulls({name})"]
    cells = [_cells(row, stats, deleted=deleted) for row in rows]
    narrow = ["Modified (UTC)", *(name for name in columns if name.startswith("nulls("))]
    table(
        [*columns, "Path"], cells, whole=("Size", "Rows", "Deleted", "Modified (UTC)"), spare=narrow
    )
    if len(rows) < found["files"]:
        line(f"{count_text(found['files'] - len(rows), 'more file')}: --limit N, or --all.")


def _cells(row: dict[str, Any], stats: list[str], *, deleted: bool) -> list[str]:
    cells = [_value(value) for value in row["partition_values"].values()]
    cells += [bytes_text(row["bytes"]), "?" if row["rows"] is None else f"{row['rows']:,}"]
    if deleted:
        cells.append(f"{row['deleted_rows']:,}")
    cells.append(row["modified"])
    for name in stats:
        cells += [_value(row["stats"][name][kind], "?") for kind in ("min", "max", "nulls")]
    return [*cells, row["path"]]


def _value(value: Any, absent: str = "null") -> str:
    return absent if value is None else one_line(value)


def _print_summary(found: dict[str, Any]) -> None:
    table(
        ("Size of files", "Files", "Total"),
        [
            (size_range(each), f"{each['files']:,}", bytes_text(each["bytes"]))
            for each in found["sizes"]
        ],
    )
    if "partitions" not in found:
        return
    from lakelog.core.engine.shown import SMALL

    heading(count_text(found["partition_count"], "partition"))
    parts = found["partitions"]
    if not parts:
        return
    table(
        (*parts[0]["partition_values"], "Files", "Size", "Rows", f"Below {bytes_text(SMALL)}"),
        [
            (
                *map(_value, each["partition_values"].values()),
                f"{each['files']:,}",
                bytes_text(each["bytes"]),
                "?" if each["rows"] is None else f"{each['rows']:,}",
                f"{each['small_files']:,}",
            )
            for each in parts
        ],
    )
    if len(parts) < found["partition_count"]:
        more = found["partition_count"] - len(parts)
        line(f"{count_text(more, 'smaller partition')}: --limit N, or --all.")
