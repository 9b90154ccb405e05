"""Checkpoints, read as columns: small actions as objects, files as rows.

A classic checkpoint is one Parquet file, or several parts. A V2 checkpoint has a top level, which
is Parquet or JSON and may go by a classic name, and it may keep its file actions in sidecars:
Parquet files that the top level names (PROTOCOL.md, "V2 Spec"). What is named is taken from
`_delta_log/_sidecars`, wherever the name says that it lies: nothing else is a sidecar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.checkpoint_columns import plain
from lakelog.core.checkpoint_parts import Part, PartReader, corrupt_checkpoint
from lakelog.core.checkpoint_top import ACTIONS, SmallActions, TopLevel
from lakelog.core.errors import CorruptCommitError
from lakelog.core.file_table import FILE_SCHEMA, TOMBSTONE_SCHEMA
from lakelog.core.log_budget import AS_OBJECTS, LogBudget, read_log_file
from lakelog.core.paths import sidecar_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.core.errors import CorruptCheckpointError
    from lakelog.core.log_segment import CheckpointFiles, LogSegment
    from lakelog.logstores._contract import LogStore

__all__ = ["CheckpointReader", "SmallActions"]

# Sidecars are large, and each is decoded by the threads of pyarrow already.
_THREADS = 4


class CheckpointReader:
    """The checkpoint of a segment."""

    def __init__(self, store: LogStore, segment: LogSegment) -> None:
        """Open nothing yet; the segment has a checkpoint."""
        assert segment.checkpoint is not None
        self._store = store
        self._table = segment.table
        self._hint = segment.hint
        self._top: TopLevel | None = None
        self.checkpoint: CheckpointFiles = segment.checkpoint

    def small_actions(self) -> SmallActions:
        """Read all rows that are no file actions.

        Raises:
            CorruptCheckpointError: it can't be read, has not one protocol and one metadata, or is
                a V2 checkpoint that does not say so.
        """
        return self.top_level().small

    def sidecars(self) -> tuple[str, ...]:
        """The paths of the sidecars, in the checkpoint's order.

        Raises:
            CorruptCheckpointError: as `small_actions`.
        """
        names = (each.path for each in self.top_level().sidecars)
        return tuple(sidecar_path(self._table, name) for name in names)

    def files(self) -> pa.Table:
        """The live files of the checkpoint's version, as rows of `FILE_SCHEMA`.

        Raises:
            CorruptCheckpointError: it can't be read, or holds fewer files than it or its hint
                says.
        """
        table = self._rows("add", FILE_SCHEMA)
        self.check_count(table.num_rows)
        return table

    def check_count(self, files: int) -> None:
        """Compare how many live files were found with what is promised.

        Raises:
            CorruptCheckpointError: they differ.
        """
        promised = {"its own metadata": self.top_level().num_files}
        promised["_last_checkpoint"] = None if self._hint is None else self._hint.num_of_add_files
        for source, expected in promised.items():
            if expected is not None and expected != files:
                raise self.corrupt(f"it has {files} files and {source} promises {expected}")

    def tombstones(self) -> pa.Table:
        """The removed files that the checkpoint still lists, as rows of `TOMBSTONE_SCHEMA`.

        Raises:
            CorruptCheckpointError: it can't be read.
        """
        return self._rows("remove", TOMBSTONE_SCHEMA)

    def corrupt(self, why: str) -> CorruptCheckpointError:
        """The error that says what is wrong with the checkpoint."""
        return corrupt_checkpoint(
            self._table, self.checkpoint.version, self.checkpoint.files[0].path, why
        )

    def top_level(self) -> TopLevel:
        """All that is no file action, and where those are.

        Raises:
            CorruptCheckpointError: as `small_actions`.
        """
        if self._top is None:
            try:
                self._top = self._read_top()
            except (ValueError, TypeError, KeyError, CorruptCommitError) as exc:
                raise self.corrupt(str(exc)) from exc
            self._check(self._top)
        return self._top

    def _read_top(self) -> TopLevel:
        if not self.checkpoint.is_json:
            return TopLevel.of_rows(self._small_rows())
        path = self.checkpoint.files[0].path
        budget = LogBudget.of(self._store)
        budget.check_files(self.checkpoint.files)
        try:
            data = read_log_file(self._store, path, budget)
        except OSError as exc:
            raise self.corrupt(f"reading it failed ({exc})") from exc
        return TopLevel.of_json(data, self.checkpoint.version, path, budget)

    def _check(self, top: TopLevel) -> None:
        for kind, action in (("protocol", top.small.protocol), ("metaData", top.small.metadata)):
            if action is None:
                raise self.corrupt(f"it has no {kind} action")
        about = top.metadata
        if about is None:
            if self.checkpoint.is_v2 or top.sidecars:
                raise self.corrupt("it has no checkpointMetadata action, which a V2 one needs")
        elif about.version != self.checkpoint.version:
            raise self.corrupt(f"it says that it is of version {about.version}")

    def _small_rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        budget = LogBudget.of(self._store)
        for part in self.checkpoint.files:
            for batch in self.part_reader().columns(self._part(part.path), list(ACTIONS)):
                for kind in batch.schema.names:
                    column = batch.column(kind)
                    if column.null_count < len(column):
                        held = column.drop_null()
                        budget.take(AS_OBJECTS * held.nbytes, part.path)
                        for value in held.to_pylist():
                            yield kind, plain(value, column.type)

    def _rows(self, kind: str, schema: pa.Schema) -> pa.Table:
        top = self.top_level()
        tables = []
        if top.inline is not None:
            try:
                tables.append(top.inline.added() if kind == "add" else top.inline.removed())
            except CorruptCommitError as exc:
                raise self.corrupt(str(exc)) from exc
        reader, parts = self.part_reader(), self.parts()
        budget = LogBudget.of(self._store)

        def counted(batches: Iterable[pa.RecordBatch], path: str) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                budget.take(batch.nbytes, path)
                yield batch

        def rows(part: Part) -> pa.Table:
            batches = counted(reader.rows(part, kind, schema), part.path)
            return pa.Table.from_batches(batches, schema=schema)

        if len(parts) < 2:
            tables += map(rows, parts)
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(_THREADS, len(parts)), "lakelog-checkpoint") as pool:
                tables += pool.map(rows, parts)
        return pa.concat_tables([each.select(schema.names) for each in tables])

    def parts(self) -> list[Part]:
        """The Parquet files that hold its file actions, in its order.

        Raises:
            CorruptCheckpointError: as `small_actions`.
        """
        top = self.top_level()
        here = [] if top.inline is not None else [each.path for each in self.checkpoint.files]
        sidecars = (
            self._part(sidecar_path(self._table, each.path), each.size_in_bytes)
            for each in top.sidecars
        )
        return [*map(self._part, here), *sidecars]

    def part_reader(self) -> PartReader:
        """What reads `parts`, here or elsewhere."""
        first = self.checkpoint.files[0].path
        version, limit = self.checkpoint.version, LogBudget.of(self._store).limit
        return PartReader(self._store.filesystem, self._table, version, first, limit)

    def _part(self, path: str, size: int | None = None) -> Part:
        return Part(path, self._store.filesystem_path(path), size)
