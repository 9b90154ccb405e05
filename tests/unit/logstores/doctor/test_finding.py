"""An error's message, parted into what was seen and what to do."""

from __future__ import annotations

import pytest

from lakelog.logstores.doctor.finding import describe_error


@pytest.mark.parametrize(
    ("message", "seen", "remedy"),
    [
        ("no bucket b. Create it, or check its name", "no bucket b", "Create it, or check"),
        ("this host's clock is off: correct it", "this host's clock is off", "Correct it"),
        ("a.xml can't be read: fix it", "a.xml can't be read", "Fix it"),
    ],
)
def test_what_to_do_is_found_in_the_message(message: str, seen: str, remedy: str) -> None:
    summary, advice = describe_error(OSError(message))
    assert summary == seen
    assert advice.startswith(remedy)
