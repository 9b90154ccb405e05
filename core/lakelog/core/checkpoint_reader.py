"""Checkpoints, read as columns: small actions as objects, files as rows.

A classic checkpoint is one Parquet file, or several parts. A V2 checkpoint has a top level, which
is Parquet or JSON and may go by a classic name, and it may keep its file actions in sidecars:
Parquet files that the top level names (PROTOCOL.md, "V2 Spec"). What is named is taken from
`_delta_log/_sidecars`, wherever the name says that it lies: nothing else is a sidecar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.checkpoint_columns import cast, plain, read_columns
from lakelog.core.checkpoint_top import ACTIONS, SmallActions, TopLevel
from lakelog.core.errors import CorruptCheckpointError, CorruptCommitError
from lakelog.core.file_table import FILE_SCHEMA, JSON_NAMES, TOMBSTONE_SCHEMA
from lakelog.core.paths import sidecar_path
from lakelog.core.struct_stats import stats_from_struct

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        promised = {"its own metadata": self.top_level().num_files}
        promised["_last_checkpoint"] = None if self._hint is None else self._hint.num_of_add_files
        for source, expected in promised.items():
            if expected is not None and expected != table.num_rows:
                raise self.corrupt(
                    f"it has {table.num_rows} files and {source} promises {expected}"
                )
        return table

    def tombstones(self) -> pa.Table:
        """The removed files that the checkpoint still lists, as rows of `TOMBSTONE_SCHEMA`.

        Raises:
            CorruptCheckpointError: it can't be read.
        """
        return self._rows("remove", TOMBSTONE_SCHEMA)

    def corrupt(self, why: str) -> CorruptCheckpointError:
        """The error that says what is wrong with the checkpoint."""
        path = self.checkpoint.files[0].path
        return CorruptCheckpointError(
            f"the checkpoint {path} (version {self.checkpoint.version}) can't be used: {why}. "
            "Move it away: an older checkpoint, or the commits alone, give the same table as "
            "long as they are there.",
            table=self._table,
            path=path,
            version=self.checkpoint.version,
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
        try:
            data = self._store.read_bytes(path)
        except OSError as exc:
            raise self.corrupt(f"reading it failed ({exc})") from exc
        return TopLevel.of_json(data, self.checkpoint.version, path)

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
        for part in self.checkpoint.files:
            for batch in self._batches(part.path, list(ACTIONS)):
                for kind in batch.schema.names:
                    column = batch.column(kind)
                    if column.null_count < len(column):
                        for value in column.drop_null().to_pylist():
                            yield kind, plain(value, column.type)

    def _rows(self, kind: str, schema: pa.Schema) -> pa.Table:
        top = self.top_level()
        parts: list[tuple[str, int | None]] = []
        tables = []
        if top.inline is not None:
            try:
                tables.append(top.inline.added() if kind == "add" else top.inline.removed())
            except CorruptCommitError as exc:
                raise self.corrupt(str(exc)) from exc
        else:
            parts += [(each.path, None) for each in self.checkpoint.files]
        parts += [(sidecar_path(self._table, s.path), s.size_in_bytes) for s in top.sidecars]
        if len(parts) < 2:
            tables += [self._part(path, size, kind, schema) for path, size in parts]
        else:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(min(_THREADS, len(parts)), "lakelog-checkpoint") as pool:
                tables += pool.map(lambda part: self._part(part[0], part[1], kind, schema), parts)
        table = pa.concat_tables([each.select(schema.names) for each in tables])
        if table.column("path").null_count:
            raise self.corrupt(f"one of its {kind} actions has no path")
        return table

    def _part(self, path: str, size: int | None, kind: str, schema: pa.Schema) -> pa.Table:
        """The rows of one Parquet file."""
        wanted = [f"{kind}.{JSON_NAMES[name]}" for name in schema.names]
        if kind == "add":
            wanted.append("add.stats_parsed")
        batches = []
        for batch in self._batches(path, wanted, size):
            if kind not in batch.schema.names:
                continue
            column = batch.column(kind)
            rows = column.drop_null() if column.null_count else column
            if len(rows):
                batches.append(self._conform(rows, schema))
        return pa.Table.from_batches(batches, schema=schema)

    def _conform(self, rows: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
        children = dict(zip((each.name for each in rows.type), rows.flatten(), strict=True))
        columns = []
        try:
            for each in schema:
                name = JSON_NAMES[each.name]
                found = children.get(name)
                if found is not None:
                    columns.append(cast(found, each.type))
                elif name == "stats" and "stats_parsed" in children:
                    columns.append(stats_from_struct(children["stats_parsed"]))
                else:
                    columns.append(pa.nulls(len(rows), each.type))
        except pa.ArrowException as exc:
            raise self.corrupt(f"a column has an unexpected type ({exc})") from exc
        return pa.record_batch(columns, schema=schema)

    def _batches(
        self, path: str, columns: list[str], size: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Stream these columns of one file, as far as they are there."""
        import pyarrow.parquet as pq

        try:
            source = self._store.filesystem.open_input_file(self._store.filesystem_path(path))
            # Without checksums a flipped bit in a page can look like another path.
            with source, pq.ParquetFile(source, page_checksum_verification=True) as file:
                if size is not None and source.size() != size:
                    raise self.corrupt(
                        f"its sidecar {path} has {source.size()} bytes instead of {size}"
                    )
                yield from read_columns(file, columns)
        # A truncated page shows as ArrowInvalid, as OSError, or as a text that is no UTF-8.
        except (pa.ArrowException, OSError, UnicodeDecodeError) as exc:
            raise self.corrupt(f"reading {path} failed ({exc})") from exc
