"""`lakelog vacuum <uri>`: delete the files that no version of a table needs any more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.output import facts, heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log, saying
from lakelog.core.engine.shown import bytes_text, count_text, time_text

if TYPE_CHECKING:
    from collections.abc import Callable


_SHOWN: Final = 20


@click.command(short_help="Delete files that no version needs.")
@uri_argument
@conf_options
@click.option(
    "--retention-hours",
    type=float,
    metavar="HOURS",
    help="How long files stay after they left the table; the table's own retention by default.",
)
@click.option(
    "--mode",
    type=click.Choice(["full", "lite"], case_sensitive=False),
    default="full",
    help="full: list the folder; lite: read the log alone.",
)
@click.option(
    "--inventory",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="A Parquet file that lists the folder's files, instead of listing them.",
)
@click.option(
    "--save",
    "saved",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the list of files to delete to this Parquet file; --inventory takes it.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be deleted; delete nothing.")
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    retention_hours: float | None,
    mode: str,
    inventory: Path | None,
    saved: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete the files in the folder of the table URI that no version within the retention needs.

    A retention below the table's delta.deletedFileRetentionDuration is refused, unless
    spark.databricks.delta.retentionDurationCheck.enabled=false. Older versions than the retention
    can't be read afterwards. The log is never touched: lakelog checkpoint cleans it up.
    """
    scrubber = Scrubber(conf)
    with progress() as tell:
        found = scrubber.data(
            _vacuumed(uri, conf, retention_hours, mode, inventory, saved, dry_run, tell)
        )
    if as_json:
        print_json(found)
    else:
        _print(found)


def _vacuumed(
    uri: str,
    conf: dict[str, str],
    retention_hours: float | None,
    mode: str,
    inventory: Path | None,
    saved: Path | None,
    dry_run: bool,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    from lakelog.core import vacuum

    log = open_log(uri, conf)
    tell("reading the log")
    done = vacuum(
        log,
        retention_hours,
        dry_run=dry_run,
        mode=mode,
        inventory=inventory,
        progress=saying(tell),
    )
    if saved is not None:
        import pyarrow.parquet as pq

        pq.write_table(done.files, saved)
    return {
        "table": done.table,
        "mode": done.mode,
        "dry_run": dry_run,
        "version": done.version,
        "older_than": time_text(done.cutoff),
        "files_seen": done.files_seen,
        "files": done.num_files,
        "folders": done.num_folders,
        "bytes": done.size_in_bytes,
        "paths": done.files["path"].to_pylist(),
    }


def _print(found: dict[str, Any]) -> None:
    heading(found["table"])
    facts(
        [
            ("mode", found["mode"]),
            ("older than", found["older_than"]),
            ("files looked at", f"{found['files_seen']:,}"),
            ("files", f"{found['files']:,} ({bytes_text(found['bytes'])})"),
            ("empty folders", f"{found['folders']:,}"),
        ]
    )
    paths = found["paths"]
    if found["dry_run"]:
        for path in paths[:_SHOWN]:
            line(path)
        if len(paths) > _SHOWN:
            line(f"and {len(paths) - _SHOWN:,} more; --json or --save gives all")
        line("Nothing was deleted (--dry-run).")
    elif paths:
        line(f"Deleted {count_text(len(paths), 'file or folder', 'files and folders')}.", "green")
    else:
        line("There was nothing to delete.")
