"""What the stores on object storage share, on a bucket in memory."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LogStoreConfError
from lakelog.logstores.object_store.store import (
    ObjectClient,
    ObjectEntry,
    ObjectLogStore,
    RetryPolicy,
)
from support.scripted_objects import Bucket, FakeTime, Fate, ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow.fs

LOG = "mem://b/t/_delta_log"


class Store(ObjectLogStore):
    """On a client that a test gives."""

    def __init__(self, client: ScriptedClient, conf: Mapping[str, str] | None = None) -> None:
        super().__init__(conf)
        self.client = client
        self.time = FakeTime()
        self._policy = RetryPolicy(clock=self.time.clock, sleep=self.time.sleep)

    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        return self.client, path.removeprefix("mem://b/")

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        raise NotImplementedError

    def filesystem_path(self, path: str) -> str:
        return path


def store_with(keys: Iterable[str] = (), fates: Iterable[Fate] = ()) -> Store:
    bucket = Bucket()
    bucket.objects.update(dict.fromkeys(keys, (None, b"x\n")))
    return Store(ScriptedClient(bucket, fates))


def names(store: Store, path: str) -> list[str]:
    return [status.name for status in store.list_from(path)]


def test_lines_come_back_as_they_were_written() -> None:
    store = store_with()
    lines = ["a\r", "", "b\x85c\u2028d", "ü"]
    store.write(f"{LOG}/0.json", lines[1:])
    assert list(store.read(f"{LOG}/0.json")) == lines[1:]
    store.client.bucket.objects["t/_delta_log/1.json"] = (None, b"a\r\nb\rc\nlast")
    assert list(store.read(f"{LOG}/1.json")) == ["a", "b\rc", "last"]


def test_a_reply_that_ends_early_is_asked_for_again() -> None:
    store = store_with(["t/x"], [Fate.LOST_REPLY, Fate.LOST_REPLY])
    assert list(store.read("mem://b/t/x")) == ["x"]
    assert store.client.requests == ["get"] * 3
    assert len(store.time.slept) == 2


def test_a_read_that_fails_to_the_last_says_for_how_long_it_was_tried() -> None:
    store = store_with(["t/x"], [Fate.LOST_REPLY] * 1000)
    with pytest.raises(OSError, match=r"mem://b/t/x: the reply was cut short; given up after 60 s"):
        store.read("mem://b/t/x")


def test_an_overwrite_is_repeated_until_it_is_acknowledged() -> None:
    store = store_with(["t/x"], [Fate.LOST_REQUEST, Fate.BUSY])
    store.write("mem://b/t/x", ["new"], overwrite=True)
    assert store.client.bucket.objects["t/x"][1] == b"new\n"
    assert store.client.requests == ["put"] * 3


def test_a_listing_is_sorted_and_starts_where_it_should_whatever_the_service_does() -> None:
    keys = [f"t/_delta_log/{number:03d}.json" for number in range(40)]
    store = store_with([*keys, "t/_delta_log/zz/deep/file", "t/other"])
    store.client.page_size = 7
    assert names(store, f"{LOG}/037") == ["037.json", "038.json", "039.json", "zz"]
    (folder,) = store.list_from(f"{LOG}/zz")
    assert (folder.path, folder.is_directory) == (f"{LOG}/zz", True)


def test_a_page_that_got_lost_is_asked_for_again() -> None:
    keys = [f"t/_delta_log/{number:03d}.json" for number in range(20)]
    store = store_with(keys, [Fate.OK, Fate.LOST_REPLY, Fate.OK])
    store.client.page_size = 7
    assert len(names(store, f"{LOG}/")) == 20


def test_a_folder_with_nothing_in_it_is_missing() -> None:
    with pytest.raises(FileNotFoundError, match="mem://b/t/_delta_log does not exist"):
        store_with(["t/other"]).list_from(f"{LOG}/0")


def test_a_folder_with_nothing_behind_the_start_is_empty_from_there() -> None:
    store = store_with(["t/_delta_log/0.json"])
    assert names(store, f"{LOG}/5") == []
    assert store.client.requests == ["page", "page"]


def test_a_folder_that_only_has_its_marker_exists() -> None:
    store = store_with(["t/_delta_log/"])
    assert names(store, f"{LOG}/0") == []
    assert names(store, f"{LOG}/") == []


def test_an_object_goes_before_a_folder_of_its_name() -> None:
    store = store_with(["t/_delta_log/a/b", "t/_delta_log/a"])
    (status,) = store.list_from(f"{LOG}/")
    assert not status.is_directory


class PagesOfNothing(ScriptedClient):
    """S3 may answer with an empty page that is not the last."""

    def page(
        self, prefix: str, start: str, continuation: str | None, limit: int | None
    ) -> tuple[list[ObjectEntry], str | None]:
        if continuation is None:
            self.requests.append("empty page")
            return [], "more"
        return super().page(prefix, start, None, limit)


def test_a_page_of_nothing_does_not_end_the_listing() -> None:
    bucket = Bucket()
    bucket.objects["t/_delta_log/0.json"] = (None, b"")
    store = Store(PagesOfNothing(bucket))
    assert names(store, f"{LOG}/") == ["0.json"]
    assert names(store, f"{LOG}/5") == [], "the folder is there, as its second page shows"


def test_a_start_beyond_ascii_is_sought_by_us_alone() -> None:
    asked: list[str] = []

    class Client(ScriptedClient):
        def page(
            self, prefix: str, start: str, continuation: str | None, limit: int | None
        ) -> tuple[list[ObjectEntry], str | None]:
            asked.append(start)
            return super().page(prefix, start, continuation, limit)

    bucket = Bucket()
    # By UTF-16 the second would come first.
    bucket.objects.update({f"t/{name}": (None, b"") for name in ("\uff5e", "\U0001f600")})
    store = Store(Client(bucket))
    assert names(store, "mem://b/t/\uff5e") == ["\uff5e", "\U0001f600"]
    assert asked == [""]


def test_a_staged_file_is_uploaded_when_it_is_whole() -> None:
    store = store_with([], [Fate.LOST_REPLY])
    with store.staged("mem://b/t/c.parquet") as (filesystem, draft):
        with filesystem.open_output_stream(draft) as out:
            out.write(b"checkpoint")
        assert not store.client.bucket.objects
    assert store.client.bucket.objects["t/c.parquet"][1] == b"checkpoint"
    assert store.client.requests == ["put", "put"]


def test_a_staged_file_that_fails_is_not_uploaded() -> None:
    store = store_with()

    def fail() -> None:
        with store.staged("mem://b/t/c.parquet") as (filesystem, draft):
            filesystem.open_output_stream(draft).close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert store.client.requests == []


def test_a_retry_policy_survives_a_process_boundary() -> None:
    policy: RetryPolicy = pickle.loads(pickle.dumps(RetryPolicy(budget=7.0)))
    assert policy == RetryPolicy(budget=7.0)


@pytest.mark.parametrize("key", ["retry.timeBudget", "request.timeout"])
def test_a_setting_that_is_no_time_is_refused_when_the_store_is_made(key: str) -> None:
    with pytest.raises(LogStoreConfError, match=key):
        Store(ScriptedClient(Bucket()), {f"spark.lakelog.store.{key}": "soon"})
