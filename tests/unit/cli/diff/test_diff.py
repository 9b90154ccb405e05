"""`lakelog diff`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cli.diff.column_differences import column_changes
from lakelog.cli.diff.comparison import comparison
from lakelog.cli.files import live_numbers
from lakelog.cli.table_options import later
from lakelog.core import (
    DeltaLog,
    Operation,
    create_table,
    delete_rows,
    optimize,
    restore,
    write_arrow,
)
from lakelog.core.alter import add_columns, drop_columns, rename_column, set_properties
from lakelog.core.engine.log import find_segment, read_stats
from lakelog.core.schema import ArrayType, MapType, PrimitiveType, StructField, StructType
from support.examples import examples
from support.raw_log import RawLog, add, metadata, remove
from support.terminal import lakelog, lakelog_json

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")


def _struct(*fields: StructField) -> StructType:
    return StructType(fields)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    made = str(tmp_path / "t")
    rows = pa.table({"id": [1, 2, 3], "old": ["a", "b", "c"]})
    properties = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
    create_table(made, rows.schema, properties=properties)
    write_arrow(made, rows, mode="append")
    write_arrow(made, rows.slice(0, 2), mode="append")
    return made


def test_files_rows_and_vectors(uri: str) -> None:
    delete_rows(uri, "id = 3")
    write_arrow(uri, pa.table({"id": [9], "old": ["z"]}), mode="append")
    found = lakelog_json("diff", uri, "2")
    assert (found["from"]["version"], found["to"]["version"]) == (2, 4)
    assert (found["from"]["rows"], found["to"]["rows"]) == (5, 5)
    files = found["files"]
    counts = {name: (files[name]["files"], files[name]["rows"]) for name in list(files)[:3]}
    assert counts == {
        "added": (1, 1),
        "removed": (0, 0),
        "with_other_deletion_vector": (1, 2),
    }
    assert files["in_both"] == 1
    assert (found["columns"], found["properties"], found["protocol"]) == ([], {}, None)
    back = lakelog_json("diff", uri, "4", "2")
    assert (back["files"]["removed"]["files"], back["files"]["added"]["files"]) == (1, 0)
    assert back["files"]["with_other_deletion_vector"]["rows"] == 3


def test_another_vector_of_a_file_that_is_spelled_otherwise(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t")
    names = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **names}}
    log.commit(protocol, metadata(), add("é", size=7), add("a", size=1))
    vector = {"storageType": "u", "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^", "offset": 4}
    masked = {**vector, "sizeInBytes": 40, "cardinality": 1}
    log.commit(remove("%C3%A9"), add("%C3%A9", size=7, deletionVector=masked))
    opened = DeltaLog.for_table(log.table)
    before, after = (opened.snapshot_at(version) for version in (0, 1))
    for pair in ((before, after), (after, before)):
        files = comparison(*pair)["files"]
        counts = [files[name]["files"] for name in list(files)[:3]]
        assert (counts, files["in_both"]) == ([0, 0, 1], 1)


STEPS = st.lists(
    st.sampled_from(["append", "delete", "overwrite", "optimize", "statistics", "restore"]),
    min_size=1,
    max_size=6,
)


@settings(max_examples=examples(15), deadline=None)
@given(STEPS, st.booleans(), st.data())
def test_the_commits_between_tell_what_all_files_tell(
    tmp_path_factory: Any, steps: list[str], vectors: bool, data: st.DataObject
) -> None:
    uri = str(tmp_path_factory.mktemp("diff") / "t é")
    properties = {"delta.enableDeletionVectors": str(vectors).lower()}
    write_arrow(uri, pa.table({"id": range(9)}), properties=properties)
    log = DeltaLog.for_table(uri)
    for number, step in enumerate(steps):
        match step:
            case "append" | "overwrite":
                write_arrow(log, pa.table({"id": range(number)}), mode=step)
            case "delete":
                delete_rows(log, f"id % 5 = {number}")
            case "optimize":
                optimize(log)
            case "restore":
                restore(log, log.update().version // 2)
            case _:
                live = log.update().files()
                again = [replace(each, stats=None, data_change=False) for each in live[:1]]
                log.start_transaction().commit(again, Operation("COMPUTE STATS"))
    versions = st.integers(0, log.update().version)
    before, after = (log.snapshot_at(data.draw(versions)) for _ in range(2))
    found = comparison(before, after)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lakelog.cli.diff.comparison._COMMITS", -1)
        assert comparison(before, after) == found
        if before.version < after.version:
            made = later(log, before, find_segment(log.store, log.table, after.version))
            assert made is not None
            same = comparison(made, after)
            assert same["from"] == same["to"] == found["to"]
            assert same["files"]["in_both"] == after.num_files
            assert made.commit_info == after.commit_info
            assert not any(same[name] for name in ("columns", "properties", "protocol"))
    for name, snapshot in (("from", before), ("to", after)):
        assert found[name]["files"] == snapshot.num_files
        assert found[name]["bytes"] == snapshot.size_in_bytes


def test_statistics_of_what_no_commit_between_names_are_parsed_once(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = DeltaLog.for_table(uri)
    before, after = log.snapshot_at(1), log.snapshot_at(2)
    parsed: list[int] = []

    def counted(texts: Any, wanted: Any) -> Any:
        parsed.append(len(texts))
        return read_stats(texts, wanted)

    monkeypatch.setattr(live_numbers, "read_stats", counted)
    assert comparison(before, after)["to"]["rows"] == 5
    # Version 1, and the one file that came; the groups that are empty have none.
    assert sorted(each for each in parsed if each) == [1, 1, 1]


def test_columns_properties_and_protocol(uri: str) -> None:
    rename_column(uri, "old", "new name")
    add_columns(uri, {"more": "struct<a: int>"})
    drop_columns(uri, "id")
    set_properties(uri, {"owner": "me", "delta.enableChangeDataFeed": "true"})
    found = lakelog_json("diff", uri, "2")
    assert [(each["change"], each["column"]) for each in found["columns"]] == [
        ("dropped", "id"),
        ("renamed", "`new name`"),
        ("added", "more"),
    ]
    assert found["properties"]["owner"] == {"before": None, "after": "me"}
    assert found["protocol"]["features_added"] == ["changeDataFeed"]
    assert found["files"]["in_both"] == 2
    text = lakelog("diff", uri, "2").out
    assert "changeDataFeed" in text
    assert "renamed" in text


def test_the_same_version_does_not_differ(uri: str) -> None:
    found = lakelog_json("diff", uri, "1", "1")
    assert found["from"] == found["to"]
    assert not any(
        found[name] for name in ("columns", "properties", "protocol", "domains", "transactions")
    )


def test_a_version_by_its_time(uri: str) -> None:
    time = lakelog_json("history", uri)["entries"][1]["timestamp"]
    assert lakelog_json("diff", uri, time)["from"]["version"] == 1
    assert lakelog("diff", uri, "2001-01-01").code == 2


def test_rows_of_files_without_statistics_are_unknown(uri: str) -> None:
    conf = {"spark.databricks.delta.stats.collect": "false"}
    write_arrow(uri, pa.table({"id": [1], "old": ["a"]}), mode="append", conf=conf)
    if lakelog_json("diff", uri, "2")["to"]["files_without_row_count"]:
        assert "or more" in lakelog("diff", uri, "2").out


@pytest.mark.parametrize("versions", [("99",), ("0", "99"), ("x",), ("-1",), ()])
def test_a_version_that_is_not_there_is_refused(uri: str, versions: tuple[str, ...]) -> None:
    outcome = lakelog("diff", uri, *versions)
    assert (outcome.code, outcome.out) == (2, "")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (_struct(StructField("a", LONG)), _struct(StructField("A", LONG)), [("A", "renamed")]),
        (_struct(StructField("a", LONG)), _struct(StructField("a", TEXT)), [("a", "type")]),
        (
            _struct(StructField("a", LONG)),
            _struct(StructField("a", LONG, False, {"comment": "c"})),
            [("a", "nullable"), ("a", "comment")],
        ),
        (
            _struct(StructField("s", _struct(StructField("x", LONG)))),
            _struct(StructField("s", _struct(StructField("x", TEXT), StructField("y", LONG)))),
            [("s.x", "type"), ("s.y", "added")],
        ),
        (
            _struct(StructField("s", _struct(StructField("x", _struct(StructField("y", LONG)))))),
            _struct(StructField("t", LONG)),
            [("s", "dropped"), ("t", "added")],
        ),
        (
            _struct(StructField("l", ArrayType(_struct(StructField("x", LONG))))),
            _struct(StructField("l", ArrayType(_struct(StructField("x.y", LONG))))),
            [("l.element.x", "dropped"), ("l.element.`x.y`", "added")],
        ),
        (
            _struct(StructField("m", MapType(TEXT, LONG))),
            _struct(StructField("m", MapType(TEXT, LONG, False))),
            [("m", "type")],
        ),
        (
            _struct(StructField("s", _struct(StructField("x", LONG)))),
            _struct(StructField("s", LONG)),
            [("s", "type"), ("s.x", "dropped")],
        ),
    ],
)
def test_how_columns_differ(
    before: StructType, after: StructType, expected: list[tuple[str, str]]
) -> None:
    found: list[dict[str, Any]] = column_changes(before, after)
    assert [(each["column"], each["change"]) for each in found] == expected
    assert not column_changes(after, after)


def test_the_log_alone_is_read(uri: str) -> None:
    for each in Path(uri).rglob("*.parquet"):
        each.unlink()
    assert lakelog_json("diff", uri, "1")["to"]["rows"] == 5


@pytest.mark.parametrize("digits", ["9" * 19, "1" * 5000])
def test_a_version_of_many_digits_is_refused_at_once(uri: str, digits: str) -> None:
    outcome = lakelog("diff", uri, digits)
    assert (outcome.code, outcome.out) == (2, "")
    assert "No version has so many digits" in outcome.err
