"""After each command that Spark carries out here, the peers read the rows that we read.

deltalake reads every version as it is made; DuckDB reads the files, where neither deletion vectors
nor column mapping stand between them and the rows. delta-spark reads all versions of a table at the
end, in one statement, and once more what VACUUM and the clones leave.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable as Deltalake
from deltalake import QueryBuilder
from pyspark.sql import functions as sf

import lakelog.spark as delta
from lakelog.core import DeltaLog, write_arrow
from lakelog.spark.dml import without_spark as here
from support.examples import SEED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

VECTORS = {"delta.enableDeletionVectors": "true"}
MAPPED = {"delta.columnMapping.mode": "name"}
CHECK = "spark.databricks.delta.retentionDurationCheck.enabled"


class Kind(NamedTuple):
    """A kind of table."""

    properties: dict[str, str]
    partition_by: tuple[str, ...] = ()


BOTH = {**VECTORS, **MAPPED}
KINDS = {"plain": Kind({}), "vectors, mapped": Kind(BOTH, ("p",))}
IN_SOAK = {
    "vectors": Kind(VECTORS, ("p",)),
    "mapped": Kind(MAPPED, ("p",)),
    "vectors, mapped, no partitions": Kind(BOTH),
}
if SEED:
    KINDS |= IN_SOAK


def _merge(table: delta.DeltaTable, spark: SparkSession) -> None:
    source = spark.createDataFrame(
        [(5, 1, "five", 50.0, "new"), (6, 0, None, None, None), (40, 2, "forty", 4.5, "new")],
        "id long, p long, name string, n double, more string",
    )
    (
        table.alias("t")
        .merge(source.alias("s"), "t.id = s.id")
        .withSchemaEvolution()
        .whenMatchedDelete("s.n IS NULL")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .whenNotMatchedBySourceUpdate("t.id = 8", {"name": sf.lit("no source")})
        .execute()
    )


def _clustered(table: delta.DeltaTable, _: SparkSession) -> None:
    table.clusterBy("id")
    table.optimize().executeCompaction()


COMMANDS: dict[str, tuple[Callable[[Any, Any], Any], set[int], set[int]]] = {
    # name -> the command, and the ids that come and go by it
    "delete": (
        lambda t, _: t.delete((sf.col("id") % 7 == 3) | (sf.col("n") > 9)),
        set(),
        {3, 10, 17, 19},
    ),
    "update": (lambda t, _: t.update("id > 10", {"n": "n + 0.5", "p": sf.lit(1)}), set(), set()),
    "merge with evolution": (_merge, {40}, {6}),
    "compaction": (lambda t, _: t.optimize().executeCompaction(), set(), set()),
    "z-order": (lambda t, _: t.optimize().executeZOrderBy("n"), set(), set()),
    "added column": (lambda t, _: t.addColumns("late string", first=True), set(), set()),
    "constraint": (lambda t, _: t.addConstraint("known", "id IS NOT NULL"), set(), set()),
    "update of the added": (lambda t, _: t.update("id = 1", {"late": "'yes'"}), set(), set()),
    "clustering": (_clustered, set(), set()),
    "renamed column": (lambda t, _: t.renameColumn("name", "odd name"), set(), set()),
    "dropped column": (lambda t, _: t.dropColumns("n"), set(), set()),
    "delete by the new name": (lambda t, _: t.delete("`odd name` = 'name 2'"), set(), {2}),
    "restore": (lambda t, _: t.restoreToVersion(1), {2, 3, 6, 10, 17, 19}, {40}),
}
ONLY_MAPPED = ("renamed column", "dropped column", "delete by the new name")


def _batch(first: int) -> pa.Table:
    ids = range(first, first + 10)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "p": pa.array([i % 3 for i in ids], pa.int64()),
            "name": [None if i % 5 == 0 else f"name {i}" for i in ids],
            "n": pa.array([None if i % 4 == 0 else i / 2 for i in ids], pa.float64()),
        }
    )


def _rows(found: list[dict[str, Any]]) -> Counter[str]:
    """Rows as text, in no order; a column that is null is left out, as Spark's `to_json` does."""
    return Counter(
        json.dumps({k: v for k, v in row.items() if v is not None}, sort_keys=True) for row in found
    )


def _ours(path: str) -> Counter[str]:
    return _rows(DeltaLog.for_table(path).snapshot.to_arrow().to_pylist())


def _by_deltalake(path: str) -> Counter[str]:
    query = QueryBuilder().register("t", Deltalake(path))
    return _rows(pa.table(query.execute("SELECT * FROM t").read_all()).to_pylist())


def _by_duckdb(path: str) -> Counter[str]:
    files = Deltalake(path).file_uris()
    return _rows(
        pa.table(duckdb.sql(f"FROM read_parquet({files}, union_by_name = true)")).to_pylist()
    )


def _by_delta_spark(delta_spark: Any, tables: dict[str, str]) -> dict[str, Counter[str]]:
    """Many tables in one statement: what each is called -> its rows."""
    text = " UNION ALL ".join(
        f"SELECT '{name}' AS what, to_json(struct(*)) AS row FROM {table}"
        for name, table in tables.items()
    )
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in tables}
    for each in delta_spark.sql(text):
        found[each["what"]].append(json.loads(each["row"]))
    return {name: _rows(rows) for name, rows in found.items()}


@pytest.mark.one_day_in(6, 4)
@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_peers_read_the_same_after_each_command(
    spark: SparkSession,
    delta_spark: Any,
    tmp_path: Path,
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(here, "HERE_BYTES", -1)  # by Spark, however small
    properties, partition_by = KINDS[kind]
    path = str(tmp_path / "t")
    for first in (1, 11):
        is_new = first == 1
        write_arrow(
            path,
            _batch(first),
            mode="append",
            partition_by=partition_by if is_new else None,
            properties=properties if is_new else None,
        )
    table = delta.DeltaTable.forPath(spark, path)
    versions: dict[str, str] = {}
    seen: dict[str, Counter[str]] = {}
    ids = set(range(1, 21))
    for name, (command, come, gone) in COMMANDS.items():
        if (name in ONLY_MAPPED and properties.get("delta.columnMapping.mode") is None) or (
            name == "clustering" and partition_by
        ):
            continue
        command(table, spark)
        ids = (ids | come) - gone
        seen[name] = _ours(path)
        assert {json.loads(row)["id"] for row in seen[name]} == ids, name
        assert _by_deltalake(path) == seen[name], name
        if not properties:
            assert _by_duckdb(path) == seen[name], name
        versions[name] = f"delta.`{path}` VERSION AS OF {table.log.update().version}"
    assert _by_delta_spark(delta_spark, versions) == seen

    copies = {name: str(tmp_path / name) for name in ("shallow", "deep")}
    for name, target in copies.items():
        table.clone(target, isShallow=name == "shallow")
    before = len(list(tmp_path.glob("t/**/*.parquet")))
    spark.conf.set(CHECK, "false")
    try:
        table.vacuum(0)
    finally:
        spark.conf.unset(CHECK)
    assert len(list(tmp_path.glob("t/**/*.parquet"))) < before
    expected = seen["restore"]
    left = {"vacuumed": path, **copies}
    for name, where in left.items():
        assert _ours(where) == expected, name
        if name != "shallow":
            assert _by_deltalake(where) == expected, name
    found = _by_delta_spark(delta_spark, {name: f"delta.`{where}`" for name, where in left.items()})
    assert found == dict.fromkeys(left, expected)
