"""What is said where OpenTelemetry fails: little, and once."""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import cache

_log = logging.getLogger("lakelog")


@cache
def tell_lost() -> None:
    """Log the exception that is being handled; once in a process."""
    with suppress(Exception):  # a handler of logs may fail too
        _log.warning("metrics and spans were lost, as OpenTelemetry fails", exc_info=True)
