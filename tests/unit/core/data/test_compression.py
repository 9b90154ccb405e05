"""The codec of data files: what the table says goes before what the conf says of all tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from lakelog.core import DeltaLog, create_table, delete_rows, update_rows, write_arrow
from lakelog.core.errors import DeltaAnalysisError, DeltaError

if TYPE_CHECKING:
    from pathlib import Path

pq: Any = pyarrow.parquet
KEY = "delta.parquet.compression.codec"
CONF = {"spark.sql.parquet.compression.codec": "gzip"}
CODECS = {
    "SNAPPY": "SNAPPY",
    "gzip": "GZIP",
    "zstd": "ZSTD",
    "Brotli": "BROTLI",
    "lz4": "LZ4",
    "lz4_raw": "LZ4",
    "uncompressed": "UNCOMPRESSED",
    "none": "UNCOMPRESSED",
}


def codecs(table: Path) -> set[str]:
    files = DeltaLog.for_table(table).update().files()
    return {
        pq.ParquetFile(table / f.path).metadata.row_group(0).column(0).compression for f in files
    }


@pytest.mark.parametrize("codec", CODECS)
def test_every_file_has_the_codec_of_its_table(tmp_path: Path, codec: str) -> None:
    rows = pa.table({"i": range(10)})
    write_arrow(tmp_path, rows, properties={KEY: codec}, conf=CONF, mode="append")
    assert codecs(tmp_path) == {CODECS[codec]}
    update_rows(tmp_path, {"i": "i + 1"}, "i < 5", conf=CONF)
    assert codecs(tmp_path) == {CODECS[codec]}
    delete_rows(tmp_path, "i = 3", conf=CONF)
    write_arrow(tmp_path, rows, mode="overwrite")
    assert codecs(tmp_path) == {CODECS[codec]}


def test_without_a_property_the_conf_says_it(tmp_path: Path) -> None:
    write_arrow(tmp_path, pa.table({"i": [1]}), conf=CONF, mode="append")
    assert codecs(tmp_path) == {"GZIP"}


def test_a_codec_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeltaError, match="codec"):
        create_table(tmp_path / "a", "i int", properties={KEY: "rar"})
    create_table(tmp_path / "b", "i int")
    commit = next((tmp_path / "b" / "_delta_log").glob("*.json"))
    commit.write_text(
        commit.read_text().replace('"configuration":{}', f'"configuration":{{"{KEY}":"rar"}}')
    )
    with pytest.raises(DeltaAnalysisError, match=KEY):
        write_arrow(tmp_path / "b", pa.table({"i": pa.array([1], pa.int32())}), mode="append")
