"""Which rows of which files a commit inserted, deleted or updated.

PROTOCOL.md, "Reading Change Data Files": where a commit has change data files, only they count;
elsewhere an added file inserts its rows and a removed one deletes them. A file that is removed and
added again with another deletion vector differs by the rows that only one of the vectors has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from lakelog.core.actions.file_table import files_from_json
from lakelog.core.arrays import scalar_of
from lakelog.core.compute import pc
from lakelog.core.data.change_files import CHANGE_TYPE
from lakelog.core.errors import CorruptLogError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core.actions import AddFile, RemoveFile
    from lakelog.core.change_feed.commits import ChangeCommit
    from lakelog.core.data.file_reader import DataFile, TableFileReader
    from lakelog.core.data.row_reader import RowReader

COMMIT_VERSION, COMMIT_TIMESTAMP = "_commit_version", "_commit_timestamp"


class _Vectors(Protocol):
    def deleted(self, file: DataFile) -> Callable[[int], pa.BooleanArray] | None: ...


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """Rows of a file that were all changed in the same way."""

    file: DataFile
    change: str | None
    """`insert` or `delete`; `None`: the file's own column `_change_type` has it."""
    version: int
    timestamp: int
    """Milliseconds since the epoch."""
    only: DataFile | None = None
    """The same file with another deletion vector: only the rows of that one changed."""
    reader: RowReader | None = None
    """Reads it, where its columns are stored as another version says."""

    def others(self, files: _Vectors) -> Callable[[int], pa.BooleanArray] | None:
        """The rows that are not meant, given the number of the file's rows.

        Args:
            files: reads deletion vectors.
        """
        gone = files.deleted(self.file)
        wanted = None if self.only is None else files.deleted(self.only)
        if wanted is None:
            return gone

        def unchanged(rows: int) -> pa.BooleanArray:
            unwanted: Any = pc.invert(wanted(rows))
            return unwanted if gone is None else pc.or_(unwanted, gone(rows))

        return unchanged


def changed_files(
    commit: ChangeCommit,
    files: TableFileReader,
    table: str,
    before: Callable[[int], TableFileReader | None],
) -> Iterator[ChangedFile]:
    """What a commit changed, by files.

    Args:
        commit: the commit.
        files: finds the files of the table.
        table: its URI, for errors.
        before: what finds and reads the files that a version which changed the columns removed;
            `None` where `files` does.

    Raises:
        CorruptLogError: a removed file does not say which partition it was in, or the log does
            not say where a deletion vector is.
    """
    at = commit.version, commit.timestamp
    # PROTOCOL.md, "Reader Requirements for AddCDCFile": where there are any, they are all changes
    # of the version, and its other actions are not looked at.
    if commit.changes:
        rows = files_from_json([each.to_json_value() for each in commit.changes])
        yield from (ChangedFile(file, None, *at) for file in files.find(rows))
        return
    added = {file.path: file for file in _found(commit.adds, files)}
    for remove in commit.removes:
        if remove.partition_values is None:
            raise CorruptLogError(
                "[DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA] the changes of version "
                f"{commit.version} of {table} can't be read: its remove action of {remove.path} "
                "does not say which partition the file was in. An older client wrote it; start "
                "from a later version.",
                table=table,
                path=remove.path,
                version=commit.version,
            )
    older = before(commit.version) if commit.metadata is not None and commit.removes else None
    reader = None if older is None else older.reader
    for old in _found(commit.removes, older or files):
        # By the file's place: a commit may spell a path in two ways.
        new = added.pop(old.path, None)
        if new is None:
            yield ChangedFile(old, "delete", *at, reader=reader)
            continue
        if new.vector is not None:
            yield ChangedFile(old, "delete", *at, only=new, reader=reader)
        if old.vector is not None:
            yield ChangedFile(new, "insert", *at, only=old)
    yield from (ChangedFile(file, "insert", *at) for file in added.values())


def with_commit_columns(rows: pa.Table, changed: ChangedFile) -> pa.Table:
    """Rows with the columns that say what happened to them, in which version, and when."""
    if changed.change is not None:
        rows = _with(rows, CHANGE_TYPE, scalar_of(changed.change, pa.string()))
    rows = _with(rows, COMMIT_VERSION, scalar_of(changed.version, pa.int64()))
    moment = scalar_of(1000 * changed.timestamp, pa.int64()).cast(pa.timestamp("us", "UTC"))
    return _with(rows, COMMIT_TIMESTAMP, moment)


def _with(rows: pa.Table, name: str, value: pa.Scalar[Any]) -> pa.Table:
    return rows.append_column(name, pa.repeat(value, rows.num_rows))


def _found(actions: list[AddFile] | list[RemoveFile], files: TableFileReader) -> list[DataFile]:
    return files.find(files_from_json([each.to_json_value() for each in actions]))
