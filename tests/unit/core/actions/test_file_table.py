from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.actions import AddFile, DeletionVectorDescriptor, RemoveFile
from lakelog.core.actions.file_table import (
    FILE_SCHEMA,
    TOMBSTONE_SCHEMA,
    files_from_json,
    from_add_files,
    to_add_files,
    tombstones_from_json,
)

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
longs = st.integers(-(2**63), 2**63 - 1)
vectors = st.builds(
    DeletionVectorDescriptor,
    storage_type=st.sampled_from("uip"),
    path_or_inline_dv=text,
    offset=st.none() | st.integers(0, 2**31 - 1),
    size_in_bytes=st.integers(0, 2**31 - 1),
    cardinality=longs,
    extra=st.just({}),
)
maps = st.dictionaries(text, st.none() | text, max_size=3)
adds = st.builds(
    AddFile,
    path=text,
    partition_values=maps,
    size=longs,
    modification_time=longs,
    data_change=st.just(False),
    stats=st.none() | text,
    tags=st.none() | maps,
    deletion_vector=st.none() | vectors,
    base_row_id=st.none() | longs,
    default_row_commit_version=st.none() | longs,
    clustering_provider=st.none() | text,
    extra=st.just({}),
)
removes = st.builds(
    RemoveFile,
    path=text,
    deletion_timestamp=st.none() | longs,
    data_change=st.booleans(),
    extended_file_metadata=st.none() | st.booleans(),
    partition_values=st.none() | maps,
    size=st.none() | longs,
    deletion_vector=st.none() | vectors,
    base_row_id=st.none() | longs,
    default_row_commit_version=st.none() | longs,
    tags=st.none(),
    stats=st.none(),
    extra=st.just({}),
)


@settings(deadline=None)
@given(st.lists(adds, max_size=4))
def test_files_survive_the_columns(actions):
    table = from_add_files(actions)
    assert table.schema.equals(FILE_SCHEMA)
    assert to_add_files(table) == actions


@settings(deadline=None)
@given(st.lists(removes, max_size=4))
def test_tombstones_survive_the_columns(actions):
    table = tombstones_from_json([each.to_json_value() for each in actions])
    assert table.schema.equals(TOMBSTONE_SCHEMA)
    assert [_remove(row) for row in table.to_pylist()] == actions


def _remove(row):
    for name in ("partition_values", "tags"):
        if row.get(name) is not None:
            row[name] = dict(row[name])
    vector = row.pop("deletion_vector")
    found = None if vector is None else DeletionVectorDescriptor.from_json_value(vector)
    return RemoveFile(**row, deletion_vector=found)


def test_a_caller_says_whether_the_data_changes():
    add = AddFile(path="a", partition_values={}, size=1, modification_time=2, data_change=True)
    assert to_add_files(from_add_files([add]), data_change=True) == [add]


def test_a_remove_without_data_change_means_true():
    assert tombstones_from_json([{"path": "a"}])["data_change"].to_pylist() == [True]


def test_a_value_of_a_wrong_type_is_refused():
    with pytest.raises(pa.ArrowException):
        files_from_json([{"path": "a", "partitionValues": {}, "size": "many"}])
