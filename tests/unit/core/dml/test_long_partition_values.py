"""A partition value may be longer than the name that a file system gives a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import (
    DeltaLog,
    clone,
    create_table,
    delete_rows,
    merge,
    optimize,
    update_rows,
    vacuum,
    write_arrow,
)
from lakelog.core.errors import DeltaAnalysisError
from support.aged_tables import UNCHECKED, age_all

if TYPE_CHECKING:
    from pathlib import Path

VALUES = ["x" * 256, "é" * 100, "a/b:c" * 80, "中" * 2_000]


def rows(uri: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def table(p: str, *ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [p] * len(ids), "q": ["1"] * len(ids)})


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("mapped", [False, True])
def test_every_command_takes_it(tmp_path: Path, value: str, mapped: bool) -> None:
    uri = str(tmp_path / "t")
    properties = {"delta.enableChangeDataFeed": "true"}
    if mapped:
        properties["delta.columnMapping.mode"] = "name"
    create_table(
        uri, "id bigint, p string, q string", partition_by=["p", "q"], properties=properties
    )
    write_arrow(uri, table(value, 1, 2), mode="append")
    write_arrow(uri, table(value, 3, 4), mode="append")
    write_arrow(uri, table("short", 5), mode="append")
    update_rows(uri, {"id": "id + 10"}, f"p = '{value}' AND id = 1")
    delete_rows(uri, "id = 2")
    merge(
        uri, table(value, 4, 6), "source.id = target.id"
    ).when_matched_delete().when_not_matched_insert_all().execute()
    optimize(uri)
    age_all(uri, 1000)
    vacuum(uri, 0, conf=UNCHECKED)
    expected = [(3, value), (5, "short"), (6, value), (11, value)]
    assert [(row["id"], row["p"]) for row in rows(uri)] == expected
    write_arrow(uri, table(value, 7), mode="overwrite", partition_overwrite_mode="dynamic")
    assert [(row["id"], row["p"]) for row in rows(uri)] == [(5, "short"), (7, value)]
    clone(uri, str(tmp_path / "copy"), shallow=False)
    assert rows(str(tmp_path / "copy")) == rows(uri)


def test_manifests_of_it_are_refused(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, p string", partition_by=["p"])
    write_arrow(uri, pa.table({"id": [1], "p": ["x" * 300]}), mode="append")
    with pytest.raises(DeltaAnalysisError, match="partition column p is too long"):
        DeltaLog.for_table(uri).generate_symlink_manifest()
    assert not (tmp_path / "t" / "_symlink_format_manifest").exists()
