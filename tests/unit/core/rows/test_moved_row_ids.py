"""Rows that are written again keep their ids."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import (
    DeltaLog,
    delete_rows,
    lit,
    merge,
    optimize,
    update_rows,
    write_arrow,
)
from support.examples import examples
from support.samples import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

TRACKED = {"delta.enableRowTracking": "true"}
ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
KINDS: list[dict[str, str]] = [
    {},
    {"delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "name"},
    {"delta.columnMapping.mode": "id"},
]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def row_ids(uri: str) -> dict[int, tuple[int, int]]:
    """Id of the data -> row id and row commit version, as the protocol says they are found."""
    snapshot = DeltaLog.for_table(uri).snapshot
    names = [snapshot.metadata.configuration[key] for key in (ROW_ID, VERSION)]
    found = {}
    for add in snapshot.files():
        table = pq.ParquetFile(Path(uri) / add.path).read()
        data = pq.ParquetFile(Path(uri) / add.path).read().column(0)
        gone: list[int] = []
        if add.deletion_vector is not None:
            live = set(snapshot.to_arrow(["id"])["id"].to_pylist())
            gone = [n for n, key in enumerate(data.to_pylist()) if key not in live]
        carried = [
            table[name].to_pylist() if name in table.column_names else [None] * len(data)
            for name in names
        ]
        assert add.base_row_id is not None
        assert add.default_row_commit_version is not None
        for n, key in enumerate(data.to_pylist()):
            if n not in gone:
                row_id, version = carried[0][n], carried[1][n]
                found[key] = (
                    add.base_row_id + n if row_id is None else row_id,
                    add.default_row_commit_version if version is None else version,
                )
    return found


def with_properties(properties: Mapping[str, str]) -> dict[str, str]:
    return {**TRACKED, **properties}


@pytest.mark.parametrize("properties", KINDS, ids=str)
def test_rows_that_are_left_keep_id_and_version(uri: str, properties: dict[str, str]) -> None:
    write_arrow(uri, numbers(0, 6), properties=with_properties(properties), mode="append")
    delete_rows(uri, "id = 1")
    delete_rows(uri, "id = 4")
    assert row_ids(uri) == {n: (n, 0) for n in (0, 2, 3, 5)}


@pytest.mark.parametrize("properties", KINDS, ids=str)
def test_rows_that_are_updated_keep_the_id_and_get_the_version(
    uri: str, properties: dict[str, str]
) -> None:
    write_arrow(uri, numbers(0, 4), properties=with_properties(properties), mode="append")
    update_rows(uri, {"name": lit("x")}, "id = 1")
    update_rows(uri, {"name": lit("y")}, "id >= 1 AND id < 3")
    assert row_ids(uri) == {0: (0, 0), 1: (1, 2), 2: (2, 2), 3: (3, 0)}


@pytest.mark.parametrize("properties", KINDS, ids=str)
def test_rows_that_are_put_together_keep_both(uri: str, properties: dict[str, str]) -> None:
    write_arrow(uri, numbers(0, 4), properties=with_properties(properties), mode="append")
    write_arrow(uri, numbers(4, 3), mode="append")
    update_rows(uri, {"name": lit("x")}, "id = 1")
    before = row_ids(uri)
    assert optimize(uri).versions
    assert row_ids(uri) == before
    merge(uri, {"id": [2, 9], "name": ["m", "n"], "p": [0, 0]}, ["id"]).when_matched_update(
        {"name": "source.name"}
    ).when_not_matched_insert_all().execute()
    after = row_ids(uri)
    assert {key: row_id for key, (row_id, _) in after.items() if key != 9} == {
        key: row_id for key, (row_id, _) in before.items()
    }
    assert len({row_id for row_id, _ in after.values()}) == len(after)


def test_the_ids_are_no_data_and_have_no_statistics(uri: str) -> None:
    write_arrow(uri, numbers(0, 4), properties=TRACKED, mode="append")
    update_rows(uri, {"name": lit("x")}, "id = 1")
    snapshot = DeltaLog.for_table(uri).snapshot
    assert snapshot.to_arrow().column_names == ["id", "name", "p"]
    assert all("_row-" not in (add.stats or "") for add in snapshot.files())


def test_without_the_promise_nothing_is_carried(uri: str) -> None:
    write_arrow(
        uri, numbers(0, 4), properties={"delta.feature.rowTracking": "supported"}, mode="append"
    )
    update_rows(uri, {"name": lit("x")}, "id = 1")
    for add in DeltaLog.for_table(uri).snapshot.files():
        assert pq.read_schema(Path(uri) / add.path).names == ["id", "name", "p"]


_steps = st.lists(
    st.tuples(st.sampled_from(["update", "delete", "append"]), st.integers(0, 11)), max_size=5
)


@settings(max_examples=examples(18), deadline=None)
@given(_steps, st.sampled_from(KINDS), st.booleans())
def test_an_id_stays_with_its_row_whatever_is_done_to_the_table(
    steps: list[tuple[str, int]], properties: dict[str, str], partitioned: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri, parts = f"{folder}/t", ["p"] if partitioned else None
        write_arrow(
            uri,
            numbers(0, 8),
            properties=with_properties(properties),
            partition_by=parts,
            mode="append",
        )
        known = row_ids(uri)
        top = 100
        for kind, number in steps:
            if kind == "append":
                write_arrow(uri, numbers(top, 2), mode="append")
                top += 2
            elif kind == "update":
                update_rows(
                    uri, {"name": lit(str(number))}, f"id >= {number} AND id < {number + 3}"
                )
            else:
                delete_rows(uri, f"id = {number}")
            found = row_ids(uri)
            assert {key: found[key][0] for key in found if key in known} == {
                key: known[key][0] for key in found if key in known
            }
            assert len({row_id for row_id, _ in found.values()}) == len(found)
            known |= found
