"""A name of Google Cloud Storage is written once a second; other names never wait."""

from __future__ import annotations

import pytest

from lakelog.logstores.gcs.client import GCSClient
from lakelog.logstores.gcs.conf import GCSSettings
from lakelog.logstores.gcs.pace import Pace, pace_of
from lakelog.logstores.object_store.client import KeyTakenError, TryAgainError


class Clock:
    """Time that passes only when somebody sleeps."""

    def __init__(self) -> None:
        self.time = 100.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


def paced(clock: Clock) -> Pace:
    return Pace(1.0, clock.now, clock.sleep)


def test_a_name_written_again_waits_for_its_second() -> None:
    clock = Clock()
    pace = paced(clock)
    for _ in range(3):
        pace.wait("b", "_last_checkpoint")
    assert clock.slept == [1.0, 1.0]
    clock.time += 0.75
    pace.wait("b", "_last_checkpoint")
    assert clock.slept == [1.0, 1.0, 0.25]


def test_commits_have_names_of_their_own_and_never_wait() -> None:
    clock = Clock()
    pace = paced(clock)
    for version in range(100):
        pace.wait("b", f"{version:020d}.json")
        pace.wait("c", f"{version:020d}.json")
    assert clock.slept == []


def test_what_was_refused_did_not_count() -> None:
    clock = Clock()
    pace = paced(clock)
    pace.wait("b", "0.json")
    pace.forget("b", "0.json")
    pace.wait("b", "0.json")
    assert clock.slept == []


def client_whose_creates(clock: Clock, *answers: Exception | None) -> GCSClient:
    client = GCSClient(GCSSettings(root_url="http://localhost:4443"), "b", paced(clock))
    left = list(answers)

    def send(*_: object, **__: object) -> None:
        answer = left.pop(0)
        if answer is not None:
            raise answer

    client._send = send  # type: ignore[method-assign]
    return client


def test_many_who_race_for_a_name_wait_for_no_turn() -> None:
    clock = Clock()
    client = client_whose_creates(clock, None, *[KeyTakenError("b/k")] * 15)
    client.create("7.json", b"", "token")
    for _ in range(15):
        with pytest.raises(KeyTakenError):
            client.create("7.json", b"", "token")
    assert clock.slept == []


def test_a_create_that_was_not_answered_is_sent_again_a_second_later() -> None:
    clock = Clock()
    lost = TryAgainError("reset", may_have_landed=True)
    refused = TryAgainError("429", may_have_landed=False)
    client = client_whose_creates(clock, lost, refused, None)
    for _ in range(2):
        with pytest.raises(TryAgainError):
            client.create("7.json", b"", "token")
    client.create("7.json", b"", "token")
    assert clock.slept == [1.0, 1.0]


def test_a_long_queue_of_threads_waits_no_longer_than_its_bound() -> None:
    waited: list[float] = []
    pace = Pace(1.0, lambda: 100.0, waited.append)
    for _ in range(50):
        pace.wait("b", "k")
    assert max(waited) == 10.0


def test_what_is_remembered_is_bounded_and_the_latest() -> None:
    clock = Clock()
    pace = paced(clock)
    for number in range(10_000):
        pace.wait("b", str(number))
    pace.wait("b", "0")
    assert clock.slept == [], "long forgotten"
    pace.wait("b", "9999")
    assert clock.slept == [1.0]


def test_all_stores_of_a_process_share_the_pace_of_an_endpoint() -> None:
    assert pace_of("http://a", 1.0) is pace_of("http://a", 1.0)
    assert pace_of("http://a", 1.0) is not pace_of("http://b", 1.0)
