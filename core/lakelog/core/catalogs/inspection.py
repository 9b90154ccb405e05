"""What can be seen of a table that a catalog governs, for who wants to know whether it is well."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from lakelog.core.catalogs.published import fits
from lakelog.core.log.file_names import (
    STAGED_FOLDER,
    LogFileKind,
    commit_path,
    log_path,
    parse_log_name,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.catalogs.contract import CatalogTable
    from lakelog.core.catalogs.governed_store import GovernedStore
    from lakelog.logstores import LogStore

_STAGED_NAME: Final = re.compile(r"(\d{20})\.[^/]+\.json")
_CHECKPOINTS: Final = (LogFileKind.CHECKPOINT, LogFileKind.MULTIPART, LogFileKind.V2)


@dataclass(frozen=True, slots=True, kw_only=True)
class GovernedLog:
    """The log of such a table, beside what its catalog says of it."""

    table: CatalogTable
    unpublished: Sequence[int]
    """The ratified versions whose file does not have its published name yet."""
    missing: Mapping[int, str]
    """Version -> the path where its file should be, of those that no checkpoint stands for."""
    wrong: Mapping[int, str]
    """Version -> the path of a published file that is not what the catalog ratified, by its size.
    """
    leftovers: Sequence[str]
    """The staged files that are no version, by name: proposed and not taken, or not yet."""


def inspect(store: GovernedStore, location: str) -> GovernedLog:
    """Compare a log with what its catalog says; two listings, and nothing is written.

    Args:
        store: of the table.
        location: the table's URI, normalised.

    Raises:
        TableNotFoundError: the table is gone.
        CatalogError: the catalog can't be asked.
        OSError: the storage can't be listed.
    """
    table, inner = store.refresh(), store.storage
    published, checkpoint = _published(inner, location, table.latest)
    staged = _staged(inner, location)
    missing = {
        version: commit_path(location, version)
        for version in range(checkpoint + 1, table.latest + 1)
        if version not in published and version not in table.commits
    }
    wrong: dict[int, str] = {}
    for version, commit in sorted(table.commits.items()):
        place = log_path(location, f"{STAGED_FOLDER}/{commit.file_name}")
        if version in published:
            if not fits(published[version], commit):
                wrong[version] = commit_path(location, version)
        elif commit.file_name not in staged:
            missing[version] = place
        elif not fits(staged[commit.file_name], commit):
            wrong[version] = place
    return GovernedLog(
        table=table,
        unpublished=sorted(version for version in table.commits if version not in published),
        missing=dict(sorted(missing.items())),
        wrong=wrong,
        leftovers=_leftovers(inner, location, table, published, staged),
    )


def _published(inner: LogStore, location: str, latest: int) -> tuple[dict[int, int], int]:
    """Version -> size of the published commits, and the newest checkpoint's version; -1: none."""
    found, checkpoint = dict[int, int](), -1
    for status in inner.list_from(commit_path(location, 0)):
        name = parse_log_name(status.name)
        if name is None or name.version > latest:
            continue
        if name.kind is LogFileKind.COMMIT:
            found[name.version] = status.length
        elif name.kind in _CHECKPOINTS:
            checkpoint = max(checkpoint, name.version)
    return found, checkpoint


def _staged(inner: LogStore, location: str) -> dict[str, int]:
    """Name -> size of the staged files."""
    try:
        listed = list(inner.list_from(log_path(location, f"{STAGED_FOLDER}/")))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {each.name: each.length for each in listed if _STAGED_NAME.fullmatch(each.name)}


def _leftovers(
    inner: LogStore,
    location: str,
    table: CatalogTable,
    published: Mapping[int, int],
    staged: Mapping[str, int],
) -> list[str]:
    by_version: dict[int, list[str]] = {}
    for name in sorted(staged):
        by_version.setdefault(int(name[:20]), []).append(name)
    found: list[str] = []
    for version, names in by_version.items():
        commit = table.commits.get(version)
        if version > table.latest:
            found += names
        elif commit is not None:
            found += [each for each in names if each != commit.file_name]
        elif version in published:
            # The catalog has forgotten which it was. Of one alone its size tells enough.
            fitting = [each for each in names if staged[each] == published[version]]
            found += [each for each in names if each not in fitting]
            if len(fitting) > 1:
                data = inner.read_bytes(commit_path(location, version))
                found += [
                    each
                    for each in fitting
                    if inner.read_bytes(log_path(location, f"{STAGED_FOLDER}/{each}")) != data
                ]
    return found
