"""Variants go between delta-spark and us, shredded or not."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.paths import data_path
from support.variant_values import decoded

TEXTS = {
    1: '{"a":1,"b":"x","c":[1,null,{"d":true}]}',
    2: '{"a":2,"b":"y","c":[]}',
    3: '{"a":3,"b":"z"}',
    4: None,
    5: "null",
    6: '["x"]',
}


_SHREDDING = "spark.sql.variant.forceShreddingSchemaForTest"
"""Spark's own, which shreds into a schema that is given."""


def rows_of(path: str) -> dict[int, Any]:
    found = DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()
    return {
        row["id"]: ... if row["v"] is None else decoded(row["v"]["metadata"], row["v"]["value"])
        for row in found
    }


def expected() -> dict[int, Any]:
    return {i: ... if text is None else json.loads(text) for i, text in TEXTS.items()}


@pytest.mark.parametrize("shredded", ["false", "true"])
def test_variants_of_delta_spark_are_read_and_written_on(
    delta_spark: Any, tmp_path: Any, shredded: str
) -> None:
    path = str(tmp_path)
    delta_spark.sql(
        f"CREATE TABLE delta.`{path}` (id INT, v VARIANT) USING delta "
        f"TBLPROPERTIES ('delta.enableVariantShredding' = '{shredded}')"
    )
    values = ", ".join(
        f"({i}, {'NULL' if text is None else repr(text)})" for i, text in TEXTS.items()
    )
    into = "a int, b string, c array<variant>" if shredded == "true" else ""
    delta_spark.sql(f"SET {_SHREDDING}={into}")
    try:
        delta_spark.sql(
            f"INSERT INTO delta.`{path}` SELECT /*+ COALESCE(1) */ id, parse_json(j) "
            f"FROM VALUES {values} AS t(id, j)"
        )
    finally:
        delta_spark.sql(f"RESET {_SHREDDING}")
    if shredded == "true":
        files = [data_path(path, add.path) for add in DeltaLog.for_table(path).snapshot.files()]
        assert any("typed_value" in str(pq.read_schema(file)) for file in files)
    assert rows_of(path) == expected()
    again = DeltaLog.for_table(path).snapshot.to_arrow()
    delete_rows(path, "id >= 2")
    assert rows_of(path) == {1: expected()[1]}
    write_arrow(path, again.filter(pc.field("id") >= 2), mode="append")
    theirs = delta_spark.sql(f"SELECT id, to_json(v) AS j FROM delta.`{path}`")
    assert {row["id"]: row["j"] and json.loads(row["j"]) for row in theirs} == {
        i: text and json.loads(text) for i, text in TEXTS.items()
    }


def test_a_table_with_variants_of_ours_is_read_and_written_by_delta_spark(
    delta_spark: Any, tmp_path: Any
) -> None:
    path = str(tmp_path)
    create_table(path, "id bigint, v variant")
    metadata, value = b"\x11\x01\x00\x01k", bytes([2, 1, 0, 0, 2, 3 << 2, 7])
    write_arrow(
        path,
        [{"id": 1, "v": {"metadata": metadata, "value": value}}, {"id": 2, "v": None}],
        mode="append",
    )
    delta_spark.sql(f"INSERT INTO delta.`{path}` SELECT 3, parse_json('[1]')")
    theirs = delta_spark.sql(f"SELECT id, to_json(v) AS j FROM delta.`{path}` ORDER BY id")
    assert [row["j"] for row in theirs] == ['{"k":7}', None, "[1]"]
    assert rows_of(path) == {1: {"k": 7}, 2: ..., 3: [1]}
