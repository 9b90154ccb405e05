"""Catalogs, schemas and tables whose names are words of SQL, or no words at all."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from lakelog.cli.app import app
from lakelog.core import create_table, drop_table, read_arrow, rename_table, write_arrow
from lakelog.core.catalogs.names import TableName
from lakelog.core.hooks.background import wait_for_all
from support.unity_server import UnityServer, Ways, serving

if TYPE_CHECKING:
    from pathlib import Path

ODD = (
    *("select", "table", "a-b", "a.b", "a b", "a`b", "``", "naïve", "表", "a%2Fb", "a%b", "a/b"),
    *("a\\b", "a:b", "a'b", 'a"b', "a?b", "a#b", "a&b", "a+b", " lead", "trail ", "...", "a\nb"),
    *("🦆", "1", "-", "a;b", "null", "{x}", "[x]", "*", "e\u0301", "x" * 255, "ü" * 255),
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
