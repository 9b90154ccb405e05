"""Which files are gone: by listings where there are many, by one look each where there are few."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaLog
from lakelog.core.actions.file_table import from_add_files
from lakelog.core.data.missing_files import rows_with_missing_files
from support.tables import add_file

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = [f"p={n % 3}/é {n:04}" for n in range(600)] + ["alone"]
GONE = ["alone", *NAMES[300:310]]


@pytest.fixture
def uri() -> str:
    return f"memory://missing-{uuid.uuid4()}/lake/t"


class Asked:
    """How often the storage was asked for listings, and for files by their names."""

    def __init__(self, store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folders = 0
        self.files = 0
        handler = type(store.filesystem.handler)
        self.handler, self.listed = handler, handler.get_file_info_selector
        looked = handler.get_file_info

        def listing(this: Any, selector: Any) -> Any:
            self.folders += 1
            return self.listed(this, selector)

        def looking(this: Any, paths: list[str]) -> Any:
            self.files += len(paths)
            return looked(this, paths)

        monkeypatch.setattr(handler, "get_file_info_selector", listing)
        monkeypatch.setattr(handler, "get_file_info", looking)


def _rows() -> pa.Table:
    spelled = [each.replace("é ", "%C3%A9%20") for each in NAMES]
    return from_add_files([add_file(each) for each in spelled])


def _stored(uri: str) -> Any:
    store = DeltaLog.for_table(uri).store
    for number in range(3):
        store.create_folder(f"{uri}/p={number}")
    for name in set(NAMES) - set(GONE):
        store.write(f"{uri}/{name}", ["x"])
    return store


def test_many_files_are_looked_for_by_listing_their_folders(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, rows = _stored(uri), _rows()
    asked = Asked(store, monkeypatch)

    lacks, missing = rows_with_missing_files(store, uri, rows, len(NAMES))

    assert missing == sorted(f"{uri}/{each}" for each in GONE)
    assert [name for name, lack in zip(NAMES, lacks, strict=True) if lack] == [
        *GONE[1:],
        GONE[0],
    ]
    # One a folder; and what no listing shows, once more by its name.
    assert (asked.folders, asked.files) == (3, len(GONE))


@pytest.mark.parametrize(("rows", "known"), [(100, 100), (600, 600 * 20 + 1)])
def test_few_files_of_a_folder_are_looked_for_one_by_one(
    rows: int, known: int, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, wanted = _stored(uri), _rows().slice(0, rows)
    asked = Asked(store, monkeypatch)

    _, missing = rows_with_missing_files(store, uri, wanted, known)

    assert missing == sorted(f"{uri}/{each}" for each in GONE if each in NAMES[:rows])
    assert (asked.folders, asked.files) == (0, rows)


def test_what_can_not_be_listed_is_looked_for_by_name(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, rows = _stored(uri), _rows()
    asked = Asked(store, monkeypatch)

    def refusing(this: Any, selector: Any) -> Any:
        raise PermissionError(selector.base_dir)

    monkeypatch.setattr(asked.handler, "get_file_info_selector", refusing)
    _, missing = rows_with_missing_files(store, uri, rows, len(NAMES))

    assert missing == sorted(f"{uri}/{each}" for each in GONE)
    assert asked.files == len(NAMES)
