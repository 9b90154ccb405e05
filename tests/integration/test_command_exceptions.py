"""DELETE, UPDATE and MERGE by Spark that fail somewhere, are refused or race: no row is lost."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import lakelog.core
import lakelog.logstores
import lakelog.spark
from lakelog.core import DeltaLog, delete_rows, retry_on_conflict, update_rows, write_arrow
from lakelog.core.errors import DeltaConcurrentModificationException
from lakelog.core.transaction.transaction_changes import Changes
from lakelog.logstores import CommitOutcomeUnknownError
from lakelog.spark import DeltaTable
from lakelog.spark.dml import copies, delete_update
from lakelog.spark.dml import without_spark as here
from support.examples import SEED, examples
from support.interrupted_runs import ERRORS, Command, Stage, complaint, lines_of, on_stage
from support.line_injector import LineInjector

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

# An injected exception may meet a generator that nobody reads on, while Python closes it: it is
# told as unraisable, and goes nowhere.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = pa.table({"id": [1, 2, 3, 4], "n": [10, 20, 30, 40]})
ROOTS = tuple(
    str(Path(each.__file__ or "").parent)
    for each in (lakelog.core, lakelog.logstores, lakelog.spark)
)


@pytest.fixture(autouse=True)
def by_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done in this process."""
    monkeypatch.setattr(here, "HERE_BYTES", -1)


def _delete(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).delete(sf.col("id") % 2 == 0)


def _update(spark: SparkSession, path: str) -> None:
    DeltaTable.forPath(spark, path).update(sf.col("id") < 3, {"n": "n + 1"})


def _merge(spark: SparkSession, path: str) -> None:
    source = spark.createDataFrame([(2, 5), (3, 6), (9, 9)], "id BIGINT, n BIGINT").alias("s")
    (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(source, "t.id = s.id")
        .whenMatchedDelete("s.id = 3")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


COMMANDS: dict[str, Callable[[SparkSession, str], None]] = {
    "delete": _delete,
    "update": _update,
    "merge": _merge,
}
AFTER = {
    "delete": {1: 10, 3: 30},
    "update": {1: 11, 2: 21, 3: 30, 4: 40},
    "merge": {1: 10, 2: 5, 4: 40, 9: 9},
}
each_command = pytest.mark.parametrize("name", COMMANDS)


def made(path: str) -> str:
    """Four rows in two files, with vectors and a change feed."""
    properties = {"delta.enableDeletionVectors": "true", "delta.enableChangeDataFeed": "true"}
    write_arrow(path, ROWS.slice(0, 2), mode="append", properties=properties)
    write_arrow(path, ROWS.slice(2), mode="append")
    return path


def rows(path: str) -> dict[int, int]:
    found = DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()
    assert len(found) == len({row["id"] for row in found})
    return {row["id"]: row["n"] for row in found}


def unnamed(path: str) -> set[str]:
    """Files that no version names."""
    names: set[str] = set()
    for commit in Path(path, "_delta_log").glob("0*.json"):
        names.add(commit.read_text())
    said = " ".join(names)
    kinds = ("*.parquet", "*.bin")
    files = [p for kind in kinds for p in Path(path).rglob(kind) if "_delta_log" not in p.parts]
    return {p.name for p in files if p.suffix == ".parquet" and p.name not in said}


@pytest.mark.one_day_in(3)
@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "vectors", "way"),
    [("delete", "false", "many"), ("update", "true", "few"), ("merge", "false", "few")],
)
def test_a_command_that_fails_anywhere_loses_nothing(
    classic_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    vectors: str,
    way: str,
) -> None:
    if way == "many":
        monkeypatch.setattr(delete_update, "_FEW_ROWS", -1)
        monkeypatch.setattr(copies, "_HERE_BYTES", -1)
    # What tasks wrote before one failed is known to nobody but VACUUM.
    command = Command(
        lambda path: COMMANDS[name](classic_spark, path), vectors=vectors, leaves_none=False
    )
    stage = Stage(tmp_path, command, ROOTS)
    stage.prepare(ROWS)
    lines = lines_of(stage)
    assert len(lines) > 100
    drawn = random.Random(SEED).sample(lines, min(len(lines), examples(4)))
    wrong = []
    with on_stage(stage):
        for at, line in enumerate(drawn):
            error = ERRORS[at % len(ERRORS)]
            problem = complaint(stage, stage.play(LineInjector(ROOTS, line, error("injected"))))
            found = rows(str(stage.table))
            if found not in (AFTER[name], rows(str(tmp_path / "origin"))):
                problem = f"half of it happened: {found}"
            if problem:
                wrong.append(f"{error.__name__} at {line}: {problem}")
    assert not wrong, "\n".join(wrong)


@each_command
def test_a_commit_that_is_refused_takes_its_files_along(
    classic_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = made(str(tmp_path / "t"))
    written = Changes.mark_written
    done: list[int] = []

    def meanwhile(changes: Changes) -> None:
        written(changes)
        if not done:
            done.append(1)
            delete_rows(path, "id = 2")

    monkeypatch.setattr(Changes, "mark_written", meanwhile)
    with pytest.raises(DeltaConcurrentModificationException):
        COMMANDS[name](classic_spark, path)
    assert rows(path) == {1: 10, 3: 30, 4: 40}
    assert not unnamed(path)
    retry_on_conflict(lambda: COMMANDS[name](classic_spark, path))
    left = {**AFTER[name]}
    if name == "update":
        del left[2]
    assert rows(path) == left


@each_command
def test_a_reply_that_is_lost_changes_rows_once(
    classic_spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = made(str(tmp_path / "t"))
    kind: Any = type(DeltaLog.for_table(path).store)
    write = kind.write
    lost: list[str] = []

    def unheard(store: Any, place: str, *args: Any, **more: Any) -> Any:
        found = write(store, place, *args, **more)
        if place.endswith(".json") and "_delta_log/0" in place and not lost:
            lost.append(place)
            raise CommitOutcomeUnknownError(place, "nobody heard of it")
        return found

    monkeypatch.setattr(kind, "write", unheard)
    with contextlib.suppress(CommitOutcomeUnknownError):
        COMMANDS[name](classic_spark, path)
    assert lost
    assert rows(path) == AFTER[name]
    assert DeltaLog.for_table(path).snapshot.version == 2
    assert not unnamed(path)


OTHER = """
import sys
from lakelog.core import merge, retry_on_conflict, update_rows
path, times = sys.argv[1], int(sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for i in range(times):
    retry_on_conflict(lambda: update_rows(path, {"n": "n + 1"}, "id IN (1, 4)"), attempts=200)
    rows = [{"id": 100 + i, "n": i}, {"id": 2, "n": 0}]
    merging = merge(path, rows, "target.id = source.id").when_not_matched_insert_all()
    retry_on_conflict(merging.when_matched_update({"n": "target.n + 1"}).execute, attempts=200)
"""


def test_commands_of_two_processes_do_not_undo_each_other(
    classic_spark: SparkSession, tmp_path: Path
) -> None:
    path, times = made(str(tmp_path / "t")), 4
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, path, str(times)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    other.stdin.write("go\n")
    other.stdin.flush()
    for _ in range(times):
        retry_on_conflict(lambda: _update(classic_spark, path), attempts=200)
    other.communicate(timeout=200)
    assert other.returncode == 0
    inserted = {100 + i: i for i in range(times)}
    assert rows(path) == {
        1: 10 + 2 * times,
        2: 20 + 2 * times,
        3: 30,
        4: 40 + times,
        **inserted,
    }
    assert not unnamed(path)
    assert len(list(Path(path, "_delta_log").glob("0*.json"))) == 2 + 3 * times


@pytest.mark.parametrize(("condition", "alias"), [("column", None), ("text", "t")])
def test_what_is_read_of_partitions_is_what_conflicts(
    classic_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
    alias: str | None,
) -> None:
    path = str(tmp_path / "t")
    data = pa.table({"p": ["a", "b", None], "n": [1, 2, 3]})
    write_arrow(path, data, partition_by=["p"], mode="append")
    conditions: dict[str, Any] = {
        "column": sf.col("p") == "a",
        "text": "t.p = 'a' AND exists(array(n), x -> x > 0)",
    }
    written = Changes.mark_written
    other: list[str] = []

    def meanwhile(changes: Changes) -> None:
        written(changes)
        if other:
            update_rows(path, {"n": "n + 10"}, other.pop())

    monkeypatch.setattr(Changes, "mark_written", meanwhile)
    table = DeltaTable.forPath(classic_spark, path)
    table = table if alias is None else table.alias(alias)
    for where in ("p = 'b'", "p IS NULL"):
        other.append(where)
        table.update(conditions[condition], {"n": "n + 1"})
    found = DeltaLog.for_table(path).snapshot.to_arrow().to_pylist()
    assert sorted((str(r["p"]), r["n"]) for r in found) == [("None", 13), ("a", 3), ("b", 12)]
    other.append("p = 'a'")
    with pytest.raises(DeltaConcurrentModificationException):
        table.update(conditions[condition], {"n": "n + 1"})
    assert not unnamed(path)
