"""Tables that get another name, or whose name gets another table, while somebody is at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.core import (
    DeltaLog,
    create_table,
    delete_rows,
    read_arrow,
    scan,
    table_changes,
    write_arrow,
)
from lakelog.core.engine.streams import StreamOptions, StreamSource
from lakelog.core.errors import TableNotFoundError
from lakelog.core.hooks.background import wait_for_all
from support.unity_server import Request, UnityServer, Ways, serving
from support.unity_tables import make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME = "lake.s.t"
CHANGES = {"delta.enableChangeDataFeed": "true"}
PATIENCE = 60.0
"""Seconds; nothing here takes one."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path, Ways(checks_published=True), token="t0ken")) as served:
        yield served
        assert wait_for_all(PATIENCE)


def ids(server: UnityServer, name: str) -> list[int]:
    return sorted(read_arrow(name, conf=server.conf())["id"].to_pylist())


def _table_renamed(server: UnityServer) -> str:
    server.tables["lake", "s", "new"] = server.tables.pop(("lake", "s", "t"))
    return "lake.s.new"


def _another_under_the_name(server: UnityServer) -> str:
    found = _table_renamed(server)
    make_table(server, NAME)
    return found


def _schema_renamed(server: UnityServer) -> str:
    server.tables["lake", "z", "t"] = server.tables.pop(("lake", "s", "t"))
    server.schemas = {("lake", "z")}
    return "lake.z.t"


def _catalog_renamed(server: UnityServer) -> str:
    server.tables["pond", "s", "t"] = server.tables.pop(("lake", "s", "t"))
    server.schemas, server.catalogs = {("pond", "s")}, {"pond": "id"}
    return "pond.s.t"


@pytest.mark.parametrize(
    "move", [_table_renamed, _another_under_the_name, _schema_renamed, _catalog_renamed]
)
def test_an_open_log_follows_no_name_and_writes_nowhere_else(
    server: UnityServer, move: Callable[[UnityServer], str]
) -> None:
    make_table(server)
    write_arrow(NAME, {"id": [1]}, mode="append", conf=server.conf())
    assert wait_for_all(PATIENCE)
    log = DeltaLog.for_table(NAME, server.conf())
    txn = log.start_transaction()
    assert txn.snapshot is not None
    now = move(server)
    for work in (
        lambda: write_arrow(log, {"id": [2]}, mode="append"),
        lambda: delete_rows(log, "id = 1"),
        lambda: read_arrow(log),
    ):
        with pytest.raises(TableNotFoundError, match="pen it"):
            work()
    conf = {**server.conf(), **server.conf("pond")}
    assert read_arrow(now, conf=conf)["id"].to_pylist() == [1]
    write_arrow(now, {"id": [3]}, mode="append", conf=conf)
    assert sorted(read_arrow(now, conf=conf)["id"].to_pylist()) == [1, 3]


def test_a_scan_ends_with_the_rows_of_the_table_that_it_began_with(server: UnityServer) -> None:
    make_table(server)
    for each in range(3):
        write_arrow(NAME, {"id": [each]}, mode="append", conf=server.conf())
    assert wait_for_all(PATIENCE)
    batches = iter(scan(NAME, conf=server.conf()).to_reader())
    rows = next(batches)["id"].to_pylist()
    server.drop(NAME)
    make_table(server)
    write_arrow(NAME, {"id": [99]}, mode="append", conf=server.conf())
    rows += [value for batch in batches for value in batch["id"].to_pylist()]
    assert sorted(rows) == [0, 1, 2]
    assert ids(server, NAME) == [99]


def test_a_stream_ends_where_its_table_was_made_again(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    log = DeltaLog.for_table(NAME, server.conf())
    source = StreamSource(log, StreamOptions(starting_version=0))
    start = source.initial_offset()
    end = source.latest_offset(start)
    assert source.files_between(start, end).num_rows == 1
    server.drop(NAME)
    again = make_table(server)
    other_client_commits(server, again, 99)
    log.doubt()
    with pytest.raises(TableNotFoundError, match="pen it"):
        source.latest_offset(end)


def test_changes_are_read_from_commits_that_nobody_has_published(server: UnityServer) -> None:
    folder = make_table(server, properties=CHANGES)
    for each in (1, 2, 3):
        other_client_commits(server, folder, each)
    found = (
        table_changes(NAME, 1, 2, conf=server.conf())
        .read_all()
        .select(["id", "_change_type", "_commit_version"])
    )
    assert sorted(found.to_pylist(), key=lambda row: row["id"]) == [
        {"id": version, "_change_type": "insert", "_commit_version": version} for version in (1, 2)
    ]
    assert [each.name for each in (folder / "_delta_log").glob("*.json")] == [f"{0:020d}.json"]
    times = [server.table(NAME).commits[version]["timestamp"] for version in (2, 3)]
    found = table_changes(NAME, starting_timestamp=times[0], conf=server.conf()).read_all()
    assert sorted(found["id"].to_pylist()) == [2, 3]


@pytest.mark.parametrize("many", [10, 20, 40])
def test_so_many_commits_of_a_client_that_publishes_nothing(server: UnityServer, many: int) -> None:
    """It can't have more than ten open: it reports what lakelog has published for it."""
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    theirs, ours = list(range(many)), list[int]()
    left = list(theirs)
    while left:
        while left and len(server.table(NAME).commits) < 10:
            other_client_commits(server, folder, left.pop())
        ours.append(1000 + len(left))
        write_arrow(log, {"id": ours[-1:]}, mode="append")
        assert wait_for_all(PATIENCE)
        assert len(server.table(NAME).commits) <= 1
    assert ids(server, NAME) == [*theirs, *sorted(ours)]


def test_two_catalogs_of_a_server_and_one_name_at_two_servers(
    server: UnityServer, tmp_path: Path
) -> None:
    with serving(UnityServer(tmp_path / "other", token="an0ther")) as other:
        places = [
            (NAME, server, server.conf()),
            ("pond.s.t", server, {**server.conf(), **server.conf("pond")}),
            (NAME, other, other.conf()),
        ]
        for number, (name, of, conf) in enumerate(places):
            make_table(of, name)
            write_arrow(name, {"id": [number]}, mode="append", conf=conf)
        for number, (name, of, conf) in enumerate(places):
            assert read_arrow(name, conf=conf)["id"].to_pylist() == [number]
            assert of.table(name).latest == 1
        assert wait_for_all(PATIENCE)


def test_a_race_is_lost_to_a_commit_that_is_not_published(server: UnityServer) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    raced = list[int]()

    def other(request: Request) -> None:
        if request.action == "add-commit" and not raced:
            raced.append(1)
            other_client_commits(server, folder, 1)

    _ = log.snapshot
    server.before = other
    assert write_arrow(log, {"id": [2]}, mode="append") == 2
    assert ids(server, NAME) == [1, 2]


def test_an_append_tells_the_catalog_nothing_of_clustering(server: UnityServer) -> None:
    server.add_schema("lake", "s")
    create_table(NAME, "id bigint", cluster_by="id", conf=server.conf())
    assert wait_for_all(PATIENCE)
    server.seen.clear()
    write_arrow(NAME, {"id": [1]}, mode="append", conf=server.conf())
    write_arrow(NAME, {"id": [2]}, mode="overwrite", conf=server.conf())
    assert wait_for_all(PATIENCE)
    assert [each for each in server.seen if "delta.clustering" in str(each.body)] == []


def test_an_answer_that_lags_behind_ends_no_stream(
    server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    stale = server._shown(server.table(NAME))
    other_client_commits(server, folder, 2)
    log = DeltaLog.for_table(NAME, server.conf())
    source = StreamSource(log, StreamOptions(starting_version=0))
    end = source.latest_offset(source.initial_offset())
    real = server._shown
    monkeypatch.setattr(server, "_shown", lambda table: stale)
    log.doubt()
    assert log.update().version == 2
    assert source.latest_offset(end) == end
    monkeypatch.setattr(server, "_shown", real)
    other_client_commits(server, folder, 3)
    assert source.files_between(end, source.latest_offset(end)).num_rows == 1
