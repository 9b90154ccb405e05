"""Old names of the public API go on working, and their warnings are lines to write instead."""

from __future__ import annotations

import importlib
import re
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog import core
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.deprecation import renamed_argument

if TYPE_CHECKING:
    from pathlib import Path

Taker = Callable[[DeltaLog], Any]
TAKERS: dict[str, Taker] = {
    "Snapshot.files": lambda log: log.snapshot.files,
    "Snapshot.file_table_for": lambda log: log.snapshot.file_table_for,
    "Snapshot.to_arrow": lambda log: log.snapshot.to_arrow,
    "Snapshot.to_batches": lambda log: log.snapshot.to_batches,
    "TransactionReads.filter_files": lambda log: log.start_transaction().filter_files,
    "TransactionReads.filter_file_table": lambda log: log.start_transaction().filter_file_table,
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> DeltaLog:
    path: Path = tmp_path_factory.mktemp("old") / "table"
    for each in (1, 2):
        write_arrow(path, pa.table({"id": [each]}), mode="append")
    return DeltaLog.for_table(path)


def rows(found: Any) -> list[Any]:
    if isinstance(found, pa.Table):
        return list(found.to_pylist())
    return [each.to_pylist() if isinstance(each, pa.RecordBatch) else each for each in found]


@pytest.mark.parametrize("name", TAKERS)
def test_filter_is_called_where(name: str, log: DeltaLog) -> None:
    take = TAKERS[name](log)
    name = name.partition(".")[2]
    told = re.escape(f"{name}(filter=…) is deprecated. Write: {name}(where=…)")
    with pytest.warns(DeprecationWarning, match=told) as caught:
        old = rows(take(filter="id = 2"))
    (warning,) = caught
    assert warning.filename == __file__, "the line to change is the caller's"
    assert old == rows(take(where="id = 2"))
    assert len(old) == 1
    with pytest.raises(TypeError, match="got both where and filter, its old name"):
        take(where="id = 1", filter="id = 2")


def test_a_conf_is_made_from_a_mapping() -> None:
    told = re.escape("DeltaConf.of is deprecated. Write: DeltaConf.from_mapping(conf)")
    with pytest.warns(DeprecationWarning, match=told) as caught:
        assert core.DeltaConf.of({"a": "b"}) == core.DeltaConf.from_mapping({"a": "b"})
    assert caught[0].filename == __file__


def test_files_of_an_attempt_are_owned(log: DeltaLog) -> None:
    class Writer:
        aborted = False

        def abort(self) -> None:
            self.aborted = True

    told = re.escape("AttemptFiles.of is deprecated. Write: files.own(writer)")
    files, failure = core.AttemptFiles(log.start_transaction()), OSError("disk full")
    with pytest.warns(DeprecationWarning, match=told):
        writer = files.of(Writer())
    files.__exit__(OSError, failure, None)
    assert writer.aborted


def test_new_names_and_positions_do_not_warn() -> None:
    @renamed_argument("old", "new")
    def taker(first: int, new: int = 0) -> tuple[int, int]:
        """What it does."""
        return first, new

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert taker(1, 2) == (1, 2) == taker(1, new=2)
        assert taker(1) == (1, 0)
    assert (taker.__name__, taker.__doc__) == ("taker", "What it does.")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("generated", "generated_column"),
        ("identity", "identity_column"),
        ("with_default", "column_with_default"),
    ],
)
@pytest.mark.parametrize("module", ["lakelog.core", "lakelog.core.schema.filled_columns"])
def test_builders_of_columns_say_what_they_make(module: str, old: str, new: str) -> None:
    home = importlib.import_module(module)
    told = re.escape(f"{module}.{old} is deprecated. Write: from lakelog.core import {new}")
    with pytest.warns(DeprecationWarning, match=told) as caught:
        found = getattr(home, old)
    assert caught[0].filename == __file__
    assert found is getattr(core, new)
    assert old not in dir(home)
    with pytest.warns(DeprecationWarning, match=told):
        exec(f"from {module} import {old}", {})
    with pytest.raises(AttributeError, match="no attribute 'computed'"):
        _ = home.computed
