from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LocalLogStore
from lakelog.logstores.memory.client import StoredObject
from lakelog.logstores.object_store import TryAgainError
from support.memory_client import MemoryClient, MemoryClientStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class BulkClient(MemoryClient):
    """Deletes many keys by one request."""

    @property
    def most_deletions(self) -> int:
        return 100

    stuck: frozenset[str] = frozenset()
    lost = 0

    def delete_many(self, keys: Sequence[str]) -> list[str]:
        self._asked("delete_many", str(len(keys)))
        for key in set(keys) - self.stuck:
            self.objects.pop(key, None)
        if self.lost:
            self.lost -= 1
            raise TryAgainError("the reply was lost", may_have_landed=True)
        return [key for key in keys if key in self.stuck]

    def delete(self, key: str) -> None:
        if key in self.stuck:
            raise PermissionError(f"{key} is held")
        super().delete(key)


def _filled(client: MemoryClient, count: int) -> list[str]:
    client.objects = {f"t/{n}": StoredObject(b"x", None) for n in range(count)}
    client.objects["t/other"] = StoredObject(b"x", None)
    return [f"mem://bucket/t/{n}" for n in range(count)]


def _requests(client: MemoryClient) -> list[str]:
    return sorted(name for name, _ in client.requests)


def test_many_keys_take_few_requests() -> None:
    client = BulkClient()
    paths = _filled(client, 250)
    assert MemoryClientStore(client).delete_files([*paths, "mem://bucket/t/missing"]) == {}
    assert list(client.objects) == ["t/other"]
    assert sorted(client.requests) == [("delete_many", "100"), ("delete_many", "100"),
                                       ("delete_many", "51")]  # fmt: skip


def test_a_key_that_is_refused_is_named_with_the_reason() -> None:
    client = BulkClient()
    paths = _filled(client, 10)
    client.stuck = frozenset({"t/3"})
    failed = MemoryClientStore(client).delete_files(paths)
    assert {path: str(error) for path, error in failed.items()} == {
        "mem://bucket/t/3": "t/3 is held"
    }
    assert list(client.objects) == ["t/3", "t/other"]


def test_a_lost_reply_is_asked_again() -> None:
    client = BulkClient()
    client.lost = 1
    assert MemoryClientStore(client).delete_files(_filled(client, 10)) == {}
    assert _requests(client) == ["delete_many", "delete_many"]


def test_a_service_without_the_request_is_asked_for_each() -> None:
    for client in (MemoryClient(), BulkClient()):
        paths = _filled(client, 5)
        if isinstance(client, BulkClient):
            client.delete_many = _unknown  # type: ignore[method-assign]
        assert MemoryClientStore(client).delete_files(paths) == {}
        assert list(client.objects) == ["t/other"]
        assert _requests(client) == ["delete"] * 5


def _unknown(keys: Sequence[str]) -> list[str]:
    raise OSError(f"501 Not Implemented: {len(keys)}")


def test_without_permission_nothing_is_tried_one_by_one() -> None:
    client = BulkClient()
    client.forbidden.add("delete_many")
    failed = MemoryClientStore(client).delete_files(_filled(client, 5))
    assert len(failed) == 5
    assert all(isinstance(error, PermissionError) for error in failed.values())
    assert _requests(client) == ["delete_many"]


@pytest.mark.parametrize("count", [0, 1, 40, 1000])
def test_files_of_other_stores_go_by_their_file_system(tmp_path: Path, count: int) -> None:
    store, root = LocalLogStore(), str(tmp_path)
    paths = [f"{root}/f{n}" for n in range(count)]
    for path in (*paths, f"{root}/kept"):
        store.write(path, ["x"])
    store.create_folder(f"{root}/folder")
    failed = store.delete_files([*paths, f"{root}/missing", f"{root}/folder"])
    assert set(failed) == {f"{root}/folder"}
    assert {each.name for each in store.list_from(f"{root}/a")} == {"folder", "kept"}
