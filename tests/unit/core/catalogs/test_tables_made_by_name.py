"""Making, replacing, renaming and dropping tables by their name in a catalog."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from lakelog.core import (
    DeltaLog,
    clone,
    create_table,
    drop_table,
    read_arrow,
    rename_table,
    write_arrow,
)
from lakelog.core.catalogs.contract import Catalog
from lakelog.core.errors import (
    CatalogError,
    CommitOutcomeUnknownError,
    DeltaAnalysisError,
    TableExistsError,
    TableNotFoundError,
)
from lakelog.core.hooks.background import wait_for_all
from support.model_catalog import CONF, ModelCatalog
from support.unity_server import FaultError, Request, UnityServer, serving
from support.unity_tables import make_table, other_client_commits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAME = "lake.s.t"
FEATURES = {"catalogManaged", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors"}
PATIENCE = 60.0
"""Seconds; nothing here takes one."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[UnityServer]:
    with serving(UnityServer(tmp_path, token="t0ken")) as served:
        served.add_schema("lake", "s")
        yield served
        assert wait_for_all(PATIENCE)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    ModelCatalog.reset()
    yield
    assert wait_for_all(PATIENCE)
    ModelCatalog.reset()


def ids(server: UnityServer, name: str = NAME) -> list[int]:
    return sorted(read_arrow(name, conf=server.conf())["id"].to_pylist())


def folders(server: UnityServer) -> list[Path]:
    """Of tables, made or not, that hold a file."""
    return sorted({each.parent for each in Path(server.root).rglob("*") if each.is_file()})


def test_a_table_is_made_with_what_the_catalog_asks_for(server: UnityServer) -> None:
    conf = server.conf()
    version = create_table(
        NAME,
        "id bigint, day date",
        partition_by="day",
        properties={"x.y": "z"},
        description="rows",
        conf=conf,
    )
    assert version == 0
    table = server.table(NAME)
    snapshot = DeltaLog.for_table(NAME, conf).snapshot
    assert snapshot.protocol.reader_features is not None
    assert set(snapshot.protocol.reader_features) == FEATURES
    assert set(snapshot.protocol.writer_features or ()) >= {*FEATURES, "inCommitTimestamp"}
    properties = snapshot.metadata.configuration
    assert properties["io.unitycatalog.tableId"] == table.id
    assert properties["x.y"] == table.properties["x.y"] == "z"
    assert json.loads(snapshot.metadata.schema_string) == table.columns
    assert (table.partition_columns, table.comment) == (["day"], "rows")
    made = next(each for each in server.seen if each.path.endswith("/s/tables"))
    assert made.body["last-commit-timestamp-ms"] == snapshot.timestamp
    # And it is like any other.
    write_arrow(NAME, {"id": [1], "day": [None]}, mode="append", conf=conf)
    assert ids(server) == [1]


@pytest.mark.parametrize("mode", ["error", "append", "overwrite", "ignore"])
def test_rows_make_a_table(server: UnityServer, mode: Any) -> None:
    assert write_arrow(NAME, {"id": [1, 2]}, mode=mode, conf=server.conf()) == 0
    assert ids(server) == [1, 2]
    folder = Path(server.table(NAME).location.removeprefix("file://"))
    assert (folder / "_delta_log/_staged_commits").is_dir(), "the JVM's client makes none"
    other_client_commits(server, folder, 3)
    assert ids(server) == [1, 2, 3]


def test_a_clustered_table_tells_the_catalog_its_columns(server: UnityServer) -> None:
    create_table(NAME, "id bigint, s string", cluster_by="id", conf=server.conf())
    assert server.table(NAME).domains == {"delta.clustering": {"clusteringColumns": [["id"]]}}


def test_a_table_is_replaced_by_a_commit(server: UnityServer) -> None:
    conf = server.conf()
    write_arrow(NAME, {"id": [1]}, conf=conf)
    with pytest.raises(TableExistsError):
        create_table(NAME, "s string", conf=conf)
    assert create_table(NAME, "s string", mode="create_if_not_exists", conf=conf) == 0
    before = dict(server.table(NAME).properties)
    assert create_table(NAME, "s string", mode="replace", properties={"a": "b"}, conf=conf) == 1
    table = server.table(NAME)
    assert [each["name"] for each in table.columns["fields"]] == ["s"]
    assert (
        table.properties.items()
        >= {
            "io.unitycatalog.tableId": table.id,
            "delta.enableInCommitTimestamps": "true",
            "delta.checkpointPolicy": before["delta.checkpointPolicy"],
            "a": "b",
        }.items()
    )
    assert read_arrow(NAME, conf=conf).num_rows == 0
    write_arrow(NAME, {"s": ["x"]}, mode="append", conf=conf)
    assert read_arrow(NAME, conf=conf)["s"].to_pylist() == ["x"]


def test_only_a_table_that_is_there_is_replaced(server: UnityServer) -> None:
    with pytest.raises(TableNotFoundError, match=NAME):
        create_table(NAME, "id bigint", mode="replace", conf=server.conf())
    assert server.staging == {}


def test_a_deep_clone_gets_a_name(server: UnityServer, tmp_path: Path) -> None:
    source = str(tmp_path / "source")
    write_arrow(source, {"id": [1, 2]})
    clone(source, NAME, shallow=False, conf=server.conf())
    write_arrow(NAME, {"id": [3]}, mode="append", conf=server.conf())
    assert ids(server) == [1, 2, 3]
    with pytest.raises(DeltaAnalysisError, match="deep clone"):
        clone(source, "lake.s.other", conf=server.conf())


BAD: dict[str, tuple[Callable[[dict[str, str]], object], str]] = {
    "no schema": (
        lambda conf: write_arrow("lake.other.t", {"id": [1]}, conf=conf),
        r"has no schema lake\.other",
    ),
    "a property the catalog does not want": (
        lambda conf: create_table(
            NAME, "id int", properties={"delta.enableDeletionVectors": "false"}, conf=conf
        ),
        "makes no table with delta.enableDeletionVectors",
    ),
    "no such type": (lambda conf: create_table(NAME, "id nonsense", conf=conf), "nonsense"),
    "a bad mode": (lambda conf: write_arrow(NAME, {"id": [1]}, mode="x", conf=conf), "mode"),  # type: ignore[arg-type]
    "rows that break off": (
        lambda conf: write_arrow(NAME, _broken(), conf=conf),
        "the source failed",
    ),
}


def _broken() -> Any:
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        for each in range(3):
            yield pa.record_batch({"id": [each]})
        raise OSError("the source failed")

    return batches()


@pytest.mark.parametrize("what", BAD)
def test_a_table_that_can_not_be_made_leaves_nothing(server: UnityServer, what: str) -> None:
    make, said = BAD[what]
    with pytest.raises(Exception, match=said):
        make(server.conf())
    assert server.tables == {}
    assert folders(server) == []


def test_a_place_in_which_another_table_is_stays_that_tables(
    server: UnityServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_table(server, "lake.s.there")
    real, first = server._new_staging, folder / f"_delta_log/{0:020d}.json"

    def twice(name: tuple[str, str, str], body: Any) -> Any:
        return {**real(name, body), "location": f"file://{folder}"}

    monkeypatch.setattr(server, "_new_staging", twice)
    before = first.read_bytes()
    with pytest.raises(CatalogError, match="is there already, of another table"):
        write_arrow(NAME, {"id": [1]}, conf=server.conf())
    assert first.read_bytes() == before
    assert [*server.tables] == [("lake", "s", "there")]


def test_a_refusal_of_the_catalog_leaves_nothing(server: UnityServer) -> None:
    def denied(request: Request) -> None:
        if request.path.endswith("/s/tables"):
            raise FaultError(403, "PermissionDeniedException")

    server.before = denied
    with pytest.raises(CatalogError, match="PermissionDenied"):
        write_arrow(NAME, {"id": [1]}, conf=server.conf())
    assert server.tables == {}
    assert folders(server) == []


@pytest.mark.parametrize(
    "fault",
    [
        "no reply",
        "500 after",
        "409 after",
        "403 after",
        "400 after",
        "404 after",
        "500 before",
        "closed",
    ],
)
def test_whatever_the_reply_was_the_table_is_made_once(server: UnityServer, fault: str) -> None:
    left = [1]

    def once(request: Request) -> None:
        if request.path.endswith("/s/tables") and left:
            left.clear()
            status = None if fault in ("no reply", "closed") else int(fault[:3])
            kinds = {409: "AlreadyExistsException", 500: "CommitStateUnknownException"}
            kind = kinds.get(status or 500, "PermissionDeniedException")
            raise FaultError(status, kind)

    if fault in ("500 before", "closed"):
        server.before = once
    else:
        server.after = once
    assert write_arrow(NAME, {"id": [1]}, conf=server.conf()) == 0
    assert not left
    assert ids(server) == [1]
    assert server.table(NAME).latest == 0


@pytest.mark.parametrize("first", [None, 409, 403])
def test_a_server_that_says_nothing_more_leaves_it_open(
    server: UnityServer, first: int | None
) -> None:
    silent: list[Request] = []

    def gone(request: Request) -> None:
        if silent or request.path.endswith("/s/tables"):
            silent.append(request)
            if len(silent) == 1:
                raise FaultError(first, "AlreadyExistsException")
            raise FaultError(403, "PermissionDeniedException")

    server.after = gone
    with pytest.raises(CommitOutcomeUnknownError):
        write_arrow(NAME, {"id": [1]}, conf=server.conf())
    server.after = None
    assert ids(server) == [1]  # and its files were kept


@pytest.mark.parametrize("mode", ["error", "append", "ignore", "overwrite"])
def test_of_two_who_make_a_table_one_does(server: UnityServer, mode: Any) -> None:
    done: list[int] = []

    def other(request: Request) -> None:
        if request.path.endswith("/s/tables") and not done:
            done.append(1)
            other_client_commits(server, make_table(server), 9)

    server.before = other
    conf = server.conf()
    if mode == "error":
        with pytest.raises(TableExistsError):
            write_arrow(NAME, {"id": [1]}, mode=mode, conf=conf)
    else:
        write_arrow(NAME, {"id": [1]}, mode=mode, conf=conf)
    assert ids(server) == {"append": [1, 9], "overwrite": [1]}.get(mode, [9])
    folder = server.table(NAME).location.removeprefix("file://")
    assert all(str(each).startswith(folder) for each in folders(server))


def test_a_stream_is_not_written_again_where_another_made_the_table(server: UnityServer) -> None:
    done: list[int] = []

    def other(request: Request) -> None:
        if request.path.endswith("/s/tables") and not done:
            done.append(1)
            make_table(server)

    def batches() -> Iterator[Any]:
        import pyarrow as pa

        yield pa.record_batch({"id": [1]})

    server.before = other
    with pytest.raises(CatalogError, match="another writer has made"):
        write_arrow(NAME, batches(), mode="append", conf=server.conf())
    assert ids(server) == []


def test_a_table_gets_another_name(server: UnityServer) -> None:
    conf = server.conf()
    write_arrow(NAME, {"id": [1]}, conf=conf)
    open_before = DeltaLog.for_table(NAME, conf)
    rename_table(NAME, "lake.s.u", conf=conf)
    assert ids(server, "lake.s.u") == [1]
    with pytest.raises(TableNotFoundError, match="open it by its new name"):
        open_before.update()
    with pytest.raises(TableNotFoundError):
        rename_table(NAME, "lake.s.v", conf=conf)
    write_arrow(NAME, {"id": [2]}, conf=conf)
    with pytest.raises(TableExistsError, match=r"lake\.s\.u"):
        rename_table(NAME, "lake.s.u", conf=conf)
    with pytest.raises(DeltaAnalysisError, match="its schema"):
        rename_table(NAME, "lake.other.t", conf=conf)


def test_a_table_is_dropped(server: UnityServer) -> None:
    conf = server.conf()
    write_arrow(NAME, {"id": [1]}, conf=conf)
    assert drop_table(NAME, conf=conf)
    with pytest.raises(TableNotFoundError):
        read_arrow(NAME, conf=conf)
    with pytest.raises(TableNotFoundError):
        drop_table(NAME, conf=conf)
    assert not drop_table(NAME, if_exists=True, conf=conf)
    write_arrow(NAME, {"id": [2]}, conf=conf)
    assert ids(server) == [2]


def test_what_has_no_name_is_neither_renamed_nor_dropped(tmp_path: Path) -> None:
    with pytest.raises(DeltaAnalysisError, match="no name in a catalog"):
        drop_table(str(tmp_path))
    with pytest.raises(DeltaAnalysisError, match="no name in a catalog"):
        rename_table("lake.s.t", "lake.s.u")
    for odd in (tmp_path, 7, None):
        with pytest.raises(DeltaAnalysisError, match="no name in a catalog"):
            drop_table(cast("Any", odd))


@pytest.mark.parametrize("what", ["rename", "drop"])
def test_a_request_that_comes_late_was_ours(server: UnityServer, what: str) -> None:
    conf = server.conf()
    write_arrow(NAME, {"id": [1]}, conf=conf)
    asked: list[str] = []

    def late(request: Request) -> None:
        if request.method == "DELETE" or request.path.endswith("/rename"):
            asked.append(request.path)
            if len(asked) == 1:
                raise FaultError(None)
            # The first one is done now, just before the second.
            table = server.tables.pop(("lake", "s", "t"))
            if what == "rename":
                server.tables["lake", "s", "u"] = table

    server.before = late
    if what == "rename":
        rename_table(NAME, "lake.s.u", conf=conf)
        assert ids(server, "lake.s.u") == [1]
    else:
        assert drop_table(NAME, conf=conf)
        assert server.tables == {}
    assert len(asked) == 2


@pytest.mark.parametrize("fault", ["lost", "not done"])
@pytest.mark.parametrize("what", ["rename", "drop"])
def test_a_lost_reply_is_looked_at(server: UnityServer, what: str, fault: str) -> None:
    conf = server.conf()
    write_arrow(NAME, {"id": [1]}, conf=conf)
    asked: list[str] = []

    def once(request: Request) -> None:
        if request.method == "DELETE" or request.path.endswith("/rename"):
            asked.append(request.path)
            if len(asked) == 1:
                raise FaultError(None)

    if fault == "lost":
        server.after = once
    else:
        server.before = once
    if what == "rename":
        rename_table(NAME, "lake.s.u", conf=conf)
        assert ids(server, "lake.s.u") == [1]
    else:
        drop_table(NAME, conf=conf)
        assert server.tables == {}
    assert len(asked) == (1 if fault == "lost" else 2)


@pytest.mark.parametrize("status", [400, 403])
@pytest.mark.parametrize("what", ["rename", "drop"])
def test_a_refusal_of_what_was_done_is_looked_at(
    server: UnityServer, what: str, status: int
) -> None:
    conf = server.conf()
    write_arrow(NAME, {"id": [1]}, conf=conf)
    done: list[Request] = []

    def refused(request: Request) -> None:
        if request.method == "DELETE" or request.path.endswith("/rename"):
            done.append(request)
            raise FaultError(status, "PermissionDeniedException")

    def silent(request: Request) -> None:
        if done:
            raise FaultError(status, "PermissionDeniedException")

    def change() -> None:
        if what == "rename":
            rename_table(NAME, "lake.s.u", conf=conf)
        else:
            assert drop_table(NAME, conf=conf)

    server.before = refused
    with pytest.raises(CatalogError, match="refused") as said:
        change()
    assert "not known" not in str(said.value)
    assert ids(server) == [1]
    server.before, server.after = None, refused
    change()
    assert set(server.tables) == ({("lake", "s", "u")} if what == "rename" else set())
    server.after = None
    write_arrow(NAME, {"id": [2]}, conf=conf)
    if what == "rename":
        drop_table("lake.s.u", conf=conf)

    done.clear()
    server.before, server.after = silent, refused
    with pytest.raises(CatalogError, match="It is not known whether it was done"):
        change()


def test_another_table_of_the_name_is_not_dropped_in_its_place(server: UnityServer) -> None:
    conf = server.conf()
    write_arrow(NAME, {"id": [1]}, conf=conf)
    done: list[int] = []

    def swapped(request: Request) -> None:
        if request.method == "DELETE" and not done:
            done.append(1)
            server.drop(NAME)
            make_table(server)
            raise FaultError(None)

    server.before = swapped
    drop_table(NAME, conf=conf)
    assert ids(server) == []  # of the new one, which is still there


@pytest.mark.parametrize("fate", ["ok", "lost", "unsent", "late", "odd"])
def test_a_catalog_of_ones_own_makes_tables(fate: str) -> None:
    ModelCatalog.fates = deque([fate])
    name = "model.s.made"
    assert write_arrow(name, {"id": [1]}, conf=CONF) == 0
    while ModelCatalog.late:
        with pytest.raises(CatalogError):  # it was asked for twice
            ModelCatalog.late.popleft()()
    assert read_arrow(name, conf=CONF)["id"].to_pylist() == [1]
    rename_table(name, "model.s.moved", conf=CONF)
    assert read_arrow("model.s.moved", conf=CONF).num_rows == 1
    assert drop_table("model.s.moved", conf=CONF)


def test_a_catalog_that_makes_no_tables_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("stage_table", "create_table", "rename_table", "drop_table"):
        monkeypatch.setattr(ModelCatalog, each, getattr(Catalog, each))
    with pytest.raises(CatalogError, match="makes, renames and drops no tables"):
        create_table("model.s.made", "id int", conf=CONF)


def test_the_command_line(server: UnityServer, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from lakelog.cli.app import app

    conf = tmp_path / "lake.conf"
    conf.write_text(f"spark.sql.catalog.lake.token={server.token}\n")
    shared = ["--catalog", f"lake={server.url}", "--conf-file", str(conf)]
    rows = tmp_path / "rows.json"
    rows.write_text('{"id": 1}\n{"id": 2}\n')

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, [*words, *shared])
        assert done.exit_code == code, done.output
        return done.output

    run("write", NAME, str(rows))
    assert ids(server) == [1, 2]
    run("write", NAME, str(rows), code=2)
    run("clone", NAME, "lake.s.copy", "--deep")
    assert ids(server, "lake.s.copy") == [1, 2]
    run("rename", "lake.s.copy", "lake.s.moved")
    assert ids(server, "lake.s.moved") == [1, 2]
    assert "pass --yes" in run("drop", "lake.s.moved", code=2)
    asked = run("drop", "s3://key:s3cr3t@bucket/t", code=2)
    assert "pass --yes" in asked
    assert "s3cr3t" not in asked
    run("drop", "lake.s.moved", "--yes")
    run("drop", "lake.s.moved", "--yes", "--if-exists")
    run("drop", "lake.s.moved", "--yes", code=2)
    run("drop", str(tmp_path), "--yes", code=2)
