"""Which files may go: old enough, and needed by no version that the retention covers."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from lakelog.core.actions.file_keys import canonical_paths
from lakelog.core.arrays import array_of
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.file_names import LOG_FOLDER
from lakelog.core.maintain.vacuum.folder_tree import list_tree, local_root
from lakelog.core.maintain.vacuum.found import FoundFile, FoundFolder, Tree, is_plain
from lakelog.core.maintain.vacuum.inventory import looked_up, tree_of_inventory
from lakelog.core.maintain.vacuum.kept import KeptFiles
from lakelog.core.maintain.vacuum.linked import drop_linked
from lakelog.core.maintain.vacuum.protected import ProtectedFiles
from lakelog.core.maintain.vacuum.recorded_runs import read_watermark
from lakelog.core.schema.column_mapping import physical_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from lakelog.core.delta_log import DeltaLog
    from lakelog.core.maintain.vacuum.from_log import Taken
    from lakelog.core.state.snapshot import Snapshot


class Search(NamedTuple):
    """What to look for, and where."""

    log: DeltaLog
    cutoff: int
    """Milliseconds since 1970-01-01 UTC, by the storage's clock."""
    by_log: bool
    """Whether the log alone is read (mode LITE)."""
    inventory: Any
    known: Mapping[int, Taken] = MappingProxyType({})
    """Version -> what it has taken out, of commits that need not be read once more."""


class Candidates(NamedTuple):
    """What may go."""

    snapshot: Snapshot
    """The version by which that was decided."""
    files: list[FoundFile]
    folders: list[FoundFolder]
    checksums: set[str]
    """Of Hadoop's local file system: relative paths of those that were seen."""
    files_seen: int
    folders_seen: int
    watermark: int | None
    """Once all of them are gone, nothing is left that this version or an older one took out."""


def find_candidates(search: Search, progress: Callable[[int], None]) -> Candidates:
    """Find what may go.

    Args:
        search: what to look for.
        progress: called now and then with the number of files seen.

    Raises:
        DeltaError: the log can't be read, or lacks what mode LITE needs.
        OSError: the storage refused.
    """
    log, cutoff = search.log, search.cutoff
    kept = KeptFiles(log, cutoff, search.known)
    is_hidden = hidden_names(kept.snapshot)
    done = None if not (search.by_log or search.inventory is not None) else read_watermark(log)
    if search.by_log:
        tree = _tree_of_log(log, kept, done, is_hidden)
    elif search.inventory is not None:
        tree = tree_of_inventory(log.store, log.table, search.inventory, is_hidden, kept.live.paths)
    else:
        tree = list_tree(log.store, log.table, is_hidden, kept.live.paths, progress)
    if (root := local_root(log.store, log.table)) is not None:
        drop_linked(tree, root)
    progress(tree.seen)
    newest = max((version for version, _ in kept.outside), default=done)
    # After the listing: what it saw may have been committed while it ran.
    kept.settle()
    old = [each for each in tree.files if each.modified < cutoff]
    names = kept.may_go([each.path for each in old])
    return Candidates(
        snapshot=kept.snapshot,
        files=[each for each in old if each.path in names],
        folders=[
            each
            for each in tree.folders
            if each.is_empty and each.modified < cutoff and not kept.needs_folder(each.path)
        ],
        checksums=tree.checksums,
        files_seen=tree.seen,
        folders_seen=len(tree.folders),
        # An inventory may lack files, and says nothing of how far the log is done.
        watermark=newest if kept.is_sure and search.inventory is None else done,
    )


def hidden_names(snapshot: Snapshot) -> Callable[[str], bool]:
    """Delta's rule of names that VACUUM passes over, at every level of the table's folder.

    Args:
        snapshot: knows the partition columns, whose folders are not hidden whatever their names.
    """
    columns = snapshot.partition_schema
    names = {*snapshot.partition_columns, *(physical_name(each) for each in columns)}
    shown = (*(f"{each}=" for each in names), "_change_data", "_delta_index")
    formats = snapshot.properties.get("delta.universalFormat.enabledFormats").lower().split(",")
    # Iceberg's own folder, which has no name that hides it.
    others = {"metadata"} if "iceberg" in map(str.strip, formats) else set()

    def is_hidden(name: str) -> bool:
        if name.startswith(("_", ".")):
            return name == LOG_FOLDER or not name.startswith(shown)
        return name in others

    return is_hidden


def _tree_of_log(
    log: DeltaLog, kept: KeptFiles, done: int | None, is_hidden: Callable[[str], bool]
) -> Tree:
    """What the commits since the last run took out, as far as they were made before the cutoff.

    Raises:
        DeltaAnalysisError: the log no longer has all of them.
    """
    first = 0 if done is None else done + 1
    span = [each for each in kept.outside if each[0] >= first]
    earliest = kept.commits[0][0] if kept.commits else kept.snapshot.version + 1
    if earliest > first or (span and span[-1][0] - first + 1 != len(span)):
        since = "the first" if done is None else f"version {done}, where the last one ended,"
        raise DeltaAnalysisError(
            f"[DELTA_CANNOT_VACUUM_LITE] VACUUM LITE of {log.table} needs all commits from {since} "
            f"on, and the log begins with version {earliest}. Run VACUUM in mode FULL, which also "
            "makes LITE possible from then on.",
            table=log.table,
            earliest=earliest,
        )
    tree = Tree()
    found: dict[str, FoundFile] = {}
    times = {version: status.modification_time for version, status in span}
    for taken in kept.taken_out(span):
        for path, size in _named(log.table, taken):
            if is_plain(path) and not any(map(is_hidden, path.split("/"))):
                found[path] = FoundFile(path, size, times[taken.version])
    tree.seen = len(found)
    tree.files = list(found.values())
    if local_root(log.store, log.table) is not None:
        # Costs next to nothing here, and finds links, and what is gone already.
        tree.files = looked_up(log.store, log.table, found)
    return tree


def _named(table: str, taken: Taken) -> Iterator[tuple[str, int]]:
    """The files that a version has taken out, relative to the table's folder, and their sizes."""
    changes = pa.chunked_array([array_of(taken.change_files, pa.string())])
    start = f"{table.rstrip('/')}/"
    for paths in (taken.removed["path"], changes):
        sizes = taken.removed["size"].to_pylist() if paths is not changes else [0] * len(paths)
        for path, size in zip(canonical_paths(table, paths).to_pylist(), sizes, strict=True):
            # What is elsewhere still begins with a slash or a scheme.
            place = path.removeprefix(start)
            if not place.startswith(("/", "../")) and ":/" not in place:
                yield place, size or 0
    vectors = ProtectedFiles(table)
    vectors.add_vectors(taken.removed["deletion_vector"])
    yield from ((path, 0) for path in vectors.paths)
