"""The probe tells apart what keeps the promise, ignores it, breaks it in races, or refuses it."""

from __future__ import annotations

import pytest

from lakelog.logstores import MemoryLogStore
from lakelog.logstores.object_store.contenders import ObjectContender, StoreContender
from lakelog.logstores.object_store.create_probe import (
    CreateProbe,
    CreateVerdict,
    probe_exclusive_create,
)
from support.memory_client import (
    HalfDeafClient,
    IgnoringClient,
    MemoryClient,
    RacyClient,
    RefusingClient,
)


def _probe(client: MemoryClient, **options: object) -> CreateProbe:
    contender = ObjectContender(client, "t/", 5.0)
    settings: dict[str, object] = {"rounds": 5, "writers": 4, **options}
    return probe_exclusive_create(contender, **settings)  # type: ignore[arg-type]


def test_a_storage_that_keeps_the_promise_is_said_to_have_shown_no_failure() -> None:
    probe = _probe(MemoryClient())
    assert probe.verdict is CreateVerdict.NO_FAILURE_SEEN
    assert not probe.is_failure
    assert probe.winners == {1: 5}
    assert probe.sentence() == "no failure seen in 5 races of 4 writers"
    assert "safe" not in probe.sentence()


def test_a_storage_that_ignores_the_condition_is_found_without_a_race() -> None:
    client = IgnoringClient()
    probe = _probe(client)
    assert probe.verdict is CreateVerdict.IGNORED
    assert probe.is_failure
    assert "IGNORES" in probe.sentence()
    assert len([name for name, _ in client.requests if name == "create"]) == 2


def test_a_storage_that_looks_before_it_writes_is_found_by_races_alone() -> None:
    probe = _probe(RacyClient(together=4))
    assert probe.verdict is CreateVerdict.NOT_ATOMIC
    assert probe.failures == probe.rounds == 5
    assert max(probe.winners) > 1
    assert "NOT ATOMIC" in probe.sentence()


def test_the_short_probe_ends_at_the_first_race_that_goes_wrong() -> None:
    assert _probe(RacyClient(together=4), stop_early=True).rounds == 1


def test_a_storage_that_says_that_it_can_not_is_distinguished_from_one_that_ignores() -> None:
    probe = _probe(RefusingClient())
    assert probe.verdict is CreateVerdict.REFUSED
    assert probe.is_failure
    assert "501" in probe.sentence()


def test_a_reply_of_501_behind_an_error_is_a_refusal() -> None:
    class Client(MemoryClient):
        def create(self, key: str, body: bytes, token: str) -> None:
            reply = OSError("the service said no")
            reply.response = {"ResponseMetadata": {"HTTPStatusCode": 501}}  # type: ignore[attr-defined]
            raise OSError("not written") from reply

    assert _probe(Client()).verdict is CreateVerdict.REFUSED


def test_a_storage_that_never_answers_is_not_judged() -> None:
    probe = _probe(HalfDeafClient())
    assert probe.verdict is CreateVerdict.UNDECIDED
    assert not probe.is_failure


def test_one_winner_whose_bytes_are_not_what_is_stored_is_a_failure() -> None:
    class Client(MemoryClient):
        def get(self, key: str) -> bytes:
            body = super().get(key)
            return body if key.endswith("0000.json") else b"somebody else's"

    probe = _probe(Client())
    assert probe.verdict is CreateVerdict.NOT_ATOMIC
    assert probe.winners == {1: 5}
    assert probe.failures == 5


def test_no_race_starts_when_the_time_is_over() -> None:
    assert _probe(MemoryClient(), seconds=-1.0, rounds=50).rounds == 1


def test_a_refusal_for_lack_of_rights_is_passed_on() -> None:
    client = MemoryClient()
    client.forbidden = {"create"}
    with pytest.raises(PermissionError):
        _probe(client)


def test_what_the_probe_made_is_deleted_and_what_can_not_be_is_named() -> None:
    client = MemoryClient()
    contender = ObjectContender(client, "t/", 5.0)
    probe_exclusive_create(contender, rounds=3, writers=2)
    made = set(client.objects)
    assert len(made) == 4
    client.forbidden = {"delete"}
    assert set(contender.clear()) == made
    free = MemoryClient()
    contender = ObjectContender(free, "t/", 5.0)
    probe_exclusive_create(contender, rounds=3, writers=2)
    assert contender.clear() == []
    assert free.objects == {}


def test_any_log_store_can_be_raced_through_its_write() -> None:
    MemoryLogStore.forget("probing")
    store = MemoryLogStore()
    store.create_folder("memory://probing/t/_delta_log")
    contender = StoreContender(store, "memory://probing/t/_delta_log")
    probe = probe_exclusive_create(contender, rounds=5, writers=4)
    assert probe.verdict is CreateVerdict.NO_FAILURE_SEEN
    names = [status.name for status in store.list_from("memory://probing/t/_delta_log/")]
    assert names == [f"{number:020d}.json" for number in range(6)], "numbered as commits are"
