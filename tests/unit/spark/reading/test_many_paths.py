"""Which of the two ways of naming paths is taken: in one call where that is possible."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lakelog.spark.reading.many_paths import parquet_of

MANY = [f"file:/t/{number}.parquet" for number in range(10)]


def reader() -> Any:
    return SimpleNamespace(
        parquet=lambda *paths: ["publicly", *paths],
        _df=lambda made: made,
        _jreader=SimpleNamespace(parquet=lambda array: ["at once", *array]),
    )


def session() -> Any:
    pattern = SimpleNamespace(compile=lambda mark: SimpleNamespace(split=lambda t: t.split(mark)))
    regex = SimpleNamespace(Pattern=pattern)
    jvm = SimpleNamespace(java=SimpleNamespace(util=SimpleNamespace(regex=regex)))
    return SimpleNamespace(_jvm=jvm)


def test_many_paths_of_a_classic_session_go_at_once() -> None:
    found: Any = parquet_of(session(), reader(), MANY)
    assert found == ["at once", *MANY]


@pytest.mark.parametrize(
    ("spark", "paths"),
    [
        (SimpleNamespace(), MANY),
        (session(), [*MANY, "s3a://bucket/a\0b"]),
        (session(), MANY[:2]),
    ],
    ids=["no JVM", "a path with the separator", "few"],
)
def test_all_others_go_by_the_public_method(spark: Any, paths: list[str]) -> None:
    found: Any = parquet_of(spark, reader(), paths)
    assert found == ["publicly", *paths]


def test_a_reader_with_another_inner_life_goes_by_the_public_method() -> None:
    bare: Any = SimpleNamespace(parquet=lambda *paths: ["publicly", *paths])
    found: Any = parquet_of(session(), bare, MANY)
    assert found == ["publicly", *MANY]
