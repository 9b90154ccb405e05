"""REPLACE COLUMNS: a table's columns in another order, with new ones, or with other comments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.core.actions.operation import Operation, json_text
from lakelog.core.alter.columns import check_droppable, column_parameter
from lakelog.core.delta_log import begin_change
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.given_types import schema_from
from lakelog.core.schema import StructField, StructType
from lakelog.core.schema.column_paths import dotted
from lakelog.core.schema.parts import paired_parts, with_parts
from lakelog.core.telemetry.switch import command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.delta_log import TableOrLog
    from lakelog.core.input.given_types import GivenSchema
    from lakelog.core.schema import DataType

_Path = tuple[str, ...]


@command("replace columns")
def replace_columns(
    uri: TableOrLog, columns: GivenSchema, *, conf: Mapping[str, str] | None = None
) -> int:
    """Give a table these columns, in this order: `ALTER TABLE … REPLACE COLUMNS`.

    A column of a known name keeps its values; a new one is null in every row that is there. One
    that is left out is dropped, of a table that maps columns. The files stay as they are.

    Args:
        uri: where the table is, or its `DeltaLog`.
        columns: all columns, in any form that `create_table` takes. Comments are those given here.
        conf: the user's whole Spark conf, which chooses the store; a `DeltaLog` has its own.

    Returns:
        The version that holds the change; the current version where nothing changes.

    Raises:
        TableNotFoundError: there is no table.
        DeltaAnalysisError: another type for a column that is there, a new column that is NOT NULL,
            one that is left out while the table does not map columns, or columns that come and go
            at once: that may be meant as renaming, for which there is `rename_column`.
        DeltaConcurrentModificationException: another writer was faster; nothing was committed.
    """
    txn = begin_change(uri, conf)
    assert txn.snapshot is not None
    wanted = schema_from(columns, "columns")
    changes = _Changes(txn.delta_log.table)
    schema = changes.struct(txn.snapshot.schema, wanted, ())
    if changes.gone:
        if txn.changes.terms.column_mapping_mode == "none":
            raise changes.refusal(
                f"dropping column(s) {_listed(changes.gone)}, whose values the files would keep. "
                "Enable column mapping first: set the property delta.columnMapping.mode=name"
            )
        if changes.new:
            raise changes.refusal(
                f"dropping {_listed(changes.gone)} and adding {_listed(changes.new)} at once, "
                "which may be meant as renaming. Use rename_column, or make two changes"
            )
        check_droppable(txn, changes.gone)
    if schema == txn.snapshot.schema:
        return txn.reads.version
    txn.update_metadata(replace(txn.metadata, schema_string=schema.to_json()))
    said = [column_parameter((), each)["column"] for each in wanted]
    return txn.commit([], Operation("REPLACE COLUMNS", {"columns": json_text(said)}))


def _listed(paths: list[_Path]) -> str:
    return ", ".join(map(dotted, paths))


class _Changes:
    """Puts the new schema together and remembers which columns are added and dropped."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.gone: list[_Path] = []
        self.new: list[_Path] = []

    def refusal(self, why: str) -> DeltaAnalysisError:
        return DeltaAnalysisError(
            "[DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP] Unsupported ALTER TABLE REPLACE "
            f"COLUMNS operation on {self._table}: {why}.",
            table=self._table,
        )

    def struct(self, old: StructType, new: StructType, path: _Path) -> StructType:
        by_name = {each.name.lower(): each for each in old}
        fields = []
        for each in new:
            known = by_name.pop(each.name.lower(), None)
            at = (*path, each.name)
            if known is None:
                self._add(each, at)
                fields.append(each)
            else:
                fields.append(self._field(known, each, at))
        self.gone += [(*path, each.name) for each in by_name.values()]
        return StructType(tuple(fields))

    def _add(self, field: StructField, at: _Path) -> None:
        self.new.append(at)
        if not field.nullable:
            raise self.refusal(
                f"the new column {dotted(at)} is NOT NULL, but the rows already in the table "
                "would have null there"
            )

    def _field(self, old: StructField, new: StructField, at: _Path) -> StructField:
        if old.nullable and not new.nullable:
            raise self.refusal(
                f"changing column {dotted(at)} to NOT NULL, where rows may have null"
            )
        comment = {key: value for key, value in new.metadata.items() if key == "comment"}
        kept = {key: value for key, value in old.metadata.items() if key != "comment"}
        kind = self._type(old.data_type, new.data_type, at)
        return StructField(old.name, kind, new.nullable, {**kept, **comment})

    def _type(self, old: DataType, new: DataType, at: _Path) -> DataType:
        match old, new:
            case StructType(), StructType():
                return self.struct(old, new, at)
            case _ if parts := paired_parts(old, new):
                return with_parts(old, [self._type(a, b, (*at, step)) for step, a, b in parts])
            case _ if old == new:
                return old
        raise self.refusal(
            f"changing the type of column {dotted(at)} from {old} to {new}. To widen a type use "
            "change_column"
        )
