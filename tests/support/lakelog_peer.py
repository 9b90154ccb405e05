"""lakelog in a process of its own, told what to do as delta-spark's is."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from support.delta_spark import DeltaSpark
from support.delta_spark_peer import DeltaSparkPeer

if TYPE_CHECKING:
    from collections.abc import Mapping

SERVER = Path(__file__).with_name("lakelog_server.py")


class LakelogPeer(DeltaSparkPeer):
    """A Spark session after `enable`, with confs that the tests' own session can't have."""

    def __init__(self, confs: Mapping[str, str], *, timeout: float = 180.0) -> None:
        super().__init__(DeltaSpark(Path(sys.executable), ()), confs, timeout=timeout)
        self._command = [sys.executable, str(SERVER), "", json.dumps(dict(confs))]
