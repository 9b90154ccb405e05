"""Commands on a file of 640 MB get by on less, as they go by its row groups.

What a process writes to itself is limited; what is mapped from a file can be dropped. The rows that
stay are gathered into row groups of 128 MB, which the Parquet writer encodes in as much again.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, convert_to_delta, scan, write_arrow

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="limits of private memory are Linux's"
)

ROWS, STEP, WIDTH = 160_000, 1_000, 4_000
SCHEMA = pa.schema({"id": pa.int64(), "t": pa.string()})
LIMIT = 500
"""MB beyond what the process has when it begins."""

PROGRAM = """
import resource, sys
import pyarrow as pa
from lakelog.core import delete_rows, merge, optimize, update_rows
import lakelog.core.dml.delete_update, lakelog.core.dml.merge.merge_job
import lakelog.core.maintain.optimize.running
import pyarrow.compute, pyarrow.dataset, pyarrow.parquet

pa.set_memory_pool(pa.system_memory_pool())
pa.set_cpu_count(2)
uri, command, limit = sys.argv[1:]
source = pa.table({"id": [5, 70_000, 200_000], "t": ["a", "b", "c"]})
text = open("/proc/self/status").read()
used = int(text.split("VmData:")[1].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_DATA, (used + (int(limit) << 20), resource.RLIM_INFINITY))
# Each condition needs the long column of all rows.
match command:
    case "delete_rows":
        delete_rows(uri, "t = 'y' OR id = 5")
    case "update_rows":
        update_rows(uri, {"t": "'z'"}, "t = 'y' OR id = 5")
    case "optimize":
        optimize(uri)
    case "merge":
        builder = merge(uri, source, ["id"]).when_matched_update_all("target.t <> source.t")
        builder.when_not_matched_insert_all().execute()
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with one large file of small row groups, and one of a row."""
    folder = tmp_path_factory.mktemp("large")
    tail = "x" * (WIDTH - 400)
    random = Random(1)
    with pq.ParquetWriter(folder / "large.parquet", SCHEMA, compression="zstd") as writer:
        for start in range(0, ROWS, STEP):
            ids = range(start, start + STEP)
            # Not as short on the disk as a file that OPTIMIZE reads at once.
            texts = [random.randbytes(200).hex() + tail for _ in ids]
            writer.write_table(pa.table([pa.array(ids, pa.int64()), texts], schema=SCHEMA))
    convert_to_delta(str(folder))
    write_arrow(str(folder), pa.table([[-1], ["small"]], schema=SCHEMA), mode="append")
    return folder


def run(uri: Path, command: str, limit: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(uri), command, str(limit)],
        check=False,
        capture_output=True,
        text=True,
        env={"MALLOC_ARENA_MAX": "2"},
    )


@pytest.mark.one_day_in(2, 1)
@pytest.mark.parametrize(
    ("command", "rows"),
    [
        ("delete_rows", ROWS),
        ("update_rows", ROWS + 1),
        ("optimize", ROWS + 1),
        ("merge", ROWS + 2),
    ],
)
def test_a_file_larger_than_memory_is_worked_on(
    large: Path, tmp_path: Path, command: str, rows: int
) -> None:
    uri = tmp_path / "t"
    shutil.copytree(large, uri)
    done = run(uri, command, LIMIT)
    assert done.returncode == 0, done.stderr
    snapshot = DeltaLog.for_table(str(uri)).snapshot
    assert snapshot.version == 2
    assert scan(str(uri)).count() == rows
    assert scan(str(uri), where="id = 5").count() == (command != "delete_rows")


@pytest.mark.parametrize("command", ["delete_rows", "update_rows", "optimize", "merge"])
def test_too_little_memory_is_an_error_and_leaves_nothing(
    large: Path, tmp_path: Path, command: str
) -> None:
    uri = tmp_path / "t"
    shutil.copytree(large, uri)
    before = {path.relative_to(uri) for path in uri.rglob("*")}
    done = run(uri, command, 40)
    for limit in range(44, 64, 4):
        # Which allocation fails first is chance; one in a thread of Arrow's own, or of its stack,
        # ends the process.
        if done.returncode in {-signal.SIGABRT, -signal.SIGSEGV}:
            shutil.rmtree(uri)
            shutil.copytree(large, uri)
            done = run(uri, command, limit)
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert "MemoryError" in done.stderr or "can't start new thread" in done.stderr
    assert DeltaLog.for_table(str(uri)).snapshot.version == 1
    assert {path.relative_to(uri) for path in uri.rglob("*")} == before
