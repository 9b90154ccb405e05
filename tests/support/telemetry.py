"""OpenTelemetry's SDK with exporters in memory, as the global providers of one test."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry import metrics, trace
from opentelemetry.metrics import _internal as metrics_globals
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.util._once import Once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.sdk.trace import ReadableSpan


class Heard:
    """What was exported so far."""

    def __init__(self, spans: InMemorySpanExporter, reader: InMemoryMetricReader) -> None:
        self._spans, self._reader = spans, reader

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they ended."""
        return list(self._spans.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of one name."""
        return [each for each in self.spans if each.name == name]

    def tree(self) -> list[str]:
        """Each span as `parent > child`, by names; a root has no parent."""
        names = {each.context.span_id: each.name for each in self.spans if each.context}
        return [
            f"{names.get(each.parent.span_id, 'another')} > {each.name}"
            if each.parent
            else each.name
            for each in self.spans
        ]

    def points(self) -> dict[str, list[Any]]:
        """The data points of each metric."""
        found: dict[str, list[Any]] = {}
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = list(metric.data.data_points)
        return found

    def counts(self, name: str) -> dict[tuple[Any, ...], float]:
        """Values of attributes but the table, in the order of their names -> value or count."""
        return {
            tuple(v for k, v in sorted(each.attributes.items()) if k != "lakelog.table"): (
                each.count if hasattr(each, "count") else each.value
            )
            for each in self.points().get(name, ())
        }


def forget_providers() -> None:
    """Let the process be one in which nobody has set a provider."""
    trace._TRACER_PROVIDER = None
    trace._TRACER_PROVIDER_SET_ONCE = Once()
    metrics_globals._METER_PROVIDER = None
    metrics_globals._METER_PROVIDER_SET_ONCE = Once()


@contextmanager
def heard() -> Iterator[Heard]:
    """Providers that hear all, until the block ends."""
    forget_providers()
    spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(), MeterProvider([reader])
    tracers.add_span_processor(SimpleSpanProcessor(spans))
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(meters)
    try:
        yield Heard(spans, reader)
    finally:
        tracers.shutdown()
        meters.shutdown()
        forget_providers()
