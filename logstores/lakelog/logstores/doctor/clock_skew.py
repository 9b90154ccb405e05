"""How far this machine's clock is from the storage's."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Final

from lakelog.logstores.doctor.finding import Finding, Status

NOTABLE: Final = 3.0
"""Seconds; less is explained by the coarse `Date` header and the time of transfer."""
FAR: Final = 60.0
"""Seconds; from here commits' timestamps mislead time travel and cleanup. Signed requests are
refused at 15 minutes (S3, Azure), tokens of Google at about 10."""


def skew_of_date(date: str, sent: float, received: float) -> float | None:
    """Seconds by which the local clock is ahead, by the `Date` header of a reply.

    Args:
        date: the header: whole seconds.
        sent: local time at which the request went out, in seconds since 1970.
        received: local time at which the reply came.

    Returns:
        0.0 when the local times agree with the header as far as it goes; `None` if it is not a
        date.
    """
    try:
        server = parsedate_to_datetime(date).timestamp()
    except ValueError:
        return None
    # The server read its clock between the two, and cut off up to a second.
    if received < server:
        return received - server
    if sent > server + 1:
        return sent - server - 1
    return 0.0


def clock_finding(skew: float | None, source: str) -> Finding:
    """The finding on a skew.

    Args:
        skew: seconds that this machine is ahead; `None` if unknown.
        source: what it was compared with.
    """
    if skew is None:
        return Finding("clock", Status.SKIPPED, f"no time to compare with: {source}")
    measured = {"skew_seconds": round(skew, 3), "source": source}
    where = "ahead of" if skew > 0 else "behind"
    summary = f"this machine's clock is {abs(skew):.1f} s {where} the storage's ({source})"
    if abs(skew) >= FAR:
        return Finding(
            "clock",
            Status.FAILED,
            summary,
            "Set this machine's clock, and keep it set (NTP, chrony). Services refuse requests "
            "whose time is some minutes off, and time travel goes by the commits' times.",
            measured,
        )
    if abs(skew) >= NOTABLE:
        return Finding("clock", Status.NOTE, summary, "Keep the clock set (NTP, chrony).", measured)
    return Finding(
        "clock", Status.FINE, f"no skew of {NOTABLE:g} s or more seen ({source})", "", measured
    )


def now() -> float:
    """The local time in seconds since 1970."""
    return time.time()
