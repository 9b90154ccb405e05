"""Publishing follows a commit by name in the background, and no caller waits for it."""

from __future__ import annotations

import logging
import threading
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import read_arrow, scan, write_arrow
from lakelog.core.catalogs.contract import TooManyUnpublishedError
from lakelog.core.errors import CatalogError
from lakelog.core.hooks import background, publishing
from lakelog.core.hooks.background import wait_for_all
from lakelog.logstores import MemoryLogStore
from support.commits import APPEND, append
from support.manual_clock import ManualClock
from support.model_catalog import CONF, ModelCatalog, make_model_table, open_model
from support.tables import add_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core.catalogs.names import TableName

PATIENCE = 60.0
"""Seconds; nothing here takes one."""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(background, "_background", background._Background())
    ModelCatalog.reset()
    yield
    assert wait_for_all(PATIENCE)
    ModelCatalog.reset()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> list[str]:
    """What callers ask of the storage's log. A write takes a moment of the clock."""
    seen: list[str] = []

    def noted(method: str) -> Callable[..., Any]:
        real = getattr(MemoryLogStore, method)

        def call(self: MemoryLogStore, path: str, *rest: Any, **more: Any) -> Any:
            if threading.current_thread().name != "lakelog-background":
                seen.append(f"{method} {path.rpartition('_delta_log')[2]}")
                clock.advance(0.05 if method == "write" else 0)
            return real(self, path, *rest, **more)

        return call

    for method in ("write", "read_bytes", "read", "list_from"):
        monkeypatch.setattr(MemoryLogStore, method, noted(method))
    return seen


def published(name: TableName) -> list[int]:
    location = ModelCatalog.tables[name].location
    found = MemoryLogStore().list_from(f"{location}/_delta_log/")
    return [int(each.name[:20]) for each in found if each.name.endswith(".json")]


def test_a_warm_append_stages_and_ratifies_and_nothing_else(
    asked: list[str], clock: ManualClock
) -> None:
    name = make_model_table()
    # As on an object store, where checksums are written on demand.
    log = open_model(name, clock, {"spark.databricks.delta.writeChecksumFile.enabled": "false"})
    append(log, "a")
    assert wait_for_all(PATIENCE)
    asked.clear()
    ModelCatalog.asked.clear()
    held = threading.Event()
    try:
        background.do_later(log.table, "what takes its time", held.wait)
        txn = log.start_transaction(newest=False)
        assert txn.commit([add_file("b")], APPEND) == 2
        assert ModelCatalog.asked == ["commit"]
        (staged,) = asked
        assert staged.startswith("write /_staged_commits/00000000000000000002.")
        assert published(name) == [0, 1]
    finally:
        held.set()
    assert wait_for_all(PATIENCE)
    assert published(name) == [0, 1, 2]


@pytest.mark.parametrize("read", [read_arrow, lambda *a, **k: scan(*a, **k).to_arrow()])
def test_a_read_asks_the_catalog_once(read: Callable[..., Any], asked: list[str]) -> None:
    name = make_model_table()
    write_arrow(str(name), {"id": [1]}, mode="append", conf=CONF)
    assert wait_for_all(PATIENCE)
    asked.clear()
    ModelCatalog.asked.clear()
    assert read(str(name), conf=CONF)["id"].to_pylist() == [1]
    assert ModelCatalog.asked == ["load"]
    by_name, copy = list(asked), f"memory://{uuid.uuid4()}/t"
    write_arrow(copy, {"id": [1]})
    write_arrow(copy, {"id": [2]}, mode="append")
    asked.clear()
    read(copy)
    assert len(by_name) <= len(asked), (by_name, asked)


def test_a_log_that_was_opened_before_sees_what_came_since() -> None:
    name = make_model_table()
    log = open_model(name)
    append(open_model(name), "a")
    assert [each.path for each in log.snapshot.files()] == ["a"]


def test_what_fails_in_the_background_is_a_warning_and_the_next_commit_does_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    name = make_model_table()
    log = open_model(name)
    real, broken = MemoryLogStore.write, [True]

    def write(self: MemoryLogStore, path: str, *rest: Any, **more: Any) -> None:
        if broken and path.endswith(f"_delta_log/{1:020d}.json"):
            raise OSError("no space")
        real(self, path, *rest, **more)

    monkeypatch.setattr(MemoryLogStore, "write", write)
    with caplog.at_level(logging.WARNING, "lakelog"):
        assert append(log, "a") == 1
        assert wait_for_all(PATIENCE)
    assert "publishing a commit failed: no space" in caplog.text
    assert published(name) == [0]
    broken.clear()
    assert append(open_model(name), "b") == 2
    assert wait_for_all(PATIENCE)
    assert published(name) == [0, 1, 2]


def test_at_most_ten_are_open_while_publishing_is_slow() -> None:
    name = make_model_table()
    log = open_model(name)
    held = threading.Event()
    try:
        background.do_later(log.table, "what takes its time", held.wait)
        for each in range(25):
            append(log, f"{each}")
            assert len(ModelCatalog.tables[name].commits) <= 10
    finally:
        held.set()
    assert wait_for_all(PATIENCE)
    assert published(name) == list(range(26))


def test_where_none_can_be_published_the_eleventh_is_refused_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = make_model_table()
    log = open_model(name)
    real = MemoryLogStore.write

    def write(self: MemoryLogStore, path: str, *rest: Any, **more: Any) -> None:
        if path.endswith(f"_delta_log/{1:020d}.json"):
            raise OSError("no space")
        real(self, path, *rest, **more)

    with monkeypatch.context() as patch:
        patch.setattr(MemoryLogStore, "write", write)
        for each in range(10):
            append(log, f"{each}")
        with pytest.raises(CatalogError, match=r"10 commits that are not published.*no space"):
            append(log, "more")
        assert wait_for_all(PATIENCE)
    assert append(log, "more") == 11
    assert wait_for_all(PATIENCE)
    assert published(name) == list(range(12))


def test_where_others_are_always_faster_it_says_to_commit_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = open_model(make_model_table())

    def full(*_: Any) -> Any:
        raise TooManyUnpublishedError("ten are open")

    with monkeypatch.context() as patch:
        patch.setattr(ModelCatalog, "commit", full)
        with pytest.raises(CatalogError, match=r"takes no more.*commit again"):
            append(log, "a")
    assert append(log, "a") == 1


def test_a_process_that_ends_publishes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    name = make_model_table()
    monkeypatch.setattr(background, "_is_ending", lambda: True)
    append(open_model(name), "a")
    assert published(name) == [0, 1]


def test_of_a_path_nothing_is_left_for_later(monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[str] = []
    monkeypatch.setattr(publishing, "do_later", lambda table, what, do: later.append(what))
    write_arrow("memory://of-a-path/t", {"id": [1]})
    write_arrow("memory://of-a-path/t", {"id": [2]}, mode="append")
    assert later == []
