from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lakelog.core.delta_log import DeltaLog
from lakelog.core.log.last_checkpoint import (
    LastCheckpoint,
    hint_checksum,
    read_last_checkpoint,
    write_last_checkpoint,
)
from lakelog.logstores import LocalLogStore, MemoryLogStore, StorageUnavailableError
from support.raw_log import RawLog


@pytest.fixture
def log(tmp_path):
    return RawLog(tmp_path / "t")


def write_hint(log, text):
    (log.folder / "_last_checkpoint").write_text(text)


def test_the_checksum_is_that_of_the_protocol():
    # The sample of PROTOCOL.md's canonical form: nested, quoted and escaped.
    sample = {
        "k0": "'v 0'",
        "checksum": "x",
        "k1": {"k2": 2, "k3": ["v3", [1, 2], {"k4": "v4", "k5": ["v5", "v6", "v7"]}]},
    }
    assert hint_checksum(sample) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


def test_an_empty_object_has_the_checksum_of_nothing():
    assert hint_checksum({}) == "d41d8cd98f00b204e9800998ecf8427e"


def test_what_is_written_is_read(log):
    hint = LastCheckpoint(version=7, size=3, parts=2, size_in_bytes=99, num_of_add_files=1)
    assert write_last_checkpoint(LocalLogStore(), log.table, hint)
    assert read_last_checkpoint(LocalLogStore(), log.table) == hint


def test_a_newer_hint_is_not_replaced_by_an_older(log):
    store = LocalLogStore()
    assert write_last_checkpoint(store, log.table, LastCheckpoint(version=7))
    assert not write_last_checkpoint(store, log.table, LastCheckpoint(version=6))
    assert read_last_checkpoint(store, log.table) == LastCheckpoint(version=7)


def test_a_broken_hint_is_replaced(log):
    write_hint(log, "{")
    assert write_last_checkpoint(LocalLogStore(), log.table, LastCheckpoint(version=1))
    assert read_last_checkpoint(LocalLogStore(), log.table) == LastCheckpoint(version=1)


def test_without_a_hint_there_is_none(log):
    assert read_last_checkpoint(LocalLogStore(), log.table) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"size":1}',
        '{"version":-1}',
        '{"version":"1"}',
        '{"version":true}',
        '{"version":1,"size":"x"}',
        '{"version":1,"version":1}',
        '{"version":1,"checksum":"wrong"}',
        '{"version":1,"size":2}{"version":1,"size":2}',
        "\ufeff{}",
    ],
)
def test_a_hint_that_makes_no_sense_is_no_hint_and_is_logged(log, text, caplog):
    write_hint(log, text)
    assert read_last_checkpoint(LocalLogStore(), log.table) is None
    assert "_last_checkpoint" in caplog.text


def test_a_hint_that_is_no_utf8_is_no_hint(log, caplog):
    (log.folder / "_last_checkpoint").write_bytes(b"\xff\xfe{")
    assert read_last_checkpoint(LocalLogStore(), log.table) is None
    assert "ignoring" in caplog.text


def test_fields_of_other_writers_are_ignored(log):
    write_hint(log, json.dumps({"version": 3, "size": 4, "v2Checkpoint": {"path": "x"}}))
    found = read_last_checkpoint(LocalLogStore(), log.table)
    assert found == LastCheckpoint(version=3, size=4, v2={"path": "x"})


def test_a_storage_that_serves_nothing_is_not_waited_for_twice(monkeypatch):
    asked = []

    def unavailable(_, path):
        asked.append(path)
        raise StorageUnavailableError(f"{path}: nobody is there; given up after 5 s")

    for operation in ("read", "read_bytes", "list_from"):
        monkeypatch.setattr(MemoryLogStore, operation, unavailable)
    with pytest.raises(StorageUnavailableError):
        DeltaLog.for_table("memory://nobody/t").update()
    assert len(asked) == 1


class Tearing(MemoryLogStore):
    """The next `torn` overwrites leave half of the file."""

    def __init__(self, torn, *, atomic_overwrite=False):
        super().__init__()
        self.torn = torn
        self.atomic_overwrite = atomic_overwrite
        self.writes = 0

    @property
    def capabilities(self):
        return replace(super().capabilities, atomic_overwrite=self.atomic_overwrite)

    def write(self, path, lines, *, overwrite=False):
        text = "".join(lines)
        self.writes += 1
        if self.writes <= self.torn:
            text = text[: len(text) // 2]
        super().write(path, [text], overwrite=overwrite)


@pytest.fixture
def memory_table(request):
    table = f"memory://hints/{request.node.name}"
    MemoryLogStore().create_folder(f"{table}/_delta_log")
    return table


def test_a_hint_that_is_torn_is_written_again(memory_table):
    store, hint = Tearing(1), LastCheckpoint(version=7)
    assert write_last_checkpoint(store, memory_table, hint)
    assert read_last_checkpoint(store, memory_table) == hint
    assert store.writes == 2


def test_a_hint_that_stays_torn_is_given_up_with_a_warning(memory_table, caplog):
    store = Tearing(2)
    assert not write_last_checkpoint(store, memory_table, LastCheckpoint(version=7))
    assert "readers list the whole log" in caplog.text


def test_a_hint_is_not_read_back_where_overwrites_are_atomic(memory_table):
    store = Tearing(1, atomic_overwrite=True)
    assert write_last_checkpoint(store, memory_table, LastCheckpoint(version=7))
    assert store.writes == 1


def test_a_newer_hint_of_another_writer_counts_as_written(memory_table):
    class Overtaken(Tearing):
        def write(self, path, lines, *, overwrite=False):
            super().write(path, lines, overwrite=overwrite)
            newer = LastCheckpoint(version=9).to_json()
            MemoryLogStore().write(path, [newer], overwrite=True)

    store = Overtaken(0)
    assert write_last_checkpoint(store, memory_table, LastCheckpoint(version=7))
    assert store.writes == 1
