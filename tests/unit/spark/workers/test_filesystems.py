from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyarrow.fs import FileSelector, LocalFileSystem

from lakelog.logstores import LogStoreClassError
from lakelog.spark.workers.filesystems import for_workers
from lakelog.spark.workers.marked_errors import unwrap_error

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from fsspec.implementations.local import LocalFileSystem
from pyarrow.fs import FSSpecHandler, PyFileSystem


class Files(FSSpecHandler):
    pass


def filesystem():
    return PyFileSystem(Files(LocalFileSystem()))
"""
NAME = "a_package_of_the_driver"


@pytest.fixture
def of_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file system whose class is in a module that can be imported here."""
    (tmp_path / f"{NAME}.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    import importlib

    yield importlib.import_module(NAME).filesystem()
    sys.modules.pop(NAME, None)


def test_it_arrives_as_what_it_was(of_a_user: Any, tmp_path: Path) -> None:
    sent = for_workers(of_a_user)
    assert sent.type_name == of_a_user.type_name
    arrived = pickle.loads(pickle.dumps(sent))
    assert type(arrived.handler) is type(of_a_user.handler)
    (tmp_path / "x").write_bytes(b"abc")
    for each in (sent, arrived):
        assert each.open_input_file(str(tmp_path / "x")).read() == b"abc"
        assert len(each.get_file_info(FileSelector(str(tmp_path)))) >= 1


def test_a_class_that_a_worker_lacks_is_named_with_what_to_do(
    of_a_user: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = pickle.dumps(for_workers(of_a_user))
    monkeypatch.delitem(sys.modules, NAME)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(tmp_path)])
    with pytest.raises(RuntimeError, match="can't be imported on Spark's workers") as caught:
        pickle.loads(sent)
    found = unwrap_error(caught.value)
    assert type(found) is LogStoreClassError
    assert f"{NAME}.Files" in str(found)
    assert "addPyFile" in str(found)


def test_a_file_system_of_arrow_is_left_alone() -> None:
    local = LocalFileSystem()
    assert for_workers(local) is local
