"""Checkpoints, read as columns: small actions as objects, files as rows.

A classic checkpoint is one Parquet file, or several parts. A V2 checkpoint has a top level, which
is Parquet or JSON and may have a classic name, and it may keep its file actions in sidecars:
Parquet files that the top level names (PROTOCOL.md, "V2 Spec"). They are always read from
`_delta_log/_sidecars`, whatever folder the name gives: nothing else is a sidecar.

On an object store a small file is fetched as a whole, in one round trip. Range by range it takes
five to seven, one after the other: the length, the footer, and each column of each kind of action.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow as pa

from lakelog.core.actions import (
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    SidecarFile,
)
from lakelog.core.actions.file_table import FILE_SCHEMA, TOMBSTONE_SCHEMA
from lakelog.core.actions.json_fields import MalformedFieldError
from lakelog.core.compute import without_nulls
from lakelog.core.errors import CorruptCommitError
from lakelog.core.log.budget import AS_OBJECTS, LogBudget, read_log_file
from lakelog.core.log.checkpoint_parts import Part, PartReader, corrupt_checkpoint, plain
from lakelog.core.log.commit_file import Commit, parse_commit
from lakelog.core.log.far import fetches_whole
from lakelog.core.log.file_names import sidecar_path
from lakelog.core.log.json_lines import numbered_lines
from lakelog.logstores.threads import DECODERS, REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.core.errors import CorruptCheckpointError
    from lakelog.core.log.segment import CheckpointFiles, LogSegment
    from lakelog.logstores.contract import LogStore

_WHOLE = 8 << 20
"""Bytes up to which a file is fetched as a whole: at 100 MB a second they take as long as the two
or three round trips that are saved."""


class CheckpointReader:
    """The checkpoint of a segment."""

    def __init__(self, store: LogStore, segment: LogSegment) -> None:
        """Open nothing yet; the segment has a checkpoint."""
        assert segment.checkpoint is not None
        self._store = store
        self._table = segment.table
        self._hint = segment.hint
        self._top: TopLevel | None = None
        self._fetched: dict[str, bytes] = {}
        self.checkpoint: CheckpointFiles = segment.checkpoint

    def small_actions(self) -> SmallActions:
        """Read all rows but file actions.

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
                raise self.corrupt(f"it has {files} files, but {source} promises {expected}")

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
        """All actions but file actions, and where those are.

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
        budget = LogBudget.from_store(self._store)
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
            raise self.corrupt(f"it says it is for version {about.version}")

    def _small_rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        budget = LogBudget.from_store(self._store)
        parts = self.top_parts()
        reader = self.part_reader(opens=any(map(self._is_opened, parts)))
        for part in parts:
            for batch in reader.columns(part, list(ACTIONS)):
                for kind in batch.schema.names:
                    column = batch.column(kind)
                    if column.null_count < len(column):
                        held = without_nulls(column)
                        budget.take(AS_OBJECTS * held.nbytes, part.path)
                        for value in held.to_pylist():
                            yield kind, self._plain(value, column.type, part.path)

    def _plain(self, value: Any, of: pa.DataType, path: str) -> Any:
        try:
            return plain(value, of)
        except UnicodeDecodeError as exc:
            raise self.corrupt(f"reading {path} failed ({exc})") from exc

    def _rows(self, kind: str, schema: pa.Schema) -> pa.Table:
        top = self.top_level()
        tables = []
        if top.inline is not None:
            try:
                tables.append(top.inline.added() if kind == "add" else top.inline.removed())
            except CorruptCommitError as exc:
                raise self.corrupt(str(exc)) from exc
        here = [] if top.inline is not None else self.top_parts()
        # They were kept for this; a snapshot may live for long.
        self._fetched = {}
        sidecars = self._sidecar_parts(top)
        parts = [*here, *sidecars]
        reader = self.part_reader(opens=any(map(self._is_opened, parts)))
        budget = LogBudget.from_store(self._store)

        def counted(batches: Iterable[pa.RecordBatch], path: str) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                budget.take(batch.nbytes, path)
                yield batch

        def rows(part: Part) -> pa.Table:
            if part.data is None and not self._is_opened(part):
                part = replace(part, data=self._fetch(part.path))
            batches = counted(reader.rows(part, kind, schema), part.path)
            return pa.Table.from_batches(batches, schema=schema)

        # Sidecars are large; what is fetched as a whole waits more than it decodes.
        waiting = all(self._is_fetched(each.size or _WHOLE + 1) for each in sidecars)
        tables += at_once(rows, parts, REQUESTS if waiting else DECODERS, "lakelog-checkpoint")
        return pa.concat_tables([each.select(schema.names) for each in tables])

    def parts(self) -> list[Part]:
        """The Parquet files that hold its file actions, in its order.

        Raises:
            CorruptCheckpointError: as `small_actions`.
        """
        top = self.top_level()
        here = [] if top.inline is not None else [each.path for each in self.checkpoint.files]
        return [*map(self._part, here), *self._sidecar_parts(top)]

    def _sidecar_parts(self, top: TopLevel) -> list[Part]:
        return [
            self._part(sidecar_path(self._table, each.path), each.size_in_bytes)
            for each in top.sidecars
        ]

    def top_parts(self) -> list[Part]:
        """The Parquet files of the top level, with their bytes where those are better fetched.

        Raises:
            CorruptCheckpointError: one can't be fetched.
        """
        paths = [each.path for each in self.checkpoint.files]
        if not self._is_fetched(self.checkpoint.size_in_bytes):
            return [self._part(each) for each in paths]
        fetched = self._fetched
        if not fetched:
            fetched = dict(zip(paths, self._fetch_all(paths), strict=True))
            self._fetched = fetched
        return [replace(self._part(each), data=fetched[each]) for each in paths]

    def _is_opened(self, part: Part) -> bool:
        """Whether a part is read range by range."""
        return part.data is None and (part.size is None or not self._is_fetched(part.size))

    def _is_fetched(self, size: int) -> bool:
        return size <= _WHOLE and fetches_whole(self._store)

    def _fetch_all(self, paths: list[str]) -> list[bytes]:
        return at_once(self._fetch, paths, REQUESTS, "lakelog-checkpoint")

    def _fetch(self, path: str) -> bytes:
        try:
            return read_log_file(self._store, path, LogBudget.from_store(self._store))
        except OSError as exc:
            raise self.corrupt(f"reading {path} failed ({exc})") from exc

    def part_reader(self, *, opens: bool = True) -> PartReader:
        """What reads `parts`, here or elsewhere.

        Args:
            opens: whether one of them has to be opened; the file system of an object store takes
                20 ms to make.
        """
        first = self.checkpoint.files[0].path
        version, limit = self.checkpoint.version, LogBudget.from_store(self._store).limit
        filesystem = self._store.filesystem if opens else None
        return PartReader(filesystem, self._table, version, first, limit)

    def _part(self, path: str, size: int | None = None) -> Part:
        return Part(path, self._store.filesystem_path(path), size)


ACTIONS: Final[
    dict[
        str,
        type[Protocol | Metadata | SetTransaction | DomainMetadata]
        | type[SidecarFile | CheckpointMetadata],
    ]
] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
    "sidecar": SidecarFile,
    "checkpointMetadata": CheckpointMetadata,
}
"""Column of a checkpoint -> class, for the columns that hold no file actions."""

_V2 = ("sidecar", "checkpointMetadata")


@dataclass(slots=True)
class SmallActions:
    """Everything of a state but its files."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)


@dataclass(slots=True)
class TopLevel:
    """What the top level says."""

    small: SmallActions = field(default_factory=SmallActions)
    metadata: CheckpointMetadata | None = None
    sidecars: list[SidecarFile] = field(default_factory=list)
    inline: Commit | None = None
    """Of JSON: holds its file actions."""

    @property
    def num_files(self) -> int | None:
        """How many files the checkpoint says that it has; Spark's writers do."""
        tags = None if self.metadata is None else self.metadata.tags
        text = None if tags is None else tags.get("numOfAddFiles")
        return int(text) if text is not None and text.isdecimal() else None

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[str, dict[str, Any]]]) -> TopLevel:
        """Build it from the names and JSON values of actions.

        Raises:
            ValueError: an action lacks a field.
        """
        top = cls()
        for kind, value in rows:
            top._take(kind, value)
        return top

    @classmethod
    def of_json(
        cls, data: bytes, version: int, path: str, budget: LogBudget | None = None
    ) -> TopLevel:
        """Read a top level that is lines of JSON.

        Raises:
            CorruptCommitError: a line is not an action.
            ValueError: an action lacks a field.
            LogTooLargeError: it would take more memory than there is.
        """
        commit = parse_commit(data, version, path, budget)
        small = SmallActions(commit.protocol, commit.metadata, commit.transactions, commit.domains)
        top = cls(small, inline=commit)
        for _, line in numbered_lines(data):
            # The others were parsed above, and a checkpoint with inline adds has many.
            if not any(f'"{kind}"'.encode() in line[:32] for kind in _V2):
                continue
            body = orjson.loads(line)
            for kind in _V2:
                if body.get(kind) is not None:
                    top._take(kind, body[kind])
        return top

    def _take(self, kind: str, value: dict[str, Any]) -> None:
        try:
            action = ACTIONS[kind].from_json_value(value)
        except MalformedFieldError as exc:
            raise ValueError(f"a {kind} action is malformed ({exc})") from None
        match action:
            case Protocol():
                self.small.protocol = action
            case Metadata():
                self.small.metadata = action
            case SetTransaction():
                self.small.transactions[action.app_id] = action
            case DomainMetadata():
                self.small.domains[action.domain] = action
            case SidecarFile():
                self.sidecars.append(action)
            case CheckpointMetadata():
                self.metadata = action
