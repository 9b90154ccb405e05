"""The dashboard's queries, answered by a Prometheus that has scraped a process with a load."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from support.servers._service import free_port, running
from support.servers.prometheus import run_prometheus

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from support.servers.prometheus import Prometheus

DASHBOARD = Path(__file__).parents[2] / "contrib" / "grafana" / "lakelog.json"
HOSTILE = 'a"b\\c\nd{e="f"}'
"""A table's name as a label's value must not be taken for more."""

LOAD = """
    import sys
    from contextlib import suppress
    from lakelog.core import (
        DeltaLog, Operation, appender, delete_rows, merge, read_arrow, write_arrow
    )
    from lakelog.core.actions import SetTransaction
    from lakelog.core.engine.commit import BATCH, observing
    from lakelog.core.errors import DeltaError

    uri, conf = sys.argv[1], {"spark.lakelog.telemetry": "otel"}

    def load():
        log = DeltaLog.for_table(uri, conf)
        for number in range(5):
            write_arrow(log, {"id": [number]}, mode="append")
        old, older = log.start_transaction(), log.start_transaction()
        number = older.txn_version("job") + 1
        write_arrow(log, {"id": [9]}, mode="append", app_id="job", app_version=number)
        old.commit([], Operation.write("Append"))
        with suppress(DeltaError):
            older.commit([SetTransaction(app_id="job", version=number)], Operation("WRITE"))
        with suppress(DeltaError):
            delete_rows(log, "nothing = 1")
        delete_rows(log, "id < 3")
        read_arrow(log)
        log.checkpoint()
        append = lambda _: write_arrow(log, {"id": [1]}, mode="append")
        observing(conf, BATCH, log.table, append, batch=1, query_id="q")
        dead = []
        options = {"save_every": 0.01, "dead_letter": dead.append}
        with appender(log, app_id="feed", every=0.02, **options) as rows:
            rows.append([{"id": 1}, {"id": "no number"}], seq=(rows.last_seq or 0) + 1)

    load()
    for line in sys.stdin:
        load()
        print("loaded", flush=True)
"""


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Prometheus, once it has seen the load's metrics grow."""
    table = tmp_path_factory.mktemp("lake") / HOSTILE
    port = free_port()
    env = {k: "" for k in os.environ if k.startswith("OTEL_")}
    env |= {"OTEL_METRICS_EXPORTER": "prometheus", "OTEL_EXPORTER_PROMETHEUS_HOST": "127.0.0.1"}
    env["OTEL_EXPORTER_PROMETHEUS_PORT"] = str(port)
    argv = [sys.executable, "-c", dedent(LOAD), str(table)]
    with (
        run_prometheus(f"127.0.0.1:{port}") as server,
        running(argv, env=env, hold_stdin=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        batches = "lakelog_stream_batch_duration_seconds_count"
        for count in (1, 2, 3):
            _until(server, f"{batches} >= {count}", process)
            process.stdin.write("again\n")
            process.stdin.flush()
            assert process.stdout.readline() == "loaded\n"
        yield server


def _until(server: Prometheus, promql: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not server.query(promql):
        assert process.poll() is None, "the load has ended"
        assert time.monotonic() < deadline, f"{promql} never came true"
        time.sleep(0.05)


def _panels() -> list[Any]:
    found = json.loads(DASHBOARD.read_text())["panels"]
    return [pytest.param(each, id=each["title"]) for each in found]


@pytest.mark.needs("prometheus")
@pytest.mark.parametrize("panel", _panels())
def test_each_query_of_the_dashboard_shows_the_load(
    scraped: Prometheus, panel: dict[str, Any]
) -> None:
    for target in panel["targets"]:
        promql = target["expr"].replace("$table", ".*").replace("$__rate_interval", "1m")
        assert "$" not in promql
        series = scraped.query(promql)
        assert series, promql
        values = [float(each["value"][1]) for each in series]
        assert max(value for value in values if not math.isnan(value)) > 0, (promql, series)
        # What the legend names is there to be named.
        for each in series:
            for label in each["metric"]:
                assert f"{{{{{label}}}}}" in target["legendFormat"]


@pytest.mark.needs("prometheus")
def test_a_hostile_name_of_a_table_is_one_label(scraped: Prometheus) -> None:
    series = scraped.query("lakelog_command_duration_seconds_count")
    assert {each["metric"]["lakelog_table"].rpartition("/")[2] for each in series} == {HOSTILE}
    assert {each["metric"]["lakelog_command"] for each in series} == {"write", "delete"}


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    import re

    from lakelog.core.telemetry.catalogue import METRICS

    text = DASHBOARD.read_text()
    asked = {name.split("{")[0] for name in re.findall(r"lakelog_[a-z_]+(?=\{)", text)}
    known = {each.name.replace(".", "_") for each in METRICS}
    for name in asked:
        assert any(name.startswith(each) for each in known), name
    for each in known:
        assert any(name.startswith(each) for name in asked), each
