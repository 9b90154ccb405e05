from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyarrow.fs import LocalFileSystem

from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.data.file_writer import DataFileWriter, add_files_at, write_plan
from lakelog.core.errors import DataFileMissingError
from lakelog.core.paths import data_path
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.stats.collect import StatsConfig
from lakelog.logstores.local import LocalLogStore
from lakelog.logstores.memory import MemoryLogStore
from support.data_files import write_table

pq: Any = pyarrow.parquet
DATA = pa.table({"p": ["a b%", "é", None], "n": [1, 2, 3], "x": [1.0, float("nan"), None]})
SCHEMA = from_arrow_schema(DATA.schema)


def test_a_table_becomes_actions_with_statistics_and_paths_that_decode(tmp_path: Path) -> None:
    root = str(tmp_path)
    plan = write_plan(LocalLogStore(), root, SCHEMA, ["p"])
    adds = {
        each.partition_values["p"]: each
        for each in write_table(DATA, plan, SCHEMA, stats=StatsConfig())
    }
    assert set(adds) == {"a b%", "é", None}
    one = adds["a b%"]
    assert one.path.startswith("p=a%20b%2525/part-00000-")
    assert one.data_change
    for each in adds.values():
        on_disk = Path(data_path(root, each.path))
        assert on_disk.stat().st_size == each.size
    assert one.stats is not None
    assert orjson.loads(one.stats) == {
        "numRecords": 1, "minValues": {"n": 1, "x": 1.0}, "maxValues": {"n": 1, "x": 1.0},
        "nullCount": {"n": 0, "x": 0},
    }  # fmt: skip
    assert adds["é"].stats is not None
    assert orjson.loads(adds["é"].stats) == {"numRecords": 1, "nullCount": {"n": 0, "x": 0}}


def test_it_writes_through_a_store_of_memory() -> None:
    store = MemoryLogStore()
    table = "memory://data-files/t"
    adds = write_table(DATA, write_plan(store, table, SCHEMA, ["p"]), SCHEMA)
    read = [
        pq.read_table(store.filesystem_path(data_path(table, a.path)), filesystem=store.filesystem,
                      partitioning=None)["n"].to_pylist()
        for a in adds
    ]  # fmt: skip
    assert sorted(n for each in read for n in each) == [1, 2, 3]
    assert {a.stats for a in adds} == {None}


def test_a_block_that_fails_leaves_no_files(tmp_path: Path) -> None:
    plan = write_plan(LocalLogStore(), str(tmp_path), SCHEMA, row_group_rows=1)
    seen: list[Path] = []

    def block() -> None:
        with DataFileWriter(plan, SCHEMA) as writer:
            writer.write(DATA)
            seen.extend(tmp_path.iterdir())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        block()
    assert seen
    assert not any(tmp_path.iterdir())


def test_a_block_that_ends_well_keeps_its_files_and_actions(tmp_path: Path) -> None:
    plan = write_plan(LocalLogStore(), str(tmp_path), SCHEMA)
    with DataFileWriter(plan, SCHEMA, data_change=False) as writer:
        writer.write(DATA.to_batches()[0])
    (action,) = writer.close()
    assert (tmp_path / action.path).exists()
    assert not action.data_change


def test_void_columns_are_not_in_the_files(tmp_path: Path) -> None:
    schema = StructType((*SCHEMA.fields, StructField("v", PrimitiveType("void"))))
    plan = write_plan(LocalLogStore(), str(tmp_path), schema)
    (action,) = write_table(DATA, plan, schema)
    assert pq.read_schema(tmp_path / action.path).names == ["p", "n", "x"]


def test_files_of_others_are_described_by_their_footers(tmp_path: Path) -> None:
    inside = DATA.drop_columns(["p"])
    (tmp_path / "p=a b").mkdir()
    pq.write_table(inside, tmp_path / "p=a b" / "1.parquet")
    pq.write_table(inside.slice(0, 0), tmp_path / "empty.parquet")
    files: list[tuple[str, dict[str, str | None]]] = [
        ("p=a b/1.parquet", {"p": "a b"}),
        ("empty.parquet", {"p": None}),
    ]
    (action,) = add_files_at(
        LocalFileSystem(), str(tmp_path), files, SCHEMA, ["p"], stats=StatsConfig()
    )
    assert action.path == "p=a%20b/1.parquet"
    assert action.partition_values == {"p": "a b"}
    assert action.size == (tmp_path / "p=a b" / "1.parquet").stat().st_size
    assert action.modification_time > 1_600_000_000_000
    assert action.stats is not None
    # pyarrow's footer hides the NaN in x.
    assert orjson.loads(action.stats) == {"numRecords": 3, "nullCount": {"n": 0, "x": 1}}


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataFileMissingError, match=r"gone\.parquet"):
        add_files_at(LocalFileSystem(), str(tmp_path), [("gone.parquet", {})], SCHEMA)
