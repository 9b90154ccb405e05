"""Which tables a catalog has, by its name or a schema's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.core.catalogs.listing import listed_by, schemas_in, tables_in
from lakelog.core.errors import CatalogError, TableNotFoundError
from support.model_catalog import CONF
from support.unity_server import UnityServer, Ways, serving
from support.unity_tables import make_table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLES = ["lake.s.t0", "lake.s.t1", "lake.s.t2", "lake.s.t3", "lake.s.t4", "lake.z.t"]


@pytest.fixture(params=[1, 2, 5, 100])
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[UnityServer]:
    ways = Ways(most_listed=request.param, wants_pages=True)
    with serving(UnityServer(tmp_path, ways, token="t0ken")) as served:
        for name in TABLES:
            make_table(served, name)
        served.add_schema("lake", "empty")
        yield served


def listed(server: UnityServer, text: str) -> list[str]:
    names = listed_by(text, server.conf())
    assert names is not None
    return [str(each) for each in names()]


def test_a_catalog_a_schema_and_a_table_are_listed_page_by_page(server: UnityServer) -> None:
    assert listed(server, "lake") == TABLES
    assert listed(server, "lake.s") == TABLES[:5]
    assert listed(server, "`lake`.`z`") == TABLES[5:]
    assert listed(server, "lake.empty") == []
    assert listed(server, "lake.s.t3") == ["lake.s.t3"]


def test_the_schemas_of_a_catalog_are_listed(server: UnityServer) -> None:
    assert sorted(schemas_in("lake", server.conf())) == ["empty", "s", "z"]
    assert [each.table for each in tables_in("lake", "z", server.conf())] == ["t"]
    with pytest.raises(TableNotFoundError, match="nothing"):
        list(tables_in("lake", "nothing", server.conf()))


def test_views_and_tables_of_other_formats_are_left_out(server: UnityServer) -> None:
    server.tables["lake", "s", "t1"].kind = "VIEW"

    server.tables["lake", "s", "t2"].format = "DELTA_UNIFORM_ICEBERG"
    server.tables["lake", "s", "t3"].format = "DELTASHARING"

    assert listed(server, "lake.s") == ["lake.s.t0", "lake.s.t2", "lake.s.t4"]


@pytest.mark.parametrize("text", ["lake.nothing", "lake.s.nothing"])
def test_what_is_not_there_is_an_error(server: UnityServer, text: str) -> None:
    with pytest.raises(TableNotFoundError, match="nothing"):
        listed(server, text)


def test_a_wrong_token_is_said_and_not_shown(server: UnityServer) -> None:
    names = listed_by("lake.s", {**server.conf(), "spark.sql.catalog.lake.auth.token": "wr0ng"})
    assert names is not None
    with pytest.raises(CatalogError) as raised:
        list(names())
    assert "wr0ng" not in str(raised.value)


@pytest.mark.parametrize("text", ["other", "other.s", "./lake", "lake/s", "s3a://lake", "a.b.c.d"])
def test_what_no_catalog_of_the_conf_begins_is_a_path(server: UnityServer, text: str) -> None:
    assert listed_by(text, server.conf()) is None


def test_a_catalog_that_lists_nothing_says_so() -> None:
    names = listed_by("model.s", CONF)
    assert names is not None
    with pytest.raises(CatalogError, match="Name each of them"):
        list(names())
    with pytest.raises(CatalogError, match="lists no schemas"):
        list(schemas_in("model", CONF))
