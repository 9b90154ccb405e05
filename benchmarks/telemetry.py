"""What metrics and spans add to the CPU time of a commit, exported to a collector that is near.

    .venv/bin/python benchmarks/telemetry.py [minio | azurite | gcs | far] [--commits 600]

A commit is an append of one row by `write_arrow`, with its data file and its log entry, on the
local disk or in a store of `bare.py`. Both ways take turns, commit by commit, on tables of their
own; the ratio is that of the medians, with an export of spans and metrics every hundred commits,
which does what waits too. The collector, which takes the requests and keeps nothing, is another
process. Beside it: what the SDK takes for the same two spans and two histograms alone, asked
between commits, so that they are as cold.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WARM_UPS = 30
_COMMITS_OF_AN_EXPORT = 100

COLLECTOR = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def cpu_of_commit(uri: str, mode: str, conf: Mapping[str, str]) -> float:
    """Seconds of CPU time that an append takes."""
    from lakelog.core import write_arrow

    began = time.process_time()
    write_arrow(uri, {"id": [1]}, mode="append", conf={**conf, "spark.lakelog.telemetry": mode})
    return time.process_time() - began


def cpu_of_the_sdk(version: int) -> float:
    """Seconds of CPU time that the spans and histograms of a commit take without lakelog."""
    from opentelemetry import context, metrics, trace

    tracer, meter = trace.get_tracer("bare"), metrics.get_meter("bare")
    histograms = [meter.create_histogram(f"bare.{name}") for name in ("command", "commit")]
    commit = {"table": "/t", "operation": "WRITE", "outcome": "committed"}
    began = time.process_time()
    around = context.get_current()
    outer = tracer.start_span("command", around)
    inner = tracer.start_span("commit", trace.set_span_in_context(outer, around))
    inner.set_attributes({**commit, "txn_id": "b5c6a1dd-defb-4b80", "version": version})
    inner.end()
    histograms[1].record(0.01, commit)
    outer.set_attributes({"table": "/t", "command": "write"})
    outer.end()
    histograms[0].record(0.02, {"table": "/t", "command": "write"})
    return time.process_time() - began


def cpu_of_export() -> float:
    """Seconds of CPU time that the export of what waits takes."""
    from opentelemetry import metrics, trace

    began = time.process_time()
    for each in (trace.get_tracer_provider(), metrics.get_meter_provider()):
        each.force_flush()  # type: ignore[attr-defined]
    return time.process_time() - began


@contextlib.contextmanager
def folder_of_tables(place: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """A URI, and the conf for it."""
    if place == "local":
        with tempfile.TemporaryDirectory() as folder:
            yield folder, {}
        return
    from bare import PLACES

    with PLACES[place]() as (_, root, conf, _put):
        yield f"{root}/telemetry", conf


def measure(
    folder: str, conf: Mapping[str, str], commits: int
) -> tuple[float, float, float, float]:
    """Milliseconds of CPU time: a commit without telemetry and with it, its export, the SDK."""
    took: dict[str, list[float]] = {"off": [], "otel": []}
    bare: list[float] = []
    exports = 0.0
    for number in range(_WARM_UPS + commits):
        if number == _WARM_UPS:
            cpu_of_export()
        # Few versions a table: how long its log is must not matter.
        for mode, times in took.items():
            cpu = cpu_of_commit(f"{folder}/{mode}-{number // 50}", mode, conf)
            if number >= _WARM_UPS:
                times.append(cpu)
        if number > _WARM_UPS and number % _COMMITS_OF_AN_EXPORT == 0:
            exports += cpu_of_export()
    # Afterwards: an export of these would be told as one of lakelog's.
    for number in range(commits):
        cpu_of_commit(f"{folder}/bare-{number // 50}", "off", conf)
        bare.append(cpu_of_the_sdk(number))
    off, on, sdk = (1000 * statistics.median(times) for times in (*took.values(), bare))
    return off, on, 1000 * exports / commits, sdk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    places = ("local", "minio", "azurite", "gcs", "far")
    parser.add_argument("place", nargs="?", default="local", choices=places)
    parser.add_argument("--commits", type=int, default=600)
    asked = parser.parse_args()
    collector = subprocess.Popen(
        [sys.executable, "-c", COLLECTOR], stdout=subprocess.PIPE, text=True
    )
    try:
        from opentelemetry import metrics, trace

        assert collector.stdout is not None
        port = collector.stdout.readline().strip()
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
        # Exports are asked for, so that none falls into the other's time.
        os.environ["OTEL_BSP_SCHEDULE_DELAY"] = "9999999"
        os.environ["OTEL_METRIC_EXPORT_INTERVAL"] = "9999999"
        with folder_of_tables(asked.place) as (folder, conf):
            off, on, export, sdk = measure(folder, conf, asked.commits)
        for each in (trace.get_tracer_provider(), metrics.get_meter_provider()):
            each.shutdown()  # type: ignore[attr-defined]
    finally:
        collector.terminate()
        collector.wait()
    print(
        f"off {off:.3f} ms, on {on:.3f} ms and {export:.3f} ms of export, of CPU a commit: "
        f"{100 * ((on + export) / off - 1):+.1f} %; the SDK's own spans and histograms "
        f"{sdk:.3f} ms, with the export {100 * (sdk + export) / off:.1f} %"
    )


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    main()
