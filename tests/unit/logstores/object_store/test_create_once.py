"""Exactly once: what one writer makes of each fate of its requests."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.logstores import CommitOutcomeUnknownError
from lakelog.logstores.limits import limited
from lakelog.logstores.object_store.create_once import repeat
from lakelog.logstores.object_store.store import RetryPolicy, TryAgainError, create_once
from support.examples import examples
from support.scripted_objects import Bucket, FakeTime, Fate, ScriptedClient

KEY = "t/_delta_log/00000000000000000007.json"
PATH = f"mem://{KEY}"


def write(client: ScriptedClient, time: FakeTime | None = None, budget: float = 60.0) -> FakeTime:
    time = time or FakeTime()
    policy = RetryPolicy(budget=budget, clock=time.clock, sleep=time.sleep)
    create_once(client, KEY, b"mine", PATH, policy)
    return time


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def test_an_uncontended_create_is_one_request(bucket: Bucket) -> None:
    client = ScriptedClient(bucket)
    assert write(client).slept == []
    assert client.requests == ["create"]
    assert bucket.objects[KEY][1] == b"mine"


@pytest.mark.parametrize(
    "fates",
    [[fate] for fate in Fate if fate not in (Fate.OK, Fate.FORBIDDEN, Fate.WALL)]
    + [
        [Fate.LOST_REPLY, Fate.LOST_REPLY],
        [Fate.LOST_REQUEST, Fate.LOST_REPLY, Fate.BUSY, Fate.TWICE],
        [Fate.UNREACHED, Fate.BUSY, Fate.LATE, Fate.LOST_REQUEST],
    ],
    ids=lambda fates: "-".join(fate.name for fate in fates),
)
def test_trouble_that_ends_is_got_over(fates: list[Fate], bucket: Bucket) -> None:
    client = ScriptedClient(bucket, fates)
    write(client)
    assert len(client.tokens) == 1, "every repetition carries the same token"
    assert [token for _, token in bucket.stored] == list(client.tokens)


@pytest.mark.parametrize("fate", [fate for fate in Fate if fate is not Fate.FORBIDDEN])
def test_the_same_bytes_by_another_writer_are_a_conflict(fate: Fate, bucket: Bucket) -> None:
    bucket.objects[KEY] = ("theirs", b"mine")
    with pytest.raises(FileExistsError, match="another writer"):
        write(ScriptedClient(bucket, [fate]))


def test_an_object_of_a_program_without_tokens_is_a_conflict(bucket: Bucket) -> None:
    bucket.objects[KEY] = (None, b"mine")
    with pytest.raises(FileExistsError, match="another writer"):
        write(ScriptedClient(bucket, [Fate.LOST_REPLY]))


def test_a_request_that_lands_while_we_wait_is_recognised(bucket: Bucket) -> None:
    client = ScriptedClient(bucket, [Fate.LATE])

    def sleep(_: float) -> None:
        bucket.land()

    policy = RetryPolicy(sleep=sleep)
    create_once(client, KEY, b"mine", PATH, policy)
    assert client.requests == ["create", "owner", "create", "owner"]


def test_a_refusal_for_good_is_reported_as_it_is(bucket: Bucket) -> None:
    with pytest.raises(PermissionError, match="create is forbidden"):
        write(ScriptedClient(bucket, [Fate.FORBIDDEN]))
    assert not bucket.objects


def test_a_refusal_after_a_lost_reply_does_not_hide_that_it_was_made(bucket: Bucket) -> None:
    write(ScriptedClient(bucket, [Fate.LOST_REPLY, Fate.FORBIDDEN]))
    assert bucket.objects[KEY][1] == b"mine"


def test_a_refusal_after_a_late_request_leaves_the_outcome_unknown(bucket: Bucket) -> None:
    with pytest.raises(CommitOutcomeUnknownError, match=r"create is forbidden.*may still land"):
        write(ScriptedClient(bucket, [Fate.LATE, Fate.FORBIDDEN]))
    bucket.land()
    assert bucket.objects[KEY][1] == b"mine"


def test_a_refusal_after_a_lost_reply_is_a_conflict_where_another_won(bucket: Bucket) -> None:
    bucket.objects[KEY] = ("theirs", b"x")
    with pytest.raises(FileExistsError):
        write(ScriptedClient(bucket, [Fate.LOST_REPLY, Fate.FORBIDDEN]))


def test_a_service_that_is_busy_to_the_last_leaves_nothing_in_doubt(bucket: Bucket) -> None:
    client = ScriptedClient(bucket, [Fate.BUSY] * 1000)
    with pytest.raises(OSError, match="was not written: BUSY; given up after 60 s") as caught:
        write(client)
    assert not isinstance(caught.value, FileExistsError)
    assert "owner" not in client.requests, "nobody has to be asked"


def test_silence_to_the_last_leaves_the_outcome_unknown(bucket: Bucket) -> None:
    with pytest.raises(CommitOutcomeUnknownError, match="absent now, and may still land") as caught:
        write(ScriptedClient(bucket, [Fate.LATE] + [Fate.BUSY] * 1000))
    assert caught.value.path == PATH


def test_a_lost_reply_is_found_out_at_once(bucket: Bucket) -> None:
    client = ScriptedClient(bucket, [Fate.LOST_REPLY] + [Fate.BUSY] * 1000)
    assert write(client).slept == []
    assert client.requests == ["create", "owner"]


@pytest.mark.parametrize("fate", [Fate.LATE, Fate.LOST_REPLY, Fate.LOST_REQUEST])
def test_bytes_are_not_sent_again_to_a_service_that_answers_nothing(
    fate: Fate, bucket: Bucket
) -> None:
    client = ScriptedClient(bucket, [fate], [Fate.BUSY] * 7)
    write(client)
    assert client.requests[:9] == ["create", *["owner"] * 8]
    assert bucket.objects[KEY][1] == b"mine"


def test_looking_for_the_owner_has_time_of_its_own(bucket: Bucket) -> None:
    time = FakeTime()

    def hang() -> None:
        time.now += 20

    client = ScriptedClient(bucket, [Fate.LOST_REPLY], [Fate.BUSY] * 2, before=hang)
    write(client, time)
    assert client.requests == ["create", *["owner"] * 3]
    assert 80 < time.now <= 90, "the last look began when the budget was spent"


@pytest.mark.parametrize("before", [[], [Fate.BUSY], [Fate.LOST_REQUEST], [Fate.UNREACHED]])
def test_the_answer_of_a_gateway_is_looked_behind(before: list[Fate], bucket: Bucket) -> None:
    client = ScriptedClient(bucket, [*before, Fate.GATEWAY])
    write(client)
    assert client.requests[-2:] == ["create", "owner"]
    assert [token for _, token in bucket.stored] == list(client.tokens)


def test_the_answer_of_a_gateway_does_not_say_that_nothing_was_made(bucket: Bucket) -> None:
    with pytest.raises(CommitOutcomeUnknownError, match=r"a sign-in page; it is absent now"):
        write(ScriptedClient(bucket, [Fate.WALL]))


@pytest.mark.parametrize("budget", [3.0, 60.0, 600.0])
def test_where_no_one_is_there_it_is_reported_in_seconds(budget: float, bucket: Bucket) -> None:
    time = FakeTime()
    wanted = min(budget, 5.0)
    with pytest.raises(OSError, match=f"UNREACHED; given up after {wanted:g} s"):
        write(ScriptedClient(bucket, [Fate.UNREACHED] * 1000), time, budget)
    assert time.now == pytest.approx(wanted)
    reader = ScriptedClient(bucket, [Fate.UNREACHED] * 1000)
    time = FakeTime()
    policy = RetryPolicy(budget=budget, clock=time.clock, sleep=time.sleep)
    with pytest.raises(OSError, match=f"UNREACHED; given up after {wanted:g} s"):
        repeat(lambda: reader.get(KEY), PATH, policy)
    assert time.now == pytest.approx(wanted)


@pytest.mark.parametrize("slowness", [4.0, 6.0, 15.0])
@pytest.mark.parametrize("failures", [1, 2])
def test_a_slow_resolver_is_asked_thrice_before_no_one_is_there(
    slowness: float, failures: int
) -> None:
    time, asked = FakeTime(), 0
    policy = RetryPolicy(clock=time.clock, sleep=time.sleep)

    def look_up() -> str:
        nonlocal asked
        asked += 1
        if asked <= failures:
            time.sleep(slowness)
            raise TryAgainError("no such host for now", may_have_landed=False, unreached=True)
        return "there"

    assert repeat(look_up, PATH, policy) == "there"
    time, asked, failures = FakeTime(), 0, 100
    policy = RetryPolicy(clock=time.clock, sleep=time.sleep)
    with pytest.raises(OSError, match="given up after 5 s"):
        repeat(look_up, PATH, policy)
    assert asked == 3
    assert time.now < 60


def test_a_service_that_was_there_gets_the_whole_budget_to_come_back(bucket: Bucket) -> None:
    time = FakeTime()
    with pytest.raises(OSError, match="UNREACHED; given up after 60 s"):
        write(ScriptedClient(bucket, [Fate.BUSY] + [Fate.UNREACHED] * 1000), time)
    assert time.now == pytest.approx(60.0)


@given(left=st.floats(-5, 100), fates=st.lists(st.sampled_from(Fate), max_size=8))
@settings(max_examples=examples(24), deadline=None)
def test_nothing_is_repeated_for_longer_than_the_caller_has(left: float, fates: list[Fate]) -> None:
    time = FakeTime()
    client = ScriptedClient(Bucket(), fates + [Fate.LOST_REQUEST, Fate.BUSY] * 200)
    with suppress(OSError, CommitOutcomeUnknownError):
        limited(lambda: left - time.now, lambda: write(client, time))
    assert time.now <= max(left, 0.0) + 1e-6
    assert client.requests


def test_an_owner_that_cannot_be_read_leaves_the_outcome_unknown(bucket: Bucket) -> None:
    with pytest.raises(CommitOutcomeUnknownError, match=r"its owner can't be read.*forbidden"):
        write(ScriptedClient(bucket, [Fate.TWICE], [Fate.FORBIDDEN]))


def test_an_owner_that_cannot_be_reached_in_time_leaves_the_outcome_unknown(
    bucket: Bucket,
) -> None:
    with pytest.raises(CommitOutcomeUnknownError, match=r"its owner can't be read: BUSY"):
        write(ScriptedClient(bucket, [Fate.TWICE], [Fate.BUSY] * 1000))


def test_an_object_that_vanished_is_made_again(bucket: Bucket) -> None:
    bucket.objects[KEY] = ("theirs", b"x")
    seen: list[int] = []

    def vanish() -> None:
        seen.append(1)
        if len(seen) == 2:  # after the refusal, before the look
            del bucket.objects[KEY]

    client = ScriptedClient(bucket, before=vanish)
    write(client)
    assert client.requests == ["create", "owner", "create"]
    assert bucket.objects[KEY][1] == b"mine"


def test_a_service_that_contradicts_itself_leaves_the_outcome_unknown(bucket: Bucket) -> None:
    client = ScriptedClient(bucket, [Fate.TWICE, Fate.FORBIDDEN])
    hidden: list[tuple[str | None, bytes]] = []

    def hide() -> None:
        if client.requests[-1:] == ["create"] and KEY in bucket.objects:
            hidden.append(bucket.objects.pop(KEY))

    client.before = hide
    with pytest.raises(CommitOutcomeUnknownError, match="and then it was not there"):
        write(client)
    assert hidden[0][1] == b"mine", "it was stored, and not seen"


def test_the_budget_counts_from_the_first_request(bucket: Bucket) -> None:
    time = FakeTime()

    def hang() -> None:
        time.now += 20

    client = ScriptedClient(bucket, [Fate.BUSY] * 1000, before=hang)
    with pytest.raises(OSError, match="given up after 60 s"):
        write(client, time)
    assert client.requests == ["create"] * 3
    assert 60 < time.now < 62


def test_a_pause_that_the_service_asks_for_is_made_and_bounded(bucket: Bucket) -> None:
    asked = ScriptedClient(bucket, [Fate.BUSY], retry_after=7.0)
    assert write(asked).slept == [7.0]
    bucket.objects.clear()
    greedy = ScriptedClient(bucket, [Fate.BUSY], retry_after=3600.0)
    assert write(greedy).slept == [30.0]
    bucket.objects.clear()
    hurried = ScriptedClient(bucket, [Fate.BUSY], retry_after=3600.0)
    assert write(hurried, budget=2.0).slept == [2.0]


def test_waits_grow_and_stay_within_their_bounds() -> None:
    time = FakeTime()
    policy = RetryPolicy(budget=60.0, clock=time.clock, sleep=time.sleep)
    patience = policy.start()
    while patience.pause():
        pass
    assert time.now == pytest.approx(60.0)
    assert all(0.05 <= wait <= 5.0 for wait in time.slept[:-1])
    assert time.slept[0] <= 0.15
    assert max(time.slept) > 1.0
    assert len(time.slept) > 12
