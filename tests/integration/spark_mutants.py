"""Spark's layer with one thing wrong, once for each thing that the integration tests watch over.

What executors run is not among them: their Python imports lakelog anew, as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf
import pytest
from integration import (
    test_change_feed,
    test_delete_update,
    test_delta_table,
    test_dml_conflicts,
    test_dml_reads,
    test_filled_columns,
    test_frames_as_targets,
    test_merge,
    test_merge_at_size,
    test_positions,
    test_reader,
    test_replay,
    test_scan,
    test_table_optimization,
    test_write_modes,
    test_write_overwrite,
    test_write_rules,
    test_write_types,
    test_write_ways,
)
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from lakelog.core.dml.merge.read_predicate import MergeReads
from lakelog.core.dml.table_write import TableWrite
from lakelog.core.errors import (
    ConcurrentAppendException,
    TimestampOutOfRangeError,
)
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.spark.dml import delete_update as _delete_update
from lakelog.spark.dml.matching_positions import hit_positions
from lakelog.spark.dml.merge import changed_positions as _places
from lakelog.spark.dml.merge import merge_command as _merge
from lakelog.spark.dml.merge.numbered_source import MergeSource
from lakelog.spark.dml.merge.written_rows import MergeWrites
from lakelog.spark.reading import changes as _changes_read
from lakelog.spark.reading import reader as _reader
from lakelog.spark.reading import spark_scan as _by_spark
from lakelog.spark.reading import time_travel as _time_travel
from lakelog.spark.reading import vectors as _vectors
from lakelog.spark.reading.spark_scan import SparkScan
from lakelog.spark.replay.spark_replayer import SparkReplayer
from lakelog.spark.replay.tasks import IS_KIND
from lakelog.spark.table import delta_table as _table
from lakelog.spark.writing import by_driver as _small_write
from lakelog.spark.writing import by_spark as _native_write
from lakelog.spark.writing import enforced_rules as _constraints
from lakelog.spark.writing import filled_columns as _filled
from lakelog.spark.writing import overwrite as _overwrite
from lakelog.spark.writing import replaced_changes as _replaced_changes
from lakelog.spark.writing import save as _save
from lakelog.spark.writing import write_files as _files
from lakelog.spark.writing.enforced_rules import RowRule, table_rules
from lakelog.spark.writing.options import WriteOptions
from lakelog.spark.writing.replaced_changes import Written
from support.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lakelog.spark.writing.overwrite import Replaced

_evaluated = MergeSource.evaluated
_first_ids = MergeWrites._first_ids
_hit_positions = hit_positions
_options_of = WriteOptions.from_options
_with_change_type = _replaced_changes._with_change_type
_replay_frame = SparkReplayer._frame
_replaced_before = _overwrite.replaced_before
_replaced_by = TableWrite.replaced_by
_snapshot_df = _reader.snapshot_df
_text_sql = _native_write._text_sql


@dataclass(frozen=True)
class SparkMutant(Mutant):
    """One thing wrong with Spark's layer, and the test that must show it."""

    test: Callable[..., None]
    given: Mapping[str, Any] = field(default_factory=dict)
    """The test's parameters, where it has any."""
    uses: tuple[str, ...] = ()
    """Fixtures of its file that it has without asking for them."""
    shows: tuple[type[BaseException], ...] = (AssertionError, pytest.fail.Exception)
    """How it shows: an expectation that is not met, unless an error comes before one."""


def _as_given(given: Any, _rows: Any) -> Any:
    return given


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, know of nothing."""


def _all_of_them(_: Any, rows: Any, __: Any) -> Any:
    return rows


def _none_of(*_: Any) -> list[Any]:
    return []


def _as_it_is(given: Any) -> Any:
    return given


def _yes(*_: Any) -> bool:
    return True


def _no(*_: Any) -> bool:
    return False


def _next_number(*about: Any) -> int:
    """Of a version, the one after it."""
    return int(about[-1]) + 1


# Writes


def _of_the_table_alone(_: Any, txn: Any, target: Any) -> list[RowRule]:
    return table_rules(txn.metadata, txn.delta_log.table, txn.delta_log.conf)


def _unless_false(message: str, sql: str, _: Sequence[str]) -> RowRule:
    return RowRule(message, f"coalesce(NOT ({sql}), false)")


def _read_by_all(write: TableWrite, *about: Any) -> Replaced:
    write.txn.reads.read_whole_table()
    return _replaced_before(write, *about)


def _read_whole(write: TableWrite, adds: Any) -> Any:
    write.txn.reads.read_whole_table()
    return _replaced_by(write, adds)


def _every_file(write: TableWrite, _: Any) -> Any:
    return write.txn.filter_files() if write.request.dynamic_overwrite else []


def _filter_in_utc(given: Any, schema: Any, *_: Any) -> Any:
    return normalize_filter(given, schema, EvalContext())


class _Unowned:
    """Files of an attempt that nobody deletes."""

    def __init__(self, _: Any) -> None:
        """Own nothing."""

    def __enter__(self) -> _Unowned:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave all that is there."""

    add = _nothing


def _without_options(mode: Any, partition_by: Any, _: Any, conf: Any) -> Any:
    return _options_of(mode, partition_by, {}, conf)


def _by_place(source: Any, target: Any, filled: Any = None) -> list[str]:
    names = [*(f"`{each.name}`" for each in source), *["NULL"] * len(target)]
    pairs = zip(names, target, strict=False)
    return [f"CAST({name} AS {each.data_type}) AS `{each.name}`" for name, each in pairs]


def _wall_clock(column: str, kind: Any) -> str:
    shown = f"unix_micros(from_utc_timestamp({column}, current_timezone()))"
    return _text_sql(column, kind).replace(f"unix_micros({column})", shown)


def _cut(frame: Any, most: int) -> Any:
    return _small_write.arrow_of(frame.limit(most))


# Changes


def _all_inserted(rows: Any, _: str) -> Any:
    return _with_change_type(rows, "insert")


def _written_without_feed(_: Any, rows: Any, replaced: Any, files: Any, __: Any) -> Written:
    return Written(files.write(rows.union(replaced.kept_rows)), replaced)


# Reads


def _snapshot_at_hand(table: Any) -> Any:
    return _snapshot_df(table._spark, table._log.snapshot_at(version=1))


def _unpruned(spark: Any, snapshot: Any, _: Any, columns: Any) -> Any:
    return _snapshot_df(spark, snapshot, None, columns)


def _millis_of_utc(_: Any, text: str) -> int:
    return _time_travel.millis_in_zone(text, "UTC")


def _as_texts(scan: Any, df: Any, texts: Iterable[Any]) -> Any:
    ready = dict(zip([each.name for each in scan._partitions], texts, strict=True))
    names = scan._schema.names
    return df.select(*(ready[n].alias(n) if n in ready else sf.col(n) for n in names))


def _without_removes(replayer: Any, tasks: Any, columns: str) -> Any:
    found = _replay_frame(replayer, tasks, columns)
    return found.where(IS_KIND) if IS_KIND in found.columns else found


# Changes of rows


def _evaluated_each_time(source: Any, keys: Sequence[str] = ()) -> MergeSource:
    return replace(_evaluated(source, keys), df=source.df)


def _one_further(writes: Any) -> Any:
    first = sf.col("__lakelog_first")
    return _first_ids(writes).withColumn("__lakelog_first", first + 1)


def _a_byte_further(rows: Any, numbers: Any) -> Any:
    found = _hit_positions(rows, numbers)
    return {file: {at + 8: bits for at, bits in each.items()} for file, each in found.items()}


def _all_columns(schema: Any, *_: Any) -> Any:
    return schema


def _as_it_comes(frame: Any, _: Any) -> Any:
    return frame


MUTANTS = [
    SparkMutant(
        "a MERGE evaluates its source each time",
        MergeSource,
        "evaluated",
        _evaluated_each_time,
        test_merge.test_a_source_that_differs_each_time_is_evaluated_once,
        uses=("by_jobs",),
    ),
    SparkMutant(
        "rows may match several times",
        _merge,
        "refuse_many_matches",
        _nothing,
        test_merge.test_rows_that_several_rows_match_are_shown,
        uses=("by_jobs",),
    ),
    SparkMutant(
        "bitmaps know no rows that match several times",
        _places,
        "_many_aggregated",
        _nothing,
        test_merge_at_size.test_a_row_that_matches_twice_is_found_in_bitmaps,
        uses=("by_jobs",),
    ),
    SparkMutant(
        "updated rows have the ids of others",
        MergeWrites,
        "_first_ids",
        _one_further,
        test_merge.test_rows_keep_their_ids,
        {"properties": test_merge.TRACKED},
        uses=("by_jobs",),
    ),
    SparkMutant(
        "a MERGE has read the table",
        MergeReads,
        "predicate",
        _nothing,
        test_merge.test_an_append_to_a_partition_that_could_match_conflicts,
        uses=("by_jobs",),
        shows=(ConcurrentAppendException,),
    ),
    SparkMutant(
        "nothing is known of a Column",
        _delete_update,
        "as_texts",
        _as_given,
        test_dml_conflicts.test_a_change_by_a_column_conflicts_in_its_partitions_alone,
        {"change": "delete"},
    ),
    SparkMutant(
        "a DELETE reads all columns",
        _delete_update,
        "columns_needed",
        _all_columns,
        test_dml_reads.test_a_delete_reads_the_columns_of_its_condition,
        {
            "condition": "t.n + 1 = 4",
            "read": ["n"],
            "gone": lambda i: i % 10 == 3,
        },
    ),
    SparkMutant(
        "other rows are deleted than were hit",
        _delete_update,
        "hit_positions",
        _a_byte_further,
        test_delete_update.test_rows_are_deleted,
        {"kind": "plain", "way": "few"},
        shows=(AssertionError, ValueError),
    ),
    SparkMutant(
        "an UPDATE judges no rule",
        _delete_update,
        "table_rules",
        _none_of,
        test_delete_update.test_rules_generated_columns_and_defaults,
        {"way": "many"},
    ),
    SparkMutant(
        "a MERGE writes rows as they come",
        _files,
        "together",
        _as_it_comes,
        test_table_optimization.test_a_merge_into_partitions_makes_few_files,
        {"properties": {}, "conf": {}, "most": 3},
    ),
    SparkMutant(
        "new rows are not compared with replaceWhere",
        _save._Save,
        "_rules",
        _of_the_table_alone,
        test_write_overwrite.test_rows_that_do_not_match_are_refused_and_nothing_changes,
        {"p": "0L"},
    ),
    SparkMutant(
        "null keeps every condition",
        _save,
        "check_rule",
        _unless_false,
        test_write_overwrite.test_rows_that_do_not_match_are_refused_and_nothing_changes,
        {"p": "CAST(NULL AS BIGINT)"},
    ),
    SparkMutant(
        "the table's rules are not judged",
        _save,
        "table_rules",
        _none_of,
        test_write_rules.test_a_row_that_breaks_a_rule_stops_the_write,
        {
            "way": "auto",
            "row": "1L AS id, -7L AS x",
            "message": "CHECK constraint positive .*x : -7",
        },
    ),
    SparkMutant(
        "null passes a CHECK",
        _constraints,
        "check_rule",
        _unless_false,
        test_write_rules.test_a_row_that_breaks_a_rule_stops_the_write,
        {
            "way": "auto",
            "row": "1L AS id, CAST(NULL AS BIGINT) AS x",
            "message": "CHECK constraint positive .*x : null",
        },
    ),
    SparkMutant(
        "generated values are not compared",
        _filled.FilledColumns,
        "rules",
        _none_of,
        test_filled_columns.test_a_wrong_generated_value_stops_the_write,
        {"way": "auto"},
    ),
    SparkMutant(
        "replaceWhere takes whole files",
        _overwrite,
        "is_partition_only",
        _yes,
        test_write_overwrite.test_replace_where_on_other_columns_keeps_the_rows_that_do_not_match,
    ),
    SparkMutant(
        "replaceWhere knows no time zone",
        _overwrite,
        "normalize_filter",
        _filter_in_utc,
        test_write_overwrite.test_a_timestamp_in_replace_where_is_in_the_sessions_zone,
    ),
    SparkMutant(
        "a dynamic overwrite replaces every partition",
        TableWrite,
        "replaced_by",
        _every_file,
        test_write_overwrite.test_a_dynamic_overwrite_replaces_the_partitions_that_it_has_rows_for,
    ),
    SparkMutant(
        "an append has read the table",
        _save,
        "replaced_before",
        _read_by_all,
        test_write_modes.test_append_adds_rows_and_is_a_blind_append,
    ),
    SparkMutant(
        "a dynamic overwrite has read the table",
        TableWrite,
        "replaced_by",
        _read_whole,
        test_write_rules.test_a_dynamic_overwrite_conflicts_in_its_own_partitions_only,
        shows=(ConcurrentAppendException,),
    ),
    SparkMutant(
        "files of a lost commit stay",
        _save,
        "AttemptFiles",
        _Unowned,
        test_write_rules.test_an_overwrite_does_not_swallow_what_others_appended_meanwhile,
    ),
    SparkMutant(
        "files of a commit in doubt go",
        AttemptFiles,
        "_may_be_named",
        _no,
        test_write_rules.test_files_of_a_commit_that_may_have_landed_are_kept,
    ),
    SparkMutant(
        "a known batch is written again",
        TableWrite,
        "is_done",
        _no,
        test_write_modes.test_a_known_transaction_is_not_written_twice,
    ),
    SparkMutant(
        "a write has no options",
        WriteOptions,
        "from_options",
        _without_options,
        test_write_modes.test_the_users_note_is_kept_with_the_commit,
        shows=(KeyError,),
    ),
    SparkMutant(
        "columns are matched by place",
        _filled,
        "projection",
        _by_place,
        test_write_modes.test_columns_are_matched_by_name_cast_upwards_and_filled_with_null,
    ),
    SparkMutant(
        "many rows are cut to a few",
        _small_write,
        "_fetched",
        _cut,
        test_write_ways.test_more_rows_than_the_driver_should_hold_are_left_to_the_job,
    ),
    SparkMutant(
        "folders of Spark's writer tell the session's time",
        _native_write,
        "_text_sql",
        _wall_clock,
        test_write_types.test_partition_values_are_spelled_as_delta_spells_them,
        {"way": "native"},
    ),
    SparkMutant(
        "deleted rows are told as inserted",
        _replaced_changes,
        "_with_change_type",
        _all_inserted,
        test_change_feed.test_replaced_rows_are_reported_and_those_that_stay_are_not,
        {"partition_by": (), "way": "driver", "more": {}},
    ),
    SparkMutant(
        "rows that stay are told as changed",
        _save,
        "write_with_changes",
        _written_without_feed,
        test_change_feed.test_replaced_rows_are_reported_and_those_that_stay_are_not,
        {"partition_by": (), "way": "driver", "more": {}},
    ),
    SparkMutant(
        "the feed begins a version late",
        _changes_read,
        "_whole",
        _next_number,
        test_change_feed.test_the_feed_is_read_as_the_core_reads_it,
        {"partition_by": (), "more": {}},
    ),
    SparkMutant(
        "the rows of deletion vectors are read, too",
        _by_spark,
        "without_deleted",
        _all_of_them,
        test_change_feed.test_appends_and_overwrites_go_on_beside_vectors,
    ),
    SparkMutant(
        "Spark may write to the files of a frame",
        _by_spark,
        "read_only",
        _as_it_is,
        test_frames_as_targets.test_spark_refuses_to_write_to_any_frame_of_ours_and_nothing_is_lost,
        # Some ways end below Spark, in an error of the file system.
        shows=(AssertionError, pytest.fail.Exception, Py4JJavaError),
    ),
    SparkMutant(
        "vectors of files of one size are taken for each other",
        _vectors,
        "_tell_files_apart",
        _yes,
        test_positions.test_vectors_of_files_of_one_size_are_told_apart,
        shows=(PySparkException,),
    ),
    SparkMutant(
        "an opened table never follows",
        _table.DeltaTable,
        "toDF",
        _snapshot_at_hand,
        test_delta_table.test_a_table_is_opened_by_its_path_and_follows_the_newest_version,
    ),
    SparkMutant(
        "time travel is off by one",
        _time_travel,
        "_whole",
        _next_number,
        test_reader.test_version_as_of_reads_an_older_version,
        {"version": 0},
    ),
    SparkMutant(
        "times are those of UTC",
        _reader.DeltaReader,
        "_millis",
        _millis_of_utc,
        test_reader.test_timestamp_as_of_is_a_time_of_the_session_zone,
        shows=(TimestampOutOfRangeError,),
    ),
    SparkMutant(
        "a condition skips no file",
        _reader,
        "snapshot_df",
        _unpruned,
        test_reader.test_where_skips_files_by_statistics_and_filters_rows,
    ),
    SparkMutant(
        "partition values are texts",
        SparkScan,
        "_shaped",
        _as_texts,
        test_scan.test_each_type_of_partition_column_is_read_back,
        {"kind": "integer", "text": "-7", "value": -7, "folder": True},
    ),
    SparkMutant(
        "replay knows no removes",
        SparkReplayer,
        "_frame",
        _without_removes,
        test_replay.test_a_broken_checkpoint_is_survived_as_the_core_survives_it,
    ),
]
