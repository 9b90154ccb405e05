from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, delete_rows, update_rows, vacuum, write_arrow
from lakelog.core.alter import set_properties
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError, UnsupportedFeatureError
from lakelog.core.maintain.vacuum.inventory import INVENTORY_SCHEMA
from lakelog.logstores import LocalLogStore
from support.aged_tables import UNCHECKED, age, age_all, data_files, put

if TYPE_CHECKING:
    from lakelog.core.progress import Progress

WEEK = 7 * 24
ROWS = pa.table({"id": list(range(10)), "p": ["a b", "é"] * 5})
FEED = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(uri: str, version: int | None = None) -> list[dict[str, Any]]:
    log = DeltaLog.for_table(uri)
    snapshot = log.snapshot if version is None else log.snapshot_at(version)
    return sorted(snapshot.to_arrow().to_pylist(), key=str)


def named(uri: str, done: Any) -> set[str]:
    """What a run says that it has deleted, relative to the table's folder."""
    start = f"file:{uri}/"
    paths = [unquote(path) for path in done.files["path"].to_pylist()]
    assert all(path.startswith(start) for path in paths)
    return {path.removeprefix(start) for path in paths}


def operations(uri: str) -> list[str | None]:
    return [entry.operation for entry in DeltaLog.for_table(uri).history()]


def test_what_no_version_within_the_retention_needs_goes_and_nothing_else(uri: str) -> None:
    write_arrow(uri, ROWS, partition_by=["p"], properties=FEED, mode="append")
    update_rows(uri, {"id": 100}, "id = 4")
    delete_rows(uri, "p = 'é'")
    for version in (1, 2):
        _backdate_tombstones(uri, version, hours=WEEK + 1)
    age_all(uri, WEEK + 1)
    delete_rows(uri, "id = 2")
    put(uri, "p=a b/left over.parquet")
    put(uri, "young.parquet", hours=WEEK - 1)
    before, newest, older = data_files(uri), rows(uri), rows(uri, 2)

    done = vacuum(uri)

    deleted = before - data_files(uri)
    assert named(uri, done) == deleted
    assert "p=a b/left over.parquet" in deleted
    assert any(each.startswith("_change_data/") for each in deleted)
    assert any(each.startswith("p=%C3%A9/") for each in deleted)
    assert "young.parquet" not in deleted
    assert rows(uri) == newest
    assert rows(uri, 2) == older  # current until a moment ago
    assert (done.num_files, done.mode, done.dry_run) == (len(deleted), "FULL", False)


def test_a_dry_run_names_the_same_and_touches_nothing(uri: str) -> None:
    write_arrow(uri, ROWS, mode="append")
    put(uri, "a.parquet", text="twelve bytes")
    (Path(uri) / "empty").mkdir()
    age(Path(uri) / "empty", 1000)
    entries = sorted(str(each) for each in Path(uri).rglob("*"))

    planned = vacuum(uri, dry_run=True)

    assert sorted(str(each) for each in Path(uri).rglob("*")) == entries
    assert named(uri, planned) == {"a.parquet", "empty"}
    assert (planned.num_files, planned.num_folders, planned.size_in_bytes) == (1, 1, 12)
    assert vacuum(uri).files == planned.files
    assert not (Path(uri) / "empty").exists()


def test_the_history_shows_start_and_end_with_what_was_done(uri: str) -> None:
    write_arrow(uri, ROWS, mode="append")
    put(uri, "a.parquet", text="four")
    (Path(uri) / "full").mkdir()
    put(uri, "full/young", hours=0)

    vacuum(uri, 200)

    end, start, _ = DeltaLog.for_table(uri).history()
    assert (start.operation, end.operation) == ("VACUUM START", "VACUUM END")
    assert start.parameters == {
        "retentionCheckEnabled": True,
        "specifiedRetentionMillis": 200 * 3_600_000,
        "defaultRetentionMillis": WEEK * 3_600_000,
    }
    assert start.metrics == {"numFilesToDelete": "1", "sizeOfDataToDelete": "4"}
    assert end.parameters == {"status": "COMPLETED"}
    assert end.metrics == {"numDeletedFiles": "1", "numVacuumedDirectories": "2"}


@pytest.mark.parametrize(("conf", "recorded"), [("true", True), ("false", False)])
def test_the_conf_says_whether_it_is_in_the_history(uri: str, conf: str, recorded: bool) -> None:
    write_arrow(uri, ROWS, mode="append")

    vacuum(uri, conf={"spark.databricks.delta.vacuum.logging.enabled": conf})

    assert ("VACUUM END" in operations(uri)) is recorded


def test_what_is_not_deleted_is_reported_and_the_rest_goes(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_arrow(uri, ROWS, mode="append")
    for name in ("a", "b", "c"):
        put(uri, name)
    delete = LocalLogStore.delete_files

    def refuse_one(store: LocalLogStore, paths: Any) -> dict[str, Exception]:
        refused = {p: PermissionError(13, "held") for p in paths if p.endswith("/b")}
        return delete(store, [p for p in paths if p not in refused]) | refused

    monkeypatch.setattr(LocalLogStore, "delete_files", refuse_one)

    with pytest.raises(OSError, match=r"1 of 3 files: /.*/b \(.*held"):
        vacuum(uri)

    assert {"a", "b", "c"} & data_files(uri) == {"b"}
    newest = DeltaLog.for_table(uri).history(1)[0]
    assert (newest.operation, newest.parameters) == ("VACUUM END", {"status": "FAILED"})
    assert not (Path(uri) / "_delta_log/_last_vacuum_info").exists()


class TestRetention:
    def test_less_than_the_tables_is_refused_and_the_conf_is_named(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "a")

        with pytest.raises(
            DeltaAnalysisError, match=r"PERIOD_TOO_SHORT.*retentionDurationCheck.enabled=false"
        ):
            vacuum(uri, WEEK - 1)
        assert "a" in data_files(uri)
        assert operations(uri) == ["WRITE"]

    def test_the_property_is_the_limit_and_the_default(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        set_properties(uri, {"delta.deletedFileRetentionDuration": "interval 2 hours"})
        put(uri, "a", hours=2.5)
        put(uri, "b", hours=1.5)

        assert named(uri, vacuum(uri, 2.2, dry_run=True)) == {"a"}
        assert named(uri, vacuum(uri, dry_run=True)) == {"a"}
        with pytest.raises(DeltaAnalysisError, match="TOO_SHORT"):
            vacuum(uri, 1)

    def test_a_fraction_of_an_hour_is_not_rounded_away(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "a", hours=0.5)
        put(uri, "b", hours=0.3)

        assert named(uri, vacuum(uri, 0.4, conf=UNCHECKED)) == {"a"}

    @pytest.mark.parametrize("hours", [-1, -0.01, float("nan"), float("inf"), True, "7", b"x"])
    def test_what_is_no_retention_is_refused(self, uri: str, hours: Any) -> None:
        write_arrow(uri, ROWS, mode="append")

        with pytest.raises(DeltaAnalysisError, match=r"[Rr]etention"):
            vacuum(uri, hours, conf=UNCHECKED)

    def test_more_than_the_tables_covers_forgotten_tombstones_too(self, uri: str) -> None:
        # Their retention is over, so a checkpoint drops them; the caller's is not.
        write_arrow(uri, ROWS, mode="append")
        delete_rows(uri)
        _backdate_tombstones(uri, 1, hours=WEEK + 5)
        age_all(uri, WEEK + 5)
        age(Path(uri) / "_delta_log" / f"{0:020d}.json", WEEK + 50)
        DeltaLog.for_table(uri).checkpoint()
        assert not DeltaLog.for_table(uri).snapshot.tombstones.num_rows

        assert not vacuum(uri, WEEK + 10, dry_run=True).num_files
        assert vacuum(uri, WEEK + 1, dry_run=True).num_files == 1


def _backdate_tombstones(uri: str, version: int, hours: float) -> None:
    import time

    path = Path(uri) / "_delta_log" / f"{version:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        if "remove" in line:
            line["remove"]["deletionTimestamp"] = int((time.time() - hours * 3600) * 1000)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class TestClocks:
    def test_a_writer_whose_clock_is_behind_loses_no_version_to_vacuum(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        age_all(uri, WEEK + 1)
        delete_rows(uri, "id = 3")
        _backdate_tombstones(uri, 1, hours=5000)
        older = rows(uri, 0)

        vacuum(uri)

        assert rows(uri, 0) == older

    def test_a_writer_whose_clock_is_ahead_only_keeps_more(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        delete_rows(uri)
        age_all(uri, WEEK + 1)

        assert not vacuum(uri, dry_run=True).num_files

    def test_this_machines_clock_may_be_ahead_of_the_storages(self, uri: str) -> None:
        class Ahead:
            def now_ms(self) -> int:
                import time

                return time.time_ns() // 1_000_000 + 30 * 86_400_000

            def monotonic(self) -> float:
                return 0.0

            def sleep(self, seconds: float) -> None:
                raise AssertionError(seconds)

        write_arrow(uri, ROWS, mode="append")
        put(uri, "in flight.parquet", hours=0)
        put(uri, "old", hours=WEEK + 1)

        done = vacuum(DeltaLog.for_table(uri, clock=Ahead()))

        assert named(uri, done) == {"old"}
        assert "in flight.parquet" in data_files(uri)
        assert not [name for name in data_files(uri) if "clock" in name]


class TestWritersAtWork:
    def test_files_of_an_open_transaction_of_this_process_stay(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        age_all(uri, 1)
        put(uri, "old", hours=1)
        log = DeltaLog.for_table(uri)
        txn = log.start_transaction()
        put(uri, "written.parquet", hours=0)

        assert named(uri, vacuum(uri, 0, conf=UNCHECKED)) == {"old"}
        del txn
        age(Path(uri) / "written.parquet", 0.01)
        assert named(uri, vacuum(uri, 0, conf=UNCHECKED)) == {"written.parquet"}

    @pytest.mark.parametrize("moment", ["listing", "deleting"])
    def test_what_is_committed_meanwhile_stays(self, uri: str, moment: str) -> None:
        # An old file that comes back, as by RESTORE: its tombstone's time is over.
        write_arrow(uri, ROWS, mode="append")
        log = DeltaLog.for_table(uri)
        add = log.snapshot.files()[0]
        delete_rows(uri)
        _backdate_tombstones(uri, 1, hours=WEEK + 1)
        age_all(uri, WEEK + 1)
        put(uri, "old")
        happened: list[int] = []

        def progress(now: Progress) -> None:
            if now.text == moment and not happened:
                happened.append(now.done)
                from lakelog.core import Operation

                log.start_transaction().commit([add], Operation("RESTORE", {"version": 0}))

        done = vacuum(uri, progress=progress)

        assert happened
        assert named(uri, done) == {"old"}
        assert rows(uri) == rows(uri, 0)

    def test_a_table_that_is_replaced_meanwhile_keeps_its_files(
        self, uri: str, tmp_path: Path
    ) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "old")
        other = tmp_path / "other"
        write_arrow(str(other), ROWS, mode="append")
        put(other, "old")

        def progress(now: Progress) -> None:
            if now.text == "deleting" and other.exists():
                shutil.rmtree(uri)
                other.rename(uri)

        with pytest.raises(DeltaAnalysisError, match="replaced by another table"):
            vacuum(
                uri,
                progress=progress,
                conf={"spark.databricks.delta.vacuum.logging.enabled": "false"},
            )
        assert "old" in data_files(uri)

    def test_an_interrupt_leaves_a_table_that_is_whole(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "old")

        def progress(now: Progress) -> None:
            if now.text == "deleting":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            vacuum(uri, progress=progress)

        assert len(rows(uri)) == 10
        assert DeltaLog.for_table(uri).history(1)[0].parameters == {"status": "FAILED"}
        assert named(uri, vacuum(uri)) == {"old"}


class TestWhatIsLeftAlone:
    def test_hidden_names_are_but_change_data_and_partition_folders_are_not(self, uri: str) -> None:
        write_arrow(uri, ROWS.rename_columns(["id", "_p"]), partition_by=["_p"], mode="append")
        for name in (
            *("_p=old/a", "_change_data/b", "_delta_index/c", "metadata/d", "x/_change_data/e"),
            *("_q=old/a", "_spark_metadata/0", ".hidden", "_SUCCESS", "_delta_log/old.parquet"),
            *("x/_hidden/y/z", "x/.part.crc", "_temporary/0/task/f", "_delta_log/_x/y"),
        ):
            put(uri, name)
        before = {str(each) for each in Path(uri).rglob("*")}

        done = vacuum(uri)

        assert {name for name in named(uri, done) if "part-" not in name} == {
            *("_p=old/a", "_change_data/b", "_delta_index/c", "metadata/d", "x/_change_data/e"),
        }
        left = {str(each) for each in Path(uri).rglob("*")}
        assert {f"{uri}/{name}" for name in named(uri, done)} == before - left

    def test_the_metadata_of_iceberg_stays_where_the_table_is_iceberg_too(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "metadata/v1.json")
        path = Path(uri) / "_delta_log" / f"{0:020d}.json"
        text = path.read_text()
        path.write_text(
            text.replace(
                '"configuration":{',
                '"configuration":{"delta.universalFormat.enabledFormats":"iceberg"',
            )
        )

        assert not vacuum(uri, dry_run=True).num_files

    def test_links_are_neither_followed_nor_deleted(self, uri: str, tmp_path: Path) -> None:
        write_arrow(uri, ROWS, mode="append")
        outside = put(tmp_path / "elsewhere", "precious.parquet")
        (Path(uri) / "folder").symlink_to(outside.parent)
        (Path(uri) / "file.parquet").symlink_to(outside)
        (Path(uri) / "nowhere").symlink_to("/does/not/exist")

        assert not vacuum(uri).num_files
        assert outside.exists()
        assert len(data_files(uri) - {"folder"}) == 3

    def test_a_table_within_the_folder_is_left_alone(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        write_arrow(f"{uri}/inner/deep", ROWS, mode="append")
        age_all(f"{uri}/inner", 1000)
        put(uri, "inner/old")

        assert named(uri, vacuum(uri)) == {"inner/old"}
        assert len(rows(f"{uri}/inner/deep")) == 10

    def test_files_elsewhere_are_not_touched_and_own_ones_found_by_any_name(
        self, uri: str, tmp_path: Path
    ) -> None:
        source = str(tmp_path / "source")
        write_arrow(source, ROWS, mode="append")
        write_arrow(uri, ROWS, mode="append")
        link = tmp_path / "link"
        link.symlink_to(uri)
        own = Path(uri) / next(iter(data_files(uri)))
        for name in ("by uri", "by link", "by scheme", "plain"):
            shutil.copy(own, f"{uri}/{name}.parquet")
            age(f"{uri}/{name}.parquet", 1000)
        age_all(source, 1000)
        log = DeltaLog.for_table(uri)
        first = log.snapshot.files()[0]
        from dataclasses import replace

        from lakelog.core import Operation

        paths = [
            f"file:///{uri[1:]}/by%20uri.parquet",
            f"{link}/by%20link.parquet",
            f"file://{source}/{next(iter(data_files(source)))}",
        ]
        log.start_transaction().commit(
            [replace(first, path=path) for path in paths], Operation("CLONE")
        )

        assert named(uri, vacuum(uri)) == {"by scheme.parquet", "plain.parquet"}
        assert len(rows(uri)) == 40
        # A table opened by its link too.
        age_all(uri, 1000)
        assert not vacuum(str(link)).num_files

    def test_names_that_a_file_system_may_take_for_the_same_stay(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        own = next(iter(data_files(uri)))
        put(uri, own.upper())
        put(uri, "other.parquet")

        assert named(uri, vacuum(uri)) == {"other.parquet"}

    def test_a_file_whose_path_was_not_encoded_stays(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        log = DeltaLog.for_table(uri)
        from dataclasses import replace

        from lakelog.core import Operation

        named_so = replace(log.snapshot.files()[0], path="100%25 sure.parquet")
        log.start_transaction().commit([named_so], Operation.manual())
        put(uri, "100%25 sure.parquet")
        put(uri, "100% sure.parquet")

        assert not vacuum(uri).num_files

    def test_names_that_are_no_text_stay(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        odd = os.path.join(os.fsencode(uri), b"\xff.parquet")
        Path(os.fsdecode(odd)).write_text("x")
        age(os.fsdecode(odd), 1000)

        assert not vacuum(uri).num_files

    def test_vectors_stay_as_long_as_a_version_needs_them(self, uri: str) -> None:
        write_arrow(
            uri,
            ROWS,
            mode="append",
            properties={"delta.enableDeletionVectors": "true"},
            conf={"spark.lakelog.deletionVectors.maxInlineBytes": "0"},
        )
        inline = {"spark.lakelog.deletionVectors.maxInlineBytes": "0"}
        delete_rows(uri, "id = 1", conf=inline)
        delete_rows(uri, "id = 2", conf=inline)
        age_all(uri, WEEK + 1)
        delete_rows(uri, "id = 3", conf=inline)
        before = {name for name in data_files(uri) if name.endswith(".bin")}
        assert len(before) == 3
        _backdate_tombstones(uri, 2, hours=WEEK + 1)
        age(Path(uri) / "_delta_log" / f"{2:020d}.json", WEEK + 1)

        done = vacuum(uri)

        assert done.num_files == 1
        assert named(uri, done) < before
        assert [row["id"] for row in rows(uri, 2)] == [0, 3, 4, 5, 6, 7, 8, 9]
        assert [row["id"] for row in rows(uri)] == [0, 4, 5, 6, 7, 8, 9]

    def test_a_vector_that_can_not_be_found_stops_everything(self, uri: str) -> None:
        write_arrow(uri, ROWS, properties={"delta.enableDeletionVectors": "true"}, mode="append")
        put(uri, "old")
        delete_rows(uri, "id = 1")
        path = Path(uri) / "_delta_log" / f"{1:020d}.json"
        path.write_text(path.read_text().replace('"storageType":"u"', '"storageType":"?"'))
        assert '"storageType":"?"' in path.read_text()

        with pytest.raises(Exception, match="vector"):
            vacuum(uri)
        assert "old" in data_files(uri)


class TestFolders:
    def test_empty_ones_go_from_the_deepest_up_if_they_are_old(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        for name in ("a/b/c", "young", "full"):
            (Path(uri) / name).mkdir(parents=True)
        put(uri, "full/f", hours=0)
        for name in ("a/b/c", "a/b", "a", "full"):
            age(Path(uri) / name, 1000)

        done = vacuum(uri)

        assert named(uri, done) == {"a", "a/b", "a/b/c"}
        assert {each.name for each in Path(uri).iterdir() if each.is_dir()} == {
            *("_delta_log", "young", "full")
        }

    def test_one_that_is_emptied_stays_for_a_writer_that_may_be_about_to_use_it(
        self, uri: str
    ) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "p=1/f")
        age(Path(uri) / "p=1", 1000)

        assert named(uri, vacuum(uri)) == {"p=1/f"}
        assert (Path(uri) / "p=1").exists()
        age(Path(uri) / "p=1", 1000)
        assert named(uri, vacuum(uri)) == {"p=1"}

    def test_checksums_of_hadoop_go_with_their_files(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "d/part.parquet")
        put(uri, "d/.part.parquet.crc")
        put(uri, "d/.other.crc")

        assert named(uri, vacuum(uri)) == {"d/part.parquet"}
        assert {name for name in data_files(uri) if name.startswith("d/")} == {"d/.other.crc"}


class TestInventory:
    def test_the_result_of_a_dry_run_is_one(self, uri: str, tmp_path: Path) -> None:
        write_arrow(uri, ROWS, partition_by=["p"], mode="append")
        put(uri, "p=a b/100% é.parquet")
        (Path(uri) / "empty").mkdir()
        age(Path(uri) / "empty", 1000)
        plan = vacuum(uri, dry_run=True)
        put(uri, "later")
        pq.write_table(plan.files, tmp_path / "plan.parquet")

        done = vacuum(uri, inventory=tmp_path / "plan.parquet")

        assert done.files == plan.files
        assert named(uri, done) == {"p=a b/100% é.parquet", "empty"}
        assert "later" in data_files(uri)

    def test_it_can_not_name_what_must_stay(self, uri: str, tmp_path: Path) -> None:
        write_arrow(uri, ROWS, mode="append")
        age_all(uri, 1000)
        put(uri, "young", hours=0)
        put(uri, "old")
        outside = put(tmp_path, "outside")
        (Path(uri) / "link").symlink_to(tmp_path)
        live = next(name for name in data_files(uri) if name.startswith("part-"))
        names = [
            *(live, "young", "old", "missing", "link/outside", "../outside", "_delta_log"),
            *("x/../old/", f"_delta_log/{0:020d}.json", "", "."),
        ]
        paths = [f"file:{uri}/{name}" for name in names] + [str(outside), f"s3://b{uri}/old", None]
        rows = [{"path": p, "length": 0, "isDir": False, "modificationTime": 0} for p in paths]

        done = vacuum(uri, inventory=pa.Table.from_pylist(rows, INVENTORY_SCHEMA))

        assert named(uri, done) == {"old"}
        assert outside.exists()

    @pytest.mark.parametrize("inventory", [5, pa.table({"path": ["x"]}), {"path": [1]}])
    def test_what_is_none_is_refused(self, uri: str, inventory: Any) -> None:
        write_arrow(uri, ROWS, mode="append")

        with pytest.raises(DeltaAnalysisError, match=r"inventory|INVENTORY"):
            vacuum(uri, inventory=inventory)

    def test_one_of_another_table_is_refused(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        rows = [{"path": "s3://b/t/f", "length": 0, "isDir": False, "modificationTime": 0}]

        with pytest.raises(DeltaAnalysisError, match="names no file below"):
            vacuum(uri, inventory=pa.Table.from_pylist(rows, INVENTORY_SCHEMA))


class TestLite:
    def test_what_old_commits_took_out_goes_without_a_listing(
        self, uri: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_arrow(uri, ROWS, properties=FEED, mode="append")
        update_rows(uri, {"id": 50}, "id = 5")
        delete_rows(uri, "id < 5")
        age_all(uri, 3)
        delete_rows(uri, "id = 7")
        put(uri, "left over")
        for version in (1, 2):
            _backdate_tombstones(uri, version, hours=3)
            age(Path(uri) / "_delta_log" / f"{version:020d}.json", 3)
        full = named(uri, vacuum(uri, 2, dry_run=True, conf=UNCHECKED))
        newest, older = rows(uri), rows(uri, 2)
        monkeypatch.setattr("lakelog.core.maintain.vacuum.candidates.list_tree", None)

        done = vacuum(uri, 2, mode="lite", conf=UNCHECKED)

        assert named(uri, done) == full - {"left over"}
        assert len(named(uri, done)) > 1
        assert (rows(uri), rows(uri, 2)) == (newest, older)

    def test_each_run_goes_on_where_the_last_one_ended(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        write_arrow(uri, ROWS, mode="overwrite")
        age_all(uri, 1)
        info = Path(uri) / "_delta_log/_last_vacuum_info"
        # By the writer's clock the file was taken out just now; a later run has to find it.
        assert not vacuum(uri, 0.5, mode="LITE", conf=UNCHECKED).num_files
        assert json.loads(info.read_text()) == {}
        assert vacuum(uri, 0, mode="LITE", conf=UNCHECKED).num_files == 1
        done = json.loads(info.read_text())["latestCommitVersionOutsideOfRetentionWindow"]
        assert done >= 1
        DeltaLog.for_table(uri).checkpoint()
        (Path(uri) / "_delta_log" / f"{0:020d}.json").unlink()
        assert vacuum(uri, 0, mode="LITE", conf=UNCHECKED, dry_run=True).files_seen == 0
        info.write_text('{"latestCommitVersionOutsideOfRetentionWindow":-1}')
        with pytest.raises(DeltaAnalysisError, match=r"DELTA_CANNOT_VACUUM_LITE.*the first"):
            vacuum(uri, 0, mode="LITE", conf=UNCHECKED)

    def test_it_takes_no_inventory(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")

        with pytest.raises(DeltaAnalysisError, match="LITE"):
            vacuum(uri, mode="LITE", inventory=pa.table({"path": ["x"]}))
        with pytest.raises(DeltaAnalysisError, match="'FULL' or 'LITE'"):
            vacuum(uri, mode="SOME")


class TestTablesThatCanNotBeVacuumed:
    def test_there_must_be_one(self, uri: str) -> None:
        put(uri, "precious.parquet")

        with pytest.raises(TableNotFoundError):
            vacuum(uri)
        assert "precious.parquet" in data_files(uri)

    def test_its_features_must_be_known(self, uri: str) -> None:
        write_arrow(uri, ROWS, mode="append")
        put(uri, "old")
        path = Path(uri) / "_delta_log" / f"{0:020d}.json"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "protocol" in line:
                line["protocol"] = {
                    "minReaderVersion": 1,
                    "minWriterVersion": 7,
                    "writerFeatures": ["notYetInvented"],
                }
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

        with pytest.raises(UnsupportedFeatureError, match="notYetInvented"):
            vacuum(uri)
        assert "old" in data_files(uri)

    def test_one_that_demands_this_check_is_vacuumed(self, uri: str) -> None:
        properties = {"delta.feature.vacuumProtocolCheck": "supported"}
        write_arrow(uri, ROWS, properties=properties, mode="append")
        put(uri, "old")

        assert named(uri, vacuum(uri)) == {"old"}
