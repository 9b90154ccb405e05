"""The new rows of an UPDATE as a DataFrame, beside what they were before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lakelog.core.engine.merge import Generated
from lakelog.core.engine.rows import generation_of
from lakelog.core.engine.write import CHANGE_TYPE
from lakelog.core.schema import StructType
from lakelog.spark.dml.merge.clause_values import RowValues, check_given, given_in
from lakelog.spark.reading.row_positions import FILE, ROW
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.types.type_sql import type_sql
from lakelog.spark.writing.enforced_rules import check_rule, enforced, filled_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from lakelog.core.engine.merge import NewColumn
    from lakelog.core.engine.rows import MovedRowIds
    from lakelog.core.schema import DataType
    from lakelog.spark.writing.enforced_rules import RowRule

_OLD = "__lakelog_old"
_FIRST_FILE, _FIRST = "__lakelog_first_file", "__lakelog_first"


@dataclass(frozen=True, slots=True)
class UpdatedRows:
    """Rows that an UPDATE changes."""

    both: DataFrame
    """The new rows' columns; those of the row ids; and all old values in a struct."""
    table: tuple[str, ...]
    ids: tuple[str, ...]

    @property
    def new(self) -> DataFrame:
        """The new rows, with the columns of row ids."""
        return self.both.select(*map(quoted, (*self.table, *self.ids)))

    @property
    def changes(self) -> DataFrame:
        """What the rows were and what they have become, for the change data feed."""
        old, new = (
            sf.struct(*columns, sf.lit(f"update_{kind}image").alias(CHANGE_TYPE))
            for columns, kind in ((self._old(), "pre"), (self._new(), "post"))
        )
        return self.both.select(sf.inline(sf.array(old, new)))

    @property
    def flat(self) -> DataFrame:
        """New values, row ids and old values, all in columns of their own, for `split`."""
        old = (each.alias(f"{_OLD}_{i}") for i, each in enumerate(self._old()))
        return self.both.select(*map(quoted, (*self.table, *self.ids)), *old)

    def split(self, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The new rows, and the old ones, of the rows of `flat`."""
        count = len(self.table)
        old = rows.select([f"{_OLD}_{i}" for i in range(count)]).rename_columns(list(self.table))
        return rows.select([*self.table, *self.ids]), old

    def _old(self) -> list[Column]:
        return [sf.col(_OLD).getField(name).alias(name) for name in self.table]

    def _new(self) -> list[Column]:
        return [sf.col(quoted(name)) for name in self.table]


def updated_rows(
    hit: DataFrame,
    columns: Sequence[NewColumn],
    rules: Sequence[RowRule],
    ids: MovedRowIds | None,
    firsts: Mapping[str, int | None],
) -> UpdatedRows:
    """Compute the new rows.

    Computing them fails at a row that breaks a rule of the table.

    Args:
        hit: the rows to change: the table's columns, those of `ids`, `FILE` and `ROW`.
        columns: what each column gets.
        rules: of the table.
        ids: how files carry row ids.
        firsts: value of `FILE` -> the id of the file's first row.
    """
    schema = StructType(tuple(each.field for each in columns))
    values = RowValues(
        lambda name: sf.col(quoted(name)),
        lambda name: sf.col(quoted(name)),
        (schema, StructType()),
        checked_types(hit, columns),
    )
    names = tuple(schema.names)
    late = {c.field.name: c.value.sql for c in columns if isinstance(c.value, Generated)}
    early = [
        values.of(each).alias(each.field.name) for each in columns if each.field.name not in late
    ]
    old = sf.struct(*(sf.col(quoted(name)).alias(name) for name in names)).alias(_OLD)
    carried = _carried(ids)
    both = _with_firsts(hit, ids, firsts).select(*early, *carried.values(), old)
    if late:
        both = filled_up(both, schema)
        both = both.selectExpr(
            *(
                f"CAST(({late[f.name]}\n) AS {type_sql(f.data_type)}) AS {quoted(f.name)}"
                if f.name in late
                else quoted(f.name)
                for f in schema
            ),
            *map(quoted, (*carried, _OLD)),
        )
    rules = list(rules)
    for each in columns:
        sql = generation_of(each.field)
        if sql is not None and each.is_assigned and each.field.name not in late:
            name = each.field.name
            message = (
                "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated Column "
                f"({name} <=> {sql}) violated by row with values:"
            )
            same = f"{quoted(name)} <=> CAST(({sql}\n) AS {type_sql(each.field.data_type)})"
            rules.append(check_rule(message, same, names))
    return UpdatedRows(enforced(both, rules), names, tuple(carried))


def checked_types(rows: DataFrame, columns: Sequence[NewColumn]) -> dict[int, DataType]:
    """The types of the user's expressions: `id` of each -> its type.

    Args:
        rows: what the expressions see.
        columns: what each column gets.

    Raises:
        DeltaAnalysisError: a column can't hold values of the type that it is given.
    """
    given = [each for column in columns for each in given_in(column.value)]
    schema = rows.select(*(_typed(each, i) for i, each in enumerate(given))).schema
    found = to_delta_schema(schema)
    types = {id(each): field.data_type for each, field in zip(given, found, strict=True)}
    for column in columns:
        check_given(column.value, types, column.field.data_type, (column.field.name,))
    return types


def _typed(given: str | Column, number: int) -> Column:
    column = sf.expr(given) if isinstance(given, str) else given
    return column.alias(f"c{number}")


def _with_firsts(
    hit: DataFrame, ids: MovedRowIds | None, firsts: Mapping[str, int | None]
) -> DataFrame:
    """The rows with the id of their file's first row, where row ids are wanted."""
    if ids is None:
        return hit
    import pyarrow as pa

    known = pa.table(
        {
            _FIRST_FILE: pa.array(list(firsts), pa.string()),
            _FIRST: pa.array(list(firsts.values()), pa.int64()),
        }
    )
    right = sf.broadcast(hit.sparkSession.createDataFrame(known))
    return hit.join(right, sf.col(FILE) == sf.col(_FIRST_FILE), "left")


def _carried(ids: MovedRowIds | None) -> dict[str, Column]:
    """The columns of row ids: the id that the row has, and no version, which is this commit's."""
    if ids is None:
        return {}
    row_id, version = (field.name for field in ids.add_id_columns(StructType()))
    place = sf.col(_FIRST) + sf.col(ROW)
    return {
        row_id: sf.coalesce(sf.col(quoted(row_id)), place).alias(row_id),
        version: sf.lit(None).cast("bigint").alias(version),
    }
