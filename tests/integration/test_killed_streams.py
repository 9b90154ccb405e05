"""Streams whose processes are killed: JVM, driver and Python workers, at moments drawn by chance.

It takes minutes, and so runs where it is asked for:

    LAKELOG_KILLS=50 .venv/bin/pytest -n 0 --timeout 0 tests/integration/test_killed_streams.py
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from support.examples import SEED
from support.killed_streams.lives import live_and_die

if TYPE_CHECKING:
    from pathlib import Path

KILLS = int(os.environ.get("LAKELOG_KILLS") or 0)

if KILLS:

    def test_no_row_is_lost_and_none_comes_twice(tmp_path: Path) -> None:
        report = live_and_die(str(tmp_path), KILLS, SEED)
        assert report.wrong == []
        assert report.kills + report.worker_kills == KILLS
