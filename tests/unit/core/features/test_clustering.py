from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import DomainMetadata
from lakelog.core.alter.columns import drop_columns, rename_column
from lakelog.core.alter.property_changes import set_properties
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.clustering import CLUSTERING_DOMAIN, clustering_columns

WIDE = pa.table({f"c{i}": pa.array([i, i + 1], pa.int64()) for i in range(40)}).append_column(
    "s", pa.array([{"x": 1, "y": 2}, {"x": 3, "y": 4}])
)
FEATURES = {"delta.feature.clustering": "supported"}


@pytest.fixture(params=["none", "name"])
def uri(request, tmp_path):
    """A table that is clustered by a late column and by a field, mapped or not."""
    uri = str(tmp_path / "t")
    properties = {**FEATURES, "delta.columnMapping.mode": request.param}
    write_arrow(uri, WIDE.slice(0, 0), properties=properties, mode="append")
    paths = [physical(uri, "c39"), physical(uri, "s", "x")]
    domain = DomainMetadata(
        domain=CLUSTERING_DOMAIN,
        configuration=json.dumps({"clusteringColumns": paths, "domainName": CLUSTERING_DOMAIN}),
        removed=False,
    )
    DeltaLog.for_table(uri).start_transaction().commit([domain], Operation("CLUSTER BY"))
    return uri


def snapshot(uri):
    return DeltaLog.for_table(uri).snapshot


def physical(uri, *path):
    from lakelog.core.schema.column_mapping import physical_path

    return list(physical_path(snapshot(uri).read_schema, path))


def test_files_have_statistics_of_clustering_columns_and_the_domain_stays(uri):
    before = dict(snapshot(uri).domain_metadata)

    write_arrow(uri, WIDE, mode="append")
    write_arrow(uri, WIDE.append_column("new", WIDE["c0"]), mode="overwrite", schema_mode="merge")

    (file,) = snapshot(uri).files()
    stats = json.loads(file.stats or "")
    (late,), (outer, inner) = physical(uri, "c39"), physical(uri, "s", "x")
    assert stats["minValues"][late] == 39
    assert stats["minValues"][outer] == {inner: 1}
    assert physical(uri, "c35")[0] not in stats["minValues"]
    assert file.clustering_provider is None
    assert snapshot(uri).domain_metadata == before
    assert len(snapshot(uri).files("c39 > 100")) == 0


def test_properties_of_statistics_do_not_take_them_away(uri):
    set_properties(uri, {"delta.dataSkippingNumIndexedCols": "1"})
    write_arrow(uri, WIDE, mode="append")
    write_arrow(uri, WIDE, conf={"spark.databricks.delta.stats.collect": "false"}, mode="append")

    found = sorted(
        (set(json.loads(file.stats or "")["nullCount"]) for file in snapshot(uri).files()), key=len
    )
    columns = [physical(uri, *path)[0] for path in (("c39",), ("s",), ("c0",))]
    assert found == [set(columns[:2]), set(columns)]


def test_the_columns_stay(uri):
    with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"):
        write_arrow(uri, WIDE.drop_columns(["c39"]), mode="overwrite", schema_mode="overwrite")
    if snapshot(uri).properties.column_mapping_mode == "none":
        return
    for path in ("c39", "s.x"):
        with pytest.raises(DeltaAnalysisError, match="DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN"):
            drop_columns(uri, [path])
    rename_column(uri, "c39", "late")
    drop_columns(uri, ["s.y"])
    assert clustering_columns(snapshot(uri).domain_metadata)[0] == tuple(physical(uri, "late"))


def test_no_partitions_beside_clusters(uri, tmp_path):
    with pytest.raises(DeltaAnalysisError, match="DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITION"):
        write_arrow(uri, WIDE, mode="overwrite", schema_mode="overwrite", partition_by=["c0"])
    with pytest.raises(DeltaAnalysisError, match="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"):
        write_arrow(tmp_path / "new", WIDE, partition_by=["c0"], properties=FEATURES, mode="append")


def test_a_domain_that_cannot_be_read_is_an_error():
    broken = DomainMetadata(domain=CLUSTERING_DOMAIN, configuration="{}", removed=False)
    with pytest.raises(DeltaAnalysisError, match=r"delta\.clustering can't be read"):
        clustering_columns({CLUSTERING_DOMAIN: broken})
    assert clustering_columns({CLUSTERING_DOMAIN: replace(broken, removed=True)}) == []
