"""A client whose connection broke serves no later call, and no other client is let go for it."""

from __future__ import annotations

from typing import Any

import pytest

from lakelog.logstores.hdfs.access import Hdfs
from lakelog.logstores.hdfs.client import HdfsClient
from lakelog.logstores.object_store.store import TryAgainError

BROKEN = OSError("RPC listener disconnected")


class Native:
    """What stands for hdfs-native's client, and does what a test wants with one of its calls."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.meanwhile: Any = lambda: None

    def delete(self, path: str, recursive: bool) -> bool:
        self.meanwhile()
        if self.error is not None:
            raise self.error
        return True


def client_of(*natives: Native, monkeypatch: pytest.MonkeyPatch) -> HdfsClient:
    left = list(natives)
    monkeypatch.setattr(HdfsClient, "_new", lambda _: left.pop(0))
    return Hdfs({"spark.hadoop.fs.defaultFS": "hdfs://host:1"}).at("host:1")[0]


def test_the_next_call_has_another_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(Native(BROKEN), Native(), monkeypatch=monkeypatch)
    with pytest.raises(TryAgainError):
        client.delete("/x")
    assert client.delete("/x")


def test_a_call_that_was_only_refused_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    native = Native(OSError("Connection refused (os error 111)"))
    client = client_of(native, monkeypatch=monkeypatch)
    with pytest.raises(TryAgainError):
        client.delete("/x")
    native.error = None
    assert client.delete("/x")


def test_a_new_client_is_not_let_go_for_an_old_ones_error(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Native(BROKEN), Native()
    client = client_of(first, second, monkeypatch=monkeypatch)

    def another_call_was_quicker() -> None:
        client.close()
        assert client.delete("/y")

    first.meanwhile = another_call_was_quicker
    with pytest.raises(TryAgainError):
        client.delete("/x")
    assert client.delete("/x")
