"""OPTIMIZE puts the rows of small files into large ones, and changes nothing else."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import (
    DeltaLog,
    delete_rows,
    optimize,
    read_arrow,
    table_changes,
    update_rows,
    write_arrow,
)
from lakelog.core.alter import (
    add_columns,
    change_column,
    enable_row_tracking,
    rename_column,
    set_properties,
)
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError, TableNotFoundError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.maintain.optimize.chosen_files import _as_shown
from lakelog.core.maintain.optimize.plan import TARGET_TAG
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.drawn_tables import DrawnTable, drawn_tables
from support.examples import examples

if TYPE_CHECKING:
    from lakelog.core import OptimizeProgress
    from lakelog.core.actions import AddFile

VECTORS = {"delta.enableDeletionVectors": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def append(uri: str, *tables: pa.Table | dict[str, Any], **options: Any) -> None:
    for each in tables:
        rows = pa.table(each) if isinstance(each, dict) else each
        write_arrow(uri, rows, mode="append", **options)


def files(uri: str) -> list[AddFile]:
    return DeltaLog.for_table(uri).update().files()


def actions(uri: str, version: int, kind: str) -> list[dict[str, Any]]:
    path = Path(uri) / "_delta_log" / f"{version:020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line]


def numbers(*starts: int) -> list[dict[str, Any]]:
    return [{"id": list(range(start, start + 10)), "p": [start // 100] * 10} for start in starts]


def ids(uri: str) -> list[int]:
    return sorted(read_arrow(uri)["id"].to_pylist())


def test_small_files_become_one_without_a_change_of_data(uri: str) -> None:
    append(uri, *numbers(0, 10, 20))
    before = {each.path for each in files(uri)}

    found = optimize(uri, user_metadata="nightly")

    assert found.versions == (3,)
    assert read_arrow(uri)["id"].to_pylist() == list(range(30))  # in the order they came
    (add,) = actions(uri, 3, "add")
    removes = actions(uri, 3, "remove")
    assert {each["path"] for each in removes} == before
    assert not any(each["dataChange"] for each in (add, *removes))
    assert json.loads(add["stats"])["minValues"] == {"id": 0, "p": 0}
    (info,) = actions(uri, 3, "commitInfo")
    assert info["operation"] == "OPTIMIZE"
    assert info["isolationLevel"] == "SnapshotIsolation"
    assert info["userMetadata"] == "nightly"
    assert info["operationMetrics"] == {
        "numAddedFiles": "1",
        "numRemovedFiles": "3",
        "numAddedBytes": str(add["size"]),
        "numRemovedBytes": str(sum(each["size"] for each in removes)),
        **dict.fromkeys(
            ("minFileSize", "p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize"),
            str(add["size"]),
        ),
        "numDeletionVectorsRemoved": "0",
    }
    metrics = found.metrics.as_delta()
    assert (metrics["numFilesAdded"], metrics["numFilesRemoved"]) == (1, 3)
    assert (metrics["numBins"], metrics["numBatches"], metrics["partitionsOptimized"]) == (1, 1, 1)
    assert optimize(uri).versions == ()


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("p = 'a'", "('p = a)"),
        ("p = 'a' AND q > 1 AND q <= 9", "((('p = a) AND ('q > 1)) AND ('q <= 9))"),
        ("p != 'a' OR p IS NULL", "(NOT ('p = a) OR isnull('p))"),
        ("p IS NOT NULL AND q IN (1, 2)", "(isnotnull('p) AND 'q IN (1,2))"),
        ("NOT (p <=> NULL)", "NOT ('p <=> null)"),
    ],
)
def test_the_history_shows_a_condition_as_delta_spark_does(where: str, shown: str) -> None:
    schema = StructType(
        (StructField("p", PrimitiveType("string")), StructField("q", PrimitiveType("integer")))
    )
    condition = normalize_filter(where, schema, EvalContext(now_ms=0))
    assert condition is not None
    assert _as_shown(condition) == shown


def test_each_partition_has_its_own_files_and_a_condition_chooses_some(uri: str) -> None:
    append(uri, *numbers(0, 10, 100, 110, 200), partition_by=["p"])

    found = optimize(uri, "p <= 1")

    assert found.metrics.partitions_optimized == 2
    assert found.metrics.total_considered_files == 4
    assert actions(uri, found.versions[0], "commitInfo")[0]["operationParameters"]["predicate"] == (
        """["('p <= 1)"]"""
    )
    assert sorted(each.partition_values["p"] or "" for each in files(uri)) == ["0", "1", "2"]
    assert ids(uri) == [*range(20), *range(100, 120), *range(200, 210)]


@pytest.mark.parametrize("where", ["id = 1", "p = 1 AND id = 1", [("id", "=", 1)]])
def test_a_condition_on_other_columns_is_refused(uri: str, where: Any) -> None:
    append(uri, *numbers(0, 10), partition_by=["p"])
    with pytest.raises(InvalidPredicateError, match=r"'id'.*\[p\]"):
        optimize(uri, where)
    assert len(files(uri)) == 2


def test_null_and_odd_partition_values_stay_apart(uri: str) -> None:
    values = [None, "a/b", "a=b", "100%", "", "ä ö", "__x__"]
    for _ in range(2):
        append(uri, {"p": values, "v": list(range(7))}, partition_by=["p"])
    before = sorted(map(str, read_arrow(uri).to_pylist()))
    found = optimize(uri)
    assert found.metrics.num_files_added == len(files(uri)) == 6  # the empty text is null
    assert sorted(map(str, read_arrow(uri).to_pylist())) == before


def test_files_are_packed_up_to_the_target(uri: str) -> None:
    append(uri, *numbers(*range(0, 100, 10)))
    size = max(each.size for each in files(uri))
    found = optimize(uri, target_size=3 * size)
    assert found.metrics.num_bins == 3  # 3 + 3 + 3, and one file that stays alone
    assert len(files(uri)) == 4
    assert ids(uri) == list(range(100))
    assert optimize(uri, target_size=3 * size).versions == ()
    assert optimize(uri, target_size=30 * size).metrics.num_files_added == 1


def test_the_tables_property_and_the_confs_name_the_target(uri: str) -> None:
    append(uri, *numbers(*range(0, 40, 10)))
    size = files(uri)[0].size
    set_properties(uri, {"delta.targetFileSize": str(5 * size // 2)})
    with pytest.raises(DeltaAnalysisError, match="a size above 0"):
        set_properties(uri, {"delta.targetFileSize": "large"})
    plain = optimize(uri, dry_run=True).metrics
    assert plain.num_bins == 2
    of_conf = optimize(
        uri, dry_run=True, conf={"spark.databricks.delta.optimize.maxFileSize": "1g"}
    )
    assert of_conf.metrics.num_bins == 1
    small = optimize(
        uri, dry_run=True, conf={"spark.databricks.delta.optimize.minFileSize": str(size // 2)}
    )
    assert small.metrics.num_bins == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("maxFileSize", "big"),
        ("minFileSize", "0"),
        ("batchSize", "-1"),
        ("maxDeletedRowsRatio", "1.5"),
        ("maxThreads", "0"),
    ],
)
def test_a_conf_that_makes_no_sense_is_named(uri: str, key: str, value: str) -> None:
    append(uri, *numbers(0))
    with pytest.raises(DeltaAnalysisError, match=rf"optimize\.{key} must be"):
        optimize(uri, conf={f"spark.databricks.delta.optimize.{key}": value})


@pytest.mark.parametrize(
    "arguments", [{"target_size": 0}, {"target_size": "1g"}, {"batch_size": 0}]
)
def test_sizes_are_numbers_of_bytes(uri: str, arguments: Any) -> None:
    append(uri, *numbers(0))
    with pytest.raises(DeltaAnalysisError, match=r"must be a (number of bytes above 0|whole)"):
        optimize(uri, **arguments)


def test_a_table_must_be_there(uri: str) -> None:
    with pytest.raises(TableNotFoundError):
        optimize(uri)


def test_an_empty_table_has_nothing_to_do(uri: str) -> None:
    append(uri, pa.table({"id": pa.array([], pa.int64())}))
    assert optimize(uri).versions == ()


def test_a_dry_run_says_what_and_does_nothing(uri: str) -> None:
    append(uri, *numbers(0, 10))
    reports: list[OptimizeProgress] = []
    found = optimize(uri, dry_run=True, progress=reports.append)
    assert found.versions == ()
    assert found.metrics.num_files_removed == 2
    assert len(files(uri)) == 2
    assert reports == []


def test_batches_commit_one_by_one_and_tell_how_far_they_are(uri: str) -> None:
    append(uri, *numbers(0, 10, 100, 110, 200, 210), partition_by=["p"])
    reports: list[OptimizeProgress] = []
    found = optimize(uri, batch_size=1, progress=reports.append)
    assert found.versions == (6, 7, 8)
    assert found.metrics.num_batches == 3
    assert [each.version for each in reports] == [None, None, 6, 6, 7, 7, 8]
    assert reports[-1].bins_done == reports[-1].bins == 3
    assert reports[-1].done == reports[-1].total


def test_rows_of_deletion_vectors_go_and_worn_files_are_rewritten(uri: str) -> None:
    append(uri, *numbers(0), properties=VECTORS)
    append(uri, *numbers(10, 20))
    delete_rows(uri, "id IN (0, 10, 11)")

    found = optimize(uri)

    assert ids(uri) == [*range(1, 10), *range(12, 30)]
    (only,) = files(uri)
    assert only.deletion_vector is None
    assert found.metrics.num_deletion_vectors_removed == 2
    assert found.metrics.num_deletion_vector_rows_removed == 3
    delete_rows(uri, "id = 1")
    assert optimize(uri).versions == ()  # 1 of 27 rows
    delete_rows(uri, "id = 2")
    assert optimize(uri).metrics.num_files_added == 1  # 2 of 27 rows
    assert files(uri)[0].deletion_vector is None


def test_a_file_whose_rows_are_all_deleted_leaves_nothing(uri: str) -> None:
    append(uri, *numbers(0), properties=VECTORS)
    log = DeltaLog.for_table(uri, {"spark.databricks.delta.optimize.maxDeletedRowsRatio": "0.5"})
    delete_rows(uri, "id < 9")
    delete_rows(uri, "id = 9 AND p = 0")
    optimize(log)
    assert files(uri) == []


def test_no_change_feed_shows_it(uri: str) -> None:
    append(uri, *numbers(0, 10), properties={"delta.enableChangeDataFeed": "true"})
    version = optimize(uri).version
    assert version is not None
    assert list(table_changes(uri, version, version)) == [] or (
        sum(batch.num_rows for batch in table_changes(uri, version, version)) == 0
    )
    assert actions(uri, version, "cdc") == []


def test_rows_keep_their_ids_and_versions(uri: str) -> None:
    append(uri, *numbers(0, 10), properties=VECTORS)
    enable_row_tracking(uri)
    append(uri, *numbers(20))
    update_rows(uri, {"p": pa.scalar(7)}, "id = 25")
    before = _tracked(uri)
    found = optimize(uri)
    assert found.versions
    assert _tracked(uri) == before
    (info,) = actions(uri, found.versions[0], "commitInfo")
    assert info["tags"]["delta.rowTracking.preserved"] == "true"


def _tracked(uri: str) -> dict[int, tuple[Any, Any]]:
    """Row ids and commit versions by `id`, from the files and the log."""
    from lakelog.core.metadata.row_tracking_rules import materialized_names

    snapshot = DeltaLog.for_table(uri).update()
    names = materialized_names(snapshot.metadata)
    assert names is not None
    found = {}
    for add in snapshot.files():
        table = pq.ParquetFile(f"{uri}/{add.path}").read().to_pylist()
        live = set(read_arrow(uri)["id"].to_pylist())
        for place, row in enumerate(table):
            if row["id"] in live and not (row["id"] == 25 and row["p"] != 7):
                row_id, version = row.get(names[0]), row.get(names[1])
                found[row["id"]] = (
                    (add.base_row_id or 0) + place if row_id is None else row_id,
                    add.default_row_commit_version if version is None else version,
                )
    return found


def test_append_only_tables_are_compacted(uri: str) -> None:
    append(uri, *numbers(0, 10), properties={"delta.appendOnly": "true"})
    assert optimize(uri).metrics.num_files_removed == 2


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_renamed_added_and_widened_columns(uri: str, mode: str) -> None:
    properties = {"delta.columnMapping.mode": mode, "delta.enableTypeWidening": "true"}
    first = {"id": pa.array([1, 2], pa.int32()), "a.b c": ["x", None]}
    append(uri, first, properties=properties)
    rename_column(uri, "`a.b c`", "né")
    change_column(uri, "id", data_type=PrimitiveType("long"))
    add_columns(uri, [StructField("late", PrimitiveType("double"))])
    append(uri, {"id": [1 << 40], "né": ["y"], "late": [math.nan]})

    assert optimize(uri).metrics.num_files_added >= 1

    rows = sorted(read_arrow(uri).to_pylist(), key=lambda row: row["id"])
    assert [row["id"] for row in rows] == [1, 2, 1 << 40]
    assert [row["né"] for row in rows] == ["x", None, "y"]
    assert optimize(uri).versions == ()


def test_values_that_split_a_file_are_not_split_again(uri: str) -> None:
    append(uri, *({"x": [value]} for value in (1.0, math.nan, 2.0)))
    optimize(uri)
    assert optimize(uri).versions == ()


def test_nothing_stays_of_a_run_that_fails(uri: str) -> None:
    append(uri, *numbers(0, 10, 100, 110), partition_by=["p"])
    before = {str(each) for each in Path(uri).rglob("*")}
    Path(uri, files(uri)[0].path).unlink()
    with pytest.raises(FileNotFoundError, match="is missing"):
        optimize(uri)
    after = {str(each) for each in Path(uri).rglob("*")}
    assert len(before - after) == 1
    assert after <= before


class _Stop(BaseException):
    pass


def test_a_run_that_was_stopped_goes_on_where_it_was(uri: str) -> None:
    append(uri, *numbers(0, 10, 100, 110, 200, 210), partition_by=["p"])

    def stop(reports: OptimizeProgress) -> None:
        if reports.version is not None:
            raise _Stop

    with pytest.raises(_Stop) as stopped:
        optimize(uri, batch_size=1, progress=stop)
    assert stopped.value.__notes__ == [f"OPTIMIZE of {uri} had committed these versions before: 6."]
    assert len(files(uri)) == 5
    found = optimize(uri, batch_size=1)
    assert found.metrics.num_files_removed == 4
    assert ids(uri) == [*range(20), *range(100, 120), *range(200, 220)]
    on_disk = {each.name for each in Path(uri).rglob("*.parquet")}
    assert len(on_disk) == 9  # no orphan


@settings(max_examples=examples(15), deadline=None)
@given(drawn_tables(), st.integers(1, 4), st.integers(200, 20_000), st.booleans())
def test_any_table_has_the_same_rows_and_right_statistics(
    drawn: DrawnTable, parts: int, target: int, deletes: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        uri = os.path.join(folder, "t")
        step = max(1, math.ceil(drawn.data.num_rows / parts))
        for start in range(0, max(drawn.data.num_rows, 1), step):
            append(
                uri,
                drawn.data.slice(start, step),
                partition_by=list(drawn.partition_by),
                properties={**VECTORS, "delta.columnMapping.mode": "name"},
            )
        if deletes and drawn.data.num_rows:
            delete_rows(uri, f"id = {drawn.data['id'][0].as_py()}")
        before = drawn.rows(read_arrow(uri))
        optimize(uri, target_size=target)
        assert drawn.rows(read_arrow(uri)) == before
        for add in files(uri):
            if (add.tags or {}).get(TARGET_TAG):
                footer = pq.read_metadata(os.path.join(uri, add.path))
                assert add.num_records == footer.num_rows
        for row in before:
            found = read_arrow(uri, where=f"id = {row['id']}")
            assert drawn.rows(found) == [row]
        assert optimize(uri, target_size=target).versions == ()
