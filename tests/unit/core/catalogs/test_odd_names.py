"""Catalogs, schemas and tables whose names are words of SQL, or no words at all."""

from __future__ import annotations

import json
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakelog.cli.app import app
from lakelog.core import (
    DeltaLog,
    create_table,
    delete_rows,
    drop_table,
    read_arrow,
    rename_table,
    scan,
    write_arrow,
)
from lakelog.core.catalogs.names import TableName
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError
from lakelog.core.hooks.background import wait_for_all
from lakelog.core.wire import Reply, Wire
from support.examples import examples
from support.unity_server import Table, UnityServer, Ways, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

ODD = (
    *("select", "table", "a-b", "a.b", "a b", "a`b", "``", "naïve", "表", "a%2Fb", "a%b", "%2e%2e"),
    *("a\\b", "a:b", "a'b", 'a"b', "a?b", "a#b", "a&b", "a+b", " lead", "trail ", "...", "a\nb"),
    *("🦆", "1", "-", "a;b", "null", "{x}", "[x]", "*", "e\u0301", "x" * 255, "ü" * 255),
)
PARTS = (
    *("a", "t", "A", "é", "e\u0301", "\u202e", "\u200b", "🦆", "1", "_", " ", "\n", "\t", "\0"),
    *(".", "..", "/", "\\", "%", "%2F", "%2e", "%00", "?", "#", ";", ":", "&", "=", "+", "`", "'"),
    *('"', "s3://", "file:", "delta", "default", "tables/t", "/../t", "@v0", "$", "{", "}", "*"),
    "\ud800",
)


def test_each_part_of_a_name_may_be_odd(tmp_path: Path) -> None:
    with serving(UnityServer(tmp_path, Ways(checks_published=True), token="t0ken")) as server:
        secret = tmp_path / "lake.conf"
        secret.write_text("spark.sql.catalog.lake.token=t0ken\n")
        shared = ["--catalog", f"lake={server.url}", "--conf-file", str(secret), "--json"]
        conf, failed = server.conf(), list[str]()
        server.add_schema("lake", "s")
        for odd in ODD:
            server.add_schema("lake", odd)
            for name in (TableName("lake", "s", odd), TableName("lake", odd, "t")):
                text, new = str(name), name._replace(table=f"{name.table[:200]}2")
                create_table(text, "id bigint", conf=conf)
                write_arrow(text, {"id": [1]}, mode="append", conf=conf)
                assert wait_for_all(60)
                assert tuple(name) in server.tables, text
                done = CliRunner().invoke(app, ["sample", text, *shared])
                if done.exit_code or len(json.loads(done.stdout)["rows"]) != 1:
                    failed.append(f"{text!r}: {done.output}")
                rename_table(text, str(new), conf=conf)
                assert read_arrow(str(new), conf=conf).num_rows == 1
                drop_table(str(new), conf=conf)
        assert failed == []
        assert server.tables == {}


class Reached(UnityServer):
    """Notes which tables its requests are about."""

    def __init__(self, root: Path, ways: Ways) -> None:
        super().__init__(root, ways)
        self.reached = set[tuple[str, str, str]]()

    def _of_table(
        self,
        method: str,
        name: tuple[str, str, str],
        rest: str,
        body: Any,
        query: dict[str, list[str]],
    ) -> tuple[int, Any]:
        self.reached.add(name)
        return super()._of_table(method, name, rest, body, query)


@contextmanager
def without_sockets(server: UnityServer) -> Iterator[None]:
    """Whatever is asked over HTTP, the server answers it."""

    def send(
        wire: Wire, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Reply:
        status, value = server.answer(method, path, body or b"", dict(headers))
        return Reply(status, b"" if value is None else json.dumps(value).encode(), None, None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Wire, "send", send)
        yield


def alike(part: str) -> set[str]:
    """What some server, proxy, file system or text function may take for the same."""
    found = {
        *(
            unquote(part, errors="replace"),
            part.lower(),
            part.upper(),
            part.strip(),
            part.strip("."),
        ),
        *(unicodedata.normalize(form, part) for form in ("NFC", "NFD", "NFKC")),
        *(part.partition(each)[0] for each in "./\\?#;\0@:%"),
        *(part.rpartition(each)[2] for each in "./\\:"),
        *("t", "a", "default"),
    }
    return found - {"", part}


NAMES = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("".join)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(odd=NAMES, which=st.integers(0, 2), decodes_first=st.booleans())
def test_no_name_reaches_another_table(
    tmp_path_factory: pytest.TempPathFactory, odd: str, which: int, decodes_first: bool
) -> None:
    """Each does its work at the table of exactly that name, or is refused by one clear error."""
    parts = ["lake", "s", "t"]
    # No catalog of a Spark conf has a dot.
    parts[which] = odd.replace(".", "_") if which == 0 else odd
    name = TableName(*parts)
    ways = Ways(checks_staged=False, decodes_first=decodes_first)
    server = Reached(tmp_path_factory.mktemp("unity", numbered=True), ways)
    others = {name._replace(**{TableName._fields[which]: each}) for each in alike(parts[which])}
    for other in others:
        server.add_schema(other[0], other[1])
        server.tables[other] = Table("id-of-" + "-".join(other), "file:///nowhere", {}, [], {})
    server.add_schema(name.catalog, name.schema)
    before = dict(server.tables)
    conf = {f"spark.sql.catalog.{name.catalog}.uri": "http://unity"}
    with without_sockets(server):
        text = str(name)
        uses: list[Callable[[], Any]] = [
            lambda: create_table(text, "id bigint", conf=conf),
            lambda: write_arrow(text, {"id": [1, 2]}, mode="append", conf=conf),
            lambda: delete_rows(text, "id = 2", conf=conf),
            lambda: read_arrow(text, conf=conf),
            lambda: scan(text, conf=conf).count(),
            lambda: DeltaLog.for_table(text, conf).history(),
            lambda: drop_table(text, conf=conf),
        ]
        refused = list[str]()
        for use in uses:
            try:
                use()
            except DeltaAnalysisError as exc:
                refused.append(str(exc))
        assert wait_for_all(60)
    assert server.reached <= {tuple(name)}
    assert server.tables == before
    if refused:
        assert len(refused) == len(uses)
        assert all("can't be a part of a name" in each for each in refused)
        assert server.seen == []


@pytest.mark.parametrize(
    "text",
    [
        "lake.s",
        "lake..t",
        "lake.s.",
        "lake.s.t.u",
        "lake.s.``",
        "lake.s.`t",
        "lake.s.t ",
        "LAKE.s.t",
    ],
)
def test_what_is_nearly_a_name_is_no_folder(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    conf = {"spark.sql.catalog.lake.uri": "http://nowhere"}
    for use in (
        lambda: write_arrow(text, {"id": [1]}, conf=conf),
        lambda: create_table(text, "id bigint", conf=conf),
        lambda: read_arrow(text, conf=conf),
        lambda: drop_table(text, conf=conf),
        lambda: rename_table("lake.s.t", text, conf=conf),
    ):
        with pytest.raises(DeltaAnalysisError, match="begins with a catalog of the conf"):
            use()
    for command in (["history"], ["describe"], ["doctor"], ["report"], ["drop", "--yes"]):
        done = CliRunner().invoke(app, [*command, text, "--catalog", "lake=http://nowhere"])
        assert (done.exit_code, "begins with a catalog" in done.output) == (2, True), done.output
    assert list(tmp_path.iterdir()) == []
    write_arrow(f"./{text}", {"id": [1]}, conf=conf)
    assert read_arrow(f"./{text}", conf=conf).num_rows == 1


def test_a_name_in_another_case_is_the_servers_business(tmp_path: Path) -> None:
    with serving(UnityServer(tmp_path, Ways(folds_case=True))) as server:
        conf = server.conf()
        server.add_schema("lake", "s")
        create_table("lake.S.Orders", "id bigint", conf=conf)
        logs = [DeltaLog.for_table(f"lake.{each}", conf) for each in ("s.orders", "S.ORDERS")]
        for number in range(4):
            write_arrow(logs[number % 2], {"id": [number]}, mode="append")
        assert sorted(read_arrow("lake.s.oRDERS", conf=conf)["id"].to_pylist()) == [0, 1, 2, 3]
        with pytest.raises(DeltaAnalysisError, match="already"):
            create_table("lake.s.ORDERS", "id bigint", conf=conf)
        rename_table("lake.s.ORDERS", "lake.s.Old", conf=conf)
        with pytest.raises(TableNotFoundError):
            write_arrow(logs[0], {"id": [9]}, mode="append")
        drop_table("lake.s.OLD", conf=conf)
        assert wait_for_all(60)
        assert server.tables == {}


def test_a_catalog_of_the_command_line_may_have_an_equals_sign(tmp_path: Path) -> None:
    with serving(UnityServer(tmp_path)) as server:
        server.add_schema("a=b", "s")
        create_table("a=b.s.t", "id bigint", conf=server.conf("a=b"))
        shared = ["--catalog", f"a=b={server.url}"]
        assert CliRunner().invoke(app, ["history", "a=b.s.t", *shared]).exit_code == 0


def test_a_catalog_of_the_command_line_has_no_dot() -> None:
    done = CliRunner().invoke(app, ["history", "a.b.s.t", "--catalog", "a.b=http://nowhere"])
    assert done.exit_code == 2
    assert "can't have a dot" in done.output
