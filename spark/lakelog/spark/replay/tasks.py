"""What the executors do to replay a log: the file actions of checkpoints and commits, as rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from lakelog.core.engine.log import LogBudget, file_keys, parse_commit
from lakelog.core.engine.values import array_of, integers
from lakelog.core.errors import CorruptCommitError, LogGapError
from lakelog.logstores.threads import TASK_REQUESTS, in_order
from lakelog.spark.workers.filesystems import for_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow.fs import FileSystem

    from lakelog.core.engine.log import Commit, FileSelection, Kind, Part, PartReader, ReplayJob

KEY = "replay_key"
"""Canonical path and id of the deletion vector."""
BLOCK, ROW = "replay_block", "replay_row"
"""Together the position of an action in the log: of two, the later one holds."""
IS_KIND = "replay_is_kind"
"""Whether the action makes a row of the result, and does not merely end another."""

_SHARE_BYTES = 32 << 20
_COMMIT_BYTES = 16 << 20
_MOST_COMMITS = 400
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class CheckpointRows:
    """Each task reads a share of a file. A row without a path says how many it read in `size`."""

    reader: PartReader
    kind: Kind
    schema: pa.Schema
    selection: FileSelection | None
    pieces: tuple[tuple[Part, int, int], ...]
    """File, share, shares."""
    inline: Commit | None
    """What a top level of JSON holds itself; the last task's."""

    @classmethod
    def from_job(
        cls, job: ReplayJob, kind: Kind, schema: pa.Schema, selection: FileSelection | None
    ) -> Self | None:
        """Distribute a job's checkpoint; `None` where there is none.

        Raises:
            CorruptCheckpointError: it can't be read.
        """
        checkpoint = job.checkpoint
        if checkpoint is None:
            return None
        sizes = {each.path: each.length for each in checkpoint.checkpoint.files}
        pieces = []
        for part in checkpoint.parts():
            shares = max(1, (part.size or sizes.get(part.path, 0)) // _SHARE_BYTES)
            pieces += [(part, share, shares) for share in range(shares)]
        inline = checkpoint.top_level().inline
        reader = checkpoint.part_reader()
        reader = replace(reader, filesystem=for_workers(reader.filesystem))
        return cls(reader, kind, schema, selection, tuple(pieces), inline)

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return len(self.pieces) + (self.inline is not None)

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        read = 0
        for rows in self._rows(number):
            read += rows.num_rows
            kept = rows if self.selection is None else self.selection.select(rows)
            keyed = kept.add_column(0, KEY, file_keys(self.reader.table, kept))
            yield from keyed.to_batches(max_chunksize=_BATCH_ROWS)
        count = {"size": array_of([read], pa.int64())}
        columns = [count.get(each.name, pa.nulls(1, each.type)) for each in self.schema]
        yield pa.record_batch([pa.nulls(1, pa.string()), *columns], [KEY, *self.schema.names])

    def _rows(self, number: int) -> Iterator[pa.Table]:
        if number < len(self.pieces):
            part, share, shares = self.pieces[number]
            for batch in self.reader.rows(part, self.kind, self.schema, (share, shares)):
                yield pa.Table.from_batches([batch])
        elif self.inline is not None:
            try:
                yield self.inline.added() if self.kind == "add" else self.inline.removed()
            except CorruptCommitError as exc:
                raise self.reader.corrupt(str(exc)) from exc


@dataclass(frozen=True)
class CommitRows:
    """Each task reads a run of commits. It returns all file actions, for their keys."""

    filesystem: FileSystem
    table: str
    kind: Kind
    schema: pa.Schema
    selection: FileSelection | None
    commits: tuple[tuple[int, str, str], ...]
    """Version, path, and the path as the file system spells it."""
    starts: tuple[int, ...]
    """Task -> its first commit; one entry more at the end."""
    limit: int
    """Bytes of memory that a commit may take."""

    @classmethod
    def from_job(
        cls, job: ReplayJob, kind: Kind, schema: pa.Schema, selection: FileSelection | None
    ) -> Self | None:
        """Distribute a job's commits; `None` where there are none."""
        files, store = job.segment.commits, job.store
        if not files:
            return None
        first = job.segment.version - len(files) + 1
        commits = tuple(
            (first + i, each.path, store.filesystem_path(each.path)) for i, each in enumerate(files)
        )
        starts, taken = [0], 0
        for i, each in enumerate(files):
            if taken + each.length > _COMMIT_BYTES or i - starts[-1] == _MOST_COMMITS:
                starts += [i] if i > starts[-1] else []
                taken = 0
            taken += each.length
        ends = (*starts, len(files))
        limit = LogBudget.from_store(store).limit
        table = job.segment.table
        return cls(
            for_workers(store.filesystem), table, kind, schema, selection, commits, ends, limit
        )

    @property
    def count(self) -> int:
        """How many tasks there are."""
        return len(self.starts) - 1

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        first, end = self.starts[number : number + 2]
        for commit in in_order(
            self._read, self.commits[first:end], TASK_REQUESTS, "lakelog-commits"
        ):
            yield from self._rows(commit)

    def _read(self, commit: tuple[int, str, str]) -> Commit:
        version, path, place = commit
        try:
            with self.filesystem.open_input_file(place) as file:
                budget = LogBudget(self.limit)
                if file.size() > budget.limit:
                    raise budget.refusal(path, file.size())
                return parse_commit(file.read(), version, path, budget)
        except FileNotFoundError as exc:
            raise LogGapError(
                f"the commit {path} was listed a moment ago and is gone: log cleanup removed it, "
                "or the table is being deleted. Open the table again.",
                table=self.table,
                path=path,
                version=version,
                missing=[version],
            ) from exc

    def _rows(self, commit: Commit) -> Iterator[pa.RecordBatch]:
        # Within a commit removes come first, as in the core's `file_state`.
        for rows, kind in ((commit.removed(), "remove"), (commit.added(), "add")):
            if rows.num_rows:
                block = 2 * commit.version + (kind == "add")
                yield from self._keyed(rows, block, is_kind=kind == self.kind)

    def _keyed(self, rows: pa.Table, block: int, *, is_kind: bool) -> Iterator[pa.RecordBatch]:
        count = rows.num_rows
        keys = file_keys(self.table, rows)
        chosen = self._chosen(rows) if is_kind else array_of([False] * count, pa.bool_())
        columns = [
            keys,
            array_of([block] * count, pa.int64()),
            integers(range(count), pa.int64()),
            chosen,
            *(rows[each.name] if is_kind else pa.nulls(count, each.type) for each in self.schema),
        ]
        names = [KEY, BLOCK, ROW, IS_KIND, *self.schema.names]
        yield from pa.table(columns, names).to_batches(max_chunksize=_BATCH_ROWS)

    def _chosen(self, rows: pa.Table) -> pa.ChunkedArray[Any]:
        selection = self.selection
        if selection is None:
            return pa.chunked_array([array_of([True] * rows.num_rows, pa.bool_())])
        return selection.mask(rows)
