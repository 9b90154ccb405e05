"""One set of rules for a time zone: Python's without an engine, the engine's beside one."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import convert_to_delta, scan
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.arrow.partitions import typed_partition_columns
from lakelog.core.arrow.time_zones import (
    EngineZone,
    UndecidedTimeError,
    clocks_at,
    in_utc,
    instants_of,
    is_decided,
    zone_of,
)
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter, parse_filter
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import is_opaque
from lakelog.core.expressions.values.evaluate import evaluate_value
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.examples import examples

if TYPE_CHECKING:
    from pathlib import Path

    from lakelog.core.expressions.tree import Expression

SCHEMA = StructType(
    (StructField("ts", PrimitiveType("timestamp")), StructField("d", PrimitiveType("date")))
)
clock = datetime.fromisoformat
BERLIN = ZoneInfo("Europe/Berlin")
# Python's rules are the engine's from 1980 on.
ENGINE = EngineZone("Europe/Berlin", lambda year: year >= 1980)

# What depends on the zone's rules, with the answers for a clock that is 5 hours ahead in 2020.
SCRIPT = """
import sys
from datetime import datetime
import pyarrow as pa
from lakelog.core import delete_rows, read_arrow, write_arrow
from lakelog.core.arrow.partition_casts import cast_text
from lakelog.core.schema import PrimitiveType
conf = {"spark.sql.session.timeZone": "Europe/Stockholm"}
path = sys.argv[1]
rows = pa.table({"ts": pa.array([1590969600000000], pa.timestamp("us", "UTC"))})
write_arrow(path, rows)
for where in (
    "ts = TIMESTAMP'2020-06-01 05:00:00'",
    "ts = '2020-06-01 05:00:00'",
    [("ts", "=", datetime(2020, 6, 1, 5))],
    "hour(ts) = 5",
    "CAST(ts AS STRING) = '2020-06-01 05:00:00'",
    "CAST(CAST('2020-06-01 05:00:00' AS TIMESTAMP) AS BIGINT) = CAST(ts AS BIGINT)",
    "date_trunc('day', ts) = TIMESTAMP'2020-06-01 00:00:00'",
    "ts > DATE'2020-06-01'",
    "date_trunc('day', ts) = CAST('2020-06-01 00:00:00' AS TIMESTAMP)",
):
    assert read_arrow(path, where=where, conf=conf).num_rows == 1, where
zone = conf["spark.sql.session.timeZone"]
found = cast_text("2020-06-01 05:00:00", PrimitiveType("timestamp"), zone)
assert found == 1590969600000000, found
"""


def test_all_that_asks_for_rules_asks_the_same_ones(tmp_path: Path) -> None:
    altered = tmp_path / "zones" / "Europe"
    altered.mkdir(parents=True)
    # A zone that is five hours ahead, by a file that holds nothing but the rule for all times.
    footer = b"\n<+05>-5\n"
    header = b"TZif2" + b"\0" * 15
    empty = (0).to_bytes(4, "big") * 4 + (1).to_bytes(4, "big") + (4).to_bytes(4, "big")
    kind = (18_000).to_bytes(4, "big") + b"\0\0" + b"+05\0"
    (altered / "Stockholm").write_bytes((header + empty + kind) * 2 + footer)
    environment = {**os.environ, "PYTHONTZPATH": str(altered.parent)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "t")],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.datetimes(clock("1800-01-01"), clock("2199-01-01")) | st.none(), max_size=9))
def test_columns_of_times_move_as_single_ones_do(clocks: list[datetime | None]) -> None:
    epoch = clock("1970-01-01")
    micros = [None if c is None else (c - epoch) // timedelta(microseconds=1) for c in clocks]
    array = pa.array(micros, pa.int64())
    moments = [None if c is None else c.replace(tzinfo=BERLIN).astimezone(UTC) for c in clocks]
    wanted = [None if m is None else m.replace(tzinfo=None) for m in moments]
    found = instants_of(array, "Europe/Berlin").cast(pa.timestamp("us"))
    assert found.to_pylist() == wanted
    shown = clocks_at(array, "Europe/Berlin").cast(pa.timestamp("us"))
    assert shown.to_pylist() == [
        None if c is None else c.replace(tzinfo=UTC).astimezone(BERLIN).replace(tzinfo=None)
        for c in clocks
    ]


@pytest.mark.parametrize(
    "text",
    [
        "ts = TIMESTAMP'1979-12-31 12:00:00'",
        "ts = '1850-01-01 01:01:01'",
        "ts IN (TIMESTAMP'1850-01-01 01:01:01', TIMESTAMP'2024-01-01')",
        "ts < DATE'1960-01-01'",
        "ts BETWEEN TIMESTAMP'1960-01-01' AND TIMESTAMP'2024-01-01'",
        "NOT (ts = CAST('1960-01-01 00:00:00' AS TIMESTAMP))",
        "d = CAST(TIMESTAMP'1960-01-01 00:00:00' AS DATE)",
    ],
)
def test_a_time_that_the_engine_reads_otherwise_is_the_engine_s(text: str) -> None:
    assert is_opaque(parse_filter(text, SCHEMA, EvalContext(ENGINE)))
    assert not is_opaque(parse_filter(text, SCHEMA, EvalContext(str(ENGINE))))
    later = text.replace("1850", "2020").replace("1960", "2020").replace("1979", "2020")
    assert not is_opaque(parse_filter(later, SCHEMA, EvalContext(ENGINE)))


def test_a_time_that_names_its_zone_depends_on_no_rules() -> None:
    found = parse_filter("ts = TIMESTAMP'1850-01-01 01:01:01+01:00'", SCHEMA, EvalContext(ENGINE))
    assert not is_opaque(found)
    fixed = EngineZone("+01:00", lambda year: False)
    assert not is_opaque(parse_filter("ts = '1850-01-01 01:01:01'", SCHEMA, EvalContext(fixed)))


def _bound(tuples: list[tuple[str, str, Any]], context: EvalContext) -> Expression:
    found = normalize_filter(tuples, SCHEMA, context)
    assert found is not None
    return found


def test_the_engine_gets_the_clock_of_a_value_of_python() -> None:
    value = clock("1850-01-01 01:01:01")
    found = _bound([("ts", "=", value)], EvalContext(ENGINE))
    assert is_opaque(found)
    assert to_sql(found) == "ts = TIMESTAMP_NTZ '1850-01-01 01:01:01'"
    listed = _bound([("ts", "in", [value, None])], EvalContext(ENGINE))
    assert is_opaque(listed)
    assert not is_opaque(_bound([("ts", "=", value)], EvalContext(str(ENGINE))))


def test_rows_whose_clock_the_engine_reads_otherwise_are_not_evaluated_here() -> None:
    rows = pa.table({"ts": pa.array([-1, None], pa.timestamp("us", "UTC"))})
    schema = StructType((SCHEMA.fields[0],))
    kind = PrimitiveType("date")
    with pytest.raises(InvalidPredicateError, match="which only Spark evaluates"):
        evaluate_value("CAST(ts AS DATE)", rows, schema, kind, EvalContext(ENGINE))
    assert evaluate_value("CAST(ts AS DATE)", rows, schema, kind, EvalContext(str(ENGINE)))


def test_a_partition_s_time_without_a_zone_says_nothing_where_the_engine_reads_it() -> None:
    texts = ["1850-01-01 01:01:01", "1850-01-01T01:01:01Z", "2024-01-01 00:00:00", None]
    maps = pa.array([[("ts", text)] for text in texts], pa.map_(pa.string(), pa.string()))
    files = pa.table({"partition_values": maps})
    schema = StructType((SCHEMA.fields[0],))
    typed, unread = typed_partition_columns(files, schema, session_tz=ENGINE)
    assert unread["ts"].to_pylist() == [True, False, False, False]
    asked: list[int] = []

    def engine(clock: int) -> int:
        asked.append(clock)
        return clock - 7

    zone = EngineZone("Europe/Berlin", lambda year: year >= 1980, engine)
    for travels in (False, False, True):
        each = pickle.loads(pickle.dumps(zone)) if travels else zone
        typed, unread = typed_partition_columns(files, schema, session_tz=each)
        assert unread["ts"].to_pylist() == [False] * 4
        first, *rest = typed["ts"].cast(pa.int64()).to_pylist()
        assert asked == [first + 7]
        assert (
            rest[1]
            == typed_partition_columns(files, schema, session_tz="Europe/Berlin")[0]["ts"]
            .cast(pa.int64())[2]
            .as_py()
        )


def test_the_engine_reads_the_times_in_names_of_folders(tmp_path: Path) -> None:
    for text in ("1850-01-01 01:01:01", "2024-01-01 00:00:00"):
        folder = tmp_path / f"ts={text}"
        folder.mkdir()
        pq.write_table(pa.table({"n": [1]}), folder / "f.parquet")
    zone = EngineZone("Europe/Berlin", lambda year: year >= 1980, lambda clock: clock - 7)
    schema = StructType((SCHEMA.fields[0],))
    convert_to_delta(str(tmp_path), schema, conf={"spark.sql.session.timeZone": zone})
    assert sorted(scan(str(tmp_path)).to_arrow()["ts"].cast(pa.int64()).to_pylist()) == [
        (clock("1850-01-01 01:01:01") - clock("1970-01-01")) // timedelta(microseconds=1) - 7,
        clock("2023-12-31 23:00:00+00:00").timestamp() * 1_000_000,
    ]


def test_a_zone_that_only_the_engine_knows_is_left_to_it() -> None:
    zone = EngineZone("SystemV/PST8PDT", lambda _: False, lambda clock: clock + 8)
    assert is_opaque(parse_filter("ts = TIMESTAMP'2024-01-01 00:00:00'", SCHEMA, EvalContext(zone)))
    assert is_opaque(parse_filter("hour(ts) = 1", SCHEMA, EvalContext(zone)))
    kind = PrimitiveType("timestamp")
    assert cast_text("1970-01-01 00:00:00", kind, zone) == 8
    assert cast_text("1970-01-01T00:00:00Z", kind, zone) == 0


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("UT", 0),
        ("UT+8", 28_800),
        ("GMT-3", -10_800),
        ("+05:30", 19_800),
        ("-05:30:15", -19_815),
        ("UTC+053015", 19_815),
        ("+18", 64_800),
    ],
)
def test_offsets_are_read_as_java_spells_them(name: str, seconds: int) -> None:
    assert zone_of(name).utcoffset(None) == timedelta(seconds=seconds)
    with pytest.raises(ValueError, match="unknown time zone"):
        zone_of(f"{name}0:99")


def test_a_zone_that_travels_is_a_name() -> None:
    there = pickle.loads(pickle.dumps(ENGINE))
    assert (type(there), there) == (str, "Europe/Berlin")
    assert not is_decided(ENGINE, 1980, 1980)  # the other clock may show 1979
    assert is_decided(ENGINE, 1981, 2024)
    with pytest.raises(UndecidedTimeError):
        in_utc(clock("1850-01-01"), ENGINE)
