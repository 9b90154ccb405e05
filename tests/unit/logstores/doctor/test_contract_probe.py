"""The probe of files says what a storage does wrong, and leaves nothing behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import FileStatus, LocalLogStore, MemoryLogStore
from lakelog.logstores.doctor.area import ProbeArea
from lakelog.logstores.doctor.contract_probe import FileProbe
from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.object_store.trust import PROBE_KEY
from support.memory_client import MemoryClient, MemoryClientStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from lakelog.logstores import LogStore

ROOT = "memory://files-probe/t"


@pytest.fixture(autouse=True)
def _empty() -> None:
    MemoryLogStore.forget("files-probe")


def _findings(store: LogStore) -> dict[str, Finding]:
    area = ProbeArea(store, ROOT)
    found = {each.check: each for each in FileProbe(store, area.log("files"), 3).findings()}
    assert area.clear() == []
    return found


def test_a_good_storage_is_fine_in_everything() -> None:
    found = _findings(MemoryLogStore())
    assert list(found) == ["put", "conditional-put", "get", "list", "latency"]
    assert {each.status for each in found.values()} == {Status.FINE}
    assert found["latency"].measured["create"]["samples"] == 3
    with pytest.raises(FileNotFoundError):  # nothing is left
        MemoryLogStore().list_from(ROOT + "/")


class _Stale(MemoryLogStore):
    """Reads what it read first."""

    def __init__(self) -> None:
        super().__init__()
        self._first: dict[str, list[str]] = {}

    def read(self, path: str) -> Iterator[str]:
        return iter(self._first.setdefault(path, list(super().read(path))))


class _Invents(MemoryLogStore):
    def read(self, path: str) -> Iterator[str]:
        try:
            return iter(list(super().read(path)))
        except FileNotFoundError:
            return iter(())


class _Unordered(MemoryLogStore):
    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(sorted(super().list_from(path), key=lambda each: each.name.lower()))


class _Late(MemoryLogStore):
    def list_from(self, path: str) -> Iterator[FileStatus]:
        return iter(list(super().list_from(path))[:-1])


class _IgnoresStart(MemoryLogStore):
    def list_from(self, path: str) -> Iterator[FileStatus]:
        return super().list_from(path.rpartition("/")[0] + "/")


class _NoWrites(MemoryLogStore):
    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        raise PermissionError(f"{path}: these credentials may not write")


class _NoLists(MemoryLogStore):
    def list_from(self, path: str) -> Iterator[FileStatus]:
        raise PermissionError(f"{path}: these credentials may not list")


@pytest.mark.parametrize(
    ("store", "check", "seen"),
    [
        (_Stale(), "put", "read back as"),
        (_Invents(), "get", "never written"),
        (_Unordered(), "list", "out of order"),
        (_Late(), "list", "lacks"),
        (_IgnoresStart(), "list", "from 'a'"),
        (_NoWrites(), "put", "may not write"),
        (_NoLists(), "list", "may not list"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, MemoryLogStore) else str(value),
)
def test_what_is_wrong_is_found_and_has_a_remedy(
    store: MemoryLogStore, check: str, seen: str
) -> None:
    finding = _findings(store)[check]
    assert finding.status is Status.FAILED
    assert seen in finding.summary
    assert finding.remedy


def test_without_the_right_to_write_nothing_else_is_tried() -> None:
    assert list(_findings(_NoWrites())) == ["put", "conditional-put"]


def test_folders_that_were_made_on_the_way_go_again(tmp_path: Path) -> None:
    area = ProbeArea(LocalLogStore(), f"{tmp_path}/new/lake/t")
    area.log("files")
    assert (tmp_path / "new" / "lake" / "t").is_dir()
    assert area.clear() == []
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_somebody_used_meanwhile_stays(tmp_path: Path) -> None:
    area = ProbeArea(LocalLogStore(), f"{tmp_path}/new/t")
    area.log("files")
    (tmp_path / "new" / "other").mkdir()
    assert area.clear() == []
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["other"]


def test_objects_that_may_not_be_deleted_are_named() -> None:
    client = MemoryClient()
    store = MemoryClientStore(client, {PROBE_KEY: "never"})
    area = ProbeArea(store, "mem://bucket/t")
    list(FileProbe(store, area.log("files"), 1).findings())
    client.forbidden = {"delete"}
    assert set(area.clear()) == set(client.objects)
    client.forbidden = set()
    assert area.clear() == []
    assert client.objects == {}
