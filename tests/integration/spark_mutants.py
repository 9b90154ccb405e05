"""Spark's layer with one thing wrong, once for each thing that the integration tests watch over.

What executors run is not among them: their Python imports lakelog anew, as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as sf
import pytest
from integration import (
    test_change_feed,
    test_delta_table,
    test_filled_columns,
    test_reader,
    test_replay,
    test_scan,
    test_write_modes,
    test_write_overwrite,
    test_write_rules,
    test_write_types,
    test_write_ways,
)

from lakelog.core.errors import (
    ConcurrentAppendException,
    TimestampOutOfRangeError,
)
from lakelog.core.transaction.attempt_files import AttemptFiles
from lakelog.spark.reading import by_spark as _by_spark
from lakelog.spark.reading import changes as _changes_read
from lakelog.spark.reading import reader as _reader
from lakelog.spark.reading import time_travel as _time_travel
from lakelog.spark.reading.by_spark import SparkScan
from lakelog.spark.replay.replayer import SparkReplayer
from lakelog.spark.replay.tasks import IS_KIND
from lakelog.spark.table import delta_table as _table
from lakelog.spark.writing import by_driver as _small_write
from lakelog.spark.writing import by_spark as _native_write
from lakelog.spark.writing import constraints as _constraints
from lakelog.spark.writing import filled_columns as _filled
from lakelog.spark.writing import overwrite as _overwrite
from lakelog.spark.writing import replaced_changes as _replaced_changes
from lakelog.spark.writing import save as _save
from lakelog.spark.writing.constraints import RowRule, table_rules
from lakelog.spark.writing.options import WriteOptions
from lakelog.spark.writing.overwrite import Replaced
from lakelog.spark.writing.replaced_changes import Written
from support.mutants import Mutant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["MUTANTS", "SparkMutant"]

_options_of = WriteOptions.from_options
_with_change_type = _replaced_changes._with_change_type
_replay_frame = SparkReplayer._frame
_replaced_before = _overwrite.replaced_before
_replaced_by = _overwrite.replaced_by
_snapshot_df = _reader.snapshot_df
_text_sql = _native_write._text_sql


@dataclass(frozen=True)
class SparkMutant(Mutant):
    """One thing wrong with Spark's layer, and the test that must show it."""

    test: Callable[..., None]
    given: Mapping[str, Any] = field(default_factory=dict)
    """The test's parameters, where it has any."""
    shows: tuple[type[BaseException], ...] = (AssertionError, pytest.fail.Exception)
    """How it shows: an expectation that is not met, unless an error comes before one."""


def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing, know of nothing."""


def _all_of_them(_: Any, rows: Any, __: Any) -> Any:
    return rows


def _none_of(*_: Any) -> list[Any]:
    return []


def _yes(*_: Any) -> bool:
    return True


def _no(*_: Any) -> bool:
    return False


def _next_number(*about: Any) -> int:
    """Of a version, the one after it."""
    return int(about[-1]) + 1


# Writes


def _of_the_table_alone(_: Any, txn: Any, target: Any) -> list[RowRule]:
    return table_rules(txn.metadata)


def _unless_false(message: str, sql: str, _: Sequence[str]) -> RowRule:
    return RowRule(message, f"coalesce(NOT ({sql}), false)")


def _read_by_all(txn: Any, *about: Any) -> Replaced:
    txn.read_whole_table()
    return _replaced_before(txn, *about)


def _read_whole(txn: Any, *about: Any) -> Replaced:
    txn.read_whole_table()
    return _replaced_by(txn, *about)


def _every_file(txn: Any, _: Any, options: Any) -> Replaced:
    return Replaced(txn.filter_files() if options.dynamic_overwrite else [])


def _in_utc(_: Any) -> str:
    return "UTC"


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


def _written_untold(_: Any, rows: Any, replaced: Any, files: Any, __: Any) -> Written:
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


MUTANTS = [
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
        "session_timezone",
        _in_utc,
        test_write_overwrite.test_a_timestamp_in_replace_where_is_in_the_sessions_zone,
    ),
    SparkMutant(
        "a dynamic overwrite replaces every partition",
        _save,
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
        _save,
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
        _save._Save,
        "_is_done",
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
        test_change_feed.test_replaced_rows_are_told_and_those_that_stay_are_not,
        {"partition_by": (), "way": "driver", "more": {}},
    ),
    SparkMutant(
        "rows that stay are told as changed",
        _save,
        "write_with_changes",
        _written_untold,
        test_change_feed.test_replaced_rows_are_told_and_those_that_stay_are_not,
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
