"""Streams whose processes are killed: JVM, driver and Python workers, at moments drawn by chance.

Two deaths of one query on a disk or one on an object store, as the day draws, in `make test`; more
of them, and of all queries at once, in `make soak`, or as many as are asked for:

    LAKELOG_KILLS=50 .venv/bin/pytest -n 0 --timeout 0 -o faulthandler_timeout=0 \\
        tests/integration/test_killed_streams.py
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.examples import SEED, examples
from support.killed_streams.lives import live_and_die
from support.killed_streams.places import Place
from support.killed_streams.queries import SHAPES

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.minio import S3Endpoint

_FEW = 2
KILLS = int(os.environ.get("LAKELOG_KILLS") or examples(_FEW))
# Some 35 s where nothing else runs, and 230 beside six busy loops and another run of all tests.
pytestmark = pytest.mark.timeout(280 if KILLS <= _FEW else 0)


def _live(where: Place, checkpoints: Path, one: str, kills: int = KILLS) -> None:
    few = KILLS <= _FEW
    report = live_and_die(
        where,
        kills,
        SEED,
        shapes=(one,) if few else tuple(SHAPES),
        checkpoints=str(checkpoints),
        most_steps=6 if few else 12,
    )
    assert report.wrong == []
    assert report.kills + report.worker_kills == kills


@pytest.mark.soak
@pytest.mark.one_day_in(4 if KILLS <= _FEW else 1)
@pytest.mark.parametrize(
    "place", ["disk", pytest.param("object store", marks=pytest.mark.needs("minio"))]
)
def test_no_row_is_lost_and_none_comes_twice(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if place == "disk":
        _live(Place(str(tmp_path)), tmp_path / "checkpoints", "copy")
        return
    # By a MERGE for each batch, which would count twice what comes twice.
    minio: S3Endpoint = request.getfixturevalue("minio")
    bucket: str = request.getfixturevalue("s3_bucket")
    where = Place(f"s3a://{bucket}/streams", minio.conf, minio.conf)
    _live(where, tmp_path, "upserts", 1 if KILLS <= _FEW else KILLS)
