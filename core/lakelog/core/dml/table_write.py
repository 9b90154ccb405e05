"""A write as its table sees it, whoever has the rows: what it may, changes and replaces.

    write = TableWrite(log.start_transaction(), request)
    if not write.is_done():
        write.settle_schema(data)      # and the schema of the files is `write.schema`
        removed = write.replaced_before()
        ...                            # the files are written: `txn.changes.file_layout`
        removed += write.replaced_by(adds)
        end_command(txn, actions, write.operation(adds, removed), batch=request.batch)

Each step looks at what the one before it has settled.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from lakelog.core import keys
from lakelog.core.actions import Metadata
from lakelog.core.actions.file_table import to_add_files
from lakelog.core.actions.operation import Operation, write_metrics
from lakelog.core.errors import DeltaAnalysisError, TableExistsError
from lakelog.core.metadata.column_mapping_changes import reused_mapping
from lakelog.core.schema import StructType
from lakelog.core.schema.rules import check_unique, resolve_columns
from lakelog.core.schema.schema_evolution import check_write_compatible, merge_schemas
from lakelog.core.transaction.command_commit import is_recorded
from lakelog.core.transaction.matching_files import matching_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import AddFile
    from lakelog.core.expressions.tree import Expression
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction

SaveMode: TypeAlias = Literal["append", "overwrite", "error", "ignore"]

MODES = {
    "append": "Append",
    "overwrite": "Overwrite",
    "error": "ErrorIfExists",
    "ignore": "Ignore",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRequest:
    """What is asked of a write, besides the rows and the table."""

    mode: SaveMode = "error"
    partition_by: Sequence[str] | None = None
    """`None` when the caller gave none; a table then keeps its own."""
    merge_schema: bool | None = False
    """`None` leaves it to the conf."""
    overwrite_schema: bool = False
    dynamic_overwrite: bool = False
    """Whether an overwrite replaces only the partitions that the rows are in."""
    data_change: bool = True
    properties: Mapping[str, str] = field(default_factory=dict)
    """Of a table that this write creates."""
    user_metadata: str | None = None
    batch: tuple[str, int] | None = None
    """What the table records as done by it: an application, and the version of a batch."""
    file_tags: Mapping[str, str] = field(default_factory=dict)
    """Of each file that it adds."""

    def __post_init__(self) -> None:
        """Refuse what contradicts itself.

        Raises:
            DeltaAnalysisError: rows of other partitions would stay under another schema.
        """
        if self.overwrite_schema and self.dynamic_overwrite:
            raise DeltaAnalysisError(
                "schema_mode 'overwrite' (Spark's option overwriteSchema=true) replaces the schema "
                "of the whole table, and a dynamic partition overwrite keeps part of its rows: "
                "give only one of them (partition_overwrite_mode='static', in Spark the option "
                "partitionOverwriteMode=static, replaces the whole table, whatever the conf says)"
            )


@dataclass(frozen=True, slots=True)
class TableWrite:
    """One write in its transaction."""

    txn: OptimisticTransaction
    request: WriteRequest

    def is_done(self) -> bool:
        """Whether there is nothing to do: mode `ignore` found a table, or the batch is recorded.

        Raises:
            TableExistsError: mode `error` found one.
        """
        txn, mode = self.txn, self.request.mode
        # Of the version that the commit starts from: a batch that another driver writes meanwhile
        # is a conflict on the same application, which the commit finds.
        if is_recorded(txn, self.request.batch):
            return True
        if txn.snapshot is not None and mode == "error":
            raise TableExistsError(
                f"there is already a Delta table at {self._table}, at version {txn.reads.version}. "
                "Choose another path, or say by the mode what to do with the table: mode='append', "
                "in Spark mode('append'), adds to it, 'overwrite' replaces its rows, 'ignore' "
                "leaves it alone.",
                table=self._table,
                version=txn.reads.version,
            )
        return txn.snapshot is not None and mode == "ignore"

    @property
    def schema(self) -> StructType:
        """The table's after the write."""
        return self.txn.changes.terms.schema

    def settle_schema(
        self, data: StructType, *, planned: StructType | None = None, keeps: bool = False
    ) -> None:
        """Let the table have the columns of the rows, or refuse them.

        Args:
            data: the schema of the rows.
            planned: the schema that files were written for already; new columns get its ids and
                physical names where the table maps columns.
            keeps: whether a new schema leaves the partitioning as it is where none is named, and
                the properties of the request are set with it.

        Raises:
            SchemaMismatchError: data and table differ, and nothing allows the table to change.
            DeltaAnalysisError: another partitioning than the table's, a bad schema, or a schema
                change together with `dataChange=false`.
            UnsupportedFeatureError: this version can't write the table as it will be.
        """
        txn, request = self.txn, self.request
        check_unique(data)
        if txn.snapshot is None:
            changed = Metadata(
                id=str(uuid.uuid4()),
                schema_string=data.to_json(),
                partition_columns=_partitions(data, request.partition_by),
                configuration=dict(request.properties),
            )
            self._change(changed, planned, "creates a table")
        else:
            if request.mode == "overwrite" and request.overwrite_schema:
                changed = self._replaced(txn.snapshot, data, keeps=keeps)
            else:
                changed = self._merged(txn.snapshot, data)
            if changed != txn.snapshot.metadata:
                self._change(changed, planned, "changes the schema")
        # The protocol is by now the one that the table will have.
        txn.changes.terms.check_writable(self._table)

    @property
    def _table(self) -> str:
        return self.txn.delta_log.table

    def _change(self, metadata: Metadata, planned: StructType | None, what: str) -> None:
        if not self.request.data_change:
            raise DeltaAnalysisError(
                f"[DELTA_DATA_CHANGE_FALSE] this write to {self._table} {what}, so it can't have "
                "the option dataChange=false, which means that no row changes",
                table=self._table,
            )
        if planned is not None:
            schema = reused_mapping(StructType.from_json(metadata.schema_string), planned)
            metadata = replace(metadata, schema_string=schema.to_json())
        self.txn.update_metadata(metadata)

    def _replaced(self, snapshot: Snapshot, data: StructType, *, keeps: bool) -> Metadata:
        """Schema and partitioning of the data in place of the table's; its id stays."""
        old, named = snapshot.metadata, self.request.partition_by
        data = reused_mapping(data, snapshot.read_schema)
        same = data.to_json() == snapshot.schema.to_json()
        if named is None and (keeps or same):
            named = old.partition_columns
        changed = replace(old, partition_columns=_partitions(data, named))
        if keeps:
            configuration = {**old.configuration, **self.request.properties}
            changed = replace(changed, configuration=configuration)
        return changed if same else replace(changed, schema_string=data.to_json())

    def _merged(self, snapshot: Snapshot, data: StructType) -> Metadata:
        """The table's own metadata, with the columns added that merging schemas lets in."""
        old, named, merges = snapshot.metadata, self.request.partition_by, self.request.merge_schema
        if named is not None and _lower(named) != _lower(old.partition_columns):
            raise DeltaAnalysisError(
                f"the table {self._table} is partitioned by {_listed(old.partition_columns)}, but "
                f"the write asks for {_listed(named)}. Leave partition_by (partitionBy) out, or "
                "overwrite the table with schema_mode 'overwrite' (Spark's option "
                "overwriteSchema=true).",
                table=self._table,
                expected=list(old.partition_columns),
                given=list(named),
            )
        schema = snapshot.schema
        if merges is None:
            merges = self.txn.delta_log.conf.read(keys.MERGE_SCHEMA)
        if merges:
            widens = snapshot.properties.type_widening
            schema = merge_schemas(schema, data, allow_type_widening=widens)
        # The check may refuse what merging allows, such as a missing NOT NULL column.
        check_write_compatible(schema, data)
        if schema == snapshot.schema:
            return old
        return replace(old, schema_string=schema.to_json())

    @property
    def _by_partitions(self) -> bool:
        """Whether the new files decide which ones they replace."""
        return self.request.dynamic_overwrite and bool(self.txn.metadata.partition_columns)

    def replaced_before(self, predicate: Expression | None = None) -> list[AddFile]:
        """The files that the write removes as wholes, as far as the new ones don't decide that.

        Args:
            predicate: what their rows must meet, over partition columns; `None` for all files.

        Raises:
            AppendOnlyError: it may not remove them.
            InvalidPredicateError: a predicate that only Spark can evaluate.
            CorruptLogError: a file that it may match has a partition value that can't be read.
        """
        txn = self.txn
        if self.request.mode != "overwrite" or txn.snapshot is None or self._by_partitions:
            return []
        if predicate is None:
            return self._removable(txn.filter_files())
        return self._removable(to_add_files(matching_files(txn, predicate)))

    def replaced_by(self, adds: Sequence[AddFile]) -> list[AddFile]:
        """The files that the new ones replace: those of the same partitions, where they decide.

        Raises:
            AppendOnlyError: the write may not remove them.
        """
        if self.txn.snapshot is None or not self._by_partitions:
            return []
        return self._removable(self.txn.reads.files_in_same_partitions(adds))

    def _removable(self, files: list[AddFile]) -> list[AddFile]:
        if files and self.request.data_change:
            self.txn.changes.assert_removable()
        return files

    def operation(
        self,
        adds: Sequence[AddFile],
        removed: Sequence[AddFile],
        *,
        predicate: str | None = None,
        moves_rows: bool = False,
        change_files: int = 0,
    ) -> Operation:
        """What history shows.

        Args:
            adds: the files written.
            removed: the files that they replace.
            predicate: the condition of an overwrite, as its author wrote it.
            moves_rows: whether rows of the removed files are among those of the new ones.
            change_files: how many files of change data were written.
        """
        request = self.request
        metrics = write_metrics(
            adds,
            removed if request.mode == "overwrite" else None,
            whole_files_by_predicate=predicate is not None and not moves_rows,
        )
        return Operation.write(
            MODES[request.mode],
            request.partition_by or (),
            predicate=predicate,
            dynamic_overwrite=request.dynamic_overwrite,
            overwrite_schema=request.overwrite_schema,
            merge_schema=bool(request.merge_schema),
            metrics={**metrics, "numAddedChangeFiles": change_files} if change_files else metrics,
            user_metadata=request.user_metadata,
        )


def _partitions(data: StructType, names: Sequence[str] | None) -> list[str]:
    return resolve_columns(data, names or (), "partition column")


def _lower(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no column"
