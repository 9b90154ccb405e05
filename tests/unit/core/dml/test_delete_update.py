from __future__ import annotations

import datetime
import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, Operation, delete_rows, lit, update_rows, write_arrow
from lakelog.core.actions import Metadata
from lakelog.core.errors import (
    AppendOnlyError,
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConstraintViolationError,
    CorruptLogError,
    DataFileMissingError,
    DeltaAnalysisError,
    InvalidPredicateError,
    TableNotFoundError,
)
from support.examples import examples
from support.tables import add_file, new_table, schema_json

VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = {"vectors": VECTORS, "rewrite": {}}
either_way = pytest.mark.parametrize("properties", WAYS.values(), ids=WAYS)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(uri: str, **kwargs: Any) -> list[dict[str, Any]]:
    found = DeltaLog.for_table(uri).snapshot.to_arrow(**kwargs).to_pylist()
    return sorted(found, key=str)


def ids(uri: str) -> list[int]:
    return sorted(row["id"] for row in rows(uri))


def commit_lines(uri: str, version: int) -> list[dict[str, Any]]:
    path = Path(uri) / "_delta_log" / f"{version:020d}.json"
    return [json.loads(line) for line in path.read_text().splitlines()]


def actions(uri: str, version: int, kind: str) -> list[dict[str, Any]]:
    return [line[kind] for line in commit_lines(uri, version) if kind in line]


def files_on_disk(uri: str) -> set[str]:
    found = (p for p in Path(uri).rglob("*") if p.is_file() and "_delta_log" not in p.parts)
    return {str(p.relative_to(uri)) for p in found}


def numbers(count: int = 10, start: int = 0) -> pa.Table:
    values = range(start, start + count)
    return pa.table({"id": pa.array(values, pa.int64()), "text": [f"t{i}" for i in values]})


@either_way
def test_rows_that_match_are_gone_and_nothing_else(uri, properties):
    write_arrow(uri, numbers(10), properties=properties, mode="append")
    write_arrow(uri, numbers(10, 10), mode="append")

    done = delete_rows(uri, "id >= 3 AND id < 5")

    assert done.version == 2
    assert done.metrics["numDeletedRows"] == 2
    assert ids(uri) == [i for i in range(20) if i not in (3, 4)]
    assert rows(uri, where="id = 2") == [{"id": 2, "text": "t2"}]


def test_with_vectors_the_data_file_stays_and_gets_one(uri):
    write_arrow(uri, numbers(10), properties=VECTORS, mode="append")
    before = files_on_disk(uri)
    (old,) = actions(uri, 0, "add")

    delete_rows(uri, "id < 4")

    (removed,), (added,) = actions(uri, 1, "remove"), actions(uri, 1, "add")
    assert removed["path"] == added["path"] == old["path"]
    assert "deletionVector" not in removed
    vector = added["deletionVector"]
    assert vector["storageType"] == "u"
    assert vector["offset"] == 1
    assert vector["cardinality"] == 4
    stats, before_stats = json.loads(added["stats"]), json.loads(old["stats"])
    assert stats == {**before_stats, "tightBounds": False}
    (new,) = files_on_disk(uri) - before
    assert new.startswith("deletion_vector_")

    delete_rows(uri, "id = 7")

    (removed,), (added,) = actions(uri, 2, "remove"), actions(uri, 2, "add")
    assert removed["deletionVector"] == vector
    assert added["deletionVector"]["cardinality"] == 5
    assert ids(uri) == [4, 5, 6, 8, 9]


def test_without_vectors_the_rows_left_go_to_a_new_file_with_tight_statistics(uri):
    write_arrow(uri, numbers(10), mode="append")

    done = delete_rows(uri, "id < 4")

    (added,) = actions(uri, 1, "add")
    assert json.loads(added["stats"])["minValues"]["id"] == 4
    assert done.metrics["numCopiedRows"] == 6
    assert done.metrics["numRemovedFiles"] == done.metrics["numAddedFiles"] == 1


@either_way
def test_a_file_without_a_row_left_is_removed(uri, properties):
    write_arrow(uri, numbers(5), properties=properties, mode="append")
    write_arrow(uri, numbers(5, 5), mode="append")
    delete_rows(uri, "id = 2")

    done = delete_rows(uri, "id < 5")

    assert actions(uri, 3, "add") == []
    assert len(actions(uri, 3, "remove")) == 1
    assert done.metrics["numDeletedRows"] == 4
    assert done.metrics["numDeletionVectorsRemoved"] == (1 if properties else 0)
    assert ids(uri) == list(range(5, 10))


@either_way
def test_rows_for_which_the_condition_is_null_stay(uri, properties):
    data = pa.table({"id": pa.array([1, 2, None], pa.int64())})
    write_arrow(uri, data, properties=properties, mode="append")

    delete_rows(uri, "id <> 1")

    assert [row["id"] for row in rows(uri)] == [1, None]
    assert delete_rows(uri, "id = NULL").version is None


@either_way
def test_where_nothing_matches_nothing_is_committed(uri, properties):
    write_arrow(uri, numbers(), properties=properties, mode="append")
    before = files_on_disk(uri)

    assert delete_rows(uri, "id = 77").version is None
    assert update_rows(uri, {"text": lit("x")}, "id > 99").version is None
    assert DeltaLog.for_table(uri).snapshot.version == 0
    assert files_on_disk(uri) == before


def test_without_a_condition_all_files_go_unread(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")
    delete_rows(uri, "id < 3")
    for path in Path(uri).glob("*.parquet"):
        path.unlink()

    done = delete_rows(uri)

    assert done.metrics["numDeletedRows"] == 7
    assert done.metrics["numRemovedFiles"] == 1
    assert rows(uri) == []
    assert actions(uri, 2, "commitInfo")[0]["operationParameters"] == {"predicate": '["true"]'}


def test_an_update_of_all_rows_has_no_predicate_in_the_history(uri):
    write_arrow(uri, pa.table({"id": [1, 2]}), mode="append")
    update_rows(uri, {"id": "id + 1"})
    assert actions(uri, 1, "commitInfo")[0]["operationParameters"] == {"predicate": "[]"}


ODD = ["a b", "100%", "x/y", "k=v", "ü", "'", '"', "..", "a:b", None]


def test_a_condition_on_partitions_takes_whole_files_by_their_values(uri):
    data = pa.table({"p": ODD, "id": pa.array(range(len(ODD)), pa.int64())})
    write_arrow(uri, data, partition_by=["p"], properties=VECTORS, mode="append")
    for path in Path(uri).rglob("*.parquet"):
        path.unlink()  # none of them is read

    assert delete_rows(uri, "p IS NULL").metrics["numRemovedFiles"] == 1
    assert delete_rows(uri, [("p", "in", ["a b", "100%", "x/y"])]).metrics["numDeletedRows"] == 3
    assert delete_rows(uri, "p <> 'k=v'").metrics["numRemovedFiles"] == 5
    (left,) = DeltaLog.for_table(uri).snapshot.files()
    assert left.partition_values == {"p": "k=v"}


@either_way
def test_a_condition_on_data_reads_partitions_of_any_value(uri, properties):
    data = pa.table({"p": ODD * 2, "id": pa.array(range(2 * len(ODD)), pa.int64())})
    write_arrow(uri, data, partition_by=["p"], properties=properties, mode="append")

    delete_rows(uri, "id < 10 OR p = 'ü'")

    kept = [(ODD[i % 10], i) for i in range(10, 20) if ODD[i % 10] != "ü"]
    assert sorted(((r["p"], r["id"]) for r in rows(uri)), key=str) == sorted(kept, key=str)


def test_a_partition_value_that_is_none_is_no_reason_to_delete(uri):
    log = new_table(uri, schema=schema_json(id="long", p="integer"), partition_by=["p"])
    log.start_transaction().commit([add_file("a", p="1"), add_file("b", p="one")], APPEND)

    with pytest.raises(CorruptLogError, match=r"CAST_FAILED.* file b .* column p"):
        delete_rows(uri, "p = 2")


APPEND = Operation.write("Append")


def test_the_history_says_what_was_done(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")

    done = delete_rows(uri, "id < 3", user_metadata="why")

    entry = DeltaLog.for_table(uri).history(1)[0]
    assert entry.operation == "DELETE"
    assert entry.parameters == {"predicate": '["id < 3"]'}
    assert entry.metrics == {name: str(value) for name, value in done.metrics.items()}
    assert entry.user_metadata == "why"
    assert entry.is_blind_append is False
    assert set(done.metrics) == {
        "numRemovedFiles", "numRemovedBytes", "numAddedFiles", "numAddedBytes",
        "numAddedChangeFiles", "numDeletionVectorsAdded", "numDeletionVectorsRemoved",
        "numDeletionVectorsUpdated", "numDeletedRows", "numCopiedRows", "executionTimeMs",
        "scanTimeMs", "rewriteTimeMs",
    }  # fmt: skip
    assert done.metrics["numDeletionVectorsAdded"] == 1
    assert done.metrics["numRemovedFiles"] == done.metrics["numAddedFiles"] == 0

    again = delete_rows(uri, "id = 5").metrics
    assert [again[f"numDeletionVectors{what}"] for what in ("Added", "Removed", "Updated")] == [
        1
    ] * 3


@either_way
def test_rows_are_updated_and_the_others_stay_as_they_are(uri, properties):
    write_arrow(uri, numbers(6), properties=properties, mode="append")

    done = update_rows(uri, {"text": lit("new"), "ID": pc.field("id") * 10}, "id >= 4")

    assert done.metrics["numUpdatedRows"] == 2
    expected = [{"id": i, "text": f"t{i}"} for i in range(4)]
    assert rows(uri) == [*expected, {"id": 40, "text": "new"}, {"id": 50, "text": "new"}]
    (info,) = actions(uri, 1, "commitInfo")
    assert info["operation"] == "UPDATE"
    assert ("deletionVector" in actions(uri, 1, "add")[0]) is bool(properties)


@either_way
def test_an_update_sees_the_old_row_whatever_the_order_of_columns(uri, properties):
    write_arrow(uri, pa.table({"a": [1, 2], "b": [10, 20]}), properties=properties, mode="append")

    update_rows(uri, {"a": pc.field("b"), "b": pc.field("a")})

    assert rows(uri) == [{"a": 10, "b": 1}, {"a": 20, "b": 2}]


@either_way
def test_an_update_moves_rows_to_the_partition_of_their_new_value(uri, properties):
    data = pa.table({"p": ["x", "x", None], "id": [1, 2, 3]})
    write_arrow(uri, data, partition_by=["p"], properties=properties, mode="append")

    update_rows(uri, {"p": lit("a b%")}, "id = 2 OR p IS NULL")

    assert rows(uri) == [{"p": "a b%", "id": 2}, {"p": "a b%", "id": 3}, {"p": "x", "id": 1}]
    assert {f.partition_values["p"] for f in DeltaLog.for_table(uri).snapshot.files()} == {
        "x",
        "a b%",
    }


@either_way
def test_an_update_by_partition_alone_leaves_deleted_rows_deleted(uri, properties):
    data = pa.table({"p": [1, 1, 2], "id": [1, 2, 3]})
    write_arrow(uri, data, partition_by=["p"], properties=properties, mode="append")
    delete_rows(uri, "id = 1")

    assert update_rows(uri, {"id": 9}, "p = 1").metrics["numUpdatedRows"] == 1
    assert rows(uri) == [{"p": 1, "id": 9}, {"p": 2, "id": 3}]


def test_new_values_are_of_the_columns_type_or_refused(uri):
    schema = pa.schema([("d", pa.date32()), ("n", pa.int8()), ("s", pa.string())])
    write_arrow(uri, pa.table({"d": [None], "n": [1], "s": ["a"]}, schema=schema), mode="append")

    update_rows(uri, {"d": datetime.date(2024, 5, 6), "n": pa.scalar(7, pa.int64()), "s": None})
    assert rows(uri) == [{"d": datetime.date(2024, 5, 6), "n": 7, "s": None}]

    for bad in ({"n": 300}, {"n": lit("x")}, {"n": pc.field("n") * 1000}, {"d": lit("soon")}):
        with pytest.raises(DeltaAnalysisError, match=f"the column {next(iter(bad))} of type"):
            update_rows(uri, bad)
    with pytest.raises(DeltaAnalysisError, match=r"Cannot resolve m .* d, n, s"):
        update_rows(uri, {"m": 1})
    with pytest.raises(DeltaAnalysisError, match="DELTA_CONFLICT_SET_COLUMN"):
        update_rows(uri, {"n": 1, "N": 2})
    with pytest.raises(DeltaAnalysisError, match="at least one column"):
        update_rows(uri, {})
    assert DeltaLog.for_table(uri).snapshot.version == 1


@either_way
def test_updated_rows_keep_the_tables_rules_and_leave_no_file_when_they_do_not(uri, properties):
    rules = {"delta.constraints.positive": "id > 0", **properties}
    write_arrow(uri, numbers(3, 1), properties=rules, mode="append")
    before = files_on_disk(uri)

    with pytest.raises(ConstraintViolationError, match="positive"):
        update_rows(uri, {"id": pc.field("id") - 2}, "id >= 2")

    assert files_on_disk(uri) == before
    assert update_rows(uri, {"id": 5}, "id = 2").version == 1


def test_an_append_only_table_is_refused_before_anything_is_read(uri):
    write_arrow(uri, numbers(), properties={"delta.appendOnly": "true"}, mode="append")
    for change in (lambda: delete_rows(uri, "id = 99"), lambda: update_rows(uri, {"id": 1})):
        with pytest.raises(AppendOnlyError):
            change()


def test_what_can_not_be_evaluated_here_is_refused_before_anything_is_read(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")
    with pytest.raises(InvalidPredicateError, match="only Spark"):
        delete_rows(uri, "soundex(text) = 99")
    with pytest.raises(InvalidPredicateError, match="nosuch"):
        delete_rows(uri, "nosuch = 1")
    with pytest.raises(TableNotFoundError):
        delete_rows(uri + "-none")
    with pytest.raises(DeltaAnalysisError, match="go together"):
        delete_rows(uri, app_id="a")


def test_a_job_that_runs_again_does_nothing(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")

    assert delete_rows(uri, "id = 1", app_id="job", app_version=7).version == 1
    assert delete_rows(uri, "id < 9", app_id="job", app_version=7).version is None
    assert update_rows(uri, {"id": 0}, app_id="job", app_version=6).version is None
    assert len(ids(uri)) == 9


def test_vectors_of_one_commit_share_a_file_until_it_is_full(uri):
    for start in range(0, 40, 10):
        write_arrow(
            uri, numbers(10, start), properties=VECTORS if not start else None, mode="append"
        )

    delete_rows(uri, [("id", "in", [1, 11, 21, 31])])
    vectors = [add["deletionVector"] for add in actions(uri, 4, "add")]
    assert len({v["pathOrInlineDv"] for v in vectors}) == 1
    assert [v["offset"] for v in vectors] == sorted({v["offset"] for v in vectors})

    small = {"spark.databricks.delta.deletionVectors.packing.targetSize": "60"}
    delete_rows(uri, [("id", "in", [2, 12, 22, 32])], conf=small)
    vectors = [add["deletionVector"] for add in actions(uri, 5, "add")]
    assert len({v["pathOrInlineDv"] for v in vectors}) == 4
    assert len(ids(uri)) == 32


def test_small_vectors_go_into_the_log_where_that_is_asked_for(uri):
    write_arrow(uri, numbers(1000), properties=VECTORS, mode="append")
    before = files_on_disk(uri)
    conf = {"spark.lakelog.deletionVectors.maxInlineBytes": "60"}

    delete_rows(uri, "id < 5", conf=conf)
    (added,) = actions(uri, 1, "add")
    assert added["deletionVector"]["storageType"] == "i"
    assert "offset" not in added["deletionVector"]
    assert files_on_disk(uri) == before

    scattered = [("id", "in", list(range(5, 500, 7)))]
    delete_rows(uri, scattered, conf=conf)
    (added,) = actions(uri, 2, "add")
    assert added["deletionVector"]["storageType"] == "u"
    assert len(ids(uri)) == 995 - len(scattered[0][2])
    with pytest.raises(DeltaAnalysisError, match="maxInlineBytes"):
        delete_rows(uri, "id = 5", conf={"spark.lakelog.deletionVectors.maxInlineBytes": "-1"})


def test_random_prefixes_hold_for_vectors_too(uri):
    properties = {
        **VECTORS,
        "delta.randomizeFilePrefixes": "true",
        "delta.randomPrefixLength": "3",
    }
    write_arrow(uri, numbers(), properties=properties, mode="append")

    delete_rows(uri, "id = 1")

    (path,) = (name for name in files_on_disk(uri) if name.endswith(".bin"))
    assert len(path.split("/")[0]) == 3
    assert len(ids(uri)) == 9


def test_the_conf_can_ask_for_rewritten_files(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")
    conf = {
        "spark.databricks.delta.delete.deletionVectors.persistent": "false",
        "spark.databricks.delta.update.deletionVectors.persistent": "false",
    }
    delete_rows(uri, "id = 3")

    delete_rows(uri, "id = 1", conf=conf)
    update_rows(uri, {"text": lit("u")}, "id = 5", conf=conf)

    assert not any("deletionVector" in add for v in (2, 3) for add in actions(uri, v, "add"))
    assert ids(uri) == [0, 2, 4, 5, 6, 7, 8, 9]


def test_vectors_stay_right_where_the_property_is_off_again(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")
    delete_rows(uri, "id = 3")
    log = DeltaLog.for_table(uri)
    txn = log.start_transaction()
    off = {"delta.enableDeletionVectors": "false"}
    old = txn.metadata
    txn.commit(
        [Metadata(id=old.id, schema_string=old.schema_string, configuration=off)],
        Operation("SET TBLPROPERTIES"),
    )

    delete_rows(uri, "id = 4")

    (added,) = actions(uri, 3, "add")
    assert "deletionVector" not in added
    assert len(ids(uri)) == 8


def test_a_file_whose_statistics_say_nothing_gets_the_count_of_its_rows(uri):
    log = new_table(uri, properties=VECTORS)
    pq.write_table(numbers(10).select(["id"]), f"{uri}/part")
    bare = add_file("part")
    object.__setattr__(bare, "stats", None)
    log.start_transaction().commit([bare], APPEND)

    delete_rows(uri, "id = 3")

    (added,) = actions(uri, 2, "add")
    assert json.loads(added["stats"]) == {"numRecords": 10, "tightBounds": False}
    assert len(ids(uri)) == 9


def test_files_and_checkpoints_and_checksums_count_vectors(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")
    delete_rows(uri, "id < 3")
    log = DeltaLog.for_table(uri)
    crc = json.loads((Path(uri) / "_delta_log" / f"{1:020d}.crc").read_text())
    assert crc["numFiles"] == 1
    assert crc["numDeletedRecordsOpt"] == 3
    assert crc["numDeletionVectorsOpt"] == 1

    log.checkpoint()
    for version in (0, 1):
        (Path(uri) / "_delta_log" / f"{version:020d}.json").rename(Path(uri) / f"old{version}")
    (Path(uri) / "old1").rename(Path(uri) / "_delta_log" / f"{1:020d}.json")

    assert ids(uri) == list(range(3, 10))
    delete_rows(uri, "id = 9")
    assert ids(uri) == list(range(3, 9))


def test_the_rows_of_a_pruned_row_group_are_not_read_and_not_deleted(uri):
    log = new_table(uri, properties=VECTORS)
    pq.write_table(numbers(100).select(["id"]), f"{uri}/part", row_group_size=10)
    add = add_file("part")
    object.__setattr__(add, "stats", '{"numRecords":100}')
    log.start_transaction().commit([add], APPEND)

    delete_rows(uri, "id >= 42 AND id < 58")
    update_rows(uri, {"id": -1}, "id = 99")

    assert ids(uri) == [-1, *range(42), *range(58, 99)]


class Interrupting:
    """Lets another writer commit between a job's read and its commit."""

    def __init__(self, monkeypatch, other):
        from lakelog.core.dml.rewrite import RowRewrite

        plain = RowRewrite.actions

        def actions(changes):
            monkeypatch.setattr(RowRewrite, "actions", plain)
            other()
            return plain(changes)

        monkeypatch.setattr(RowRewrite, "actions", actions)


def test_two_deletes_within_one_file_conflict_and_the_loser_leaves_no_file(uri, monkeypatch):
    data = pa.table({"p": [1] * 10, "id": range(10)})
    write_arrow(uri, data, partition_by=["p"], properties=VECTORS, mode="append")
    Interrupting(monkeypatch, lambda: delete_rows(uri, "p = 1 AND id = 1"))

    with pytest.raises((ConcurrentAppendException, ConcurrentDeleteReadException)):
        delete_rows(uri, "p = 1 AND id = 2")

    assert len([name for name in files_on_disk(uri) if name.endswith(".bin")]) == 1
    assert sorted(r["id"] for r in rows(uri)) == [0, *range(2, 10)]


def test_the_tombstone_is_what_conflicts_where_appends_may_come_between(uri, monkeypatch):
    lenient = {**VECTORS, "delta.isolationLevel": "WriteSerializable"}
    write_arrow(uri, numbers(), properties=lenient, mode="append")
    Interrupting(monkeypatch, lambda: write_arrow(uri, numbers(5, 10), mode="append"))

    assert delete_rows(uri, "id = 2").version == 2
    assert len(ids(uri)) == 14


def test_deletes_in_different_partitions_do_not_conflict(uri, monkeypatch):
    data = pa.table({"p": [1] * 5 + [2] * 5, "id": range(10)})
    write_arrow(uri, data, partition_by=["p"], properties=VECTORS, mode="append")
    Interrupting(monkeypatch, lambda: delete_rows(uri, "p = 1 AND id = 1"))

    assert delete_rows(uri, "p = 2 AND id = 7").version == 2
    assert sorted(r["id"] for r in rows(uri)) == [0, 2, 3, 4, 5, 6, 8, 9]


@either_way
def test_files_of_a_commit_whose_outcome_is_unknown_stay(uri, properties, monkeypatch):
    write_arrow(uri, numbers(), properties=properties, mode="append")
    before = files_on_disk(uri)

    def unknown(*_: Any) -> None:
        raise CommitOutcomeUnknownError("1.json", "nobody knows")

    monkeypatch.setattr("lakelog.core.transaction.committer.Committer._run", unknown)
    with pytest.raises(CommitOutcomeUnknownError):
        delete_rows(uri, "id = 1")
    assert len(files_on_disk(uri) - before) == 1


@either_way
def test_files_of_a_refused_commit_are_deleted(uri, properties, monkeypatch):
    write_arrow(uri, numbers(), properties=properties, mode="append")
    before = files_on_disk(uri)

    def refused(*_: Any) -> None:
        raise ConcurrentAppendException("no")

    monkeypatch.setattr("lakelog.core.transaction.committer.Committer._run", refused)
    with pytest.raises(ConcurrentAppendException):
        update_rows(uri, {"text": lit("x")}, "id = 1")
    assert files_on_disk(uri) == before


def test_a_missing_file_is_named(uri):
    write_arrow(uri, numbers(), properties=VECTORS, mode="append")
    (path,) = Path(uri).glob("*.parquet")
    path.unlink()
    with pytest.raises(DataFileMissingError, match=path.name):
        delete_rows(uri, "id = 1")


@st.composite
def jobs(draw):
    """A table of a few files, and deletes and updates on it, with what they should do."""
    value = st.one_of(st.none(), st.integers(0, 5))
    files = draw(st.lists(st.lists(st.tuples(value, value), max_size=12), min_size=1, max_size=3))
    steps = []
    for _ in range(draw(st.integers(1, 5))):
        column = draw(st.sampled_from(["n", "p"]))
        op = draw(st.sampled_from(["<", "=", "<>", ">="]))
        bound = draw(st.integers(0, 5))
        steps.append((draw(st.sampled_from(["delete", "update"])), column, op, bound, draw(value)))
    return files, steps, draw(st.booleans()), draw(st.booleans())


def _true(value, op, bound):
    if value is None:
        return False
    return {"<": value < bound, "=": value == bound, "<>": value != bound, ">=": value >= bound}[op]


@settings(max_examples=examples(24))
@given(jobs())
def test_any_row_of_jobs_leaves_what_a_list_of_rows_would_have(job):
    files, steps, partitioned, with_vectors = job
    with tempfile.TemporaryDirectory() as folder:
        uri = f"{folder}/t"
        model: list[list[int | None]] = []
        for rows_of_file in files:
            data = pa.table(
                {
                    "n": pa.array([n for n, _ in rows_of_file], pa.int64()),
                    "p": pa.array([p for _, p in rows_of_file], pa.int64()),
                }
            )
            kwargs: dict[str, Any] = {"partition_by": ["p"] if partitioned else None}
            if not model and not Path(uri).exists():
                kwargs["properties"] = VECTORS if with_vectors else {}
            write_arrow(uri, data, mode="append", **kwargs)
            model += [[n, p] for n, p in rows_of_file]
        for kind, column, op, bound, new in steps:
            at = ["n", "p"].index(column)
            hits = [row for row in model if _true(row[at], op, bound)]
            if kind == "delete":
                done = delete_rows(uri, f"{column} {op} {bound}")
                model = [row for row in model if not any(row is hit for hit in hits)]
            else:
                done = update_rows(uri, {"n": new, "p": pc.field("n")}, f"{column} {op} {bound}")
                for row in hits:
                    row[0], row[1] = new, row[0]
            assert (done.version is None) == (not hits)
            counted = done.metrics.get("numDeletedRows", done.metrics.get("numUpdatedRows"))
            assert counted == len(hits)
            found = DeltaLog.for_table(uri).snapshot.to_arrow().select(["n", "p"]).to_pylist()
            assert sorted((str(r["n"]), str(r["p"])) for r in found) == sorted(
                (str(n), str(p)) for n, p in model
            )
