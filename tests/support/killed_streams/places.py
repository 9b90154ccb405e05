"""Where the tables of killed queries are: a disk or a server, with faults on the way or without."""

from __future__ import annotations

import contextlib
import re
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from support.fault_proxy import FaultProxy

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

KINDS = ("local", "minio", "azurite")
_FAULTS = (
    "drop_reply",
    "drop_request",
    "reset",
    "tear_reply",
    "delay:0.5",
    "refuse:500",
    "refuse:503:SlowDown",
)
_REQUESTS = (
    re.compile(rb"^PUT [^ ]*_delta_log"),
    re.compile(rb"^PUT [^ ]*parquet"),
    re.compile(rb"^GET "),
    re.compile(rb"^HEAD "),
)
_MOST = 8
"""Faults in one life: clients try a request some times, and a query should get on."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder for tables."""

    folder: str
    conf: dict[str, str] = field(default_factory=dict)
    """Of Spark, to reach it without faults."""
    life_conf: dict[str, str] = field(default_factory=dict)
    """Of Spark, as the queries reach it."""
    proxy: FaultProxy | None = None

    def arm(self, drawn: random.Random) -> None:
        """Let some requests of the next life meet a fault."""
        if self.proxy is None:
            return
        self.proxy.disarm()
        for _ in range(drawn.randrange(_MOST + 1)):
            self.proxy.arm(drawn.choice(_FAULTS), drawn.choice(_REQUESTS))

    def faults(self) -> int:
        """How many there were."""
        return 0 if self.proxy is None else len(self.proxy.fired)

    def heal(self) -> None:
        """Let nothing happen any more."""
        if self.proxy is not None:
            self.proxy.disarm()


@contextlib.contextmanager
def place(kind: str, *, faults: bool = False) -> Iterator[Place]:
    """Run what it takes for a folder.

    Args:
        kind: of `KINDS`.
        faults: whether there is a proxy before the server.
    """
    with contextlib.ExitStack() as stack:
        if kind == "local":
            yield Place(stack.enter_context(tempfile.TemporaryDirectory(prefix="streams-")))
            return
        if kind == "minio":
            from support.servers.minio import run_minio

            minio = stack.enter_context(run_minio())
            client = minio.client()
            client.create_bucket(Bucket="lake")
            client.close()
            folder, conf, url = "s3a://lake/streams", minio.conf, minio.url
        else:
            from support.servers.azurite import run_azurite

            azurite = stack.enter_context(run_azurite())
            service = azurite.client()
            service.create_container("lake")
            service.close()
            folder = f"abfss://lake@{azurite.account}.dfs.core.windows.net/streams"
            conf, url = azurite.conf, azurite.url
        if not faults:
            yield Place(folder, conf, conf)
            return
        proxy = stack.enter_context(FaultProxy(url))
        life_conf = {key: proxy.url if value == url else value for key, value in conf.items()}
        if life_conf == conf:
            raise AssertionError(f"nothing leads to {url}, so no fault would happen: {conf}")
        yield Place(folder, conf, life_conf, proxy)
