"""The reader whose rows come with the plan, as Spark's own process would call it."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import CaseInsensitiveDict

from lakelog.core import write_arrow
from lakelog.spark.format import stream_on_driver
from lakelog.spark.format.data_source import LakelogSource
from lakelog.spark.format.stream_on_driver import CAN_READ_ON_DRIVER, MOST_BYTES, wants_driver

pytestmark = pytest.mark.skipif(not CAN_READ_ON_DRIVER, reason="PySpark before 4.2")


def _source(path: Path, **options: str) -> LakelogSource:
    return LakelogSource(
        CaseInsensitiveDict({"path": str(path), "readOnDriver": "true", **options})
    )


def _reader(path: Path, **options: str) -> Any:
    source = _source(path, **options)
    with pytest.raises(PySparkNotImplementedError):
        source.streamReader(source.schema())
    return source.simpleStreamReader(source.schema())


def _ids(rows: Any) -> list[int]:
    return [row for batch in rows for row in batch["id"].to_pylist()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for number in range(3):
        write_arrow(tmp_path / "t", {"id": [number, number + 10]}, mode="append")
    return tmp_path / "t"


def test_batches_follow_each_other_to_the_end(path: Path) -> None:
    reader = _reader(path, maxFilesPerTrigger="2", startingVersion="0")
    start = reader.initialOffset()
    rows, end = reader.read(start)
    # Spark asks for the rows of a batch more than once, by copies of the iterator.
    assert _ids(copy.copy(rows)) == _ids(rows) == [0, 10, 1, 11]
    reader.commit(end)
    rows, last = reader.read(end)
    assert _ids(rows) == [2, 12]
    rows, same = reader.read(last)
    assert _ids(rows) == []
    assert same == last
    assert _ids(reader.readBetweenOffsets(start, last)) == [0, 10, 1, 11, 2, 12]


def test_available_now_takes_nothing_that_comes_later(path: Path) -> None:
    reader = _reader(path)
    reader.prepareForTriggerAvailableNow()
    write_arrow(path, {"id": [99]}, mode="append")
    rows, end = reader.read(reader.initialOffset())
    assert sorted(_ids(rows)) == [0, 1, 2, 10, 11, 12]
    assert reader.read(end)[1] == end


def test_a_task_makes_its_own(path: Path) -> None:
    reader = _reader(path, startingVersion="1")
    start = reader.initialOffset()
    _, end = reader.read(start)
    in_task = pickle.loads(pickle.dumps(reader))
    assert len(pickle.dumps(reader)) < 4000
    assert _ids(in_task.readBetweenOffsets(start, end)) == [1, 11, 2, 12]


def test_a_batch_has_a_limit_on_the_driver_and_none_in_a_task(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_on_driver, "MOST_BYTES", 40)
    reader = _reader(path)
    start = reader.initialOffset()
    said = (
        rf"of {re.escape(str(path))}, from version 2, index -1 to version 3, index -1, take more "
        r"than .*maxFilesPerTrigger or maxBytesPerTrigger lower"
    )
    with pytest.raises(RuntimeError, match=said):
        reader.read(start)
    small = _reader(path, maxFilesPerTrigger="2")
    rows, end = small.read(start)
    assert len(_ids(rows)) == 4
    assert len(_ids(reader.readBetweenOffsets(start, end))) == 4


def test_the_guide_names_the_limit() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "streaming.md").read_text("utf-8")
    assert f"more than {MOST_BYTES >> 20} MB" in guide


@pytest.mark.parametrize(
    ("said", "wants"),
    [({}, False), ({"readondriver": " TRUE "}, True), ({"readondriver": "false"}, False)],
)
def test_what_the_option_says(said: dict[str, str], wants: bool) -> None:
    assert wants_driver(said) is wants


def test_another_word_is_refused(path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"ILLEGAL_OPTION.*readOnDriver"):
        _source(path, readOnDriver="yes").streamReader(_source(path).schema())
