"""OpenTelemetry's global providers, where the user has set none and asks for telemetry by the conf.

They are set up once from the `OTEL_*` variables, and only with the exporters that these name. Their
spans may wait: exporters take what has ended every few seconds.
"""

from __future__ import annotations

import logging
import os
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from lakelog.logstores.locations import without_secrets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult

    from lakelog.core.telemetry.later import Later

_log = logging.getLogger("lakelog")


def set_up(later: Later) -> None:
    """Set the global providers, with the exporters that the `OTEL_*` variables name.

    Args:
        later: is done before whatever is exported.
    """
    tracers = TracerProvider()
    tracers.add_span_processor(_Waiting(later))
    for each in _exporters("traces"):
        tracers.add_span_processor(BatchSpanProcessor(_Exporter(each, later)))
    readers = [
        each if isinstance(each, MetricReader) else PeriodicExportingMetricReader(each)
        for each in _exporters("metrics")
    ]
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider(readers))


class _Waiting(SpanProcessor):
    """Before those that export: lets spans wait once one is to be exported."""

    def __init__(self, later: Later) -> None:
        self._later = later

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            self._later.is_due = True

    def shutdown(self) -> None:
        self._later.do()

    def force_flush(self, timeout_millis: int = 30000) -> bool:  # noqa: ARG002
        self._later.do()
        return True


class _Exporter(SpanExporter):
    """One that a variable names."""

    def __init__(self, exporter: SpanExporter, later: Later) -> None:
        self._exporter, self._later = exporter, later

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        # Those of them that are to be exported say so, and are taken next.
        self._later.is_due = False
        self._later.do()
        return self._exporter.export(spans)

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _exporters(signal: str) -> list[Any]:
    """The exporters that a user named, OTLP's also by its endpoint alone; but those that fail."""
    upper = signal.upper()

    def says(name: str) -> str:
        return os.environ.get(f"OTEL_EXPORTER_OTLP_{upper}_{name}") or os.environ.get(
            f"OTEL_EXPORTER_OTLP_{name}", ""
        )

    names = os.environ.get(f"OTEL_{upper}_EXPORTER", "otlp" if says("ENDPOINT") else "")
    found = []
    for name in (each.strip() for each in names.split(",")):
        if name in ("", "none"):
            continue
        if name == "otlp":
            name = f"otlp_proto_{'grpc' if says('PROTOCOL') == 'grpc' else 'http'}"
        entries = entry_points(group=f"opentelemetry_{signal}_exporter", name=name)
        if not entries:
            _log.error(
                "there is no exporter %r of %s, which OTEL_%s_EXPORTER names, or which the "
                "protocol asks for: install the package that brings it",
                name,
                signal,
                upper,
            )
            continue
        try:
            found.append(next(iter(entries)).load()())
        except Exception as exc:
            _log.error(
                "nothing is exported to %r of %s, which can't be set up: %s: %s",
                name,
                signal,
                type(exc).__name__,
                without_secrets(str(exc)),
            )
    return found
