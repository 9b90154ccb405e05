"""The pages of `lakelog ui`: the numbers of the commands, and a table's texts as text."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from lakelog.cli.ui import table_pages
from lakelog.cli.ui.frame import TABS
from lakelog.cli.ui.lake import Lake
from lakelog.cli.ui.table_pages import MOST_ROWS
from lakelog.core import DeltaLog, alter, create_table, delete_rows, write_arrow
from lakelog.core.errors import TableNotFoundError
from lakelog.core.schema import PrimitiveType, StructField, StructType
from support.html_page import HOSTILE, Seen
from support.open_ui import open_ui
from support.raw_log import PROTOCOL, RawLog, add, metadata
from support.terminal import lakelog_json
from support.unity_server import UnityServer, serving
from support.unity_tables import make_table, other_client_commits, write_commit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.open_ui import OpenUi


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    orders = str(folder / "sales" / "orders")
    for day in range(3):
        rows = pa.table({"id": range(day * 10, day * 10 + 10), "day": [f"d{day}"] * 10})
        write_arrow(orders, rows, mode="append", partition_by=["day"])
    delete_rows(orders, "id = 3")
    alter.add_columns(DeltaLog.for_table(orders), "note string")
    create_table(str(folder / "empty"), "a bigint")
    holed = RawLog(folder / "holed").commit(PROTOCOL, metadata())
    for name in "abc":
        holed.commit(add(name))
    holed.path(2).unlink()
    (folder / "nothing").mkdir()
    (folder / "file").write_text("x")
    return folder


@pytest.fixture(scope="module")
def ui(lake: Path) -> Iterator[OpenUi]:
    with open_ui(str(lake)) as opened:
        yield opened


def test_the_list_has_the_numbers_of_the_commands(ui: OpenUi, lake: Path) -> None:
    table = ui.see("/").tables["tables"]
    rows = {row[0]: row for row in table[1:]}
    assert rows.keys() == {"sales/orders", "empty", "holed"}
    files = lakelog_json("files", str(lake / "sales" / "orders"), "--summary")
    _, version, count, _, number, time, by_day, health = rows["sales/orders"]
    assert (version, count, number) == ("4", f"{files['rows']:,}", f"{files['files']:,}")
    newest = lakelog_json("history", str(lake / "sales" / "orders"))["entries"][0]
    assert time == newest["timestamp"][:19].replace("T", " ")
    assert by_day.strip() == "5"
    assert health.startswith("fine")
    assert rows["empty"][1:3] == ["0", "0"]
    assert rows["holed"][1:3] == ["3", ""]
    assert "to fix" in rows["holed"][-1]


def test_the_overview_is_the_report(ui: OpenUi, lake: Path) -> None:
    seen = ui.see(ui.table("orders"))
    found = lakelog_json("report", str(lake / "sales" / "orders"))
    assert [row[0] for row in seen.tables["versions"][1:]] == [
        str(each["version"]) for each in found["history"]["list"]
    ]
    assert [row[:2] for row in seen.tables["partition-table"][1:]] == [
        [each["partition_values"]["day"], str(each["files"])]
        for each in found["files"]["partitions"]
    ]
    assert f"{found['files']['rows']:,}" in seen.texts


def test_the_history_has_all_versions_and_leads_to_each(ui: OpenUi, lake: Path) -> None:
    path = ui.table("orders")
    seen = ui.see(f"{path}history")
    entries = lakelog_json("history", str(lake / "sales" / "orders"), "--all")["entries"]
    at = seen.tables["versions"][0].index("Version")
    assert [row[at : at + 3 : 2] for row in seen.tables["versions"][1:]] == [
        [str(each["version"]), each["operation"]] for each in entries
    ]
    links = {each["href"] for tag, each in seen.tags if tag == "a"}
    assert {f"{path}version?v={each['version']}" for each in entries} <= links
    older = ui.see(f"{path}history?before=1").tables["versions"]
    assert [row[at] for row in older[1:]] == ["1", "0"]


def test_long_histories_come_in_parts(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "long").create()
    for number in range(1, 120):
        log.commit(add(f"f{number}"))
    with open_ui(str(tmp_path / "long")) as ui:
        path, found = f"{ui.table('long')}history", list[str]()
        while path:
            seen = ui.see(path)
            at = seen.tables["versions"][0].index("Version")
            found += [row[at] for row in seen.tables["versions"][1:]]
            links = re.findall(r'<a href="([^"]*)">Older</a>', ui.get(path))
            path = links[0] if links else ""
        assert found == [str(each) for each in reversed(range(120))]


@pytest.mark.parametrize("version", [0, 2, 4])
def test_time_travel_shows_the_table_as_it_was(ui: OpenUi, lake: Path, version: int) -> None:
    uri = str(lake / "sales" / "orders")
    seen = ui.see(f"{ui.table('orders')}version?v={version}")
    was = lakelog_json("describe", uri, "--version", str(version))
    texts = dict(zip(seen.texts, seen.texts[1:], strict=False))
    assert (texts["Rows"], texts["Files"]) == (f"{was['rows']:,}", f"{was['files']:,}") or (
        f"{was['rows']:,}" in seen.texts
    )
    assert [row[0] for row in seen.tables["columns"][1:]] == [
        each["name"] for each in was["schema"]["fields"]
    ]
    commit = dict(row for row in seen.tables["commit"][1:])
    entry = next(
        each
        for each in lakelog_json("history", uri, "--all")["entries"]
        if each["version"] == version
    )
    assert (commit["version"], commit["operation"]) == (str(version), entry["operation"])
    sample = lakelog_json("sample", uri, "--version", str(version))["rows"]
    assert [row[0] for row in seen.tables["rows"][1:]] == [str(each["id"]) for each in sample]


def test_a_time_leads_to_its_version(ui: OpenUi, lake: Path) -> None:
    uri = str(lake / "sales" / "orders")
    entries = lakelog_json("history", uri, "--all")["entries"]
    at = entries[1]["timestamp"].removesuffix("Z")
    assert dict(ui.see(f"{ui.table('orders')}version?at={at}").tables["commit"][1:])["version"] == (
        str(entries[1]["version"])
    )
    assert "1999" in ui.get(f"{ui.table('orders')}version?at=1999-01-01T00:00:00", 400)


def test_rows_are_those_of_the_command(ui: OpenUi, lake: Path) -> None:
    uri = str(lake / "sales" / "orders")
    seen = ui.see(f"{ui.table('orders')}rows?v=3&where=id+%3E+12&columns=day,+id&limit=4")
    argv = ("--version", "3", "--where", "id > 12", "--column", "day", "--column", "id")
    rows = lakelog_json("sample", uri, *argv, "--limit", "4")["rows"]
    assert seen.tables["rows"] == [
        ["day", "id"],
        *([each["day"], str(each["id"])] for each in rows),
    ]
    nulls = ui.see(f"{ui.table('orders')}rows?limit=1").tables["rows"]
    assert nulls[1][nulls[0].index("note")] == "null"
    assert "No rows." in ui.get(f"{ui.table('orders')}rows?where=id+%3C+0")


def test_no_more_rows_are_shown_than_a_page_bears(tmp_path: Path) -> None:
    write_arrow(str(tmp_path / "t"), {"a": list(range(MOST_ROWS + 500))})
    with open_ui(str(tmp_path / "t")) as ui:
        seen = ui.see(f"{ui.table('t')}rows?limit=999999")
    assert len(seen.tables["rows"]) == MOST_ROWS + 1


def test_a_filter_that_finds_nothing_ends_in_time_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_arrow(str(tmp_path / "t"), {"a": list(range(1000)), "s": ["x"] * 1000})
    asked = "rows?where=s+LIKE+'%25z%25'"
    with open_ui(str(tmp_path / "t")) as ui:
        assert "seconds were searched" not in ui.get(ui.table("t") + asked)
        monkeypatch.setattr(table_pages, "_SECONDS", -1.0)
        page = ui.get(ui.table("t") + asked)
        assert "seconds were searched" in page
        assert "No rows." in page
        found = ui.see(f"{ui.table('t')}rows?where=a+%3D+7").tables["rows"]
        assert found[1:] == [["7", "x"]]


FAR = ("9" * 5000, "--5", "-7", "1e400", "99999999999999999999", "\u00b2", "")


@pytest.mark.parametrize("text", FAR, ids=range(len(FAR)))
def test_numbers_that_no_engine_counted_keep_no_page_from_being_shown(
    tmp_path: Path, text: str
) -> None:
    metrics = dict.fromkeys(("numOutputRows", "numFiles", "executionTimeMs"), text)
    info = {"commitInfo": {"operation": "WRITE", "operationMetrics": metrics}}
    log = RawLog(tmp_path / "t").create()
    for number in range(3):
        log.commit(info, add(f"f{number}", stats=f'{{"numRecords":{text or "1" + "0" * 19}}}'))
    with open_ui(log.table) as ui:
        path = ui.table("t")
        for tab, table in (("", "versions"), ("history", "versions"), ("version", "commit")):
            assert "WRITE" in [each for row in ui.see(path + tab).tables[table] for each in row]


def test_files_are_those_of_the_command_page_by_page(tmp_path: Path) -> None:
    log = RawLog(tmp_path / "t").create()
    log.commit(*(add(f"f{number:03}", size=number) for number in range(250)))
    listed = lakelog_json("files", log.table, "--all")["list"]
    with open_ui(log.table) as ui:
        path, found = f"{ui.table('t')}files", list[str]()
        while path:
            seen = ui.see(path)
            found += [row[-1] for row in seen.tables["files"][1:]]
            links = re.findall(r'<a href="([^"]*)">Next</a>', ui.get(path))
            path = links[0].replace("&amp;", "&") if links else ""
        assert found == [each["path"] for each in listed]
        assert "250 files" in ui.get(f"{ui.table('t')}files?from=100000")


def test_two_versions_are_compared_as_by_the_command(ui: OpenUi, lake: Path) -> None:
    found = lakelog_json("diff", str(lake / "sales" / "orders"), "1", "4")
    seen = ui.see(f"{ui.table('orders')}diff?from=1&to=4")
    numbers = {row[0]: row[1:] for row in seen.tables["numbers"][1:]}
    for name in ("files", "rows"):
        assert numbers[name][:2] == [f"{found[end][name]:,}" for end in ("from", "to")]
    assert [row[:2] for row in seen.tables["changed-columns"][1:]] == [
        [each["column"], each["change"]] for each in found["columns"]
    ]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("version?v=-1", "no whole number"),
        ("version?v=x%00", "no whole number"),
        ("version?v=99999999999999999999", "no whole number"),
        ("version?at=yesterday", "yesterday"),
        ("history?before=1.5", "no whole number"),
        ("rows?limit=all", "no whole number"),
    ],
)
def test_a_wrong_address_is_answered_with_what_is_wrong(ui: OpenUi, asked: str, words: str) -> None:
    assert words in ui.get(ui.table("orders") + asked, 400)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("version?v=77", "77"),
        ("rows?v=77", "77"),
        ("rows?where=id+%3E", "id"),
        ("rows?where=nothing+%3D+1", "nothing"),
        ("rows?columns=nothing", "nothing"),
        ("files?where=nothing+%3D+1", "nothing"),
        ("rows?where=rpad(day,2000000000,'b')='x'", "more than 67,108,864 characters"),
        ("rows?where=repeat(day,200000000)='x'", "more than 67,108,864 characters"),
        ("rows?where=lpad('a',2000000000)=day", "only Spark can evaluate"),
        ("rows?where=space(2000000000)=day", "only Spark can evaluate"),
        ("diff?from=1&to=77", "77"),
    ],
)
def test_what_can_not_be_shown_is_said_where_it_was_asked(
    ui: OpenUi, asked: str, words: str
) -> None:
    seen = ui.see(ui.table("orders") + asked)
    told = [tag for tag, each in seen.tags if tag == "p" and each.get("class") == "trouble"]
    assert told
    assert words in " ".join(seen.texts)
    assert [tag for tag, _ in seen.tags if tag == "form"]


@pytest.mark.parametrize(
    "path", ["/x", "/table/", "/table/0/", "/table/{}/x", "/table/{}/history/x"]
)
def test_other_addresses_lead_nowhere(ui: OpenUi, path: str) -> None:
    key = ui.table("orders").split("/")[2]
    assert "There is no such page" in ui.get(path.format(key), 404)


def test_of_a_log_with_holes_there_is_shown_what_can_be(ui: OpenUi) -> None:
    path = ui.table("holed")
    assert "Missing from the log" in ui.get(f"{path}history")
    assert [row[2] for row in ui.see(f"{path}history").tables["versions"][1:]] == ["3", "1", "0"]
    assert "has gaps" in ui.get(f"{path}version?v=3")
    assert "commit" in ui.see(f"{path}version?v=3").tables
    assert "has gaps" not in ui.get(f"{path}version?v=1")
    assert "has gaps" in ui.get(path)
    assert "has gaps" in ui.get(f"{path}rows")


def test_a_table_that_vanishes_is_said_to_be_gone(tmp_path: Path) -> None:
    uri = str(tmp_path / "lake" / "t")
    write_arrow(uri, {"a": [1]})
    with open_ui(str(tmp_path / "lake")) as ui:
        path = ui.table("t")
        ui.get(path)
        shutil.rmtree(uri)
        for tab in TABS:
            if tab != "conflicts":
                assert uri in ui.get(f"{path}{tab}", 404)


def test_a_table_that_took_the_place_of_another_is_not_mixed_up_with_it(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"a": [1]})
    with open_ui(uri) as ui:
        path = ui.table("t")
        assert ui.see(f"{path}rows").tables["rows"][0] == ["a"]
        assert ["a"] in [row[:1] for row in ui.see(path).tables["column-table"]]
        shutil.rmtree(uri)
        write_arrow(uri, {"other": ["x", "y"]})
        assert ui.see(f"{path}rows").tables["rows"][0] == ["other"]
        assert ["other"] in [row[:1] for row in ui.see(path).tables["column-table"]]


def test_new_versions_are_shown(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    write_arrow(uri, {"a": [1]})
    with open_ui(uri) as ui:
        path = ui.table("t")
        assert [row[0] for row in ui.see(path).tables["versions"][1:]] == ["0"]
        write_arrow(uri, {"a": [2]}, mode="append")
        assert [row[0] for row in ui.see(path).tables["versions"][1:]] == ["1", "0"]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_of_a_table_becomes_a_part_of_a_page(tmp_path: Path, text: str) -> None:
    folder = tmp_path / text.replace("/", "")[:200]
    uri = str(folder / "t")
    column = f"n{text}"
    create_table(
        uri,
        StructType(
            (
                StructField("id", PrimitiveType("long"), metadata={"comment": text}),
                StructField(column, PrimitiveType("string")),
            )
        ),
        name=text,
        description=text,
        partition_by=[column],
        properties={"delta.columnMapping.mode": "name", f"own.{text}": text},
    )
    write_arrow(uri, pa.table({"id": [1], column: [text[:60]]}), mode="append", user_metadata=text)
    kinds = {"script", "img", "h1"}
    with open_ui(str(tmp_path)) as ui:
        path = ui.table("/t")
        pages = [f"{path}{tab}" for tab in TABS] + ["/", "/conflicts", f"{path}diff?from=0&to=1"]
        for each in [*pages, f"{path}rows?where=%3Cscript%3E%22'"]:
            page = ui.get(each)
            seen = Seen(page)
            found = [tag for tag, _ in seen.tags if tag in kinds]
            assert found == ["script", "script", "h1"], each
            assert not [a for _, a in seen.tags for name in a if name.startswith("on")], each
            assert not seen.open, each
            assert "\x1b" not in page
            assert "\u202e" not in page
            assert len(page) < 200_000, each


def test_no_secret_of_the_conf_is_shown(tmp_path: Path) -> None:
    secret = "s3cr3t-v4lue-of-a-key"
    conf = {"spark.hadoop.fs.s3a.secret.key": secret}
    uri = str(tmp_path / "t")
    create_table(uri, "a bigint", properties={"own.key": secret}, description=secret)
    write_arrow(uri, {"a": [1]}, mode="append", user_metadata=secret)
    with open_ui(str(tmp_path), conf=conf) as ui:
        path = ui.table("t")
        for tab in TABS:
            assert secret not in ui.get(path + tab)


def test_of_a_table_without_statistics_the_rows_are_unknown(tmp_path: Path) -> None:
    RawLog(tmp_path / "t").create(add("f1"), add("f2"))
    with open_ui(str(tmp_path / "t")) as ui:
        path = ui.table("t")
        assert ui.see("/").tables["tables"][1][2] == ""
        texts = ui.see(f"{path}version").texts
        assert texts[texts.index("Rows", texts.index("Time")) + 1] == "?"


def test_where_there_is_no_table_it_says_so_and_finds_later_ones(tmp_path: Path) -> None:
    with open_ui(str(tmp_path)) as ui:
        assert "There is no Delta table here" in ui.get("/")


def test_conflicts_are_those_of_the_command_and_of_the_table_that_is_shown(tmp_path: Path) -> None:
    events, folder = tmp_path / "events.jsonl", tmp_path / "lake"
    log = DeltaLog.for_table(str(folder / "t"), {"spark.lakelog.commitEvents.path": str(events)})
    write_arrow(str(folder / "other"), {"a": [1]})
    with open_ui(str(folder), events=[str(events)]) as ui:
        assert "No event yet" in ui.get("/conflicts")
        write_arrow(log, {"a": [1]})
        delete_rows(log, "a = 1")
        jobs = lakelog_json("conflicts", str(events))["jobs"]
        for path in ("/conflicts", f"{ui.table('t')}conflicts"):
            rows = ui.see(path).tables["jobs"][1:]
            assert [row[:2] for row in rows] == [
                [each["job"], str(each["committed"])] for each in jobs
            ]
        assert "No event is about the table" in ui.get(f"{ui.table('other')}conflicts")
    with open_ui(str(folder)) as ui:
        assert "No events are given" in ui.get("/conflicts")


def test_a_catalog_is_shown_by_its_names(tmp_path: Path) -> None:
    with serving(UnityServer(tmp_path / "lake", token="t0ken")) as server:
        for name in ("lake.s.orders", "lake.s.t"):
            folder = make_table(server, name)
        other_client_commits(server, folder, 1, 2)
        # As a client leaves it that died before it was ratified.
        write_commit(folder / f"_delta_log/{7:020d}.json", 1)
        write_arrow(str(tmp_path / "plain"), {"id": [1]})
        with open_ui("lake.s", str(tmp_path / "plain"), conf=server.conf()) as ui:
            _, *rows = ui.see("/").tables["tables"]
            assert [row[:2] for row in rows] == [
                ["lake.s.orders", "0"],
                ["lake.s.t", "1"],
                ["plain", "0"],
            ]
            path = ui.table("lake.s.t")
            for page in ("", "history", "version", "rows", "files", "diff"):
                text = ui.get(f"{path}{page}")
                assert "t0ken" not in text
                assert "Versions 0 to 7" not in text
            assert ui.see(f"{path}rows").tables["rows"][1:] == [["1"], ["2"]]
            with pytest.raises(TableNotFoundError):
                Lake(["lake.nothing"], server.conf()).require_places()


def test_a_table_that_a_catalog_governs_is_not_shown_by_its_folder(tmp_path: Path) -> None:
    server = UnityServer(tmp_path)
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    # As a client leaves it that died before it was ratified: above the catalog's newest version.
    write_commit(folder / f"_delta_log/{7:020d}.json", 1)
    with open_ui(str(folder.parent)) as opened:
        (_, row) = opened.see("/").tables["tables"]
        assert row[1:3] == ["", ""]
        assert "can't be read" in row[-1]
        path = opened.table(folder.name)
        for page in ("", "history", "version", "rows", "files", "diff"):
            text = opened.get(f"{path}{page}", 400)
            assert "PATH_BASED_ACCESS" in text
            assert "Versions 0" not in text
