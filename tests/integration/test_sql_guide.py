"""The Python blocks of docs/sql.md run as pasted, in order, in one namespace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import lakelog.spark as delta
from lakelog.core import read_arrow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "sql.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_run_as_pasted(
    classic_spark: SparkSession, tmp_path: Path
) -> None:
    feed = str(tmp_path / "feed")
    rows = classic_spark.range(3)
    delta.write(rows).option("delta.enableChangeDataFeed", "true").save(feed)
    code = "\n".join(BLOCK.findall(PAGE.read_text(encoding="utf-8")))
    assert code.count("/lake/") > 20, "the page no longer says where its tables are"
    try:
        exec(
            compile(code.replace("/lake/", f"{tmp_path}/"), str(PAGE), "exec"),
            {"spark": classic_spark},
        )
    finally:
        delta.disable(classic_spark)
    # The three rows of version 1, and the one that was merged after it was restored.
    assert read_arrow(str(tmp_path / "events")).num_rows == 4
    assert read_arrow(str(tmp_path / "totals")).num_columns == 3
