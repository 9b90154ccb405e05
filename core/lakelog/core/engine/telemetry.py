"""Metrics and spans of what an engine does: commands, and the batches of its streams.

`command` makes a function's calls those of a command, `observed` begins any span, and both are
nothing where telemetry is off. `traceparent` is the caller's span for another process, which gives
it to `observed` as the parent or as a link; `flush` exports before a process ends without notice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.telemetry.catalogue import BATCH, COMMAND
    from lakelog.core.telemetry.switch import command, flush, observed, traceparent
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "telemetry.catalogue": "BATCH COMMAND",
            "telemetry.switch": "command flush observed traceparent",
        },
        below="lakelog.core",
    )
