"""What a commit says that it did: the operation's name, parameters and metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.actions.operation_kinds import KINDS, OperationKind
from lakelog.core.actions.row_metrics import live_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions.objects import AddFile

_UNKNOWN = OperationKind()
_MOVES_FILES = frozenset(
    {
        "CLONE",
        "COMPUTE STATS",
        "Manual Update",
        "OPTIMIZE CHECKPOINT",
        "RESTORE",
        "ROW TRACKING BACKFILL",
        "ROW TRACKING UNBACKFILL",
    }
)


def _empty() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Operation:
    """The provenance of a commit, as `DESCRIBE HISTORY` shows it.

    `name` is one of Delta's operation names (`WRITE`, `DELETE`, …; see
    `lakelog.core.actions.operation_kinds`) or any other text. A parameter is a JSON value. Those
    that Delta writes as JSON *text* (a list of columns, a schema) may be given as values or as
    that text. One that is `None` is left out.
    Metrics are whole numbers; those that Delta's operation of the name does not have are left out.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=_empty)
    metrics: Mapping[str, int | str] = field(default_factory=_empty)
    user_metadata: str | None = None
    tags: Mapping[str, str] = field(default_factory=_empty)
    """`commitInfo.tags`: what other writers read out of the commit."""

    @classmethod
    def write(
        cls,
        mode: str,
        partition_by: Sequence[str] = (),
        *,
        predicate: str | None = None,
        dynamic_overwrite: bool = False,
        overwrite_schema: bool = False,
        merge_schema: bool = False,
        metrics: Mapping[str, int | str] | None = None,
        user_metadata: str | None = None,
        tags: Mapping[str, str] | None = None,
    ) -> Operation:
        """A batch write.

        Args:
            mode: `Append`, `Overwrite`, `ErrorIfExists` or `Ignore`.
            partition_by: the partition columns that the writer named.
            predicate: the text of `replaceWhere`.
            dynamic_overwrite: whether only the partitions met in the data are replaced.
            overwrite_schema: whether the write may replace the schema.
            merge_schema: whether the write may widen the schema.
            metrics: `numFiles`, `numOutputRows`, `numOutputBytes`, …
            user_metadata: the user's own note.
            tags: `commitInfo.tags`.
        """
        return cls(
            name="WRITE",
            parameters={
                "mode": mode,
                "partitionBy": json_text(list(partition_by)),
                "predicate": predicate,
                # Delta records these three only where they are set.
                "isDynamicPartitionOverwrite": True if dynamic_overwrite else None,
                "canOverwriteSchema": True if overwrite_schema else None,
                "canMergeSchema": True if merge_schema else None,
            },
            metrics=metrics or {},
            user_metadata=user_metadata,
            tags=tags or {},
        )

    @classmethod
    def streaming_update(
        cls,
        output_mode: str,
        query_id: str,
        epoch_id: int,
        *,
        metrics: Mapping[str, int | str] | None = None,
        user_metadata: str | None = None,
    ) -> Operation:
        """A batch of a streaming query.

        Args:
            output_mode: `Append` or `Complete`.
            query_id: of the query; the same after a restart.
            epoch_id: the number of the batch.
            metrics: see `streaming_metrics`.
            user_metadata: the user's own note.
        """
        parameters = {"outputMode": output_mode, "queryId": query_id, "epochId": str(epoch_id)}
        return cls("STREAMING UPDATE", parameters, metrics or {}, user_metadata)

    @classmethod
    def create_table(
        cls,
        partition_by: Sequence[str] = (),
        *,
        cluster_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        description: str | None = None,
        managed: bool = False,
        metrics: Mapping[str, int | str] | None = None,
        user_metadata: str | None = None,
        name: str = "CREATE TABLE",
    ) -> Operation:
        """A table made; `name` may say that it replaces one, or that it has the rows of a query."""
        return cls(
            name=name,
            parameters={
                "partitionBy": json_text(list(partition_by)),
                "clusterBy": json_text(list(cluster_by)),
                "description": description,
                "isManaged": str(managed).lower(),
                "properties": json_text(dict(properties or {})),
            },
            metrics=metrics or {},
            user_metadata=user_metadata,
        )

    @classmethod
    def manual(cls, *, user_metadata: str | None = None) -> Operation:
        """A commit whose actions the caller put together."""
        return cls(name="Manual Update", user_metadata=user_metadata)

    @property
    def _kind(self) -> OperationKind:
        return KINDS.get(self.name, _UNKNOWN)

    @property
    def changes_data(self) -> bool:
        """Whether this kind of operation changes rows, whatever its actions say."""
        return self._kind.changes_data

    @property
    def may_change_partitioning(self) -> bool:
        """Whether the operation may give an existing table other partition columns."""
        overwrites = bool(self.parameters.get("canOverwriteSchema"))
        if self.name == "WRITE":
            return overwrites and self.parameters.get("mode") == "Overwrite"
        if self.parameters.get("isV1SaveAsTableOverwrite"):
            return overwrites
        return self._kind.repartitions

    @property
    def takes_files_as_they_are(self) -> bool:
        """Whether the operation may add files with deletion vectors that others have made."""
        return self.name in _MOVES_FILES

    def json_parameters(self) -> dict[str, Any]:
        """`commitInfo.operationParameters`."""
        kind = self._kind
        found: dict[str, Any] = dict.fromkeys(kind.nulls)
        found |= {key: value for key, value in self.parameters.items() if value is not None}
        for key in kind.texts:
            if key in found and not isinstance(found[key], str):
                found[key] = json_text(found[key])
        # A parameter that is null keeps the place where it was given.
        return {key: found[key] for key in (*self.parameters, *kind.nulls) if key in found}

    def json_metrics(self) -> dict[str, str]:
        """`commitInfo.operationMetrics`: every value is text."""
        found = dict(self.metrics)
        if known := KINDS.get(self.name):
            found = {key: value for key, value in found.items() if key in known.metrics}
        return {key: str(value) for key, value in found.items()}


def json_text(value: Any) -> str:
    """A parameter that Delta keeps as JSON text within the JSON (a list of columns, a schema)."""
    return orjson.dumps(value).decode()


def write_metrics(
    adds: Sequence[AddFile],
    removed: Sequence[AddFile] | None = None,
    *,
    whole_files_by_predicate: bool = False,
) -> dict[str, int]:
    """The metrics that Delta reports for a `WRITE`.

    Args:
        adds: the files written.
        removed: the files that an overwrite takes out; `None` for an append.
        whole_files_by_predicate: whether a predicate chose them, and every row of them goes.
            Delta then counts the rows as well.
    """
    metrics = {"numFiles": len(adds), "numOutputBytes": sum(add.size for add in adds)}
    written = _rows(adds)
    if written is not None:
        metrics["numOutputRows"] = written
    if removed is None:
        return metrics
    metrics["numRemovedFiles"] = len(removed)
    metrics["numRemovedBytes"] = sum(file.size for file in removed)
    counts = [live_rows(file) for file in removed] if whole_files_by_predicate else [None]
    deleted = None if None in counts else sum(count or 0 for count in counts)
    if deleted is not None:
        metrics |= {"numAddedChangeFiles": 0, "numDeletedRows": deleted, "numCopiedRows": 0}
    return metrics


def streaming_metrics(adds: Sequence[AddFile], removed: Sequence[AddFile]) -> dict[str, int]:
    """The metrics that Delta reports for a `STREAMING UPDATE`.

    Args:
        adds: the files written.
        removed: the files of the table that the batch replaces.
    """
    metrics = {
        "numAddedFiles": len(adds),
        "numRemovedFiles": len(removed),
        "numOutputBytes": sum(add.size for add in adds),
    }
    written = _rows(adds)
    return metrics if written is None else {**metrics, "numOutputRows": written}


def _rows(files: Sequence[AddFile]) -> int | None:
    """The rows of the files; `None` where the statistics of one of them don't say."""
    counts = [file.num_records for file in files]
    return None if None in counts else sum(count or 0 for count in counts)
