from __future__ import annotations

import datetime
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core import delta_log, table_changes
from lakelog.core.actions import Metadata, SetTransaction
from lakelog.core.actions.operation import Operation
from lakelog.core.alter import set_properties
from lakelog.core.delta_log import DeltaLog
from lakelog.core.dml.arrow_write import write_arrow
from lakelog.core.errors import (
    AppendOnlyError,
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    ConstraintViolationError,
    DeltaAnalysisError,
    SchemaMismatchError,
    TableExistsError,
)
from support.faults import Fault, FaultyLogStore
from support.tables import add_file, new_table

_names = itertools.count()
DAY = datetime.date(2024, 1, 1)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(uri: str, **kwargs: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DeltaLog.for_table(uri).snapshot.to_arrow(**kwargs).to_pylist()
    return sorted(found, key=str)


def data_files(uri: str) -> list[str]:
    return sorted(p.name for p in Path(uri).rglob("*.parquet") if "_delta_log" not in str(p))


def ids(*values: int | None) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


@pytest.mark.parametrize(
    "data",
    [
        pa.table([[1], [2]], names=["a", "A"]),
        pa.table({"s": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["x", "X"])}),
    ],
)
def test_names_that_differ_by_case_alone_are_refused_before_a_file_is_written(
    uri: str, data: pa.Table
) -> None:
    with pytest.raises(DeltaAnalysisError, match=r"DUPLICATE_COLUMNS.*more than upper and lower"):
        write_arrow(uri, data, mode="append")
    write_arrow(uri, {"id": [1]}, mode="append")
    before = data_files(uri)
    with pytest.raises(DeltaAnalysisError, match=r"DUPLICATE_COLUMNS.*more than upper and lower"):
        write_arrow(uri, data, mode="append", schema_mode="merge")
    assert data_files(uri) == before


def test_rows_written_are_rows_read(uri: str) -> None:
    assert write_arrow(uri, ids(1, 2), user_metadata="first", mode="append") == 0
    assert write_arrow(uri, ids(3), mode="append") == 1
    assert rows(uri) == [{"id": 1}, {"id": 2}, {"id": 3}]
    newest, oldest = DeltaLog.for_table(uri).history()
    assert newest.is_blind_append is True
    assert newest.metrics is not None
    assert newest.metrics["numOutputRows"] == "1"
    assert oldest.user_metadata == "first"


def test_batches_and_readers_are_taken_and_other_things_refused(uri: str) -> None:
    batch = pa.RecordBatch.from_pydict({"id": [1]})
    write_arrow(uri, batch, mode="append")
    write_arrow(uri, pa.RecordBatchReader.from_batches(batch.schema, [batch]), mode="append")
    assert rows(uri) == [{"id": 1}, {"id": 1}]
    with pytest.raises(DeltaAnalysisError, match="not set"):
        write_arrow(uri, {"id"}, mode="append")  # type: ignore[arg-type]


def test_the_modes_do_what_they_say_where_a_table_exists(uri: str) -> None:
    assert write_arrow(uri, ids(1), mode="error") == 0
    with pytest.raises(TableExistsError, match="version 0"):
        write_arrow(uri, ids(2), mode="error")
    assert write_arrow(uri, ids(2), mode="ignore") == 0
    assert write_arrow(uri, ids(3), mode="overwrite") == 1
    assert rows(uri) == [{"id": 3}]
    metrics = DeltaLog.for_table(uri).history(1)[0].metrics or {}
    assert metrics["numRemovedFiles"] == "1"


@pytest.mark.parametrize(
    "bad",
    [
        {"mode": "upsert"},
        {"schema_mode": "evolve"},
        {"schema_mode": "overwrite"},
        {"replace_where": "p = 1"},
        {"app_id": "etl"},
        {"mode": "overwrite", "schema_mode": "overwrite", "replace_where": "p = 1"},
    ],
)
def test_arguments_that_contradict_each_other_are_refused(uri: str, bad: dict[str, Any]) -> None:
    with pytest.raises(DeltaAnalysisError):
        write_arrow(uri, ids(1), **bad)
    assert not Path(uri).exists()


def parts(**values: list[Any]) -> pa.Table:
    return pa.table(values)


def test_partitions_are_folders_and_come_back_as_columns(uri: str) -> None:
    data = parts(id=[1, 2, 3], day=[DAY, None, DAY], p=["a b", "c/d", "a b"])
    write_arrow(uri, data, partition_by=["day", "p"], mode="append")
    assert rows(uri) == sorted(data.to_pylist(), key=str)
    assert rows(uri, where="day = '2024-01-01'") == [
        {"id": 1, "day": DAY, "p": "a b"},
        {"id": 3, "day": DAY, "p": "a b"},
    ]
    with pytest.raises(DeltaAnalysisError, match="is partitioned by"):
        write_arrow(uri, data, partition_by=["p"], mode="append")
    assert write_arrow(uri, data, partition_by=["DAY", "p"], mode="append") == 1


def test_replace_where_replaces_the_partitions_and_only_them(uri: str) -> None:
    write_arrow(uri, parts(id=[1, 2], p=["a", "b"]), partition_by=["p"], mode="append")
    write_arrow(uri, parts(id=[9], p=["a"]), mode="overwrite", replace_where="p = 'a'")
    assert rows(uri) == [{"id": 2, "p": "b"}, {"id": 9, "p": "a"}]
    with pytest.raises(ConstraintViolationError, match=r"1 of 2, the first with p='b'"):
        write_arrow(uri, parts(id=[7, 8], p=["a", "b"]), mode="overwrite", replace_where="p = 'a'")
    assert len(rows(uri)) == 2


KINDS: dict[str, dict[str, str]] = {
    "plain": {},
    "vectors": {"delta.enableDeletionVectors": "true"},
    "feed": {"delta.enableChangeDataFeed": "true"},
    "vectors and feed": {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
    },
    "mapped": {"delta.columnMapping.mode": "name"},
    "tracked": {"delta.enableRowTracking": "true"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("where", "gone", "new"),
    [
        ("id >= 2", {2, 3, 4, 5}, [2, 7]),
        ("id = 2 OR p = 'b'", {2, 3, 4}, [2]),
        ("v > 0", {1, 3}, [9]),
        ([("id", "in", [1, 5])], {1, 5}, []),
        ("id > 100", set(), [101]),
        ("id > 0", {1, 2, 3, 4, 5}, [1]),
    ],
)
def test_replace_where_replaces_the_rows_for_which_it_is_true(
    uri: str, kind: str, where: Any, gone: set[int], new: list[int]
) -> None:
    ones = [1, 2, 3, 4]
    data = {"id": ones, "p": ["a", "a", "b", "b"], "v": [1, 0, 1, None]}
    write_arrow(uri, data, partition_by=["p"], properties=KINDS[kind])
    write_arrow(uri, {"id": [5], "p": ["c"], "v": [-1]}, mode="append")
    before = {row["id"]: row for row in rows(uri)}
    given = [{"id": each, "p": "b", "v": 1} for each in new]
    version = write_arrow(
        uri, given, schema="id bigint, p string, v bigint", mode="overwrite", replace_where=where
    )
    kept = [row for number, row in before.items() if number not in gone]
    assert rows(uri) == sorted([*kept, *given], key=str)
    log = DeltaLog.for_table(uri)
    entry = log.history(1)[0]
    assert entry.operation == "WRITE"
    assert int(entry.metrics["numDeletedRows"]) == len(gone)
    if "feed" in kind:
        changes = table_changes(uri, version).read_all().to_pylist()
        assert {row["id"] for row in changes if row["_change_type"] == "delete"} == gone
        assert [row["id"] for row in changes if row["_change_type"] == "insert"] == new
        assert len(changes) == len(gone) + len(new)


def test_rows_that_replace_others_must_be_those_and_may_bring_a_column(uri: str) -> None:
    write_arrow(uri, {"id": [1, 2, 3]})
    with pytest.raises(ConstraintViolationError, match=r"1 of 2, the first with id=1"):
        write_arrow(uri, {"id": [1, 2]}, mode="overwrite", replace_where="id > 1")
    write_arrow(
        uri, {"id": [2], "s": ["x"]}, mode="overwrite", replace_where="id > 1", schema_mode="merge"
    )
    assert rows(uri) == [{"id": 1, "s": None}, {"id": 2, "s": "x"}]
    set_properties(uri, {"delta.appendOnly": True})
    with pytest.raises(AppendOnlyError):
        write_arrow(uri, {"id": [2], "s": ["y"]}, mode="overwrite", replace_where="id > 1")


def test_data_that_does_not_fit_is_refused_and_leaves_no_file(uri: str) -> None:
    write_arrow(uri, ids(1), mode="append")
    before = data_files(uri)
    with pytest.raises(SchemaMismatchError):
        write_arrow(uri, pa.table({"id": ["x"]}), mode="append")
    with pytest.raises(SchemaMismatchError, match="mergeSchema"):
        write_arrow(uri, pa.table({"id": [1], "more": [2]}), mode="append")
    assert data_files(uri) == before


def test_narrower_types_are_widened_to_the_tables(uri: str) -> None:
    write_arrow(uri, ids(1), mode="append")
    write_arrow(uri, pa.table({"ID": pa.array([2], pa.int16())}), mode="append")
    assert rows(uri) == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize(
    ("schema_mode", "conf"),
    [("merge", {}), (None, {"spark.databricks.delta.schema.autoMerge.enabled": "true"})],
)
def test_a_merge_adds_columns(uri: str, schema_mode: Any, conf: dict[str, str]) -> None:
    write_arrow(uri, ids(1), mode="append")
    more = pa.table({"id": [2], "more": ["x"]})
    write_arrow(uri, more, schema_mode=schema_mode, conf=conf, mode="append")
    assert rows(uri) == [{"id": 1, "more": None}, {"id": 2, "more": "x"}]


def test_an_overwrite_of_the_schema_gives_the_table_the_datas(uri: str) -> None:
    write_arrow(
        uri, parts(id=[1], p=["a"]), partition_by=["p"], properties={"owner": "me"}, mode="append"
    )
    new = pa.table({"name": ["x"], "n": [1]})
    with pytest.raises(DeltaAnalysisError, match="partition column"):
        write_arrow(uri, new, mode="overwrite", schema_mode="overwrite")
    write_arrow(uri, new, mode="overwrite", schema_mode="overwrite", partition_by=["n"])
    snapshot = DeltaLog.for_table(uri).snapshot
    assert rows(uri) == [{"name": "x", "n": 1}]
    assert snapshot.partition_columns == ["n"]
    assert snapshot.metadata.configuration == {"owner": "me"}


def test_properties_belong_to_the_creation(uri: str) -> None:
    same = {"delta.checkpointInterval": "7"}
    write_arrow(uri, ids(1), properties=same, mode="append")
    assert write_arrow(uri, ids(1), properties=same, mode="append") == 1
    with pytest.raises(DeltaAnalysisError, match="checkpointInterval"):
        write_arrow(uri, ids(1), properties={"delta.checkpointInterval": "8"}, mode="append")


def test_not_null_and_check_hold_and_null_breaks_a_check(uri: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
    checks = {"delta.constraints.small": "n < 10"}
    write_arrow(uri, pa.table({"id": [1], "n": [1]}, schema), properties=checks, mode="append")
    before = data_files(uri)
    with pytest.raises(ConstraintViolationError, match=r"small \(n < 10\).*first with n=10"):
        write_arrow(uri, pa.table({"id": [2, 3], "n": [1, 10]}), mode="append")
    with pytest.raises(ConstraintViolationError, match="n=None"):
        write_arrow(uri, pa.table({"id": [2], "n": pa.array([None], pa.int64())}), mode="append")
    with pytest.raises(ConstraintViolationError, match="NOT NULL"):
        write_arrow(uri, pa.table({"id": pa.array([None], pa.int64()), "n": [1]}), mode="append")
    assert data_files(uri) == before
    assert write_arrow(uri, pa.table({"id": [2], "n": [9]}), mode="append") == 1


def test_a_check_that_only_spark_can_evaluate_is_refused_by_name(uri: str) -> None:
    checks = {"delta.constraints.odd": "exp(id) > 0"}
    with pytest.raises(DeltaAnalysisError, match=r"odd \(exp\(id\) > 0\).*Spark"):
        write_arrow(uri, ids(1), properties=checks, mode="append")


def test_an_append_only_table_is_not_overwritten(uri: str) -> None:
    write_arrow(uri, ids(1), properties={"delta.appendOnly": "true"}, mode="append")
    with pytest.raises(AppendOnlyError):
        write_arrow(uri, ids(2), mode="overwrite")
    assert write_arrow(uri, ids(2), mode="append") == 1


def test_a_job_that_runs_again_writes_its_rows_once(uri: str) -> None:
    assert write_arrow(uri, ids(1), app_id="etl", app_version=1, mode="append") == 0
    assert write_arrow(uri, ids(1), app_id="etl", app_version=1, mode="append") == 0
    assert write_arrow(uri, ids(2), app_id="etl", app_version=2, mode="append") == 1
    assert write_arrow(uri, ids(2), app_id="etl", app_version=1, mode="append") == 1
    assert rows(uri) == [{"id": 1}, {"id": 2}]


class Meddled(DeltaLog):
    """Lets another writer act after the first transaction has started."""

    meddle: Any = None

    def start_transaction(self, **how: Any) -> Any:
        txn = super().start_transaction(**how)
        meddle, type(self).meddle = type(self).meddle, None
        if meddle is not None:
            meddle(self.table)
        return txn


@pytest.fixture
def meddled(monkeypatch: pytest.MonkeyPatch) -> type[Meddled]:
    monkeypatch.setattr(delta_log, "DeltaLog", Meddled)
    return Meddled


def test_an_append_that_lost_the_creation_goes_on_behind_it(
    uri: str, meddled: type[Meddled]
) -> None:
    meddled.meddle = lambda table: new_table(table)
    assert write_arrow(uri, ids(5), mode="append") == 1
    assert rows(uri) == [{"id": 5}]
    assert len(data_files(uri)) == 1


def test_a_creation_that_lost_is_refused_where_the_mode_is_error(
    uri: str, meddled: type[Meddled]
) -> None:
    meddled.meddle = lambda table: new_table(table)
    with pytest.raises(TableExistsError):
        write_arrow(uri, ids(5), mode="error")
    assert data_files(uri) == []


def test_an_overwrite_that_met_an_append_fails_and_leaves_no_file(
    uri: str, meddled: type[Meddled]
) -> None:
    new_table(uri)

    def append(table: str) -> None:
        txn = DeltaLog.for_table(table).start_transaction()
        txn.commit([add_file("theirs")], Operation.write("Append"))

    meddled.meddle = append
    with pytest.raises(ConcurrentAppendException):
        write_arrow(uri, ids(5), mode="overwrite")
    assert data_files(uri) == []


def test_two_runs_of_one_job_at_once_write_their_rows_once(
    uri: str, meddled: type[Meddled]
) -> None:
    new_table(uri)
    meddled.meddle = lambda table: write_arrow(
        table, ids(1), app_id="etl", app_version=1, mode="append"
    )
    from lakelog.core.errors import ConcurrentTransactionException

    with pytest.raises(ConcurrentTransactionException):
        write_arrow(uri, ids(1), app_id="etl", app_version=1, mode="append")
    assert rows(uri) == [{"id": 1}]


def test_an_outcome_that_is_unknown_keeps_the_data_files(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_table(uri)
    conf = {"spark.databricks.delta.maxNonConflictCommitAttempts": "0"}
    original = DeltaLog.for_table

    def faulty(*args: Any, **kwargs: Any) -> DeltaLog:
        log = original(*args, **kwargs)
        log._store = FaultyLogStore(log.store, Fault.LOST_UNKNOWN)
        return log

    monkeypatch.setattr(DeltaLog, "for_table", faulty)
    with pytest.raises(CommitOutcomeUnknownError):
        write_arrow(uri, ids(1), conf=conf, mode="append")
    assert len(data_files(uri)) == 1


def test_a_table_without_rows_can_be_made_and_appended_to(uri: str) -> None:
    write_arrow(uri, ids(), mode="append")
    assert rows(uri) == []
    write_arrow(uri, ids(1), mode="append")
    assert rows(uri) == [{"id": 1}]


def test_a_table_in_memory_works_the_same() -> None:
    uri = f"memory://write-arrow/{next(_names)}"
    write_arrow(uri, parts(id=[1, 2], p=["a", "b"]), partition_by=["p"], mode="append")
    write_arrow(uri, parts(id=[3], p=["a"]), mode="append")
    assert [row["id"] for row in rows(uri, where="p = 'a'")] == [1, 3]


def test_the_progress_of_an_application_carries_its_time(uri: str) -> None:
    write_arrow(uri, ids(1), app_id="etl", app_version=4, mode="append")
    state = DeltaLog.for_table(uri).snapshot.state
    progress = state.transactions["etl"]
    assert isinstance(progress, SetTransaction)
    assert progress.version == 4
    assert progress.last_updated


def test_metadata_of_a_new_table_is_its_own(uri: str) -> None:
    write_arrow(uri, ids(1), mode="append")
    write_arrow(uri + "2", ids(1), mode="append")
    first, second = (DeltaLog.for_table(u).snapshot.metadata for u in (uri, uri + "2"))
    assert isinstance(first, Metadata)
    assert first.id != second.id
    assert first.created_time
