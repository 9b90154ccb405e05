"""Reading a table that a catalog governs, by its name."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, read_arrow, scan
from lakelog.core.catalogs.inspection import inspect
from lakelog.core.errors import (
    LogGapError,
    TableNotFoundError,
    UnsupportedFeatureError,
    VersionNotFoundError,
)
from support.unity_server import UnityServer, serving
from support.unity_tables import make_table, other_client_commits, rows_file, write_commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NAME = "lake.s.t"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path, token="s3cr3t-of-the-test")) as served:
        yield served


def ids(table: object) -> list[int]:
    return sorted(table["id"].to_pylist())  # type: ignore[index]


def test_ratified_commits_are_read_though_nothing_is_published(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1, 2)
    other_client_commits(server, folder, 3)

    assert ids(read_arrow(NAME, conf=server.conf())) == [1, 2, 3]
    assert scan(NAME, conf=server.conf()).count() == 3


def test_what_lies_above_the_catalogs_newest_version_is_ignored(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    log = folder / "_delta_log"
    stray = rows_file(folder, 99)
    write_commit(log / f"{2:020d}.json", 1, stray)
    write_commit(log / f"{3:020d}.json", 1, stray)
    (log / f"{3:020d}.checkpoint.parquet").write_bytes(b"no checkpoint")
    (log / "_last_checkpoint").write_text('{"version":3,"size":1}')

    opened = DeltaLog.for_table(NAME, server.conf())

    assert opened.snapshot.version == 1
    assert ids(read_arrow(opened)) == [1]
    with pytest.raises(VersionNotFoundError, match="versions 0 to 1"):
        opened.snapshot_at(2)


def test_the_catalogs_file_wins_over_a_published_one(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    write_commit(folder / f"_delta_log/{1:020d}.json", 1, rows_file(folder, 99))

    assert ids(read_arrow(NAME, conf=server.conf())) == [1]


def test_a_file_system_finds_a_commit_that_is_not_published(server: UnityServer) -> None:
    folder = make_table(server)
    commit = other_client_commits(server, folder, 1)
    log = DeltaLog.for_table(NAME, server.conf())
    store, path = log.store, f"{log.table}/_delta_log/{1:020d}.json"
    with store.filesystem.open_input_file(store.filesystem_path(path)) as file:
        assert file.read() == store.read_bytes(path)
        assert file.size() == commit["file-size"]


def test_what_is_new_is_found_by_an_open_log(server: UnityServer) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    assert log.snapshot.version == 0
    for each in range(12):
        commit = other_client_commits(server, folder, each)
        version = commit["version"]
        assert log.update().version == version
        staged = folder / "_delta_log/_staged_commits" / commit["file-name"]
        (folder / f"_delta_log/{version:020d}.json").write_bytes(staged.read_bytes())
        server._prune(server.table(NAME), version)
    assert ids(read_arrow(log)) == list(range(12))
    assert log.snapshot_at(3).version == 3


def test_time_travel_goes_by_the_times_in_the_commits(server: UnityServer) -> None:
    folder = make_table(server)
    first = other_client_commits(server, folder, 1)
    second = other_client_commits(server, folder, 2)
    log = DeltaLog.for_table(NAME, server.conf())

    assert log.snapshot_at(timestamp=first["timestamp"]).version == 1
    assert log.snapshot_at(timestamp=second["timestamp"] - 1).version == 1
    assert [each.version for each in log.history()] == [2, 1, 0]


def test_a_path_to_such_a_table_is_refused(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    with pytest.raises(UnsupportedFeatureError, match="PATH_BASED_ACCESS") as caught:
        read_arrow(str(folder))
    assert server.table(NAME).id in str(caught.value)
    with pytest.raises(UnsupportedFeatureError, match=r"catalog\.schema\.table"):
        DeltaLog.for_table(str(folder)).start_transaction()


def test_a_path_whose_versions_only_the_catalog_knows_is_told_the_way(server: UnityServer) -> None:
    folder = make_table(server)
    for each in (1, 2):
        commit = other_client_commits(server, folder, each)
    staged = folder / "_delta_log/_staged_commits" / commit["file-name"]
    staged.rename(folder / f"_delta_log/{2:020d}.json")
    with pytest.raises(LogGapError, match=r"commits 1 are missing.*open it by its name"):
        read_arrow(str(folder))
    assert ids(read_arrow(NAME, conf=server.conf())) == [1, 2]


def test_a_governed_table_that_its_catalog_does_not_claim(server: UnityServer) -> None:
    make_table(server)
    del server.table(NAME).properties["delta.feature.catalogManaged"]
    with pytest.raises(UnsupportedFeatureError, match="that catalog does not say that it governs"):
        read_arrow(NAME, conf=server.conf())


def test_a_table_that_was_dropped_and_made_again_is_another(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    log = DeltaLog.for_table(NAME, server.conf())
    assert log.update().version == 1
    server.drop(NAME)
    make_table(server)
    log.doubt()
    with pytest.raises(TableNotFoundError, match=r"no more what was opened|another table"):
        log.update()
    assert DeltaLog.for_table(NAME, server.conf()).snapshot.version == 0


def test_a_version_whose_file_is_lost_is_named(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    other_client_commits(server, folder, 2)
    server._prune(server.table(NAME), 2)  # as a report of what was never published does
    with pytest.raises(LogGapError, match=r"0{19}1\.json"):
        read_arrow(NAME, conf=server.conf())


def test_a_staged_file_may_go_once_it_is_published(server: UnityServer) -> None:
    folder = make_table(server)
    opened = DeltaLog.for_table(NAME, server.conf())
    for each in (1, 2, 3):
        commit = other_client_commits(server, folder, each)
        if each < 3:  # and the catalog is told later
            staged = folder / "_delta_log/_staged_commits" / commit["file-name"]
            staged.rename(folder / f"_delta_log/{each:020d}.json")

    assert ids(read_arrow(NAME, conf=server.conf())) == [1, 2, 3]
    opened.store.publish(report=True)  # type: ignore[attr-defined]
    assert ids(read_arrow(opened)) == [1, 2, 3]
    opened.store.publish(report=True)  # type: ignore[attr-defined]
    assert sorted(server.table(NAME).commits) == [3]
    assert ids(read_arrow(NAME, conf=server.conf())) == [1, 2, 3]


WRONG: dict[str, Callable[[bytes], bytes]] = {
    "longer": lambda data: data + b'{"commitInfo":{}}\n',
    "of another time": lambda data: re.sub(rb'("inCommitTimestamp": ?)..', rb"\g<1>99", data),
    "of no time": lambda data: data.replace(b"inCommitTimestamp", b"inCommitTimestomp"),
    "no JSON": lambda data: b"x" * (len(data) - 1) + b"\n",
    "cut off by two": lambda data: data[:-2],
    "cut off at a line": lambda data: data[: data.index(b"\n") + 1],
    "empty": lambda data: b"",
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_published_file_that_was_not_ratified_is_named_and_not_believed(
    server: UnityServer, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    commit = other_client_commits(server, folder, 1)
    staged = folder / "_delta_log/_staged_commits" / commit["file-name"]
    published = folder / f"_delta_log/{1:020d}.json"
    published.write_bytes(WRONG[wrong](staged.read_bytes()))
    staged.unlink()
    said = rf"{published} is not what the catalog lake ratified as version 1 of {NAME}"
    with pytest.raises(LogGapError, match=said):
        read_arrow(NAME, conf=server.conf())
    log.store.refresh()  # type: ignore[attr-defined]
    log.store.publish(report=True)  # type: ignore[attr-defined]
    assert re.search(said, caplog.text)
    assert [each.action for each in server.seen if "backfilled" in each.action] == []


@pytest.mark.parametrize("is_published", [True, False], ids=["published", "not published"])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_staged_file_that_is_not_what_was_ratified_is_neither_read_nor_published(
    server: UnityServer, wrong: str, is_published: bool, caplog: pytest.LogCaptureFixture
) -> None:
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    commit = other_client_commits(server, folder, 1)
    staged = folder / "_delta_log/_staged_commits" / commit["file-name"]
    published = folder / f"_delta_log/{1:020d}.json"
    right = staged.read_bytes()
    staged.write_bytes(WRONG[wrong](right))
    if is_published:
        published.write_bytes(right)
        assert ids(read_arrow(NAME, conf=server.conf())) == [1]
    said = rf"{staged} is not what the catalog lake ratified as version 1 of {NAME}"
    if not is_published:
        with pytest.raises(LogGapError, match=said):
            read_arrow(NAME, conf=server.conf())
    log.store.refresh()  # type: ignore[attr-defined]
    log.store.publish(report=True)  # type: ignore[attr-defined]
    assert bool(re.search(said, caplog.text)) != is_published
    assert published.exists() == is_published
    found = inspect(log.store, log.table)  # type: ignore[arg-type]
    fits = wrong in ("of another time", "of no time", "no JSON")  # listings know sizes alone
    assert list(found.wrong) == ([] if is_published or fits else [1])


def test_a_list_of_commits_that_was_cut_off_has_none_forgotten(
    server: UnityServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that leaves the older ones out says by that that they were published."""
    folder = make_table(server)
    log = DeltaLog.for_table(NAME, server.conf())
    for each in range(1, 5):
        other_client_commits(server, folder, each)
    table = server.table(NAME)
    whole = dict(table.commits)
    for kept in ([], [4], [3, 4]):
        table.commits = {version: whole[version] for version in kept}
        missing = 1 if kept else 4
        with pytest.raises(LogGapError, match=rf"0{{19}}{missing}\.json"):
            read_arrow(NAME, conf=server.conf())
        log.store.refresh()  # type: ignore[attr-defined]
        log.store.publish(report=True)  # type: ignore[attr-defined]
    assert "Nothing after it is published or reported" in caplog.text
    assert [each.action for each in server.seen if "backfilled" in each.action] == []
    table.commits = whole
    assert ids(read_arrow(NAME, conf=server.conf())) == [1, 2, 3, 4]
    log.store.refresh()  # type: ignore[attr-defined]
    log.store.publish(report=True)  # type: ignore[attr-defined]
    assert sorted(table.commits) == [4]
    assert [int(each.stem) for each in sorted((folder / "_delta_log").glob("*.json"))] == [
        *range(5)
    ]


@pytest.mark.parametrize("staged_ends", [True, False], ids=["staged ends", "staged does not"])
@pytest.mark.parametrize("published_ends", [True, False], ids=["published ends", "it does not"])
def test_a_last_line_may_have_no_end(
    server: UnityServer, staged_ends: bool, published_ends: bool
) -> None:
    folder = make_table(server)
    commit = other_client_commits(server, folder, 1)
    staged = folder / "_delta_log/_staged_commits" / commit["file-name"]
    published = folder / f"_delta_log/{1:020d}.json"
    lines = staged.read_bytes().rstrip(b"\n")
    staged.write_bytes(lines + b"\n" * staged_ends)
    server.table(NAME).commits[1]["file-size"] = len(lines) + staged_ends
    published.write_bytes(before := lines + b"\n" * published_ends)
    log = DeltaLog.for_table(NAME, server.conf())
    log.store.publish(report=True)  # type: ignore[attr-defined]
    assert published.read_bytes() == before
    staged.unlink()
    assert ids(read_arrow(NAME, conf=server.conf())) == [1]
    assert ids(read_arrow(log)) == [1]
    other_client_commits(server, folder, 2)
    again = DeltaLog.for_table(NAME, server.conf())
    again.store.publish(report=True)  # type: ignore[attr-defined]
    assert sorted(server.table(NAME).commits) == [2]


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("lake.s.nope", "no table lake.s.nope"),
        ("lake.nope.t", "no schema lake.nope"),
    ],
)
def test_a_name_that_is_not_there(server: UnityServer, name: str, what: str) -> None:
    make_table(server)
    with pytest.raises(TableNotFoundError, match=what):
        read_arrow(name, conf=server.conf())


def test_without_a_catalog_in_the_conf_a_name_is_a_path(tmp_path: Path) -> None:
    with pytest.raises(TableNotFoundError, match="is a name in a catalog"):
        read_arrow("lake.s.t")


def test_no_secret_shows(server: UnityServer) -> None:
    import pickle

    from lakelog.core.catalogs.resolution import catalog_for
    from lakelog.core.conf import DeltaConf

    make_table(server)
    conf = {**server.conf(), "spark.sql.catalog.lake.auth.token": "wr0ng-but-secret"}
    with pytest.raises(Exception, match="401") as caught:
        read_arrow(NAME, conf=conf)
    assert "wr0ng" not in str(caught.value)
    catalog = catalog_for("lake", DeltaConf.from_mapping(conf))
    assert "wr0ng" not in repr(catalog) + json.dumps(str(vars(catalog)["_requests"]))
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(catalog)
    # The store of the files travels to where they are read and written.
    opened = DeltaLog.for_table(NAME, server.conf())
    storage = opened.store.storage  # type: ignore[attr-defined]
    assert b"s3cr3t" not in pickle.dumps(storage)
