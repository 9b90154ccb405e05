"""`lakelog restore <uri>`: give a table the rows, schema and properties of an older version."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from lakelog.cli.app import EXIT_FINDING
from lakelog.cli.output import error_line, facts, heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log, refuse_both, saying, version_options
from lakelog.core.engine.shown import bytes_text

if TYPE_CHECKING:
    from collections.abc import Callable

_SHOWN: Final = 20


@click.command(short_help="Go back to an older version.")
@uri_argument
@conf_options
@version_options
@click.option("--dry-run", is_flag=True, help="Show what would be done; commit nothing.")
@json_option
def command(
    uri: str,
    conf: dict[str, str],
    version: int | None,
    timestamp: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Give the table URI the rows, the schema and the properties of an older version.

    Needs --version or --timestamp. It is one commit, so the versions in between can still be read,
    and restored. Files that VACUUM has deleted can't come back: with such files nothing is
    committed, they are listed, and the exit code is 1. To go on without them, set
    spark.sql.files.ignoreMissingFiles=true.
    """
    refuse_both(version, timestamp)
    if version is None and timestamp is None:
        raise click.UsageError("Give --version or --timestamp: which version is to come back?")
    scrubber = Scrubber(conf)
    with progress() as tell:
        found = scrubber.data(_restored(uri, conf, version, timestamp, dry_run, tell))
    if as_json:
        print_json(found)
    else:
        _print(found)
    if found["missing"] and not found["ignores_missing"]:
        sys.exit(EXIT_FINDING)


def _restored(
    uri: str,
    conf: dict[str, str],
    version: int | None,
    timestamp: str | None,
    dry_run: bool,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    from lakelog.core import keys, restore

    log = open_log(uri, conf)
    ignores = log.conf.read(keys.IGNORE_MISSING)
    tell("reading the log")
    done = restore(log, version, timestamp, dry_run=True, progress=saying(tell))
    before = log.snapshot.version
    if not dry_run and (ignores or not done.missing):
        tell(f"restoring version {done.restored_version}")
        wanted = done.restored_version if timestamp is None else None
        done = restore(log, wanted, timestamp, progress=saying(tell))
    return {
        "table": log.table,
        "version_before": before,
        "restored_version": done.restored_version,
        "version": done.version,
        "metrics": dict(done.metrics),
        "missing": list(done.missing),
        "ignores_missing": ignores,
        "dry_run": dry_run,
    }


def _print(found: dict[str, Any]) -> None:
    metrics, missing = found["metrics"], found["missing"]
    heading(f"{found['table']}, version {found['version_before']}")
    if not metrics:
        line(f"Version {found['restored_version']} is the newest: there is nothing to restore.")
        return
    facts(
        [
            ("restores version", f"{found['restored_version']}"),
            ("files coming back", _files(metrics, "numRestoredFiles", "restoredFilesSize")),
            ("files removed", _files(metrics, "numRemovedFiles", "removedFilesSize")),
            ("files then", _files(metrics, "numOfFilesAfterRestore", "tableSizeAfterRestore")),
        ]
    )
    for place in missing[:_SHOWN]:
        error_line(f"missing: {place}")
    if len(missing) > _SHOWN:
        error_line(f"missing: {len(missing) - _SHOWN:,} more; --json lists all")
    if found["version"] is not None:
        line(f"Restored by version {found['version']}.", "green")
    elif found["dry_run"]:
        line("Nothing was committed (--dry-run).")
    else:
        line("Nothing was committed: files are missing.")


def _files(metrics: dict[str, int], count: str, size: str) -> str:
    return f"{metrics[count]:,} ({bytes_text(metrics[size])})"
