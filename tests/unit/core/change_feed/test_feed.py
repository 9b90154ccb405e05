from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import (
    DeltaLog,
    Operation,
    delete_rows,
    lit,
    table_changes,
    update_rows,
    write_arrow,
)
from lakelog.core.actions import Metadata
from lakelog.core.errors import (
    CorruptCommitError,
    CorruptLogError,
    DataFileMissingError,
    DeltaAnalysisError,
    LogGapError,
    TimestampOutOfRangeError,
    VersionNotFoundError,
)
from lakelog.core.log.file_names import commit_name
from support.deletion_vectors import inline
from support.examples import examples
from support.raw_log import RawLog, add, metadata, remove

FEED = {"delta.enableChangeDataFeed": "true"}
VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = {
    "vectors": {**FEED, **VECTORS},
    "rewrite": FEED,
    "mapped": {**FEED, "delta.columnMapping.mode": "name"},
    "mapped by id, vectors": {**FEED, **VECTORS, "delta.columnMapping.mode": "id"},
}
either_way = pytest.mark.parametrize("properties", WAYS.values(), ids=WAYS)
LENIENT = {"spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def ids(*values: int | None) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def changes(uri: str, first: int, last: int | None = None) -> list[tuple[Any, ...]]:
    """Version, change and the row's values, sorted."""
    found = table_changes(uri, first, last).read_all().to_pylist()
    rows = [
        (
            row.pop("_commit_version"),
            row.pop("_change_type"),
            *(v for k, v in row.items() if k != "_commit_timestamp"),
        )
        for row in found
    ]
    return sorted(rows, key=str)


def actions(uri: str, version: int, kind: str) -> list[dict[str, Any]]:
    text = (Path(uri) / "_delta_log" / commit_name(version)).read_text()
    return [line[kind] for line in map(json.loads, text.splitlines()) if kind in line]


def set_properties(uri: str, **properties: str) -> int:
    txn = DeltaLog.for_table(uri).start_transaction()
    old = txn.metadata
    new = Metadata(
        id=old.id,
        schema_string=old.schema_string,
        partition_columns=old.partition_columns,
        configuration={**old.configuration, **{f"delta.{k}": v for k, v in properties.items()}},
    )
    return txn.commit([new], Operation("SET TBLPROPERTIES"))


@either_way
def test_each_kind_of_change_is_reported(uri, properties):
    write_arrow(uri, ids(1, 2, 3), properties=properties, mode="append")
    write_arrow(uri, ids(4), mode="append")
    delete_rows(uri, "id = 2")
    update_rows(uri, {"id": 30}, "id = 3")
    delete_rows(uri)
    write_arrow(uri, ids(7), mode="append")
    write_arrow(uri, ids(8), mode="overwrite")

    assert changes(uri, 0) == [
        (0, "insert", 1),
        (0, "insert", 2),
        (0, "insert", 3),
        (1, "insert", 4),
        (2, "delete", 2),
        (3, "update_postimage", 30),
        (3, "update_preimage", 3),
        (4, "delete", 1),
        (4, "delete", 30),
        (4, "delete", 4),
        (5, "insert", 7),
        (6, "delete", 7),
        (6, "insert", 8),
    ]
    assert changes(uri, 2, 3) == [
        (2, "delete", 2),
        (3, "update_postimage", 30),
        (3, "update_preimage", 3),
    ]


def test_change_files_are_written_only_where_files_do_not_tell(uri, tmp_path):
    for name, properties, version, count in (
        ("vectors", WAYS["vectors"], 1, 0),
        ("rewrite", WAYS["rewrite"], 1, 1),
        ("whole", WAYS["rewrite"], 2, 0),
        ("off", {}, 1, 0),
    ):
        path = str(tmp_path / name)
        write_arrow(path, ids(1, 2, 3), properties=properties, mode="append")
        delete_rows(path, "id = 1")
        delete_rows(path, "id > 0")
        found = actions(path, version, "cdc")
        assert len(found) == count, name
        for each in found:
            assert each["path"].startswith("_change_data/")
            assert each["dataChange"] is False
            assert each["size"] == (Path(path) / each["path"]).stat().st_size
        (info,) = actions(path, version, "commitInfo")
        assert info["operationMetrics"]["numAddedChangeFiles"] == str(count)
        assert info["isBlindAppend"] is False
    update_rows(str(tmp_path / "vectors"), {"id": 1})
    write_arrow(str(tmp_path / "vectors"), ids(1), mode="append")
    update_rows(str(tmp_path / "vectors"), {"id": 2}, "id = 1")
    assert len(actions(str(tmp_path / "vectors"), 4, "cdc")) == 1


def test_whole_files_are_reported_by_change_files_too_where_a_commit_has_some(uri):
    write_arrow(uri, ids(1, 2), properties=FEED, mode="append")
    write_arrow(uri, ids(1), mode="append")

    delete_rows(uri, "id = 1")

    assert changes(uri, 2) == [(2, "delete", 1), (2, "delete", 1)]


@either_way
def test_partitions_of_any_value_are_reported(uri, properties):
    values = ["a b", "100%", "x/y", "k=v", None]
    data = pa.table({"id": range(10), "p": pa.array(values * 2, pa.string())})
    write_arrow(uri, data, partition_by=["p"], properties=properties, mode="append")

    delete_rows(uri, "id < 5")
    update_rows(uri, {"p": lit("ü:")}, "id = 9")

    assert changes(uri, 1, 1) == [(1, "delete", i, values[i]) for i in range(5)]
    assert changes(uri, 2) == [
        (2, "update_postimage", 9, "ü:"),
        (2, "update_preimage", 9, None),
    ]


def test_the_time_is_that_of_the_commit(uri):
    write_arrow(uri, ids(1), properties=FEED, mode="append")
    write_arrow(uri, ids(2), mode="append")
    found = table_changes(uri, 0).read_all()
    log = DeltaLog.for_table(uri)

    assert found.schema.names == ["id", "_change_type", "_commit_version", "_commit_timestamp"]
    assert found.schema.field("_commit_version").type == pa.int64()
    assert found.schema.field("_commit_timestamp").type == pa.timestamp("us", "UTC")
    millis = [round(1000 * t.timestamp()) for t in found["_commit_timestamp"].to_pylist()]
    assert millis == [e.timestamp for e in reversed(log.history())]


def test_a_feed_must_have_been_on_in_every_version(uri):
    write_arrow(uri, ids(1), mode="append")
    on = set_properties(uri, enableChangeDataFeed="true")
    write_arrow(uri, ids(2), mode="append")
    off = set_properties(uri, enableChangeDataFeed="false")
    set_properties(uri, enableChangeDataFeed="true")
    write_arrow(uri, ids(3), mode="append")

    assert changes(uri, on, on + 1) == [(2, "insert", 2)]
    assert changes(uri, off + 1) == [(5, "insert", 3)]
    for first, last, at in ((0, 2, 0), (1, None, off), (off, off, off), (0, 0, 0)):
        with pytest.raises(DeltaAnalysisError, match="DELTA_MISSING_CHANGE_DATA") as caught:
            table_changes(uri, first, last)
        assert caught.value.version == at


def test_bounds_are_checked(uri):
    write_arrow(uri, ids(1), properties=FEED, mode="append")
    write_arrow(uri, ids(2), mode="append")

    assert len(changes(uri, 0, 99)) == 2
    with pytest.raises(DeltaAnalysisError, match="DELTA_CDC_START_VERSION_AFTER_LATEST"):
        table_changes(uri, 2)
    assert table_changes(uri, 2, conf=LENIENT).read_all().num_rows == 0
    with pytest.raises(DeltaAnalysisError, match="DELTA_INVALID_CDC_RANGE"):
        table_changes(uri, 1, 0)
    with pytest.raises(VersionNotFoundError):
        table_changes(uri, -1)
    with pytest.raises(DeltaAnalysisError, match="DELTA_NO_START_FOR_CDC_READ"):
        table_changes(uri, ending_version=1)
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_MULTIPLE_CDC_BOUNDARY.* starting"):
        table_changes(uri, 1, starting_timestamp="2024-01-01")
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_MULTIPLE_CDC_BOUNDARY.* ending"):
        table_changes(uri, 0, 1, ending_timestamp="2024-01-01")


def versions(uri, **bounds):
    return sorted(set(table_changes(uri, **bounds).read_all()["_commit_version"].to_pylist()))


def test_bounds_may_be_times(uri):
    log = RawLog(Path(uri))
    for version in range(4):
        write_arrow(uri, ids(version), properties=FEED if not version else None, mode="append")
        log.touch(version, 1000 * (version + 1))

    assert versions(uri, starting_timestamp=2000) == [1, 2, 3]
    assert versions(uri, starting_timestamp=2001) == [2, 3]
    assert versions(uri, starting_timestamp=1) == [0, 1, 2, 3]
    assert versions(uri, starting_version=1, ending_timestamp=3999) == [1, 2]
    at = dt.datetime(1970, 1, 1, 0, 0, 3, tzinfo=dt.UTC)
    assert versions(uri, starting_timestamp=at, ending_timestamp=at) == [2]
    with pytest.raises(TimestampOutOfRangeError):
        table_changes(uri, starting_timestamp=4001)
    with pytest.raises(TimestampOutOfRangeError):
        table_changes(uri, 0, ending_timestamp=4001)
    assert versions(uri, starting_timestamp=4001, conf=LENIENT) == []
    assert versions(uri, starting_version=3, ending_timestamp=4001, conf=LENIENT) == [3]


def test_columns_that_came_later_are_null_before(uri):
    write_arrow(uri, ids(1), properties=FEED, mode="append")
    more = pa.table({"id": pa.array([2], pa.int64()), "text": ["x"]})
    write_arrow(uri, more, schema_mode="merge", mode="append")

    assert changes(uri, 0) == [(0, "insert", 1, None), (1, "insert", 2, "x")]
    assert changes(uri, 0, 0) == [(0, "insert", 1)]


@pytest.mark.parametrize(
    ("data", "partition_by", "what"),
    [
        (pa.table({"other": [1]}), None, "id"),
        (pa.table({"id": ["text"]}), None, "id"),
        (pa.table({"id": [1], "p": [1]}), ["p"], "partitioning"),
    ],
)
def test_a_schema_that_old_rows_do_not_fit_is_refused(uri, data, partition_by, what):
    write_arrow(uri, ids(1), properties=FEED, mode="append")
    write_arrow(uri, data, mode="overwrite", schema_mode="overwrite", partition_by=partition_by)

    with pytest.raises(DeltaAnalysisError, match=f"INCOMPATIBLE_SCHEMA_CHANGE.* in .*{what}"):
        table_changes(uri, 0)
    assert changes(uri, 0, 0) == [(0, "insert", 1)]


def test_gone_commits_and_files_are_named(uri):
    write_arrow(uri, ids(1), properties=FEED, mode="append")
    write_arrow(uri, ids(2), mode="append")
    write_arrow(uri, ids(3), mode="append")
    log = DeltaLog.for_table(uri)
    log.checkpoint(1)
    (path,) = (add["path"] for add in actions(uri, 2, "add"))
    (Path(uri) / path).unlink()
    with pytest.raises(DataFileMissingError, match=path):
        table_changes(uri, 1).read_all()

    log.checkpoint()
    folder = Path(uri) / "_delta_log"
    (folder / commit_name(1)).write_text("{]\n")
    with pytest.raises(CorruptCommitError, match="line 1"):
        table_changes(uri, 1)
    (folder / commit_name(1)).unlink()
    (folder / commit_name(0)).unlink()
    with pytest.raises(LogGapError, match="version 1 is gone"):
        table_changes(uri, 1)


def feed_of(tmp_path: Path, *commits: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The changes from version 1 on, of commits on a table with one file of ten rows."""
    import pyarrow.parquet as pq

    names = ["deletionVectors", "changeDataFeed"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": names}
    lists = {"protocol": {**protocol, "readerFeatures": names[:1]}}
    schema = DeltaLog.for_table(_made(tmp_path)).snapshot.schema
    log = RawLog(tmp_path / "t").commit(lists, metadata(schema=schema, configuration=FEED))
    pq.write_table(ids(*range(10)), tmp_path / "t" / "part")
    for each in commits:
        log.commit(*each)
    return [(v, kind, i) for v, kind, i in changes(str(tmp_path / "t"), 2)]


def _made(tmp_path: Path) -> str:
    path = str(tmp_path / "other")
    write_arrow(path, ids(1), mode="append")
    return path


STATS = '{"numRecords":10,"tightBounds":false}'


def file(*gone: int) -> dict[str, Any]:
    vector = {"deletionVector": inline(gone)} if gone else {}
    return add("part", stats=STATS, **vector)


def tombstone(*gone: int) -> dict[str, Any]:
    found = remove("part", partitionValues={}, size=1)
    if gone:
        found["remove"]["deletionVector"] = inline(gone)
    return found


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ((), (1, 2), [("delete", 1), ("delete", 2)]),
        ((1,), (1, 2), [("delete", 2)]),
        ((1, 2), (2,), [("insert", 1)]),
        ((1, 2), (), [("insert", 1), ("insert", 2)]),
        ((1, 2), (2, 3), [("delete", 3), ("insert", 1)]),
    ],
)
def test_two_vectors_of_one_file_tell_what_came_and_what_went(tmp_path, before, after, expected):
    found = feed_of(tmp_path, [file(*before)], [tombstone(*before), file(*after)])
    assert found == [(2, *each) for each in expected]


def test_rows_that_a_vector_took_before_do_not_go_twice(tmp_path):
    found = feed_of(tmp_path, [file(0, 1, 2, 3, 4, 5, 6)], [tombstone(0, 1, 2, 3, 4, 5, 6)])
    assert found == [(2, "delete", 7), (2, "delete", 8), (2, "delete", 9)]


def test_files_that_only_move_and_merges_that_change_nothing_tell_nothing(tmp_path):
    moved = {"dataChange": False}
    quiet = dict.fromkeys(
        ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"), "0"
    )
    info = {"commitInfo": {"operation": "MERGE", "operationMetrics": quiet}}
    again = add("part", stats=STATS)
    found = feed_of(
        tmp_path,
        [file()],
        [{"remove": {**tombstone()["remove"], **moved}}, {"add": {**again["add"], **moved}}],
        [info, tombstone(), {"add": {**again["add"], "path": "./part"}}],
    )
    assert found == []


def test_a_remove_that_does_not_know_its_partition_is_refused(tmp_path):
    with pytest.raises(CorruptLogError, match=r"CDC_MISSING_EXTENDED_METADATA.* part "):
        feed_of(tmp_path, [file()], [remove("part")])


@st.composite
def histories(draw):
    small = st.integers(0, 4)
    rows = st.lists(st.tuples(small, small), max_size=8)
    step = st.one_of(
        st.tuples(st.just("append"), rows),
        st.tuples(st.just("overwrite"), rows),
        st.tuples(st.just("delete"), st.sampled_from(["n", "p"]), small),
        st.tuples(st.just("update"), st.sampled_from(["n", "p"]), small),
    )
    return draw(rows), draw(st.lists(step, max_size=5)), draw(st.booleans()), draw(st.booleans())


def table_of(rows):
    return pa.table(
        {
            "n": pa.array([n for n, _ in rows], pa.int64()),
            "p": pa.array([p for _, p in rows], pa.int64()),
        }
    )


@settings(max_examples=examples(16))
@given(histories())
def test_the_changes_of_each_version_lead_from_the_one_before_to_it(history):
    first, steps, partitioned, with_vectors = history
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t"
        write_arrow(
            uri,
            table_of(first),
            partition_by=["p"] if partitioned else None,
            properties={**FEED, **(VECTORS if with_vectors else {})},
            mode="append",
        )
        for kind, *how in steps:
            if kind in ("append", "overwrite"):
                write_arrow(uri, table_of(how[0]), mode=kind)
            elif kind == "delete":
                delete_rows(uri, f"{how[0]} = {how[1]}")
            else:
                update_rows(uri, {"n": pc.field("p"), "p": how[1]}, f"{how[0]} >= {how[1]}")

        log = DeltaLog.for_table(uri)
        state: Counter[tuple[int, int]] = Counter()
        for version in range(log.snapshot.version + 1):
            for row in table_changes(uri, version, version).read_all().to_pylist():
                gone = row["_change_type"] in ("delete", "update_preimage")
                state[row["n"], row["p"]] += -1 if gone else 1
            rows = log.snapshot_at(version).to_arrow().to_pylist()
            assert +state == Counter((row["n"], row["p"]) for row in rows)
            assert min(state.values(), default=0) >= 0
