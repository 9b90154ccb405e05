"""Links in a table's folder: nothing behind one is deleted or replaced, and no file is lost."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import (
    DeltaLog,
    Operation,
    convert_to_delta,
    create_table,
    delete_rows,
    merge,
    optimize,
    restore,
    update_rows,
    vacuum,
    write_arrow,
)
from lakelog.core.alter import set_properties
from lakelog.core.errors import DeltaError
from lakelog.core.log.own_files import OwnFiles
from lakelog.core.portable.made_files import LinkedFolderError
from lakelog.logstores import LocalLogStore, MemoryLogStore
from support.aged_tables import age_all
from support.tables import add_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HOUR = 3_600_000
PROPERTIES = {
    "delta.enableDeletionVectors": "false",
    "delta.enableChangeDataFeed": "true",
    "delta.checkpointPolicy": "v2",
    "delta.checkpointInterval": "1",
    "delta.logRetentionDuration": "interval 0 hours",
    "delta.deletedFileRetentionDuration": "interval 0 hours",
    "delta.compatibility.symlinkFormatManifest.enabled": "true",
}
NO_CHECK = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.databricks.delta.checkpointV2.topLevelFileFormat": "json",
}
UUID = "80a083e8-7026-4e79-81be-64bd76c43a11"


def rows(p: str, *ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [p] * len(ids)})


@pytest.fixture
def table(tmp_path: Path, full_table: Path) -> Path:
    """A table with something in every folder that a table can have."""
    return Path(shutil.copytree(full_table, tmp_path / "t"))


@pytest.fixture(scope="module")
def full_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one that the others are copies of."""
    uri = tmp_path_factory.mktemp("full") / "t"
    create_table(
        str(uri), "id bigint, p string", partition_by=["p"], properties=PROPERTIES, conf=NO_CHECK
    )
    for number, p in enumerate("1212"):
        write_arrow(str(uri), rows(p, number), mode="append", conf=NO_CHECK)
    update_rows(str(uri), {"id": "id + 10"}, "id = 3", conf=NO_CHECK)
    drafts = uri / "_delta_log" / ".tmp"
    drafts.mkdir(exist_ok=True)
    (drafts / f"{0:020d}.json.{UUID}").write_text("draft")
    (uri / "_delta_log" / f".{0:020d}.json.{UUID}.tmp").write_text("draft")
    return uri


FOLDERS = (
    "_delta_log",
    "_delta_log/_sidecars",
    "_delta_log/.tmp",
    "_symlink_format_manifest",
    "_symlink_format_manifest/p=1",
    "_symlink_format_manifest/p=2",
    "_change_data",
    "_change_data/p=2",
    "p=1",
    "p=2",
)
TARGETS = ("outside", "inside", "another table")
"""Within the table what nobody needs is garbage, as manifests are without their folder."""


class Seen(NamedTuple):
    """A file behind a link."""

    content: bytes
    inode: int


def behind(folder: Path) -> dict[str, Seen]:
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            place = os.path.join(path, name)
            with open(place, "rb") as file:
                found[os.path.relpath(place, folder)] = Seen(file.read(), os.stat(place).st_ino)
    return found


def linked(table: Path, folder: str, target: str) -> Path:
    """Put a link in place of a folder, to one with the same files and others, all of them old."""
    victim = {
        "outside": table.parent / "victim",
        "inside": table / "elsewhere",
        "another table": table.parent / "other" / folder,
    }[target]
    victim.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(table / folder, victim)
    for name in ("photo.jpg", "part-0.parquet", f"{UUID}.parquet", "manifest", f"{0:020d}.json"):
        if not (victim / name).exists():
            (victim / name).write_text("foreign")
    (victim / "p=9").mkdir()
    (victim / "p=9" / "manifest").write_text("foreign")
    if target == "another table":
        (table.parent / "other" / "_delta_log").mkdir(exist_ok=True)
    shutil.rmtree(table / folder)
    (table / folder).symlink_to(victim)
    return victim


def upkeep(uri: str) -> dict[str, Callable[[], object]]:
    log = DeltaLog.for_table(uri, NO_CHECK)
    return {
        "append": lambda: write_arrow(uri, rows("1", 100), mode="append", conf=NO_CHECK),
        "overwrite": lambda: write_arrow(uri, rows("3", 7), mode="overwrite", conf=NO_CHECK),
        "delete": lambda: delete_rows(uri, "p = '2'", conf=NO_CHECK),
        "update": lambda: update_rows(uri, {"id": "id + 1"}, "id < 3", conf=NO_CHECK),
        "merge": lambda: (
            merge(uri, rows("2", 1, 55), "source.id = target.id", conf=NO_CHECK)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
        "optimize": lambda: optimize(uri, conf=NO_CHECK),
        "restore": lambda: restore(uri, version=2, conf=NO_CHECK),
        "vectors": lambda: (
            set_properties(
                uri,
                {
                    "delta.compatibility.symlinkFormatManifest.enabled": "false",
                    "delta.enableDeletionVectors": "true",
                },
                conf=NO_CHECK,
            ),
            delete_rows(uri, "id = 0", conf=NO_CHECK),
        ),
        "manifest": lambda: log.generate_symlink_manifest(),
        "checkpoint": lambda: log.checkpoint(),
        "vacuum": lambda: vacuum(uri, 0, conf=NO_CHECK),
        "vacuum lite": lambda: vacuum(uri, 0, mode="LITE", conf=NO_CHECK),
    }


@pytest.mark.parametrize(
    ("folder", "target"),
    [(f, t) for f in FOLDERS for t in TARGETS if t != "inside" or "manifest" not in f],
)
def test_nothing_behind_a_link_is_deleted_or_replaced(
    table: Path, folder: str, target: str
) -> None:
    victim = linked(table, folder, target)
    age_all(table.parent, 24 * 400)
    before = behind(victim)
    may_grow = folder == "_delta_log"
    readable = None
    for name, work in upkeep(str(table)).items():
        with suppress(DeltaError, OSError):
            work()
        now = behind(victim)
        hint = {"_last_checkpoint", "_last_vacuum_info"} if may_grow else set()
        assert {k: v for k, v in now.items() if k in before and k not in hint} == {
            k: v for k, v in before.items() if k not in hint
        }, name
        if not may_grow:
            assert now.keys() == before.keys(), f"{name} wrote through the link"
        # What could be read before can be read afterwards.
        try:
            DeltaLog.for_table(str(table)).snapshot.to_arrow()
        except (DeltaError, OSError):
            assert readable is not True, name
        else:
            readable = True


@pytest.mark.parametrize("folder", ["p=1", "p=2"])
def test_vacuum_keeps_what_a_link_within_the_table_leads_to(table: Path, folder: str) -> None:
    (table / folder).rename(table / "real")
    (table / folder).symlink_to(table / "real")
    age_all(table, 24 * 400)
    expected = DeltaLog.for_table(str(table)).snapshot.to_arrow().sort_by("id")
    vacuum(str(table), 0, conf=NO_CHECK)
    assert DeltaLog.for_table(str(table)).snapshot.to_arrow().sort_by("id") == expected


@pytest.mark.parametrize(
    ("properties", "folder"),
    [({}, "p=1"), ({"delta.enableChangeDataFeed": "true"}, "_change_data")],
)
def test_a_write_into_a_linked_folder_is_refused_before_the_commit(
    tmp_path: Path, properties: Mapping[str, str], folder: str
) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, p string", partition_by=["p"], properties=properties)
    write_arrow(uri, rows("2", 5, 6), mode="append")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "t" / folder).symlink_to(outside)
    doors: dict[str, Callable[[], object]] = {
        "p=1": lambda: write_arrow(uri, rows("1", 1), mode="append"),
        "_change_data": lambda: update_rows(uri, {"id": "0"}, "id = 5"),
    }
    with pytest.raises(LinkedFolderError, match=f"{folder} is a link in the table .*Put the"):
        doors[folder]()
    assert not list(outside.iterdir())
    assert sorted(DeltaLog.for_table(uri).snapshot.to_arrow()["id"].to_pylist()) == [5, 6]


def test_a_file_that_somebody_else_wrote_through_a_link_is_not_committed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, p string", partition_by=["p"])
    outside = tmp_path / "outside"
    outside.mkdir()
    pq.write_table(pa.table({"id": [1]}), outside / "a.parquet")
    (tmp_path / "t" / "a b").symlink_to(outside)
    txn = DeltaLog.for_table(uri).start_transaction()
    with pytest.raises(LinkedFolderError, match="a b is a link"):
        txn.commit([add_file("a%20b/a.parquet", p="1")], Operation.write("Append"))
    assert DeltaLog.for_table(uri).snapshot.version == 0


@pytest.mark.parametrize("what", ["folder", "file"])
def test_a_folder_with_links_is_not_converted(tmp_path: Path, what: str) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "outside" / "a.parquet")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "t" / "b.parquet")
    if what == "folder":
        (tmp_path / "t" / "more").symlink_to(tmp_path / "outside")
    else:
        (tmp_path / "t" / "c.parquet").symlink_to(tmp_path / "outside" / "a.parquet")
    with pytest.raises((DeltaError, LinkedFolderError), match="is a link"):
        convert_to_delta(str(tmp_path / "t"))
    assert not (tmp_path / "t" / "_delta_log").exists()


def test_the_table_s_own_folder_may_be_a_link(table: Path) -> None:
    moved = table.rename(table.parent / "moved")
    table.symlink_to(moved)
    age_all(moved, 24 * 400)
    for name, work in upkeep(str(table)).items():
        if name != "restore":
            work()
    assert not vacuum(str(table), 0, conf=NO_CHECK).num_files
    assert f"{0:020d}.json" not in os.listdir(moved / "_delta_log")


OURS = [
    f"_delta_log/{0:020d}.json",
    f"_delta_log/{0:020d}.crc",
    f"_delta_log/{0:020d}.checkpoint.parquet",
    f"_delta_log/{0:020d}.checkpoint.{UUID}.json",
    f"_delta_log/{0:020d}.{3:020d}.compacted.json",
    f"_delta_log/.{0:020d}.json.{UUID}.tmp",
    f"_delta_log/.tmp/{0:020d}.json.{UUID}",
    f"_delta_log/_sidecars/{UUID}.parquet",
    f"_delta_log/_sidecars/{0:020d}.checkpoint.{1:010d}.{2:010d}.{UUID}.parquet",
    "_symlink_format_manifest/manifest",
    "_symlink_format_manifest/p=1/q=2/manifest",
    "_symlink_format_manifest/p=1/.manifest.crc",
    "p=1/part-0.parquet",
    "deletion_vector_x.bin",
    "_change_data/p=1/cdc.parquet",
]
NOT_OURS = [
    "_delta_log/notes.txt",
    "_delta_log/20240131.json",
    "_delta_log/_sidecars/photo.jpg",
    "_delta_log/_sidecars/part-0.parquet",
    f"_delta_log/_sidecars/deep/{UUID}.parquet",
    f"_delta_log/.tmp/{0:020d}.json",
    f"_delta_log/other/{0:020d}.json",
    "_symlink_format_manifest/p=1/part-0.parquet",
    "p=1/_delta_log/0.json",
    f"p=1/_delta_log/{0:020d}.json",
    "../victim/part-0.parquet",
    "p=1/../../victim/part-0.parquet",
    "p=1//part-0.parquet",
    "",
]


@pytest.mark.parametrize("path", OURS)
def test_files_with_the_names_of_the_protocol_go(tmp_path: Path, path: str) -> None:
    file = tmp_path / "t" / path
    file.parent.mkdir(parents=True)
    file.touch()
    own = OwnFiles(LocalLogStore(), str(tmp_path / "t"))
    assert own.delete([f"{tmp_path}/t/{path}"]) == {}
    assert not file.exists()


@pytest.mark.parametrize("path", [*NOT_OURS, "/elsewhere/part-0.parquet"])
def test_files_without_stay_on_every_store(tmp_path: Path, path: str) -> None:
    store = MemoryLogStore()
    base = f"memory://{tmp_path.name}{time.time_ns()}/t"
    asked = path if path.startswith("/") else f"{base}/{path}"
    own = OwnFiles(store, base)
    assert list(own.delete([asked])) == [asked]
    with pytest.raises(OSError, match="not a file that belongs to the table"):
        own.delete_file(asked)
    with pytest.raises(OSError, match="not a file that belongs"):
        own.replace(asked, ["x"])
    with pytest.raises(OSError, match="not a file that belongs"), own.staged(asked):
        pytest.fail("it was opened")
