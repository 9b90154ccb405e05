"""A commit to a table that Unity Catalog governs, lakelog against delta-spark, and its requests.

    python benchmarks/catalog.py   # printed only

Both are clients of one server on loopback, the tests' double of Unity Catalog, with a table each of
one making. The requests are those of one commit, counted by the server until nothing more comes.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from commits import commit_ours
from measure import HEADER, Measurement

from lakelog.core import DeltaLog, write_arrow

if TYPE_CHECKING:
    from support.unity_server import UnityServer

ROUNDS, IN_A_ROW, WARM_UPS = 12, 5, 10
TARGET = 0.3
_QUIET = 1.0
"""Seconds after which no request of a commit is still to come: some are made after it returned."""
Work = Callable[[int], list[float]]
"""Does so many in a row, and gives the seconds of each."""


def measure(folder: Path) -> list[Measurement]:
    """Commits of one action, and appends of one row."""
    from support.delta_spark import DELTA
    from support.delta_spark_peer import DeltaSparkPeer
    from support.delta_spark_unity import WRITERS, unity_client
    from support.unity_server import UnityServer, serving
    from support.unity_tables import make_table

    root = Path(tempfile.mkdtemp(dir=folder))
    never = {"delta.checkpointInterval": "1000000"}
    try:
        with (
            serving(UnityServer(root, token="t0ken")) as server,
            DeltaSparkPeer(unity_client(), server.conf()) as peer,
        ):
            for name in ("ours", "theirs"):
                make_table(server, f"lake.s.{name}", never)
            log = DeltaLog.for_table("lake.s.ours", server.conf())
            log.update()

            def commit(many: int) -> list[float]:
                return [commit_ours(log, number) for number in range(many)]

            def commit_theirs(many: int) -> list[float]:
                unique = str(time.monotonic_ns())
                given = ("lake.s.theirs", str(many), unique)
                return list(peer.script(WRITERS, "commit_times", *given))

            def append(many: int) -> list[float]:
                took = []
                for number in range(many):
                    start = time.perf_counter()
                    write_arrow(log, {"id": [number]}, mode="append")
                    took.append(time.perf_counter() - start)
                return took

            def append_theirs(many: int) -> list[float]:
                return list(peer.script(WRITERS, "append_times", "lake.s.theirs", str(many)))

            return [
                _measured(
                    "commit of one action, Unity Catalog", DELTA, server, commit, commit_theirs
                ),
                _measured("append of one row, Unity Catalog", DELTA, server, append, append_theirs),
            ]
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _measured(
    what: str, version: str, server: UnityServer, ours: Work, theirs: Work
) -> Measurement:
    ours(WARM_UPS)
    theirs(WARM_UPS)
    took: tuple[list[float], list[float]] = [], []
    for _ in range(ROUNDS):
        took[0].extend(ours(IN_A_ROW))
        took[1].extend(theirs(IN_A_ROW))
    counted = [_requests(server, work) for work in (ours, theirs)]
    note = "requests of one: {} and {}".format(*counted)
    return Measurement(what, f"delta-spark {version}", *took, TARGET, note=note)


def _requests(server: UnityServer, work: Work) -> str:
    """How many requests one of several in a row makes."""
    time.sleep(_QUIET)
    server.seen.clear()
    work(IN_A_ROW)
    time.sleep(_QUIET)
    return f"{len(server.seen) / IN_A_ROW:g}"


def main() -> int:
    """Print the table; the exit code says whether all targets were reached."""
    found = measure(Path(tempfile.gettempdir()))
    print("\n".join([HEADER, *(each.row() for each in found)]))
    return 0 if all(each.reached for each in found) else 1


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    raise SystemExit(main())
