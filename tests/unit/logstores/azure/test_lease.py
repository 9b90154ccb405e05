"""A turn gives its lease back, whatever comes between."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.azure.client import LeaseHeldError, LeaseLostError
from lakelog.logstores.azure.lease import LeaseTerms, lease
from lakelog.logstores.object_store.client import NotTheServiceError, TryAgainError
from lakelog.logstores.object_store.create_once import RetryPolicy
from support.scripted_objects import FakeTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores.object_store.client import Owner

KEY = "t/_delta_log/00000000000000000001.json"
TIME = FakeTime()
TERMS = LeaseTerms(
    wait=0.1,
    renew_every=60.0,
    release=RetryPolicy(
        budget=2.0, first_wait=0.02, longest_wait=0.25, clock=TIME.clock, sleep=TIME.sleep
    ),
)


class Leases:
    """The lease of the lock blob. `after` is called when a request has been carried out."""

    def __init__(self, after: Callable[[str], None] = lambda _: None) -> None:
        self.holder: str | None = None
        self.blob = False
        self.after = after
        self.asked: list[str] = []

    def _did(self, what: str) -> None:
        self.asked.append(what)
        self.after(what)

    def acquire_lease(self, key: str, lease_id: str, seconds: int) -> None:
        if not self.blob:
            raise FileNotFoundError(key)
        if self.holder not in (None, lease_id):
            raise LeaseHeldError
        self.holder = lease_id
        self._did("acquire")

    def renew_lease(self, key: str, lease_id: str) -> None:
        self._did("renew")

    def release_lease(self, key: str, lease_id: str) -> None:
        self.asked.append("release")
        self.after("before release")
        if self.holder != lease_id:
            raise LeaseLostError
        self.holder = None
        self.after("release")

    def break_lease(self, key: str) -> None:
        self.holder = None

    def create(self, key: str, body: bytes, token: str) -> None:
        self.blob = True
        self._did("create")

    def owner(self, key: str) -> Owner | None:
        self._did("owner")
        return None


@pytest.mark.parametrize(
    "refusal",
    [
        TryAgainError("503", may_have_landed=True),
        TryAgainError("429", may_have_landed=False),
        PermissionError("403"),
        NotTheServiceError("a page"),
        OSError("400"),
    ],
    ids=lambda error: f"{type(error).__name__}-{error}",
)
@pytest.mark.parametrize("times", [1, 4])
def test_a_release_that_is_refused_is_repeated(refusal: Exception, times: int) -> None:
    left = itertools.repeat(refusal, times)

    def refuse(what: str) -> None:
        if what == "before release" and (error := next(left, None)):
            raise error

    leases = Leases(refuse)
    with lease(leases, KEY, "az://c/" + KEY, TERMS):
        assert leases.asked[-1] == "acquire"
    assert leases.holder is None
    assert leases.asked.count("release") == times + 1


@pytest.mark.parametrize("lost", [LeaseLostError(), FileNotFoundError("the lock blob")])
def test_a_lease_that_is_no_longer_ours_is_not_given_back_twice(lost: Exception) -> None:
    def lose(what: str) -> None:
        if what == "before release":
            raise lost

    leases = Leases(lose)
    with lease(leases, KEY, "az://c/" + KEY, TERMS):
        pass
    assert leases.asked.count("release") == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError, NotTheServiceError])
@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("blob", [False, True])
def test_no_interrupt_leaves_a_lease_behind(at: int, blob: bool, kind: type[BaseException]) -> None:
    """After each request that was carried out, and in the block."""
    steps = itertools.count()

    def interrupt(what: str) -> None:
        if what != "before release" and next(steps) == at:
            raise kind("interrupted")

    leases = Leases(interrupt)
    leases.blob = blob
    with suppress(kind), lease(leases, KEY, "az://c/" + KEY, TERMS):
        interrupt("block")
    assert leases.holder is None


def test_a_lease_taken_over_by_a_lost_answer_is_given_back() -> None:
    """Nobody else would release it, and each other writer would wait until it has run out."""
    broken = False

    def lose(what: str) -> None:
        if broken and what == "acquire":
            raise TryAgainError("reset", may_have_landed=True)

    class Held(Leases):
        def break_lease(self, key: str) -> None:
            nonlocal broken
            super().break_lease(key)
            broken = True

    leases = Held(lose)
    leases.blob, leases.holder = True, "of a writer that died"
    with lease(leases, KEY, "az://c/" + KEY, replace(TERMS, wait=0.0)):
        pass
    assert broken
    assert leases.holder is None


def test_a_lease_that_a_lost_answer_may_have_given_is_given_back_where_none_can_be_had() -> None:
    """The lost request may arrive late, when the one that was broken is gone."""
    tries = itertools.count()

    def lose(what: str) -> None:
        if what == "acquire" and next(tries) == 0:
            leases.holder = "of a writer that died"
            raise TryAgainError("reset", may_have_landed=True)

    class Held(Leases):
        def break_lease(self, key: str) -> None:
            self.holder = "of another writer, who was quicker"

    leases = Held(lose)
    leases.blob = True
    with lease(leases, KEY, "az://c/" + KEY, TERMS):
        pass
    assert leases.asked.count("release") == 1
