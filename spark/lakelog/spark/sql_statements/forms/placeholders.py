"""`{name}` in a statement of ours, for values and DataFrames: as PySpark fills them in."""

from __future__ import annotations

import string
import uuid
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import Column

from lakelog.spark.names.plain import plain_method
from lakelog.spark.types.path_forms import text_literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

_NOTHING = "__lakelog_nothing"


class Placeholders(string.Formatter):
    """Fills in the keyword arguments of `sql`.

    A DataFrame becomes a temporary view, which lives as long as the command runs.
    """

    def __init__(self, spark: SparkSession, values: Mapping[str, Any]) -> None:
        """Nothing happens before `filled`."""
        self._spark = spark
        self._values = values
        self.frames: dict[str, DataFrame] = {}

    def filled(self, sql: str) -> str:
        """The text with SQL in the places of placeholders."""
        return self.vformat(sql, (), self._values)

    def get_field(
        self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """A value as SQL."""
        value, first = super().get_field(field_name, args, kwargs)
        if isinstance(value, Column):
            value = _name_of(self._spark, value)
        elif hasattr(value, "sparkSession") and hasattr(value, "schema"):
            known = [name for name, each in self.frames.items() if each is value]
            name = known[0] if known else f"_lakelog_{uuid.uuid4().hex}"
            self.frames[name] = value
            value = name
        elif isinstance(value, str):
            value = text_literal(value)
        return value, first

    def during(self, command: Callable[[], DataFrame]) -> DataFrame:
        """Run a command while the views are there."""
        made = []
        try:
            for name, frame in self.frames.items():
                frame.createTempView(name)
                made.append((name, frame))
            return command()
        finally:
            for name, frame in made:
                frame.sparkSession.catalog.dropTempView(name)


def _name_of(spark: SparkSession, column: Column) -> str:
    """The SQL of a Column that is a name.

    Spark quotes it as it was meant, parts and all, where it says that nothing in it is called so.
    (`user` and `current_date` alone are functions where no column is.)

    Raises:
        PySparkValueError: it is an expression.
    """
    query = f"SELECT {{column}}.{_NOTHING}"
    try:
        plain_method(spark, "sql")(query, column=column).schema  # noqa: B018  # has Spark analyse
    except AnalysisException as exc:
        name = (exc.getMessageParameters() or {}).get("objectName", "")
        if name.endswith(f".`{_NOTHING}`"):
            return name.removesuffix(f".`{_NOTHING}`")
        raise
    raise AssertionError(f"{column} has a field {_NOTHING}")
