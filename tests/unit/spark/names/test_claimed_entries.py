"""A name that is taken for a table, and what becomes of it where none is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from lakelog.spark.names import new_entries
from lakelog.spark.names.catalog_entries import Entry
from lakelog.spark.names.new_entries import claimed

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """The entries that were dropped; the one that is made is of a managed table in `db/t`."""
    found: list[Entry] = []
    entry = Entry(("spark_catalog", "db", "t"), "table", "delta", str(tmp_path / "t"), managed=True)
    monkeypatch.setattr(new_entries, "session_conf", lambda _: {})
    monkeypatch.setattr(new_entries, "create_entry", lambda *_: entry)
    monkeypatch.setattr(new_entries, "drop_entry", lambda _, gone: found.append(gone))
    return found


def _fail(name: Any, error: BaseException, folder: Path | None = None) -> None:
    with claimed(name, "t", name):
        if folder is not None:
            folder.mkdir(parents=True)
            (folder / "part-0.parquet").touch()
        raise error


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
def test_the_name_goes_where_nothing_was_made(dropped: list[Entry], error: BaseException) -> None:
    with pytest.raises(type(error)):
        _fail(None, error)
    assert [each.parts[-1] for each in dropped] == ["t"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("under", ["", "p=1", "_delta_log"])
def test_a_managed_folder_that_holds_files_is_not_dropped(
    tmp_path: Path, dropped: list[Entry], error: BaseException, under: str
) -> None:
    with pytest.raises(type(error)):
        _fail(None, error, tmp_path / "t" / under)
    assert dropped == []
