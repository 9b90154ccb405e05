"""The interpreter that the tests' Spark starts for its workers: ours, which begins sooner."""

from __future__ import annotations

import sys
from pathlib import Path

WORKERS = str(Path(sys.executable).with_name("lakelog-python"))
