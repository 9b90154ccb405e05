"""Streams with `schemaTrackingLocation`: where they end, what they note, and what goes on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core.actions import AddFile, Metadata
from lakelog.core.actions.operation import Operation
from lakelog.core.conf import DeltaConf
from lakelog.core.delta_log import DeltaLog
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.streaming.offsets import SourceOffset
from lakelog.core.streaming.stream_options import StreamOptions
from lakelog.core.streaming.table_source import StreamSource
from lakelog.core.streaming.tracking.metadata_log import TrackedMetadata
from lakelog.core.streaming.tracking.permission import check_allowed, java_hash
from support.commits import APPEND

if TYPE_CHECKING:
    from pathlib import Path

TEXT, INT, LONG = (PrimitiveType(name) for name in ("string", "integer", "long"))


MAPPED = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}


def _field(name: str, number: int, kind: Any = TEXT) -> StructField:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
    return StructField(name, kind, metadata=mapping)


def _schema(*fields: StructField) -> StructType:
    return StructType(fields)


OLD = _schema(_field("a.b", 1), _field("p", 2), _field("q", 4))


def _table(path: Path, schema: StructType = OLD) -> DeltaLog:
    """A table with one file, at version 1, and beside it a checkpoint of a query."""
    checkpoint = path / "c p"
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text("{}")
    log = DeltaLog.for_table(path / "t")
    txn = log.start_transaction()
    metadata = Metadata(
        id="id-1",
        schema_string=schema.to_json(),
        partition_columns=["p"],
        configuration=MAPPED,
    )
    txn.changes.update_metadata_for_new_table(metadata)
    txn.commit([], Operation.create_table())
    _add(log, "a")
    return log


def _add(log: DeltaLog, name: str) -> None:
    add = AddFile(
        path=name, partition_values={"c2": "x"}, size=1, modification_time=0, data_change=True
    )
    log.start_transaction().commit([add], APPEND)


def _alter(log: DeltaLog, schema: StructType, **changes: Any) -> None:
    txn = log.start_transaction()
    txn.update_metadata(replace(txn.metadata, schema_string=schema.to_json(), **changes))
    txn.commit([], Operation("Manual Update"))


def _source(path: Path, conf: dict[str, str] | None = None, **options: Any) -> StreamSource:
    log = DeltaLog.for_table(path / "t", conf or {})
    location = str(path / "c p" / "deep" / "tracking")
    return StreamSource(log, StreamOptions(tracking_location=location, **options))


def _run(source: StreamSource, at: SourceOffset) -> tuple[list[list[str]], list[SourceOffset]]:
    """As Spark runs a query to the end: batches and their ends; an error is the last of them."""
    batches, ends = [], [at]
    try:
        while (end := source.latest_offset(ends[-1])) != ends[-1]:
            if len(ends) > 1:
                # A batch is done when the next one begins.
                source.committed(ends[-1])
            batches.append(source.files_between(ends[-1], end)["path"].to_pylist())
            ends.append(end)
    except DeltaAnalysisError as exc:
        batches.append([str(exc)])
    return batches, ends


def _entries(path: Path) -> list[dict[str, Any]]:
    folder = path / "c p" / "deep" / "tracking" / "_schema_log_id-1"
    texts = [each.read_text() for each in sorted(folder.glob("[0-9]*"))]
    assert all(text.startswith("v1\n") for text in texts)
    return [json.loads(text.splitlines()[1]) for text in texts]


def test_a_stream_ends_once_at_new_columns_and_goes_on_with_them(tmp_path: Path) -> None:
    log = _table(tmp_path)
    source = _source(tmp_path)
    batches, ends = _run(source, source.initial_offset())
    assert batches == [["a"]]
    _add(log, "b")
    wider = _schema(*OLD, _field("n", 3))
    _alter(log, wider, configuration={**MAPPED, "delta.appendOnly": "true"})
    _add(log, "c")
    batches, ends = _run(_source(tmp_path), ends[-1])
    assert batches[0] == ["b"]
    assert "DELTA_STREAMING_METADATA_EVOLUTION" in batches[1][0]
    assert ends[1:] == [SourceOffset(3, -1, barrier=1)]
    first, second = _entries(tmp_path)
    assert [each["deltaCommitVersion"] for each in (first, second)] == [1, 3]
    assert not any("previousMetadataSeqNum" in each for each in (first, second))
    assert first["sourceMetadataPath"] == f"file:{tmp_path}/c p/sources/0"
    assert first["tableId"] == "id-1"
    assert StructType.from_json(first["dataSchemaJson"]) == OLD
    assert StructType.from_json(first["partitionSchemaJson"]).names == ["p"]
    assert "minReaderVersion" in json.loads(first["protocolJson"])["protocol"]
    assert second["tableConfigurations"] == {**MAPPED, "delta.appendOnly": "true"}
    # From either side of the change, and as often as one likes.
    for barrier in (1, 2):
        source, at = _source(tmp_path), SourceOffset(3, -1, barrier=barrier)
        assert source.snapshot.version == 3
        batches, last = _run(source, at)
        assert [each for each in batches if each] == [["c"]]
        assert last[-1] == SourceOffset(5, -1)
    assert len(_entries(tmp_path)) == 2


def test_a_query_that_dies_between_the_sides_evolves_when_it_is_started_again(
    tmp_path: Path,
) -> None:
    log = _table(tmp_path)
    _, ends = _run(source := _source(tmp_path), source.initial_offset())
    _alter(log, _schema(*OLD, _field("n", 3)))
    before = _source(tmp_path).latest_offset(ends[-1])
    behind = _source(tmp_path).latest_offset(before)
    assert (before.barrier, behind.barrier) == (1, 2)
    with pytest.raises(DeltaAnalysisError, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        _source(tmp_path).latest_offset(behind)
    assert _source(tmp_path).latest_offset(behind) == SourceOffset(3, -1)


@pytest.mark.parametrize(
    ("then", "kind", "option"),
    [
        (_schema(_field("re named", 1), *OLD.fields[1:]), "RENAME", "allowSourceColumnRename"),
        (_schema(*OLD.fields[1:]), "DROP", "allowSourceColumnDrop"),
        # Dropped and added again it is another column.
        (_schema(_field("a.b", 3), *OLD.fields[1:]), "DROP", "allowSourceColumnDrop"),
        (
            _schema(_field("a.b", 1, LONG), *OLD.fields[1:]),
            "TYPE WIDENING",
            "allowSourceColumnTypeChange",
        ),
    ],
)
def test_columns_that_the_sink_may_miss_need_a_word_first(
    tmp_path: Path, then: StructType, kind: str, option: str
) -> None:
    log = _table(
        tmp_path, _schema(_field("a.b", 1, INT if "TYPE" in kind else TEXT), *OLD.fields[1:])
    )
    _, ends = _run(source := _source(tmp_path), source.initial_offset())
    _alter(log, then)
    _add(log, "b")
    _, ends = _run(_source(tmp_path), ends[-1])
    with pytest.raises(DeltaAnalysisError, match="POST_SCHEMA_EVOLUTION") as caught:
        _source(tmp_path)
    assert kind in str(caught.value)
    assert caught.value.fields["options"] == [option]
    mark = java_hash(f"file:{tmp_path}/c p/sources/0")
    key = f"spark.databricks.delta.streaming.{option}"
    both = "spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop"
    for allowed, conf in (
        ({option.lower(): "always"}, {}),
        ({option.lower(): "2"}, {}),
        ({}, {key: "always"}),
        ({}, {f"{key}.ckpt_{mark}": "2"}),
        ({}, {both: "always"}),
    ):
        if "TYPE" in kind and both in conf:
            continue
        batches, _ = _run(_source(tmp_path, conf, allowed=allowed), ends[-1])
        assert [each for each in batches if each] == [["b"]]
    for allowed, conf in (({option.lower(): "1"}, {}), ({}, {f"{key}.ckpt_1": "always"})):
        with pytest.raises(DeltaAnalysisError, match="POST_SCHEMA_EVOLUTION"):
            _source(tmp_path, conf, allowed=allowed)


def test_a_stream_that_begins_in_the_past_has_the_columns_of_then(tmp_path: Path) -> None:
    log = _table(tmp_path)
    _alter(log, _schema(*OLD.fields[1:]))
    _add(log, "b")
    source = _source(tmp_path, starting_version=1)
    with pytest.raises(DeltaAnalysisError, match="DELTA_STREAMING_METADATA_EVOLUTION"):
        source.latest_offset(source.initial_offset())
    source = _source(tmp_path, starting_version=1)
    assert source.snapshot.schema.names == ["a.b", "p", "q"]
    batches, _ = _run(source, source.initial_offset())
    assert batches[0] == ["a"]
    source = _source(tmp_path, starting_version=1, allowed={"allowsourcecolumndrop": "always"})
    assert source.snapshot.schema.names == ["p", "q"]


def test_what_is_no_log_of_this_stream(tmp_path: Path) -> None:
    log = _table(tmp_path)
    (tmp_path / "c p" / "metadata").unlink()
    source = _source(tmp_path)
    with pytest.raises(DeltaAnalysisError, match="NOT_UNDER_CHECKPOINT"):
        source.latest_offset(source.initial_offset())
    plain = StreamSource(DeltaLog.for_table(log.table), StreamOptions())
    with pytest.raises(DeltaAnalysisError, match="schemaTrackingLocation that it had"):
        plain.latest_offset(SourceOffset(1, -1, barrier=1))
    folder = tmp_path / "c p" / "deep" / "tracking" / "_schema_log_id-1"
    folder.mkdir(parents=True)
    for text, message in (
        ("v1\n", "SCHEMA_LOG_DESERIALIZE_FAILED"),
        ("v2\n{}\n", "SCHEMA_LOG_DESERIALIZE_FAILED"),
        ("v1\n{}\n", "SCHEMA_LOG_DESERIALIZE_FAILED"),
        (
            'v1\n{"tableId":"x","deltaCommitVersion":1,"dataSchemaJson":"{}",'
            '"partitionSchemaJson":"{\\"type\\":\\"struct\\",\\"fields\\":[]}",'
            '"sourceMetadataPath":"p"}',
            "INCOMPATIBLE_DELTA_TABLE_ID",
        ),
    ):
        (folder / "0").write_text(text)
        with pytest.raises(DeltaAnalysisError, match=message):
            _source(tmp_path)


def test_a_checkpoint_is_named_by_javas_hash() -> None:
    assert java_hash("hello world") == 1794106052
    assert java_hash("Aa") == java_hash("BB") == 2112
    assert java_hash("file:/tmp/c/sources/0") < 0 < java_hash("é😀")


def test_nested_columns_are_compared_by_their_ids() -> None:
    def entry(version: int, *inner: StructField) -> TrackedMetadata:
        schema = _schema(_field("s", 1, StructType(inner)))
        return TrackedMetadata(version, "t", schema.to_json(), (), "p", None, None, None)

    before = entry(1, _field("x", 2), _field("y", 3))
    check_allowed(before, entry(2, _field("x", 2), _field("y", 3)), {}, _CONF, "/t")
    with pytest.raises(DeltaAnalysisError, match=r"s\.x was renamed to s\.z; s\.y was dropped"):
        check_allowed(before, entry(2, _field("z", 2)), {}, _CONF, "/t")


_CONF = DeltaConf.from_mapping({})


def test_an_entry_that_stands_for_several_changes_is_compared_with_what_was_before(
    tmp_path: Path,
) -> None:
    log = _table(tmp_path)
    _run(source := _source(tmp_path), source.initial_offset())
    _alter(log, _schema(_field("x", 1), *OLD.fields[1:]))
    _alter(log, OLD)
    folder = tmp_path / "c p" / "deep" / "tracking" / "_schema_log_id-1"
    (first,) = _entries(tmp_path)
    renamed = {
        **first,
        "deltaCommitVersion": 2,
        "dataSchemaJson": log.snapshot_at(2).schema.to_json(),
    }
    (folder / "1").write_text(f"v1\n{json.dumps(renamed)}")
    merged = {**first, "deltaCommitVersion": 3, "previousMetadataSeqNum": 0}
    (folder / "2").write_text(f"v1\n{json.dumps(merged)}")
    # The name is what it was before, so that nothing is to be allowed.
    assert _source(tmp_path).snapshot.version == 3
    (folder / "2").write_text(f"v1\n{json.dumps({**merged, 'previousMetadataSeqNum': 1})}")
    with pytest.raises(DeltaAnalysisError, match="POST_SCHEMA_EVOLUTION"):
        _source(tmp_path)
