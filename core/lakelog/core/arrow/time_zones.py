"""The time zones that Spark knows by name, and whose rules say what a clock in one shows.

Java accepts three-letter names for zones that nothing else knows (`ZoneId.SHORT_IDS`), and Spark
reads every zone with these.

There is no one set of rules: each release of the tz database changes some, and builds of it differ
before 1970, where Java's merges zones. Without an engine the rules are those of Python's
`zoneinfo`, which are the system's or those of the package `tzdata` (`PYTHONTZPATH` names others),
for literals and for whole columns: nothing here asks Arrow, which has a database of its own. Where
an engine evaluates, its rules decide; the session's zone is an `EngineZone` then.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, scalar_of
from lakelog.core.compute import pc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from zoneinfo import ZoneInfo


_EPOCH_ORDINAL = datetime(1970, 1, 1).toordinal()  # noqa: DTZ001 # a day of the calendar
_CYCLE_DAYS = 146_097
"""Days in 400 years, after which the calendar repeats."""
_DAY_MICROS = 86_400_000_000
_YEAR_MICROS = 31_556_952_000_000

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?")

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
    if name.upper() in ("UTC", "UT", "Z", "GMT", "ETC/UTC"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset:
        hours, minutes, seconds = (int(each or 0) for each in offset.group(2, 3, 4))
        if hours <= 18 and minutes < 60 and seconds < 60:
            found = timedelta(hours=hours, minutes=minutes, seconds=seconds)
            return timezone(-found if offset[1] == "-" else found)
    return named_zone(name)


class UndecidedTimeError(ValueError):
    """A time whose instant only the engine knows: its rules for the zone may be others."""


class EngineZone(str):
    """The zone of a session whose engine evaluates conditions by rules of its own.

    It is the zone's name to whoever asks no more.
    """

    __slots__ = ("_agrees", "_instant", "_known")
    _agrees: Callable[[int], bool]
    _instant: Callable[[int], int] | None
    _known: dict[int, int]

    def __new__(
        cls,
        name: str,
        agrees: Callable[[int], bool],
        instant: Callable[[int], int] | None = None,
        known: Mapping[int, int] | None = None,
    ) -> EngineZone:
        """Prepare.

        Args:
            name: the zone, as the session has it.
            agrees: whether the engine's rules and Python's are the same throughout a year.
            instant: asks the engine when the zone's clock shows a time; both are microseconds since
                1970.
            known: such times that it was asked for already.
        """
        made = super().__new__(cls, name)
        made._agrees = agrees
        made._instant = instant
        made._known = dict(known or {})
        return made

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Where it travels to there is no engine to ask.
        return (_travelled, (str(self), self._known)) if self._known else (str, (str(self),))

    def agrees(self, first: int, last: int) -> bool:
        """Whether the rules are the same in all years from one to another."""
        return all(self._agrees(year) for year in range(first, last + 1))

    def knows(self, clock: int) -> bool:
        """Whether the engine was asked for a time on the zone's clock."""
        return clock in self._known

    def instant(self, clock: int) -> int:
        """When the zone's clock shows a time, by the engine's rules.

        Raises:
            UndecidedTimeError: there is no engine to ask.
        """
        if clock not in self._known:
            if self._instant is None:
                raise UndecidedTimeError(f"only the engine knows when it was {clock} in {self}")
            self._known[clock] = self._instant(clock)
        return self._known[clock]


def _travelled(name: str, known: Mapping[int, int]) -> EngineZone:
    return EngineZone(name, lambda _: True, None, known)


def is_decided(zone: str, first: int, last: int) -> bool:
    """Whether Python's rules for a zone are those of whoever evaluates, from a year to another.

    Args:
        zone: the session's.
        first: the year of the earliest time, on whatever clock.
        last: the year of the latest.
    """
    if not isinstance(zone, EngineZone):
        return True
    try:
        if isinstance(zone_of(zone), timezone):
            return True
    except ValueError:  # a zone that only the engine knows
        return False
    # The other clock may show the year before or after.
    return zone.agrees(first - 1, last + 1)


def is_decided_at(zone: str, first: int, last: int) -> bool:
    """`is_decided` of times in microseconds since 1970."""
    # An estimate of the year may be off by one.
    return is_decided(zone, 1969 + first // _YEAR_MICROS, 1971 + last // _YEAR_MICROS)


def in_utc(clock: datetime, zone: str) -> datetime:
    """The instant at which the clock of a session's zone shows a time.

    Raises:
        UndecidedTimeError: an engine evaluates, and may know the zone otherwise.
        ValueError: there is no such zone, or the instant is outside the years 1 to 9999.
    """
    if not is_decided(zone, clock.year, clock.year):
        raise UndecidedTimeError(f"only the engine knows when it was {clock} in {zone}")
    where = zone_of(zone)
    try:
        return clock.replace(tzinfo=where).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{clock} in {zone} is outside the years 1 to 9999 in UTC") from None


def instant_of(clock: int, zone: str | tzinfo) -> int:
    """When the clock of a session's zone shows a time of any year; an engine is asked if need be.

    Args:
        clock: microseconds since 1970 on the clock.
        zone: the session's, or any other.

    Raises:
        ValueError: there is no such zone, or only an engine knows that can't be asked here.
    """
    if isinstance(zone, EngineZone) and (
        zone.knows(clock) or not is_decided_at(zone, clock, clock)
    ):
        return zone.instant(clock)
    where = zone_of(zone) if isinstance(zone, str) else zone
    return clock - 1_000_000 * _at(clock, lambda at: _offset(at.replace(tzinfo=where), where))


def clocks_at(instants: Any, zone: str) -> Any:
    """What the clock of a zone shows at instants: microseconds since 1970, as 64-bit integers.

    Args:
        instants: microseconds since 1970 in UTC; an array or a scalar of Arrow.
        zone: the session's.

    Raises:
        ValueError: there is no such zone.
    """
    where = zone_of(zone)
    offsets = _offsets(instants, where, lambda at: _offset(at.astimezone(where), where))
    return pc.add(instants, offsets)


def instants_of(clocks: Any, zone: str) -> Any:
    """When the clock of a zone shows times: the first of two instants; after a gap, if in one.

    Args:
        clocks: microseconds since 1970 on the clock.
        zone: the session's.

    Raises:
        ValueError: there is no such zone.
    """
    where = zone_of(zone)
    offsets = _offsets(clocks, where, lambda at: _offset(at.replace(tzinfo=where), where))
    return pc.subtract(clocks, offsets)


def _offset(moment: datetime, zone: tzinfo) -> int:
    offset = zone.utcoffset(moment)
    assert offset is not None
    return round(offset.total_seconds())


def _near(days: int) -> datetime:
    """Midnight UTC of a day that Python can represent, with the same rules as the given day.

    Before the year 1 a zone keeps its offset of that time, and after 9999 its current rules.
    """
    ordinal = days + _EPOCH_ORDINAL
    if ordinal < _CYCLE_DAYS:
        ordinal = _CYCLE_DAYS + ordinal % _CYCLE_DAYS
    elif ordinal > 24 * _CYCLE_DAYS:
        ordinal = 23 * _CYCLE_DAYS + ordinal % _CYCLE_DAYS
    return datetime.fromordinal(ordinal).replace(tzinfo=UTC)


def _offsets(micros: Any, zone: tzinfo, offset_at: Callable[[datetime], int]) -> Any:
    """Of each time the offset of a zone, in microseconds."""
    if isinstance(zone, timezone):
        return scalar_of(1_000_000 * _offset(_near(0), zone), pa.int64())
    if isinstance(micros, pa.Scalar):
        if not micros.is_valid:
            return micros
        return scalar_of(1_000_000 * _at(micros.as_py(), offset_at), pa.int64())
    # Most days have one offset, from their first midnight to the next.
    days = _floor_days(micros)
    known = pc.unique(days).drop_null()
    ends = [
        [_at(each * _DAY_MICROS, offset_at) for each in (day, day + 1)] for day in known.to_pylist()
    ]
    same = [first if first == last else None for first, last in ends]
    at = pc.index_in(days, value_set=known)
    found = pc.multiply(array_of(same, pa.int64()).take(at), 1_000_000)
    changing = pc.and_(pc.is_null(found), pc.is_valid(micros))
    if not pc.any(changing, min_count=0).as_py():
        return found
    rest = [1_000_000 * _at(each, offset_at) for each in micros.filter(changing).to_pylist()]
    return pc.replace_with_mask(found, changing, array_of(rest, pa.int64()))


def _floor_days(micros: Any) -> Any:
    # Arrow's division of integers rounds towards zero.
    days = pc.divide(micros, _DAY_MICROS)
    under = pc.less(micros, pc.multiply(days, _DAY_MICROS))
    return pc.subtract(days, pc.cast(under, pa.int64()))


def _at(micros: int, offset_at: Callable[[datetime], int]) -> int:
    days, rest = divmod(micros, _DAY_MICROS)
    return offset_at(_near(days) + timedelta(microseconds=rest))
