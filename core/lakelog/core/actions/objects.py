"""The actions of the Delta log, read and written without loss.

Every class keeps the JSON fields that it does not know in `extra` and writes them back after its
own, and an action of an unknown kind is kept whole as `UnknownAction`, so that a line written by
a newer client survives a round trip (PROTOCOL.md, "Actions": readers ignore what they do not
know; we neither act on it nor lose it).

JSON values are what `orjson` gives: `str`, `int`, `float`, `bool`, `None`, `list`, `dict`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import orjson

from lakelog.core.actions.json_fields import JsonFields, MalformedFieldError
from lakelog.core.clock import utc_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime


class _Action(JsonFields):
    """What every action of a commit file has: a key, and a line."""

    __slots__ = ()

    kind: ClassVar[str]
    """The top-level JSON key."""

    def to_json(self) -> str:
        """The action's line in a commit file, without the line end."""
        return orjson.dumps({self.kind: self.to_json_value()}).decode()


def _empty() -> Mapping[str, Any]:
    return {}


def _texts(value: Any) -> Any:
    """A mapping of texts, of one that another client wrote with nulls, numbers or flags."""
    if not isinstance(value, Mapping):
        return value  # and refused, where it is checked
    return {
        key: each if isinstance(each, str) else orjson.dumps(each).decode()
        for key, each in value.items()
        if each is not None
    }


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and math.isfinite(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionVectorDescriptor(JsonFields):
    """Where the deletion vector of a file lies (PROTOCOL.md, "Deletion Vectors")."""

    _ints: ClassVar[frozenset[str]] = frozenset({"offset", "size_in_bytes"})

    storage_type: str
    path_or_inline_dv: str
    offset: int | None = None
    size_in_bytes: int
    cardinality: int
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddFile(_Action):
    """A data file becomes part of the table."""

    kind: ClassVar[str] = "add"
    _paths: ClassVar[frozenset[str]] = frozenset({"path"})
    _read_as: ClassVar[Mapping[str, Any]] = {"modification_time": 0, "data_change": True}
    _nested: ClassVar[Mapping[str, type[JsonFields]]] = {
        "deletion_vector": DeletionVectorDescriptor
    }

    path: str
    """URI, percent-encoded, relative to the table's root or absolute."""
    partition_values: Mapping[str, str | None]
    """Physical column name -> serialised value, `None` for null."""
    size: int
    """Bytes."""
    modification_time: int
    """Milliseconds since the epoch."""
    data_change: bool
    stats: str | None = None
    """Statistics as JSON text."""
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty)

    @property
    def num_records(self) -> int | None:
        """Physical rows by the statistics; `None` where they do not say."""
        if not self.stats:
            return None
        try:
            count = orjson.loads(self.stats).get("numRecords")
        except (orjson.JSONDecodeError, AttributeError):
            return None
        return count if isinstance(count, int) else None

    def remove(self, deletion_timestamp: int, *, data_change: bool = True) -> RemoveFile:
        """The tombstone that takes this file out of the table.

        Args:
            deletion_timestamp: milliseconds since the epoch.
            data_change: `False` when the same rows stay in the table in another file.
        """
        return RemoveFile(
            path=self.path,
            deletion_timestamp=deletion_timestamp,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=self.partition_values,
            size=self.size,
            tags=self.tags,
            deletion_vector=self.deletion_vector,
            base_row_id=self.base_row_id,
            default_row_commit_version=self.default_row_commit_version,
            stats=self.stats,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFile(_Action):
    """A data file leaves the table; the tombstone stays for `VACUUM` and for replay."""

    kind: ClassVar[str] = "remove"
    _paths: ClassVar[frozenset[str]] = frozenset({"path"})
    _nested: ClassVar[Mapping[str, type[JsonFields]]] = {
        "deletion_vector": DeletionVectorDescriptor
    }

    path: str
    deletion_timestamp: int | None = None
    """Milliseconds since the epoch; missing counts as 0, a tombstone long expired."""
    data_change: bool = True
    extended_file_metadata: bool | None = None
    """Whether the fields below can be relied on."""
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    stats: str | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class AddCDCFile(_Action):
    """A file of change data; no part of the table's state."""

    kind: ClassVar[str] = "cdc"
    _paths: ClassVar[frozenset[str]] = frozenset({"path"})

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    tags: Mapping[str, str | None] | None = None
    stats: str | None = None
    data_change: bool = False
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format(JsonFields):
    """The encoding of the data files; only `parquet` exists."""

    _as_read: ClassVar[Mapping[str, Callable[[Any], Any]]] = {"options": _texts}

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=_empty)
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata(_Action):
    """Schema, partitioning and properties of the table."""

    kind: ClassVar[str] = "metaData"
    # Without it, values of partition columns would be looked for in files, and be null.
    _needed: ClassVar[frozenset[str]] = frozenset({"partition_columns"})
    _nested: ClassVar[Mapping[str, type[JsonFields]]] = {"format": Format}
    _as_read: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "configuration": _texts,
        "created_time": _whole,
    }

    id: str
    name: str | None = None
    description: str | None = None
    format: Format = field(default_factory=Format)
    schema_string: str = '{"type":"struct","fields":[]}'
    """The schema as JSON text; see `lakelog.core.schema`. None at all (Delta Live Tables write
    such metadata) is one without columns."""
    partition_columns: list[str] = field(default_factory=list)
    configuration: Mapping[str, str] = field(default_factory=_empty)
    created_time: int | None = None
    """Milliseconds since the epoch."""
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol(_Action):
    """What a client must know to read, and to write, the table."""

    kind: ClassVar[str] = "protocol"
    _ints: ClassVar[frozenset[str]] = frozenset({"min_reader_version", "min_writer_version"})

    min_reader_version: int
    min_writer_version: int
    reader_features: list[str] | None = None
    writer_features: list[str] | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTransaction(_Action):
    """The progress of an application, committed with its data."""

    kind: ClassVar[str] = "txn"

    app_id: str
    version: int
    last_updated: int | None = None
    """Milliseconds since the epoch."""
    extra: Mapping[str, Any] = field(default_factory=_empty)

    @property
    def last_updated_time(self) -> datetime | None:
        """`last_updated` as a time in UTC."""
        return None if self.last_updated is None else utc_time(self.last_updated)


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainMetadata(_Action):
    """A named piece of configuration with a life of its own."""

    kind: ClassVar[str] = "domainMetadata"

    domain: str
    configuration: str
    removed: bool
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo(_Action):
    """Provenance of a commit; always the first line of those that we write."""

    kind: ClassVar[str] = "commitInfo"
    _is_hearsay: ClassVar[bool] = True
    _as_read: ClassVar[Mapping[str, Callable[[Any], Any]]] = {
        "operation_metrics": _texts,  # delta-rs writes numbers
        "tags": _texts,
    }

    in_commit_timestamp: int | None = None
    timestamp: int | None = None
    """Milliseconds since the epoch, by the writer's clock at the attempt's start."""
    operation: str | None = None
    operation_parameters: Mapping[str, Any] | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    data_change: bool | None = None
    operation_metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str] | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointMetadata(_Action):
    """First row of a V2 checkpoint."""

    kind: ClassVar[str] = "checkpointMetadata"

    version: int
    tags: Mapping[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarFile(_Action):
    """A Parquet file of a V2 checkpoint, by its name under `_sidecars`."""

    kind: ClassVar[str] = "sidecar"
    _paths: ClassVar[frozenset[str]] = frozenset({"path"})

    path: str
    size_in_bytes: int
    modification_time: int
    tags: Mapping[str, str] | None = None
    extra: Mapping[str, Any] = field(default_factory=_empty)


@dataclass(frozen=True, slots=True)
class UnknownAction:
    """A line whose key no version of the protocol that we know has."""

    body: Mapping[str, Any]
    """The whole line."""

    @property
    def kind(self) -> str:
        """The line's first key; empty for `{}`."""
        return next(iter(self.body), "")

    def to_json(self) -> str:
        """The line as it was, but for white space."""
        return orjson.dumps(dict(self.body)).decode()


FileAction: TypeAlias = AddFile | RemoveFile | AddCDCFile
Action: TypeAlias = (
    FileAction
    | Metadata
    | Protocol
    | SetTransaction
    | DomainMetadata
    | CommitInfo
    | CheckpointMetadata
    | SidecarFile
    | UnknownAction
)

_KINDS: dict[str, type[_Action]] = {
    cls.kind: cls
    for cls in (
        AddFile,
        RemoveFile,
        AddCDCFile,
        Metadata,
        Protocol,
        SetTransaction,
        DomainMetadata,
        CommitInfo,
        CheckpointMetadata,
        SidecarFile,
    )
}


def action_from_json(line: str | bytes) -> Action:
    """Parse one line of a commit file.

    Raises:
        ValueError: not JSON, not an object, or a known action that lacks a required field.
            The caller adds which file and line it was.
    """
    body = orjson.loads(line)
    if not isinstance(body, dict):
        raise ValueError(f"an action is a JSON object, not {type(body).__name__}")
    for key, value in body.items():
        cls = _KINDS.get(key)
        if cls is None or value is None:
            continue
        try:
            return cls.from_json_value(value)  # type: ignore[return-value]  # _KINDS holds Actions
        except MalformedFieldError as exc:
            raise ValueError(f"a malformed {key} action: {exc}") from None
    return UnknownAction(body)
