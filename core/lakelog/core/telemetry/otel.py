"""Metrics and spans by OpenTelemetry; the one module that imports it.

The global providers get them. Where the user has set none and asks for telemetry by the conf, they
are set up once from the `OTEL_*` variables, and only with the exporters that these name.
"""

from __future__ import annotations

import logging
import math
import os
import time
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from opentelemetry import context, metrics, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lakelog.core.forks import lock_of, reentrant_lock_of
from lakelog.core.telemetry.catalogue import ATTRIBUTES, BUCKETS, METRICS, WAIT, WAIT_DURATION
from lakelog.core.telemetry.losses import tell_lost
from lakelog.core.version import __version__
from lakelog.logstores.locations import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from lakelog.core.telemetry.catalogue import Metric, SpanKind

_T = TypeVar("_T")

_log = logging.getLogger("lakelog")
_W3C: Final = TraceContextTextMapPropagator()
_HEADER: Final = "traceparent"
_MOST_TABLES: Final = 1000
_MOST_OTHERS: Final = 100
_MOST_SAID: Final = 10_000
_LONGEST: Final = 256
_SHORTEST_WAIT: Final = 0.001
_FLUSH_MILLIS: Final = 5000
_METER: Final = "lakelog"
_Said: TypeAlias = tuple[tuple[str, Any], ...]
"""Names and values of a metric's attributes."""


class Otel:
    """The tracer and the instruments of one pair of providers."""

    def __init__(self, tracers: trace.TracerProvider, meters: metrics.MeterProvider) -> None:
        """Make all instruments."""
        self._providers: tuple[object, object] = (tracers, meters)
        self._tracer = tracers.get_tracer(_METER, __version__)
        meter = meters.get_meter(_METER, __version__)
        self._histograms: dict[str, metrics.Histogram] = {}
        self._totals: dict[str, dict[_Said, float]] = {}
        self._said: dict[tuple[Any, ...], _Said] = {}
        # Garbage collection may end an abandoned scan while its thread is at a count.
        self._lock = reentrant_lock_of(self)
        for each in METRICS:
            named = (each.name, each.unit, each.doc)
            if each.is_duration:
                self._histograms[each.name] = meter.create_histogram(
                    *named, explicit_bucket_boundaries_advisory=BUCKETS
                )
            else:
                self._totals[each.name] = {}
                read = partial(self._observations, each.name)
                meter.create_observable_counter(each.name, [read], each.unit, each.doc)

    def begin(
        self,
        what: SpanKind,
        attributes: dict[str, Any],
        link: str | None,
    ) -> SeenSpan:
        """See `observed`."""
        around = context.get_current()
        if what.is_made_late:
            return SeenSpan(self, what, attributes, None, around)
        links = None
        if link is not None:
            links = [trace.Link(trace.get_current_span(_led(link)).get_span_context())]
            around = context.Context()
        span = self._tracer.start_span(what.name, around, links=links)
        return SeenSpan(self, what, attributes, span, around)

    def make_late(self, what: SpanKind, known: Mapping[str, Any], around: Any, began: int) -> Any:
        """A span of what is over, but for its end."""
        return self._tracer.start_span(
            what.name, around, attributes=_named(what, known), start_time=began
        )

    def waited(self, table: str, what: str, seconds: float) -> None:
        """See `observed_wait`."""
        try:
            said = {"table": table, "wait": what}
            self.record(WAIT_DURATION, seconds, said)
            if seconds >= _SHORTEST_WAIT:
                now = time.time_ns()
                began = now - int(seconds * 1e9)
                self.make_late(WAIT, said, None, began).end(now)
        except Exception:
            tell_lost()

    def record(self, metric: Metric, amount: float | None, known: Mapping[str, Any]) -> None:
        """Count, with those attributes that the metric has."""
        if amount is None or not 0 <= amount < math.inf:
            return
        words, name = metric.attributes, metric.name
        key = (words, *map(known.get, words))
        said = self._said.get(key)
        if said is None:
            said = tuple(
                (ATTRIBUTES[word][0], _bounded(word, known[word]))
                for word in words
                if known.get(word) is not None
            )
            if len(self._said) < _MOST_SAID:
                self._said[key] = said
        histogram = self._histograms.get(name)
        if histogram is not None:
            histogram.record(amount, dict(said))
            return
        # Counted here and read by exporters: a tenth of what a counter of the SDK costs a commit.
        with self._lock:
            totals = self._totals[name]
            totals[said] = totals.get(said, 0) + amount

    def _observations(self, name: str, _: metrics.CallbackOptions) -> list[metrics.Observation]:
        with self._lock:
            totals = list(self._totals[name].items())
        return [metrics.Observation(amount, dict(said)) for said, amount in totals]

    def traceparent(self) -> str | None:
        """See `switch.traceparent`."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return carrier.get(_HEADER)

    def flush(self) -> None:
        """See `switch.flush`."""
        for each in self._providers:
            force_flush = getattr(each, "force_flush", None)
            if force_flush is not None:
                with suppress(Exception):
                    force_flush(_FLUSH_MILLIS)


class SeenSpan:
    """A span under way."""

    __slots__ = (
        "_around",
        "_attributes",
        "_began",
        "_began_ns",
        "_is_over",
        "_otel",
        "_span",
        "_what",
    )

    def __init__(
        self,
        otel: Otel,
        what: SpanKind,
        attributes: dict[str, Any],
        span: trace.Span | None,
        around: Any,
    ) -> None:
        """It begins; without a span, that is made at its end."""
        self._otel, self._what, self._attributes, self._span = otel, what, attributes, span
        self._around, self._began, self._began_ns = around, time.perf_counter(), time.time_ns()
        self._is_over = False

    def __enter__(self) -> SeenSpan:
        """See `Seen`, and so the rest."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.end(error)

    def run(self, work: Callable[[SeenSpan], _T]) -> _T:
        """See `Seen`."""
        if self._span is None:
            return work(self)
        # Nothing is detached: whatever is raised, and where, the caller's context is as it was.
        inner = copy_context()
        try:
            inner.run(context.attach, trace.set_span_in_context(self._span, self._around))
        except Exception:
            tell_lost()
        return inner.run(work, self)

    def note(self, **attributes: Any) -> None:
        """Say more of it."""
        self._attributes.update(attributes)

    def count(self, metric: Metric, amount: float | None, **attributes: Any) -> None:
        """Add to a counter."""
        try:
            self._otel.record(metric, amount, {**self._attributes, **attributes})
        except Exception:
            tell_lost()

    def end(self, error: BaseException | None = None) -> None:
        """End it."""
        if self._is_over:
            return
        self._is_over = True
        try:
            known, span = self._attributes, self._span
            has_failed = error is not None and not isinstance(error, GeneratorExit)
            if has_failed:
                known["error"] = type(error).__name__
            if span is None:
                span = self._otel.make_late(self._what, known, self._around, self._began_ns)
            elif span.is_recording():
                span.set_attributes(_named(self._what, known))
            if has_failed:
                span.set_status(trace.StatusCode.ERROR)
            span.end()
            if self._what.duration is not None:
                self._otel.record(self._what.duration, time.perf_counter() - self._began, known)
        except Exception:
            tell_lost()

    def leave_out(self) -> None:
        """See `Seen`."""
        self._is_over = self._is_over or self._span is None


_seen: dict[str, dict[Any, Any]] = {}


class _Global:
    """What the global providers get it from."""

    def __init__(self) -> None:
        self._providers: tuple[object, object] | None = None
        self._otel: Otel | None = None
        self._is_tried = False
        """Whether the providers were set up, or can't be: a port is taken, a variable is wrong."""
        self._lock = lock_of(self)

    def of(self, *, sets_up: bool) -> Otel | None:
        if self._providers == (trace.get_tracer_provider(), metrics.get_meter_provider()):
            return self._otel
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return None
        with self._lock:
            tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
            if sets_up and not self._is_tried and _is_unset(tracers) and _is_unset(meters):
                self._is_tried = True
                _set_up()
                tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
            if _is_unset(tracers) and _is_unset(meters):
                return None
            if self._providers != (tracers, meters):
                # Once, however it ends: the SDK keeps the instruments of each.
                self._otel, self._providers = None, (tracers, meters)
                # What is counted before there is a provider would be counted again by its own.
                counted = metrics.NoOpMeterProvider() if _is_unset(meters) else meters
                self._otel = Otel(tracers, counted)
            return self._otel


_global = _Global()


def _named(what: SpanKind, known: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes of a span that are known."""
    return {
        ATTRIBUTES[word][0]: _value(word, known[word])
        for word in what.attributes
        if known.get(word) is not None
    }


def _value(word: str, value: Any) -> Any:
    """What an attribute may hold: a number, or text that can be encoded and is not long."""
    kind = type(value)
    if kind is int or kind is float:
        return value
    text = value if kind is str else str(value)
    if word == "table":
        text = without_secrets(text)
        # Its end tells one table from another.
        text = text if len(text) <= _LONGEST else "…" + text[1 - _LONGEST :]
    if len(text) > _LONGEST:
        text = text[:_LONGEST]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _bounded(word: str, value: Any) -> Any:
    """The value, or `other` once a process has shown as many of them as a metric should have."""
    known = _seen.setdefault(word, {})
    found = known.get(value)
    if found is None:
        most = _MOST_TABLES if word == "table" else _MOST_OTHERS
        if len(known) >= most:
            return "other"
        found = known[value] = _value(word, value)
    return found


def _led(link: str) -> Any:
    return _W3C.extract({_HEADER: link}, context.Context())


def current(*, sets_up: bool) -> Otel | None:
    """What makes metrics and spans for the global providers; `None` where the user has set none.

    Args:
        sets_up: whether they are set up from the `OTEL_*` variables where there are none.
    """
    return _global.of(sets_up=sets_up)


def _is_unset(provider: object) -> bool:
    """Whether it is what the API puts in place of a provider until one is set."""
    return type(provider).__name__.lstrip("_") in ("ProxyTracerProvider", "ProxyMeterProvider")


def _set_up() -> None:
    """Set the global providers, with the exporters that the `OTEL_*` variables name."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    tracers = TracerProvider()
    for each in _exporters("traces"):
        tracers.add_span_processor(BatchSpanProcessor(each))
    readers = [
        each if isinstance(each, MetricReader) else PeriodicExportingMetricReader(each)
        for each in _exporters("metrics")
    ]
    trace.set_tracer_provider(tracers)
    metrics.set_meter_provider(MeterProvider(readers))


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
