"""What the author of a store writes, for type checkers alone: it is checked, and never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.logstores import (
    Capabilities,
    CommitOutcomeUnknownError,
    FileStatus,
    LocalLogStore,
    LogStore,
    LogStoreError,
    Resolution,
    S3ConditionalLogStore,
    Scope,
    log_store_for,
    resolve,
)
from lakelog.logstores.conformance import LogStoreConformance, run_conformance

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow.fs


class Wrapped(LogStore):
    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        super().__init__(conf)
        self._inner = LocalLogStore(conf)

    def read(self, path: str) -> Iterator[str]:
        yield from self._inner.read(path)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        self._inner.write(path, lines, overwrite=overwrite)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        for each in self._inner.list_from(path):
            print(each.name, each.path, each.length, each.modification_time)
            yield each

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            exclusive_create=Scope.HOST,
            partial_write_visible=False,
            atomic_overwrite=True,
            consistent_listing=True,
            durable=True,
        )

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        return self._inner.filesystem

    def filesystem_path(self, path: str) -> str:
        return self._inner.filesystem_path(path)


class TestWrapped(LogStoreConformance):
    @pytest.fixture
    def store(self) -> LogStore:
        return Wrapped()

    @pytest.fixture
    def root(self) -> str:
        return "/tmp/of-this-run"


def choose() -> None:
    conf = {"spark.delta.logStore.file.impl": "my_package.Wrapped"}
    store = log_store_for("file:///lake", conf)
    why: Resolution = resolve("s3://lake", conf)
    print(store.capabilities.as_json(), why.class_path, why.reason)
    print(isinstance(store, S3ConditionalLogStore), store.settings(), store.conf)
    print(run_conformance(Wrapped, "/tmp/of-this-run").results)
    try:
        write_arrow("/lake/flights", [{"id": 1}], mode="append", conf=conf)
    except CommitOutcomeUnknownError as error:
        print(error)
    except LogStoreError as error:
        print(error, DeltaLog.for_table("/lake/flights", conf).store.read_bytes("x"))
