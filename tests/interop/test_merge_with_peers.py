"""Rows merged by us and by the peers: the same tables come of it, and the peers read ours."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from lakelog.core import DeltaLog, merge, write_arrow

VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = {"vectors": VECTORS, "rewrite": {}}
either_way = pytest.mark.parametrize("properties", WAYS.values(), ids=WAYS)

TARGET = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, None], pa.int64()),
        "p": pa.array([0, 1, 0, 1, 0, 1], pa.int32()),
        "name": ["a", "b", None, "d", "e", "f"],
        "n": pa.array([1.0, 2.0, 3.0, None, 5.0, 6.0]),
    }
)
SOURCE = pa.table(
    {
        "id": pa.array([2, 3, 4, 8, 9, None], pa.int64()),
        "p": pa.array([1, 1, 1, 0, 1, 0], pa.int32()),
        "name": ["B", "C", "D", "H", "I", "N"],
        "n": pa.array([20.0, None, 40.0, 80.0, 90.0, 7.0]),
    }
)
MATCHED, INSERT, BY_SOURCE = "matched", "not_matched", "not_matched_by_source"
CASES: dict[str, list[tuple[str, str, Any, str | None]]] = {
    "upsert": [(MATCHED, "update_all", None, None), (INSERT, "insert_all", None, None)],
    "conditions": [
        (MATCHED, "delete", None, "s.n > 30"),
        (MATCHED, "update", {"name": "concat(s.name, t.p)", "n": "t.n + 1"}, "t.p = 1"),
        (INSERT, "insert", {"id": "s.id", "name": "s.name"}, "s.n > 50"),
    ],
    "by source": [
        (MATCHED, "update", {"n": "s.n"}, None),
        (BY_SOURCE, "update", {"name": "'gone'"}, "t.id = 1"),
        (BY_SOURCE, "delete", None, "t.p = 1"),
        (INSERT, "insert_all", None, None),
    ],
    "moved": [(MATCHED, "update", {"p": "s.p", "name": "NULL"}, None)],
    "inserts": [(INSERT, "insert_all", None, None)],
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def rows_of(table):
    return sorted(table.to_pylist(), key=str)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "t")


def add(builder, case):
    for when, action, values, where in case:
        method = getattr(builder, f"when_{when}_{action}")
        builder = method(where) if values is None else method(values, where)
    return builder


def merged(path, case):
    begun = merge(path, SOURCE, "t.id = s.id", target_alias="t", source_alias="s")
    return add(begun, case).execute()


def ours(path):
    return rows_of(DeltaLog.for_table(path).snapshot.to_arrow())


@each_case
def test_a_merge_does_what_it_does_in_deltalake(tmp_path, case):
    paths = [str(tmp_path / name) for name in ("ours", "theirs")]
    for path in paths:
        write_deltalake(path, TARGET, partition_by=["p"])
    metrics = merged(paths[0], case).metrics
    begun = DeltaTable(paths[1]).merge(SOURCE, "t.id = s.id", source_alias="s", target_alias="t")
    theirs = add(begun, case).execute()
    assert ours(paths[0]) == ours(paths[1])
    for kind in ("inserted", "updated", "deleted"):
        assert metrics[f"numTargetRows{kind.capitalize()}"] == theirs[f"num_target_rows_{kind}"]


@either_way
@each_case
def test_deltalake_and_duckdb_read_what_we_merged(path, properties, case):
    write_arrow(path, TARGET, partition_by=["p"], properties=properties)
    merged(path, case)
    expected = ours(path)
    names = TARGET.column_names
    builder = QueryBuilder().register("t", DeltaTable(path))
    found = pa.table(builder.execute("SELECT * FROM t").read_all()).select(names)
    assert rows_of(found.cast(TARGET.schema)) == expected
    if properties == VECTORS or not expected:
        return
    # Files as DuckDB finds them; its extension for Delta is not everywhere.
    files = DeltaTable(path).file_uris()
    rows = duckdb.sql(
        f"SELECT {', '.join(names)} FROM read_parquet({files}, hive_partitioning = true)"
    )
    assert rows_of(pa.table(rows).cast(TARGET.schema)) == expected


SPARK_CASES = {name: CASES[name] for name in ("conditions",)}


@either_way
def test_a_merge_does_what_it_does_in_delta_spark(delta_spark, tmp_path, properties):
    for number, case in enumerate(SPARK_CASES.values()):
        paths = [str(tmp_path / f"{name}{number}") for name in ("ours", "theirs", "source")]
        for path in paths[:2]:
            write_arrow(path, TARGET, partition_by=["p"], properties=properties)
        write_arrow(paths[2], SOURCE)
        merged(paths[0], case)
        delta_spark.sql(sql_of(case, paths[1], paths[2]))
        expected = ours(paths[1])
        assert ours(paths[0]) == expected
        found = delta_spark.sql(f"SELECT * FROM delta.`{paths[0]}` ORDER BY id, p, name")
        assert len(found) == len(expected)


def sql_of(case, target, source):
    parts = [f"MERGE INTO delta.`{target}` t USING delta.`{source}` s ON t.id = s.id"]
    for when, action, values, where in case:
        condition = f" AND {where}" if where else ""
        text = {
            "delete": "DELETE",
            "update_all": "UPDATE SET *",
            "insert_all": "INSERT *",
        }.get(action)
        if action == "update":
            text = "UPDATE SET " + ", ".join(f"t.{k} = {v}" for k, v in values.items())
        if action == "insert":
            text = f"INSERT ({', '.join(values)}) VALUES ({', '.join(values.values())})"
        parts.append(f"WHEN {when.replace('_', ' ').upper()}{condition} THEN {text}")
    return " ".join(parts)
