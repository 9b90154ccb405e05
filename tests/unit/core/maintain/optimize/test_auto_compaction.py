"""Commits that put small files together, where the session or the table says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, delete_rows, merge, read_arrow, write_arrow
from lakelog.core.errors import ConcurrentDeleteReadException, DeltaAnalysisError
from lakelog.core.maintain.optimize.running import Run

if TYPE_CHECKING:
    from pathlib import Path

AUTO = "spark.databricks.delta.autoCompact."
FEW = {f"{AUTO}minNumFiles": "3"}
ON = {**FEW, f"{AUTO}enabled": "true"}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def append(uri: str, *values: int, conf: dict[str, str] | None = None, **options: Any) -> int:
    rows = pa.table({"id": list(values), "p": [value // 100 for value in values]})
    return write_arrow(uri, rows, mode="append", conf=conf, **options)


def state(uri: str) -> tuple[int, int]:
    snapshot = DeltaLog.for_table(uri).update()
    return snapshot.version, snapshot.num_files


def test_the_commit_that_makes_enough_small_files_puts_them_together(uri: str) -> None:
    assert [append(uri, each, conf=ON) for each in (1, 2)] == [0, 1]
    assert append(uri, 3, conf=ON) == 2
    assert state(uri) == (3, 1)
    (entry,) = DeltaLog.for_table(uri).history(1)
    assert entry.operation == "OPTIMIZE"
    assert entry.parameters is not None
    assert entry.parameters["auto"] is True
    assert sorted(read_arrow(uri)["id"].to_pylist()) == [1, 2, 3]


def test_partitions_alone_that_got_files_and_have_enough(uri: str) -> None:
    for _ in range(3):
        append(uri, 1, partition_by=["p"])
    append(uri, 101, 201, conf=ON)
    assert state(uri) == (3, 5)
    append(uri, 2, 102, conf=ON)
    assert state(uri) == (5, 4)


@pytest.mark.parametrize(
    ("properties", "conf", "compacts"),
    [
        ({}, {}, False),
        ({"delta.autoOptimize.autoCompact": "true"}, {}, True),
        ({"delta.autoOptimize": "true"}, {}, True),
        ({"delta.autoOptimize.autoCompact": "true"}, {f"{AUTO}enabled": "false"}, False),
        ({"delta.autoOptimize.autoCompact": "false"}, {f"{AUTO}enabled": "true"}, True),
        ({}, {f"{AUTO}enabled": "true", f"{AUTO}minFileSize": "1"}, False),
        ({}, {f"{AUTO}enabled": "true", f"{AUTO}maxFileSize": "2"}, False),
        ({}, {f"{AUTO}enabled": "true", f"{AUTO}minNumFiles": "4"}, False),
    ],
)
def test_who_decides(
    uri: str, properties: dict[str, str], conf: dict[str, str], compacts: bool
) -> None:
    append(uri, 1, properties=properties)
    append(uri, 2)
    append(uri, 3, conf={**FEW, **conf})
    assert state(uri)[1] == (1 if compacts else 3)


def test_a_delete_that_leaves_small_files_does_it_too(uri: str) -> None:
    for first in (1, 11, 21):
        append(uri, first, first + 1, properties={"delta.enableDeletionVectors": "true"})
    delete_rows(uri, "id IN (1, 11, 21)", conf=ON)
    assert state(uri) == (4, 1)


def test_a_merge_does_it_too(uri: str) -> None:
    append(uri, 1)
    append(uri, 2)
    source = pa.table({"id": [3], "p": [0]})
    merge(uri, source, "target.id = source.id", conf=ON).when_not_matched_insert_all().execute()
    assert state(uri) == (3, 1)


@pytest.mark.parametrize(
    ("properties", "conf"),
    [({}, {f"{AUTO}enabled": "auto"}), ({"delta.autoOptimize.autoCompact": "auto"}, {})],
)
def test_neither_true_nor_false_is_refused_before_the_commit(
    uri: str, properties: dict[str, str], conf: dict[str, str]
) -> None:
    with pytest.raises(DeltaAnalysisError, match="DELTA_INVALID_AUTO_COMPACT_TYPE"):
        append(uri, 1, properties=properties, conf=conf)
    assert not DeltaLog.for_table(uri).table_exists()


@pytest.mark.parametrize("error", [OSError("full"), ConcurrentDeleteReadException("faster")])
def test_what_fails_there_leaves_the_commit_alone(
    uri: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    append(uri, 1)
    append(uri, 2)
    monkeypatch.setattr(Run, "rewrite", failing)
    assert append(uri, 3, conf=ON) == 2
    assert state(uri) == (2, 3)
