"""`lakelog append`: lines of JSON from stdin, each exactly once."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from lakelog.cli.app import app
from lakelog.core import create_table, read_arrow
from lakelog.core.alter import add_constraint

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, at timestamp, day date, price decimal(10,2)")
    return uri


def run(table: str, lines: str, *options: str) -> Result:
    args = ["append", table, "--app-id", "a", *options]
    return CliRunner().invoke(app, args, input=lines)


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in rows)


def ids(table: str) -> list[int]:
    return sorted(read_arrow(table)["id"].to_pylist())


def test_lines_that_are_sent_again_are_there_once(table: str) -> None:
    first = run(table, lines({"id": 1}, {"id": 2}), "--json")
    assert first.exit_code == 0, first.output
    again = run(table, lines({"id": 1}, {"id": 2}, {"id": 3}), "--json")
    found = json.loads(again.output)
    assert (found["appended"], found["already_there"], found["last_seq"]) == (1, 2, 2)
    assert ids(table) == [1, 2, 3]


def test_numbers_of_a_column_say_what_is_there(table: str) -> None:
    run(table, lines({"id": 10}, {"id": 20}), "--seq-field", "id")
    done = run(table, lines({"id": 20}, {"id": 30}), "--seq-field", "id")
    assert "Appended 1 of 2 lines in 1 commits; 1 were there already" in done.output
    assert ids(table) == [10, 20, 30]


def test_values_that_json_has_not_are_read_from_text(table: str) -> None:
    row = {"ID": 1, "at": "2026-01-31T12:00:00Z", "day": "2026-01-31", "price": 1.25}
    assert run(table, lines(row)).exit_code == 0
    assert read_arrow(table).to_pylist() == [
        {
            "id": 1,
            "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
            "day": date(2026, 1, 31),
            "price": Decimal("1.25"),
        }
    ]


def test_lines_that_do_not_fit_go_to_a_file(table: str, tmp_path: Path) -> None:
    file = tmp_path / "dead"
    text = lines({"id": 1}, {"id": "x"}, {"id": 2, "day": "soon"}, {"id": 3})
    done = run(table, text, "--dead-letter", str(file))
    assert "2 did not fit" in done.output
    assert ids(table) == [1, 3]
    assert len(file.read_text().splitlines()) == 2


def test_lines_that_are_no_json_go_to_the_file_as_well(table: str, tmp_path: Path) -> None:
    file = tmp_path / "dead"
    text = 'nothing\n{"id": 1}\n[2]\n{"id": 3}\n{"id": 4\n'
    for appended in (2, 0):
        done = run(table, text, "--dead-letter", str(file), "--json")
        found = json.loads(done.output)
        assert (found["appended"], found["rejected"]) == (appended, 3 if appended else 0)
        assert found["last_seq"] == 4
    assert ids(table) == [1, 3]
    letters = [json.loads(each) for each in file.read_text().splitlines()]
    assert [each["row"]["line"] for each in letters] == ["nothing", "[2]", '{"id": 4']
    assert [each["seq"] for each in letters] == [0, 2, 4]


@pytest.mark.parametrize("puts_aside", [False, True])
@pytest.mark.parametrize("numbers", [(), ("--seq-field", "id")])
def test_a_line_that_is_cut_off_is_taken_when_it_is_whole(
    table: str, tmp_path: Path, puts_aside: bool, numbers: tuple[str, ...]
) -> None:
    file = tmp_path / "dead"
    options = (*numbers, *(("--dead-letter", str(file)) if puts_aside else ()))
    cut = run(table, '{"id": 1}\n\n{"id": 2', *options)
    assert cut.exit_code == 2
    assert "line 3 of stdin is cut off" in cut.output
    assert ids(table) == [1]
    assert not file.exists()
    assert run(table, '{"id": 1}\n\n{"id": 22}\n', *options).exit_code == 0
    assert ids(table) == [1, 22]


def test_the_line_that_does_not_fit_is_named(table: str) -> None:
    add_constraint(table, "small", "id < 10")
    text = '{"id": 1}\n{"id": 2}\n\n'
    for wrong, says in (
        ('{"id": "x"}', "'x'"),
        ('{"id": 1.5}', "1.5"),
        ('{"more": 1}', "'more'"),
        ('{"id": 11}', "small"),
    ):
        done = run(table, f"{text}{wrong}\n")
        assert done.exit_code == 2
        assert "line 4 of stdin" in done.output
        assert says in done.output
        assert "in row" not in done.output


def test_values_are_exact_at_any_depth(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    inner = "t: timestamp, n: timestamp_ntz, d: decimal(20,2), b: binary, f: double"
    create_table(uri, f"id bigint, s struct<{inner}>, l array<date>, m map<string, decimal(3,1)>")
    inside = '"t": "2026-01-01T00:00:00+02:00", "n": "2026-01-01T00:00:00", "b": "/wA="'
    line = f'{{"id": 1, "s": {{{inside}, "d": 123456789012345678.25, "f": "NaN"}}, '
    assert run(uri, f'{line}"l": ["2026-01-31"], "m": {{"k": 1.5}}}}\n').exit_code == 0
    (row,) = read_arrow(uri).to_pylist()
    assert str(row["s"].pop("f")) == "nan"
    assert row == {
        "id": 1,
        "s": {
            "t": datetime(2025, 12, 31, 22, tzinfo=UTC),
            "n": datetime(2026, 1, 1),  # noqa: DTZ001
            "d": Decimal("123456789012345678.25"),
            "b": b"\xff\x00",
        },
        "l": [date(2026, 1, 31)],
        "m": [("k", Decimal("1.5"))],
    }


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        ("double", "1e400", "more than a double holds"),
        ("array<double>", "[-1e400]", "more than a double holds"),
        ("float", "1e39", "more than the type holds"),
        ("bigint", "1e999999999", "more than a double holds"),
        ("binary", '"hi!"', "no base64"),
        ("timestamp", '"2026-01-01T00:00:00.0000001Z"', "can't hold"),
        ("timestamp_ntz", '"2026-01-01T00:00:00Z"', "has a time zone"),
        ("timestamp", "1735689600", "a number has no unit"),
        ("date", "5", "a number has no unit"),
        ("array<string>", '"ab"', "is no list"),
        ("double", "true", "is no number"),
    ],
)
def test_what_would_become_another_value_is_refused(
    tmp_path: Path, kind: str, value: str, says: str
) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, f"v {kind}")
    done = run(uri, f'{{"v": {value}}}\n')
    assert (done.exit_code, "line 1 of stdin" in done.output) == (2, True)
    assert says in done.output
    assert read_arrow(uri).num_rows == 0


def test_lines_without_a_number_go_to_the_file_as_well(table: str, tmp_path: Path) -> None:
    file = tmp_path / "dead"
    text = '{"id": 5}\n{}\n{"id": 7}\nnothing\n'
    options = ("--seq-field", "id", "--dead-letter", str(file), "--json")
    assert json.loads(run(table, text, *options).output)["rejected"] == 2
    # The last of them may have been there or not: it has no number.
    assert json.loads(run(table, text, *options).output)["rejected"] == 1
    assert ids(table) == [5, 7]


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        ('{"id": 1}\nnothing\n', (), "line 2 of stdin is not JSON"),
        ('{"id": 1}\n[2]\n', (), "line 2 of stdin is not an object"),
        (
            '{"id": 1, "x": {"a": 1, "a": 2}}\n',
            (),
            "line 1 of stdin is not JSON: 'a' is there twice",
        ),
        (f'{{"id": {100_000 * "["}\n', (), "line 1 of stdin is not JSON"),
        ('{"id": 1.5}\n', (), "can't hold its value"),
        ('{"id": 1}\n{"id": "x"}\n', (), "can't hold its value"),
        ('{"id": 5}\n{"id": 4}\n', ("--seq-field", "id"), "line 2 of stdin has id 4, after 5"),
        ('{"id": 5}\n{}\n', ("--seq-field", "id"), "line 2 of stdin has id None"),
    ],
)
def test_lines_that_are_wrong_end_the_command(
    table: str, text: str, options: tuple[str, ...], says: str
) -> None:
    done = run(table, text, *options)
    assert done.exit_code == 2
    assert says in done.output


def test_a_last_line_without_an_end_counts(table: str) -> None:
    assert run(table, '{"id": 1}\n\n{"id": 2}').exit_code == 0
    assert ids(table) == [1, 2]


def test_columns_are_added_where_that_is_asked_for(table: str) -> None:
    assert run(table, lines({"id": 1, "more": "x"}), "--schema-mode", "merge").exit_code == 0
    assert read_arrow(table)["more"].to_pylist() == ["x"]


def test_a_line_longer_than_a_read_is_one_line(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    create_table(uri, "id bigint, text string")
    long = "x" * (3 << 20)
    assert run(uri, lines({"id": 1}, {"id": 2, "text": long}, {"id": 3})[:-1]).exit_code == 0
    found = {row["id"]: row["text"] for row in read_arrow(uri).to_pylist()}
    assert found == {1: None, 2: long, 3: None}
