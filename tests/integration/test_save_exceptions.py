"""An exception at any line of a write by Spark costs no row, either.

As `simulation/test_exceptions_anywhere.py`, for what Spark's save and the data source add to the
core: every line of the data source's commit, one of two of a save, and a sample of the core's.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import lakelog.core
import lakelog.logstores
import lakelog.spark
from lakelog.core import DeltaLog, write_arrow
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.conf import DeltaConf
from lakelog.spark.format.source_writer import SourceWriter
from lakelog.spark.writing.options import WriteOptions
from support.interrupted_runs import ERRORS, Command, Stage, complaint, lines_of, on_stage
from support.line_injector import LineInjector

# An injected exception may meet a generator that nobody reads on, while Python closes it: it is
# told as unraisable, and goes nowhere.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

ROWS = pa.table({"id": [1, 2, 3], "v": ["a", "b", "c"]})
ROOTS = tuple(
    str(Path(each.__file__ or "").parent)
    for each in (lakelog.core, lakelog.logstores, lakelog.spark)
)


def _play_all(stage: Stage, of_spark: int, of_core: int) -> tuple[int, list[str]]:
    """Raise at one of so many lines of either; give how many those were, and what was wrong."""
    stage.prepare(ROWS)
    lines = [
        line
        for at, line in enumerate(lines_of(stage))
        if at % (of_spark if "/lakelog/spark/" in line.file else of_core) == 0
    ]
    wrong = []
    with on_stage(stage):
        for at, line in enumerate(lines):
            error = ERRORS[at % len(ERRORS)]
            problem = complaint(stage, stage.play(LineInjector(ROOTS, line, error("injected"))))
            if problem:
                wrong.append(f"{error.__name__} at {line}: {problem}")
    return len(lines), wrong


def _save(spark: SparkSession, mode: str) -> Callable[[str], object]:
    frame = spark.createDataFrame([(1, "a"), (2, "b")], "id long, v string")
    return lambda uri: lakelog.spark.write(frame).mode(mode).save(uri)


@pytest.mark.parametrize(("mode", "of_spark", "of_core"), [("append", 2, 60), ("overwrite", 5, 99)])
def test_a_save_that_fails_anywhere_loses_nothing(
    classic_spark: SparkSession, tmp_path: Path, mode: str, of_spark: int, of_core: int
) -> None:
    command = Command(_save(classic_spark, mode), leaves_none=False)
    tried, wrong = _play_all(Stage(tmp_path, command, ROOTS), of_spark, of_core)
    assert tried > 10
    assert not wrong, "\n".join(wrong)


def _commit_of_data_source(uri: str) -> None:
    options = WriteOptions.from_options("append", None, {}, DeltaConf.from_mapping({}))
    writer = SourceWriter(uri, from_arrow_schema(ROWS.schema), options, {})
    writer.commit([writer.write(iter(ROWS.to_batches()))])


def test_a_commit_of_the_data_source_that_fails_anywhere_loses_nothing(tmp_path: Path) -> None:
    command = Command(_commit_of_data_source, leaves_none=False)
    tried, wrong = _play_all(Stage(tmp_path, command, ROOTS), 1, 20)
    assert tried > 20
    assert not wrong, "\n".join(wrong)


def test_a_commit_of_the_data_source_that_is_refused_takes_its_files_along(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, ROWS, mode="append")
    options = WriteOptions.from_options("append", None, {}, DeltaConf.from_mapping({}))
    writer = SourceWriter(uri, from_arrow_schema(ROWS.schema), options, {})
    written = writer.write(iter(ROWS.to_batches()))
    more = pa.table({"id": [4], "more": ["x"]})
    write_arrow(uri, more, schema_mode="merge", mode="append")
    assert len(list(tmp_path.rglob("*.parquet"))) == 3
    with pytest.raises(RuntimeError, match="MetadataChangedException"):
        writer.commit([written])
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    assert DeltaLog.for_table(uri).snapshot.to_arrow().num_rows == 4
