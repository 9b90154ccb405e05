from __future__ import annotations

import mmap
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from lakelog.core import DeltaLog, convert_to_delta, delete_rows, update_rows, write_arrow
from lakelog.core.arrow import repeated
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.schema import StructType

if TYPE_CHECKING:
    from pathlib import Path

pq: Any = pyarrow.parquet
LAST = 2**63 - 1
DAYS = [-(2**31) + 1, -(2**31) + 1, -800_000, 0, 2_932_897, 2**31 - 1]
MICROS = [-LAST, -LAST, -(10**17), 0, 253_402_300_800_000_000, LAST]
FAR = {
    "t": pa.array(MICROS, pa.int64()).cast(pa.timestamp("us", "UTC")),
    "u": pa.array(MICROS, pa.int64()).cast(pa.timestamp("us")),
    "d": pa.array(DAYS, pa.int32()).cast(pa.date32()),
    "l": pa.array([-(2**63), -1, 0, 0, 1, LAST]),
    "s": pa.array(["", "\0", "a", "é", "\U0010ffff", "z" * 40]),
}
FILTERS = [
    "i = 3",
    "t > TIMESTAMP '2020-01-01 00:00:00'",
    "t <= TIMESTAMP '1970-01-01 00:00:00'",
    "u != TIMESTAMP_NTZ '1970-01-01 00:00:00'",
    "d < DATE '2020-01-01'",
    "d IN (DATE '1970-01-01', DATE '2020-01-01')",
    "NOT (l > 0 AND s > 'a')",
    "u IS NULL",
]


@pytest.mark.parametrize("far", FAR)
def test_values_beyond_pythons_years_leave_every_filter_working(tmp_path: Path, far: str) -> None:
    rows = pa.table({"i": range(6), **FAR})
    for group, name in ((2, "small"), (6, "large")):
        (tmp_path / name).mkdir()
        # The far column alone has statistics, then all have: each may be what breaks a filter.
        kept = [far] if name == "small" else True
        file = tmp_path / name / "x.parquet"
        pq.write_table(rows, file, row_group_size=group, write_statistics=kept)
        convert_to_delta(tmp_path / name)
    for each in FILTERS:
        found = [
            DeltaLog.for_table(tmp_path / name).update().to_arrow(columns=["i"], where=each)
            for name in ("small", "large")
        ]
        assert found[0] == found[1], each
    update_rows(tmp_path / "small", {"l": 7}, "d < DATE '2020-01-01' AND i = 0")
    delete_rows(tmp_path / "small", "t < TIMESTAMP '1970-01-01 00:00:00' AND i > 0")
    left = DeltaLog.for_table(tmp_path / "small").update().to_arrow(columns=["i", "l"])
    assert sorted(left["i"].to_pylist()) == [0, 3, 4, 5]


SCHEMA = StructType.from_json(
    b'{"type":"struct","fields":[{"name":"s","type":"string"},{"name":"n","type":"long"}]}'
)


def test_a_filter_takes_more_text_than_an_array_can_hold() -> None:
    # Pages that nobody wrote to take no memory: a text of 1.2 GiB twice.
    size = 1200 << 20
    blank = pa.py_buffer(mmap.mmap(-1, size))
    offsets = pa.array([0, 0, size], pa.int32()).buffers()[1]
    chunk = pa.Array.from_buffers(pa.string(), 2, [None, offsets, blank])
    text = pa.chunked_array([chunk, chunk, pa.array(["x", None])])
    rows = pa.table({"s": text, "n": pa.array([0, 1, 2, 3, 4, 5])})
    for sql, wanted in {
        "s = 'x'": [4],
        "s > 'w'": [4],
        "s LIKE 'x%' OR n = 1": [1, 4],
        "s IS NULL": [5],
        "NOT s <=> 'x'": [0, 1, 2, 3, 5],
        "n < 2": [0, 1],
    }.items():
        expr = normalize_filter(sql, SCHEMA)
        assert expr is not None
        mask = evaluate_mask(expr, rows, SCHEMA)
        assert rows["n"].filter(mask).to_pylist() == wanted


@pytest.mark.parametrize("value", ["abc", "", b"xyz", 7, None])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
def test_a_value_is_repeated_in_chunks_that_fit(
    value: object, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated, "_MOST_BYTES", 9)
    found = repeated.repeated(pa.scalar(value), count)
    assert found.to_pylist() == [value] * count
    assert all(sum(map(len, filter(None, c.to_pylist()))) <= 9 for c in found.chunks if value != 7)


def test_a_partition_of_a_long_text_is_read_in_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.core import write_arrow

    write_arrow(
        tmp_path / "t",
        pa.table({"p": ["abc"] * 10, "i": range(10)}),
        partition_by=["p"],
        mode="append",
    )
    monkeypatch.setattr(repeated, "_MOST_BYTES", 9)
    found = DeltaLog.for_table(tmp_path / "t").update().to_arrow(where="p = 'abc' AND i > 1")
    assert found["p"].to_pylist() == ["abc"] * 8
    assert max(map(len, found["p"].chunks)) <= 3


FIRST, LAST_TIME = datetime.min, datetime.max  # noqa: DTZ901 # the zone is the session's
BEYOND: list[tuple[str, Any]] = [
    ("America/New_York", [("t", "<", LAST_TIME)]),
    ("Asia/Tokyo", [("t", ">", FIRST)]),
    ("Asia/Tokyo", [("t", ">", FIRST.date())]),
    ("Asia/Tokyo", [("t", "in", [FIRST.date()])]),
    ("Asia/Tokyo", "t > DATE '0001-01-01'"),
]


@pytest.mark.parametrize(("zone", "given"), BEYOND, ids=str)
def test_an_instant_beyond_pythons_years_is_refused_in_words(
    tmp_path: Path, zone: str, given: Any
) -> None:
    write_arrow(tmp_path, pa.table({"t": pa.array([0], pa.timestamp("us", "UTC"))}), mode="append")
    snapshot = DeltaLog.for_table(tmp_path, {"spark.sql.session.timeZone": zone}).snapshot
    with pytest.raises(InvalidPredicateError, match="outside the years 1 to 9999"):
        snapshot.to_arrow(where=given)


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("d < {}", [0]),
        ("{} > d", [0]),
        ("d >= {}", [1, 2]),
        ("d = {}", [1]),
        ("d IN ({}, DATE '1970-01-01')", [0, 1]),
        ("d BETWEEN DATE '1970-01-01' AND {}", [0, 1]),
    ],
)
def test_a_day_beyond_pythons_years_that_sql_gives_is_compared(
    tmp_path: Path, sql: str, kept: list[int]
) -> None:
    days = pa.array([0, 2_932_897, 2_932_898], pa.int32()).cast(pa.date32())
    write_arrow(tmp_path, pa.table({"i": [0, 1, 2], "d": days}), mode="append")
    where = sql.format("date_add(DATE '9999-12-31', 1)")
    found = DeltaLog.for_table(tmp_path).snapshot.to_arrow(columns=["i"], where=where)
    assert found["i"].to_pylist() == kept


@pytest.mark.parametrize("kind", ["t", "u", "d"])
@pytest.mark.parametrize("at", [0, -1])
def test_a_far_scalar_of_arrow_is_set_or_refused_in_words(
    tmp_path: Path, kind: str, at: int
) -> None:
    write_arrow(tmp_path, pa.table({"i": [0], "n": [7], kind: FAR[kind][3:4]}), mode="append")
    far = FAR[kind][at]
    update_rows(tmp_path, {kind: far})
    assert DeltaLog.for_table(tmp_path).update().to_arrow()[kind][0].equals(far)
    with pytest.raises(DeltaAnalysisError, match=r"column n of type .* can't be set to"):
        update_rows(tmp_path, {"n": far})
