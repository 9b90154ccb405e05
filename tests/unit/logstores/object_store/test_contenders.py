"""Races send both forms of a request in turn, and give up the one that nobody answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.object_store.contenders import ObjectContender
from lakelog.logstores.object_store.race import Outcome
from lakelog.logstores.object_store.store import PreparedRequest
from support.memory_client import MemoryClient

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

TEXTS = ["one", "two", "three"]


class _TwoForms(MemoryClient):
    """Prepares requests that say which form they have."""

    def prepared_create(
        self, key: str, body: bytes, token: str, *, streamed: bool = False
    ) -> PreparedRequest:
        form = b"streamed " if streamed else b"signed "
        return PreparedRequest("localhost", 1, False, form + body)


class _Wire:
    """Answers a race, or, for the forms in `deaf`, nobody."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, deaf: set[bytes]) -> None:
        self.forms: list[bytes] = []
        self._deaf = deaf
        monkeypatch.setattr("lakelog.logstores.object_store.contenders.send_together", self.send)

    def send(self, requests: Sequence[PreparedRequest], timeout: float) -> list[Outcome]:
        forms = {request.data.split()[0] for request in requests}
        assert len(forms) == 1, "one race, one form"
        form = forms.pop()
        self.forms.append(form)
        if form in self._deaf:
            return [Outcome.UNANSWERED] * len(requests)
        return [Outcome.WON] + [Outcome.LOST] * (len(requests) - 1)


def test_the_two_forms_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = _Wire(monkeypatch, deaf=set())
    contender = ObjectContender(_TwoForms(), "t/", 5.0)
    for number in range(4):
        assert contender.race(number, TEXTS).count(Outcome.WON) == 1
    assert wire.forms == [b"streamed", b"signed"] * 2


def test_a_form_that_is_refused_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    wire = _Wire(monkeypatch, deaf={b"streamed"})
    contender = ObjectContender(_TwoForms(), "t/", 5.0)
    for number in range(3):
        assert contender.race(number, TEXTS).count(Outcome.WON) == 1
    assert wire.forms == [b"streamed", *[b"signed"] * 3]
    assert contender.pre_sent


def test_where_no_form_gets_through_threads_race_on_the_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wire = _Wire(monkeypatch, deaf={b"streamed", b"signed"})
    client = _TwoForms()
    contender = ObjectContender(client, "t/", 5.0)
    assert contender.race(0, TEXTS).count(Outcome.WON) == 1
    assert contender.race(1, TEXTS).count(Outcome.WON) == 1
    assert wire.forms == [b"streamed", b"signed"]
    assert not contender.pre_sent
    assert [name for name, _ in client.requests].count("create") == 2 * len(TEXTS)
