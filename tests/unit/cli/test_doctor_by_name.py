"""`lakelog doctor catalog.schema.table`: the catalog, the credentials, the commits."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import write_arrow
from lakelog.core.hooks.background import wait_for_all
from support.doctoring import Diagnosis, doctor, doctor_text
from support.unity_server import Table, UnityServer, serving
from support.unity_tables import ask, make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "lake.s.t"
UPDATE = "/catalogs/lake/schemas/s/tables/t"
PATIENCE = 60.0
"""Seconds; nothing here takes one."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path, token="t0ken")) as served:
        yield served


def seen(server: UnityServer, *options: str, name: str = NAME) -> Diagnosis:
    return doctor(name, server.conf(), *options)


def test_a_table_that_is_well(server: UnityServer) -> None:
    folder = make_table(server)
    write_arrow(NAME, {"id": [1]}, mode="append", conf=server.conf())
    assert wait_for_all(PATIENCE)
    found = seen(server)
    assert found.exit_code == 0
    assert found.report["verdict"] == "not-probed"
    assert found.report["table_version"] == 1
    assert found.report["catalog"] == {
        "catalog": f"UnityCatalog(lake, {server.url})",
        "location": str(folder),
        "governed": True,
        "table_id": server.table(NAME).id,
        "most_unpublished": 10,
        "allows_maintenance": False,
        "replays_are_seen": True,
    }
    states = {each["check"]: each["status"] for each in found.report["findings"]}
    assert states == {
        "catalog": "fine",
        "credentials": "note",
        "unpublished": "fine",
        "missing": "fine",
        "staged": "fine",
    }
    _, text = doctor_text(NAME, server.conf())
    assert "nothing was probed by writing" in text
    assert "t0ken" not in text


def test_commits_that_wait_to_be_published(server: UnityServer) -> None:
    folder = make_table(server)
    for each in range(3):
        other_client_commits(server, folder, each)
    before = sorted(each.name for each in folder.rglob("*"))
    found = seen(server)
    assert found.exit_code == 0
    assert found["unpublished"]["measured"] == {"versions": [1, 2, 3]}
    assert "3 commits of at most 10 wait" in found["unpublished"]["summary"]
    assert sorted(each.name for each in folder.rglob("*")) == before


def test_versions_whose_file_is_missing(server: UnityServer) -> None:
    folder = make_table(server)
    for each in range(3):
        other_client_commits(server, folder, each)
    body = {
        "requirements": [{"type": "assert-table-uuid", "uuid": server.table(NAME).id}],
        "updates": [{"action": "set-latest-backfilled-version", "latest-published-version": 2}],
    }
    ask(server, "POST", UPDATE, body)  # as a client that did not look
    staged = server.table(NAME).commits[3]["file-name"]
    (folder / f"_delta_log/_staged_commits/{staged}").unlink()
    found = seen(server)
    assert found.exit_code == 1
    assert found.failed == ["missing"]
    assert found["missing"]["measured"] == {"versions": [1, 2, 3]}
    assert staged in found["missing"]["summary"]
    assert found["missing"]["remedy"]


def test_a_published_file_that_is_another_one(server: UnityServer) -> None:
    folder = make_table(server)
    for each in range(2):
        other_client_commits(server, folder, each)
    (folder / f"_delta_log/{1:020d}.json").write_bytes(b'{"commitInfo":{}}\n')
    found = seen(server)
    assert found.exit_code == 1
    assert found.failed == ["wrong"]
    assert found["wrong"]["measured"] == {"versions": [1]}
    assert f"{1:020d}.json" in found["wrong"]["summary"]
    assert found["wrong"]["remedy"]


def test_staged_files_that_no_version_is(server: UnityServer) -> None:
    folder = make_table(server)
    other_client_commits(server, folder, 1)
    write_arrow(NAME, {"id": [2]}, mode="append", conf=server.conf())
    assert wait_for_all(PATIENCE)
    other_client_commits(server, folder, 3)
    log = folder / "_delta_log"
    published = (log / f"{1:020d}.json").read_bytes()
    leftovers = {
        f"{1:020d}.lost.json": published.replace(b"txnId", b"txnXX"),  # as long as the winner
        f"{1:020d}.short.json": b"{}\n",
        f"{3:020d}.lost.json": b"{}\n",
        f"{9:020d}.early.json": b"{}\n",
    }
    for name, data in leftovers.items():
        (log / "_staged_commits" / name).write_bytes(data)
    found = seen(server)
    assert found.exit_code == 0
    assert sorted(found["staged"]["measured"]["names"]) == sorted(leftovers)
    assert all(name in found["staged"]["summary"] for name in leftovers)


@pytest.mark.parametrize("rights", ["reading and writing", "reading alone"])
def test_how_long_credentials_live(rights: str) -> None:
    server = UnityServer("s3://bucket/root", token="t0ken")
    ends = int(time.time() * 1000) + 3_600_000
    secret = "s3cret"

    def vend(table: Table, operation: str) -> list[dict[str, Any]]:
        if operation == "READ_WRITE" and rights == "reading alone":
            return [{"prefix": table.location, "config": {"odd.key": "x"}}]
        config = {"s3.access-key-id": "AK", "s3.secret-access-key": secret}
        return [{"prefix": table.location, "config": config, "expiration-time-ms": ends}]

    server.credentials = vend
    server.ways.checks_staged = False
    server.add_schema("lake", "s")
    with serving(server):
        from support.unity_server import Table as Made

        server.tables["lake", "s", "t"] = Made(
            "some-id",
            "s3://bucket/root/t",
            {"type": "struct", "fields": []},
            [],
            {"delta.feature.catalogManaged": "supported"},
        )
        conf = {
            **server.conf(),
            # It knows no bucket. That nobody listens is tried again and again, for five seconds.
            "spark.hadoop.fs.s3a.endpoint": server.url,
            "spark.lakelog.store.retrySeconds": "0.1",
        }
        code, text = doctor_text(NAME, conf)
        found = doctor(NAME, conf)
    assert code == 1  # the storage can't be read
    assert f"for {rights}, until 20" in found["credentials"]["summary"]
    assert "0:59:" in found["credentials"]["summary"]
    assert found["credentials"]["measured"] == {"ends_at_ms": ends}
    assert secret not in text + str(found.report)


def test_a_catalog_that_can_not_be_asked(server: UnityServer) -> None:
    server.add_schema("lake", "s")
    found = seen(server)
    assert found.exit_code == 1
    assert found.failed == ["catalog"]
    assert "has no table" in found["catalog"]["summary"]
    assert found["catalog"]["remedy"]


def test_a_table_that_its_catalog_does_not_govern(server: UnityServer) -> None:
    folder = make_table(server)
    server.table(NAME).properties.pop("delta.feature.catalogManaged")
    found = seen(server)
    assert found.exit_code == 0
    assert found["catalog"]["remedy"] == f"Examine its storage: lakelog doctor {folder}"


def test_a_name_without_a_catalog_is_no_folder_to_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    from click.testing import CliRunner

    from lakelog.cli.app import app

    done = CliRunner().invoke(app, ["doctor", NAME])
    assert done.exit_code == 2
    words = " ".join(done.output.split())
    assert "the conf has no catalog lake: give --catalog lake=URL" in words
    long = CliRunner().invoke(app, ["doctor", f"{'a' * 10_000}.b.c"])
    assert (long.exit_code, long.exception and type(long.exception)) == (2, SystemExit)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / NAME).mkdir()
    assert CliRunner().invoke(app, ["doctor", NAME]).exit_code == 0
