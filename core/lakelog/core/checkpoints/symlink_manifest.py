"""Symlink manifests: lists of a table's data files, for readers that know no log (Presto, Athena).

Below `_symlink_format_manifest` there is a file `manifest` for each partition, in the partition's
Hive folder, or one for a table without partitions. Each line is the absolute path of a data file,
as Hadoop prints it. A partition that has lost its last file has no manifest; a table without
partitions keeps one, empty.

`DeltaLog.generate_symlink_manifest` writes all of them, and removes those of partitions that are
gone. With `delta.compatibility.symlinkFormatManifest.enabled` each commit of files writes those of
the partitions that it touched; all, where there are none yet.

Each file is replaced at once, but all of them together are not: a reader may see one partition
before a commit and another one after it, as with Delta's own.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from lakelog.core.actions import Action, AddFile, RemoveFile
from lakelog.core.actions.file_keys import are_among
from lakelog.core.data.partition_keys import decode_partition_values, encode_partition_values
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.own_files import MANIFEST_FOLDER, MANIFEST_NAME, OwnFiles
from lakelog.core.paths import data_path, is_local
from lakelog.core.portable.partition_text import has_room, hive_folder
from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from lakelog.core.state.snapshot import Snapshot


def generate_symlink_manifest(snapshot: Snapshot) -> list[str]:
    """Write all manifests of a table, and remove those of partitions that are gone.

    Args:
        snapshot: the table's newest state.

    Returns:
        The manifests that there are now, relative to the table's folder, sorted.

    Raises:
        DeltaAnalysisError: the table has deletion vectors or column mapping, which the readers of
            manifests don't know, or a partition value is too long. Nothing was written.
        OSError: the storage refused; some of the manifests may still be old ones.
    """
    _check(snapshot)
    columns = snapshot.metadata.partition_columns
    written = _write(snapshot, _by_folder(snapshot.file_table, columns))
    _remove(snapshot, _folders_there(snapshot) - written)
    return sorted(_relative(folder) for folder in written)


def update_symlink_manifests(
    snapshot: Snapshot, actions: Iterable[Action], read_snapshot: Snapshot | None
) -> None:
    """Bring the manifests of the partitions that a commit touched up to date.

    Args:
        snapshot: of the newest version available: an older list must not replace a newer one.
        actions: what was committed.
        read_snapshot: what the commit was made on, which knows the partitions of removed files.

    Raises:
        DeltaAnalysisError: the table has deletion vectors or column mapping.
        OSError: the storage refused; some of the manifests may still be old ones.
    """
    _check(snapshot)
    if not _is_begun(snapshot):
        generate_symlink_manifest(snapshot)
        return
    columns = snapshot.metadata.partition_columns
    touched = _touched(actions, read_snapshot, columns)
    found = {
        folder: paths
        for folder, paths in _by_folder(snapshot.file_table, columns).items()
        if folder in touched
    }
    # Written before others are removed: a reader in between sees too many files rather than a
    # partition without any.
    _write(snapshot, found)
    _remove(snapshot, touched - found.keys())


def _check(snapshot: Snapshot) -> None:
    table = snapshot.table
    if snapshot.terms.column_mapping_mode != "none":
        raise DeltaAnalysisError(
            "[DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING] Manifest generation is "
            "not supported for tables that leverage column mapping, as external readers cannot "
            f"read these Delta tables: {table}.",
            table=table,
        )
    if snapshot.has_deletion_vectors:
        raise DeltaAnalysisError(
            "[DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS] The 'GENERATE "
            "symlink_format_manifest' command is not supported on table versions with deletion "
            f"vectors: {table}, version {snapshot.version}. If you need to generate manifests, "
            "consider disabling deletion vectors on this table by its property "
            "delta.enableDeletionVectors=false, and then removing those that are there by "
            f"lakelog.core.purge, or by 'REORG TABLE delta.`{table}` APPLY (PURGE)' in Spark.",
            table=table,
            version=snapshot.version,
        )


def _by_folder(files: pa.Table, columns: Sequence[str]) -> dict[str, list[str]]:
    """The paths of files, as the log spells them, by the Hive folder of their partition."""
    if not columns:
        return {"": files["path"].to_pylist()}
    grouped = (
        files.select(["path"])
        .append_column("partition", encode_partition_values(files, columns))
        .group_by("partition")
        .aggregate([("path", "list")])
    )
    found: dict[str, list[str]] = {}
    texts, lists = grouped["partition"].to_pylist(), grouped["path_list"].to_pylist()
    for text, paths in zip(texts, lists, strict=True):
        # Null and the empty string are one folder.
        found.setdefault(_folder(decode_partition_values(text, columns), columns), []).extend(paths)
    return found


def _folder(values: Mapping[str, str | None], columns: Sequence[str]) -> str:
    texts = [values.get(name) for name in columns]
    folder = hive_folder(columns, texts)
    for name, part in zip(columns, folder.split("/"), strict=True):
        if not has_room(part):
            raise DeltaAnalysisError(
                f"a value of the partition column {name} is too long for the name of a folder, and "
                "readers of manifests take it from there: no manifest can be written for "
                f"{part[:40]}…. Partition the table by another column",
                column=name,
            )
    return folder


def _touched(
    actions: Iterable[Action], read_snapshot: Snapshot | None, columns: Sequence[str]
) -> set[str]:
    """The folders of the partitions that a commit added files to, or removed files from."""
    if not columns:
        return {""}
    found, unsaid = set(), []
    for action in actions:
        if not isinstance(action, AddFile | RemoveFile):
            continue
        if action.partition_values is None:
            unsaid.append(action.path)
        else:
            found.add(_folder(action.partition_values, columns))
    return found | _folders_of(unsaid, read_snapshot, columns)


def _folders_of(
    paths: Iterable[str], snapshot: Snapshot | None, columns: Sequence[str]
) -> set[str]:
    """The folders of files whose removal does not name the partition."""
    wanted = list(paths)
    if snapshot is None or not wanted:
        return set()
    files = snapshot.file_table
    return set(_by_folder(files.filter(are_among(snapshot.table, files["path"], wanted)), columns))


def _write(snapshot: Snapshot, manifests: Mapping[str, Sequence[str]]) -> set[str]:
    own = OwnFiles(snapshot.store, snapshot.table)

    def write(item: tuple[str, Sequence[str]]) -> str:
        folder, paths = item
        path = f"{snapshot.table}/{_relative(folder)}"
        lines = sorted(_hadoop_text(data_path(snapshot.table, each)) for each in paths)
        own.create_folder(path.rpartition("/")[0])
        own.put(path, "".join(f"{line}\n" for line in lines).encode())
        _forget_checksum(own, path)
        return folder

    return set(at_once(write, [*manifests.items()], REQUESTS, "lakelog-manifest"))


def _forget_checksum(own: OwnFiles, path: str) -> None:
    """Remove what Hadoop keeps beside a local file: it is of the bytes that were replaced."""
    if is_local(path):
        folder, _, name = path.rpartition("/")
        with contextlib.suppress(FileNotFoundError):
            own.delete_file(f"{folder}/.{name}.crc")


def _remove(snapshot: Snapshot, folders: Iterable[str]) -> None:
    """Remove the manifests of partitions, and the folders that have nothing else in them."""
    own = OwnFiles(snapshot.store, snapshot.table)
    for folder in folders:
        path = f"{snapshot.table}/{_relative(folder)}"
        _forget_checksum(own, path)
        with contextlib.suppress(FileNotFoundError):
            own.delete_file(path)
        while folder and own.delete_empty_folder(path := path.rpartition("/")[0]):
            folder = folder.rpartition("/")[0]


def _is_begun(snapshot: Snapshot) -> bool:
    """Whether manifests were written before; asked without listing all of them."""
    from pyarrow.fs import FileSelector, FileType

    path = snapshot.store.filesystem_path(f"{snapshot.table}/{MANIFEST_FOLDER}")
    filesystem = snapshot.store.filesystem
    if filesystem.get_file_info(path).type == FileType.NotFound:
        return False
    # An object store may keep the mark of a folder whose files are gone.
    return bool(filesystem.get_file_info(FileSelector(path, allow_not_found=True)))


def _folders_there(snapshot: Snapshot) -> set[str]:
    """The folders, relative to that of all manifests, which hold one."""
    from pyarrow.fs import FileSelector

    root = snapshot.store.filesystem_path(f"{snapshot.table}/{MANIFEST_FOLDER}")
    selector = FileSelector(root, recursive=True, allow_not_found=True)
    return {
        info.path[len(root) :].rpartition("/")[0].strip("/")
        for info in snapshot.store.filesystem.get_file_info(selector)
        if info.is_file and info.base_name == MANIFEST_NAME
    }


def _relative(folder: str) -> str:
    return "/".join(part for part in (MANIFEST_FOLDER, folder, MANIFEST_NAME) if part)


def _hadoop_text(path: str) -> str:
    return f"file:{path}" if path.startswith("/") else path
