from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.portable.partition_text import (
    PartitionValueError,
    fitting_folder,
    hive_folder,
    partition_folder,
    partition_texts,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        (["a", "", None], pa.string(), ["a", None, None]),
        ([1, -5, None], pa.int8(), ["1", "-5", None]),
        ([2**63 - 1], pa.int64(), ["9223372036854775807"]),
        ([True, False, None], pa.bool_(), ["true", "false", None]),
        ([Decimal("1.50"), Decimal("0")], pa.decimal128(20, 10), ["1.5000000000", "0.0000000000"]),
        ([date(2020, 1, 2), date(1, 1, 1)], pa.date32(), ["2020-01-02", "0001-01-01"]),
        ([b"\x01\x02", b"", None], pa.binary(), ["\x01\x02", None, None]),
        (
            [datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=timezone(timedelta(hours=2)))],
            pa.timestamp("us", "UTC"),
            ["2020-01-02T01:04:05.000006Z"],
        ),
        (
            [1_577_934_245_000_000, -500_000],
            pa.timestamp("us"),
            ["2020-01-02 03:04:05", "1969-12-31 23:59:59.5"],
        ),
        (
            [1.0, 0.1, -0.0, 1e10, 1.5e-5, 123456789.0, 9999999.0, 0.001],
            pa.float64(),
            [
                "1.0",
                "0.1",
                "0.0",
                "1.0E10",
                "1.5E-5",
                "1.23456789E8",
                "9999999.0",
                "0.001",
            ],
        ),
        ([math.nan, math.inf, -math.inf], pa.float64(), ["NaN", "Infinity", "-Infinity"]),
        ([0.1, 16777216.0], pa.float32(), ["0.1", "1.6777216E7"]),
    ],
)
def test_values_are_spelled_as_spark_spells_them(values: Any, kind: Any, texts: Any) -> None:
    assert partition_texts(pa.array(values, kind)) == texts


@given(st.floats(allow_nan=False))
def test_a_double_reads_back_from_its_text(value: Any) -> None:
    (text,) = partition_texts(pa.array([value], pa.float64()))
    assert text is not None
    assert float(text) == value


@given(st.floats(width=32, allow_nan=False))
def test_a_float_reads_back_from_its_text(value: Any) -> None:
    (text,) = partition_texts(pa.array([value], pa.float32()))
    assert text is not None
    assert struct.unpack("f", struct.pack("f", float(text)))[0] == value


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_timestamp_reads_back_from_its_text(value: Any) -> None:
    (text,) = partition_texts(pa.array([value], pa.timestamp("us", "UTC")))
    assert text is not None
    assert datetime.fromisoformat(text) == value


def test_what_the_log_cannot_hold_is_refused() -> None:
    with pytest.raises(PartitionValueError, match="UTF-8"):
        partition_texts(pa.array([b"\xff"], pa.binary()))
    with pytest.raises(PartitionValueError, match="9999"):
        partition_texts(pa.array([4_000_000], pa.int32()).cast(pa.date32()))
    with pytest.raises(TypeError, match="list"):
        partition_texts(pa.array([[1]]))


def test_folders_escape_what_hive_escapes_and_no_more() -> None:
    assert hive_folder(["a=b", "c"], ["x/y:z é+ ", None]) == (
        "a%3Db=x%2Fy%3Az é+ /c=__HIVE_DEFAULT_PARTITION__"
    )
    assert hive_folder(["n"], ["line\nend\x7f{"]) == "n=line%0Aend%7F%7B"
    assert hive_folder([], []) == partition_folder([], []) == ""


def test_folders_of_data_files_are_ascii_so_that_the_log_has_one_spelling_of_them() -> None:
    assert partition_folder(["p:é"], ["中 é%"]) == "p%3A%C3%A9=%E4%B8%AD %C3%A9%25"
    assert partition_folder(["p"], ["x/y"]) == hive_folder(["p"], ["x/y"]) == "p=x%2Fy"


LONG = ["x" * 254, "é" * 45, "中" * 40, ":" * 90, "😀" * 25]


@pytest.mark.parametrize("value", LONG)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_value_whose_folder_has_too_long_a_name_gets_one_that_fits(
    value: str, place: int, tmp_path: Path
) -> None:
    values = ["1", "2", "3"]
    values[place] = value
    folder = partition_folder(["a", "b", "c"], values)
    parts = folder.split("/")
    (tmp_path / folder).mkdir(parents=True)
    assert [each for each in parts if "=" in each] == [
        f"{name}={text}" for name, text in zip("abc", values, strict=True) if text != value
    ]
    assert "=" not in parts[place], "it claims a value that it is not"
    values[place] = value + "y"
    assert partition_folder(["a", "b", "c"], values) != folder


def test_the_longest_names_stay_as_they_are() -> None:
    assert partition_folder(["p"], ["x" * 253]) == "p=" + "x" * 253
    assert partition_folder(["p" * 253], ["x"]) == "p" * 253 + "=x"


def test_many_long_names_are_one_folder() -> None:
    folder = partition_folder(list("abcd"), ["x" * 200] * 4)
    assert "/" not in folder
    assert len(folder) < 64


@given(st.lists(st.text(min_size=1), min_size=1, max_size=6))
def test_a_folder_that_fits_is_fitting(names: list[str]) -> None:
    texts = [name.encode("utf-8", "ignore").decode() or "x" for name in names]
    folder = partition_folder([f"c{i}" for i in range(len(texts))], texts)
    assert fitting_folder(folder) == folder
    assert max(len(each.encode()) for each in folder.split("/")) <= 255
    assert len(folder) <= 600
