"""What many commits did to files, in columns: for whoever looks back over a table's history.

A commit's files are not made objects, nor checked as a snapshot checks them: of a million of them
some columns are read, by Arrow, of many commits at once. Where Arrow finds anything unusual, the
commits are read one by one, as replay reads them.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import pyarrow as pa

from lakelog.core.actions.file_table import DELETION_VECTOR
from lakelog.core.arrays import empty_table, scalar_of
from lakelog.core.errors import DeltaError
from lakelog.core.log.budget import LogBudget, read_log_file
from lakelog.core.log.commit_file import Commit, commit_is_gone, parse_or_refuse, skim_lines
from lakelog.core.log.far import is_far
from lakelog.core.log.readers import read_side_by_side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.contract import LogStore

CHANGE_SCHEMA: Final = pa.schema(
    [
        ("version", pa.int64()),
        ("adds", pa.bool_()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("stats", pa.string()),
        ("deletion_vector", DELETION_VECTOR),
    ]
)
"""One row for each file that a commit adds (`adds`) or removes."""

_FIELDS: Final = pa.struct(
    [
        ("path", pa.string()),
        ("size", pa.int64()),
        ("stats", pa.string()),
        ("deletionVector", DELETION_VECTOR),
    ]
)
_NAMES: Final = [each.name for each in _FIELDS]
_LINES: Final = pa.schema(
    [("remove", _FIELDS), ("add", _FIELDS), ("cdc", pa.struct([("path", pa.string())]))]
)
_BLOCK_BYTES: Final = 4 << 20
_LARGE_BYTES: Final = 32 << 20


class FileChanges(NamedTuple):
    """Some commits, as far as they can be read."""

    commits: list[Commit]
    """Ascending, without their file actions."""
    files: pa.Table
    """Rows of `CHANGE_SCHEMA`, in no order."""
    change_files: dict[int, list[str]]
    """Version -> the `path`s of its change data files, of those that have some."""
    unread: list[DeltaError]
    """Why a commit is not among them."""


def read_file_changes(store: LogStore, table: str, paths: Mapping[int, str]) -> FileChanges:
    """Read commits; one that is broken or gone is left out, and named.

    Args:
        store: the store of the log.
        table: the table's URI.
        paths: version -> path; all of the files are in memory at once.

    Raises:
        OSError: the storage refused.
    """
    budget = LogBudget.from_store(store)

    def read(version: int) -> bytes | DeltaError:
        path = paths[version]
        try:
            data = read_log_file(store, path, budget)
            budget.take(len(data), path, passing=2 * len(data))
        except FileNotFoundError:
            return commit_is_gone(table, path, version)
        except DeltaError as error:
            return error
        return data

    versions = sorted(paths)
    found = FileChanges([], empty_table(CHANGE_SCHEMA), {}, [])
    texts: dict[int, bytes] = {}
    for version, data in zip(
        versions, read_side_by_side(read, versions, far=is_far(store)), strict=True
    ):
        if isinstance(data, bytes):
            texts[version] = data
        else:
            found.unread.append(data)
    together = _together(texts, paths)
    if together is not None:
        return together._replace(unread=found.unread)
    tables = []
    for version, data in texts.items():
        try:
            alone = _together({version: data}, paths) or _alone(
                table, version, data, paths[version]
            )
        except DeltaError as error:
            found.unread.append(error)
            continue
        found.commits.extend(alone.commits)
        found.change_files.update(alone.change_files)
        tables.append(alone.files)
    return found._replace(files=pa.concat_tables([found.files, *tables]))


def _together(texts: Mapping[int, bytes], paths: Mapping[int, str]) -> FileChanges | None:
    """What the commits say; `None` where anything at all is unusual."""
    commits, versions = [], array("q")
    for version, data in texts.items():
        try:
            commit, lines = skim_lines(data, version, paths[version])
        except DeltaError:
            return None
        commits.append(commit)
        versions.extend(array("q", [version]) * lines)
    parsed = _parsed(b"\n".join(data.rstrip(b"\n") for data in texts.values()))
    if parsed is None or parsed.num_rows != len(versions):
        return None
    of_line = pa.Array.from_buffers(pa.int64(), len(versions), [None, pa.py_buffer(versions)])
    tables = []
    for kind in ("remove", "add"):
        is_there = parsed[kind].is_valid()
        files = parsed[kind].filter(is_there)
        columns = dict(zip(_NAMES, files.flatten(), strict=True))
        if columns["path"].null_count or (kind == "add" and columns["size"].null_count):
            return None
        tables.append(_rows(of_line.filter(is_there.combine_chunks()), kind == "add", columns))
    change_files = defaultdict(list)
    changes = parsed["cdc"]
    if changes.null_count < len(changes):
        named = changes.combine_chunks().field("path")
        for version, path in zip(of_line.to_pylist(), named.to_pylist(), strict=True):
            if path is not None:
                change_files[version].append(path)
    return FileChanges(commits, pa.concat_tables(tables), dict(change_files), [])


def _parsed(data: bytes) -> pa.Table | None:
    import pyarrow.json as pj

    options = pj.ParseOptions(explicit_schema=_LINES, unexpected_field_behavior="ignore")
    blocks = pj.ReadOptions(block_size=_BLOCK_BYTES, use_threads=len(data) > _LARGE_BYTES)
    try:
        data.decode()
        return pj.read_json(
            pa.BufferReader(data), read_options=blocks, parse_options=options
        ).select(_LINES.names)
    except (pa.ArrowException, UnicodeDecodeError):
        return None


def _alone(table: str, version: int, data: bytes, path: str) -> FileChanges:
    """One commit, read as replay reads it.

    Raises:
        CorruptCommitError: it is torn, empty or not JSON.
        UnsupportedFeatureError: it is malformed, and its own protocol is one that we do not have.
    """
    commit = parse_or_refuse(table, data, version, path)
    tables = []
    for adds, rows in ((False, commit.removed()), (True, commit.added())):
        columns: dict[str, Any] = {
            name: rows[name] if name in rows.column_names else pa.nulls(len(rows), pa.string())
            for name in ("path", "size", "stats")
        }
        columns["deletionVector"] = rows["deletion_vector"]
        tables.append(_rows(pa.repeat(scalar_of(version, pa.int64()), len(rows)), adds, columns))
    commit.adds, commit.removes = [], []
    changes = change_file_paths(data)
    return FileChanges(
        [commit], pa.concat_tables(tables), {version: changes} if changes else {}, []
    )


def change_file_paths(data: bytes) -> list[str]:
    """The `path`s of the change data files that a commit, which was parsed already, names."""
    found: list[str] = []
    if b'"cdc"' not in data:
        return found
    for line in data.split(b"\n"):
        # Within a string the quotes of a name are escaped.
        if b'"cdc"' in line:
            action = orjson.loads(line).get("cdc")
            if isinstance(action, dict) and isinstance(action.get("path"), str):
                found.append(action["path"])
    return found


def _rows(versions: Any, adds: bool, columns: Mapping[str, Any]) -> pa.Table:
    values = [columns[name] for name in _NAMES]
    return pa.table(
        [versions, pa.repeat(scalar_of(adds, pa.bool_()), len(versions)), *values],
        schema=CHANGE_SCHEMA,
    )
