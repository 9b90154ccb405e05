"""Processes of one host that commit as one to object stores, whoever is killed when.

Those who lead and those who wait are killed at the steps that they take, and replies are lost.
"""

from __future__ import annotations

import itertools
import os
import re
from typing import TYPE_CHECKING

import pytest

from support.backends import backend_of
from support.examples import SEED
from support.fault_proxy import FaultProxy
from support.host_writers import play

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.minio import S3Endpoint

_KILLS = int(os.environ.get("LAKELOG_KILLS", "50"))
_LONG = bool(SEED)
"""With a seed, as in `make soak`, each step; else some."""


_CASES = [("minio", "leader"), ("minio", "late"), ("minio", "member")]
_CASES += [("azurite", "leader"), ("fake GCS", "leader")]
_MORE = [(each, mode) for each in ("azurite", "fake GCS") for mode in ("late", "member")]


@pytest.mark.one_day_in(5, 1)
@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("storage", "mode"), _CASES + _MORE if _LONG else _CASES)
def test_kills_lose_no_append_and_double_none(
    storage: str, mode: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = backend_of(storage, request)
    # Some of the steps at which it says what it sends, sends it, and says what came of it.
    some = range(4, 100, 9 if (storage, mode) == ("minio", "leader") else 14)
    numbers = range(1, 100) if _LONG else some
    assert play(tmp_path, mode, numbers, backend.uri("killed"), backend.conf) == []


_ROLES = {"leader": ("leader", "late", "both"), "follower": ("member", "both")}


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("storage", ["local files", "minio", "azurite", "fake GCS"])
@pytest.mark.parametrize("role", _ROLES)
def test_many_kills_lose_no_append_and_double_none(
    role: str, storage: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    backend = None if storage == "local files" else backend_of(storage, request)
    killed = 0
    for mode in itertools.cycle(_ROLES[role]):
        folder = tmp_path / f"{mode}-{killed}"
        folder.mkdir()
        root = None if backend is None else backend.uri(folder.name)
        conf = None if backend is None else backend.conf
        assert play(folder, mode, range(1, 100), root, conf) == []
        killed += len([*folder.glob("*/reached")])  # each step that is reached is a kill
        if killed >= _KILLS:
            return


_LOST = ("drop_reply", "cut_reply", "tell:500", "tell:503", "twice", "reset", "drop_request")


@pytest.mark.one_day_in(3, 2)
@pytest.mark.soak
@pytest.mark.parametrize("fault", _LOST if _LONG else _LOST[:3])
def test_lost_replies_lose_no_append_and_double_none(
    fault: str, minio: S3Endpoint, s3_bucket: str, tmp_path: Path
) -> None:
    with FaultProxy(minio.url) as proxy:
        conf = {
            **minio.conf,
            "spark.hadoop.fs.s3a.endpoint": proxy.url,
            "spark.lakelog.store.endpointProbe": "never",
        }
        # Of the first commits after the table's own: alone, of a group, and of who comes later.
        proxy.arm(fault, re.compile(rb"PUT [^ ]*/t/_delta_log/0+[123]\.json"), times=3)
        root = f"s3a://{s3_bucket}/{fault.replace(':', '-')}"
        assert play(tmp_path, "none", range(1, 3), root, conf) == []
        assert proxy.fired
