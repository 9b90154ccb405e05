"""`lakelog write`, `merge`, `alter`, `clone` and `convert`: what the core does, for a shell."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog.core import DeltaLog, create_table, read_arrow, write_arrow
from lakelog.core.schema import column_with_default
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def rows(uri: str) -> list[dict[str, Any]]:
    return sorted(read_arrow(uri).to_pylist(), key=str)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """The same rows in each form."""
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("id,name\n1,a\n2,b\n")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return {form: str(tmp_path / f"a.{form}") for form in ("parquet", "csv", "jsonl")}


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_rows_of_files_are_written_and_merged(
    form: str, files: dict[str, str], tmp_path: Path
) -> None:
    uri, given = str(tmp_path / "t"), files[form]
    assert lakelog_json("write", uri, given) == {"table": uri, "version": 0, "mode": "error"}
    assert rows(uri) == ROWS
    assert lakelog("write", uri, given).code == 2
    found = lakelog_json("write", uri, given, given, "--mode", "append", "--user-metadata", "twice")
    assert found["version"] == 1
    assert len(rows(uri)) == 6
    where = ("--mode", "overwrite", "--replace-where", "id < 9", "--format")
    lakelog_json("write", uri, given, *where, {"jsonl": "json"}.get(form, form))
    merged = lakelog_json(
        "merge", uri, given, "--on", "target.id = source.id", "--delete", "source.id = 2"
    )
    assert rows(uri) == ROWS[:1]
    assert merged["metrics"]["numTargetRowsDeleted"] == 1


def test_types_and_columns_are_those_of_the_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    fields = ("id smallint", "price decimal(9,2)", "day date", "ok boolean")
    create_table(uri, ", ".join(fields))
    text = '{"id": 7, "price": "1.50", "day": "2024-05-06"}\n{"id": 8, "ok": true}\n'
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "a.csv").write_text("id,price,day,ok\n7,1.50,2024-05-06,\n8,,,true\n")
    for name in ("a.json", "a.csv"):
        lakelog_json("write", uri, str(tmp_path / name), "--mode", "overwrite")
        assert [row["id"] for row in rows(uri)] == [7, 8]
        assert str(rows(uri)[0]["price"]) == "1.50"
    made = str(tmp_path / "made")
    lakelog_json("write", made, str(tmp_path / "a.csv"), "--schema", ", ".join(fields))
    assert rows(made) == rows(uri)


def test_what_a_file_lacks_is_missing_and_what_any_file_has_is_written(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    create_table(
        uri,
        [
            *map(pa.field, ("id", "more"), (pa.int64(), pa.int64())),
            column_with_default("d", "int", "5"),
        ],
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    for name, text in {
        "a.json": '{"id": 1}\n',
        "b.json": '{"id": 2}\n{"id": 3, "more": 9}\n',
        "a.csv": "id\n4\n",
        "b.csv": "id,more\n5,9\n",
    }.items():
        (tmp_path / name).write_text(text)
    for form in ("json", "csv"):
        given = [str(tmp_path / f"{each}.{form}") for each in "ab"]
        lakelog_json("write", uri, *given, "--mode", "append")
    assert {row["id"]: row["more"] for row in rows(uri)} == {1: None, 2: None, 3: 9, 4: None, 5: 9}
    assert {row["d"] for row in rows(uri)} == {5}


def test_files_of_unknown_form_or_none_are_reported(tmp_path: Path, files: dict[str, str]) -> None:
    uri, odd = str(tmp_path / "t"), tmp_path / "odd"
    odd.write_text("zzz")
    assert "--format" in lakelog("write", uri, str(odd)).err
    assert "--format" in lakelog("write", uri, files["csv"], files["parquet"]).err
    for form in ("parquet", "json"):
        outcome = lakelog("write", uri, str(odd), "--format", form)
        assert outcome.code == 2
        assert str(odd) in outcome.err
        assert "Traceback" not in outcome.err
    assert not DeltaLog.for_table(uri).table_exists()


def test_columns_constraints_and_clustering_are_changed(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"id": [1], "n": [2]}, properties={"delta.columnMapping.mode": "name"})
    found = lakelog_json(
        "alter",
        *(uri, "--add", "x int, y string", "--add-constraint", "pos=id > 0"),
        *("--rename", "n=m", "--cluster-by", "id"),
    )
    assert [each["version"] for each in found["changes"]] == [1, 2, 3, 4]
    snapshot = DeltaLog.for_table(uri).snapshot
    assert snapshot.schema.names == ["id", "m", "x", "y"]
    lakelog_json("alter", uri, "--drop-constraint", "pos", "--drop", "x", "--drop", "y")
    assert DeltaLog.for_table(uri).snapshot.schema.names == ["id", "m"]
    assert lakelog("alter", uri).code == 2
    assert "no = between" in lakelog("alter", uri, "--rename", "m").err


def test_a_table_is_cloned_and_a_folder_converted(tmp_path: Path, files: dict[str, str]) -> None:
    uri, copy = str(tmp_path / "t"), str(tmp_path / "copy")
    lakelog_json("write", uri, files["csv"])
    for more in ((), ("--deep",), ("--replace",)):
        found = lakelog_json("clone", uri, copy, *more)
        assert (found["target"], found["source_version"]) == (copy, 0)
        assert rows(copy) == ROWS
        copy = str(tmp_path / f"copy{more}")
        if more == ("--deep",):
            create_table(copy, "other int")
    copy = found["target"]
    assert lakelog("clone", uri, copy).code == 2
    folder = tmp_path / "folder" / "day=1"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    made = lakelog_json("convert", str(folder.parent), "--partition-schema", "day int")
    assert made == {"table": str(folder.parent), "version": 0, "files": 1}
    assert rows(str(folder.parent)) == [{"id": 1, "day": 1}]
