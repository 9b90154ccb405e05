"""Rows that come in tens: an appender beside DuckLake and deltalake, and queries afterwards.

    python benchmarks/appends.py [load] [far] [producers]   # printed only
        [--rows N] [--peer-rows N] [--writers 1 16] [--seconds N] [--producers N]

`load` is the load that DuckLake publishes: 300,000 rows in batches of 10. Each writer of lakelog is
a process with an appender; DuckLake's are threads of one process, because its DuckDB catalog takes
no second one; deltalake's are processes. A peer writes `--peer-rows` so, and the others at once,
which is the best that can happen to its rate and queries. DuckLake comes from PyPI, into a venv of
its own.

`far` is an appender of a MinIO that is 30 ms away: how long until rows are safe, and visible.
`producers` are threads of one appender that also compacts: memory, files, and lost rows.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
BATCH = 10
SIDES = ("lakelog", "ducklake", "deltalake")
DUCKLAKE = ("duckdb==1.5.5", "duckdb-extension-ducklake==1.5.5")
SCHEMA = "id bigint, name string, value double"
QUERIES = ("count", "one row", "sum of a column")
_TIMES, _LEAST_TIMES, _SECONDS = 25, 5, 2
ABOUT = (
    "Rows come in tens. A writer of lakelog is a process with an appender (`every=1s`, `save_every="
    "50ms`, `compact=True`), one of DuckLake a thread of one process with a DuckDB catalog, one of "
    "deltalake a process. lakelog writes all 300,000 rows so; the peers 2,000, and the rest at "
    "once, which is the best that can happen to their rates and queries. A process that has opened "
    f"the table asks each query once, and then up to {_TIMES} times, of which the best counts: it "
    "looks for a new version, and reads files anew. pyarrow is asked about lakelog's files by "
    "their names, without a table. Then: how long until rows are safe, and visible to all, at a "
    "MinIO behind 30 ms; and what a minute of 64 producers leaves."
)


def rows_of(number: int) -> list[dict[str, Any]]:
    """One batch."""
    first = BATCH * number
    return [
        {"id": each, "name": f"name {each % 1000}", "value": each / 7}
        for each in range(first, first + BATCH)
    ]


# --- the sides, each in processes of its own ---


def _ducklake(folder: str) -> Any:
    import duckdb
    import duckdb_extension_ducklake  # type: ignore[import-not-found]

    extension = next(
        Path(str(duckdb_extension_ducklake.__file__)).parent.rglob("*.duckdb_extension")
    )
    found = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    found.execute(f"LOAD '{extension}'")
    found.execute(f"ATTACH 'ducklake:{folder}/meta.ducklake' AS lake (DATA_PATH '{folder}/data')")
    return found


def _inserted(connection: Any, first: int, end: int) -> None:
    values = ", ".join(["(?, ?, ?)"] * BATCH)
    for number in range(first, end):
        given = [value for row in rows_of(number) for value in row.values()]
        connection.execute(f"INSERT INTO lake.t VALUES {values}", given)


def _append_lakelog(table: str, first: int, end: int) -> None:
    from lakelog.core import appender

    options: Any = {"every": "1s", "save_every": "50ms", "compact": True}
    with appender(table, app_id=f"writer-{first}", **options) as a:
        for number in range(first, end):
            a.append(rows_of(number), seq=number)


def _append_deltalake(table: str, first: int, end: int) -> None:
    import pyarrow as pa
    from deltalake import CommitProperties, write_deltalake

    properties = CommitProperties(max_commit_retries=10_000)
    for number in range(first, end):
        batch = pa.Table.from_pylist(rows_of(number))
        write_deltalake(table, batch, mode="append", commit_properties=properties)


def _append_ducklake(folder: str, spans: list[tuple[int, int]]) -> None:
    connection = _ducklake(folder)
    connection.execute("SET ducklake_max_retry_count = 10000")
    threads = [
        threading.Thread(target=_inserted, args=(connection.cursor(), *span)) for span in spans
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    connection.close()


def _create(side: str, place: str) -> None:
    if side == "lakelog":
        from lakelog.core import create_table

        create_table(place, SCHEMA)
    elif side == "deltalake":
        import pyarrow as pa
        from deltalake import DeltaTable

        fields = [("id", pa.int64()), ("name", pa.string()), ("value", pa.float64())]
        DeltaTable.create(place, pa.schema(fields))
    else:
        Path(place).mkdir()
        _ducklake(place).execute("CREATE TABLE lake.t (id BIGINT, name VARCHAR, value DOUBLE)")


def _fill(side: str, place: str, first: int, end: int) -> None:
    """The rest of the rows, at once."""
    if side == "deltalake":
        import pyarrow as pa
        from deltalake import write_deltalake

        rows = [row for number in range(first, end) for row in rows_of(number)]
        write_deltalake(place, pa.Table.from_pylist(rows), mode="append")
    elif side == "ducklake":
        _ducklake(place).execute(
            f"INSERT INTO lake.t SELECT range, 'name ' || range % 1000, range / 7 "
            f"FROM range({BATCH * first}, {BATCH * end})"
        )


def _queries(side: str, place: str, rows: int) -> list[Any]:
    wanted = rows // 2 + 1
    if side == "lakelog":
        from lakelog.core import DeltaLog, scan

        log = DeltaLog.for_table(place)
        return [
            lambda: scan(log).count(),
            lambda: scan(log, where=f"id = {wanted}").to_arrow().num_rows,
            lambda: _sum(scan(log, columns=["value"]).to_arrow()["value"]),
        ]
    if side == "pyarrow":
        return _of_files(place, wanted)
    if side == "deltalake":
        from deltalake import DeltaTable

        table = DeltaTable(place)

        def dataset() -> Any:
            table.update_incremental()
            return table.to_pyarrow_dataset()

        import pyarrow.compute as pc

        return [
            lambda: dataset().count_rows(),
            lambda: dataset().to_table(filter=pc.field("id") == wanted).num_rows,
            lambda: _sum(dataset().to_table(columns=["value"])["value"]),
        ]
    connection = _ducklake(place)

    def ask(query: str) -> Any:
        return connection.execute(query).fetchall()

    return [
        lambda: ask("SELECT count(*) FROM lake.t")[0][0],
        lambda: len(ask(f"SELECT * FROM lake.t WHERE id = {wanted}")),
        lambda: ask("SELECT sum(value) FROM lake.t")[0][0],
    ]


def _of_files(place: str, wanted: int) -> list[Any]:
    """What pyarrow alone needs for what lakelog has left."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow.dataset import dataset

    from lakelog.core import DeltaLog

    found = DeltaLog.for_table(place).snapshot.file_table["path"].to_pylist()
    files = [f"{place}/{each}" for each in found]

    def column() -> Any:
        return pa.concat_tables(pq.ParquetFile(each).read(["value"]) for each in files)["value"]

    return [
        lambda: sum(pq.ParquetFile(each).metadata.num_rows for each in files),
        lambda: dataset(files).to_table(filter=pc.field("id") == wanted).num_rows,
        lambda: _sum(column()),
    ]


def _sum(column: Any) -> Any:
    from lakelog.core.compute import pc

    return pc.sum(column).as_py()


def _timed_queries(side: str, place: str, rows: int) -> list[float]:
    found = []
    for number, query in enumerate(_queries(side, place, rows)):
        answer, times = query(), list[float]()
        while len(times) < _TIMES and (len(times) < _LEAST_TIMES or sum(times) < _SECONDS):
            start = time.perf_counter()
            query()
            times.append(time.perf_counter() - start)
        assert number != 0 or answer == rows, (side, answer)
        assert number != 1 or answer == 1, (side, answer)
        found.append(min(times))
    return found


def work(job: dict[str, Any]) -> Any:
    """What a process of one side does."""
    side, place = job["side"], job["place"]
    match job["do"]:
        case "create":
            return _create(side, place)
        case "fill":
            return _fill(side, place, *job["span"])
        case "ask":
            return _timed_queries(side, place, job["rows"])
    if side == "ducklake":
        return _append_ducklake(place, [(a, b) for a, b in job["spans"]])
    append = _append_lakelog if side == "lakelog" else _append_deltalake
    ((first, end),) = job["spans"]
    return append(place, first, end)


# --- the load ---


def _python(side: str) -> str:
    if side != "ducklake":
        return sys.executable
    cache = Path(os.environ.get("LAKELOG_CACHE", HERE.parent / ".cache")) / "ducklake"
    python = cache / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(cache)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *DUCKLAKE], check=True)
    return str(python)


class _Process:
    """Imports, says that it is ready, and works once it is told to."""

    def __init__(self, job: dict[str, Any]) -> None:
        command = [_python(job["side"]), __file__, "--job", json.dumps(job)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> Any:
        assert self._process.stdout is not None
        answer = self._process.stdout.read()
        assert self._process.wait() == 0
        return json.loads(answer)


def _run(*jobs: dict[str, Any]) -> tuple[float, Any]:
    processes = [_Process(job) for job in jobs]
    start = time.perf_counter()
    for each in processes:
        each.begin()
    answers = [each.end() for each in processes]
    return time.perf_counter() - start, answers[0]


def load(
    folder: Path, side: str, writers: int, rows: int, written: int
) -> tuple[float, dict[str, list[float]], int]:
    """Rows per second, the seconds of each query afterwards by who asks, and how many files."""
    place = str(folder / uuid.uuid4().hex)
    common = {"side": side, "place": place}
    _run({**common, "do": "create"})
    batches = written // BATCH
    ends = [batches * each // writers for each in range(writers + 1)]
    spans = [list(each) for each in itertools.pairwise(ends)]
    groups = [spans] if side == "ducklake" else [[each] for each in spans]
    seconds, _ = _run(*({**common, "do": "append", "spans": each} for each in groups))
    if written < rows:
        _run({**common, "do": "fill", "span": [batches, rows // BATCH]})
    times = {}
    for who in (side, "pyarrow") if side == "lakelog" else (side,):
        _, times[who] = _run({**common, "side": who, "do": "ask", "rows": rows})
    return written / seconds, times, _live_files(side, place)


def _live_files(side: str, place: str) -> int:
    """Of the data; DuckLake keeps inserts of a few rows in its catalog."""
    if side == "ducklake":
        return len(list(Path(place).rglob("*.parquet")))
    from lakelog.core import DeltaLog

    return int(DeltaLog.for_table(place).snapshot.file_table.num_rows)


# --- an appender that is far away, and one of many producers ---


def far(seconds: float, save_every: str | None) -> dict[str, list[float]]:
    """Milliseconds until rows were safe, and until they were visible."""
    from bare import _minio

    from lakelog.core import appender, create_table

    safe: list[float] = []
    visible: list[float] = []
    with _minio(30) as (_, root, conf, _put):
        table = f"{root}/{uuid.uuid4().hex}"
        create_table(table, SCHEMA, conf=conf)
        with appender(table, app_id="far", every="1s", save_every=save_every, conf=conf) as a:
            a.append(rows_of(0)).result()
            end, number = time.perf_counter() + seconds, 1
            while time.perf_counter() < end:
                began = time.perf_counter()
                ticket = a.append(rows_of(number))

                def note(into: list[float], began: float = began) -> Any:
                    return lambda _: into.append((time.perf_counter() - began) * 1000)

                ticket._saved.add_done_callback(note(safe))
                ticket._future.add_done_callback(note(visible))
                number += 1
                time.sleep(0.02)
    return {"safe": safe, "visible": visible}


def producers(folder: Path, count: int, seconds: float) -> dict[str, float]:
    """Memory by the minute, files, and rows that are lost or doubled, which must be none."""
    from lakelog.core import DeltaLog, appender, create_table, scan

    place = str(folder / uuid.uuid4().hex)
    create_table(place, SCHEMA)
    memory: list[float] = []
    given = [0] * count
    end = time.monotonic() + seconds
    with appender(place, app_id="many", every="1s", save_every="50ms", compact=True) as a:

        def produce(at: int) -> None:
            while time.monotonic() < end:
                number = at + count * given[at]
                a.append(rows_of(number))
                given[at] += 1
                time.sleep(0.05)

        threads = [threading.Thread(target=produce, args=(each,)) for each in range(count)]
        for each in threads:
            each.start()
        while any(each.is_alive() for each in threads):
            memory.append(_resident())
            time.sleep(1)
        commits, compacted = a.metrics.commits, a.metrics.compacted
    found = scan(place, columns=["id"]).to_arrow()["id"].to_pylist()
    expected = {
        row["id"]
        for at in range(count)
        for each in range(given[at])
        for row in rows_of(at + count * each)
    }
    files = DeltaLog.for_table(place).snapshot.file_table["size"].to_pylist()
    tail = memory[len(memory) // 4 :]
    return {
        "rows": len(found),
        "lost": len(expected - set(found)),
        "doubled": len(found) - len(set(found)),
        "MB": sum(files) / 1e6,
        "files": len(files),
        "commits": commits,
        "compacted": compacted,
        "MB of memory after a quarter": statistics.median(tail[: len(tail) // 3]),
        "MB of memory at the end": statistics.median(tail[-len(tail) // 3 :]),
    }


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _quantiles(values: list[float]) -> str:
    ordered = sorted(values)
    at = [ordered[int(len(ordered) * share)] for share in (0.5, 0.99)]
    return f"P50 {at[0]:.0f} ms, P99 {at[1]:.0f} ms (n={len(ordered)})"


def _load_lines(folder: Path, args: argparse.Namespace) -> Iterator[str]:
    yield f"| side | writers | rows/s | files | {' | '.join(QUERIES)} |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for writers in args.writers:
        for side in SIDES:
            written = args.rows if side == "lakelog" else args.peer_rows
            rate, found, files = load(folder, side, writers, args.rows, written)
            for who, times in found.items():
                shown = " | ".join(f"{each * 1000:.1f} ms" for each in times)
                said = f"{rate:,.0f} | {files}" if who == side else "| "
                yield f"| {who} | {writers} | {said} | {shown} |"


def _far_lines(_folder: Path, args: argparse.Namespace) -> Iterator[str]:
    yield "| 30 ms away, every 1s | safe | visible |"
    yield "|---|---|---|"
    for save_every in ("50ms", None):
        found = far(min(args.seconds, 30), save_every)
        shown = " | ".join(_quantiles(values) for values in found.values())
        yield f"| {f'save_every {save_every}' if save_every else 'no save_every'} | {shown} |"


def _producers_lines(folder: Path, args: argparse.Namespace) -> Iterator[str]:
    yield f"| {args.producers} producers, {args.seconds:g} s | |"
    yield "|---|--:|"
    for what, value in producers(folder, args.producers, args.seconds).items():
        yield f"| {what} | {value:,.1f} |"


PARTS = {"load": _load_lines, "far": _far_lines, "producers": _producers_lines}
"""What there is to measure, and the rows that it gives."""


def arguments() -> argparse.ArgumentParser:
    """What may be asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=list(PARTS))
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--peer-rows", type=int, default=2_000)
    parser.add_argument("--writers", type=int, nargs="*", default=[1, 16])
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--producers", type=int, default=64)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    return parser


def measure(folder: Path) -> list[str]:
    """The tables of all parts, with a minute of producers."""
    args = arguments().parse_args(["--seconds", "60"])
    return ["\n".join(lines(folder, args)) for lines in PARTS.values()]


def main() -> int:
    """Print what was asked for."""
    args = arguments().parse_args()
    if args.job is not None:
        job = json.loads(args.job)
        print("ready", flush=True)
        sys.stdin.read()
        print(json.dumps(work(job)), flush=True)
        os._exit(0)  # threads of a peer may abort the process when it ends
    with tempfile.TemporaryDirectory(prefix="appends-") as name:
        folder = Path(name)
        for part in args.parts:
            for line in PARTS[part](folder, args):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent / "tests"))
    raise SystemExit(main())
