"""What opens a table, where it may be the name that a catalog knows it by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, write_arrow
from lakelog.spark.names.governed import address_of, keys_of_name, lasting
from support.unity_server import UnityServer, serving
from support.unity_tables import make_table

if TYPE_CHECKING:
    from pathlib import Path

CONF = {
    "spark.sql.catalog.lake": "io.unitycatalog.spark.UCSingleCatalog",
    "spark.sql.catalog.lake.uri": "https://unity.example",
    "spark.sql.catalog.lake.auth.token": "t0ken",
    "spark.sql.catalog.lake2.uri": "https://unity.example",
    "spark.sql.catalog.lake2.auth.token": "another-t0ken",
    "spark.sql.shuffle.partitions": "8",
}


@pytest.mark.parametrize(
    ("target", "kept"),
    [
        ("lake.sales.orders", "lake.sales.orders"),
        ("`lake`.sales.`a b`", "lake.sales.`a b`"),
        ("/lake/t/", "/lake/t"),
        ("s3a://bucket/t", "s3a://bucket/t"),
    ],
)
def test_a_name_stays_a_name_and_a_path_becomes_absolute(target: str, kept: str) -> None:
    assert lasting(target, CONF) == kept


def test_a_relative_path_starts_where_the_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for text in ("./lake.sales.orders", "nolake.sales.orders"):
        assert lasting(text, CONF) == str(tmp_path / text)


def test_the_keys_of_a_names_catalog_travel_and_those_of_no_other() -> None:
    assert keys_of_name("/lake/t", CONF) == []
    found = keys_of_name("lake.sales.orders", CONF)
    assert found == ["spark.sql.catalog.lake.auth.token", "spark.sql.catalog.lake.uri"]


def test_a_governed_table_is_opened_again_by_its_name(tmp_path: Path) -> None:
    with serving(UnityServer(tmp_path / "unity")) as server:
        make_table(server)
        log = DeltaLog.for_table("lake.s.t", server.conf())
        assert address_of(log) == address_of(log.snapshot) == "lake.s.t"
    path = str(tmp_path / "t")
    write_arrow(path, {"id": [1]})
    assert address_of(DeltaLog.for_table(path)) == path
