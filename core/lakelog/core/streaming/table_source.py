"""A table as the source of a stream of its rows: which files a batch reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lakelog.core.actions.file_table import NO_FILES, from_add_files
from lakelog.core.arrays import array_of
from lakelog.core.change_feed.commits import ChangeCommit, read_change_commit
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.streaming.pending import Pending
from lakelog.core.streaming.version_walk import TableStream

if TYPE_CHECKING:
    from lakelog.core.actions import AddFile
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.streaming.offsets import SourceOffset


class StreamSource(TableStream):
    """The rows of a table: those that it has, then those that later commits add."""

    def files_between(self, start: SourceOffset, end: SourceOffset) -> pa.Table:
        """The files of a batch, as rows of `FILE_SCHEMA` and `version`, which has them, in order.

        Args:
            start: where it begins.
            end: where it ends.

        Raises:
            DeltaAnalysisError: the end is before the start; and what `latest_offset` raises.
            VersionNotFoundError: the version that the query began with can't be rebuilt any more.
            LogGapError: a commit that the stream needs is gone.
        """
        state, versions = NO_FILES, []
        adds: list[AddFile] = []
        for version, pending, chosen in self._between(start, end):
            versions += [version] * len(chosen)
            if isinstance(pending.files, tuple):
                adds += pending.files[chosen.start : chosen.stop]
            else:
                # There is one at most, before all commits.
                state = pending.files.slice(chosen.start, len(chosen))
        files = pa.concat_tables([state, from_add_files(adds)])
        return self._wanted(files.append_column("version", array_of(versions, pa.int64())))

    def _state_pending(self, snapshot: Snapshot, files: pa.Table) -> Pending:  # noqa: ARG002
        return Pending(files)

    def _commit_pending(self, commit: ChangeCommit) -> Pending:
        options = self._options
        if commit.removes:
            if options.skip_change_commits:
                return Pending(())
            # With files that come as well, rows that stayed are in them again: `ignoreDeletes` does
            # not allow that.
            if not options.ignore_changes and (commit.adds or not options.ignore_deletes):
                raise _changed(commit, self._log.table)
        return Pending(tuple(commit.adds))

    def _read_commit(self, path: str, version: int, newest: int) -> ChangeCommit:  # noqa: ARG002
        return read_change_commit(self._log.store, path, version, 0, as_written=True)

    def _wanted(self, files: pa.Table) -> pa.Table:
        # Only now: offsets count all files of a version, whatever the query leaves out.
        pattern = self._options.exclude
        if pattern is None:
            return files
        kept = [pattern.search(path) is None for path in files["path"].to_pylist()]
        return files.filter(array_of(kept, pa.bool_()))


def _changed(commit: ChangeCommit, table: str) -> DeltaAnalysisError:
    path = commit.removes[0].path
    if commit.adds:
        return DeltaAnalysisError(
            "[DELTA_SOURCE_TABLE_IGNORE_CHANGES] Detected a data update (for example "
            f"{path}) in the source table at version {commit.version}. This is currently not "
            "supported. If this is going to happen regularly and you are okay to skip changes, set "
            "the option 'skipChangeCommits' to 'true'. If you would like the data update to be "
            "reflected, please restart this query with a fresh checkpoint directory. The source "
            f"table can be found at path {table}.",
            table=table,
            version=commit.version,
            path=path,
        )
    return DeltaAnalysisError(
        f"[DELTA_SOURCE_IGNORE_DELETE] Detected deleted data (for example {path}) from streaming "
        f"source at version {commit.version}. This is currently not supported. If you'd like to "
        "ignore deletes, set the option 'ignoreDeletes' to 'true'. The source table can be found "
        f"at path {table}.",
        table=table,
        version=commit.version,
        path=path,
    )
