"""`lakelog sample`."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.cli.sample.printed_values import json_rows, text_of
from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.data.table_scan import Scan
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

CONF = {"spark.sql.files.maxRecordsPerFile": "4"}
DAY = 86_400_000_000
NAIVE = datetime(2026, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001  # timestamp_ntz


def _table(folder: Path, properties: dict[str, str] | None = None) -> str:
    uri = str(folder / "t")
    rows = pa.table({"id": range(10), "köln": [None, "x"] * 5})
    create_table(uri, rows.schema, properties=properties or {})
    write_arrow(uri, rows, mode="append", conf=CONF)
    return uri


@pytest.mark.parametrize(
    "properties", [{}, {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}]
)
@pytest.mark.parametrize("where", [None, "id > 5", "`köln` is null", "id = 99"])
@pytest.mark.parametrize("limit", [1, 4, 5, 99])
def test_the_first_rows_are_those_of_a_whole_read(
    properties: dict[str, str], where: str | None, limit: int, tmp_path: Path
) -> None:
    uri = _table(tmp_path, properties)
    delete_rows(uri, "id in (1, 6)")
    snapshot = DeltaLog.for_table(uri).snapshot
    expected = snapshot.to_arrow(where=where).slice(0, limit)
    assert Scan(snapshot, None, where).head(limit).to_pylist() == expected.to_pylist()
    options = () if where is None else ("--where", where)
    found = lakelog_json("sample", uri, "--limit", str(limit), *options)
    assert found["rows"] == expected.to_pylist()
    assert found["columns"] == ["id", "köln"]


def test_no_file_is_opened_that_is_not_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = _table(tmp_path)
    for file in DeltaLog.for_table(uri).snapshot.files()[1:]:
        (tmp_path / "t" / file.path).unlink()
    assert len(lakelog_json("sample", uri, "--limit", "4")["rows"]) == 4
    assert lakelog("sample", uri, "--limit", "5").code == 2


def test_the_forms(tmp_path: Path) -> None:
    uri = _table(tmp_path)
    options = ("--limit", "2", "--column", "köln", "--column", "id")
    lines = lakelog("sample", uri, *options, "--format", "jsonl").out.splitlines()
    assert [json.loads(each) for each in lines] == [{"köln": None, "id": 0}, {"köln": "x", "id": 1}]
    out = lakelog("sample", uri, *options, "--format", "csv").out
    assert list(csv.reader(io.StringIO(out))) == [["köln", "id"], ["", "0"], ["x", "1"]]
    text = lakelog("sample", uri, *options)
    assert [each.split() for each in text.lines[1:]] == [
        ["köln", "id"],
        ["null", "0"],
        ["x", "1"],
    ]
    assert lakelog("sample", uri, "--where", "id < 0").lines[-1] == "  no rows"
    assert lakelog("sample", uri, "--format", "csv", "--json").code == 2


def test_an_older_version(tmp_path: Path) -> None:
    uri = _table(tmp_path)
    delete_rows(uri)
    assert lakelog_json("sample", uri)["rows"] == []
    assert len(lakelog_json("sample", uri, "--version", "1")["rows"]) == 10


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.float64(), float("nan"), "NaN"),
        (pa.float64(), float("-inf"), "-Infinity"),
        (pa.float64(), 1.5, 1.5),
        (pa.decimal128(38, 10), Decimal("0.0000000010"), "0.0000000010"),
        (pa.binary(), b"\x00\xff", "AP8="),
        (pa.date32(), date(1, 1, 1), "0001-01-01"),
        (pa.timestamp("us"), NAIVE, "2026-01-02T03:04:05.000006"),
        (
            pa.timestamp("us", "UTC"),
            datetime(2026, 1, 2, tzinfo=UTC),
            "2026-01-02T00:00:00Z",
        ),
        (pa.timestamp("us"), 10_000 * 366 * DAY, "316224000000000000 microseconds from 1970"),
        (pa.map_(pa.int32(), pa.float64()), [(1, float("inf"))], {"1": "Infinity"}),
        (pa.map_(pa.string(), pa.int32()), [], {}),
        (pa.list_(pa.struct([("a", pa.binary())])), [{"a": b"a"}, None], [{"a": "YQ=="}, None]),
        (pa.bool_(), True, True),
        (pa.string(), None, None),
    ],
)
def test_a_value_in_json(kind: pa.DataType, value: Any, expected: Any) -> None:
    [row] = json_rows(pa.table({"c": pa.array([value], kind)}))
    assert row == {"c": expected}
    json.dumps(row, allow_nan=False)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, ""), (True, "true"), (1.5, "1.5"), ({"ä": [None]}, '{"ä": [null]}'), ("x", "x")],
)
def test_a_value_as_text(value: Any, expected: str) -> None:
    assert text_of(value) == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--column", "idd"), "idd"),
        (("--column", "id", "--column", "ID"), "twice"),
        (("--where", "nope = 1"), "nope"),
        (("--version", "77"), "77"),
    ],
)
def test_what_is_not_there_is_one_line(
    options: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    outcome = lakelog("sample", _table(tmp_path), *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
