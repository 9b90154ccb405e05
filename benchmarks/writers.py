"""Curves of writers: how many commits a second 1 to 64 of them make to one table, and how fairly.

    python benchmarks/writers.py [PLACE …] [--writers 1 4 16 64] [--latency 0 30 100] [--seconds 6]

The places are local, minio, azurite and gcs, whose servers it starts itself. Writers are processes,
each with a log of its own, that commit blind appends of one file for some seconds, after one to a
table of their own; `group` are threads of one process that share a `DeltaLog`, with group commit
and without it. A commit begins with `start_transaction`. Fairness is Jain's index of the commits of
each writer: 1 where all made as many, 1/n where one made all.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import multiprocessing
import os
import statistics
import sys
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
from commits import file_name
from deltalake.transaction import AddAction
from distant import distant

from lakelog.core import DeltaLog, Operation, write_arrow
from lakelog.core.actions import AddFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA = pa.schema([pa.field("a", pa.int64())])
PROPERTIES = {"delta.checkpointInterval": "1000000"}
GROUP = {"spark.lakelog.commit.group": "true"}
HOST = {"spark.lakelog.commit.host": "true"}
HEADER = (
    "| place | round trip | writers | who | commits/s | attempts a commit | p50 | p99 | fairness "
    "| gave up |\n|---|--:|--:|---|--:|--:|--:|--:|--:|--:|"
)

ABOUT = {
    "Processes, each with a log of its own, for 5 seconds. Each has committed once before, to a "
    "table of its own, so that nothing is measured of what a process does but once. A commit "
    "begins with `start_transaction`; fairness is Jain's index of the commits of each writer, 1 "
    "where all made as many.": False,
    "Threads of one process that share a `DeltaLog`, with group commit and without it:": True,
}
"""What is said of the rows, and whether the writers are threads."""

Conf = dict[str, str]


@dataclass(frozen=True)
class Place:
    """Where tables are made: for lakelog, and for deltalake where it can."""

    name: str
    root: str
    conf: Conf
    peer_root: str | None = None
    options: Conf | None = None


@dataclass
class Share:
    """What one writer did."""

    seconds: list[float]
    """Of each commit, its reading included."""
    attempts: int = 0
    failures: int = 0
    elapsed: float = 0.0
    """Seconds until the last of them was done."""


def _add(kind: type[Any], worker: int) -> Any:
    return kind(
        path=file_name(worker),
        partition_values={},
        size=1000,
        modification_time=1,
        data_change=True,
        stats='{"numRecords":1}',
    )


def _ours(log: DeltaLog, worker: int, until: float, least: int = 0) -> Share:
    share, start = Share([]), time.monotonic()
    while (began := time.monotonic()) < until or len(share.seconds) < least:
        txn = log.start_transaction()
        try:
            txn.commit([_add(AddFile, worker)], Operation.write("Append"))
            share.seconds.append(time.monotonic() - began)
        except Exception:
            share.failures += 1
        share.attempts += len(txn.attempts)
    share.elapsed = time.monotonic() - start
    return share


def _theirs(table: Any, worker: int, until: float, least: int = 0) -> Share:
    share, schema, start = Share([]), table.schema(), time.monotonic()
    while (began := time.monotonic()) < until or len(share.seconds) < least:
        table.update_incremental()
        try:
            table.create_write_transaction([_add(AddAction, worker)], "append", schema, [])
            share.seconds.append(time.monotonic() - began)
        except Exception:
            share.failures += 1
    share.elapsed = time.monotonic() - start
    return share


def _process(
    who: str, path: str, conf: Conf, worker: int, seconds: float, barrier: Any, shares: Any
) -> None:
    own = f"{path}-{worker}"
    if who == "lakelog":
        write_arrow(own, SCHEMA.empty_table(), conf=conf, mode="append")
        _ours(DeltaLog.for_table(own, conf), worker, 0.0, least=1)
        log = DeltaLog.for_table(path, conf)
        log.update()
        barrier.wait()
        share = _ours(log, worker, time.monotonic() + seconds)
    else:
        deltalake.write_deltalake(own, SCHEMA.empty_table(), storage_options=conf)
        _theirs(deltalake.DeltaTable(own, storage_options=conf), worker, 0.0, least=1)
        table = deltalake.DeltaTable(path, storage_options=conf)
        barrier.wait()
        share = _theirs(table, worker, time.monotonic() + seconds)
    shares.put(share)


@functools.cache
def _context() -> Any:
    """Makes processes by a server that has imported what they need, once for all of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([each for each in sys.modules if each != "__main__"])
    # It finds modules by the environment alone.
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    return context


def processes(who: str, path: str, conf: Conf, writers: int, seconds: float) -> list[Share]:
    """Let processes commit to a table."""
    context = _context()
    barrier, shares = context.Barrier(writers), context.Queue()
    started = [
        context.Process(
            target=_process, args=(who, path, conf, n, seconds, barrier, shares), daemon=True
        )
        for n in range(writers)
    ]
    for each in started:
        each.start()
    found = [shares.get(timeout=600) for _ in started]
    for each in started:
        each.join()
    return found


def threads(path: str, conf: Conf, writers: int, seconds: float) -> list[Share]:
    """Let threads commit through one log."""
    log = DeltaLog.for_table(path, conf)
    log.update()
    found: list[Share] = []
    barrier = threading.Barrier(writers)

    def work(worker: int) -> None:
        barrier.wait()
        found.append(_ours(log, worker, time.monotonic() + seconds))

    started = [threading.Thread(target=work, args=(n,)) for n in range(writers)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    return found


def row(place: str, latency: int, who: str, shares: list[Share]) -> str:
    """What some writers did, as a row of the table."""
    took = sorted(each for share in shares for each in share.seconds)
    counts = [len(share.seconds) for share in shares]
    squares = len(counts) * sum(n * n for n in counts)
    fair = sum(counts) ** 2 / squares if squares else 0.0
    attempts = sum(share.attempts for share in shares)
    per_commit = f"{attempts / max(1, len(took)):.2f}" if attempts else "–"
    p50 = statistics.median(took) if took else float("nan")
    p99 = took[min(len(took) - 1, len(took) * 99 // 100)] if took else float("nan")
    failures = sum(share.failures for share in shares)
    seconds = max(share.elapsed for share in shares)
    return (
        f"| {place} | {latency} ms | {len(shares)} | {who} | {len(took) / seconds:.1f} "
        f"| {per_commit} | {p50 * 1000:.0f} ms | {p99 * 1000:.0f} ms | {fair:.2f} | {failures} |"
    )


def _check(table: str, conf: Conf, shares: list[Share]) -> None:
    """No commit that was promised is lost, and none is there twice."""
    paths = [file.path for file in DeltaLog.for_table(table, conf).snapshot.files()]
    promised = sum(len(share.seconds) for share in shares)
    assert len(paths) == len(set(paths)) >= promised, (len(paths), promised)


def measure(place: Place, latency: int, writers: int, seconds: float, group: bool) -> list[str]:
    """The rows of one number of writers at one place."""
    found = []

    def ours(who: str, extra: Conf, work: Callable[[str, Conf], list[Share]]) -> None:
        table, conf = f"{place.root}/{uuid.uuid4().hex}", {**place.conf, **extra}
        write_arrow(table, SCHEMA.empty_table(), conf=conf, properties=PROPERTIES, mode="append")
        shares = work(table, conf)
        _check(table, conf, shares)
        found.append(row(place.name, latency, who, shares))

    if group:
        ours("threads", {}, lambda t, conf: threads(t, conf, writers, seconds))
        ours("threads, group commit", GROUP, lambda t, conf: threads(t, conf, writers, seconds))
        return found
    ours("lakelog", {}, lambda t, conf: processes("lakelog", t, conf, writers, seconds))
    ours("lakelog, one host", HOST, lambda t, conf: processes("lakelog", t, conf, writers, seconds))
    with _served(place) as served:
        who = "lakelog, through lakelog serve"
        ours(who, served, lambda t, conf: processes("lakelog", t, conf, writers, seconds))
    if place.peer_root is not None:
        table = f"{place.peer_root}/{uuid.uuid4().hex}"
        options = place.options or {}
        deltalake.write_deltalake(
            table, SCHEMA.empty_table(), configuration=PROPERTIES, storage_options=options
        )
        shares = processes("deltalake", table, options, writers, seconds)
        found.append(row(place.name, latency, "deltalake", shares))
    return found


@contextlib.contextmanager
def _served(place: Place) -> Iterator[Conf]:
    """What leads clients to a service that commits for them."""
    from support.commit_services import serving_commits

    with tempfile.TemporaryDirectory() as folder:
        settings, token = Path(folder, "service.conf"), Path(folder, "token")
        settings.write_text("".join(f"{key} {value}\n" for key, value in place.conf.items()))
        with serving_commits(place.root, token, "--conf-file", str(settings)) as (_, url):
            service = "spark.lakelog.commit.service"
            yield {service: url, f"{service}.token.file": str(token)}


@contextlib.contextmanager
def _far(url: str, latency: int) -> Iterator[str]:
    if not latency:
        yield url
        return
    with distant(url, latency) as far:
        yield far


@contextlib.contextmanager
def _local(_latency: int) -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        yield Place("local", f"{folder}/ours", {}, f"{folder}/theirs", {})


@contextlib.contextmanager
def _minio(latency: int) -> Iterator[Place]:
    from object_store import BUCKET, client_of, options_of

    from support.servers.minio import run_minio

    with run_minio() as endpoint, _far(endpoint.url, latency) as url:
        client: Any = client_of(endpoint)
        client.create_bucket(Bucket=BUCKET)
        far = dataclasses.replace(endpoint, url=url)
        yield Place("MinIO", f"s3a://{BUCKET}/w", far.conf, f"s3://{BUCKET}/peer", options_of(far))


@contextlib.contextmanager
def _azurite(latency: int) -> Iterator[Place]:
    from urllib.parse import urlsplit

    from support.servers.azurite import run_azurite

    with run_azurite() as endpoint, _far(endpoint.url, latency) as url:
        endpoint.client().create_container("writers")
        far = f"{url.rstrip('/')}{urlsplit(endpoint.url).path}" if latency else url
        options = {
            "azure_storage_account_name": endpoint.account,
            "azure_storage_account_key": endpoint.key,
            "azure_storage_endpoint": far,
            "azure_allow_http": "true",
        }
        yield Place(
            "Azurite",
            "abfs://writers@devstoreaccount1.dfs.core.windows.net",
            endpoint.conf_at(far),
            "az://writers/peer",
            options,
        )


@contextlib.contextmanager
def _gcs(latency: int) -> Iterator[Place]:
    from support.servers.fake_gcs import run_fake_gcs

    with run_fake_gcs() as endpoint, _far(endpoint.url, latency) as url:
        bucket = endpoint.new_bucket()
        # The peer has no way to a server that takes requests without credentials.
        yield Place(
            "fake-gcs-server", f"gs://{bucket}", dataclasses.replace(endpoint, url=url).conf
        )


PLACES = {"local": _local, "minio": _minio, "azurite": _azurite, "gcs": _gcs}


def curves(
    places: list[str], writers: list[int], latencies: list[int], seconds: float, group: bool
) -> Iterator[str]:
    """The rows of some places, as they are measured; the local disk is never far."""
    for name in places:
        for latency in latencies if name != "local" else [0]:
            with PLACES[name](latency) as place:
                for each in writers:
                    yield from measure(place, latency, each, seconds, group)


def main(arguments: list[str]) -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("places", nargs="*", default=list(PLACES))
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--latency", type=int, nargs="+", default=[0, 30, 100])
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--group", action="store_true", help="threads instead of processes")
    asked = parser.parse_args(arguments)
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}\n\n{HEADER}")
    for each in curves(asked.places, asked.writers, asked.latency, asked.seconds, asked.group):
        print(each, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    main(sys.argv[1:])
