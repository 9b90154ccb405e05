"""`lakelog optimize <uri>`: put small files together, rows in order, deleted rows out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.output import facts, heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log
from lakelog.core.engine.shown import bytes_text, count_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core import OptimizeProgress


@click.command(short_help="Put small files together, or rows in order.")
@uri_argument
@conf_options
@click.option("--where", metavar="SQL", help="A condition on partition columns alone.")
@click.option(
    "--z-order-by",
    metavar="COLUMN",
    multiple=True,
    help="Order the rows of each partition by this column. May be repeated.",
)
@click.option("--full", is_flag=True, help="Of a clustered table, order all rows again.")
@click.option("--purge", is_flag=True, help="Rewrite files with deleted rows or dropped columns.")
@click.option("--target-size", metavar="SIZE", help="Size of a file, as 256m.")
@click.option("--batch-size", metavar="SIZE", help="Commit after each SIZE of rewritten files.")
@click.option("--dry-run", is_flag=True, help="Show what would be rewritten; write nothing.")
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    where: str | None,
    z_order_by: tuple[str, ...],
    full: bool,
    purge: bool,
    target_size: str | None,
    batch_size: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Put the rows of the table URI into fewer, larger or better ordered files.

    The table's rows stay the same. Without options, files below the target size are put together,
    and files with many deleted rows are rewritten; of a clustered table, rows that are not in
    order yet are ordered. Writers at the same time are not disturbed. A run that is stopped leaves
    the batches that it has committed; the next one does the rest.
    """
    if purge and (z_order_by or full or target_size):
        raise click.UsageError("--purge goes with --where, --batch-size and --dry-run alone.")
    scrubber = Scrubber(conf)
    sizes = {"target_size": target_size, "batch_size": batch_size}
    with progress() as tell:
        found = scrubber.data(
            _optimized(
                uri, conf, where, list(z_order_by), full, purge, _bytes(sizes), dry_run, tell
            )
        )
    if as_json:
        print_json(found)
    else:
        _print(found)


def _bytes(sizes: dict[str, str | None]) -> dict[str, int]:
    """The sizes that were given, in bytes."""
    from lakelog.core.engine.write import byte_size

    return {
        name: byte_size(text, "--" + name.replace("_", "-"))
        for name, text in sizes.items()
        if text is not None
    }


def _optimized(
    uri: str,
    conf: dict[str, str],
    where: str | None,
    z_order_by: list[str],
    full: bool,
    purge: bool,
    sizes: dict[str, int],
    dry_run: bool,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    from lakelog import core

    log = open_log(uri, conf)
    tell("reading the log")

    def report(each: OptimizeProgress) -> None:
        done, size = bytes_text(each.done), bytes_text(each.total or 0)
        tell(f"rewriting: {done} of {size}, {each.bins_done} of {each.bins} groups of files")

    if purge:
        done = core.purge(
            log, where, batch_size=sizes.get("batch_size"), dry_run=dry_run, progress=report
        )
    else:
        done = core.optimize(
            log,
            where,
            z_order_by=z_order_by or None,
            full=full,
            dry_run=dry_run,
            progress=report,
            target_size=sizes.get("target_size"),
            batch_size=sizes.get("batch_size"),
        )
    return {
        "table": log.table,
        "versions": list(done.versions),
        "dry_run": dry_run,
        "metrics": done.metrics.as_delta(),
    }


def _print(found: dict[str, Any]) -> None:
    metrics = found["metrics"]
    heading(found["table"])
    if not metrics["numFilesRemoved"]:
        line(f"Nothing to do: {count_text(metrics['totalConsideredFiles'], 'file')} looked at.")
        return
    shown = [
        ("files looked at", f"{metrics['totalConsideredFiles']:,}"),
        ("rewritten", _files(metrics["filesRemoved"])),
    ]
    if not found["dry_run"]:
        shown.append(("into", _files(metrics["filesAdded"])))
    vectors = metrics["deletionVectorStats"]
    if vectors is not None:
        shown.append(("deleted rows in them", f"{vectors['numDeletionVectorRowsRemoved']:,}"))
    facts(shown)
    if found["dry_run"]:
        line("Nothing was written (--dry-run).")
        return
    versions = found["versions"]
    if len(versions) == 1:
        line(f"Committed as version {versions[0]}.", "green")
    else:
        text = f"{count_text(len(versions), 'commit')}, versions {versions[0]} to {versions[-1]}"
        line(f"Committed: {text}.", "green")


def _files(sizes: dict[str, Any]) -> str:
    return f"{count_text(sizes['totalFiles'], 'file')} ({bytes_text(sizes['totalSize'])})"
