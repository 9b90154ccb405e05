"""Files that a storage acknowledged, and does not have, are told before anything names them."""

from __future__ import annotations

import io
import itertools
import re
import time
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow.fs import FileInfo, FileType

from lakelog.core import (
    DeltaLog,
    OptimisticTransaction,
    clone,
    delete_rows,
    merge,
    optimize,
    purge,
    update_rows,
    write_arrow,
)
from lakelog.core.errors import CorruptCheckpointError
from lakelog.core.portable import arrival
from lakelog.logstores import LogStore, MemoryLogStore
from lakelog.logstores.object_store.filesystem import ObjectFiles
from lakelog.logstores.threads import REQUESTS

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = pa.table({"id": list(range(40)), "p": ["a", "b"] * 20})
GROUPING = {"spark.lakelog.commit.group": "true"}

WRITTEN: dict[str, tuple[str, Callable[[str], object]]] = {
    "append": (r"\.parquet$", lambda t: write_arrow(t, ROWS, mode="append")),
    "append in a group": (
        r"\.parquet$",
        lambda t: write_arrow(DeltaLog.for_table(t, GROUPING), ROWS, mode="append"),
    ),
    "append into many partitions": (
        r"p=17/.*\.parquet$",
        lambda t: write_arrow(t, {"id": [0] * 30, "p": list(map(str, range(30)))}, mode="append"),
    ),
    "overwrite": (r"\.parquet$", lambda t: write_arrow(t, ROWS, mode="overwrite")),
    "delete by a vector": (r"deletion_vector.*\.bin$", lambda t: delete_rows(t, "id = 1")),
    "update": (
        r"(?<!_change_data)/p=.*\.parquet$",
        lambda t: update_rows(t, {"id": "-1"}, "id = 1"),
    ),
    "what an update changed": (r"_change_data/", lambda t: update_rows(t, {"id": "-1"}, "id = 1")),
    "merge": (
        r"\.parquet$",
        lambda t: (
            merge(
                t,
                {"id": [1, 90], "p": ["a", "b"]},
                "t.id = s.id",
                target_alias="t",
                source_alias="s",
            )
            .when_not_matched_insert_all()
            .execute()
        ),
    ),
    "optimize": (r"\.parquet$", optimize),
    "purge": (r"\.parquet$", purge),
    "a deep clone": (r"/copy/.*\.parquet$", lambda t: clone(t, f"{t}/copy", shallow=False)),
    "the vectors of a deep clone": (
        r"/copy/.*\.bin$",
        lambda t: clone(t, f"{t}/copy", shallow=False),
    ),
    "manifest": (
        r"_symlink_format_manifest/",
        lambda t: (
            write_arrow(f"{t}-plain", ROWS, mode="overwrite"),
            DeltaLog.for_table(f"{t}-plain").generate_symlink_manifest(),
        ),
    ),
    "checkpoint": (r"checkpoint.*\.parquet$", lambda t: DeltaLog.for_table(t).checkpoint()),
}


@pytest.fixture(scope="module")
def made() -> str:
    """A table with deletion vectors and a change feed."""
    table = f"memory://arrival-{uuid.uuid4().hex}/t"
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_arrow(table, ROWS, partition_by=["p"], properties=properties)
    write_arrow(table, ROWS, mode="append")
    delete_rows(table, "id = 2")
    return table


class _Storage:
    """What a proxy in front of the storage does to files of some names."""

    def __init__(self, pattern: str, patch: pytest.MonkeyPatch) -> None:
        self.pattern = re.compile(pattern)
        self.waits: list[float] = []
        self.lost: set[str] = set()
        self.kept = 0.0
        """Which part of a file arrives."""
        self.says: Callable[[str], object] = lambda _path: None
        """Called before the storage is asked for a file."""
        # As by a store whose drafts are in the storage.
        patch.setattr(MemoryLogStore, "staged", LogStore.staged)
        patch.setattr(ObjectFiles, "open_output_stream", self._opened())
        patch.setattr(ObjectFiles, "move", self._moved())
        patch.setattr(ObjectFiles, "get_file_info", self._seen())
        # The module's alone: other threads sleep too.
        clock = SimpleNamespace(sleep=self.waits.append, monotonic=time.monotonic)
        patch.setattr(arrival, "time", clock)

    def _opened(self) -> Callable[..., Any]:
        usual, storage = ObjectFiles.open_output_stream, self

        def opened(handler: ObjectFiles, path: str, metadata: Any) -> Any:
            if not storage.pattern.search(path):
                return usual(handler, path, metadata)
            storage.lost.add(path)
            return pa.PythonFile(_Unheard(storage, path, lambda: usual(handler, path, metadata)))

        return opened

    def _moved(self) -> Callable[..., None]:
        usual, storage = ObjectFiles.move, self

        def moved(handler: ObjectFiles, src: str, dest: str) -> None:
            if not storage.pattern.search(dest):
                return usual(handler, src, dest)
            storage.lost.add(dest)
            return handler.delete_file(src)

        return moved

    def _seen(self) -> Callable[..., Any]:
        usual, storage = ObjectFiles.get_file_info, self

        def seen(handler: ObjectFiles, paths: list[str]) -> Any:
            for path in paths:
                if path in storage.lost:
                    storage.says(path)
            return usual(handler, paths)

        return seen


class _Unheard(io.BytesIO):
    """A stream that is acknowledged, and of which a part arrives."""

    def __init__(self, storage: _Storage, path: str, sink: Callable[[], Any]) -> None:
        super().__init__()
        self._storage, self._path, self._sink = storage, path, sink

    def deliver(self, part: float) -> None:
        data = self.getvalue()
        if part:
            with self._sink() as sink:
                sink.write(data[: int(len(data) * part)])

    def close(self) -> None:
        if not self.closed:
            self.deliver(self._storage.kept)
            if self._storage.kept == 1:
                self._storage.lost.add(self._path)
        super().close()


def _content(table: str) -> tuple[int, list[dict[str, Any]]]:
    snapshot = DeltaLog.for_table(table).snapshot
    return snapshot.version, snapshot.to_arrow().sort_by([("id", "ascending")]).to_pylist()


@pytest.mark.parametrize("door", WRITTEN)
@pytest.mark.parametrize("kept", [0.0, 0.5])
def test_a_file_that_did_not_arrive_is_committed_nowhere(
    made: str, door: str, kept: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern, write = WRITTEN[door]
    before = _content(made)
    with monkeypatch.context() as patch:
        storage = _Storage(pattern, patch)
        storage.kept = kept
        with pytest.raises((OSError, pa.ArrowException, CorruptCheckpointError)) as caught:
            write(made)
    assert storage.lost, "nothing of that name was written"
    if door != "checkpoint":
        outcome = "It was not written" if door == "manifest" else "Nothing was committed"
        assert re.search(f"were written and acknowledged.*{outcome}", str(caught.value))
    assert _content(made) == before
    assert not DeltaLog.for_table(f"{made}/copy").table_exists()


@pytest.mark.parametrize("files", [REQUESTS, REQUESTS + 1])
def test_many_files_are_asked_for_before_the_commit_is_tried(
    made: str, monkeypatch: pytest.MonkeyPatch, files: int
) -> None:
    tried: list[bool] = []
    commit = OptimisticTransaction.commit

    def committed(self: OptimisticTransaction, *given: Any, **named: Any) -> Any:
        tried.append(True)
        return commit(self, *given, **named)

    monkeypatch.setattr(OptimisticTransaction, "commit", committed)
    with monkeypatch.context() as patch:
        storage = _Storage("p=3/", patch)
        storage.kept = 0.5
        rows = {"id": [0] * files, "p": list(map(str, range(files)))}
        with pytest.raises(OSError, match="written and acknowledged"):
            write_arrow(made, rows, mode="append")
    assert tried == [True] * (files == REQUESTS)


def test_what_the_storage_shows_late_is_waited_for(
    made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = DeltaLog.for_table(made).snapshot.version
    with monkeypatch.context() as patch:
        storage = _Storage(r"\.parquet$", patch)
        storage.kept = 1.0
        asked: list[str] = []

        def fails_twice(path: str) -> None:
            asked.append(path)
            if asked.count(path) <= 2:
                raise ConnectionError("busy")

        storage.says = fails_twice
        assert write_arrow(made, ROWS, mode="append") == version + 1
    assert storage.waits == [0.1, 0.4]


def test_a_storage_that_does_not_say_is_no_proof(
    made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _content(made)
    with monkeypatch.context() as patch:
        storage = _Storage(r"\.parquet$", patch)
        storage.kept = 1.0

        def fails(path: str) -> None:
            raise ConnectionError("busy")

        storage.says = fails
        with pytest.raises(OSError, match="whether they are there is not known"):
            write_arrow(made, ROWS, mode="append")
    assert _content(made) == before
    assert storage.waits == [0.1, 0.4, 1.5]


def test_a_silent_storage_is_asked_once(made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    times = itertools.count(0.0, 100.0)
    clock = SimpleNamespace(monotonic=lambda: next(times), sleep=lambda _: pytest.fail("waited"))
    monkeypatch.setattr(arrival, "time", clock)
    asked: list[str] = []

    class Silent:
        type_name = "local"  # one file after the other

        def get_file_info(self, path: str) -> None:
            asked.append(path)
            raise TimeoutError("silence")

    files: Any = Silent()
    with pytest.raises(OSError, match="is not known \\(silence\\)"):
        arrival.check_arrived(files, [("a", 1), ("b", 1)])
    assert asked == ["a"]


@pytest.mark.parametrize("kind", [FileType.File, FileType.Unknown])
def test_a_file_system_need_not_know_sizes(kind: FileType) -> None:
    class Vague:
        type_name = "py::vague"

        def get_file_info(self, path: str) -> FileInfo:
            return FileInfo(path, kind)

    files: Any = Vague()
    arrival.check_arrived(files, [("a", 1), ("b", 2)])
