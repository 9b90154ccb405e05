from __future__ import annotations

import pytest

from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.reading.time_travel import millis_in_zone


@pytest.mark.parametrize(
    ("text", "zone", "millis"),
    [
        ("1970-01-01", "UTC", 0),
        ("1970-01-01 00:00:00.001", "UTC", 1),
        ("1969-12-31T23:59:59.999", "UTC", -1),
        ("1970-01-01 00:00:00", "America/New_York", 18_000_000),
        ("1970-01-01T00:00:00+01:00", "America/New_York", -3_600_000),
        ("1970-01-01T00:00:00Z", "nowhere", 0),
        # As Spark casts a string.
        ("1970-1-1 1:0:0", "UTC", 3_600_000),
        ("1970", "UTC", 0),
        ("1970-01-01 01:00:00 Europe/Berlin", "America/New_York", 0),
        ("1970-01-01", "+01:00", -3_600_000),
    ],
)
def test_a_time_without_a_zone_is_one_of_the_sessions(text: str, zone: str, millis: int) -> None:
    assert millis_in_zone(text, zone) == millis


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("soon", "UTC"),
        (" ", "UTC"),
        ("1970-01-01", "Nowhere/At_All"),
        # Dates of ISO 8601 that Spark does not take for any.
        ("1970-W01-4", "UTC"),
        ("19700101", "UTC"),
    ],
)
def test_what_is_no_time_is_said(text: str, zone: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=text):
        millis_in_zone(text, zone)
