"""`lakelog conformance`: what it runs, says, leaves and refuses."""

from __future__ import annotations

import json
import sys
import types
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.cli.app import app
from lakelog.logstores import LocalLogStore, MemoryLogStore
from support.terminal import runner, said

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pyarrow.fs

ONE = ("--only", "a_taken_name_is_refused_and_kept")


class Overwrites(LocalLogStore):
    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        super().write(path, lines, overwrite=True)


class CannotDelete(LocalLogStore):
    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        import pyarrow.fs
        from fsspec.implementations.local import LocalFileSystem

        class Handler(pyarrow.fs.FSSpecHandler):  # type: ignore[misc]  # pyarrow ships no types
            def delete_dir(self, path: str) -> None:
                raise PermissionError("deletion is denied")

            def delete_file(self, path: str) -> None:
                raise PermissionError("deletion is denied")

        return pyarrow.fs.PyFileSystem(Handler(LocalFileSystem()))


class Away(LocalLogStore):
    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        budget = self.conf["spark.lakelog.store.retry.timeBudget"]
        raise OSError(f"no connection; given up after {budget} s")


@pytest.fixture(autouse=True)
def stores(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("kit_stores")
    module.Overwrites, module.CannotDelete, module.Away = Overwrites, CannotDelete, Away
    monkeypatch.setitem(sys.modules, "kit_stores", module)


def run(*args: str) -> Any:
    return runner().invoke(app, ["conformance", *args])


def test_a_sound_store_exits_with_0_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "table").mkdir()
    result = run(str(tmp_path), "--quick", *ONE, "--only", "test_an_empty_file_is_a_file")
    assert result.exit_code == 0, said(result)
    assert "ok" in result.stdout
    assert "2 kept, 0 not declared, 0 broken" in result.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["table"]


def test_a_broken_promise_exits_with_1_and_tells_what_was_seen(tmp_path: Path) -> None:
    result = run(str(tmp_path), "--conf", "spark.delta.logStore.class=kit_stores.Overwrites", *ONE)
    assert result.exit_code == 1
    assert "FAIL" in result.stdout
    assert "wanted FileExistsError, nothing was raised" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_document_with_every_result(tmp_path: Path) -> None:
    store = "spark.delta.logStore.class=kit_stores.Overwrites"
    result = run(str(tmp_path), "--json", "--quick", "--conf", store, *ONE)
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["capabilities"]["exclusive_create"] == "host"
    assert report["store"].endswith("Overwrites")
    assert report["ok"] is False
    assert report["left"] is None
    assert report["quick"] is True
    (only,) = report["results"]
    assert only["check"] == "a_taken_name_is_refused_and_kept"
    assert "wanted FileExistsError" in only["problem"]


def test_a_promise_that_is_not_declared_is_told_apart() -> None:
    uri = f"memory://{uuid.uuid4().hex}/t"
    result = run(uri, "--quick", "--only", "another_process_sees_every_write_before_it")
    assert result.exit_code == 0
    assert "n/d" in result.stdout
    assert "0 kept, 1 not declared, 0 broken" in result.stdout


def test_a_check_that_lacks_a_package_is_not_called_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "lakelog.logstores.conformance.checks.model", raising=False)
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    model = ("--only", "any_history_agrees_with_a_dict")
    both = run(str(tmp_path), "--quick", *ONE, *model)
    assert both.exit_code == 0, both.output
    assert "n/r" in both.stdout
    assert "pip install hypothesis" in both.stdout
    assert "1 kept, 0 not declared, 0 broken, 1 not run" in both.stdout
    alone = run(str(tmp_path), "--json", *model)
    assert alone.exit_code == 2
    assert "pip install hypothesis" in json.loads(alone.stdout)["results"][0]["not_run"]


def test_a_storage_that_is_away_is_given_up_soon_if_the_conf_does_not_say_when(
    tmp_path: Path,
) -> None:
    store = ("--conf", "spark.delta.logStore.class=kit_stores.Away", *ONE)
    assert "after 10 s" in run(str(tmp_path), *store).stderr
    own = ("--conf", "spark.lakelog.store.retry.timeBudget=3")
    assert "after 3 s" in run(str(tmp_path), *store, *own).stderr


def test_keep_leaves_the_files_and_says_where(tmp_path: Path) -> None:
    result = run(str(tmp_path), "--quick", "--keep", *ONE)
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("lakelog-conformance-")
    assert f"the files are in {folder}" in result.stdout


def test_files_that_cannot_be_deleted_are_reported(tmp_path: Path) -> None:
    store = "spark.delta.logStore.class=kit_stores.CannotDelete"
    result = run(str(tmp_path), "--conf", store, "--only", "a_missing_file_is_not_found")
    assert result.exit_code == 0, said(result)
    assert "the files of the checks remain in" in result.stderr
    assert "1 files could not be deleted; deletion is denied" in result.stderr


@pytest.mark.parametrize("uri", ["/lake/t/_delta_log", "s3a://b/t/_delta_log/x"])
def test_a_log_is_refused(uri: str) -> None:
    result = run(uri)
    assert result.exit_code == 2
    assert "is inside the log of a table" in result.stderr


def test_a_storage_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = run(str(tmp_path / "file" / "below"), "--quick")
    assert result.exit_code == 2
    assert "FAIL" not in said(result)


def test_a_check_that_is_not_there_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    result = run(str(tmp_path), "--only", "empty_file")
    assert result.exit_code == 2
    assert "did you mean an_empty_file_is_a_file?" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_memory_is_left_as_it_was() -> None:
    name = uuid.uuid4().hex
    store = MemoryLogStore()
    store.write(f"memory://{name}/t/mine", ["kept"])
    assert run(f"memory://{name}/t", "--quick", *ONE).exit_code == 0
    assert [each.name for each in store.list_from(f"memory://{name}/t/")] == ["mine"]


@pytest.mark.parametrize("spelling", ["./x", "x", "sub/../x"])
def test_a_relative_folder_is_one(
    spelling: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    result = runner().invoke(app, ["conformance", spelling, *ONE, "--keep"])
    assert result.exit_code == 0, said(result)
    assert len(list((tmp_path / "x").iterdir())) == 1
