"""What opens a table, where it may be the name that a catalog knows it by."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core import DeltaConf, DeltaLog, write_arrow
from lakelog.core.errors import TableNotFoundError
from lakelog.spark.names.governed import address_of, keys_of_name, lasting
from lakelog.spark.replay.logs import forget_logs, session_log
from support.unity_server import UnityServer, serving
from support.unity_tables import make_table, other_client_commits

if TYPE_CHECKING:
    from pathlib import Path


class Session:
    """Stands for a session, which is asked nothing."""


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


def test_a_read_of_a_known_table_asks_once_and_sees_what_is_new(tmp_path: Path) -> None:
    session: Any = Session()
    with serving(UnityServer(tmp_path / "unity")) as server:
        folder, conf = make_table(server), DeltaConf(server.conf())

        def read() -> int:
            server.seen.clear()
            return session_log(session, "lake.s.t", conf).update().version

        assert read() == 0
        log = session_log(session, "lake.s.t", conf)
        for version in range(1, 4):
            other_client_commits(server, folder, version)
            assert read() == version
            assert [each.method for each in server.seen] == ["GET"]
        assert session_log(session, "lake.s.t", conf) is log
        # Only the call that asked may rely on it: neither another thread, nor a second look.
        session_log(session, "lake.s.t", conf)
        other_client_commits(server, folder, 4)
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(log.update).result().version == 4
        session_log(session, "lake.s.t", conf).update()
        other_client_commits(server, folder, 5)
        assert log.update().version == 5
        # A log that has met the end of its table is not gone on with.
        table = server.tables.pop(("lake", "s", "t"))
        with pytest.raises(TableNotFoundError):
            log.update()
        server.tables["lake", "s", "t"] = table
        assert read() == 5
    forget_logs(session)
