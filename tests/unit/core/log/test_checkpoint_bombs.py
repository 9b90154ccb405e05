"""A checkpoint of a few kilobytes that would decode to gigabytes is refused in little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core.log import checkpoint_batches
from lakelog.core.log.checkpoint_batches import MOST_ROWS, rows_at_once
from lakelog.logstores.limits import LIMIT_KEY
from support.raw_log import PROTOCOL, RawLog, metadata

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 20_000
LIMIT = 256 << 20
TEXT = "x" * (1 << 20)
ALLOWED = 1 << 30
"""Bytes that the process may have; a checkpoint that is decoded takes 20 times as much."""
OPENING = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from lakelog.core import DeltaLog
found = {}
for table in sys.argv[3:]:
    try:
        DeltaLog.for_table(table, {sys.argv[1]: sys.argv[2]}).snapshot.num_files
    except Exception as exc:
        found[table] = type(exc).__name__
try:
    # getrusage counts what the process was forked from too.
    peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
except OSError:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([found, peak]))
"""


def repeated(value: str) -> pa.Array:
    """A text for every row, which is stored once."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * ROWS, pa.int32()), pa.array([value]))


def structs(**columns: pa.Array) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(columns.values()), list(columns))


def maps(values: pa.Array) -> pa.MapArray:
    return pa.MapArray.from_arrays(range(ROWS + 1), pa.array(["k"] * ROWS), values)


SIZES = pa.array([1] * ROWS)
NOT = pa.array([False] * ROWS)
NAMES = pa.array([f"f{i}" for i in range(ROWS)])
BOMBS: dict[str, dict[str, pa.Array]] = {
    "path": {"add": structs(path=repeated(TEXT), size=SIZES)},
    "stats": {"add": structs(path=NAMES, size=SIZES, stats=repeated(TEXT))},
    "tags": {"add": structs(path=NAMES, size=SIZES, tags=maps(repeated(TEXT)))},
    "txn": {"txn": structs(appId=repeated(TEXT), version=SIZES)},
    "domain": {"domainMetadata": structs(domain=NAMES, configuration=repeated(TEXT), removed=NOT)},
    "sidecar": {"sidecar": structs(path=repeated(TEXT), sizeInBytes=SIZES, modificationTime=SIZES)},
}


def heads() -> dict[str, pa.Array]:
    """Protocol and metadata in the first row."""
    about = metadata()["metaData"]
    about = {name: about[name] for name in ("id", "schemaString", "partitionColumns")}
    none = [None] * (ROWS - 1)
    return {
        "protocol": pa.array([PROTOCOL["protocol"], *none]),
        "metaData": pa.array([about, *none]),
    }


def write(path: Path, columns: dict[str, pa.Array], **options: Any) -> None:
    pq.write_table(
        pa.table(columns),
        path,
        compression="zstd",
        store_schema=False,
        dictionary_pagesize_limit=1 << 24,
        **options,
    )


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    tables = []
    for name, columns in BOMBS.items():
        log = RawLog(tmp_path / name).create()
        path = log.folder / f"{0:020d}.checkpoint.parquet"
        write(path, {**heads(), **columns})
        assert path.stat().st_size < 100_000
        tables.append(log.table)
    done = subprocess.run(
        [sys.executable, "-c", OPENING, LIMIT_KEY, str(LIMIT), *tables],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found, peak = json.loads(done.stdout)
    assert found == dict.fromkeys(tables, "LogTooLargeError")
    assert peak * 1024 < ALLOWED


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_the_longest_shared_text_says_how_many_rows_fit(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "x.parquet"
    short, long = "a" * 10, "b" * 50_000
    texts = pa.array([f"{short}{i % 5000}" for i in range(ROWS - 1)] + [long])
    pq.write_table(
        pa.table({"add": structs(path=texts, stats=repeated("c" * 50_000))}),
        path,
        compression=codec,
        row_group_size=ROWS // 2,
        store_schema=False,
    )
    room = 1_000_000

    def rows(columns: list[str], groups: list[int]) -> int:
        with pa.OSFile(str(path)) as source:
            return rows_at_once(pq.ParquetFile(source), source, columns, groups, room)

    assert rows(["add.stats"], [0]) == room // 50_000
    assert rows(["add.path"], [1]) == room // 50_000
    assert rows(["add.path", "add.stats"], [0, 1]) == room // 100_000
    assert rows(["add"], [0, 1]) == room // 100_000
    assert rows(["add.path"], [0]) == min(room // len(f"{short}4999"), MOST_ROWS)
    assert rows(["remove.path"], [0, 1]) == MOST_ROWS


def test_small_files_are_not_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(checkpoint_batches, "_longest")
    path = tmp_path / "x.parquet"
    columns = {"add": structs(path=repeated("a").slice(0, 100), size=SIZES.slice(0, 100))}
    write(path, columns)
    with pa.OSFile(str(path)) as source:
        assert rows_at_once(pq.ParquetFile(source), source, ["add"], [0], 16 << 20) == MOST_ROWS
