from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.actions import (
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    Metadata,
    RemoveFile,
    UnknownAction,
    action_from_json,
)
from lakelog.core.actions.checked_values import check_actions

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
# Names that no version of the protocol has.
unknown = st.dictionaries(texts.map(lambda t: f"x-{t}"), st.none() | values, max_size=3)
maps = st.dictionaries(texts, st.none() | texts, max_size=3)
VECTOR: dict[str, Any] = {
    "storageType": "u",
    "pathOrInlineDv": "a/b",
    "sizeInBytes": 4,
    "cardinality": 2,
}
KNOWN: dict[str, dict[str, Any]] = {
    "add": {
        "path": "a%20b",
        "partitionValues": {"p": None},
        "size": 1,
        "modificationTime": 2,
        "dataChange": True,
        "tags": {"t": None},
        "deletionVector": {**VECTOR, "offset": 1},
    },
    "remove": {"path": "x", "dataChange": False, "deletionVector": VECTOR, "stats": "{}"},
    "cdc": {"path": "c", "partitionValues": {}, "size": 1, "dataChange": False},
    "metaData": {
        "id": "i",
        "format": {"provider": "parquet", "options": {"o": "1"}},
        "schemaString": "{}",
        "partitionColumns": ["p"],
        "configuration": {"k": "v"},
    },
    "protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []},
    "txn": {"appId": "a", "version": 1},
    "domainMetadata": {"domain": "d", "configuration": "", "removed": True},
    "commitInfo": {"operation": "WRITE", "operationParameters": {"mode": None, "n": [1]}},
    "checkpointMetadata": {"version": 3, "tags": {"a": "b"}},
    "sidecar": {"path": "s", "sizeInBytes": 1, "modificationTime": 2},
}


@pytest.mark.parametrize("kind", KNOWN)
@given(extra=unknown)
def test_an_action_comes_back_with_every_field_that_it_had_known_or_not(kind, extra):
    defaults = {"partitionColumns", "configuration", "dataChange", "format"}
    body = {**KNOWN[kind], **extra}
    action = action_from_json(json.dumps({kind: body}))
    assert action.kind == kind
    back = json.loads(action.to_json())[kind]
    assert {k: v for k, v in back.items() if k in body or k not in defaults} == body


@given(extra=unknown)
def test_fields_unknown_within_a_part_of_an_action_survive(extra):
    vector = {**VECTOR, **extra}
    add = action_from_json(json.dumps({"add": {**KNOWN["add"], "deletionVector": vector}}))
    assert json.loads(add.to_json())["add"]["deletionVector"] == vector
    form = {"provider": "parquet", "options": {}, **extra}
    metadata = action_from_json(json.dumps({"metaData": {**KNOWN["metaData"], "format": form}}))
    assert json.loads(metadata.to_json())["metaData"]["format"] == form


@given(kind=texts.map(lambda t: f"x-{t}"), body=values, beside=unknown)
def test_an_action_of_an_unknown_kind_is_kept_whole(kind, body, beside):
    line = {kind: body, **beside}
    action = action_from_json(json.dumps(line))
    assert isinstance(action, UnknownAction)
    assert json.loads(action.to_json()) == line


def test_what_is_none_is_absent_but_for_the_values_of_maps():
    add = AddFile(
        path="a", partition_values={"p": None}, size=1, modification_time=2, data_change=True
    )
    assert json.loads(add.to_json()) == {
        "add": {
            "path": "a",
            "partitionValues": {"p": None},
            "size": 1,
            "modificationTime": 2,
            "dataChange": True,
        }
    }


@given(maps)
def test_the_tombstone_of_a_file_says_of_it_what_the_file_said(values):
    vector = DeletionVectorDescriptor.from_json_value({**VECTOR, "offset": 7})
    add = AddFile(
        path="a",
        partition_values=values,
        size=3,
        modification_time=2,
        data_change=True,
        tags=values,
        deletion_vector=vector,
        base_row_id=5,
    )
    tombstone = add.remove(99, data_change=False)
    assert isinstance(tombstone, RemoveFile)
    assert (tombstone.path, tombstone.size, tombstone.deletion_timestamp) == ("a", 3, 99)
    assert (tombstone.partition_values, tombstone.tags) == (values, values)
    assert tombstone.deletion_vector == vector
    assert (tombstone.base_row_id, tombstone.data_change) == (5, False)
    assert tombstone.extended_file_metadata is True


@given(
    st.dictionaries(texts, st.none() | values | st.floats(allow_nan=False, allow_infinity=False)),
    st.floats(0, 1e15),
)
def test_what_other_clients_write_into_metadata_is_read_in_the_types_of_the_protocol(given, time):
    read = Metadata.from_json_value(
        {
            "id": "x",
            "partitionColumns": [],
            "configuration": given,
            "format": {"options": given},
            "createdTime": time,
        }
    )
    check_actions([read])
    assert read.configuration == read.format.options
    assert read.created_time == int(time)
    for key, value in given.items():
        if isinstance(value, str):
            assert read.configuration[key] == value
        elif value is None:
            assert key not in read.configuration
        else:
            assert json.loads(read.configuration[key]) == value


@pytest.mark.parametrize("line", ["", "[1]", "{", '{"add":{}}', '{"add":5}', '{"txn":[1]}'])
def test_a_line_that_is_no_action_is_refused(line):
    with pytest.raises(ValueError, match=r".+"):
        action_from_json(line)


def test_an_absent_object_has_its_default():
    metadata = Metadata.from_json_value({"id": "i", "partitionColumns": [], "format": None})
    assert metadata.format.provider == "parquet"
    assert CommitInfo.from_json_value({}) == CommitInfo()


@pytest.mark.parametrize(
    ("stats", "count"),
    [
        *((text, None) for text in (None, "", "{", "[]", "{}", '{"numRecords":"1"}')),
        ('{"numRecords":7}', 7),
    ],
)
def test_the_number_of_rows_is_that_of_the_statistics_if_they_say(stats, count):
    add = AddFile(
        path="a", partition_values={}, size=1, modification_time=2, data_change=True, stats=stats
    )
    assert add.num_records == count
