"""What every statement of ours needs: the session, a cursor, and the tables that it names."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from pyspark.sql.types import StructType

from lakelog.core.engine.schemas import dotted
from lakelog.spark.sql_statements.queries.named_tables import Place, opened, place_of
from lakelog.spark.sql_statements.queries.written_views import written_place
from lakelog.spark.sql_statements.text.qualified_columns import Qualifiers
from lakelog.spark.sql_statements.text.statement import Statement
from lakelog.spark.sql_statements.text.syntax_errors import NoDeltaTableError
from lakelog.spark.table.delta_table import DeltaTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import DeltaLog
    from lakelog.core.errors import DeltaAnalysisError
    from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
    from lakelog.spark.sql_statements.text.cursor import Cursor

Command: TypeAlias = "Callable[[], DataFrame]"
"""A statement that was read to its end, ready to run."""


@dataclass(slots=True)
class CommandContext:
    """A statement while it is read, and what running it needs."""

    spark: SparkSession
    cursor: Cursor
    runner: QueryRunner
    ctes: str = ""
    """The WITH before it, as text."""
    qualifiers: Qualifiers = field(default_factory=Qualifiers)
    """The names that its expressions may have before columns."""
    frames: tuple[str, ...] = ()
    """The temporary views that stand for DataFrames, while it runs."""
    through: Place | None = None
    """The table that is written by a view of a DataFrame, which has to show what was written."""
    is_ours: bool = False
    """Whether it is known to be about a Delta table; what can't be read before is Spark's."""

    def place(self) -> Place | None:
        """Go past the name of a table; `None` if it is not one of ours."""
        found = place_of(self.spark, self.cursor.name().parts)
        self.is_ours = self.is_ours or found is not None
        return found

    def written(self, verb: str) -> Place | None:
        """Go past the name of a table whose rows are changed, or of a view that means one.

        Args:
            verb: see `written_place`.

        Raises:
            DeltaAnalysisError: a view that means none.
        """
        found = written_place(self.spark, self.cursor.name().parts, verb)
        self.is_ours = self.is_ours or found is not None
        self.through = found if found is not None and found.view else None
        return found

    def place_or_path(self) -> Place | None:
        """The same, where Delta lets a path stand as a string too."""
        if self.cursor.token is not None and self.cursor.token.kind == "string":
            self.is_ours = True
            path = self.runner.value(self.cursor.string() or "")
            return Place(path, ("delta", path))
        return self.place()

    def ours(self, what: str) -> Place:
        """Go past the name of a table that must be one of ours: Spark itself has no such statement.

        Args:
            what: the statement, for the message.

        Raises:
            NoDeltaTableError: it is not.
        """
        first = self.cursor.at
        found = self.place_or_path()
        self.is_ours = True
        if found is None:
            raise self.cursor.error(
                f"[DELTA_TABLE_ONLY_OPERATION] {self.cursor.text(first, self.cursor.at)} is not a "
                f"Delta table. {what} is only supported for Delta tables; name one by its path as "
                "delta.`/path`, or by a name that the catalog has with USING delta",
                first,
                NoDeltaTableError,
            )
        return found

    def alias(self, *stops: str) -> str | None:
        """Go past the alias of a table, if there is one before some keywords."""
        if self.cursor.took("AS"):
            return self.cursor.identifier()
        token = self.cursor.token
        if token is None or token.name is None or self.cursor.word in stops:
            return None
        return self.cursor.identifier()

    def target(self, place: Place, *stops: str) -> str:
        """Go past the alias of the table that is changed; its name's last part, if there is none.

        Args:
            place: the table.
            stops: keywords that may follow.
        """
        alias = self.alias(*stops)
        if alias is not None:
            return alias
        for parts in (place.parts, place.whole, place.whole[1:]):
            self.qualifiers.add(parts, place.alias)
        return place.alias

    def table(self, place: Place, alias: str | None = None) -> DeltaTable:
        """Open a table.

        Raises:
            TableNotFoundError: there is none.
        """
        table = opened(self.spark, place, partial(DeltaTable.forPath, self.spark))
        return table if alias is None else table.alias(alias)

    def log(self, place: Place) -> DeltaLog:
        """The log of a table that exists.

        Raises:
            TableNotFoundError: there is none.
        """
        return self.table(place).log

    def with_ctes(self, query: Statement) -> Statement:
        """A query of the statement, with the WITH before it."""
        return Statement(f"{self.ctes} {query.text}") if self.ctes else query

    def nothing(self) -> DataFrame:
        """The answer of a statement that has none."""
        return self.spark.createDataFrame([], StructType())

    def answer(self, schema: str | StructType, *rows: tuple[object, ...]) -> DataFrame:
        """The answer of a statement."""
        return self.spark.createDataFrame(list(rows), schema)

    def expression(self, *stops: str, what: str = "an expression") -> Statement:
        """Go past an expression, and give it with aliases in the places of tables' names.

        Args:
            stops: keywords that may follow.
            what: it is, for the message.

        Raises:
            SqlSyntaxError: there is none.
        """
        return self.qualifiers.shortened(self.cursor.expression(*stops, what=what))

    def assignments(self, *stops: str) -> dict[str, Statement]:
        """Go past `a = 1, b.c = 2`.

        Raises:
            SqlSyntaxError: the text has another form, or a column is set twice.
        """
        found: dict[str, Statement] = {}
        while True:
            name = self.cursor.name()
            if self.cursor.word != "=":
                raise self.cursor.unexpected("=")
            self.cursor.at += 1
            key = dotted(self.qualifiers.path(name.parts))
            if key.lower() in {each.lower() for each in found}:
                raise self.cursor.error(
                    f"[DELTA_DUPLICATE_COLUMNS_ON_UPDATE_TABLE] The column {key} is set twice",
                    name.first,
                )
            found[key] = self.expression(",", *stops)
            if not self.cursor.took(","):
                return found

    def not_supported(
        self, what: str, condition: str = "DELTA_OPERATION_NOT_ALLOWED"
    ) -> DeltaAnalysisError:
        """The error for a statement that Delta does not have for its tables."""
        return self.cursor.error(
            f"[{condition}] Operation not allowed: {what} is not supported for Delta tables"
        )
