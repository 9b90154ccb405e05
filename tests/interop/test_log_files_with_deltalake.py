"""The files beside the commits, read by deltalake."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.log.file_names import commit_name

DELTA = "spark.databricks.delta."
V2 = {"delta.checkpointPolicy": "v2"}


def rows(start):
    return pa.table({"id": pa.array(range(start, start + 5), pa.int64())})


@pytest.mark.parametrize(
    ("properties", "confs"),
    [
        (V2, {"checkpointV2.topLevelFileFormat": "json"}),
        (V2, {"checkpointV2.topLevelFileFormat": "parquet"}),
        ({}, {}),
        ({"delta.checkpoint.writeStatsAsStruct": "true"}, {}),
    ],
    ids=["v2 below json", "v2 below parquet", "parts", "typed statistics"],
)
def test_our_checkpoint_alone_gives_it_the_table(tmp_path, properties, confs):
    table = str(tmp_path / "t")
    for start in range(0, 25, 5):
        write_arrow(
            table, rows(start), properties=properties if start == 0 else None, mode="append"
        )
    settings = {"checkpoint.partSize": "2", **confs}
    DeltaLog.for_table(table, {f"{DELTA}{k}": v for k, v in settings.items()}).checkpoint()
    folder = Path(table) / "_delta_log"
    assert len(list(folder.glob("_sidecars/*") if properties == V2 else folder.glob("*.0*"))) > 1
    for version in range(4):
        (folder / commit_name(version)).unlink()
    # Its reader in Python refuses the feature by name; its engine has it.
    query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(table))
    found = pa.table(query.execute("SELECT id FROM t ORDER BY id").read_all())
    assert found["id"].to_pylist() == list(range(25))
