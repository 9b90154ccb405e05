"""Columns that a write fills: defaults, numbers of identity columns, generated values.

Tasks assign numbers independently of each other. Task p of at most P gives its n-th
row the number with the index `taken + n * P + p`: unique, on the column's lattice, without a
second pass over the rows, and with gaps where tasks have fewer rows than others, as in Delta.
Spark SQL knows a row's p and n (`monotonically_increasing_id`), but not how many tasks there will
be; so `coalesce(P)`, which moves no row, sees to it that there are no more. Rows that the driver
writes itself are one task's, and their numbers have no gaps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core.engine.rows import check_fillable, default_of, generation_of, missing_identities
from lakelog.core.schema import StructField, StructType
from lakelog.logstores import keys as store_keys
from lakelog.spark.session.job_errors import failing
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.type_sql import type_sql
from lakelog.spark.writing.enforced_rules import (
    RowRule,
    check_generation,
    check_rule,
    checked_default,
    filled_up,
)
from lakelog.spark.writing.projection import projection

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lakelog.core import DeltaConf
    from lakelog.core.actions import Protocol
    from lakelog.core.engine.rows import Identity

_TASK_SHIFT = 33


@dataclass(frozen=True, slots=True)
class FilledColumns:
    """The columns of a table that rows of one schema lack, and how they are filled."""

    data: StructType
    """Of the rows as they come."""
    target: StructType
    """Of the table."""
    identities: dict[str, Identity]
    """The columns to number."""
    max_tasks: int

    @classmethod
    def from_schemas(
        cls, data: StructType, target: StructType, protocol: Protocol, table: str, conf: DeltaConf
    ) -> FilledColumns:
        """Find the columns to fill.

        Raises:
            DeltaAnalysisError: values for a column that is always an identity, a default in a table
                without the feature, or an expression that Spark is not to run for a table.
            UnsupportedFeatureError: a field within another column that is to be filled.
        """
        check_fillable(target, data, protocol, table)
        for field in target:
            check_generation(field, table, conf)
            if data.get(field.name) is None:
                checked_default(field, table, conf)
        identities = missing_identities(target, data, table)
        return cls(data, target, identities, max(conf.read(store_keys.IDENTITY_TASKS), 1))

    def rows(self, frame: DataFrame, max_tasks: int | None = None) -> DataFrame:
        """The rows with exactly the table's columns.

        Args:
            frame: rows of `data`.
            max_tasks: the tasks that number the rows, at most; default: as the conf says.
        """
        missing = [f for f in self.target if self.data.get(f.name) is None]
        generated = {f.name: f for f in missing if generation_of(f) is not None}
        late = generated.keys() | self.identities.keys()
        early = StructType(tuple(f for f in self.target if f.name not in late))
        defaults = {
            f.name: _cast(sql, f)
            for f in missing
            if (sql := default_of(f)) is not None and f.name not in late
        }
        columns = projection(self.data, early, defaults)
        found = frame if columns is None else frame.selectExpr(*columns)
        if self.identities:
            found = self._numbered(found, early, max_tasks or self.max_tasks)
        if generated:
            found = filled_up(found, early)
            found = found.selectExpr(*(self._column(f, generated) for f in self.target))
        elif self.identities:
            found = found.selectExpr(*map(quoted, self.target.names))
        return found

    def rules(self) -> list[RowRule]:
        """Rules that check the generated values which the rows already have."""
        rules = []
        for field in self.target:
            sql = generation_of(field)
            if sql is None or self.data.get(field.name) is None:
                continue
            message = (
                "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated Column "
                f"({field.name} <=> {sql}) violated by row with values:"
            )
            same = f"{quoted(field.name)} <=> {_cast(sql, field)}"
            rules.append(check_rule(message, same, self.target.names))
        return rules

    def _numbered(self, frame: DataFrame, early: StructType, tasks: int) -> DataFrame:
        numbers = (
            f"{_number_sql(name, each, tasks)} AS {quoted(name)}"
            for name, each in self.identities.items()
        )
        return frame.coalesce(tasks).selectExpr(*map(quoted, early.names), *numbers)

    def _column(self, field: StructField, generated: dict[str, StructField]) -> str:
        sql = generation_of(field) if field.name in generated else None
        if sql is None:
            return quoted(field.name)
        return f"{_cast(sql, field)} AS {quoted(field.name)}"


def _cast(sql: str, field: StructField) -> str:
    # The line end closes a comment that the expression may end in.
    return f"CAST(({sql}\n) AS {type_sql(field.data_type)})"


def _number_sql(name: str, sequence: Identity, tasks: int) -> str:
    """The number of a row; computing one beyond a bigint stops the job."""
    row = "monotonically_increasing_id()"
    index = f"({row} & {(1 << _TASK_SHIFT) - 1}L) * {tasks}L + shiftright({row}, {_TASK_SHIFT})"
    step = f"CAST('{sequence.step}' AS DECIMAL(38,0))"
    first = f"CAST('{sequence.value(sequence.taken)}' AS DECIMAL(38,0))"
    number = f"try_cast(try_add({first}, try_multiply({step}, {index})) AS BIGINT)"
    message = (
        f"the identity column {name} has no numbers left: the next would not fit a bigint (start "
        f"{sequence.start}, step {sequence.step}, last {sequence.high_water_mark})."
    )
    return f"coalesce({number}, CAST({failing(message)} AS BIGINT))"
