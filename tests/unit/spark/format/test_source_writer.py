"""What follows a commit of `format("lakelog")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.alter import set_properties
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.conf import DeltaConf
from lakelog.spark.format.source_writer import SourceWriter
from lakelog.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.table({"id": [1, 2, 3]})
CONF = DeltaConf.from_mapping({"spark.databricks.delta.autoCompact.minNumFiles": "3"})


def test_its_commits_end_as_those_of_other_writes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, properties={"delta.autoOptimize.autoCompact": "true"})
    options = WriteOptions.from_options("append", None, {}, CONF)
    for _ in range(2):
        writer = SourceWriter(uri, from_arrow_schema(ROWS.schema), options, CONF)
        writer.commit([writer.write(iter(ROWS.to_batches()))])
    log = DeltaLog.for_table(uri)
    assert [each.operation for each in log.history(4)] == ["OPTIMIZE", "WRITE", "WRITE", "WRITE"]
    assert log.update().to_arrow().num_rows == 9
    sums = {each.stem for each in (tmp_path / "t" / "_delta_log").glob("*.crc")}
    assert sums == {f"{version:020}" for version in range(4)}


def test_files_of_a_write_that_is_refused_when_it_commits_are_deleted(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS)
    before = set(tmp_path.rglob("*.parquet"))
    options = WriteOptions.from_options("overwrite", None, {}, CONF)
    writer = SourceWriter(uri, from_arrow_schema(ROWS.schema), options, CONF)
    written = writer.write(iter(ROWS.to_batches()))
    assert set(tmp_path.rglob("*.parquet")) > before
    set_properties(uri, {"delta.appendOnly": "true"})
    with pytest.raises(RuntimeError, match="AppendOnlyError"):
        writer.commit([written])
    assert set(tmp_path.rglob("*.parquet")) == before
