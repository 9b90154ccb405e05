from __future__ import annotations

import pytest

from lakelog.spark.names.catalog_entries import read_entry

_NAME = ("spark_catalog", "default", "t")
_HEAD = "Catalog: spark_catalog\nDatabase: default\nTable: t\nCreated Time: now\n"
_TAIL = "Partition Provider: Catalog\nSchema: root\n |-- id: long (nullable = true)\n\n"


def _read(middle: str, tail: str = _TAIL) -> tuple[object, ...]:
    entry = read_entry(_NAME, _HEAD + middle + tail)
    return entry.kind, entry.provider, entry.location, entry.managed


def test_tables_show_their_format_and_folder() -> None:
    text = "Type: EXTERNAL\nProvider: DELTA\nLocation: s3a://b/a b\n"
    assert _read(text) == ("table", "delta", "s3a://b/a b", False)
    text = "Type: MANAGED\nProvider: parquet\nLocation: file:/wh/t\n"
    assert _read(text) == ("table", "parquet", "/wh/t", True)
    assert not read_entry(_NAME, _HEAD + text + _TAIL).is_delta


def test_an_entry_of_delta_spark_has_no_schema() -> None:
    text = "Type: EXTERNAL\nProvider: delta\nLocation: file:/x\n"
    assert _read(text, "Partition Provider: Catalog\n\n") == ("table", "delta", "/x", False)
    assert _read(text, "") == ("table", "delta", "/x", False)


@pytest.mark.parametrize("uri", ["file:/a%20b", "file:///a%20b"])
def test_a_local_folder_is_not_decoded(uri: str) -> None:
    text = f"Type: EXTERNAL\nProvider: delta\nLocation: {uri}\n"
    assert _read(text) == ("table", "delta", "/a%20b", False)


def test_a_comment_with_lines_like_spark_s_changes_nothing() -> None:
    text = (
        "Type: EXTERNAL\nProvider: delta\nComment: x\nLocation: /bad\nType: VIEW\n"
        "Provider: bad\nLocation: /bad\nTable Properties: [a=\nLocation: /bad]\n"
        "Location: file:/good\nSerde Library: x\nStorage Properties: [y]\n"
    )
    assert _read(text) == ("table", "delta", "/good", False)


def test_a_view_has_neither() -> None:
    assert _read("Type: VIEW\nView Text: SELECT 1\n") == ("view", None, None, False)
