"""New columns of a table, without touching a file: `ALTER TABLE … ADD COLUMNS`.

A new column is null in the rows that are there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.alter.columns import column_parameter, commit_columns, own_schema
from lakelog.core.arguments import check_text, read_arguments
from lakelog.core.delta_log import begin_change
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.given_types import schema_from
from lakelog.core.schema import StructType
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.edits import change_struct, column_path, nearest_field, struct_at
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.input.given_types import GivenSchema
    from lakelog.core.schema.edits import ColumnPath


@dataclass(frozen=True, slots=True)
class Addition:
    """Columns to be added at one place; `add_columns` says what each field means."""

    columns: GivenSchema
    parent: ColumnPath = ()
    after: str | None = None
    first: bool = False


@read_arguments
def add_columns(
    uri: TableOrLog,
    columns: GivenSchema,
    *,
    parent: ColumnPath = (),
    after: str | None = None,
    first: bool = False,
    conf: Mapping[str, str] | None = None,
) -> int:
    """Add columns, which are null in every existing row: `ALTER TABLE … ADD COLUMNS`.

    Args:
        uri: where the table is, or its `DeltaLog`.
        columns: what to add, in any form that `create_table` takes; each must allow nulls.
        parent: the struct to add them to; the table itself by default.
        after: put them after this sibling instead of after all of them.
        first: put them before all of their siblings.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: a name that is taken or not allowed, a column that is NOT NULL, or a
            parent that is not a struct.
        DeltaConcurrentModificationException: another writer was faster; nothing was committed.
    """
    return add_columns_at(uri, [Addition(columns, parent, after, first)], conf=conf)


@command("add columns")
def add_columns_at(
    uri: TableOrLog, additions: Sequence[Addition], *, conf: Mapping[str, str] | None = None
) -> int:
    """Add columns at several places in one commit, as one `ADD COLUMNS` does that names several.

    Args:
        uri: where the table is, or its `DeltaLog`.
        additions: made in this order, so that a column may come after one that was added before.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        DeltaAnalysisError: as `add_columns`. Nothing is added then.
    """
    txn = begin_change(uri, conf)
    before = schema = own_schema(txn)
    added = []
    for each in additions:
        check_text(each.after, "after")
        new, above = schema_from(each.columns, "columns"), column_path(each.parent)
        _check_nulls(new, above)
        struct_at(before, above)  # a struct that is new itself has all of its fields with it
        schema = _grown(schema, above, new, each)
        where = "FIRST" if each.first else f"AFTER {each.after}" if each.after is not None else None
        place = {} if where is None else {"position": where}
        added += [column_parameter(above, field) | place for field in new]
    changed = replace(txn.metadata, schema_string=schema.to_json())
    return commit_columns(txn, changed, Operation("ADD COLUMNS", {"columns": json_text(added)}))


def _check_nulls(new: StructType, above: Sequence[str]) -> None:
    for each in new:
        if not each.nullable:
            raise DeltaAnalysisError(
                f"the new column {dotted((*above, each.name))} is NOT NULL, but the rows already "
                "in the table would have null there. Add it without NOT NULL.",
                column=dotted((*above, each.name)),
            )


def _grown(
    schema: StructType, above: Sequence[str], new: StructType, addition: Addition
) -> StructType:
    """The schema with some fields more in one of its structs."""

    def grown(struct: StructType) -> StructType:
        position = 0 if addition.first else len(struct)
        if addition.after is not None:
            spelled = nearest_field(struct, (addition.after,))[1].name
            position = struct.names.index(spelled) + 1
        return StructType((*struct.fields[:position], *new, *struct.fields[position:]))

    return change_struct(schema, above, grown)
