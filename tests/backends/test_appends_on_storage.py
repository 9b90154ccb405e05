"""Appenders on real storage that are killed, behind a network with faults, or opened twice."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lakelog.core import DeltaLog, appender, create_table, read_arrow, vacuum
from lakelog.core.errors import AppenderStoppedError
from support.backends import Backend, backend_of
from support.examples import SEED
from support.fault_proxy import FaultProxy
from support.killed_appender import CONF_VARIABLE, KILL_VARIABLE, ROLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from support.servers.minio import S3Endpoint

SCRIPT = Path(__file__).parents[1] / "support" / "killed_appender.py"
MORE = 25
"""Rows that a process is to append at most before it is killed."""
_KILLS = int(os.environ.get("LAKELOG_KILLS", "50"))
STORAGES = ("local files", "minio", "azurite", "fake GCS", "HDFS")


@pytest.fixture
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "local files":
        return Backend(str(tmp_path), {}, str(tmp_path), {})
    return backend_of(request.param, request)


def _started(backend: Backend, table: str, rows: int, kill: str) -> subprocess.Popen[str]:
    more = {CONF_VARIABLE: json.dumps(backend.conf), KILL_VARIABLE: kill}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), table, "app", str(rows), "5ms"],
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        text=True,
    )


def _lines(process: subprocess.Popen[str]) -> Iterator[int]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("\n"):  # else it died while it wrote
            yield int(line)


def _killed(backend: Backend, moments: Mapping[str, range], kills: int) -> None:
    """Kill processes, each role in turn, at one moment after the other; look at what is there."""
    table, acknowledged = backend.uri("t"), -1
    create_table(table, "id bigint, app string", conf=backend.conf)
    moment = {role: each.start for role, each in moments.items()}
    roles = itertools.cycle(moments)
    done = runs = 0
    while done < kills:
        runs += 1
        assert runs <= 2 * kills + 4, f"{[*moments]} were killed {done} times in {runs} runs"
        rows = acknowledged + 1 + MORE
        # The first one leaves something to bring in.
        role = next(roles) if runs > 1 else ""
        kill = f"{role}:{moment[role]}" if role else "append:12"
        with _started(backend, table, rows, kill) as process:
            found = list(_lines(process))
        assert found[:1] >= [acknowledged] or not found
        acknowledged = max([acknowledged, *found])
        assert process.returncode in (0, -9)
        was_killed = process.returncode == -9
        done += was_killed
        if role:
            later = moment[role] + moments[role].step
            moment[role] = later if was_killed else moments[role].start
    # More than any of them can have saved, heard or not.
    rows = acknowledged + MORE + 2
    with _started(backend, table, rows, "") as process:
        assert max(_lines(process)) == rows - 1
    assert process.returncode == 0
    there = sorted(read_arrow(table, conf=backend.conf)["id"].to_pylist())
    assert there == list(range(rows))
    left = DeltaLog.for_table(table, backend.conf).snapshot.txn_version("app")
    assert left == rows - 1


@pytest.mark.one_day_in(3, 1)
@pytest.mark.parametrize("backend", ["minio"], indirect=True)
def test_what_was_saved_before_a_kill_is_there_once(backend: Backend) -> None:
    _killed(backend, {"open": range(3, 90, 10), "append": range(2, 90, 14)}, 5)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", STORAGES, indirect=True)
@pytest.mark.parametrize("role", ROLES)
def test_what_was_saved_before_many_kills_is_there_once(backend: Backend, role: str) -> None:
    _killed(backend, {role: range(1, 1000)}, _KILLS)


@pytest.mark.parametrize("backend", STORAGES if SEED else ["minio"], indirect=True)
def test_of_two_appenders_one_takes_over(backend: Backend) -> None:
    table = backend.uri("t")
    create_table(table, "id bigint", conf=backend.conf)
    a, b = None, None
    for number in range(0, 6, 2):
        b = appender(table, app_id="a", every="1h", save_every=0, conf=backend.conf)
        assert b.last_seq == number - 1
        b.append([{"id": number}]).wait_saved(60)
        if a is not None:
            with pytest.raises(AppenderStoppedError):
                a.append([{"id": -1}]).wait_saved(60)
        b.append([{"id": number + 1}]).wait_saved(60)
        vacuum(table, conf=backend.conf)
        a = b
    assert b is not None
    b.close()
    rows = read_arrow(table, conf=backend.conf)
    assert sorted(rows["id"].to_pylist()) == list(range(6))


LOST = ("drop_reply", "cut_reply", "tear_reply", "tell:500", "tell:503", "twice")
NOT_DONE = ("reset", "drop_request", "refuse:503", "refuse:500", "html:502")
PLACES = {
    "a segment": rb"PUT [^ ]*\.segment",
    "a commit": rb"PUT [^ ]*_delta_log/0+\d+\.json",
    "a data file": rb"(PUT|POST) [^ ]*\.parquet",
    "a look": rb"(GET|HEAD) ",
    "a deletion": rb"(DELETE|POST [^ ]*\?delete) ",
}


_SOME = [(place, "drop_reply") for place in PLACES]
_SOME += [("a segment", "tell:503"), ("a commit", "tell:503"), ("a segment", "reset")]
_ALL = [*itertools.product(PLACES, (*LOST, *NOT_DONE))]


@pytest.mark.soak
@pytest.mark.parametrize(("place", "fault"), _ALL if SEED else _SOME)
def test_a_network_with_faults_loses_nothing_and_doubles_nothing(
    place: str, fault: str, minio: S3Endpoint, s3_bucket: str, tmp_path: Path
) -> None:
    with FaultProxy(minio.url) as proxy:
        conf = {
            **minio.conf,
            "spark.hadoop.fs.s3a.endpoint": proxy.url,
            "spark.lakelog.store.endpointProbe": "never",
            "spark.lakelog.store.request.timeout": "5",
        }
        table = f"s3a://{s3_bucket}/{tmp_path.name}"
        create_table(table, "id bigint", conf=conf)
        a = appender(table, app_id="a", every="1h", save_every=0, conf=conf)
        for number in range(12):
            if number % 3 == 1:
                proxy.arm(fault, re.compile(PLACES[place]), times=2)
            ticket = a.append([{"id": number}], seq=number)
            ticket.wait_saved(60)
            if number % 4 == 2:
                a.flush(60)
                assert ticket.done()
            if number == 7:  # as after a crash
                a._intake.stop(AppenderStoppedError("crashed"))
                a = appender(table, app_id="a", every="1h", save_every=0, conf=conf)
                assert a.last_seq == 7
        a.close()
        assert proxy.fired
    assert sorted(read_arrow(table, conf=minio.conf)["id"].to_pylist()) == list(range(12))
