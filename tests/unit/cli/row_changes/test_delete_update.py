"""`lakelog delete` and `lakelog update`."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog import core
from lakelog.cli.row_changes.update import assignments
from lakelog.core import DeltaLog, Operation, create_table, read_arrow, write_arrow
from lakelog.core.commit.backoff import Backoff
from lakelog.core.errors import ConcurrentAppendException
from lakelog.core.schema import PrimitiveType, StructField, StructType
from lakelog.core.schema.column_fills import column_with_default
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

LONG = PrimitiveType("long")
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "partitioned": {"partition_by": ["day"]},
    "vectors": {"properties": {"delta.enableDeletionVectors": "true"}},
    "mapped": {"properties": {"delta.columnMapping.mode": "name"}},
}


def _table(folder: Path, kind: str = "plain") -> str:
    uri = str(folder / "t")
    rows = pa.table({"id": [1, 2, 3, None], "day": ["a", "a", "b", "b"]})
    create_table(uri, rows.schema, **KINDS[kind])
    write_arrow(uri, rows, mode="append")
    write_arrow(uri, pa.table({"id": [5], "day": ["b"]}), mode="append")
    return uri


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return _table(tmp_path)


def _ids(uri: str) -> list[int | None]:
    return sorted(read_arrow(uri)["id"].to_pylist(), key=lambda id_: (id_ is None, id_))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id > 2", [1, 2, None]),
        ("day = 'a'", [3, 5, None]),
        ("id = 5", [1, 2, 3, None]),
        ("id is null or id < 0", [1, 2, 3, 5]),
        ("id = 77", [1, 2, 3, 5, None]),
    ],
)
def test_a_dry_run_counts_what_delete_then_deletes(
    kind: str, where: str, left: list[int | None], tmp_path: Path
) -> None:
    uri = _table(tmp_path, kind)
    before = _ids(uri)
    planned = lakelog_json("delete", uri, "--where", where, "--dry-run")
    assert (planned["version"], planned["metrics"], planned["dry_run"]) == (None, {}, True)
    assert _ids(uri) == before, "a dry run changed the table"
    done = lakelog_json("delete", uri, "--where", where)
    assert _ids(uri) == left
    assert {key: planned[key] for key in ("rows", "files", "where", "version_before")} == {
        key: done[key] for key in ("rows", "files", "where", "version_before")
    }
    assert planned["rows"] == len(before) - len(left)
    assert done["version"] == (3 if len(before) > len(left) else None)


@pytest.mark.parametrize("kind", KINDS)
def test_update_sets_sql_over_the_old_row(kind: str, tmp_path: Path) -> None:
    uri = _table(tmp_path, kind)
    options = ("--set", "id=id * 10", "--set", "day=upper(day)", "--where", "id < 3")
    planned = lakelog_json("update", uri, *options, "--dry-run")
    done = lakelog_json("update", uri, *options)
    assert (planned["rows"], planned["files"]) == (done["rows"], done["files"])
    assert done["rows"] == 2
    assert done["set"] == {"id": "id * 10", "day": "upper(day)"}
    rows = {(row["id"], row["day"]) for row in read_arrow(uri).to_pylist()}
    assert rows == {(10, "A"), (20, "A"), (3, "b"), (None, "b"), (5, "b")}


def test_rows_of_files_without_statistics_are_counted_all_the_same(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    properties = {"delta.dataSkippingNumIndexedCols": "0"}
    rows = pa.table({"id": [1, 2], "day": ["a", "b"]})
    create_table(uri, rows.schema, partition_by=["day"], properties=properties)
    write_arrow(uri, rows, mode="append")
    log = DeltaLog.for_table(uri)
    bare = [replace(file, stats=None) for file in log.snapshot.files()]
    log.start_transaction().commit(bare, Operation.write("Append"))
    assert {file.stats for file in log.update().files()} == {None}
    assert lakelog_json("delete", uri, "--where", "day = 'a'", "--dry-run")["rows"] == 1
    assert lakelog_json("delete", uri, "--dry-run")["rows"] == 2


def test_the_text_says_what_was_done(uri: str) -> None:
    outcome = lakelog("delete", uri, "--where", "id > 2", "--dry-run")
    assert outcome.lines[-1] == "Nothing was committed (--dry-run)."
    assert "rows that match  2" in outcome.out
    outcome = lakelog("delete", uri, "--where", "id > 2", "--user-metadata", "as asked")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.lines[-1] == "Deleted 2 rows by version 3."
    assert DeltaLog.for_table(uri).history(1)[0].user_metadata == "as asked"
    outcome = lakelog("update", uri, "--set", "id=1", "--where", "id = 1")
    assert outcome.lines[-1] == "Updated 1 row by version 4."
    outcome = lakelog("delete", uri, "--where", "id = 99")
    assert outcome.lines[-1] == "No row matches: nothing was committed."


@pytest.mark.parametrize("options", [("delete",), ("update", "--set", "id=1")])
def test_every_row_needs_a_yes(
    uri: str, options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    command, *rest = options
    outcome = lakelog(command, uri, *rest)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{command.capitalize()} all 5 rows of {uri}?" in outcome.err
    assert "--yes" in outcome.err
    assert lakelog_json(command, uri, *rest, "--dry-run")["rows"] == 5
    assert DeltaLog.for_table(uri).snapshot.version == 2
    found = lakelog_json(command, uri, *rest, "--yes")
    assert (found["version"], found["where"]) == (3, None)
    assert _ids(uri) == ([] if command == "delete" else [1] * 5)


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("", 2)])
def test_on_a_terminal_one_is_asked(
    uri: str, answer: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(answer))
    from lakelog.cli.app import app

    with pytest.raises(SystemExit) as ended:
        app(["delete", uri])
    assert ended.value.code == code
    assert f"Delete all 5 rows of {uri}? [y/N]" in capsys.readouterr().err
    assert (_ids(uri) == []) == (code == 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("delete", "--where", ""), "--where is empty"),
        (("delete", "--where", "  "), "--where is empty"),
        (("delete", "--where", "nope = 1"), "nope"),
        (("delete", "--where", "id = "), "id ="),
        (("update", "--where", "id = 1"), "--set"),
        (("update", "--set", "id"), "is not COLUMN=SQL"),
        (("update", "--set", "id=", "--where", "id = 1"), "is not COLUMN=SQL"),
        (("update", "--set", "id=1", "--set", "id=2", "--where", "id = 1"), "two values"),
        (("update", "--set", "idd=1", "--where", "id = 1"), "idd"),
        (("update", "--set", "day=x y", "--where", "id = 1"), "--set \"name='x'\""),
        (("update", "--set", "day=x", "--where", "id = 1"), "--set \"name='x'\""),
        (("update", "--set", "id=nope", "--where", "id = 1"), "nope"),
    ],
)
@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
def test_what_can_not_be_done_changes_nothing(
    uri: str, options: tuple[str, ...], message: str, dry: tuple[str, ...]
) -> None:
    outcome = lakelog(options[0], uri, *options[1:], *dry)
    assert (outcome.code, outcome.out) == (2, "")
    assert message in outcome.err
    assert DeltaLog.for_table(uri).snapshot.version == 2


def test_an_append_only_table_is_refused_in_a_dry_run_too(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    rows = pa.table({"id": [1]})
    create_table(uri, rows.schema, properties={"delta.appendOnly": "true"})
    for dry in ((), ("--dry-run",)):
        outcome = lakelog("delete", uri, "--where", "id = 1", *dry)
        assert (outcome.code, "DELTA_CANNOT_MODIFY_APPEND_ONLY" in outcome.err) == (2, True)


@pytest.mark.parametrize("verb", ["delete", "update"])
def test_a_lost_race_is_run_again_as_often_as_is_said(
    uri: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = getattr(core, f"{verb}_rows"), 0

    def racing(*given: Any, **named: Any) -> Any:
        nonlocal lost
        if lost:
            lost -= 1
            write_arrow(uri, pa.table({"id": [6], "day": ["b"]}), mode="append")
            raise ConcurrentAppendException("another writer was faster")
        return real(*given, **named)

    monkeypatch.setattr(core, f"{verb}_rows", racing)
    monkeypatch.setattr(Backoff, "wait", lambda *_, **__: None)
    values = ("--set", "id=0") if verb == "update" else ()
    lost = 2
    outcome = lakelog(verb, uri, "--where", "id > 2", *values, "--attempts", "2")
    assert (outcome.code, "another writer was faster" in outcome.err) == (2, True)
    assert _ids(uri) == [1, 2, 3, 5, 6, 6, None]
    lost = 2
    done = lakelog_json(verb, uri, "--where", "id > 2", *values)
    assert (done["rows"], done["version"]) == (6, DeltaLog.for_table(uri).snapshot.version)
    assert _ids(uri) == ([1, 2, None] if verb == "delete" else [*[0] * 6, 1, 2, None])


def test_update_sets_fields_defaults_and_odd_names(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    inner = StructType((StructField("x", LONG), StructField("y", LONG)))
    schema = StructType(
        (StructField("s", inner), column_with_default("d", LONG, "7"), StructField("s.x", LONG))
    )
    create_table(uri, schema, properties={"delta.feature.allowColumnDefaults": "supported"})
    write_arrow(uri, [{"s": {"x": 1, "y": 2}, "d": 0, "s.x": 3}], mode="append")
    sets = ("--set", "s.x=s.y + 1", "--set", "d=DEFAULT", "--set", "`s.x`=9")
    assert lakelog("update", uri, *sets, "--yes").code == 0
    assert read_arrow(uri).to_pylist() == [{"s": {"x": 3, "y": 2}, "d": 7, "s.x": 9}]


def test_no_table_is_one_line(tmp_path: Path) -> None:
    outcome = lakelog("delete", str(tmp_path / "nothing"), "--where", "id = 1")
    assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        ("a=b = c", ("a", "b = c")),
        (" a = 'x=y' ", ("a", "'x=y'")),
        ("`a=b`=1", ("a=b", "1")),
        ("`a``b`=1", ("a`b", "1")),
        ("köln x=`köln x` + 1", ("köln x", "`köln x` + 1")),
        ("a=`b=c`", ("a", "`b=c`")),
        ("s.x=1", ("s.x", "1")),
        ("`a.b`=1", ("`a.b`", "1")),
        ("`a.b`.`c=d` = 1", ("`a.b`.`c=d`", "1")),
    ],
)
def test_assignments_are_split_at_the_first_equals_sign_after_the_name(
    pair: str, expected: tuple[str, str]
) -> None:
    assert list(assignments((pair,)).items()) == [expected]
