"""Metrics and spans by OpenTelemetry; the API of it.

The global providers get them. Where the user has set none and asks for telemetry by the conf,
`own_providers` sets them up.
"""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import suppress
from contextvars import copy_context
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from opentelemetry import context, metrics, trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from lakelog.core.forks import lock_of, reentrant_lock_of
from lakelog.core.telemetry.catalogue import ATTRIBUTES, BUCKETS, COMMAND, METRICS
from lakelog.core.telemetry.later import Later
from lakelog.core.telemetry.losses import tell_lost
from lakelog.core.version import __version__
from lakelog.logstores.locations import without_secrets
from lakelog.logstores.systems import after_fork, before_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from lakelog.core.telemetry.catalogue import Metric, SpanKind

_T = TypeVar("_T")

_W3C: Final = TraceContextTextMapPropagator()
_HEADER: Final = "traceparent"
_MOST_TABLES: Final = 1000
_MOST_OTHERS: Final = 100
_MOST_SAID: Final = 10_000
_LONGEST: Final = 256
_FLUSH_MILLIS: Final = 5000
_METER: Final = "lakelog"
_COMMAND: Final = context.create_key("lakelog-command")
_Said: TypeAlias = tuple[tuple[str, Any], ...]
"""Names and values of a metric's attributes."""


class Otel:
    """The tracer and the instruments of one pair of providers."""

    def __init__(
        self, tracers: trace.TracerProvider, meters: metrics.MeterProvider, later: Later
    ) -> None:
        """Make all instruments.

        Args:
            tracers: spans are of these.
            meters: metrics are of these.
            later: gets measurements, and spans where they may wait.
        """
        self.later = later
        self._providers: tuple[object, object] = (tracers, meters)
        self.tracer: trace.Tracer = tracers.get_tracer(_METER, __version__)
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
        self, what: SpanKind, attributes: dict[str, Any], link: str | None, began: int | None
    ) -> SeenSpan | None:
        """See `observed`; `None` for a command within one of the same name."""
        around, links = context.get_current(), None
        if what is COMMAND and around.get(_COMMAND) == attributes["command"]:
            return None
        if link is not None:
            links = [trace.Link(trace.get_current_span(_led(link)).get_span_context())]
            around = context.Context()
        return SeenSpan(self, what, attributes, around, links, began)

    def record(
        self, metric: Metric, amount: float | None, known: Mapping[str, Any], around: Any
    ) -> None:
        """Count, with those attributes that the metric has.

        Args:
            metric: of `catalogue`.
            amount: seconds, or how much is added.
            known: attributes by their words.
            around: the context in which it was.
        """
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
            histogram.record(amount, dict(said), around)
            return
        # Counted here and read by exporters: a tenth of what a counter of the SDK takes.
        with self._lock:
            totals = self._totals[name]
            totals[said] = totals.get(said, 0) + amount

    def _observations(self, name: str, _: metrics.CallbackOptions) -> list[metrics.Observation]:
        # Whoever reads metrics asks here before it looks at histograms.
        self.later.do()
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


class SeenSpan(trace.Span):
    """Something under way, and its span: made once something asks for it, or when it is over."""

    def __init__(
        self,
        otel: Otel,
        what: SpanKind,
        attributes: dict[str, Any],
        around: context.Context,
        links: Sequence[trace.Link] | None,
        began: int | None,
    ) -> None:
        """It began in that context; see `observed`."""
        self._otel, self._what, self._attributes = otel, what, attributes
        self._around, self._links = around, links
        self._began, now = time.perf_counter(), time.time_ns()
        self._began_ns = now if began is None else began
        # Clocks are set: how long it takes is for another one to say, from now on.
        self._seconds = (now - self._began_ns) / 1e9
        self._ended_ns: int | None = None
        self._is_told = False
        """Whether the span has all attributes."""
        self._lock = threading.RLock()
        self._span: trace.Span | None = None

    def __enter__(self) -> SeenSpan:
        """See `Seen`, and so the rest."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """It is over."""
        self.over(error)

    def run(self, work: Callable[[SeenSpan], _T]) -> _T:
        """See `Seen`."""
        around = self._around
        try:
            around = trace.set_span_in_context(self, around)
            if self._what is COMMAND:
                around = context.set_value(_COMMAND, self._attributes["command"], around)
        except Exception:
            tell_lost()
        return _within(around, partial(work, self))

    def note(self, **attributes: Any) -> None:
        """Say more of it."""
        self._attributes.update(attributes)
        self._is_told = False

    def count(self, metric: Metric, amount: float | None, **attributes: Any) -> None:
        """Add to a counter."""
        known = {**self._attributes, **attributes}
        self._otel.later.add(partial(self._otel.record, metric, amount, known, self._around))

    def later(self, work: Callable[[], None]) -> None:
        """Do it with what else waits."""
        self._otel.later.add(work)

    def over(self, error: BaseException | None = None) -> None:
        """It has ended."""
        if self._ended_ns is not None:
            return
        self._ended_ns, seconds = time.time_ns(), self._seconds + time.perf_counter() - self._began
        try:
            otel, what, known = self._otel, self._what, self._attributes
            if error is not None and not isinstance(error, GeneratorExit):
                self.note(error=type(error).__name__)
            if seconds < what.shortest:
                pass
            elif otel.later.is_due:
                otel.later.add(self._finish)
            else:
                self._finish()
            if what.duration is not None:
                otel.later.add(partial(otel.record, what.duration, seconds, known, self._around))
        except Exception:
            tell_lost()

    def _finish(self) -> None:
        with self._lock:  # an exporter's thread may ask for it, as its child is over
            if self._span is None:
                self._span = self._make()
        span = self._span
        if not self._is_told and span.is_recording():
            span.set_attributes(_named(self._what, self._attributes))
        if "error" in self._attributes:
            span.set_status(trace.StatusCode.ERROR)
        span.end(self._ended_ns)

    def _make(self) -> trace.Span:
        self._is_told = True
        return self._otel.tracer.start_span(
            self._what.name,
            self._around,
            attributes=_named(self._what, self._attributes),
            links=self._links,
            start_time=self._began_ns,
        )

    def _asked(self) -> trace.Span:
        if self._span is None:
            with self._lock:
                if self._span is None:
                    try:
                        span = _within(self._around, self._make)
                    except Exception:  # of a sampler, or of the user's processor of spans
                        tell_lost()
                        span = trace.INVALID_SPAN
                    self._span = span
        return self._span

    def get_span_context(self) -> trace.SpanContext:
        """See OpenTelemetry's `Span`, and so the rest."""
        return self._asked().get_span_context()

    def is_recording(self) -> bool:
        """Whether it keeps what is set."""
        return self._asked().is_recording()

    def set_attribute(self, key: str, value: Any) -> None:
        """Set one."""
        self._asked().set_attribute(key, value)

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set some."""
        self._asked().set_attributes(attributes)

    def add_event(self, *args: Any, **given: Any) -> None:
        """Add one."""
        self._asked().add_event(*args, **given)

    def add_link(self, *args: Any, **given: Any) -> None:
        """Add one."""
        self._asked().add_link(*args, **given)

    def update_name(self, name: str) -> None:
        """Rename it."""
        self._asked().update_name(name)

    def set_status(self, *args: Any, **given: Any) -> None:
        """Set it."""
        self._asked().set_status(*args, **given)

    def record_exception(self, *args: Any, **given: Any) -> None:
        """Add it as an event."""
        self._asked().record_exception(*args, **given)

    def end(self, end_time: int | None = None) -> None:
        """End it, which is for `over` to do."""
        self._asked().end(end_time)


def _within(around: context.Context, work: Callable[[], _T]) -> _T:
    """What `work` returns, in which that context is the current one.

    Nothing is detached: whatever is raised, and where, the caller's context is as it was.
    """
    inner = copy_context()
    try:
        inner.run(context.attach, around)
    except Exception:
        tell_lost()
    return inner.run(work)


_seen: dict[str, dict[Any, Any]] = {}


class _OfGlobalProviders:
    """What the global providers get it from."""

    def __init__(self) -> None:
        self._providers: tuple[object, object] | None = None
        self._otel: Otel | None = None
        self._is_tried = False
        """Whether the providers were set up, or can't be: a port is taken, a variable is wrong."""
        self._lock = lock_of(self)

    def of(self, *, sets_up: bool) -> Otel | None:
        """What makes metrics and spans; `None` where the user has set no provider.

        Args:
            sets_up: whether they are set up from the `OTEL_*` variables where there are none.
        """
        if self._providers == (trace.get_tracer_provider(), metrics.get_meter_provider()):
            return self._otel
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            return None
        with self._lock:
            tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
            later = Later()
            if sets_up and not self._is_tried and _is_unset(tracers) and _is_unset(meters):
                self._is_tried = True
                from lakelog.core.telemetry.own_providers import set_up

                set_up(later)
                tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
            if _is_unset(tracers) and _is_unset(meters):
                return None
            if self._providers != (tracers, meters):
                # Once, however it ends: the SDK keeps the instruments of each.
                self._otel, self._providers = None, (tracers, meters)
                # What is counted before there is a provider would be counted again by its own.
                counted = metrics.NoOpMeterProvider() if _is_unset(meters) else meters
                self._otel = Otel(tracers, counted, later)
            return self._otel

    def forget(self) -> None:
        """What waits is of the process that this one was forked from."""
        if self._otel is not None:
            self._otel.later.forget()


global_otel: Final = _OfGlobalProviders()
after_fork(global_otel.forget)
# The child may make spans within it, which are in the same trace then.
before_fork(lambda: trace.get_current_span().get_span_context())


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
    if word == "table":
        return _of_table(value)
    text = (value if kind is str else str(value))[:_LONGEST]
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


@lru_cache(_MOST_TABLES)
def _of_table(uri: str) -> str:
    text = without_secrets(uri)
    if len(text) > _LONGEST:  # its end tells one table from another
        text = "…" + text[1 - _LONGEST :]
    return text.encode("utf-8", "replace").decode()


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


def _is_unset(provider: object) -> bool:
    """Whether it is what the API puts in place of a provider until one is set."""
    return type(provider).__name__.lstrip("_") in ("ProxyTracerProvider", "ProxyMeterProvider")
