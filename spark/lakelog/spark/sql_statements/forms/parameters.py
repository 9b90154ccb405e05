"""Values of parameters, `:name` and `?`, as SQL: expressions of a command are evaluated as text."""

from __future__ import annotations

import datetime
import decimal
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkTypeError
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, MapType, StructType

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.sql_statements.text.syntax_errors import located
from lakelog.spark.types.path_forms import quoted, text_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType

    from lakelog.spark.sql_statements.text.statement import Edit, Statement


class Parameters:
    """The parameters of one statement, and the text of its parts with their values."""

    def __init__(self, spark: SparkSession, statement: Statement, args: Any = None) -> None:
        """Note them; no value is looked at.

        Args:
            spark: the session, which evaluates values that are Columns.
            statement: the statement.
            args: a dict for `:name`, or a list for `?`.

        Raises:
            PySparkTypeError: `args` is something else.
        """
        if args is not None and not isinstance(args, dict | list):
            raise PySparkTypeError(
                errorClass="INVALID_TYPE",
                messageParameters={"arg_name": "args", "arg_type": type(args).__name__},
            )
        self.spark = spark
        self.statement = statement
        self._tokens = statement.tokens
        self.args: dict[str, Any] | list[Any] | None = args
        self._pieces: dict[tuple[int, int], Statement] = {}

    @cached_property
    def places(self) -> dict[int, tuple[int, Any]]:
        """First token of each parameter -> how many it has, and the name or the number of it."""
        if self.args is None:
            return {}
        by_name = isinstance(self.args, dict)
        found: dict[int, tuple[int, Any]] = {}
        types = 0
        for at, token in enumerate(self._tokens):
            # A colon between the angle brackets of a type stands after the name of a field.
            if token.upper == "STRUCT" and self._upper(at + 1) == "<":
                types += 1
            elif types and token.text == ">":
                types -= 1
            elif not by_name and token.text == "?":
                found[at] = (1, len(found))
            elif by_name and not types and token.text == ":" and at + 1 < len(self._tokens):
                name = self._tokens[at + 1].name
                if name is not None and self._tokens[at + 1].start == token.end:
                    found[at] = (2, name)
        return found

    def text(self, first: int, end: int) -> str:
        """The text of some tokens, with literals in the places of parameters.

        Raises:
            SqlSyntaxError: a parameter has no value.
        """
        return self.piece(first, end).text

    def piece(self, first: int, end: int) -> Statement:
        """The same, as a statement of its own.

        Raises:
            SqlSyntaxError: a parameter has no value.
        """
        # Kept: a value may be a Column, which only a query of Spark's gives the text of.
        if (first, end) not in self._pieces:
            begin = self._tokens[first].start if first < end else 0
            edits: list[Edit] = []
            for number in range(first, end):
                if number in self.places:
                    count, key = self.places[number]
                    start, stop = self._tokens[number].start, self._tokens[number + count - 1].end
                    edits.append((start - begin, stop - begin, self._literal(key, number)))
            self._pieces[first, end] = self.statement.piece(first, end).replaced(edits)
        return self._pieces[first, end]

    def known_text(self, first: int, end: int) -> str | None:
        """The string that some tokens mean, where no one has to be asked; `None` otherwise."""
        count, key = self.places.get(first, (0, None))
        if count:
            args: Any = self.args
            known = key in args if isinstance(args, dict) else key < len(args)
            value = args[key] if known and first + count == end else None
            return value if isinstance(value, str) else None
        text = self._tokens[first].text if first + 1 == end else ""
        plain = text[:1] in "'\"" and not {"\\", text[:1]} & set(text[1:-1])
        return text[1:-1] if text and plain else None

    def remaining(self, taken: Sequence[tuple[int, int]]) -> Any:
        """The arguments for a text from which some tokens were taken out."""
        if not isinstance(self.args, list):
            return self.args
        gone = {
            key
            for at, (_, key) in self.places.items()
            if any(first <= at < end for first, end in taken)
        }
        return [each for number, each in enumerate(self.args) if number not in gone]

    def _upper(self, at: int) -> str:
        return self._tokens[at].upper if at < len(self._tokens) else ""

    def _literal(self, key: Any, at: int) -> str:
        args: Any = self.args
        known = key in args if isinstance(args, dict) else key < len(args)
        if not known:
            shown = f":{key}" if isinstance(args, dict) else f"number {key + 1} (?)"
            raise located(
                self.statement.text,
                self._tokens[at].start,
                f"[UNBOUND_SQL_PARAMETER] The parameter {shown} has no value in args",
            )
        return literal(self.spark, args[key])


def literal(spark: SparkSession, value: Any) -> str:
    """A value as SQL, alone or in parentheses.

    Args:
        spark: evaluates what is a Column, or needs Spark to know its type.
        value: of Python, or a Column that needs no row.
    """
    simple = _simple(value)
    if simple is not None:
        return simple
    column = sf.lit(value)
    row = spark.range(1).select(column.alias("value"))
    found = row.first()
    assert found is not None
    return _typed(found[0], row.schema[0].dataType)


def _simple(value: Any) -> str | None:  # one line for each type
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() if -(2**31) <= value < 2**31:
            return str(value) if value >= 0 else f"({value})"
        case int() if -(2**63) < value < 2**63:
            return f"{value}L" if value >= 0 else f"({value}L)"
        case str():
            return text_literal(value)
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case float() if math.isfinite(value):
            return f"({value!r}D)"
        case float():
            return f"double('{value!r}')"
        case decimal.Decimal() if value.is_finite():
            return f"({value:f}BD)"
        case datetime.date() if not isinstance(value, datetime.datetime):
            return f"DATE'{value.isoformat()}'"
    return None


def _typed(value: Any, kind: DataType) -> str:
    if value is None:
        return f"CAST(NULL AS {_name(kind)})"
    if isinstance(kind, ArrayType):
        inner = ", ".join(_typed(each, kind.elementType) for each in value)
        return f"CAST(array({inner}) AS {_name(kind)})"
    if isinstance(kind, MapType):
        pairs = (
            f"{_typed(k, kind.keyType)}, {_typed(v, kind.valueType)}" for k, v in value.items()
        )
        return f"CAST(map({', '.join(pairs)}) AS {_name(kind)})"
    if isinstance(kind, StructType):
        fields = (
            f"{_typed(each, f.dataType)} AS {quoted(f.name)}"
            for each, f in zip(value, kind, strict=True)
        )
        return f"CAST(struct({', '.join(fields)}) AS {_name(kind)})"
    if isinstance(value, datetime.datetime):
        if kind.typeName() == "timestamp":
            # A moment, whatever zone the session has: a TIMESTAMP literal would be read in that
            # zone.
            micros = (value.astimezone(datetime.UTC) - _EPOCH) // datetime.timedelta(microseconds=1)
            return f"timestamp_micros({micros})"
        return f"TIMESTAMP_NTZ'{value.isoformat(sep=' ')}'"
    if isinstance(value, datetime.timedelta):
        micros = value // datetime.timedelta(microseconds=1)
        return f"CAST(make_dt_interval(0, 0, 0, {micros}BD / 1000000) AS {_name(kind)})"
    simple = _simple(value)
    if simple is None:
        raise DeltaAnalysisError(
            f"a parameter of the type {kind.simpleString()} can't be written as SQL: put it into "
            "a DataFrame, or write it into the statement",
            type=kind.simpleString(),
        )
    return simple if kind.typeName() == "void" else f"CAST({simple} AS {_name(kind)})"


def _name(kind: DataType) -> str:
    return kind.simpleString()


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
