"""`lakelog manifest <uri>`: write symlink manifests, for readers that don't read the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.output import heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log, opened
from lakelog.core.engine.shown import count_text

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY = "delta.compatibility.symlinkFormatManifest.enabled"


@click.command(short_help="Write symlink manifests, for Presto, Athena and the like.")
@uri_argument
@conf_options
@json_option
def command(uri: str, conf: dict[str, str], as_json: bool) -> None:
    """Write the symlink manifests of the newest version of the table URI.

    Below _symlink_format_manifest each partition gets a list of its data files; those of partitions
    that are gone are removed. With the table property
    delta.compatibility.symlinkFormatManifest.enabled commits keep them up to date.
    """
    scrubber = Scrubber(conf)
    with progress() as tell:
        found = scrubber.data(_written(uri, conf, tell))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _written(uri: str, conf: dict[str, str], tell: Callable[[str], None]) -> dict[str, Any]:
    from lakelog.core.engine.maintenance import generate_symlink_manifest

    log = open_log(uri, conf)
    tell("reading the log")
    snapshot = opened(log, None, None)
    tell(f"writing the manifests of version {snapshot.version}")
    manifests = generate_symlink_manifest(snapshot)
    return {
        "table": log.table,
        "version": snapshot.version,
        "live_files": snapshot.num_files,
        "manifests": manifests,
        "kept_by_commits": snapshot.terms.keeps_symlink_manifest,
    }


def _print(found: dict[str, Any]) -> None:
    heading(f"{found['table']}, version {found['version']}")
    line(
        f"Wrote {count_text(len(found['manifests']), 'manifest')} of "
        f"{count_text(found['live_files'], 'file')} below _symlink_format_manifest.",
        "green",
    )
    if not found["kept_by_commits"]:
        line(f"Commits do not keep them up to date: {_KEY} is not set.")
