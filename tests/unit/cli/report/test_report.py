"""`lakelog report`: its page has the numbers of the other commands, and a table's texts as text."""

from __future__ import annotations

import csv
import io
import json
import re
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pytest

from lakelog.cli.files import live_numbers
from lakelog.cli.report.facts import KINDS, facts, kind_of
from lakelog.cli.report.page import page
from lakelog.cli.report.words import FEATURES, PROPERTIES
from lakelog.core import DeltaLog, create_table, delete_rows, optimize, write_arrow
from lakelog.core.engine.commit import FEATURES as KNOWN_FEATURES
from lakelog.core.engine.commit import KNOWN
from lakelog.core.engine.log import read_stats
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.html_page import HOSTILE, Seen
from support.raw_log import PROTOCOL, RawLog, metadata
from support.terminal import lakelog, lakelog_json

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def table(tmp_path: Path) -> str:
    uri = str(tmp_path / "orders")
    for day in range(3):
        rows = pa.table({"id": range(day * 10, day * 10 + 10), "day": [f"d{day}"] * 10})
        write_arrow(uri, rows, mode="append", partition_by=["day"])
        write_arrow(uri, rows, mode="append", partition_by=["day"])
    delete_rows(uri, "id = 3")
    return uri


def made(uri: str, *more: str, path: Path) -> Seen:
    outcome = lakelog("report", uri, "-o", str(path), *more)
    assert outcome.code == 0, outcome.err
    assert str(path) in outcome.out
    return Seen(path.read_text("utf-8"))


def found(uri: str) -> dict[str, Any]:
    gathered: dict[str, Any] = lakelog_json("report", uri)
    return gathered


def test_the_numbers_are_those_of_the_other_commands(table: str, tmp_path: Path) -> None:
    seen = made(table, path=tmp_path / "r.html")
    files = lakelog_json("files", table, "--summary")
    texts = " ".join(seen.texts)
    for number in (f"{files['rows']:,}", str(files["files"])):
        assert number in texts
    rows = seen.tables["partition-table"]
    assert [row[0] for row in rows[1:]] == [
        each["partition_values"]["day"] for each in files["partitions"]
    ]
    assert [row[1] for row in rows[1:]] == [str(each["files"]) for each in files["partitions"]]
    assert [row[1] for row in seen.tables["file-sizes"][1:]] == [
        f"{each['files']:,}" for each in files["sizes"]
    ]
    history = lakelog_json("history", table, "--all")["entries"]
    assert [(row[0], row[2]) for row in seen.tables["versions"][1:]] == [
        (str(each["version"]), each["operation"]) for each in history
    ]
    newest = seen.tables["growth-rows"][-1]
    assert newest[0::2] == [str(history[0]["version"]), f"{files['rows']:,}"]
    plan = lakelog_json("optimize", table, "--dry-run")["metrics"]
    assert f"{plan['numFilesRemoved']} files" in texts


def test_what_killed_writers_left_in_the_log_is_counted(table: str, tmp_path: Path) -> None:
    assert "Drafts, under way or left behind none" in " ".join(
        made(table, path=tmp_path / "r.html").texts
    )
    draft = f".{9:020}.json.{uuid.uuid4()}.tmp"
    (Path(table) / "_delta_log" / draft).write_text("abc")
    log = found(table)["log"]
    assert (log["drafts"], log["draft_bytes"]) == (1, 3)
    assert "1 (3 B)" in " ".join(made(table, path=tmp_path / "r.html").texts)


def test_each_table_is_there_as_csv(table: str, tmp_path: Path) -> None:
    seen = made(table, path=tmp_path / "r.html")
    links = [attrs for tag, attrs in seen.tags if tag == "a" and "download" in attrs]
    assert {each["download"] for each in links} == {f"{name}.csv" for name in seen.tables}
    for each in links:
        start, _, text = each["href"].partition(",")
        assert start == "data:text/csv;charset=utf-8"
        rows = list(csv.reader(io.StringIO(unquote(text))))
        shown = seen.tables[each["download"].removesuffix(".csv")]
        assert rows[0] == shown[0]
        assert len(rows) == len(shown)


def test_a_page_asks_no_one_and_runs_its_own_script_alone(table: str, tmp_path: Path) -> None:
    seen = made(table, path=tmp_path / "r.html")
    names = [tag for tag, _ in seen.tags]
    assert names.count("script") == names.count("style") == 1
    assert not {"img", "link", "iframe", "object", "embed", "form", "base"} & set(names)
    for tag, attrs in seen.tags:
        assert not [name for name in attrs if name.startswith("on") or name == "style"], tag
        for name in ("href", "src", "xlink:href", "action"):
            assert re.match(r"#|data:text/csv|$", attrs.get(name, "")), (tag, attrs)
    policy = next(a["content"] for t, a in seen.tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    # Each link within the page leads somewhere.
    ids = {attrs["id"] for _, attrs in seen.tags if "id" in attrs}
    inner = {a["href"][1:] for _, a in seen.tags if a.get("href", "").startswith("#")}
    assert inner <= ids
    # Who sees no picture hears what it shows; each field and each region has a name.
    assert all(a.get("aria-label") for t, a in seen.tags if t == "svg" and "aria-hidden" not in a)
    assert all(a.get("aria-label") for _, a in seen.tags if a.get("role") == "region")


@pytest.mark.parametrize("text", HOSTILE)
def test_what_a_table_says_is_text(tmp_path: Path, text: str) -> None:
    uri = str(tmp_path / "t")
    string = PrimitiveType("string")
    name = f"n{text}"
    create_table(
        uri,
        StructType((StructField(name, string), StructField("p", string))),
        name=text,
        description=text,
        partition_by=["p"],
        properties={"delta.columnMapping.mode": "name", f"own.{text}": text},
        user_metadata=text,
    )
    short = text[:50]
    write_arrow(uri, pa.table({name: [text], "p": [short]}), mode="append", user_metadata=text)
    seen = made(uri, path=tmp_path / "r.html")
    assert [tag for tag, _ in seen.tags].count("script") == 1
    assert not [tag for tag, _ in seen.tags if tag in ("img", "h1")][1:]
    said = " ".join(seen.texts)
    assert "\x1b" not in said
    assert "\u202e" not in said
    if text[0] not in "\x1b\u202e":
        assert text[:100] in said
    assert max(len(cell) for rows in seen.tables.values() for row in rows for cell in row) < 600
    for _, attrs in seen.tags:
        if "download" in attrs:
            rows = list(csv.reader(io.StringIO(unquote(attrs["href"].partition(",")[2]))))
            assert not [c for row in rows for c in row if c.startswith(("=", "@", "+"))]


def holed(tmp_path: Path) -> str:
    uri = str(tmp_path / "holed")
    for number in range(5):
        write_arrow(uri, pa.table({"a": [number]}), mode="append")
    Path(uri, "_delta_log", f"{2:020}.json").unlink()
    return uri


def broken(tmp_path: Path) -> str:
    uri = str(tmp_path / "broken")
    for number in range(3):
        write_arrow(uri, pa.table({"a": [number]}), mode="append")
    Path(uri, "_delta_log", f"{2:020}.json").write_text("{torn")
    return uri


def unknown(tmp_path: Path) -> str:
    features = {"readerFeatures": ["ofTomorrow"], "writerFeatures": ["ofTomorrow"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    RawLog(tmp_path / "unknown").commit(protocol, metadata())
    return str(tmp_path / "unknown")


@pytest.mark.parametrize(
    ("make", "says", "versions"),
    [(holed, "missing", 4), (broken, f"{2:020}.json", 2), (unknown, "ofTomorrow", 1)],
)
def test_of_a_table_that_cannot_be_opened_it_shows_what_can_be_read(
    tmp_path: Path, make: Callable[[Path], str], says: str, versions: int
) -> None:
    uri = make(tmp_path)
    seen = made(uri, path=tmp_path / "r.html")
    assert says in " ".join(seen.texts)
    assert len(seen.tables["versions"]) == versions + 1
    assert found(uri)["troubles"] or make is unknown


def test_tables_without_rows_files_or_statistics_are_shown(tmp_path: Path) -> None:
    empty = str(tmp_path / "empty")
    create_table(empty, "a bigint")
    seen = made(empty, path=tmp_path / "r.html")
    assert found(empty)["files"]["files"] == 0
    assert seen.tables["column-table"][1][0] == "a"
    bare = RawLog(tmp_path / "bare")
    add = {"path": "x", "partitionValues": {}, "size": 5, "modificationTime": 1, "dataChange": True}
    bare.commit(PROTOCOL, metadata(), {"add": add})
    seen = made(str(tmp_path / "bare"), path=tmp_path / "r.html")
    assert "have no statistics" in " ".join(seen.texts)


def test_a_table_of_whose_versions_none_is_left_is_shown(table: str, tmp_path: Path) -> None:
    DeltaLog.for_table(table).checkpoint()
    for each in (Path(table) / "_delta_log").glob("*.json"):
        each.unlink()
    gathered = found(table)
    assert gathered["troubles"] == []
    assert gathered["history"]["versions"] == gathered["log"]["commits"] == 0
    assert gathered["files"]["rows"] == 58
    assert "58" in made(table, path=tmp_path / "r.html").texts


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ([], "nothing is there"),
        (["none/a.parquet"], "1 of them Parquet files, but no _delta_log"),
        (["none/_delta_log/notes.txt"], "its _delta_log folder holds no commits"),
        (["none"], "it is a file"),
    ],
)
def test_no_table_is_an_error_and_leaves_no_page(
    tmp_path: Path, made: list[str], words: str
) -> None:
    for each in made:
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).touch()
    outcome = lakelog("report", str(tmp_path / "none"), "-o", str(tmp_path / "r.html"))
    assert outcome.code == 2
    assert f"no Delta table at {tmp_path / 'none'}" in outcome.err
    assert words in outcome.err
    assert not (tmp_path / "r.html").exists()


def test_a_page_is_replaced_whole_and_a_folder_that_is_not_there_is_named(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")
    made(table, path=path)
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")
    outcome = lakelog("report", table, "-o", str(tmp_path / "no" / "r.html"))
    assert outcome.code == 2
    assert str(tmp_path / "no") in outcome.err
    assert lakelog("report", table, "--json", "-o", str(path)).code == 2
    monkeypatch.chdir(tmp_path)
    assert lakelog("report", table).code == 0
    assert (tmp_path / "orders-report.html").exists()
    assert not list(tmp_path.glob(".report-*"))


def test_events_show_who_lost_to_whom(table: str, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    log = DeltaLog.for_table(table, {"spark.lakelog.commitEvents.path": str(file)})
    write_arrow(log, pa.table({"id": [7], "day": ["d0"]}), mode="append")
    record = json.loads(file.read_text().split("\n")[0])
    won = {**record, "job": "load"}
    lost = {
        **record,
        "outcome": "conflict-failed",
        "conflict": "ConcurrentAppendException",
        "job": "clean",
        "txn_id": "other",
        "winner_txn_id": record["txn_id"],
        "winner_version": record["version"],
        "winners": 1,
    }
    file.write_text("".join(f"{json.dumps(each)}\n" for each in (won, lost)))
    seen = made(table, "--events", str(file), path=tmp_path / "r.html")
    assert seen.tables["who-lost"] == [["Job", "load"], ["clean", "1 lost, 0 rebased"]]
    other = str(tmp_path / "other")
    write_arrow(other, pa.table({"a": [1]}))
    outcome = lakelog("report", other, "--events", str(file), "-o", str(tmp_path / "o.html"))
    assert outcome.code == 0
    assert "No event is about the table" in outcome.out


def test_advice_is_ranked_and_names_commands_that_help(table: str) -> None:
    before = found(table)
    assert before["advice"][0]["command"].split(" ")[1] == "optimize"
    weights = [each["weight"] for each in before["advice"]]
    assert weights == sorted(weights, reverse=True)
    optimize(table)
    after = found(table)
    assert not [each for each in after["advice"] if "optimize" in each["command"]]
    assert after["files"]["rows"] == before["files"]["rows"]


def test_secrets_of_the_conf_are_on_no_page(table: str, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    create_table(str(tmp_path / "s"), "a int", description="the key is hunter2hunter2")
    secret = {"spark.hadoop.fs.s3a.secret.key": "hunter2hunter2"}
    assert lakelog("report", str(tmp_path / "s"), "-o", str(path), conf=secret).code == 0
    assert "hunter2" not in path.read_text("utf-8")


def test_all_features_and_kinds_of_operations_have_words() -> None:
    assert set(FEATURES) == set(KNOWN_FEATURES)
    assert set(PROPERTIES) <= set(KNOWN)
    assert {
        kind_of(each) for each in ("WRITE", "MERGE", "OPTIMIZE", "SET TBLPROPERTIES", None)
    } == (set(KINDS))


def test_a_long_history_makes_a_small_page(tmp_path: Path) -> None:
    raw = RawLog(tmp_path / "t")
    raw.commit(PROTOCOL, metadata())
    for number in range(1500):
        info = {"commitInfo": {"operation": "WRITE", "userMetadata": "n" * 2000}}
        add = {"path": f"f{number}", "partitionValues": {}, "size": 1, "modificationTime": 1}
        raw.commit(info, {"add": {**add, "dataChange": True}})
    gathered = facts(DeltaLog.for_table(str(tmp_path / "t")), (), lambda _: None)
    assert gathered["history"]["versions"] == 1501
    assert sum(sum(e[k] for k in KINDS) for e in gathered["history"]["by_time"]) == 1501
    assert len(page(gathered, "now")) < 1_500_000


def test_the_statistics_of_a_version_are_parsed_once_for_its_row_counts(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As of a table with very many files, of which no plan is made.
    monkeypatch.setattr("lakelog.cli.report.facts._LISTED", 1)
    log = DeltaLog.for_table(table)
    live = log.snapshot.num_files
    parsed: list[int] = []

    def counted(texts: Any, wanted: Any) -> Any:
        if len(texts) == live:
            parsed.append(live)
        return read_stats(texts, wanted)

    monkeypatch.setattr(live_numbers, "read_stats", counted)
    gathered = facts(log, (), lambda _: None)
    assert gathered["optimize"]["estimated"]
    assert gathered["files"]["rows"] == gathered["what"]["rows"] == 58
    assert sum(each["rows"] for each in gathered["files"]["partitions"]) == 58
    assert parsed == [live]


def test_row_counts_are_kept_no_longer_than_their_files(table: str) -> None:
    files = DeltaLog.for_table(table).snapshot.file_table
    kept = files.slice(0)
    before = len(live_numbers._counted)
    counts = live_numbers.row_counts(kept)
    assert live_numbers.row_counts(kept) is counts
    assert len(live_numbers._counted) == before + 1
    del kept
    assert len(live_numbers._counted) == before
