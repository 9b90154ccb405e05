"""A collector of OpenTelemetry: takes what processes export by OTLP over HTTP, and keeps it."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

if TYPE_CHECKING:
    from collections.abc import Iterator


class CollectedSpan(NamedTuple):
    """One span, of whichever process."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    links: tuple[str, ...]
    """Ids of the spans that it has links to."""
    attributes: dict[str, str]


class Collector:
    """What has come so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[CollectedSpan] = []
        self.metrics: set[str] = set()

    def take(self, path: str, body: bytes) -> None:
        """Keep the spans, or the names of the metrics, of one request."""
        if path.endswith("/traces"):
            request = ExportTraceServiceRequest.FromString(body)
            self.spans += [
                CollectedSpan(
                    each.name,
                    each.trace_id.hex(),
                    each.span_id.hex(),
                    each.parent_span_id.hex(),
                    tuple(link.span_id.hex() for link in each.links),
                    {
                        said.key: said.value.string_value or str(said.value.int_value)
                        for said in each.attributes
                    },
                )
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for each in scope.spans
            ]
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in resource.scope_metrics:
                    self.metrics |= {each.name for each in scope.metrics}

    def tree(self) -> list[str]:
        """`write > commit > attempt` of each span, commands by their names, sorted."""
        known = {each.span_id: each for each in self.spans}

        def path(span: CollectedSpan) -> str:
            name = span.name.removeprefix("lakelog.")
            if name == "command":
                name = span.attributes["lakelog.command"]
            above = known.get(span.parent_id)
            if above is not None:
                return f"{path(above)} > {name}"
            return f"another > {name}" if span.parent_id else name

        return sorted(path(each) for each in self.spans)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector on a port of its own, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the library's
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()
