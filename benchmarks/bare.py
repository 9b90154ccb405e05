"""One commit against one conditional put by the storage's own SDK, in turns.

    python benchmarks/bare.py [PLACE …]   # printed only

The places are minio, far (MinIO over a round trip of 30 ms), azurite and gcs, whose servers it
starts itself. A commit looks for a newer version before it writes, and whether the one that it read
is still there; an append that asks for no newer one does neither behind a commit of its own.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from commits import SCHEMA, commit_ours
from distant import distant
from measure import HEADER, Measurement

from lakelog.core import DeltaLog, write_arrow

COMMITS, WARM_UPS = 150, 20
IN_A_ROW = 10
"""Commits of one kind: an append that follows no commit looks."""
BODY = b"x" * 700
"""What a commit of one action has."""
Put = Callable[[str, bytes], object]
Place = tuple[str, str, dict[str, str], Put]
"""Name, root of tables, conf, and a put of a new object."""


@contextlib.contextmanager
def _minio(latency: int = 0) -> Iterator[Place]:
    from object_store import BUCKET, client_of

    from support.servers.minio import run_minio

    with run_minio() as endpoint, contextlib.ExitStack() as stack:
        near: Any = client_of(endpoint)
        near.create_bucket(Bucket=BUCKET)
        name = "MinIO"
        if latency:
            url = stack.enter_context(distant(endpoint.url, latency))
            endpoint = dataclasses.replace(endpoint, url=url)
            name += f", {latency} ms away"
        client: Any = client_of(endpoint)

        def put(key: str, body: bytes) -> object:
            return client.put_object(Bucket=BUCKET, Key=key, Body=body, IfNoneMatch="*")

        yield name, f"s3a://{BUCKET}", endpoint.conf, put


@contextlib.contextmanager
def _azurite() -> Iterator[Place]:
    from support.servers.azurite import run_azurite

    with run_azurite() as endpoint:
        container = endpoint.client().create_container("bare")

        def put(key: str, body: bytes) -> object:
            return container.get_blob_client(key).upload_blob(body, overwrite=False)

        yield "Azurite", "abfs://bare@devstoreaccount1.dfs.core.windows.net", endpoint.conf, put


@contextlib.contextmanager
def _gcs() -> Iterator[Place]:
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage

    from support.servers.fake_gcs import run_fake_gcs

    with run_fake_gcs() as endpoint:
        name = endpoint.new_bucket()
        client = storage.Client(
            project="lakelog",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": endpoint.url},
        )
        bucket = client.bucket(name)

        def put(key: str, body: bytes) -> object:
            return bucket.blob(key).upload_from_string(body, if_generation_match=0)

        yield "fake-gcs-server", f"gs://{name}", endpoint.conf, put


PLACES: dict[str, Callable[[], contextlib.AbstractContextManager[Place]]] = {
    "minio": _minio,
    "azurite": _azurite,
    "gcs": _gcs,
    "far": lambda: _minio(30),
}


def measure(places: list[str] | None = None) -> list[Measurement]:
    """Two rows for each place."""
    found = []
    for each in places or PLACES:
        with PLACES[each]() as place:
            found += _measured(*place)
    return found


def _measured(name: str, root: str, conf: dict[str, str], put: Put) -> Iterator[Measurement]:
    table = f"{root}/{uuid.uuid4().hex}"
    properties = {"delta.checkpointInterval": "1000000"}
    write_arrow(table, SCHEMA.empty_table(), conf=conf, properties=properties, mode="append")
    log = DeltaLog.for_table(table, conf)
    log.update()

    def bare(number: int) -> float:
        start = time.perf_counter()
        put(f"bare/{number:020d}.json", BODY)
        return time.perf_counter() - start

    kinds: dict[str, Callable[[int], float]] = {
        "commit": lambda number: commit_ours(log, number),
        "append": lambda number: commit_ours(log, number, newest=False),
        "put": bare,
    }
    took: dict[str, list[float]] = {kind: [] for kind in kinds}
    for first in range(0, COMMITS + WARM_UPS, IN_A_ROW):
        for kind, work in kinds.items():
            took[kind] += [work(number) for number in range(first, first + IN_A_ROW)]
    for kind, what in [
        ("commit", "commit of one action"),
        ("append", "the same without a look before it"),
    ]:
        yield Measurement(
            f"{what}, {name}",
            "one conditional put by the SDK",
            took[kind][WARM_UPS:],
            took["put"][WARM_UPS:],
            1.5,
        )


def main(arguments: list[str]) -> int:
    """Print the table; the exit code says whether all targets were reached."""
    found = measure(arguments)
    print("\n".join([HEADER, *(each.row() for each in found)]))
    return 0 if all(each.reached for each in found) else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    raise SystemExit(main(sys.argv[1:]))
