"""Rows in an order that lets readers skip files: by z_order_by, and by a table's clustering."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, delete_rows, optimize, purge, read_arrow, write_arrow
from lakelog.core.actions import DomainMetadata
from lakelog.core.alter import enable_row_tracking
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import CLUSTERING_DOMAIN
from lakelog.core.maintain.optimize import ordering

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.actions import AddFile

CUBE = "spark.databricks.delta.optimize.clustering.mergeStrategy.minCubeSize."


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(first: int, count: int) -> pa.Table:
    draw = random.Random(first)
    return pa.table(
        {
            "id": range(first, first + count),
            "a": [draw.randrange(10_000) for _ in range(count)],
            "s": [{"x": str(draw.random())} for _ in range(count)],
            "p": [first % 2] * count,
        }
    )


def append(uri: str, first: int, count: int = 500, **options: Any) -> None:
    write_arrow(uri, rows(first, count), mode="append", **options)


def clustered(uri: str, *paths: list[str]) -> None:
    """Make an empty clustered table, as delta-spark does."""
    properties = {
        "delta.feature.clustering": "supported",
        "delta.feature.domainMetadata": "supported",
    }
    write_arrow(uri, rows(0, 1).slice(0, 0), mode="append", properties=properties)
    cluster_by(uri, *paths)


def cluster_by(uri: str, *paths: list[str]) -> None:
    text = json.dumps({"clusteringColumns": paths, "domainName": CLUSTERING_DOMAIN})
    domain = DomainMetadata(domain=CLUSTERING_DOMAIN, configuration=text, removed=False)
    DeltaLog.for_table(uri).start_transaction().commit([domain], Operation.manual())


def files(uri: str) -> list[AddFile]:
    return DeltaLog.for_table(uri).update().files()


def spread(uri: str, column: str = "a") -> float:
    """The share of files that a reader of one value opens, on average."""
    bounds = []
    for file in files(uri):
        stats = json.loads(file.stats or "{}")
        bounds.append((stats["minValues"][column], stats["maxValues"][column]))
    hits = [sum(low <= value <= high for low, high in bounds) for value in range(0, 10_000, 99)]
    return float(sum(hits) / len(hits) / len(bounds))


def total(uri: str) -> int:
    return sum(file.size for file in files(uri))


@pytest.mark.parametrize("stretch", [1 << 10, 1 << 30])
def test_z_order_lets_readers_skip_files(
    uri: str, stretch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ordering, "_STRETCH_BYTES", stretch)
    monkeypatch.setattr(ordering, "_SAMPLE_ROWS", 500)
    for first in (0, 1000, 2000, 3000):
        append(uri, first)
    before = read_arrow(uri).sort_by("id")
    assert spread(uri) > 0.9

    found = optimize(uri, z_order_by=["A", "s.x"], target_size=total(uri) // 16)

    assert found.metrics.num_files_added >= 12
    assert spread(uri) < 0.5
    assert read_arrow(uri).sort_by("id") == before
    assert found.metrics.z_order_stats is not None
    assert found.metrics.z_order_stats["mergedFiles"]["num"] == 4
    (entry,) = DeltaLog.for_table(uri).history(1)
    assert entry.parameters is not None
    assert entry.parameters["zOrderBy"] == '["a","s.x"]'


def test_z_order_is_done_once_for_the_same_columns_and_files(uri: str) -> None:
    append(uri, 0, partition_by=["p"])
    append(uri, 1)
    assert optimize(uri, "p = 0", z_order_by="a").metrics.num_files_removed == 1
    assert optimize(uri, z_order_by="a").metrics.num_files_removed == 1
    assert optimize(uri, z_order_by="a").versions == ()
    assert optimize(uri, z_order_by=["a", "id"]).metrics.num_files_removed == 2
    append(uri, 2)
    assert optimize(uri, z_order_by=["a", "id"]).metrics.num_files_removed == 2


def test_one_column_is_sorted_and_rows_keep_their_ids(uri: str) -> None:
    append(uri, 0)
    enable_row_tracking(uri)
    append(uri, 1000)
    optimize(uri, z_order_by="a")
    values = read_arrow(uri)["a"].to_pylist()
    assert values == sorted(values)
    (info,) = DeltaLog.for_table(uri).history(1)
    assert info.commit_info["tags"]["delta.rowTracking.preserved"] == "true"


@pytest.mark.parametrize(
    ("names", "condition"),
    [
        (["nope"], "DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST"),
        (["p"], "DELTA_ZORDERING_ON_PARTITION_COLUMN"),
        (["s"], "have no order"),
        (["a", "A"], "twice"),
        ([], "at least one"),
    ],
)
def test_columns_that_rows_cant_be_ordered_by(uri: str, names: list[str], condition: str) -> None:
    append(uri, 0, partition_by=["p"])
    with pytest.raises(DeltaAnalysisError, match=condition):
        optimize(uri, z_order_by=names)


def test_a_column_without_statistics_is_refused_unless_asked_for(uri: str) -> None:
    append(uri, 0, properties={"delta.dataSkippingNumIndexedCols": "1"})
    with pytest.raises(DeltaAnalysisError, match="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS"):
        optimize(uri, z_order_by="a")
    key = "spark.databricks.delta.optimize.zorder.checkStatsCollection.enabled"
    assert optimize(uri, z_order_by="a", conf={key: "false"}).versions


def test_a_clustered_table_is_ordered_cube_by_cube(uri: str) -> None:
    clustered(uri, ["a"], ["s", "x"])
    for first in (0, 1000, 2000):
        append(uri, first)
    found = optimize(uri, target_size=total(uri) // 8)
    assert spread(uri) < 0.5
    cubes = {(file.tags or {})["ZCUBE_ID"] for file in files(uri)}
    assert len(cubes) == 1
    for file in files(uri):
        assert file.clustering_provider == "liquid"
        assert (file.tags or {})["ZCUBE_ZORDER_BY"] == '["a","s.x"]'
    assert found.metrics.clustering_stats is not None
    assert found.metrics.clustering_stats["inputOtherFiles"]["numFiles"] == 3
    assert optimize(uri).versions == ()
    append(uri, 3000)
    again = optimize(uri).metrics
    assert again.total_files_skipped == 0
    large = {f"{CUBE}threshold": "1k", f"{CUBE}targetCubeSize": "1k"}
    append(uri, 4000)
    assert optimize(uri, conf=large).metrics.num_files_removed == 1
    assert optimize(uri, conf=large).versions == ()


def test_other_columns_are_ordered_again_only_by_full(uri: str) -> None:
    clustered(uri, ["a"])
    append(uri, 0)
    append(uri, 1000)
    optimize(uri)
    cluster_by(uri, ["id"])
    assert optimize(uri).versions == ()
    assert optimize(uri, full=True).metrics.num_files_removed == 1
    assert (files(uri)[0].tags or {})["ZCUBE_ZORDER_BY"] == '["id"]'


def test_a_clustered_table_takes_neither_condition_nor_z_order(uri: str) -> None:
    clustered(uri, ["a"])
    with pytest.raises(DeltaAnalysisError, match="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE"):
        optimize(uri, "p = 1")
    with pytest.raises(DeltaAnalysisError, match="DELTA_CLUSTERING_WITH_ZORDER_BY"):
        optimize(uri, z_order_by="a")


def test_full_is_for_clustered_tables(uri: str) -> None:
    append(uri, 0)
    with pytest.raises(DeltaAnalysisError, match="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED"):
        optimize(uri, full=True)


def test_purge_takes_deleted_rows_and_dropped_columns_out_of_files(uri: str) -> None:
    import pyarrow.parquet as pq

    from lakelog.core.alter import drop_columns

    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    append(uri, 0, properties=properties)
    append(uri, 1000)
    delete_rows(uri, "id = 1")
    assert purge(uri).metrics.num_deletion_vectors_removed == 1
    assert purge(uri).versions == ()
    drop_columns(uri, ["s"])
    found = purge(uri)
    assert found.metrics.num_files_removed == 2
    (entry,) = DeltaLog.for_table(uri).history(1)
    assert (entry.operation, entry.parameters) == (
        "REORG",
        {"predicate": "[]", "applyPurge": True},
    )
    for file in files(uri):
        assert len(pq.read_schema(f"{uri}/{file.path}").names) == 3
    assert purge(uri).versions == ()
    assert read_arrow(uri).num_rows == 999
