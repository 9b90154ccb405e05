"""The Parquet files of a checkpoint: file actions out of one of them, as rows.

What reads them can travel: it holds a file system and no store, so that the parts of a large
checkpoint can be read by other processes (`replayer.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.checkpoint_columns import cast, read_columns
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.file_table import JSON_NAMES
from lakelog.core.log_budget import AS_OBJECTS, LogBudget
from lakelog.core.struct_stats import stats_from_struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.parquet as pq
    from pyarrow.fs import FileSystem

__all__ = ["Part", "PartReader", "corrupt_checkpoint"]


_TAIL = 8
"""Bytes at the end of a Parquet file: the length of its footer, and a magic number."""
_LEAST_ROW = 8
"""Bytes that a row of a checkpoint takes in memory, whatever it says."""
# Of the limit, for one of the batches that several threads read at once.
_SHARE = 32


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a checkpoint."""

    path: str
    place: str
    """The same as the file system spells it."""
    size: int | None = None
    """The bytes that a sidecar must have; `None` where nothing promises any."""


@dataclass(frozen=True, slots=True)
class PartReader:
    """Reads the parts of one checkpoint."""

    filesystem: FileSystem
    table: str
    version: int
    top: str
    """The checkpoint's first file, which errors name."""
    limit: int
    """Bytes of memory that a checkpoint may take."""

    def rows(
        self, part: Part, kind: str, schema: pa.Schema, share: tuple[int, int] = (0, 1)
    ) -> Iterator[pa.RecordBatch]:
        """The file actions of a kind.

        Args:
            part: which file.
            kind: `add` or `remove`.
            schema: `FILE_SCHEMA` or `TOMBSTONE_SCHEMA`.
            share: which row groups, as `read_columns` has it.

        Raises:
            CorruptCheckpointError: the file can't be read, or an action has no path.
        """
        wanted = [f"{kind}.{JSON_NAMES[name]}" for name in schema.names]
        if kind == "add":
            wanted.append("add.stats_parsed")
        for batch in self.columns(part, wanted, share):
            if kind not in batch.schema.names:
                continue
            column = batch.column(kind)
            rows = column.drop_null() if column.null_count else column
            if len(rows):
                found = self._conform(rows, schema)
                if found.column("path").null_count:
                    raise self.corrupt(f"one of its {kind} actions has no path")
                yield found

    def columns(
        self, part: Part, columns: list[str], share: tuple[int, int] = (0, 1)
    ) -> Iterator[pa.RecordBatch]:
        """Stream these columns of one file, as far as they are there.

        Raises:
            CorruptCheckpointError: the file can't be read.
        """
        import pyarrow.parquet as pq

        path = part.path
        try:
            source = self.filesystem.open_input_file(part.place)
            self._check_footer(source, path)
            # Without checksums a flipped bit in a page can look like another path.
            with source, pq.ParquetFile(source, page_checksum_verification=True) as file:
                if part.size is not None and source.size() != part.size:
                    raise self.corrupt(
                        f"its sidecar {path} has {source.size()} bytes instead of {part.size}"
                    )
                self._check_groups(file, path)
                yield from read_columns(file, source, columns, share, room=self.limit // _SHARE)
        # A truncated page shows as ArrowInvalid, as OSError, or as a text that is no UTF-8.
        except (pa.ArrowException, OSError, UnicodeDecodeError) as exc:
            raise self.corrupt(f"reading {path} failed ({exc})") from exc

    def _check_footer(self, source: Any, path: str) -> None:
        """Refuse a footer that would take more memory than there is, before it is parsed."""
        size = source.size()
        if size * AS_OBJECTS <= self.limit or size < _TAIL:
            return  # no footer is longer than its file
        length = int.from_bytes(source.read_at(_TAIL, size - _TAIL)[:4], "little")
        if length * AS_OBJECTS > self.limit:
            raise LogBudget(self.limit).refusal(path, length * AS_OBJECTS)

    def _check_groups(self, file: pq.ParquetFile, path: str) -> None:
        """Refuse a row group that can't be decoded: parts of it are, as a whole."""
        about = file.metadata
        # What a row says is counted when it is decoded; that it is there, is counted here.
        if about.num_rows * _LEAST_ROW > self.limit:
            raise LogBudget(self.limit).refusal(path, about.num_rows * _LEAST_ROW)
        for number in range(about.num_row_groups):
            size = about.row_group(number).total_byte_size
            if size > self.limit:
                raise LogBudget(self.limit).refusal(path, size)

    def corrupt(self, why: str) -> CorruptCheckpointError:
        """The error that says what is wrong with the checkpoint."""
        return corrupt_checkpoint(self.table, self.version, self.top, why)

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


def corrupt_checkpoint(table: str, version: int, path: str, why: str) -> CorruptCheckpointError:
    """The error about a checkpoint, whose first file is `path`."""
    return CorruptCheckpointError(
        f"the checkpoint {path} (version {version}) can't be used: {why}. "
        "Move it away: an older checkpoint, or the commits alone, give the same table as "
        "long as they are there.",
        table=table,
        path=path,
        version=version,
    )
