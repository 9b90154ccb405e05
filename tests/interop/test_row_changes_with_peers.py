"""Rows deleted and updated by us and by the peers, in turns on one table."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from lakelog.core import DeltaLog, delete_rows, lit, update_rows, write_arrow
from support.samples import PARTITIONS, rows_of

VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = {"vectors": VECTORS, "rewrite": {}}
either_way = pytest.mark.parametrize("properties", WAYS.values(), ids=WAYS)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def ours(path):
    return rows_of(DeltaLog.for_table(path).snapshot.to_arrow())


def numbers(count, start=0):
    values = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(values, pa.int64()),
            "p": pa.array([i % 3 for i in values], pa.int32()),
            "text": [f"t{i}" for i in values],
        }
    )


def last_add(path, version):
    text = (Path(path) / "_delta_log" / f"{version:020d}.json").read_text()
    return next(json.loads(line)["add"] for line in text.splitlines() if '"add"' in line[:6])


ASSIGNED = {
    "n": "n * 2 + i",
    "i": "CASE WHEN n % 2 = 0 THEN i ELSE NULL END",
    "upper": "upper(name)",
    "quoted": "'upper(name)'",
    "joined": "concat(name, '-', n)",
    "number": "5",
    "whole": "d",
    "day": "ts",
    "moment": "'2024-02-03 04:05:06'",
    "yes": "n > 3 AND name IS NOT NULL",
    "st.a": "st.a + n",
    "ST.inner.y": "name",
    "none": "DEFAULT",
}


def test_sql_sets_what_it_sets_in_delta_spark(delta_spark, tmp_path):
    ours_at, theirs_at = str(tmp_path / "ours"), str(tmp_path / "theirs")
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    rows: list[dict[str, Any]] = [
        {"n": n, "i": -n, "name": None if n == 4 else f"näme{n}", "d": n + 0.75, "ts": noon}
        for n in range(6)
    ]
    for row in rows:
        inner = None if row["n"] == 3 else {"x": row["n"], "y": "old"}
        row["st"] = None if row["n"] == 2 else {"a": 10, "inner": inner}
        row["none"] = 1
    schema = pa.schema(
        {
            "n": pa.int64(),
            "i": pa.int32(),
            "name": pa.string(),
            "d": pa.float64(),
            "ts": pa.timestamp("us", "UTC"),
            **dict.fromkeys(("upper", "quoted", "joined", "number"), pa.string()),
            "whole": pa.int64(),
            "day": pa.date32(),
            "moment": pa.timestamp("us", "UTC"),
            "yes": pa.bool_(),
            "st": pa.struct(
                {"a": pa.int64(), "inner": pa.struct({"x": pa.int64(), "y": pa.string()})}
            ),
            "none": pa.int64(),
        }
    )
    for path in (ours_at, theirs_at):
        write_arrow(path, pa.Table.from_pylist(rows, schema=schema), mode="append")

    update_rows(ours_at, ASSIGNED, "n > 0")
    settings = ", ".join(f"{name} = {sql}" for name, sql in ASSIGNED.items())
    delta_spark.sql(f"UPDATE delta.`{theirs_at}` SET {settings} WHERE n > 0")

    found, theirs = (
        DeltaLog.for_table(path).snapshot.to_arrow().sort_by("d").to_pylist()
        for path in (ours_at, theirs_at)
    )
    assert found == theirs
    assert found[3]["upper"] == "NÄME3"


def test_sql_sets_what_it_sets_in_deltalake(tmp_path):
    ours_at, theirs_at = str(tmp_path / "ours"), str(tmp_path / "theirs")
    for path in (ours_at, theirs_at):
        write_arrow(path, numbers(9), mode="append")

    update_rows(ours_at, {"text": "upper(text)", "p": "p + 1"}, "id > 3")
    DeltaTable(theirs_at).update({"text": "upper(text)", "p": "p + 1"}, predicate="id > 3")

    assert ours(ours_at) == ours(theirs_at)


@either_way
@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_we_and_delta_spark_delete_and_update_in_turns(delta_spark, path, properties, partition_by):
    write_arrow(
        path, numbers(2000), partition_by=partition_by, properties=properties, mode="append"
    )
    table = f"delta.`{path}`"

    delete_rows(path, "id >= 100 AND id < 400")
    assert rows_of(delta_spark.read(path)) == ours(path)
    assert delta_spark.count(path) == 1700

    delta_spark.sql(f"DELETE FROM {table} WHERE id % 7 = 0")
    assert rows_of(delta_spark.read(path)) == ours(path)

    update_rows(path, {"text": lit("ours"), "p": 7}, "id < 50")
    delete_rows(path, [("id", "in", [1, 401, 1999])])
    assert rows_of(delta_spark.read(path)) == ours(path)

    delta_spark.sql(f"UPDATE {table} SET text = 'theirs' WHERE id BETWEEN 40 AND 60")
    delete_rows(path, "text = 'theirs' AND id > 55")
    delta_spark.sql(f"DELETE FROM {table} WHERE p = 1")
    assert rows_of(delta_spark.read(path)) == ours(path)

    DeltaLog.for_table(path).checkpoint()
    delta_spark.sql(f"OPTIMIZE {table}")
    delete_rows(path, "p = 2")
    assert rows_of(delta_spark.read(path)) == ours(path)
    kept = {r["id"] for r in ours(path)}
    assert kept
    assert not kept & {7, 401, 57, 100, 399}


def test_our_history_reads_as_that_of_a_delete(delta_spark, path):
    write_arrow(path, numbers(100), properties=VECTORS, mode="append")
    done = delete_rows(path, "id < 10")
    table = f"delta.`{path}`"
    delta_spark.sql(f"DELETE FROM {table} WHERE id BETWEEN 10 AND 19")

    theirs, mine, _ = delta_spark.history(path)
    assert mine["operation"] == theirs["operation"] == "DELETE"
    assert mine["operationParameters"].keys() == theirs["operationParameters"].keys()
    assert mine["operationMetrics"].keys() == theirs["operationMetrics"].keys()
    same = {name for name in done.metrics if not name.endswith("Ms") and "Vectors" not in name}
    assert {k: mine["operationMetrics"][k] for k in same} == {
        k: theirs["operationMetrics"][k] for k in same
    }
    assert theirs["operationMetrics"]["numDeletionVectorsUpdated"] == "1"


def test_statistics_after_a_delete_are_those_of_delta_spark(delta_spark, tmp_path):
    found = []
    for name in ("ours", "theirs"):
        path = str(tmp_path / name)
        write_arrow(path, numbers(100), properties=VECTORS, mode="append")
        if name == "ours":
            delete_rows(path, "id < 10")
        else:
            delta_spark.sql(f"DELETE FROM delta.`{path}` WHERE id < 10")
        add = last_add(path, 1)
        vector = {k: v for k, v in add["deletionVector"].items() if k != "pathOrInlineDv"}
        found.append((json.loads(add["stats"]), vector))
    assert found[0] == found[1]


@pytest.mark.one_day_in(2)
@pytest.mark.parametrize("inline", [False, True])
def test_vectors_of_every_shape_are_read_by_delta_spark_and_deltalake(delta_spark, path, inline):
    rows = 150_000
    data = pa.table({"id": pa.array(range(rows), pa.int64())})
    write_arrow(path, data, properties=VECTORS, mode="append")
    conf = {"spark.lakelog.deletionVectors.maxInlineBytes": "1000000" if inline else "0"}
    gone: set[int] = set()
    for wanted in ([5, 77, 70_000], range(1000, 40_000), range(66_000, 131_000, 3)):
        gone.update(wanted)
        condition = pc.field("id").isin(pa.array(wanted, pa.int64()))
        chosen = data.filter(condition)["id"].to_pylist()
        first, last = min(chosen), max(chosen)
        if isinstance(wanted, range) and wanted.step == 1:
            delete_rows(path, f"id >= {first} AND id <= {last}", conf=conf)
        else:
            delete_rows(path, [("id", "in", chosen)], conf=conf)

        kept = [i for i in range(rows) if i not in gone]
        assert sorted(delta_spark.read(path)["id"].to_pylist()) == kept
        assert delta_spark.count(path, where="id >= 66000") == sum(i >= 66_000 for i in kept)
        assert read_by_deltalake(path) == ours(path)
    stored = last_add(path, 3)["deletionVector"]["storageType"]
    assert stored == ("i" if inline else "u")


def read_by_deltalake(path):
    query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    return rows_of(pa.table(query.read_all()))


@either_way
def test_deltalake_reads_what_is_left(path, properties):
    write_arrow(path, numbers(1000), partition_by=["p"], properties=properties, mode="append")
    delete_rows(path, "id >= 100 AND id < 400")
    update_rows(path, {"text": lit("new")}, "id = 7 OR id = 999")

    assert read_by_deltalake(path) == ours(path)


def test_we_delete_from_a_table_of_deltalake(delta_spark, path):
    write_deltalake(path, numbers(1000), partition_by=["p"])
    delete_rows(path, "id < 500")
    DeltaTable(path).delete("id > 900")
    update_rows(path, {"text": lit("ours")}, "id = 600")

    assert ours(path) == rows_of(delta_spark.read(path)) == read_by_deltalake(path)
    assert len(ours(path)) == 401


@either_way
def test_partitions_of_any_value_are_deleted_and_updated_as_delta_spark_sees_them(
    delta_spark, path, properties
):
    count = len(PARTITIONS)
    data = pa.table(
        {"id": pa.array(range(2 * count), pa.int64()), "p": pa.array(PARTITIONS * 2, pa.string())}
    )
    write_arrow(path, data, partition_by=["p"], properties=properties, mode="append")

    delete_rows(path, f"id < {count} AND id > 2")
    assert rows_of(delta_spark.read(path)) == ours(path)
    update_rows(path, {"id": pc.field("id") + 1000}, f"id >= {count}")
    assert rows_of(delta_spark.read(path)) == ours(path)
    delete_rows(path, "p IS NULL OR p = 'a/b'")
    assert rows_of(delta_spark.read(path)) == ours(path)
