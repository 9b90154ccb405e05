"""Classic checkpoints, read as columns: small actions as objects, files as rows.

Columns are taken by name and cast to ours, so a checkpoint by another writer may lack any of
them, or hold more. Row groups are streamed and only what is asked for is decoded.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions import DomainMetadata, Metadata, Protocol, SetTransaction
from lakelog.core.errors import CorruptCheckpointError, UnsupportedFeatureError
from lakelog.core.file_table import FILE_SCHEMA, JSON_NAMES, TOMBSTONE_SCHEMA
from lakelog.core.struct_stats import stats_from_struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.log_segment import CheckpointFiles, LogSegment
    from lakelog.logstores._contract import LogStore

__all__ = ["CheckpointReader", "SmallActions"]

_log = logging.getLogger(__name__)

_SMALL: dict[str, type[Protocol | Metadata | SetTransaction | DomainMetadata]] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
}
_V2 = ("sidecar", "checkpointMetadata")
# A field of each action that is never null.
_MARK = {
    "protocol": "minReaderVersion",
    "metaData": "id",
    "txn": "appId",
    "domainMetadata": "domain",
    "sidecar": "path",
    "checkpointMetadata": "version",
    "add": "path",
    "remove": "path",
}


@dataclass(slots=True)
class SmallActions:
    """Everything of a state but its files."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)


class CheckpointReader:
    """The checkpoint of a segment."""

    def __init__(self, store: LogStore, segment: LogSegment) -> None:
        """Open nothing yet; the segment has a checkpoint."""
        assert segment.checkpoint is not None
        self._store = store
        self._table = segment.table
        self._hint = segment.hint
        self.checkpoint: CheckpointFiles = segment.checkpoint

    def small_actions(self) -> SmallActions:
        """Read all rows that are no file actions.

        Raises:
            CorruptCheckpointError: it can't be read, or has not one protocol and one metadata.
            UnsupportedFeatureError: it is a V2 checkpoint under a classic name.
        """
        found = SmallActions()
        for kind, value in self._small_rows():
            if kind in _V2:
                raise self._v2()
            match self._action(kind, value):
                case Protocol() as protocol:
                    found.protocol = protocol
                case Metadata() as metadata:
                    found.metadata = metadata
                case SetTransaction() as txn:
                    found.transactions[txn.app_id] = txn
                case DomainMetadata() as domain:
                    found.domains[domain.domain] = domain
        if found.protocol is None or found.metadata is None:
            lacking = "protocol" if found.protocol is None else "metaData"
            raise self.corrupt(f"it has no {lacking} action")
        return found

    def files(self) -> pa.Table:
        """The live files of the checkpoint's version, as rows of `FILE_SCHEMA`.

        Raises:
            CorruptCheckpointError: it can't be read, or holds fewer files than its hint says.
        """
        table = self._rows("add", FILE_SCHEMA)
        expected = None if self._hint is None else self._hint.num_of_add_files
        if expected is not None and expected != table.num_rows:
            raise self.corrupt(
                f"it has {table.num_rows} files and _last_checkpoint promises {expected}"
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

    def _action(
        self, kind: str, value: dict[str, Any]
    ) -> Protocol | Metadata | SetTransaction | DomainMetadata:
        try:
            return _SMALL[kind].from_json_value(value)
        except TypeError as exc:
            raise self.corrupt(f"a {kind} action lacks a field ({exc})") from exc

    def _small_rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for batch in self._batches([*_SMALL, *_V2]):
            for kind in batch.schema.names:
                column = batch.column(kind)
                if column.null_count < len(column):
                    for value in column.drop_null().to_pylist():
                        yield kind, _plain(value, column.type)

    def _rows(self, kind: str, schema: pa.Schema) -> pa.Table:
        wanted = [f"{kind}.{JSON_NAMES[name]}" for name in schema.names]
        if kind == "add":
            wanted.append("add.stats_parsed")
        batches = []
        for batch in self._batches(wanted):
            if kind not in batch.schema.names:
                continue
            column = batch.column(kind)
            rows = column.drop_null() if column.null_count else column
            if len(rows):
                batches.append(self._conform(rows, schema))
        table = pa.Table.from_batches(batches, schema=schema)
        if table.column("path").null_count:
            raise self.corrupt(f"one of its {kind} actions has no path")
        return table

    def _conform(self, rows: pa.StructArray, schema: pa.Schema) -> pa.RecordBatch:
        children = dict(zip((each.name for each in rows.type), rows.flatten(), strict=True))
        columns = []
        try:
            for each in schema:
                name = JSON_NAMES[each.name]
                found = children.get(name)
                if found is not None:
                    columns.append(_cast(found, each.type))
                elif name == "stats" and "stats_parsed" in children:
                    columns.append(stats_from_struct(children["stats_parsed"]))
                else:
                    columns.append(pa.nulls(len(rows), each.type))
        except pa.ArrowException as exc:
            raise self.corrupt(f"a column has an unexpected type ({exc})") from exc
        return pa.record_batch(columns, schema=schema)

    def _batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Stream these columns, as far as they are there, from all parts."""
        import pyarrow.parquet as pq

        filesystem = self._store.filesystem
        try:
            for part in self.checkpoint.files:
                path = self._store.filesystem_path(part.path)
                source = filesystem.open_input_file(path)
                # Without checksums a flipped bit in a page can look like another path.
                with source, pq.ParquetFile(source, page_checksum_verification=True) as file:
                    yield from _read(file, columns)
        # A truncated page shows as ArrowInvalid, as OSError, or as a text that is no UTF-8.
        except (pa.ArrowException, OSError, UnicodeDecodeError) as exc:
            raise self.corrupt(f"reading it failed ({exc})") from exc

    def _v2(self) -> UnsupportedFeatureError:
        return UnsupportedFeatureError(
            f"the checkpoint {self.checkpoint.files[0].path} is a V2 checkpoint under a classic "
            "name, and this version of lakelog can't read those. Read the table with a client "
            "that has the table feature v2Checkpoint.",
            table=self._table,
            features=["v2Checkpoint"],
            access="read",
        )


def _read(file: Any, columns: list[str]) -> Iterator[pa.RecordBatch]:
    schema = file.schema_arrow
    there = [path for path in columns if _has(schema, path)]
    # Statistics come as JSON, as a struct, or both: the struct only matters alone.
    if "add.stats" in there and "add.stats_parsed" in there:
        there.remove("add.stats_parsed")
    if not there:
        return
    groups = [
        index
        for index in range(file.metadata.num_row_groups)
        if _may_hold(file.metadata.row_group(index), {path.partition(".")[0] for path in there})
    ]
    rows = 0
    for batch in file.iter_batches(batch_size=1 << 17, row_groups=groups, columns=there):
        rows += batch.num_rows
        yield batch
    expected = sum(file.metadata.row_group(index).num_rows for index in groups)
    if rows != expected:
        raise pa.ArrowInvalid(f"{rows} rows instead of {expected}")


def _may_hold(group: Any, kinds: set[str]) -> bool:
    """Whether a row group has actions of these kinds, by the statistics of their first field."""
    marks = {f"{kind}.{_MARK[kind]}" for kind in kinds}
    for index in range(group.num_columns):
        column = group.column(index)
        if column.path_in_schema in marks:
            marks.remove(column.path_in_schema)
            found = column.statistics
            if found is None or not found.has_null_count or found.null_count < group.num_rows:
                return True
    # A kind whose first field the file lacks can't be judged.
    return bool(marks)


def _has(schema: pa.Schema, path: str) -> bool:
    kind, _, name = path.partition(".")
    index = schema.get_field_index(kind)
    if index < 0:
        return False
    return not name or schema.field(index).type.get_field_index(name) >= 0


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type == target:
        return array
    if pa.types.is_struct(target):
        children = dict(zip((f.name for f in array.type), array.flatten(), strict=True))
        columns = [
            _cast(children[f.name], f.type) if f.name in children else pa.nulls(len(array), f.type)
            for f in target
        ]
        return pa.StructArray.from_arrays(columns, fields=list(target), mask=array.is_null())
    if pa.types.is_map(target) and pa.types.is_map(array.type):
        try:
            return array.cast(target)
        except pa.ArrowException:
            # Arrow can't cast every map to every other; such files are rare enough for a loop.
            return pa.array(array.to_pylist(), target)
    return array.cast(target)


def _plain(value: Any, of: pa.DataType) -> Any:
    """Arrow's Python value as that of JSON: maps as dicts, absent fields absent."""
    if value is None:
        return None
    if pa.types.is_map(of):
        return {key: _plain(item, of.item_type) for key, item in value}
    if pa.types.is_struct(of):
        fields = ((each.name, each.type) for each in of)
        return {n: _plain(value[n], kind) for n, kind in fields if value[n] is not None}
    if pa.types.is_list(of) or pa.types.is_large_list(of):
        return [_plain(item, of.value_type) for item in value]
    return value
