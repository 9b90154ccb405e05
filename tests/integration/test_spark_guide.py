"""The Python blocks of docs/spark.md run as pasted, in order, in one namespace.

What the page takes as given (a session, a DataFrame, a table with a history, a folder of Parquet)
is made first; only `/lake` becomes a folder of the test's own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.errors import PySparkException

import lakelog.spark as delta
from lakelog.core import read_arrow, write_arrow
from lakelog.core.errors import ConcurrentAppendException

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BEFORE = 13
"""Commits that the table has when the page begins: it reads version 12."""


def test_the_examples_of_the_page_run_as_pasted(
    classic_spark: SparkSession, tmp_path: Path
) -> None:
    table = str(tmp_path / "flights")
    for number in range(BEFORE):
        flights = pa.table({"id": [number], "month": [1], "day": [7]})
        write_arrow(table, flights, mode="append", partition_by=["month"])
    rows = classic_spark.createDataFrame([(100, 1, 7)], "id LONG, month LONG, day LONG")
    rows.createTempView("more")
    rows.selectExpr("id", "DATE'2026-01-07' AS day").write.partitionBy("day").parquet(
        str(tmp_path / "old")
    )
    given = {
        "spark": classic_spark,
        "df": rows,
        "path": table,
        "PySparkException": PySparkException,
        "ConcurrentAppendException": ConcurrentAppendException,
    }
    code = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    assert code.count("/lake/") > 10, "the page no longer says where its tables are"
    try:
        exec(compile(code.replace("/lake/", f"{tmp_path}/"), str(PAGE), "exec"), given)
    finally:
        delta.disable(classic_spark)
        for view in ("more", "flights"):
            classic_spark.catalog.dropTempView(view)
    # `df` is version 12 by then. An append that is overwritten with the month that it is of, then
    # appends of it by `enable` and twice by the data source, and of one row by SQL.
    assert read_arrow(table).num_rows == 4 * BEFORE + 1
    assert read_arrow(str(tmp_path / "old")).num_rows == 1
