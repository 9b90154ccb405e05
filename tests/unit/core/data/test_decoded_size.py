"""A small file may decode to gigabytes; memory does not grow with its rows.

Parquet stores a text that all rows share once. Each file here is one row group with such a column.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    convert_to_delta,
    delete_rows,
    merge,
    optimize,
    scan,
    table_changes,
    update_rows,
    write_arrow,
)
from lakelog.core.data import file_reader, row_reader
from lakelog.core.maintain.optimize import ordering

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS, WIDTH = 50_000, 4_000
"""200 MB, and 400 MB of twice as many rows."""
SCHEMA = pa.schema({"id": pa.int64(), "t": pa.string()})
POOLS: list[pa.MemoryPool] = []
"""All that there were: a buffer may be freed later, to the pool that it is of."""
GROWTH = 80 << 20
"""Of the 200 MB more: which threads are how far is chance."""


def of_file(folder: Path, rows: int, *texts: str, keeps_type: bool = False) -> str:
    """A table of one file; each text is that of as many rows as the others.

    Where the file keeps the type, pyarrow reads the texts as a dictionary too.
    """
    folder.mkdir()
    indices = pa.array([at * len(texts) // rows for at in range(rows)], pa.int32())
    column = pa.DictionaryArray.from_arrays(indices, list(texts))
    rows_of = pa.table({"id": pa.array(range(rows), pa.int64()), "t": column})
    # Dictionaries are written as they are: no row's text is made.
    path = folder / "one.parquet"
    pq.write_table(rows_of, path, row_group_size=rows, store_schema=keeps_type)
    assert path.stat().st_size < 2 << 20
    convert_to_delta(str(folder), properties={"delta.enableChangeDataFeed": "true"})
    return str(folder)


def batches(uri: str) -> None:
    assert sum(each.num_rows for each in scan(uri).to_batches()) >= ROWS


def condition(uri: str) -> None:
    assert sum(each.num_rows for each in scan(uri, "id", "t <> 'x'").to_batches()) >= ROWS


def some_rows(uri: str) -> None:
    assert scan(uri).limit(30_000).to_reader().read_next_batch().num_rows
    assert scan(uri).head(3).num_rows == 3


def counted(uri: str) -> None:
    assert scan(uri, where="t <> 'x'").count() >= ROWS


def extreme(uri: str) -> None:
    assert scan(uri).max("t").startswith("x")


def polars_query(uri: str) -> None:
    assert len(scan(uri).to_polars(lazy=True).head(5).collect()) == 5


def duckdb_query(uri: str) -> None:
    with duckdb.connect() as connection:
        found = scan(uri).to_duckdb(connection).aggregate("count(t)").fetchall()
    assert found[0][0] >= ROWS


def changes(uri: str) -> None:
    assert sum(each.num_rows for each in table_changes(uri, 0)) >= ROWS


def delete(uri: str) -> None:
    assert delete_rows(uri, "t = 'y' OR id = 5").version == 1


def update(uri: str) -> None:
    assert update_rows(uri, {"t": "'z'"}, "t = 'y' OR id = 5").version == 1


def merged(uri: str) -> None:
    source = pa.table({"id": [5, -1], "t": ["a", "b"]}, schema=SCHEMA)
    builder = merge(uri, source, ["id"]).when_matched_update_all("target.t <> source.t")
    builder.when_not_matched_insert_all().execute()


def compacted(uri: str) -> None:
    write_arrow(uri, pa.table([[-1], ["a"]], schema=SCHEMA), mode="append")
    assert optimize(uri).version


def z_ordered(uri: str) -> None:
    assert optimize(uri, z_order_by=["id"]).version


@pytest.fixture(autouse=True)
def small_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is worked on at once, and what waits, so that files have many times as much."""
    monkeypatch.setattr(file_reader, "_AHEAD_BYTES", 16 << 20)
    monkeypatch.setattr(ordering, "_MEMORY_BYTES", 32 << 20)
    monkeypatch.setattr(row_reader, "_PIECE_BYTES", 8 << 20)


def peak(work: Callable[[str], None], uri: str) -> int:
    """The most bytes that Arrow had allocated at once."""
    gc.collect()
    ours = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(ours)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        work(uri)
        return int(pool.max_memory())
    finally:
        pa.set_memory_pool(ours)


@pytest.mark.one_day_in(3, 2)
@pytest.mark.parametrize(
    "work",
    [
        batches, condition, some_rows, counted, extreme, polars_query, duckdb_query, changes,
        delete, update, merged, compacted, z_ordered,
    ],
)  # fmt: skip
def test_twice_the_rows_take_no_more_memory(tmp_path: Path, work: Callable[[str], None]) -> None:
    less, more = (
        peak(work, of_file(tmp_path / str(rows), rows, "x" * WIDTH)) for rows in (ROWS, 2 * ROWS)
    )
    assert more - less < GROWTH, (less >> 20, more >> 20)


@pytest.mark.parametrize("work", [batches, delete])
def test_a_type_of_a_dictionary_takes_no_more_memory(
    tmp_path: Path, work: Callable[[str], None]
) -> None:
    less, more = (
        peak(work, of_file(tmp_path / str(rows), rows, "x" * WIDTH, keeps_type=True))
        for rows in (ROWS, 2 * ROWS)
    )
    assert more - less < GROWTH, (less >> 20, more >> 20)


def test_batches_stay_large_beside_a_dictionary_that_is_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_reader, "_BATCH_BYTES", 1 << 16)
    texts = [f"{at:04}" * 25 for at in range(2_000)]
    uri = of_file(tmp_path / "t", 10_000, *texts, keeps_type=True)
    found = list(scan(uri).to_batches())
    assert [text for each in found for text in each["t"].to_pylist()] == [
        text for text in texts for _ in range(5)
    ]
    assert len(found) < 2 * 10_000 * 112 // (1 << 16)


def test_batches_get_smaller_where_texts_get_longer(tmp_path: Path) -> None:
    uri = of_file(tmp_path / "t", 4 * ROWS, "a", "b" * WIDTH)
    found = list(scan(uri).to_batches())
    assert sum(each.num_rows for each in found) == 4 * ROWS
    long = [each.nbytes for each in found if each["t"][-1].as_py() != "a"]
    # The first one is read before it is known; of its rows the last ones alone are long.
    assert long[1] < 40 << 20
    assert max(long[2:]) < 20 << 20
    assert max(each.num_rows for each in found) > 2 * ROWS // 3


def test_no_row_is_lost_or_moved(tmp_path: Path) -> None:
    uri = of_file(tmp_path / "t", 3 * ROWS, "a", "b" * WIDTH, "c")
    delete_rows(uri, f"id % 1000 = 7 AND id < {ROWS}")
    ids = [at for at in range(3 * ROWS) if at % 1000 != 7 or at >= ROWS]
    batches = list(scan(uri, ["id", "t"]).to_batches(10_000))
    assert max(each.num_rows for each in batches) <= 10_000
    assert [at for each in batches for at in each["id"].to_pylist()] == ids
    texts = [text[0] for each in batches for text in each["t"].to_pylist()]
    assert texts == ["abc"[at // ROWS] for at in ids]
