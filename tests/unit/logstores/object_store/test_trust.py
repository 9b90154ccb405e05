"""An endpoint that nobody vouches for is probed once, before its first commit."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import UnsafeLogStoreError
from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.object_store.store import TryAgainError
from lakelog.logstores.object_store.trust import PROBE_KEY, ROUNDS, forget_trust
from support.memory_client import (
    HalfDeafClient,
    IgnoringClient,
    MemoryClient,
    MemoryClientStore,
    RacyClient,
    RefusingClient,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMIT = "mem://bucket/lake/t/_delta_log/00000000000000000000.json"
SECOND = "mem://bucket/lake/t/_delta_log/00000000000000000001.json"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    forget_trust()
    yield tmp_path / "lakelog" / "endpoints"
    forget_trust()


def _probes(client: MemoryClient) -> list[str]:
    return [key for name, key in client.requests if name == "create" and ".lakelog-probe-" in key]


def test_the_first_commit_on_an_unknown_endpoint_is_preceded_by_the_probe() -> None:
    client = MemoryClient()
    store = MemoryClientStore(client)
    store.write(COMMIT, ["first"])
    assert len(_probes(client)) >= ROUNDS * 8
    assert all(key.startswith("lake/t/.lakelog-probe-") for key in _probes(client))
    assert list(client.objects) == ["lake/t/_delta_log/00000000000000000000.json"], "all is removed"


def test_the_second_commit_costs_no_request_more() -> None:
    client = MemoryClient()
    store = MemoryClientStore(client)
    store.write(COMMIT, ["first"])
    client.requests.clear()
    MemoryClientStore(client).write(SECOND, ["second"])
    assert client.requests == [("create", "lake/t/_delta_log/00000000000000000001.json")]


def test_another_process_of_the_user_takes_the_note_of_the_first() -> None:
    MemoryClientStore(MemoryClient()).write(COMMIT, ["first"])
    forget_trust()
    client = MemoryClient()
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert _probes(client) == []


def test_another_endpoint_is_probed_for_itself() -> None:
    MemoryClientStore(MemoryClient("http://a/bucket")).write(COMMIT, ["first"])
    client = MemoryClient("http://b/bucket")
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert _probes(client)


@pytest.mark.parametrize("age", [8 * 24 * 3600.0, -3600.0], ids=["too old", "from the future"])
def test_a_note_counts_for_seven_days(cache: Path, age: float) -> None:
    MemoryClientStore(MemoryClient()).write(COMMIT, ["first"])
    (note,) = cache.iterdir()
    content = json.loads(note.read_text())
    note.write_text(json.dumps({**content, "passed_at": time.time() - age}))
    forget_trust()
    client = MemoryClient()
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert _probes(client)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 9}', '{"passed_at": "noon"}', "\x00"])
def test_a_broken_note_is_ignored(cache: Path, text: str) -> None:
    MemoryClientStore(MemoryClient()).write(COMMIT, ["first"])
    (note,) = cache.iterdir()
    note.write_text(text)
    forget_trust()
    client = MemoryClient()
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert _probes(client)


def test_a_cache_folder_that_can_not_be_made_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    client = MemoryClient()
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert "lake/t/_delta_log/00000000000000000000.json" in client.objects


@pytest.mark.parametrize(
    ("client", "seen"),
    [
        (IgnoringClient(), "IGNORES"),
        (RacyClient(together=8), "NOT ATOMIC"),
        (RefusingClient(), "501"),
    ],
    ids=["ignores", "not atomic", "refuses"],
)
def test_an_endpoint_that_fails_is_refused_with_the_ways_out(
    cache: Path, client: MemoryClient, seen: str
) -> None:
    with pytest.raises(UnsafeLogStoreError, match=seen) as refusal:
        MemoryClientStore(client).write(COMMIT, ["first"])
    for way in ("S3DynamoDBLogStore", "spark.lakelog.unsafe.singleWriter", f"{PROBE_KEY}=never"):
        assert way in str(refusal.value)
    assert client.objects == {}, "neither the commit nor a probe is there"
    assert not cache.exists() or not list(cache.iterdir())


def test_a_refusal_is_repeated_without_a_new_probe() -> None:
    client = IgnoringClient()
    store = MemoryClientStore(client)
    for _ in range(2):
        with pytest.raises(UnsafeLogStoreError):
            store.write(COMMIT, ["first"])
    assert len(_probes(client)) == 2, "one file, created twice"


def test_threads_that_come_together_share_one_probe() -> None:
    client = MemoryClient()
    gate = threading.Barrier(8)

    def commit(number: int) -> None:
        gate.wait(30)
        MemoryClientStore(client).write(f"mem://bucket/t/_delta_log/{number:020d}.json", ["x"])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(commit, range(8)))
    assert len({key.split("/")[1] for key in _probes(client)}) == 1


def test_a_known_service_is_never_probed() -> None:
    client = MemoryClient(known=True)
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert client.requests == [("create", "lake/t/_delta_log/00000000000000000000.json")]


def test_the_user_may_vouch_for_an_endpoint() -> None:
    client = IgnoringClient()
    MemoryClientStore(client, {PROBE_KEY: "never"}).write(COMMIT, ["first"])
    assert _probes(client) == []


def test_the_user_may_ask_for_a_probe_of_a_known_service_whatever_was_noted() -> None:
    for _ in range(2):
        forget_trust()
        client = MemoryClient(known=True)
        MemoryClientStore(client, {PROBE_KEY: "always"}).write(COMMIT, ["first"])
        assert _probes(client)


def test_another_value_is_refused() -> None:
    with pytest.raises(LogStoreConfError, match="auto, always or never"):
        MemoryClientStore(MemoryClient(), {PROBE_KEY: "no"}).write(COMMIT, ["first"])


def test_overwrites_ask_for_no_trust() -> None:
    client = IgnoringClient()
    MemoryClientStore(client).write(COMMIT, ["first"], overwrite=True)
    assert client.requests == [("put", "lake/t/_delta_log/00000000000000000000.json")]


def test_without_the_right_to_delete_the_commit_goes_on_and_what_is_left_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = MemoryClient()
    client.forbidden = {"delete"}
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert "lake/t/_delta_log/00000000000000000000.json" in client.objects
    assert "could not delete" in caplog.text
    assert ".lakelog-probe-" in caplog.text


def test_of_a_service_that_is_out_of_reach_nothing_is_said_to_be_left(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Away(MemoryClient):
        def create(self, key: str, body: bytes, token: str) -> None:
            raise TryAgainError("no connection", may_have_landed=False)

        def delete(self, key: str) -> None:
            raise TryAgainError("no connection", may_have_landed=False)

    conf = {"spark.lakelog.store.retry.timeBudget": "0.1"}
    with pytest.raises(OSError, match="no connection"):
        MemoryClientStore(Away(), conf).write(COMMIT, ["first"])
    assert "undecided" in caplog.text
    assert "left" not in caplog.text


def test_where_the_probe_may_not_write_the_commit_itself_decides_and_a_warning_is_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Client(MemoryClient):
        def create(self, key: str, body: bytes, token: str) -> None:
            if ".lakelog-probe-" in key:
                raise PermissionError("no writes beside the log")
            super().create(key, body, token)

    client = Client()
    MemoryClientStore(client).write(COMMIT, ["first"])
    assert list(client.objects) == ["lake/t/_delta_log/00000000000000000000.json"]
    assert "could not be probed" in caplog.text


class _LogOnlyClient(IgnoringClient):
    """Credentials for the log alone, on an endpoint that takes no notice of the condition."""

    def create(self, key: str, body: bytes, token: str) -> None:
        if "/_delta_log/" not in key.partition(".lakelog-probe-")[0]:
            raise PermissionError("no writes beside the log")
        super().create(key, body, token)


def test_where_the_probe_may_not_write_beside_the_log_it_is_made_in_it() -> None:
    client = _LogOnlyClient()
    with pytest.raises(UnsafeLogStoreError, match="IGNORES the condition"):
        MemoryClientStore(client).write(COMMIT, ["first"])
    assert client.objects == {}, "neither a commit nor a probe is left"


def test_an_endpoint_that_never_answered_the_probe_is_probed_again(cache: Path) -> None:
    client = HalfDeafClient()
    conf = {"spark.lakelog.store.retry.timeBudget": "0.05"}
    MemoryClientStore(client, conf).write(COMMIT, ["first"])
    assert not cache.exists() or not list(cache.iterdir())
    probed = len(_probes(client))
    MemoryClientStore(client, conf).write(SECOND, ["second"])
    assert len(_probes(client)) > probed


def test_a_probe_is_told_of_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", "lakelog.logstores"):
        MemoryClientStore(MemoryClient()).write(COMMIT, ["first"])
    assert [each.name for each in caplog.records].count("lakelog.logstores") == 1
    assert "memory://bucket" in caplog.text
