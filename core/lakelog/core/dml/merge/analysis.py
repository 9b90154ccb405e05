"""Resolving the clauses of a MERGE, or the SET of an UPDATE: what becomes of every column.

The rules are delta-spark's: names ignore case, one assignment for a column, fields of structs as
targets (`targets`), generated columns computed again, numbers and defaults for what an INSERT
leaves out (`row_rules`), and with schema evolution columns that only the source has (`evolution`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.dml.merge.clauses import check_clauses
from lakelog.core.dml.merge.evolution import evolved_schema
from lakelog.core.dml.merge.names import check_unambiguous
from lakelog.core.dml.merge.row_rules import NewRow, RowRules
from lakelog.core.dml.merge.targets import Targets
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.protocol import supported_features
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.dml.merge.clauses import MergeClause, When
    from lakelog.core.dml.merge.new_rows import NewColumn
    from lakelog.core.state.snapshot import Snapshot

__all__ = ["MergePlan", "NewRow", "analyse_merge", "analyse_update", "plan_merge"]


@dataclass(frozen=True, slots=True)
class MergePlan:
    """A MERGE whose names are resolved."""

    schema: StructType
    """The table's, as it will be."""
    rows: tuple[NewRow, ...]
    """One for each clause, in their order."""

    def of(self, when: When) -> list[NewRow]:
        """Those of the clauses for one kind of rows."""
        return [each for each in self.rows if each.clause.when == when]


def analyse_merge(
    clauses: Sequence[MergeClause],
    target: StructType,
    source: StructType,
    *,
    target_alias: str | None = None,
    source_alias: str | None = None,
    evolves: bool = False,
    widens: bool = False,
    has_defaults: bool = True,
) -> MergePlan:
    """Resolve the clauses of a MERGE.

    Args:
        clauses: in the order in which they were given.
        target: the table's schema.
        source: of the rows that are merged into it.
        target_alias: what the statement calls the table.
        source_alias: what it calls the source.
        evolves: whether the table gets columns that only the source has.
        widens: whether the table has type widening.
        has_defaults: whether the table has the feature for `DEFAULT`.

    Raises:
        DeltaAnalysisError: clauses that can't be reached, an unknown or ambiguous name, a column
            that is set twice, an identity column that is set, or a value of a type that its column
            can't have.
        SchemaMismatchError: the schema can't evolve to hold the source's columns.
    """
    check_clauses(clauses)
    check_unambiguous(source)
    if not target.fields and not evolves:
        raise DeltaAnalysisError(
            "[DELTA_MERGE_INTO_EMPTY_SCHEMA_TARGET] Cannot MERGE INTO a table with no columns. "
            "The target table must have columns, or schema evolution must be enabled."
        )
    names = Targets(target, source, target_alias, source_alias, evolves)
    settled = [names.assignments(each) for each in clauses]
    after = target
    if evolves:
        introduced = [
            each.path
            for clause, found in zip(clauses, settled, strict=True)
            if clause.when != "not matched by source"
            for each in found
        ]
        after = evolved_schema(target, source, introduced, widens=widens)
    rows = RowRules(target, source, after, evolves, has_defaults)
    pairs = zip(clauses, settled, strict=True)
    return MergePlan(after, tuple(rows.row(clause, found) for clause, found in pairs))


def plan_merge(
    snapshot: Snapshot,
    clauses: Sequence[MergeClause],
    source: StructType,
    *,
    target_alias: str | None,
    source_alias: str | None,
    evolves: bool,
) -> MergePlan:
    """Resolve the clauses of a MERGE into a version of a table, by its schema and features.

    Args:
        snapshot: the version.
        clauses: see `analyse_merge`, and so the rest.
        source: of the rows that are merged into it.
        target_alias: what the statement calls the table.
        source_alias: what it calls the source.
        evolves: whether the table gets columns that only the source has.

    Raises:
        DeltaError: see `analyse_merge`.
    """
    return analyse_merge(
        clauses,
        snapshot.schema,
        source,
        target_alias=target_alias,
        source_alias=source_alias,
        evolves=evolves,
        widens=snapshot.properties.type_widening,
        has_defaults="allowColumnDefaults" in supported_features(snapshot.protocol),
    )


def analyse_update(
    values: Mapping[str, Any],
    schema: StructType,
    *,
    alias: str | None = None,
    has_defaults: bool = True,
) -> tuple[NewColumn, ...]:
    """Resolve the SET of an UPDATE.

    Args:
        values: column or field -> expression.
        schema: the table's.
        alias: what the statement calls the table.
        has_defaults: whether the table has the feature for `DEFAULT`.

    Raises:
        DeltaAnalysisError: see `analyse_merge`.
    """
    if not values:
        raise DeltaAnalysisError("an update must set at least one column")
    names = Targets(schema, StructType(), alias, None, evolves=False)
    found = [names.assignment(key, each, "UPDATE") for key, each in values.items()]
    return RowRules(schema, StructType(), schema, False, has_defaults).updated(found)
