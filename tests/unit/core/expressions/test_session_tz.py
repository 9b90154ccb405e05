from __future__ import annotations

import ast
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, Operation, delete_rows, update_rows, write_arrow
from lakelog.core.arrow.time_zones import zone_of
from lakelog.core.errors import ConcurrentAppendException

if TYPE_CHECKING:
    from collections.abc import Callable

REPO = Path(__file__).parents[4]
TAKES_ZONE = {
    "FileSelection",
    "cast_text",
    "RowReader",
    "PendingCommit",
    "ruled_rows",
    "evaluate_value",
    "files_in_partitions",
    "find_files",
    "keep_files",
    "matches_partitions",
    "matching_row_groups",
    "normalize_filter",
    "parse_filter",
    "partition_key",
    "partition_keys",
    "typed_partition_columns",
    "typed_partition_table",
}
AS_GIVEN = {
    ("spark/reading/layout.py", "cast_text"),
}
"""A number."""


@pytest.fixture(scope="module")
def calls() -> dict[str, list[tuple[Path, ast.Call]]]:
    """Where each of `TAKES_ZONE` is called."""
    found: dict[str, list[tuple[Path, ast.Call]]] = {name: [] for name in TAKES_ZONE}
    for file in [*(REPO / "core").rglob("*.py"), *(REPO / "spark").rglob("*.py")]:
        where = file.as_posix().rpartition("/lakelog/")[2]
        for node in ast.walk(ast.parse(file.read_text())):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name in found and (where, name) not in AS_GIVEN:
                found[name].append((file, node))
    return found


@pytest.mark.parametrize("name", sorted(TAKES_ZONE))
def test_every_call_that_depends_on_the_sessions_zone_is_told_it(
    calls: dict[str, list[tuple[Path, ast.Call]]], name: str
) -> None:
    assert calls[name]
    for file, node in calls[name]:
        shown = ast.unparse(node)
        assert re.search("session_tz|context|EvalContext", shown), f"{file}:{node.lineno}"


ZONES = ["America/New_York", "+05:30", "UTC"]
NOON = datetime.fromisoformat("2024-03-10 12:00:00")


def rows(zone: str) -> pa.Table:
    """A minute before noon of that zone, noon, and a minute after."""
    noon = NOON.replace(tzinfo=zone_of(zone)).astimezone(UTC)
    moments = [noon + timedelta(minutes=i) for i in (-1, 0, 1)]
    kind = pa.timestamp("us", "UTC")
    return pa.table({"i": [0, 1, 2], "t": pa.array(moments, kind), "p": pa.array(moments, kind)})


def conf(zone: str) -> dict[str, str]:
    return {"spark.sql.session.timeZone": zone}


def left(table: Path) -> list[Any]:
    return sorted(DeltaLog.for_table(table).update().to_arrow(columns=["i"])["i"].to_pylist())


def read(table: Path, where: Any, zone: str) -> list[int]:
    found = DeltaLog.for_table(table, conf(zone)).update().to_arrow(where=where)
    return sorted({0, 1, 2} - set(found["i"].to_pylist()))


def deleted(table: Path, where: Any, zone: str) -> list[int]:
    delete_rows(table, where, conf=conf(zone))
    return left(table)


def updated(table: Path, where: Any, zone: str) -> list[int]:
    update_rows(table, {"i": 9}, where, conf=conf(zone))
    return [i for i in left(table) if i != 9]


def replaced(table: Path, where: Any, zone: str) -> list[int]:
    none = rows(zone).slice(0, 0)
    write_arrow(table, none, mode="overwrite", replace_where=where, conf=conf(zone))
    return left(table)


def files(table: Path, where: Any, zone: str) -> list[int]:
    txn = DeltaLog.for_table(table, conf(zone)).start_transaction()
    txn.commit([add.remove(0) for add in txn.filter_files(where)], Operation("DELETE", {}))
    return left(table)


BY_ROWS, BY_FILES = (read, deleted, updated), (read, deleted, updated, replaced, files)
CASES = [
    *((door, column, text) for door in BY_ROWS for column in "tp" for text in (True, False)),
    *((door, "p", True) for door in (replaced, files)),
    (files, "p", False),
]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("door", "column", "text"), CASES)
def test_a_time_without_a_zone_is_that_of_the_session(
    tmp_path: Path, door: Callable[..., Any], zone: str, column: str, text: bool
) -> None:
    table = tmp_path / "t"
    write_arrow(table, rows(zone), partition_by=["p"] if column == "p" else None, mode="append")
    where = f"{column} >= '2024-03-10 12:00:00'" if text else [(column, ">=", NOON)]
    assert door(table, where, zone) == [0]


def spell(table: Path, zone: str) -> None:
    """Write the partition values of the last commit as older writers did: without a zone."""
    (commit,) = (table / "_delta_log").glob("*.json")
    text = commit.read_text()
    for moment in rows(zone)["p"].to_pylist():
        local = moment.astimezone(zone_of(zone)).replace(tzinfo=None)
        mark = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert mark in text
        text = text.replace(f'"{mark}"', f'"{local.isoformat(" ")}"')
    commit.write_text(text)


@pytest.mark.parametrize("door", BY_FILES)
def test_a_partition_without_a_zone_is_in_that_of_the_session(
    tmp_path: Path, door: Callable[..., Any]
) -> None:
    table, zone = tmp_path / "t", "Asia/Kolkata"
    write_arrow(table, rows(zone), partition_by=["p"], mode="append")
    spell(table, zone)
    found = DeltaLog.for_table(table, conf(zone)).update().to_arrow(columns=["i", "p"])
    assert found.sort_by("i")["p"] == rows(zone)["p"]
    assert door(table, "p >= TIMESTAMP '2024-03-10 06:30:00Z'", zone) == [0]


@pytest.mark.parametrize("at", ["11:00:00", "12:00:00"])
def test_conflicts_are_judged_in_the_zone_of_the_session(tmp_path: Path, at: str) -> None:
    table, zone = tmp_path / "t", "Asia/Kolkata"
    write_arrow(table, rows(zone), partition_by=["p"], mode="append")
    txn = DeltaLog.for_table(table, conf(zone)).start_transaction()
    read = txn.filter_files("p >= '2024-03-10 12:00:00'")
    moment = datetime.fromisoformat(f"2024-03-10 {at}").replace(tzinfo=zone_of(zone))
    new = pa.table({"i": [3], "t": [moment], "p": [moment]}, schema=rows(zone).schema)
    write_arrow(table, new, mode="append")
    if at == "12:00:00":
        with pytest.raises(ConcurrentAppendException):
            txn.commit([add.remove(0) for add in read], Operation("DELETE", {}))
    else:
        assert txn.commit([add.remove(0) for add in read], Operation("DELETE", {})) == 2


def test_a_folder_of_a_time_is_converted_in_the_zone_of_the_session(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from lakelog.core import convert_to_delta

    folder = tmp_path / "t" / "p=2024-03-10 12%3A00%3A00"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"i": [1]}), folder / "x.parquet")
    convert_to_delta(tmp_path / "t", {"p": "timestamp"}, conf=conf("Asia/Kolkata"))
    found = DeltaLog.for_table(tmp_path / "t").update().to_arrow()
    assert found["p"][0].as_py() == datetime(2024, 3, 10, 6, 30, tzinfo=UTC)


@pytest.mark.parametrize("suffix", ["", "Z", "+01:00"])
def test_bounds_without_a_zone_bound_nothing(suffix: str) -> None:
    from lakelog.core.actions.file_table import files_from_json
    from lakelog.core.expressions.filter import normalize_filter
    from lakelog.core.expressions.prune import keep_files
    from lakelog.core.schema import StructType

    schema = StructType.from_json(b'{"type":"struct","fields":[{"name":"t","type":"timestamp"}]}')
    bound = f'{{"t":"2024-03-10 12:00:00{suffix}"}}'
    stats = f'{{"numRecords":1,"minValues":{bound},"maxValues":{bound},"nullCount":{{"t":0}}}}'
    found = files_from_json([{"path": "a", "partitionValues": {}, "stats": stats}])
    far = normalize_filter("t > TIMESTAMP '2024-03-10 20:00:00Z'", schema)
    assert keep_files(found, far, schema, []).to_pylist() == [suffix == ""]
