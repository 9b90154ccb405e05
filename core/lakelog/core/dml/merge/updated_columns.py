"""The SET of an UPDATE on Arrow data: a clause of a MERGE that has no source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.dml.merge.analysis import NewRow, analyse_update
from lakelog.core.dml.merge.build import RowBuilder
from lakelog.core.dml.merge.clauses import MergeClause
from lakelog.core.dml.merge.names import find_named
from lakelog.core.dml.merge.numbering import Numbering
from lakelog.core.dml.merge.sides import Side, Sides
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.protocol import supported_features
from lakelog.core.schema import StructType
from lakelog.core.schema.column_paths import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.dml.merge.new_rows import NewColumn
    from lakelog.core.expressions.context import EvalContext
    from lakelog.core.state.snapshot import Snapshot


def updated_columns(
    values: Mapping[str, Any], snapshot: Snapshot, *, alias: str | None = None
) -> Sequence[NewColumn]:
    """Resolve the SET of an UPDATE.

    Args:
        values: column, or field of a struct, -> what it gets.
        snapshot: has the table's schema and features.
        alias: what the statement calls the table.

    Raises:
        DeltaAnalysisError: no column at all, an unknown one, or one twice.
    """
    schema = snapshot.schema
    keys = [_as_path(name, schema) for name in values]
    if len(set(keys)) < len(keys):
        twice = next(each for each in keys if keys.count(each) > 1)
        raise DeltaAnalysisError(f"the column {twice} is set twice", column=twice)
    given = dict(zip(keys, values.values(), strict=True))
    has_defaults = "allowColumnDefaults" in supported_features(snapshot.protocol)
    return analyse_update(given, schema, alias=alias, has_defaults=has_defaults)


class UpdatedRows:
    """Makes the new rows of an UPDATE."""

    def __init__(
        self, columns: Sequence[NewColumn], snapshot: Snapshot, context: EvalContext
    ) -> None:
        """Check every value; no row is read.

        Args:
            columns: what `updated_columns` gives: text is SQL, the others are values or pyarrow's
                expressions.
            snapshot: has the table's schema, rules and conf.
            context: of the evaluation.

        Raises:
            DeltaAnalysisError: a value that its column can't hold exactly.
            InvalidPredicateError: SQL that can't be parsed, or that only Spark evaluates.
        """
        known = snapshot.read_schema
        sides = Sides(Side(known, None), Side(StructType(), None), context, "UPDATE")
        # The rows of a table that nothing is merged into are those without a source.
        names = {each.field.name: None for each in columns}
        clause = MergeClause("not matched by source", "update", None, names)
        table = snapshot.table
        self._rows = RowBuilder(
            NewRow(clause, tuple(columns)), sides, known, snapshot.metadata, table, Numbering(table)
        )

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The new rows for some old ones, with exactly the table's columns.

        Args:
            rows: every column of the table, and maybe others.

        Raises:
            ConstraintViolationError: new rows break a rule of the table.
            DeltaAnalysisError: a row for which an expression has no result, or one that its column
                can't hold.
        """
        names = [name for name in rows.column_names if name in self._rows.names]
        # A constant is evaluated as often as there are rows.
        used = rows.select(names) if names else pa.table({"": pa.nulls(rows.num_rows)})
        return self._rows.build(used)


def _as_path(name: str, schema: StructType) -> str:
    """A key as a path: a column's bare name is taken as well, where it can be no path."""
    if schema.get(name) is None:
        return name
    try:
        found = find_named(name, schema)
    except DeltaAnalysisError:
        found = None
    return quoted(name) if found is None else name
