"""Opening a table in a fresh process, on storage that is a round trip of 30 ms away.

    python benchmarks/opening.py KIND URL

is what each of these processes runs: it prints the seconds that opening took, and how many files
the table has. What is imported before is not counted: `python benchmarks/run.py core` has that.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from distant import distant
from measure import Measurement

ROUND_TRIP = 30
"""Milliseconds."""


def _log_of(folder: Path, commits: int, checkpoint: int | None) -> None:
    """A table of one small file a commit, and of no data files: nobody opens those."""
    from lakelog.core import DeltaLog, Operation, create_table
    from lakelog.core.actions import AddFile

    table = str(folder)
    create_table(
        table, {"a": "long"}, properties={"delta.checkpointInterval": str(checkpoint or 10**9)}
    )
    log = DeltaLog.for_table(table)
    for number in range(commits):
        add = AddFile(
            path=f"part-{number:05d}.parquet",
            partition_values={},
            size=1000,
            modification_time=number,
            data_change=True,
            stats=json.dumps(
                {"numRecords": 1, "minValues": {"a": number}, "maxValues": {"a": number}}
            ),
        )
        log.start_transaction().commit([add], Operation("WRITE"))


def _upload(client: Any, bucket: str, folder: Path, prefix: str) -> None:
    def put(path: Path) -> None:
        key = f"{prefix}/{path.relative_to(folder)}"
        client.put_object(Bucket=bucket, Key=key, Body=path.read_bytes())

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, [each for each in folder.rglob("*") if each.is_file()]))


def _opened(kind: str, url: str, settings: dict[str, str], files: int) -> list[float]:
    """Seconds of the first time in a process, and of the second."""
    command = [sys.executable, str(Path(__file__)), kind, url]
    found = subprocess.run(
        command, input=json.dumps(settings), capture_output=True, text=True, check=True
    )
    first, second, count = found.stdout.split()
    assert int(count) == files, found.stdout
    return [float(first), float(second)]


def measure(
    commits: int = 5000, tail: int = 10, bare: int = 1000, times: int = 5
) -> list[Measurement]:
    """With a checkpoint and some commits after it, and commits without one."""
    import deltalake
    from object_store import BUCKET, client_of, options_of

    from support.servers.minio import run_minio

    peer = f"deltalake {deltalake.__version__}"
    found = []
    with run_minio() as endpoint, tempfile.TemporaryDirectory() as folder:
        client: Any = client_of(endpoint)
        client.create_bucket(Bucket=BUCKET)
        _log_of(Path(folder, "long"), commits + tail, commits)
        _log_of(Path(folder, "bare"), bare, None)
        _upload(client, BUCKET, Path(folder), "opening")
        with distant(endpoint.url, ROUND_TRIP) as url:
            far = dataclasses.replace(endpoint, url=url)
            for name, files, target, work in (
                ("long", commits + tail, 0.35, f"{commits} commits, a checkpoint and {tail} more"),
                ("bare", bare, 0.6, f"{bare} commits without a checkpoint"),
            ):
                path = f"{BUCKET}/opening/{name}"
                ours, theirs = [], []
                for _ in range(times):
                    ours.append(_opened("lakelog", f"s3a://{path}", far.conf, files))
                    theirs.append(_opened("deltalake", f"s3://{path}", options_of(far), files))
                for number, when in enumerate(("first in its process", "second in its process")):
                    each = [one[number] for one in ours], [one[number] for one in theirs]
                    title = f"open {work}, {ROUND_TRIP} ms away, {when}"
                    found.append(Measurement(title, peer, *each, target))
    return found


def _open(kind: str, url: str, settings: dict[str, str]) -> tuple[float, int]:
    begun = time.perf_counter()
    if kind == "lakelog":
        count = DeltaLog.for_table(url, settings).snapshot.num_files
    else:
        count = len(deltalake.DeltaTable(url, storage_options=settings).file_uris())
    return time.perf_counter() - begun, count


if __name__ == "__main__":
    if sys.argv[1] == "lakelog":
        from lakelog.core import DeltaLog
        from lakelog.core.state.snapshot import Snapshot  # noqa: F401
    else:
        import deltalake
    given = sys.argv[1], sys.argv[2], json.loads(sys.stdin.read())
    (one, _), (other, amount) = _open(*given), _open(*given)
    print(one, other, amount)
