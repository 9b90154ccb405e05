from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import FileSelector, FileType

from lakelog.logstores.memory.client import StoredObject
from lakelog.logstores.object_store import (
    ObjectEntry,
    ObjectInfo,
    RangedObjectClient,
    TryAgainError,
)
from lakelog.logstores.object_store.filesystem import object_filesystem
from support.memory_client import MemoryClient, MemoryClientStore

if TYPE_CHECKING:
    from collections.abc import Mapping


class RangedMemoryClient(MemoryClient, RangedObjectClient):
    """Gives parts of objects, and loses the reply to the next range if it is told to."""

    lost = 0

    def info(self, key: str) -> ObjectInfo | None:
        self._asked("info", key)
        if key not in self.objects:
            return None
        body = self.objects[key][0]
        return ObjectInfo(len(body), 0, str(hash(body)))

    def get_range(self, key: str, start: int, length: int, state: str) -> bytes:
        self._asked("get_range", f"{key} {start} {length}")
        if self.lost:
            self.lost -= 1
            raise TryAgainError("the reply was lost", may_have_landed=False)
        body = self.objects[key][0]
        if str(hash(body)) != state:
            raise OSError(f"{key} was replaced")
        return body[start : start + length]

    def flat_page(
        self, prefix: str, continuation: str | None
    ) -> tuple[list[ObjectEntry], str | None]:
        self._asked("flat_page", prefix)
        found = [
            ObjectEntry(key[len(prefix) :], len(body), 0, key.endswith("/"))
            for key, (body, *_) in sorted(self.objects.items())
            if key.startswith(prefix)
        ]
        first = int(continuation or 0)
        return found[first : first + 2], str(first + 2) if first + 2 < len(found) else None


class _Store(MemoryClientStore):
    def __init__(self, client: MemoryClient, conf: Mapping[str, str] | None = None) -> None:
        super().__init__(client, {"spark.lakelog.store.retry.timeBudget": "1", **(conf or {})})


@pytest.fixture(params=[MemoryClient, RangedMemoryClient])
def client(request: pytest.FixtureRequest) -> MemoryClient:
    made: MemoryClient = request.param()
    return made


@pytest.fixture
def files(client: MemoryClient) -> Any:
    return object_filesystem(_Store(client), "mem://")


def put(client: MemoryClient, **objects: bytes) -> None:
    for name, body in objects.items():
        client.objects[name.replace("__", "/")] = StoredObject(body, None)


def test_a_parquet_file_is_written_and_read_at_any_offset(files: Any, client: MemoryClient) -> None:
    table = pa.table({"id": range(1000), "text": ["x" * 100] * 1000})
    pq.write_table(table, "bucket/t/1.parquet", filesystem=files)
    assert pq.read_table("bucket/t/1.parquet", filesystem=files, columns=["id"]) == table.select(
        ["id"]
    )
    with files.open_input_file("bucket/t/1.parquet") as source:
        assert source.size() == len(client.objects["t/1.parquet"][0])
        source.seek(4)
        assert source.read(10) == client.objects["t/1.parquet"][0][4:14]


def test_what_is_not_closed_is_not_there(files: Any, client: MemoryClient) -> None:
    stream = files.open_output_stream("bucket/x")
    stream.write(b"abc")
    assert client.objects == {}
    stream.close()
    assert client.objects["x"][0] == b"abc"


def test_infos_tell_files_folders_and_nothing(files: Any, client: MemoryClient) -> None:
    put(client, t__a=b"12", t__b__c=b"", u=b"", t0=b"")
    infos = files.get_file_info(["bucket/t/a", "bucket/t", "bucket/t/b/", "bucket/none", "bucket"])
    kinds = [FileType.File, *[FileType.Directory] * 2, FileType.NotFound, FileType.Directory]
    assert [each.type for each in infos] == kinds
    assert infos[0].size == 2


@pytest.mark.parametrize(
    ("deep", "expected"),
    [
        (False, {"bucket/t/a": False, "bucket/t/b": True, "bucket/t/m": True}),
        (
            True,
            {
                "bucket/t/a": False,
                "bucket/t/b": True,
                "bucket/t/b/c": False,
                "bucket/t/b/d": True,
                "bucket/t/b/d/e": False,
                "bucket/t/m": True,
            },
        ),
    ],
)
def test_a_folder_is_listed_to_the_depth_that_is_wanted(
    files: Any, client: MemoryClient, deep: bool, expected: dict[str, bool]
) -> None:
    put(client, t__a=b"", t__b__c=b"", t__b__d__e=b"", t0=b"", t__=b"", t__m__=b"")
    found = files.get_file_info(FileSelector("bucket/t", recursive=deep))
    assert {each.path: each.type == FileType.Directory for each in found} == expected


def test_a_folder_that_is_not_there_is_missing(files: Any) -> None:
    with pytest.raises(FileNotFoundError):
        files.get_file_info(FileSelector("bucket/none"))
    assert files.get_file_info(FileSelector("bucket/none", allow_not_found=True)) == []
    for missing in (files.delete_dir, files.open_input_file, files.delete_file):
        with pytest.raises(FileNotFoundError):
            missing("bucket/none")


def test_a_folder_goes_with_all_that_is_below_it(files: Any, client: MemoryClient) -> None:
    put(client, t__a=b"", t__b__c=b"", t__m__=b"", t0=b"", u__a=b"")
    files.delete_dir("bucket/t")
    assert client.objects.keys() == {"t0", "u/a"}
    with pytest.raises(PermissionError):
        files.delete_dir_contents("bucket")
    assert client.objects.keys() == {"t0", "u/a"}


def test_files_are_copied_moved_and_deleted(files: Any, client: MemoryClient) -> None:
    put(client, a=b"1")
    files.copy_file("bucket/a", "bucket/b")
    files.move("bucket/a", "bucket/c")
    assert {key: body for key, (body, *_) in client.objects.items()} == {"b": b"1", "c": b"1"}
    files.delete_file("bucket/b")
    assert client.objects.keys() == {"c"}


def test_it_is_equal_to_one_on_the_same_storage_and_may_be_pickled() -> None:
    conf = {"spark.lakelog.store.request.timeout": "7"}
    client = MemoryClient()
    one, other = (object_filesystem(_Store(client), "mem://") for _ in range(2))
    assert one == other
    assert one != object_filesystem(_Store(client, conf), "mem://")
    assert one.type_name == "py::mem"
    client._lock = None  # type: ignore[assignment]  # a lock does not travel
    assert pickle.loads(pickle.dumps(one)) == one


def test_parts_are_asked_for_and_not_the_whole() -> None:
    client = RangedMemoryClient()
    put(client, x=bytes(8 << 20))
    with object_filesystem(_Store(client), "mem://").open_input_file("bucket/x") as source:
        source.seek(5 << 20)
        source.read(10)
    asked = [each for each in client.requests if each[0].startswith("get")]
    assert asked == [("get_range", f"x {5 << 20} {1 << 20}")]


def test_a_lost_range_is_asked_for_again() -> None:
    client = RangedMemoryClient()
    put(client, x=b"abc")
    client.lost = 1
    with object_filesystem(_Store(client), "mem://").open_input_file("bucket/x") as source:
        assert source.read() == b"abc"


def test_an_object_that_is_replaced_while_it_is_read_is_an_error() -> None:
    client = RangedMemoryClient()
    put(client, x=bytes(4 << 20))
    with object_filesystem(_Store(client), "mem://").open_input_file("bucket/x") as source:
        source.read(10)
        put(client, x=b"1" * (4 << 20))
        source.seek(3 << 20)
        with pytest.raises(OSError, match="was replaced"):
            source.read(10)
