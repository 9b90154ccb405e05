"""What an expression of a command is, Spark says by its analysis, and no text decides it."""

from __future__ import annotations

import logging
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkValueError
from pyspark.logger import PySparkLogger
from pyspark.sql import Window
from pyspark.sql import functions as sf

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark import DeltaTable, sql, write_to

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from support.days import OfTheDay

    Made = Callable[[SparkSession, str], str | Column]
    """An expression of a session, by what stands before a column: `t.`, or nothing."""

pytestmark = pytest.mark.connect

NAMES = ["sum(v)", "(SELECT 1)", "count(*)", "rank() OVER (x)", "( * )", "EXISTS ([a: int])"]
FIELDS = ["exists(", "sum(v)", "x IN (SELECT y)", "explode(xs)", "subquery"]


def _column(name: str) -> Made:
    return lambda _, q: sf.col(f"{q}{name}")


def _text(text: str) -> Made:
    return lambda _, q: text.replace("$", q)


def _udf(column: str) -> Made:
    return lambda _, q: sf.udf(lambda x: x + 1, "int")(sf.col(f"{q}{column}"))


TAKEN: dict[str, Made] = {
    **{name: _column(f"`{name}`") for name in NAMES},
    **{f"s.{name}": _column(f"s.`{name}`") for name in FIELDS},
    "names in SQL": _text("$`sum(v)` + abs($s.`x IN (SELECT y)`)"),
    "words in SQL": _text("abs($values) + ($table) /* (SELECT sum(1)) */"),
    "a lambda in SQL": _text("if(exists($xs, x -> x > 1), 1, 0)"),
    "texts in SQL": _text("length('(SELECT 1) sum(1) EXISTS (SELECT 1) (*)')"),
    "a udf": _udf("n"),
    "a udf of such a name": _udf("`sum(v)`"),
    "exists": lambda _, q: sf.exists(f"{q}xs", lambda x: x > 1).cast("int"),
    "forall": lambda _, q: sf.forall(f"{q}xs", lambda x: x > 1).cast("int"),
    "transform": lambda _, q: sf.transform(f"{q}xs", lambda x: x + 1)[0],
    "aggregate": lambda _, q: sf.aggregate(f"{q}xs", sf.lit(0), lambda a, x: a + x),
    "a text": lambda _, q: sf.length(sf.lit("exists(SELECT sum(1) OVER (x)) ([a: int]) (*)")),
}


def _query(spark: SparkSession) -> Column:
    return spark.range(3).select(sf.max("id").cast("int")).scalar()


ONE_VALUE: dict[str, Made] = {
    "a query": _text("(SELECT 2)"),
    "with a comment": _text("(/* x */ SELECT 2)"),
    "without SELECT": _text("(VALUES (2))"),
    "in expr": lambda _, q: sf.expr("(SELECT int(max(id)) FROM range(3))"),
    "of a DataFrame": lambda spark, q: _query(spark),
    "beside a udf": lambda spark, q: _query(spark) + sf.udf(lambda x: 0 * x, "int")(f"{q}n"),
}
"""Queries that give 2; a new value may have them, and a condition may not."""

REFUSED: dict[str, Made] = {
    "a sum": lambda _, q: sf.sum(f"{q}n").cast("int"),
    "a sum in SQL": _text("int(sum($n))"),
    "a count": lambda _, q: sf.count("*").cast("int"),
    "a window": lambda _, q: sf.row_number().over(Window.partitionBy(f"{q}n").orderBy(f"{q}id")),
    "a window in SQL": _text("int(sum($n) OVER (PARTITION BY $id))"),
    "a generator": lambda _, q: sf.explode(f"{q}xs"),
    "a generator in SQL": _text("explode($xs)"),
    "IN": _text("int($n IN (SELECT id FROM range(3)))"),
    "IN of a DataFrame": lambda spark, q: sf.col(f"{q}n").isin(spark.range(3)).cast("int"),
    "EXISTS": _text("int(EXISTS (SELECT 1))"),
    "correlated": _text("(SELECT int(max(r.id)) FROM range(3) r WHERE r.id = $n)"),
    "a star": lambda _, q: sf.size(sf.array(sf.struct("*"))),
}
"""What neither a condition nor a value may be."""

OUTCOMES = [f"c{i}" for i in range(len(TAKEN))]


@pytest.fixture
def path(tmp_path: Path) -> str:
    ints = pa.array([5, 6, 7], pa.int32())
    columns: dict[str, Any] = {
        "id": pa.array([1, 2, 3], pa.int32()),
        **dict.fromkeys(("n", "values", "table", *NAMES), ints),
        "xs": pa.array([[1, 2], [0], [3]], pa.list_(pa.int32())),
        "s": pa.StructArray.from_arrays([ints] * len(FIELDS), FIELDS),
        **{name: pa.nulls(3, pa.int32()) for name in OUTCOMES},
    }
    path = str(tmp_path / "t")
    write_arrow(
        path, pa.table(columns), mode="append", properties={"delta.columnMapping.mode": "name"}
    )
    return path


def _made(spark: SparkSession, these: dict[str, Made], alias: str) -> list[str | Column]:
    return [each(spark, alias) for each in these.values()]


def _as_columns(given: list[str | Column]) -> list[Column]:
    return [sf.expr(each) if isinstance(each, str) else each for each in given]


def _rows(frame: DataFrame, columns: list[Column]) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("id", *columns).collect())


def _outcomes(table: DeltaTable, count: int = 1) -> list[tuple[Any, ...]]:
    return _rows(table.toDF(), [sf.col(name) for name in OUTCOMES[:count]])


def _all_known(given: list[str | Column]) -> Column:
    return reduce(and_, (each.isNotNull() for each in _as_columns(given)))


@pytest.mark.soak
def test_what_only_looks_like_something_else_is_taken(
    spark: SparkSession, path: str, of_the_day: OfTheDay
) -> None:
    table = DeltaTable.forPath(spark, path)
    drawn = dict(of_the_day([*TAKEN.items()], len(TAKEN) // 3, about="taken"))
    plain = _made(spark, drawn, "")
    outcomes = OUTCOMES[: len(plain)]
    expected = _rows(table.toDF(), _as_columns(plain))

    table.update(_all_known(plain), dict(zip(outcomes, plain, strict=True)))
    assert _outcomes(table, len(plain)) == expected

    table.update(set=dict.fromkeys(outcomes, "null"))
    of_target, of_source = _made(spark, drawn, "t."), _made(spark, drawn, "o.")
    new = dict(zip(outcomes, of_target, strict=True))
    source = (
        table.toDF().where("id < 3").withColumn("id", sf.when(sf.col("id") == 2, 12).otherwise(1))
    )
    (
        table.alias("t")
        .merge(source.alias("o"), (sf.col("t.id") == sf.col("o.id")) & _all_known(of_target))
        .whenMatchedUpdate(_all_known(of_target), new)
        .whenNotMatchedBySourceUpdate(_all_known(of_target), new)
        .whenNotMatchedInsert(
            _all_known(of_source),
            {"id": "o.id", **dict(zip(outcomes, of_source, strict=True))},
        )
        .execute()
    )
    assert _outcomes(table, len(plain)) == [*expected, (12, *expected[1][1:])]

    table.delete(_all_known(plain))
    assert _outcomes(table, len(plain)) == [(12, *expected[1][1:])]


def _commands(
    spark: SparkSession, table: DeltaTable, made: Made
) -> tuple[dict[str, Callable[[], object]], dict[str, Callable[[], object]]]:
    """An expression as the condition, and as a value, of each command."""

    def condition(alias: str) -> str | Column:
        given = made(spark, alias)
        return f"({given}) > 1" if isinstance(given, str) else given > 1

    def value(alias: str) -> dict[str, Any]:
        return {"c0": made(spark, alias)}

    source = table.toDF().withColumn("id", sf.col("id") + 1)
    merge = table.alias("t").merge(source.alias("o"), "t.id = o.id")
    both = sf.expr("t.id = o.id") & _as_columns([condition("t.")])[0]
    conditions: dict[str, Callable[[], object]] = {
        "DELETE": lambda: table.delete(condition("")),
        "UPDATE": lambda: table.update(condition(""), {"c0": "1"}),
        "MERGE": lambda: (
            table.alias("t").merge(source.alias("o"), both).whenMatchedDelete().execute()
        ),
        "matched": lambda: merge.whenMatchedDelete(condition("t.")).execute(),
        "not matched": lambda: merge.whenNotMatchedInsert(condition("o."), {"id": "0"}).execute(),
        "by source": lambda: merge.whenNotMatchedBySourceDelete(condition("t.")).execute(),
    }
    values: dict[str, Callable[[], object]] = {
        "UPDATE": lambda: table.update(set=value("")),
        "matched": lambda: merge.whenMatchedUpdate(set=value("t.")).execute(),
        "not matched": lambda: merge.whenNotMatchedInsert(values=value("o.")).execute(),
        "by source": lambda: merge.whenNotMatchedBySourceUpdate(set=value("t.")).execute(),
    }
    return conditions, values


@pytest.mark.one_day_in(3)
@pytest.mark.soak
@pytest.mark.connect(name=("a sum", "a window in SQL", "a generator", "IN of a DataFrame"))
@pytest.mark.parametrize("name", REFUSED)
def test_what_no_expression_may_be_is_refused(
    spark: SparkSession, path: str, name: str, of_the_day: OfTheDay
) -> None:
    table = DeltaTable.forPath(spark, path)
    conditions, values = _commands(spark, table, REFUSED[name])
    if name == "a star":
        del values["not matched"]  # the source's own columns
    taken = []
    for place, run in (
        *of_the_day([*conditions.items()], 1, about=name),
        *of_the_day([*values.items()], 1, about=name),
    ):
        try:
            run()
        except (AnalysisException, DeltaAnalysisError):
            continue
        taken.append(place)
    assert taken == []
    assert DeltaLog.for_table(path).update().version == 0


class _KeptRecords(logging.Handler):
    """What PySpark logs of expressions that were refused."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        PySparkLogger.getLogger("SQLQueryContextLogger").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.mark.one_day_in(2, 1)
@pytest.mark.soak
def test_a_query_for_one_value_is_a_value_and_in_no_condition(
    spark: SparkSession, path: str, of_the_day: OfTheDay
) -> None:
    table = DeltaTable.forPath(spark, path)
    for name, made in ONE_VALUE.items():
        for place, run in of_the_day([*_commands(spark, table, made)[0].items()], 1, about=name):
            with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_SUBQUERY"):
                run()
            assert DeltaLog.for_table(path).update().version == 0, (name, place)

    def values(alias: str) -> dict[str, Any]:
        return dict(zip(OUTCOMES, _made(spark, ONE_VALUE, alias), strict=False))

    twos = (2,) * len(ONE_VALUE)

    def made_twos() -> list[bool]:
        return [row[1:] == twos for row in _outcomes(table, len(twos))]

    handler = _KeptRecords()
    table.update(set=values(""))
    assert handler.records == []
    assert made_twos() == [True] * 3
    table.update(set=dict.fromkeys(OUTCOMES[: len(twos)], "null"))
    (
        table.alias("t")
        .merge(table.toDF().withColumn("id", sf.col("id") + 1).alias("o"), "t.id = o.id")
        .whenMatchedUpdate(set=values("t."))
        .whenNotMatchedInsert(values={"id": "o.id", **values("o.")})
        .whenNotMatchedBySourceUpdate(set=values("t."))
        .execute()
    )
    assert made_twos() == [True] * 4


def test_a_table_is_partitioned_by_columns_alone(spark: SparkSession, path: str) -> None:
    frame = DeltaTable.forPath(spark, path).toDF().select("id", "n", "s", "`sum(v)`")
    for column in (sf.lit("n"), sf.col("s.subquery"), sf.col("n").alias("id"), sf.col("n") + 1):
        with pytest.raises(DeltaAnalysisError, match="TRANSFORM"):
            write_to(frame, "never_made").partitionedBy(column)
    for column in (sf.col("n"), sf.col("N"), sf.col("`sum(v)`"), frame["n"]):
        write_to(frame, "never_made").partitionedBy(column)


def test_a_column_in_a_statement_is_the_name_that_it_stands_for(
    spark: SparkSession, path: str
) -> None:
    table = DeltaTable.forPath(spark, path)
    for number, column in enumerate((sf.col("s.subquery"), sf.col("`sum(v)`"), sf.col("table"))):
        sql(spark, f"UPDATE delta.`{path}` SET c0 = {{c}} + {number}", c=column)
        assert [row[1] - number for row in _outcomes(table)] == [5, 6, 7]
    for other in (sf.lit("n"), sf.col("n") + 1):
        with pytest.raises(PySparkValueError):
            sql(spark, f"UPDATE delta.`{path}` SET c0 = {{c}}", c=other)
