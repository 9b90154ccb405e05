"""VACUUM on storage that is no local disk."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pytest

from lakelog.core import DeltaLog, delete_rows, read_arrow, vacuum, write_arrow
from lakelog.core.maintain.vacuum import folder_tree as tree
from lakelog.core.maintain.vacuum import folder_walk as walk
from lakelog.core.maintain.vacuum.folder_tree import list_tree
from lakelog.logstores.threads import REQUESTS
from support.aged_tables import UNCHECKED

ROWS = pa.table({"id": list(range(8)), "p": ["a b", "é"] * 4})


@pytest.fixture
def uri() -> str:
    return f"memory://vacuum-{uuid.uuid4()}/lake/t"


class Later:
    """A machine whose clock is far ahead; the storage's counts."""

    def __init__(self, hours: float) -> None:
        self._ms = int(hours * 3_600_000)

    def now_ms(self) -> int:
        import time

        return time.time_ns() // 1_000_000 + self._ms

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def files_below(uri: str) -> set[str]:
    store = DeltaLog.for_table(uri).store
    base = store.filesystem_path(uri)
    found = store.filesystem.get_file_info(pyarrow.fs.FileSelector(base, recursive=True))
    names = (each.path.removeprefix(f"{base}/") for each in found if each.is_file)
    return {name for name in names if not name.startswith("_delta_log/")}


def put(uri: str, *names: str) -> None:
    store = DeltaLog.for_table(uri).store
    for name in names:
        store.create_folder(f"{uri}/{name}".rpartition("/")[0])
        store.write(f"{uri}/{name}", ["x"])


def pass_time() -> None:
    """Until the storage's clock shows another millisecond."""
    import time

    began = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 <= began:
        pass


def test_what_is_not_needed_goes(uri: str) -> None:
    write_arrow(uri, ROWS, partition_by=["p"], mode="append")
    delete_rows(uri, "p = 'é'")
    put(uri, "p=a b/left over", "p=é/deep/er/left over", "_hidden/x")
    before = files_below(uri)
    pass_time()
    log = DeltaLog.for_table(uri, UNCHECKED)

    done = vacuum(log, 0)

    gone = before - files_below(uri)
    assert len(gone) == done.num_files == 3
    assert done.files["path"].to_pylist()[0].startswith(f"{uri}/p=")
    assert "_hidden/x" in files_below(uri)
    assert read_arrow(uri).num_rows == 4
    assert "VACUUM END" not in {entry.operation for entry in log.history()}


def test_the_storages_clock_counts(uri: str) -> None:
    write_arrow(uri, ROWS, mode="append")
    put(uri, "in flight")

    done = vacuum(DeltaLog.for_table(uri, clock=Later(1000)))

    assert not done.num_files
    assert "in flight" in files_below(uri)


def test_lite_and_an_inventory_ask_no_listing(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_arrow(uri, ROWS, partition_by=["p"], mode="append")
    delete_rows(uri, "p = 'é'")
    put(uri, "left over")
    pass_time()
    plan = vacuum(uri, 0, dry_run=True, conf=UNCHECKED)
    monkeypatch.setattr("lakelog.core.maintain.vacuum.candidates.list_tree", None)

    lite = vacuum(uri, 0, mode="LITE", conf=UNCHECKED)
    assert (lite.num_files, "left over" in files_below(uri)) == (1, True)
    rest = vacuum(uri, 0, inventory=plan.files, conf=UNCHECKED)
    assert (rest.num_files, "left over" in files_below(uri)) == (1, False)
    assert read_arrow(uri).num_rows == 4


LAYOUTS: dict[str, list[str]] = {
    "flat": [f"f{n}" for n in range(20)],
    "few folders": [f"a{n % 3}/b{n % 5}/f{n}" for n in range(40)],
    "many folders": [f"a{n}/f" for n in range(40)],
    "deep": ["a/b/c/d/e/f", "a/b/c/d/g", "a/b/h", "a/i", "j"],
    "hidden": ["_a/f", "a/_b/f", "a/b/.c/f", "a/b/_f", "a/x=1/f"],
    "log-like": ["a/b/c/d/_delta_log/f", "x/_delta_log/f", "x/y/f", "z/_delta_logs/f", "z/f"],
}


@pytest.mark.parametrize("known", [0, 3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_way_of_listing_finds_the_same(
    layout: str, known: int, uri: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = LAYOUTS[layout]
    roots = [uri, str(tmp_path / "t")]
    found = []
    visible: list[str] = []
    for root in roots:
        put(root, *names, "_delta_log/00000000000000000000.json")
        store = DeltaLog.for_table(root).store
        listed = list_tree(
            store, root, lambda name: name[0] in "_.", set(names[:known]), lambda _: None
        )
        found.append((sorted(f.path for f in listed.files), listed.seen))
        if root != uri:
            monkeypatch.setattr(tree, "local_root", lambda *_: None)
            again = list_tree(store, root, lambda name: name[0] in "_.", set(), lambda _: None)
            visible = sorted(f.path for f in again.files)
    assert found[0] == found[1]
    expected = {
        name
        for name in names
        if not any(part[0] in "_." for part in name.split("/"))
        and name != "x/y/f"  # of the table in x
    }
    assert set(visible) == expected
    assert set(found[0][0]) == expected - set(names[:known])


def test_no_listing_leads_into_the_log(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As a store does that lists recursively whatever it is asked.
    write_arrow(uri, ROWS, mode="append")
    put(uri, "old", "_delta_log/_sidecars/x.parquet")
    pass_time()
    log = DeltaLog.for_table(uri, UNCHECKED)
    handler = type(log.store.filesystem.handler)
    asked = handler.get_file_info_selector

    def recursive(self: Any, selector: Any) -> Any:
        return asked(
            self,
            pyarrow.fs.FileSelector(
                selector.base_dir, allow_not_found=selector.allow_not_found, recursive=True
            ),
        )

    monkeypatch.setattr(handler, "get_file_info_selector", recursive)

    done = vacuum(log, 0)

    assert done.files["path"].to_pylist() == [f"{uri}/old"]
    assert log.update().version == 0


class Watched:
    """Counts folders that were asked for and not told of; the first four wait for each other."""

    def __init__(self) -> None:
        self._together = threading.Barrier(4)
        self._lock = threading.Lock()
        self.asked = self.reported = self.most = 0

    def ask(self) -> None:
        with self._lock:
            self.asked += 1
            self.most = max(self.most, self.asked - self.reported)
            is_early = self.asked <= self._together.parties
        if is_early:
            self._together.wait(60)

    def tell(self, count: int) -> None:
        self.reported = count


MANY = [f"a{n:03}/f" for n in range(200)]


def test_a_local_listing_asks_for_several_folders_at_once_and_holds_few(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, listed = Watched(), walk._listed

    def watching(root: str, folder: str, *others: Any) -> Any:
        if folder:
            watched.ask()
        return listed(root, folder, *others)

    put(str(tmp_path), *MANY)
    monkeypatch.setattr(walk, "_listed", watching)
    monkeypatch.setattr(walk, "_SHARE", 1)
    monkeypatch.setattr(walk, "_REPORT_EVERY", 1)
    found = walk.walk(str(tmp_path), lambda name: name[0] in "_.", set(), watched.tell)

    assert sorted(f.path for f in found.files) == MANY
    assert (watched.asked, watched.most <= walk._AHEAD) == (len(MANY), True)


def test_a_listing_of_objects_asks_for_several_folders_at_once_and_holds_few(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(uri, *MANY)
    store = DeltaLog.for_table(uri).store
    handler = type(store.filesystem.handler)
    watched, listed = Watched(), handler.get_file_info_selector

    def watching(self: Any, selector: Any) -> Any:
        if selector.recursive:
            watched.ask()
        return listed(self, selector)

    monkeypatch.setattr(handler, "get_file_info_selector", watching)
    found = list_tree(store, uri, lambda name: name[0] in "_.", set(), watched.tell)

    assert sorted(f.path for f in found.files) == MANY
    assert (watched.asked, watched.most <= 2 * REQUESTS + 1) == (len(MANY), True)


def test_a_folder_that_can_not_be_listed_ends_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = walk._listed

    def refusing(root: str, folder: str, *others: Any) -> Any:
        if folder == "a150":
            raise PermissionError(folder)
        return listed(root, folder, *others)

    put(str(tmp_path), *MANY)
    monkeypatch.setattr(walk, "_listed", refusing)

    with pytest.raises(PermissionError, match="a150"):
        walk.walk(str(tmp_path), lambda name: name[0] in "_.", set(), lambda _: None)
