"""The time zones that Spark knows by name.

Java accepts three-letter names for zones that nothing else knows (`ZoneId.SHORT_IDS`), and Spark
reads every zone with these.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo


__all__ = ["named_zone", "zone_of"]


_SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "EST": "Etc/GMT+5",
    "HST": "Etc/GMT+10",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "MST": "Etc/GMT+7",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}


def named_zone(name: str) -> ZoneInfo:
    """The zone of a region, `Europe/Berlin`, or of one of Java's short names, `PST`.

    Raises:
        ValueError: there is no such zone.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(_SHORT.get(name, name))
    except (ZoneInfoNotFoundError, ValueError, OSError) as exc:
        raise ValueError(f"unknown time zone {name!r}") from exc


def zone_of(name: str) -> tzinfo:
    """The time zone of a Spark conf: a region, `UTC`, `Z`, or an offset such as `+02:00`.

    Raises:
        ValueError: there is no such zone.
    """
    if name.upper() in ("UTC", "Z", "GMT", "ETC/UTC"):
        return UTC
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d{2}))?", name)
    if offset:
        text = f"{offset[1]}{int(offset[2]):02d}{offset[3] or '00'}"
        parsed = datetime.strptime(text, "%z").tzinfo
        assert parsed is not None
        return parsed
    return named_zone(name)
