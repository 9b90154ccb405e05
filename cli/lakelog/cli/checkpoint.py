"""`lakelog checkpoint <uri>`: write a checkpoint of a table, and read it back."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from lakelog.cli.output import facts, heading, line, print_json, progress
from lakelog.cli.secrets import Scrubber
from lakelog.cli.shared_options import conf_options, json_option, uri_argument
from lakelog.cli.table_options import open_log, opened, saying
from lakelog.core.engine.shown import bytes_text, count_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core import Snapshot
    from lakelog.core.engine.log import CheckpointFiles
    from lakelog.core.errors import CorruptCheckpointError


@click.command(short_help="Write a checkpoint, and read it back.")
@uri_argument
@conf_options
@click.option(
    "--version",
    type=click.IntRange(0),
    metavar="N",
    help="An older version; the newest by default.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@json_option
def command(
    uri: str, conf: dict[str, str], version: int | None, dry_run: bool, as_json: bool
) -> None:
    """Write a checkpoint of the table URI, so that opening it needs no older commits.

    What was written is read back from the storage and compared with the table before
    the command reports success. A checkpoint that exists already is written again. After a
    checkpoint of the newest version, expired files of the log are deleted, as after any checkpoint
    (delta.logRetentionDuration, delta.enableExpiredLogCleanup).
    """
    scrubber = Scrubber(conf)
    with progress() as tell:
        found = scrubber.data(_checkpoint(uri, conf, version, dry_run, tell))
    if as_json:
        print_json(found)
    else:
        _print(found)


def _checkpoint(
    uri: str,
    conf: dict[str, str],
    version: int | None,
    dry_run: bool,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    from lakelog.core.engine.commit import check_writable

    log = open_log(uri, conf)
    tell("reading the log")
    snapshot = opened(log, version, None)
    check_writable(snapshot.protocol, snapshot.metadata, log.table)
    tell("reading the list of files")
    before = {each.files[0].name: each for each in _checkpoints(snapshot)}
    found = {
        "table": log.table,
        "version": snapshot.version,
        "live_files": snapshot.num_files,
        "tombstones": snapshot.tombstones.num_rows,
        "transactions": len(snapshot.transactions),
        "already_there": [file.name for each in before.values() for file in each.files],
        "written": not dry_run,
    }
    if dry_run:
        return {
            **found,
            "files": [],
            "bytes": 0,
            "verified": False,
            "hint_version": _hint(snapshot),
        }
    tell(f"writing {count_text(snapshot.num_files, 'file')} of version {snapshot.version}")
    log.checkpoint(snapshot.version, progress=saying(tell))
    tell("reading it back")
    now = _checkpoints(snapshot)
    # A V2 checkpoint has a new name each time; others replace the older one.
    written = [each for each in now if each.files[0].name not in before] or now[-1:]
    if not written:
        raise _mismatch(snapshot, "it is not there")
    files = dict(pair for each in written for pair in _verified(snapshot, each))
    return {
        **found,
        "files": list(files),
        "bytes": sum(files.values()),
        "verified": True,
        "hint_version": _hint(snapshot),
    }


def _checkpoints(snapshot: Snapshot) -> list[CheckpointFiles]:
    """The complete checkpoints of exactly this version."""
    from lakelog.core.engine.log import list_log

    version = snapshot.version
    return list_log(snapshot.store, snapshot.table, version, version).checkpoints


def _verified(snapshot: Snapshot, written: CheckpointFiles) -> Iterator[tuple[str, int]]:
    """Read a checkpoint back from the storage; yield its files and their sizes.

    Raises:
        CorruptCheckpointError: it can't be read, or holds another state.
    """
    from lakelog.core.engine.log import CheckpointReader, find_segment

    store = snapshot.store
    segment = find_segment(store, snapshot.table, snapshot.version)
    reader = CheckpointReader(store, replace(segment, checkpoint=written, hint=None))
    small, state = reader.small_actions(), snapshot.state
    paths = sorted(snapshot.file_table["path"].to_pylist())
    same = {
        "protocol": small.protocol == state.protocol,
        "metadata": small.metadata == state.metadata,
        "progress of applications": small.transactions.keys() == snapshot.transactions.keys(),
        "domain metadata": small.domains.keys() == state.domains.keys(),
        "list of files": sorted(reader.files()["path"].to_pylist()) == paths,
    }
    wrong = [f"its {name} differs" for name, is_same in same.items() if not is_same]
    if wrong:
        raise _mismatch(snapshot, ", ".join(wrong))
    yield from ((each.name, each.length) for each in written.files)
    sidecars = reader.sidecars()
    infos = store.filesystem.get_file_info([store.filesystem_path(path) for path in sidecars])
    yield from ((f"_sidecars/{info.base_name}", info.size) for info in infos)


def _mismatch(snapshot: Snapshot, what: str) -> CorruptCheckpointError:
    from lakelog.core.errors import CorruptCheckpointError

    return CorruptCheckpointError(
        f"the checkpoint of version {snapshot.version} of {snapshot.table} was written, but on "
        f"reading it back {what}. Run lakelog doctor on the table. If the checkpoint exists, "
        "delete it while the commits before it are still there.",
        table=snapshot.table,
        version=snapshot.version,
    )


def _hint(snapshot: Snapshot) -> int | None:
    from lakelog.core.engine.log import read_last_checkpoint

    hint = read_last_checkpoint(snapshot.store, snapshot.table)
    return None if hint is None else hint.version


def _print(found: dict[str, Any]) -> None:
    heading(f"{found['table']}, version {found['version']}")
    hint = found["hint_version"]
    facts(
        [
            ("live files", f"{found['live_files']:,}"),
            ("tombstones", f"{found['tombstones']:,}"),
            ("applications", f"{found['transactions']:,}"),
            (
                "already there",
                ", ".join(found["already_there"]) or "no checkpoint for this version",
            ),
            ("_last_checkpoint", "none" if hint is None else f"version {hint}"),
        ]
    )
    if not found["written"]:
        line("Nothing was written (--dry-run).")
        return
    names = ", ".join(found["files"])
    line(
        f"Wrote {names}, {bytes_text(found['bytes'])}; read back, it gives the same table.", "green"
    )
