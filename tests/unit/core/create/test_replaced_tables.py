"""A table that replaces another: nothing of the old one's rules binds the new one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, write_arrow
from lakelog.core.errors import AppendOnlyError

if TYPE_CHECKING:
    from pathlib import Path

MAPPED = {"delta.columnMapping.mode": "name"}


@pytest.mark.parametrize(("before", "after"), [(MAPPED, {}), ({}, MAPPED), (MAPPED, MAPPED)])
def test_it_maps_columns_as_it_says_itself(
    tmp_path: Path, before: dict[str, str], after: dict[str, str]
) -> None:
    path = str(tmp_path)
    create_table(path, "id bigint, b string", properties=before)
    write_arrow(path, pa.table({"id": [1], "b": ["x"]}), mode="append")
    first = DeltaLog.for_table(path).snapshot
    create_table(path, "b date, id string", mode="replace", properties=after)
    write_arrow(path, pa.table({"id": ["y"]}), mode="append")
    second = DeltaLog.for_table(path).snapshot
    assert second.to_arrow()["id"].to_pylist() == ["y"]
    assert second.metadata.id == first.metadata.id
    assert second.metadata.created_time == first.metadata.created_time
    assert second.properties.column_mapping_mode == after.get("delta.columnMapping.mode", "none")
    assert DeltaLog.for_table(path).snapshot_at(version=1).to_arrow()["b"].to_pylist() == ["x"]


def test_a_table_that_only_grows_is_not_replaced(tmp_path: Path) -> None:
    path = str(tmp_path)
    create_table(path, "id bigint", properties={"delta.appendOnly": "true"})
    write_arrow(path, pa.table({"id": [1]}), mode="append")
    with pytest.raises(AppendOnlyError):
        create_table(path, "id string", mode="create_or_replace")
    assert DeltaLog.for_table(path).snapshot.schema.names == ["id"]


def test_a_replacement_may_need_features_that_the_table_lacks(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    create_table(path, "id bigint, p int", partition_by="p")
    create_table(path, "id bigint", mode="create_or_replace", cluster_by="id")
    snapshot = DeltaLog.for_table(path).snapshot
    assert {"clustering", "domainMetadata"} <= set(snapshot.protocol.writer_features or ())
    assert not any(key.startswith("delta.feature.") for key in snapshot.metadata.configuration)
