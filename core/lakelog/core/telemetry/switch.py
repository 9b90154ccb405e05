"""Whether metrics and spans are made, and the one way to make them."""

from __future__ import annotations

import logging
import sys
import time
from functools import cache, partial, wraps
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Protocol, TypeVar

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.paths import normalize_table_uri
from lakelog.core.telemetry.catalogue import COMMAND, COMMANDS, WAIT
from lakelog.core.telemetry.losses import tell_lost
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from lakelog.core.telemetry.catalogue import Metric, SpanKind
    from lakelog.core.telemetry.otel import Otel

_P = ParamSpec("_P")
_T = TypeVar("_T")

_log = logging.getLogger("lakelog")
_KEY: Final = store_keys.TELEMETRY.name
_AUTO: Final = store_keys.TELEMETRY.default
_MODES: Final = (_AUTO, "otel", "off")
_API: Final = "opentelemetry.trace"


class Seen(Protocol):
    """Something under way; a context manager that ends it."""

    def __enter__(self) -> Seen:
        """It has begun already."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""

    def run(self, work: Callable[[Seen], _T]) -> _T:
        """What `work` returns, which gets this, with this as the parent of what begins within."""
        ...

    def note(self, **attributes: Any) -> None:
        """Say more of it, by words of `catalogue.ATTRIBUTES`; `None` says nothing."""

    def count(self, metric: Metric, amount: float | None, **attributes: Any) -> None:
        """Add to a counter, with what is known of the table and the operation."""

    def later(self, work: Callable[[], None]) -> None:
        """Count, or note, when there is time for it; nothing where nothing is made."""

    def over(self, error: BaseException | None = None) -> None:
        """It has ended; a second time means nothing. What is never over has no span."""


class _Unseen:
    """Where nothing is made."""

    __slots__ = ()

    def __enter__(self) -> _Unseen:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass

    def run(self, work: Callable[[Seen], _T]) -> _T:
        return work(self)

    def note(self, **attributes: Any) -> None:
        pass

    def count(self, metric: Metric, amount: float | None, **attributes: Any) -> None:
        pass

    def later(self, work: Callable[[], None]) -> None:
        pass

    def over(self, error: BaseException | None = None) -> None:
        pass


UNSEEN: Final[Seen] = _Unseen()


def observed(
    conf: Mapping[str, str],
    what: SpanKind,
    table: str | None,
    *,
    link: str | None = None,
    began: int | None = None,
    **attributes: Any,
) -> Seen:
    """Begin a span; its end is counted by the metric of its kind.

    It may end in another context than it begins in, as what a generator does.

    Args:
        conf: the user's.
        what: of `catalogue`.
        table: its URI; `None` where the kind has none.
        link: the `traceparent` of a span that led to this one, and is not its parent.
        began: when, in nanoseconds since the epoch; now, where it is not given.
        attributes: by words of `catalogue.ATTRIBUTES`.

    Raises:
        DeltaAnalysisError: `spark.lakelog.telemetry` has another value than it may have.
    """
    otel = _otel(conf)
    if otel is None:
        return UNSEEN
    attributes["table"] = table
    return _begun(otel, what, attributes, link, began)


def _begun(
    otel: Otel,
    what: SpanKind,
    attributes: dict[str, Any],
    link: str | None = None,
    began: int | None = None,
) -> Seen:
    try:
        return otel.begin(what, attributes, link, began) or UNSEEN
    except Exception:
        tell_lost()
        return UNSEEN


def observing(
    conf: Mapping[str, str],
    what: SpanKind,
    table: str | None,
    work: Callable[[Seen], _T],
    *,
    link: str | None = None,
    **attributes: Any,
) -> _T:
    """What `work` returns, in a span that is the parent of what begins within.

    Whatever ends it, and at whichever line, the caller's span is the current one afterwards.

    Args:
        conf: as of `observed`, and so the others.
        what: the kind.
        table: its URI.
        work: gets the span; any context variable that it sets is reset afterwards.
        link: what led to it.
        attributes: by their words.

    Raises:
        DeltaAnalysisError: see `observed`.
    """
    with observed(conf, what, table, link=link, **attributes) as seen:
        return seen.run(work)


def observed_wait(conf: Mapping[str, str], table: str, what: str, seconds: float) -> None:
    """A wait within the caller's span has just ended.

    Args:
        conf: the user's.
        table: its URI.
        what: `lock`, `backoff` or `turn`.
        seconds: how long it was.
    """
    began = time.time_ns() - int(seconds * 1e9)
    observed(conf, WAIT, table, began=began, wait=what).over()


def traceparent(conf: Mapping[str, str]) -> str | None:
    """The caller's span, as W3C's Trace Context writes it for other processes."""
    otel = _otel(conf)
    try:
        return None if otel is None else otel.traceparent()
    except Exception:
        tell_lost()
        return None


def flush(conf: Mapping[str, str]) -> None:
    """Export what waits, in a process that may end without notice; for a few seconds at most."""
    otel = _otel(conf)
    if otel is not None:
        otel.flush()


def command(name: str, at: int = 0) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    """Make each call of a function a command's span.

    Args:
        name: of `catalogue.COMMANDS`.
        at: which argument is a table, its URI or its log, or has one as `log`; a URI comes with a
            `conf`.
    """
    assert name in COMMANDS, name

    def decorate(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(function)
        def called(*args: _P.args, **given: _P.kwargs) -> _T:
            on: Any = args[at] if len(args) > at else given.get("uri", given.get("target"))
            on = getattr(on, "log", on)
            conf: Any = getattr(on, "conf", given.get("conf"))
            if conf is None:
                conf = {}
            # Wrong arguments are for the function to refuse.
            otel = _otel(conf) if hasattr(conf, "get") else None
            if otel is None:
                return function(*args, **given)
            with _begun(otel, COMMAND, {"command": name, "table": _table(on, conf)}) as seen:
                return seen.run(lambda _: function(*args, **given))

        return called

    return decorate


def _table(on: Any, conf: Mapping[str, str]) -> str:
    table = getattr(on, "table", None)
    if table is not None:
        return str(table)
    try:
        return normalize_table_uri(on, conf)
    except Exception:  # the command refuses it
        return "other"


def _otel(conf: Mapping[str, str]) -> Otel | None:
    mode = conf.get(_KEY, _AUTO)
    if mode == "off" or (mode == _AUTO and _API not in sys.modules):
        return None
    if mode not in _MODES:
        raise DeltaAnalysisError(
            f"the conf {_KEY} must be one of {', '.join(_MODES)}, not {mode!r}",
            key=_KEY,
            value=mode,
        )
    try:
        return _maker(mode)()
    except Exception:  # OpenTelemetry is broken, of another version, or half there
        tell_lost()
        return None


@cache
def _maker(mode: str) -> Callable[[], Otel | None]:
    """`global_otel`: to import it each time would take as long as all else that a commit asks.

    That the extra is not there is logged once, and costs no commit.
    """
    from importlib.util import find_spec

    sets_up = mode == "otel"
    # `find_spec` imports what is above, which may be missing.
    if sets_up and not (find_spec("opentelemetry") and find_spec("opentelemetry.sdk")):
        from lakelog.logstores.errors import MissingExtraError

        _log.error("%s", MissingExtraError("otel", f"{_KEY}=otel"))
        return lambda: None
    from lakelog.core.telemetry.otel import global_otel

    return partial(global_otel.of, sets_up=sets_up)
