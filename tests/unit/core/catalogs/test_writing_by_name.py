"""Writing a table that Unity Catalog governs, by its name, through the server's double."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import (
    DeltaLog,
    clone,
    create_table,
    delete_rows,
    merge,
    read_arrow,
    update_rows,
    write_arrow,
)
from lakelog.core.alter import set_properties, unset_properties
from lakelog.core.errors import (
    CatalogError,
    CommitOutcomeUnknownError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelog.core.hooks.background import wait_for_all
from lakelog.core.wire import NotSentError, Reply, Wire
from support.manual_clock import ManualClock
from support.unity_server import FaultError, Request, UnityServer, Ways, serving
from support.unity_tables import make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME = "lake.s.t"
PATIENCE = 60.0
"""Seconds; nothing here takes one."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[UnityServer]:
    monkeypatch.setattr("lakelog.core.catalogs.unity.requests._FIRST_WAIT", 0.001)
    with serving(UnityServer(tmp_path, Ways(checks_published=True), token="t0ken")) as served:
        yield served
        assert wait_for_all(PATIENCE)


def ids(server: UnityServer) -> list[int]:
    return sorted(read_arrow(NAME, conf=server.conf())["id"].to_pylist())


def commits(server: UnityServer) -> list[Request]:
    return [each for each in server.seen if each.action == "add-commit"]


def published(folder: Path) -> list[int]:
    assert wait_for_all(PATIENCE)
    return sorted(int(each.name[:20]) for each in (folder / "_delta_log").glob("*.json"))


def test_rows_are_appended_overwritten_deleted_and_updated(server: UnityServer) -> None:
    folder, conf = make_table(server), server.conf()
    write_arrow(NAME, {"id": [1, 2]}, mode="append", conf=conf)
    write_arrow(NAME, {"id": [3]}, mode="append", conf=conf)
    assert ids(server) == [1, 2, 3]
    delete_rows(NAME, "id = 2", conf=conf)
    update_rows(NAME, {"id": "id + 10"}, "id = 3", conf=conf)
    assert ids(server) == [1, 13]
    write_arrow(NAME, {"id": [7]}, mode="overwrite", conf=conf)
    assert ids(server) == [7]
    assert published(folder) == [0, 1, 2, 3, 4, 5]
    table = server.table(NAME)
    assert (table.latest, sorted(table.commits)) == (5, [5])


def test_a_warm_append_asks_once_to_look_and_once_to_commit(server: UnityServer) -> None:
    make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    write_arrow(log, {"id": [1]}, mode="append")
    assert wait_for_all(PATIENCE)
    server.seen.clear()
    write_arrow(log, {"id": [2]}, mode="append")
    assert wait_for_all(PATIENCE)
    asked = [each.action for each in server.seen if not each.path.endswith("/metrics")]
    assert asked in (["GET", "add-commit"], ["add-commit"])


def test_a_command_by_name_asks_once_and_commits(server: UnityServer) -> None:
    make_table(server)
    conf = server.conf()
    write_arrow(NAME, {"id": [1, 2]}, mode="append", conf=conf)
    for work in (
        lambda: write_arrow(NAME, {"id": [3]}, mode="append", conf=conf),
        lambda: write_arrow(NAME, {"id": [1, 2, 3]}, mode="overwrite", conf=conf),
        lambda: delete_rows(NAME, "id = 1", conf=conf),
        lambda: update_rows(NAME, {"id": "5"}, "id = 2", conf=conf),
        lambda: (
            merge(NAME, {"id": [3, 4]}, "target.id = source.id", conf=conf)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        ),
    ):
        assert wait_for_all(PATIENCE)
        server.seen.clear()
        work()
        done = [each.action for each in server.seen]
        assert done[:2] == ["GET", "add-commit"]
        assert wait_for_all(PATIENCE)
        behind = [each for each in server.seen[2:] if not each.path.endswith("/metrics")]
        assert [each.action for each in behind] in ([], ["set-latest-backfilled-version"])


def test_a_commit_tells_the_catalog_what_it_did(server: UnityServer) -> None:
    make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    write_arrow(log, {"id": [1, 2, 3]}, mode="append")
    delete_rows(log, "id < 3")
    update_rows(log, {"id": "id + 10"}, "id = 3")
    assert wait_for_all(PATIENCE)
    reports = [each.body for each in server.seen if each.path.endswith("/metrics")]
    assert {each["table-id"] for each in reports} == {server.table(NAME).id}
    wrote, deleted, updated = (each["report"]["commit-report"] for each in reports)
    assert wrote["num-files-added"] == 1
    assert wrote["num-bytes-added"] > 0
    assert wrote["num-rows-inserted"] == 3
    assert (wrote["num-files-removed"], wrote["num-bytes-removed"]) == (0, 0)
    assert deleted["num-rows-removed"] == 2
    assert updated["num-rows-updated"] == 1
    assert "num-rows-inserted" not in deleted


def test_metrics_that_are_not_taken_fail_no_commit(server: UnityServer) -> None:
    make_table(server)

    def denied(request: Request) -> None:
        if request.path.endswith("/metrics"):
            raise FaultError(403, "PermissionDeniedException")

    server.before = denied
    write_arrow(NAME, {"id": [1]}, mode="append", conf=server.conf())
    assert wait_for_all(PATIENCE)
    assert ids(server) == [1]


def test_a_change_of_metadata_rides_with_its_commit(server: UnityServer) -> None:
    make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    set_properties(log, {"x.y": "z"})
    table = server.table(NAME)
    assert table.properties["x.y"] == "z"
    assert table.last_metadata[0] == 1
    (request,) = commits(server)
    actions = [each["action"] for each in request.body["updates"]]
    assert actions == ["add-commit", "set-properties"]
    assert request.body["updates"][1]["updates"] == {"x.y": "z"}
    write_arrow(log, {"id": [1], "s": ["a"]}, mode="append", schema_mode="merge")
    assert [each["name"] for each in table.columns["fields"]] == ["id", "s"]
    assert json.loads(log.update().metadata.schema_string) == table.columns


def test_another_clients_commits_are_published_in_order(server: UnityServer) -> None:
    folder = make_table(server)
    for each in range(4):
        other_client_commits(server, folder, each)
    assert published(folder) == [0]
    write_arrow(NAME, {"id": [9]}, mode="append", conf=server.conf())
    assert published(folder) == [0, 1, 2, 3, 4, 5]
    for version, commit in server.table(NAME).commits.items():
        log = folder / "_delta_log"
        staged = log / "_staged_commits" / commit["file-name"]
        assert (log / f"{version:020d}.json").read_bytes() == staged.read_bytes()


def test_a_full_table_is_published_and_the_writer_goes_on(server: UnityServer) -> None:
    folder = make_table(server)
    for each in range(10):
        other_client_commits(server, folder, each)
    write_arrow(NAME, {"id": [99]}, mode="append", conf=server.conf())
    assert ids(server) == [*range(10), 99]
    assert wait_for_all(PATIENCE)
    assert len(server.table(NAME).commits) <= 2


@pytest.mark.parametrize("ways", [Ways(), Ways(replays_conflict=True)], ids=["0.6", "strict"])
@pytest.mark.parametrize(
    "fault",
    [
        *("no reply", "500 after", "409 after", "500 before", "closed", "no lock", "408 after"),
        # A proxy refuses what the server has done.
        *("403 after", "400 after", "404 after", "302 after"),
    ],
)
def test_whatever_the_reply_was_the_rows_are_there_once(
    tmp_path: Path, ways: Ways, fault: str
) -> None:
    with serving(UnityServer(tmp_path, ways)) as server:
        make_table(server)
        log = DeltaLog.for_table(NAME, server.conf(), ManualClock(2_000_000_000_000))
        _ = log.snapshot
        left = [1]

        def once(request: Request) -> None:
            if request.action == "add-commit" and left:
                left.clear()
                raise {
                    "no reply": FaultError(None),
                    "closed": FaultError(None),
                    "500 after": FaultError(500, "CommitStateUnknownException"),
                    "500 before": FaultError(500, "CommitStateUnknownException"),
                    "409 after": FaultError(409, "CommitVersionConflictException"),
                    "no lock": FaultError(409, "UpdateRequirementConflictException"),
                    "408 after": FaultError(408),
                    "403 after": FaultError(403, "PermissionDeniedException"),
                    "400 after": FaultError(400, "InvalidParameterValueException"),
                    "404 after": FaultError(404, "NoSuchTableException"),
                    "302 after": FaultError(302),
                }[fault]

        if fault in ("500 before", "closed", "no lock"):
            server.before = once
        else:
            server.after = once
        write_arrow(log, {"id": [1]}, mode="append")
        assert ids(server) == [1]
        assert server.table(NAME).latest == 1
        assert not left
        write_arrow(log, {"id": [2]}, mode="append")  # the log is no worse for it
        assert ids(server) == [1, 2]


def test_a_refusal_that_can_not_be_looked_at_leaves_the_outcome_unknown(
    server: UnityServer,
) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf(), ManualClock(2_000_000_000_000))
    _ = log.snapshot
    seen: list[Request] = []

    def refused(request: Request) -> None:
        if seen or request.action == "add-commit":
            seen.append(request)
            raise FaultError(403, "PermissionDeniedException")

    server.after = refused
    with pytest.raises(CommitOutcomeUnknownError, match="looking at the table failed"):
        write_arrow(log, {"id": [1]}, mode="append")
    server.after = None
    assert ids(server) == [1]
    assert len(list(folder.glob("*.parquet"))) == 1


def test_a_token_that_is_refused_is_said_and_leaves_nothing(server: UnityServer) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf(), ManualClock(2_000_000_000_000))
    _ = log.snapshot

    def expired(request: Request) -> None:
        if request.action == "add-commit":
            server.token = "another"

    server.before = expired
    with pytest.raises(CatalogError, match="Check the token"):
        write_arrow(log, {"id": [1]}, mode="append")
    assert list((folder / "_delta_log/_staged_commits").iterdir()) == []
    assert list(folder.glob("*.parquet")) == []


def test_a_server_that_says_nothing_more_leaves_the_outcome_unknown(server: UnityServer) -> None:
    make_table(server)
    log = DeltaLog.for_table(NAME, server.conf(), ManualClock(2_000_000_000_000))
    _ = log.snapshot
    silent: list[Request] = []

    def gone(request: Request) -> None:
        if silent or request.action == "add-commit":
            silent.append(request)
            raise FaultError(None)

    server.after = gone
    with pytest.raises(CommitOutcomeUnknownError, match="looking at the table failed"):
        write_arrow(log, {"id": [1]}, mode="append")
    server.after = None
    assert ids(server) == [1]  # and its data file was kept


GARBLED: dict[str, Any] = {
    "another version": lambda value: {**value, "latest-table-version": 0, "commits": []},
    "a gap": lambda value: {**value, "latest-table-version": 7},
    "another table": lambda value: {**value, "metadata": {**value["metadata"], "table-uuid": "x"}},
    "not governed": lambda value: {**value, "metadata": {**value["metadata"], "properties": {}}},
    "odd properties": lambda value: {**value, "metadata": {**value["metadata"], "properties": [1]}},
    "nothing": lambda value: None,
    "a list": lambda value: [value],
}


@pytest.mark.parametrize("garbled", GARBLED)
def test_a_commit_that_was_taken_is_not_dropped_whatever_the_reply_says(
    server: UnityServer, garbled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    _ = log.snapshot
    real, done = server.answer, list[int]()

    def answer(*request: Any) -> tuple[int, Any]:
        status, value = real(*request)
        if server.seen[-1].action == "add-commit" and not done:
            done.append(status)
            return status, GARBLED[garbled](value)
        return status, value

    monkeypatch.setattr(server, "answer", answer)
    write_arrow(log, {"id": [1]}, mode="append")
    assert done == [200]
    assert ids(server) == [1]
    write_arrow(log, {"id": [2]}, mode="append")
    assert ids(server) == [1, 2]


def test_a_server_that_is_gone_before_the_commit_was_sent(
    server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf(), ManualClock(2_000_000_000_000))
    _ = log.snapshot
    real, tried = Wire.send, list[str]()

    def send(wire: Wire, method: str, *rest: Any) -> Reply:
        if tried or method == "POST":  # neither the commit nor a look at the table arrives
            tried.append(method)
            raise NotSentError("Connection refused")
        return real(wire, method, *rest)

    monkeypatch.setattr(Wire, "send", send)
    with pytest.raises(CatalogError, match="Nothing was done"):
        write_arrow(log, {"id": [1]}, mode="append")
    assert {"GET", "POST"} == set(tried)
    assert list((folder / "_delta_log/_staged_commits").iterdir()) == []
    assert list(folder.glob("*.parquet")) == []


def test_a_server_that_is_gone_after_a_lost_reply_leaves_it_open(server: UnityServer) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf(), ManualClock(2_000_000_000_000))
    _ = log.snapshot
    sent: list[Request] = []

    def gone(request: Request) -> None:
        if request.action == "add-commit":
            sent.append(request)
        if sent:
            raise FaultError(None if request.action == "add-commit" else 403)

    server.before = gone
    with pytest.raises(CommitOutcomeUnknownError):
        write_arrow(log, {"id": [1]}, mode="append")
    assert len(list(folder.glob("*.parquet"))) == 1


def test_a_refusal_leaves_nothing_behind(server: UnityServer) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    _ = log.snapshot

    def denied(request: Request) -> None:
        if request.action == "add-commit":
            raise FaultError(403, "PermissionDeniedException")

    server.before = denied
    with pytest.raises(CatalogError, match="PermissionDenied") as caught:
        write_arrow(log, {"id": [1]}, mode="append")
    assert "storage answers" not in "".join(caught.value.__notes__)
    server.before = None
    assert ids(server) == []
    assert list((folder / "_delta_log/_staged_commits").iterdir()) == []
    assert list(folder.glob("*.parquet")) == []


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(
    "write",
    [
        lambda log: write_arrow(log, {"id": [1]}, mode="append"),
        lambda log: write_arrow(log, {"id": [1]}, mode="overwrite"),
        lambda log: create_table(log, "id bigint", mode="create_or_replace"),
    ],
    ids=["append", "overwrite", "replace"],
)
def test_an_open_log_does_not_make_a_table_that_is_gone(
    server: UnityServer, write: Callable[[DeltaLog], int], again: bool
) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    _ = log.snapshot
    server.drop(NAME)
    if again:
        make_table(server)
    before = sorted(folder.rglob("*"))
    for _ in range(2):
        with pytest.raises(TableNotFoundError, match="pen it"):
            write(log)
    assert sorted(folder.rglob("*")) == before


def test_a_table_that_was_made_again_is_no_retryable_conflict(server: UnityServer) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    _ = log.snapshot
    done: list[int] = []

    def swapped(request: Request) -> None:
        if request.action == "add-commit" and not done:
            done.append(1)
            server.drop(NAME)
            make_table(server)

    server.before = swapped
    with pytest.raises(TableNotFoundError, match="open it again by its name"):
        write_arrow(log, {"id": [1]}, mode="append")
    assert ids(server) == []
    assert list(folder.glob("*.parquet")) == []


def test_eight_writers_lose_and_double_nothing(server: UnityServer) -> None:
    make_table(server)
    failed: list[BaseException] = []

    def work(writer: int) -> None:
        try:
            log = DeltaLog.for_table(NAME, server.conf())
            for each in range(6):
                write_arrow(log, {"id": [writer * 100 + each]}, mode="append")
        except BaseException as exc:
            failed.append(exc)

    threads = [threading.Thread(target=work, args=(each,)) for each in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed
    assert ids(server) == sorted(w * 100 + each for w in range(8) for each in range(6))
    assert server.table(NAME).latest == 48


def test_times_in_the_commits_stay_on(server: UnityServer) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    key = "delta.enableInCommitTimestamps"
    with pytest.raises(CatalogError, match="must have an inCommitTimestamp"):
        set_properties(log, {key: "false"})
    with pytest.raises(CatalogError, match="must have an inCommitTimestamp"):
        unset_properties(log, [key])
    assert commits(server) == []
    assert list((folder / "_delta_log/_staged_commits").iterdir()) == []
    write_arrow(log, {"id": [1]}, mode="append")
    assert ids(server) == [1]


@pytest.mark.parametrize("shallow", [True, False])
def test_a_clone_of_such_a_table_is_governed_by_no_catalog(
    server: UnityServer, tmp_path: Path, shallow: bool
) -> None:
    make_table(server)
    write_arrow(NAME, {"id": [1]}, mode="append", conf=server.conf())
    copy = str(tmp_path / "copy")
    clone(NAME, copy, shallow=shallow, conf=server.conf())
    write_arrow(copy, {"id": [2]}, mode="append")
    assert sorted(read_arrow(copy)["id"].to_pylist()) == [1, 2]
    made = DeltaLog.for_table(copy).snapshot
    assert "catalogManaged" not in (made.protocol.reader_features or ())
    assert "catalogManaged" not in (made.protocol.writer_features or ())
    assert "io.unitycatalog.tableId" not in made.metadata.configuration
    assert ids(server) == [1]


def test_such_a_table_is_made_by_its_catalog_alone(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="only a catalog creates"):
        write_arrow(
            str(tmp_path / "t"),
            {"id": [1]},
            properties={"delta.feature.catalogManaged": "supported"},
        )
    write_arrow(str(tmp_path / "u"), {"id": [1]})
    with pytest.raises(UnsupportedFeatureError, match="only a catalog creates"):
        DeltaLog.for_table(str(tmp_path / "u")).upgrade_protocol(features=["catalogManaged"])


def test_the_command_line_reads_by_name(server: UnityServer, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from lakelog.cli.app import app

    folder = make_table(server)
    other_client_commits(server, folder, 1, 2)
    conf = tmp_path / "lake.conf"
    conf.write_text(f"spark.sql.catalog.lake.token={server.token}\n")
    shared = ["--catalog", f"lake={server.url}", "--conf-file", str(conf)]

    def run(*words: str) -> Any:
        done = CliRunner().invoke(app, [*words, *shared, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    for words in (
        ["history"],
        ["describe"],
        ["schema"],
        ["files"],
        ["sample"],
        ["properties"],
        ["diff", "0"],
        ["report", "-o", str(tmp_path / "page.html")],
    ):
        done = CliRunner().invoke(app, [words[0], str(folder), *words[1:]])
        assert done.exit_code == 2, done.output
        assert "PATH_BASED_ACCESS" in done.output.replace("\n", ""), done.output

    for words in (["doctor", NAME, "--jvm"], ["conformance", NAME]):
        done = CliRunner().invoke(app, [*words, *shared])
        assert done.exit_code == 2, done.output
        assert "is a name in a catalog" in done.output.replace("\n", " ")

    assert [each["version"] for each in run("history", NAME)["entries"]] == [1, 0]
    assert run("describe", NAME)["version"] == 1
    assert len(run("sample", NAME)["rows"]) == 2
