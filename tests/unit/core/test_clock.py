from __future__ import annotations

import time

from lakelog.core.clock import Clock, SystemClock


def test_the_system_clock_is_a_clock():
    assert isinstance(SystemClock(), Clock)


def test_the_system_clock_tells_milliseconds_since_the_epoch():
    before = int(time.time() * 1000) - 1
    assert before <= SystemClock().now_ms() <= int(time.time() * 1000) + 1


def test_monotonic_time_does_not_run_backwards():
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()


def test_sleeping_no_time_returns():
    SystemClock().sleep(0)
