"""Metrics and spans of what an engine does: commands, and the batches of its streams.

`command` makes a function's calls those of a command, `observing` runs anything in a span, and both
are nothing where telemetry is off. `traceparent` is the caller's span for another process, which
gives it to `observing` as the parent or as a link; `flush` exports before a process ends without
notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.telemetry.catalogue import BATCH, COMMAND
    from lakelog.core.telemetry.switch import command, flush, observing, traceparent
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "telemetry.catalogue": "BATCH COMMAND",
            "telemetry.switch": "command flush observing traceparent",
        },
        below="lakelog.core",
    )
