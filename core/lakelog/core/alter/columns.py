"""Changes of a table's columns without touching a file, as `ALTER TABLE` makes them.

To rename or drop a column, the table must map columns
(`delta.columnMapping.mode`), since the files keep the old name; to widen a type it must have
`delta.enableTypeWidening`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.delta_log import begin_change
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import clustering_columns
from lakelog.core.input.given_types import type_from
from lakelog.core.schema import StructField, StructType
from lakelog.core.schema.char_varchar import relimited
from lakelog.core.schema.column_fills import DEFAULT
from lakelog.core.schema.column_mapping import physical_path
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.edits import (
    change_field,
    change_struct,
    column_path,
    nearest_field,
    struct_at,
    without_fields,
)
from lakelog.core.schema.type_widening import TYPE_CHANGES, retyped
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import Metadata
    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.input.given_types import GivenType
    from lakelog.core.schema.edits import ColumnPath
    from lakelog.core.transaction.optimistic import OptimisticTransaction

_STATS_COLUMNS = "delta.dataSkippingStatsColumns"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """What becomes of one column; `change_column` says what each field means."""

    column: ColumnPath
    data_type: GivenType | None = None
    nullable: bool | None = None
    comment: str | None = None
    default: str | None = None
    after: str | None = None
    first: bool = False

    @property
    def is_more_than_a_type(self) -> bool:
        """Whether it needs a column, and not a part of one."""
        asked = (self.nullable, self.comment, self.default, self.after)
        return self.first or any(each is not None for each in asked)


@command("rename column")
def rename_column(
    uri: TableOrLog,
    column: ColumnPath,
    name: str,
    *,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Give a column another name: `ALTER TABLE … RENAME COLUMN`. The files stay as they are.

    Args:
        uri: where the table is, or its `DeltaLog`.
        column: the column's path; it may be a field of a struct, or a partition column.
        name: the new name, without the path to it.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        DeltaAnalysisError: the table does not map columns, there is no such column, the name is
            taken, or a constraint or a generated column refers to it.
    """
    check_text(name, "name", needed=True)
    txn = begin_change(uri, conf)
    _require_mapping(txn, "DELTA_UNSUPPORTED_RENAME_COLUMN", "Column rename")
    path = _exactly(txn, column)
    new = (*path[:-1], name)
    schema = change_field(own_schema(txn), path, lambda field: replace(field, name=name))
    partitions = [name if path == (each,) else each for each in txn.metadata.partition_columns]
    changed = replace(
        txn.metadata,
        schema_string=schema.to_json(),
        partition_columns=partitions,
        configuration=_with_stats_columns(
            txn.changes.terms,
            lambda each: (*new, *each[len(path) :]) if _below(each, path) else each,
        ),
    )
    parameters = {"oldColumnPath": _history_name(path), "newColumnPath": _history_name(new)}
    return commit_columns(txn, changed, Operation("RENAME COLUMN", parameters))


@command("drop columns")
def drop_columns(
    uri: TableOrLog,
    columns: str | Sequence[ColumnPath],
    *,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Remove columns from a table: `ALTER TABLE … DROP COLUMNS`. The files stay as they are.

    Args:
        uri: where the table is, or its `DeltaLog`.
        columns: their paths, or the path of one as text; fields of structs among them, partition
            columns not.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        DeltaAnalysisError: the table does not map columns, there is no such column, it is the
            only one, the table is partitioned or clustered by it, or a constraint or a generated
            column refers to it.
    """
    txn = begin_change(uri, conf)
    _require_mapping(txn, "DELTA_UNSUPPORTED_DROP_COLUMN", "DROP COLUMN")
    gone: dict[tuple[str, ...], None] = {}
    given: Any = columns
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise DeltaAnalysisError(f"{given!r} is neither a column nor a list of columns")
    for each in [columns] if isinstance(columns, str) else columns:
        path = _exactly(txn, each)
        if any(above in gone for above in _prefixes(path)):
            raise DeltaAnalysisError(
                f"[DELTA_COLUMN_NOT_FOUND_IN_SCHEMA] The column {dotted(path)} is named twice, or "
                "is part of a struct that is named before it.",
                column=dotted(path),
            )
        gone[path] = None
    check_droppable(txn, gone)
    schema = without_fields(own_schema(txn), gone)
    dropped = {_lower(path) for path in gone}
    configuration = _with_stats_columns(
        txn.changes.terms,
        lambda each: None if any(p in dropped for p in _prefixes(_lower(each))) else each,
    )
    changed = replace(txn.metadata, schema_string=schema.to_json(), configuration=configuration)
    columns_json = json_text([_history_name(path) for path in gone])
    return commit_columns(txn, changed, Operation("DROP COLUMNS", {"columns": columns_json}))


@read_arguments
def change_column(
    uri: TableOrLog,
    column: ColumnPath,
    *,
    data_type: GivenType | None = None,
    nullable: bool | None = None,
    comment: str | None = None,
    default: str | None = None,
    after: str | None = None,
    first: bool = False,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Change what a column is, or its place: `ALTER TABLE … ALTER COLUMN`. No file is touched.

    Args:
        uri: where the table is, or its `DeltaLog`.
        column: the column's path; for a type it may end at `element`, `key` or `value`.
        data_type: a wider type (PROTOCOL.md, "Type Widening"), of a table with
            `delta.enableTypeWidening`; ours, Arrow's or its SQL name. Of a `CHAR` or `VARCHAR` also
            a `VARCHAR` that is no shorter, or `STRING`.
        nullable: True removes its NOT NULL; adding NOT NULL is refused, since existing rows may
            have nulls.
        comment: the new comment; an empty string removes it.
        default: SQL without columns, such as `0` or `current_date()`, for what is written from now
            on without the column; an empty string removes it. The table needs the property
            `delta.feature.allowColumnDefaults=supported`.
        after: put the column after this sibling.
        first: put it before all of its siblings.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        DeltaAnalysisError: there is no such column or sibling, the type is not wider or the table
            does not widen types, a rule refers to the column, NOT NULL was asked for, or the
            column can't have the default.
    """
    change = ColumnChange(column, data_type, nullable, comment, default, after, first)
    txn = begin_change(uri, conf)
    schema, parameter, place = _changed(txn, own_schema(txn), change)
    changed = replace(txn.metadata, schema_string=schema.to_json())
    return commit_columns(
        txn, changed, Operation("CHANGE COLUMN", {"column": json_text(parameter)} | place)
    )


@command("change column")
def change_columns(
    uri: TableOrLog, changes: Sequence[ColumnChange], *, conf: Mapping[str, str] | None = None
) -> int:
    """Change several columns in one commit, as one `ALTER COLUMN` does that names several.

    Args:
        uri: where the table is, or its `DeltaLog`.
        changes: one for each column, made in this order.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the changes; the current version where nothing changes.

    Raises:
        DeltaAnalysisError: as `change_column`, or a column is named twice. Nothing is changed then.
    """
    txn = begin_change(uri, conf)
    schema, parameters, seen = own_schema(txn), [], set[tuple[str, ...]]()
    for each in changes:
        path = _lower(column_path(each.column))
        if path in seen:
            raise DeltaAnalysisError(
                f"[NOT_SUPPORTED_CHANGE_SAME_COLUMN] The column {dotted(path)} is changed twice: "
                "say all that becomes of it in statements of their own.",
                column=dotted(path),
            )
        seen.add(path)
        schema, parameter, place = _changed(txn, schema, each)
        parameters.append(parameter | place)
    changed = replace(txn.metadata, schema_string=schema.to_json())
    return commit_columns(
        txn, changed, Operation("CHANGE COLUMNS", {"columns": json_text(parameters)})
    )


def _changed(
    txn: OptimisticTransaction, schema: StructType, change: ColumnChange
) -> tuple[StructType, dict[str, Any], dict[str, str]]:
    """The schema with a change, and how the history shows the column and its new place."""
    check_text(change.comment, "comment")
    check_text(change.default, "default")
    check_text(change.after, "after")
    path = column_path(change.column)
    own, field = nearest_field(schema, path)
    within = path[len(own) :]
    new = field
    limited = None if within else relimited(field, change.data_type, dotted(path))
    if limited is not None:
        new = limited
    elif change.data_type is not None:
        kind, widens = type_from(change.data_type, path), txn.changes.terms.properties.type_widening
        new = retyped(new, within, kind, dotted(path), widens=widens)
    if within and change.is_more_than_a_type:
        raise DeltaAnalysisError(
            f"{dotted(path)} is part of the column {dotted(own)}: only the type can be changed",
            column=dotted(path),
        )
    if change.nullable is False and field.nullable:
        raise DeltaAnalysisError(
            "[DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP] ALTER TABLE CHANGE COLUMN is not "
            f"supported for changing column {dotted(path)} to NOT NULL: rows of the table may have "
            "nulls there. Add a CHECK constraint instead, which checks the rows.",
            column=dotted(path),
        )
    if change.nullable is not None:
        new = replace(new, nullable=change.nullable)
    if change.comment is not None:
        new = _with_metadata(new, "comment", change.comment)
    if change.default is not None:
        new = _with_metadata(new, DEFAULT, change.default)
    schema = change_field(schema, own, lambda _: new)
    place: dict[str, str] = {}
    if change.first or change.after is not None:
        schema, place["position"] = _moved(schema, own, None if change.first else change.after)
    # As the user asked for it: with the earlier type changes, but not yet this one.
    before = {k: v for k, v in field.metadata.items() if k == TYPE_CHANGES}
    asked = {k: v for k, v in new.metadata.items() if k != TYPE_CHANGES} | before
    parameter: dict[str, Any] = column_parameter(own[:-1], replace(new, metadata=asked))["column"]
    return schema, parameter, place


def _with_metadata(field: StructField, key: str, value: str) -> StructField:
    """A field with a part of its metadata changed; an empty text takes it away."""
    kept = {name: old for name, old in field.metadata.items() if name != key}
    return replace(field, metadata=kept | ({key: value} if value else {}))


def _moved(schema: StructType, path: tuple[str, ...], after: str | None) -> tuple[StructType, str]:
    """The schema with a field in another place among its siblings, and how the history says it."""
    *above, name = path
    siblings = struct_at(schema, above)
    _, field = nearest_field(siblings, (name,))
    others = [each for each in siblings if each is not field]
    if after is None:
        return _reordered(schema, above, [field, *others]), "FIRST"
    _, before = nearest_field(siblings, (after,))
    if before is not field:  # after itself it stays where it is
        at = others.index(before) + 1
        schema = _reordered(schema, above, [*others[:at], field, *others[at:]])
    return schema, f"AFTER {before.name}"


def _reordered(
    schema: StructType, path: Sequence[str], fields: Sequence[StructField]
) -> StructType:
    return change_struct(schema, path, lambda _: StructType(tuple(fields)))


def commit_columns(txn: OptimisticTransaction, changed: Metadata, operation: Operation) -> int:
    """Commit new metadata; the version, or the one that was read if nothing changes."""
    before = txn.metadata
    # Another client may have written the same schema in other words.
    if StructType.from_json(changed.schema_string) == own_schema(txn):
        changed = replace(changed, schema_string=before.schema_string)
    if changed == before:
        return txn.reads.version
    txn.update_metadata(changed)
    return txn.commit([], operation)


def own_schema(txn: OptimisticTransaction) -> StructType:
    """The columns of the table that a transaction changes."""
    assert txn.snapshot is not None
    return txn.snapshot.schema


def _exactly(txn: OptimisticTransaction, column: ColumnPath) -> tuple[str, ...]:
    """The path of a field as the schema spells it."""
    path = column_path(column)
    own, _ = nearest_field(own_schema(txn), path)
    if len(own) < len(path):
        raise DeltaAnalysisError(
            f"[DELTA_UNSUPPORTED_DROP_NESTED_COLUMN_FROM_NON_STRUCT_TYPE] {dotted(path)} is part "
            f"of the column {dotted(own)} and not a field of a struct.",
            column=dotted(path),
        )
    return own


def _require_mapping(txn: OptimisticTransaction, condition: str, what: str) -> None:
    if txn.changes.terms.column_mapping_mode == "none":
        raise DeltaAnalysisError(
            f"[{condition}] {what} is not supported for your Delta table {txn.delta_log.table}: "
            "its files would keep the column. Enable column mapping first: set the property "
            "delta.columnMapping.mode=name.",
            table=txn.delta_log.table,
        )


def check_droppable(txn: OptimisticTransaction, paths: Iterable[tuple[str, ...]]) -> None:
    """Refuse to drop columns that the table can't be without.

    Raises:
        DeltaAnalysisError: a partition or a clustering column, or the only one of a struct.
    """
    snapshot = txn.snapshot
    assert snapshot is not None
    partitions = frozenset(snapshot.partition_columns)
    clustering = clustering_columns(snapshot.domain_metadata)
    needed = {above for each in clustering for above in _prefixes(_lower(each))}
    for path in paths:
        if len(path) == 1 and path[0] in partitions:
            raise DeltaAnalysisError(
                f"[DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN] Dropping partition columns ({path[0]}) "
                "is not allowed. Overwrite the table with a different partitioning.",
                column=path[0],
            )
        holder = struct_at(snapshot.schema, path[:-1])
        if len(holder) == 1:
            raise DeltaAnalysisError(
                "[DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA] Cannot drop column from a schema with "
                f"a single column: {dotted(path)} is the only one of {holder}.",
                column=dotted(path),
            )
        if needed and _lower(physical_path(snapshot.read_schema, path)) in needed:
            raise DeltaAnalysisError(
                "[DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN] Dropping clustering columns "
                f"({dotted(path)}) is not allowed. Cluster the table by other columns first.",
                column=dotted(path),
            )


def _prefixes(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """A path and all paths above it."""
    return [path[:end] for end in range(1, len(path) + 1)]


def _lower(path: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def _below(path: Sequence[str], above: Sequence[str]) -> bool:
    """Whether a path leads through another, ignoring case."""
    head = [part.lower() for part in path[: len(above)]]
    return head == [part.lower() for part in above]


def _with_stats_columns(terms: TableTerms, change: Any) -> dict[str, str]:
    """The properties, with the paths of the statistics columns renamed or left out."""
    listed, texts = terms.properties.stats_columns, terms.metadata.configuration
    if listed is None:
        return dict(texts)
    kept = [dotted(path) for path in map(change, listed) if path is not None]
    return {**texts, _STATS_COLUMNS: ",".join(kept)}


def column_parameter(above: Sequence[str], field: StructField) -> dict[str, Any]:
    """A column as Delta's history shows it: nested types by the name of their kind alone."""
    kind = field.data_type.json_value()
    return {
        "column": {
            "name": _history_name((*above, field.name)),
            "type": kind if isinstance(kind, str) else kind["type"],
            "nullable": field.nullable,
            "metadata": dict(field.metadata),
        }
    }


def _history_name(path: Sequence[str]) -> str:
    """A path as Delta's history spells it: only names with dots in backticks."""
    return ".".join(f"`{name}`" if "." in name else name for name in path)
