"""The rows that a MERGE changes and inserts, as DataFrames."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from lakelog.core.engine.merge import Generated, Numbered
from lakelog.core.engine.rows import generation_of
from lakelog.core.schema import PrimitiveType
from lakelog.spark.dml.merge.clause_values import RowValues, as_column
from lakelog.spark.dml.merge.numbered_source import NUMBER, source_column
from lakelog.spark.types.path_forms import quoted
from lakelog.spark.types.type_sql import type_sql
from lakelog.spark.writing.enforced_rules import check_rule, enforced, filled_up
from lakelog.spark.writing.stored import null_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from lakelog.core.engine.merge import MergePlan, NewRow
    from lakelog.core.schema import DataType
    from lakelog.spark.dml.merge.numbered_source import MergeSource
    from lakelog.spark.dml.merge.placed_target import MergeTarget
    from lakelog.spark.writing.enforced_rules import RowRule

CLAUSE = "__lakelog_clause"
"""The number of the clause that applies to a row."""
NO_CLAUSE = -1
_NEW = "__lakelog_n"
_VOID = PrimitiveType("void")


@dataclass(frozen=True, slots=True)
class MergeRows:
    """Builds the DataFrames of a MERGE."""

    plan: MergePlan
    target: MergeTarget
    source: MergeSource
    types: Mapping[int, DataType]
    """`id` of an expression -> its type."""
    rules: Sequence[RowRule]
    """Of the table."""
    column: Callable[[str | Column], Column] = as_column
    """Makes a Column of an expression of the MERGE."""

    def numbers(self, when: str, action: str | None = None) -> list[int]:
        """The numbers of the clauses for some rows."""
        return [
            number
            for number, row in enumerate(self.plan.rows)
            if row.clause.when == when and action in (None, row.clause.action)
        ]

    @property
    def updating(self) -> list[int]:
        """The numbers of the clauses that update."""
        matched, alone = "matched", "not matched by source"
        return [*self.numbers(matched, "update"), *self.numbers(alone, "update")]

    def changed(self, condition: Column, *, all_matches: bool) -> DataFrame:
        """The table's rows that a clause applies to, as they were and as they will be.

        Columns: the table's, with new values where a clause updates the row; `target.hidden`;
        `NUMBER` of the source row that matches, and `CLAUSE`.

        Args:
            condition: what rows match by.
            all_matches: whether matched rows that no clause applies to are wanted too.
        """
        alone = self.numbers("not matched by source")
        how = "left" if alone else "inner"
        pairs = self.target.df.join(self.source.joined, condition, how)
        matched = self.numbers("matched")
        is_matched = sf.col(NUMBER).isNotNull()
        first = sf.when(is_matched, self._clause(matched)) if alone else self._clause(matched)
        pairs = pairs.select("*", first.alias(CLAUSE))
        hidden = [*self.target.hidden, NUMBER]
        if not self.updating:
            found = pairs
            if alone:
                found = self.target.alone(pairs, NUMBER, CLAUSE)
                found = found.select(*hidden, self._either(alone))
            return self._wanted(found, all_matches=all_matches).select(*hidden, CLAUSE)
        fields = self.plan.schema.fields
        values = [self._new(i, matched).alias(f"{_NEW}{i}") for i in range(len(fields))]
        if alone:
            found = self.target.alone(pairs.select(*hidden, CLAUSE, *values), *self._both(values))
            found = found.select("*", self._either(alone).alias(f"{CLAUSE}_"))
            new = [
                sf.when(is_matched, sf.col(f"{_NEW}{i}"))
                .otherwise(self._new(i, alone, f"{CLAUSE}_"))
                .alias(f"{_NEW}{i}")
                for i in range(len(fields))
            ]
            found = found.select(*hidden, sf.col(f"{CLAUSE}_").alias(CLAUSE), *new)
        else:
            found = pairs.select(*hidden, CLAUSE, *values)
        found = self._wanted(found, all_matches=all_matches)
        renamed = [f"{_NEW}{i} AS {quoted(f.name)}" for i, f in enumerate(fields)]
        found = found.selectExpr(*renamed, *hidden, CLAUSE)
        return self._checked(self._generated(found, self.updating), self.updating)

    def inserted(self, matched: DataFrame | None) -> DataFrame:
        """The rows that are inserted: the table's columns, and `CLAUSE`.

        A column that is an identity has values only where a clause gives some.

        Args:
            matched: `NUMBER` of the source rows that match; `None` where none does.
        """
        clauses = self.numbers("not matched")
        rows = self.source.df
        if matched is not None:
            other = f"{NUMBER}_"
            same = sf.col(NUMBER) == sf.col(other)
            rows = rows.join(matched.withColumnRenamed(NUMBER, other), same, "left_anti")
        rows = rows.select("*", self._clause(clauses).alias(CLAUSE))
        rows = rows.where(sf.col(CLAUSE) != NO_CLAUSE)
        fields = self.plan.schema.fields
        new = [self._new(i, clauses).alias(f"{_NEW}{i}") for i in range(len(fields))]
        rows = rows.select(*new, CLAUSE)
        renamed = [sf.col(f"{_NEW}{i}").alias(f.name) for i, f in enumerate(fields)]
        return self._checked(self._generated(rows.select(*renamed, CLAUSE), clauses), clauses)

    def numbered(self, name: str) -> list[int]:
        """The clauses that leave an identity column to the writer."""
        return [
            number
            for number in self.numbers("not matched")
            if any(
                each.field.name == name and isinstance(each.value, Numbered)
                for each in self.plan.rows[number].columns
            )
        ]

    def _clause(self, numbers: Sequence[int]) -> Column:
        """The first of some clauses whose condition is true."""
        found: Column | None = None
        for number in numbers:
            given = self.plan.rows[number].clause.condition
            holds = sf.lit(True)
            if given is not None:
                holds &= self.column(given)  # to CASE WHEN, `null` alone is no condition
            value = sf.lit(number)
            found = sf.when(holds, value) if found is None else found.when(holds, value)
        return sf.lit(NO_CLAUSE) if found is None else found.otherwise(NO_CLAUSE)

    def _either(self, alone: Sequence[int]) -> Column:
        matched = sf.col(NUMBER).isNotNull()
        return sf.when(matched, sf.col(CLAUSE)).otherwise(self._clause(alone)).alias(CLAUSE)

    def _both(self, values: Sequence[Column]) -> list[str]:
        names = [f"{_NEW}{i}" for i in range(len(values))]
        return [NUMBER, CLAUSE, *names]

    def _wanted(self, rows: DataFrame, *, all_matches: bool) -> DataFrame:
        applies = sf.col(CLAUSE) != NO_CLAUSE
        return rows.where(applies | sf.col(NUMBER).isNotNull() if all_matches else applies)

    def _new(self, at: int, numbers: Sequence[int], clause: str = CLAUSE) -> Column:
        """The new value of a column, where it is not generated; else null."""
        kind = self.plan.schema.fields[at].data_type
        if kind == _VOID:
            return sf.lit(None)  # no file holds it
        values = RowValues(
            self.target.column,
            lambda name: source_column(self.source.schema, name),
            (self.target.schema, self.source.schema),
            self.types,
            self.column,
        )
        found: Column | None = None
        for number in numbers:
            row: NewRow = self.plan.rows[number]
            if not row.columns or isinstance(row.columns[at].value, Generated | Numbered):
                continue
            applies = sf.col(clause) == number
            value = values.of(row.columns[at])
            found = sf.when(applies, value) if found is None else found.when(applies, value)
        # Without this a column that no clause sets would be of type void.
        nothing = null_of(kind)
        return nothing if found is None else found.otherwise(nothing)

    def _generated(self, rows: DataFrame, numbers: Sequence[int]) -> DataFrame:
        """The rows with what generation expressions give for them."""
        computed = {}
        for at, field in enumerate(self.plan.schema):
            clauses = [
                number
                for number in numbers
                if self.plan.rows[number].columns
                and isinstance(self.plan.rows[number].columns[at].value, Generated)
            ]
            sql = generation_of(field)
            if clauses and sql is not None:
                computed[field.name] = (
                    f"CASE WHEN {CLAUSE} IN ({', '.join(map(str, clauses))}) THEN "
                    f"CAST(({sql}\n) AS {type_sql(field.data_type)}) ELSE {quoted(field.name)} END "
                    f"AS {quoted(field.name)}"
                )
        if not computed:
            return rows
        rows = filled_up(rows, self.plan.schema)
        names = self.plan.schema.names
        own = [computed.get(name, quoted(name)) for name in names]
        return rows.selectExpr(*own, *map(quoted, rows.columns[len(names) :]))

    def _checked(self, rows: DataFrame, numbers: Sequence[int]) -> DataFrame:
        rules = [*self.rules, *self._generation_rules(numbers)]
        which = f"{CLAUSE} IN ({', '.join(map(str, numbers))})"
        return enforced(
            rows, [replace(each, violated=f"({which} AND {each.violated})") for each in rules]
        )

    def _generation_rules(self, numbers: Sequence[int]) -> Iterable[RowRule]:
        """Generated columns that a clause sets must have the value that they would get."""
        for at, field in enumerate(self.plan.schema):
            sql = generation_of(field)
            if sql is None:
                continue
            rows = [self.plan.rows[number] for number in numbers]
            if not any(r.columns and r.columns[at].is_assigned for r in rows):
                continue
            cast = f"CAST(({sql}\n) AS {type_sql(field.data_type)})"
            yield check_rule(
                "[DELTA_VIOLATE_CONSTRAINT_WITH_VALUES] CHECK constraint Generated Column "
                f"({field.name} <=> {sql}) violated by row with values:",
                f"{quoted(field.name)} <=> {cast}",
                self.plan.schema.names,
            )
