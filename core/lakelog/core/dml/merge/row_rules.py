"""What assignments give every column of a new row, the columns that none is for included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.dml.merge.alignment import aligned
from lakelog.core.dml.merge.names import struct_field
from lakelog.core.dml.merge.new_rows import (
    Built,
    Default,
    Generated,
    Given,
    Kept,
    NewColumn,
    Nothing,
    Numbered,
    Taken,
)
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.expressions.parse.sql import referenced_columns
from lakelog.core.schema import StructType
from lakelog.core.schema.column_fills import default_of, generation_of, identity_of
from lakelog.core.schema.column_paths import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from lakelog.core.dml.merge.clauses import MergeClause
    from lakelog.core.dml.merge.new_rows import Value
    from lakelog.core.dml.merge.targets import Assignment
    from lakelog.core.schema import StructField


@dataclass(frozen=True, slots=True)
class NewRow:
    """A clause, and the row that it makes."""

    clause: MergeClause
    columns: tuple[NewColumn, ...] = ()
    """All columns of the table, in the order of its schema; none where it deletes the row."""


@dataclass(frozen=True, slots=True)
class RowRules:
    """Makes new rows of assignments."""

    before: StructType
    source: StructType
    after: StructType
    evolves: bool
    has_defaults: bool

    def row(self, clause: MergeClause, found: Sequence[Assignment]) -> NewRow:
        """What a clause with these assignments makes.

        Raises:
            DeltaAnalysisError: see `analyse_merge`.
        """
        match clause.action:
            case "delete":
                return NewRow(clause)
            case "update":
                return NewRow(clause, self.updated(found))
            case "insert":
                return NewRow(clause, self._inserted(found))

    def updated(self, found: Sequence[Assignment]) -> tuple[NewColumn, ...]:
        """The columns of a row that is updated.

        Raises:
            DeltaAnalysisError: see `analyse_merge`.
        """
        for each in found:
            ours = self.after.get(each.path[0])
            if ours is not None and identity_of(ours) is not None:
                raise DeltaAnalysisError(
                    "[DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED] UPDATE on IDENTITY column "
                    f"{ours.name} is not supported.",
                    column=ours.name,
                )
        by_column = _by_name(found, 0)
        return tuple(self._updated(each, by_column) for each in self.after)

    def _updated(
        self, ours: StructField, by_column: Mapping[str, Sequence[Assignment]]
    ) -> NewColumn:
        mine = by_column.get(ours.name.lower(), ())
        sql = generation_of(ours)
        if not mine and sql is not None:
            used = {path[0].lower() for path in referenced_columns(sql)}
            # An expression that only Spark can parse may depend on any column.
            if not used or not used.isdisjoint(by_column):
                return NewColumn(ours, Generated(sql), False)
        value = self._value(ours, (ours.name,), mine, self.before.get(ours.name))
        return NewColumn(ours, value, bool(mine) and not isinstance(value, Generated))

    def _value(
        self,
        ours: StructField,
        path: tuple[str, ...],
        found: Sequence[Assignment],
        before: StructField | None,
    ) -> Value:
        """What becomes of a column or field; `found` are assignments to it or within it."""
        if not found:
            if before is None:
                return Nothing()
            old = Kept((*path[:-1], before.name))
            return aligned(old, before.data_type, ours.data_type, path, evolves=True)
        if any(len(each.path) == len(path) for each in found):
            if len(found) > 1:
                raise DeltaAnalysisError(
                    "[DELTA_CONFLICT_SET_COLUMN] There is a conflict from these SET columns: "
                    f"{', '.join(dotted(each.path) for each in found)}.",
                    column=dotted(path),
                )
            return self._assigned(ours, path, found[0], before)
        assert isinstance(ours.data_type, StructType)  # the names were found in it
        inside = before.data_type if before is not None else StructType()
        by_field = _by_name(found, len(path))
        fields = []
        for each in ours.data_type:
            inner = (*path, each.name)
            mine = by_field.get(each.name.lower(), ())
            was = inside.get(each.name) if isinstance(inside, StructType) else None
            fields.append((each, self._value(each, inner, mine, was)))
        return Built(tuple(fields))

    def _assigned(
        self,
        ours: StructField,
        path: tuple[str, ...],
        found: Assignment,
        before: StructField | None = None,
    ) -> Value:
        value = found.value
        if isinstance(value, Taken):
            theirs = struct_field(value.path, self.source)
            assert theirs is not None  # taken from there
            kept = Kept(path) if found.keeps and before is not None else None
            return aligned(
                value,
                theirs.data_type,
                ours.data_type,
                path,
                evolves=self.evolves,
                kept=kept,
                kept_type=None if before is None else before.data_type,
            )
        if _is_default(value) and self.after.get("default") is None:
            return self._filled(ours) if len(path) == 1 else Nothing()
        return Given(value, evolves=self.evolves)

    def _inserted(self, found: Sequence[Assignment]) -> tuple[NewColumn, ...]:
        given = {each.path[0].lower(): each for each in found}
        columns = []
        for ours in self.after:
            mine = given.get(ours.name.lower())
            if mine is None or (_is_default(mine.value) and self.after.get("default") is None):
                columns.append(NewColumn(ours, self._filled(ours), False))
                continue
            identity = identity_of(ours)
            if identity is not None and not identity.allow_explicit:
                raise DeltaAnalysisError(
                    "[DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED] Providing values for "
                    f"GENERATED ALWAYS AS IDENTITY column {ours.name} is not supported. Leave the "
                    "column out.",
                    column=ours.name,
                )
            columns.append(NewColumn(ours, self._assigned(ours, (ours.name,), mine), True))
        return tuple(columns)

    def _filled(self, ours: StructField) -> Value:
        """What a writer gives a column that is left out, or set to `DEFAULT`."""
        sql = generation_of(ours)
        if sql is not None:
            return Generated(sql)
        if identity_of(ours) is not None:
            return Numbered()
        sql = default_of(ours)
        if sql is None:
            return Nothing()
        if not self.has_defaults:
            raise DeltaAnalysisError(
                "[WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED] The write would give the "
                f"column {ours.name} its DEFAULT, but the table does not have the feature: set "
                "its property delta.feature.allowColumnDefaults to supported.",
                column=ours.name,
            )
        return Default(sql)


def _by_name(found: Iterable[Assignment], depth: int) -> dict[str, list[Assignment]]:
    """The assignments by what their paths have at a depth, ignoring case."""
    named: dict[str, list[Assignment]] = {}
    for each in found:
        named.setdefault(each.path[depth].lower(), []).append(each)
    return named


def _is_default(value: Any) -> bool:
    return isinstance(value, str) and value.strip().upper() == "DEFAULT"
