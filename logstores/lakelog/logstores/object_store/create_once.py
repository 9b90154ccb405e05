"""Making an object exactly once, over a network that loses replies.

The request is repeated, meets the object that it made itself, and hears "exists". So each create
carries a token of its own in the object's metadata, SDK retries are off, and this loop decides:

    2xx                              -> created
    taken (412; Azure: 409)          -> whose token? ours: created; another's: FileExistsError
    a conflict in flight, 429        -> wait, then again with the same token
    5xx, a timeout,
    a broken connection              -> look for the token: ours: created; absent: wait, again;
                                        no answer: wait, look again, and send nothing meanwhile
    refused for good                 -> OSError, if no request before it may have landed
    an answer of something in between -> it says nothing: look for the token
    the budget is spent              -> look once more, then say what is known and no more

A request that timed out can still land later. That is why an absent object proves nothing once a
request may have reached the service: the outcome is then `CommitOutcomeUnknownError`. It can't
land on another writer's object, so a conflict is a conflict whatever is still on its way. (Unless
that object is deleted meanwhile. No code deletes a commit that is younger than the budget.)
"""

from __future__ import annotations

import random
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from lakelog.logstores.errors import CommitOutcomeUnknownError, StorageUnavailableError
from lakelog.logstores.limits import seconds_left
from lakelog.logstores.object_store.client import KeyTakenError, NotTheServiceError, TryAgainError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.logstores.object_store.client import ObjectClient, Owner

_LONGEST_PACE: Final = 30.0
"""Seconds; a service that asks for more is asked again after these."""

_FEWEST_TRIES: Final = 3
"""Within the budget, before `reach` ends anything."""

_BRIEF: Final = 1.0
"""Seconds; a request that took no longer is made again however little the caller has left."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long and how patiently requests are repeated."""

    budget: float = 60.0
    """Seconds from the first request to the last one's start."""
    reach: float = 5.0
    """The same where no service was ever reached, three times: no such host, a refused port."""
    first_wait: float = 0.05
    longest_wait: float = 5.0
    grace: float = 5.0
    """Seconds, on top of the budget, for finding out whose an object is."""
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def start(self, seconds: float | None = None) -> Patience:
        """Count the budget, or these seconds, down; no more than the caller has left."""
        return Patience(self, min(self.budget if seconds is None else seconds, seconds_left()))


class Patience:
    """What is left of a budget."""

    def __init__(self, policy: RetryPolicy, seconds: float) -> None:
        """Count from now."""
        self._policy = policy
        self._began = policy.clock()
        self._seconds = seconds
        self._reached = False
        self._failed = 0
        self._wait = policy.first_wait

    def spent(self, what: str) -> StorageUnavailableError:
        """What to raise when there is no next try."""
        return StorageUnavailableError(f"{what}; given up after {self._limit():.3g} s")

    def pause_after(self, error: TryAgainError) -> bool:
        """Wait as this failure wants it before the next try; say whether there is one."""
        self._reached = self._reached or not error.unreached
        self._failed += 1
        return self._pause(error.retry_after)

    def pause(self) -> bool:
        """Wait before the next try after an answer; say whether there is one."""
        self._reached = True
        return self._pause(None)

    def _pause(self, retry_after: float | None) -> bool:
        # Decorrelated jitter.
        left = self._began + self._limit() - self._policy.clock()
        if left <= 0:
            return False
        drawn = random.uniform(self._policy.first_wait, self._wait * 3)  # noqa: S311, RUF100
        self._wait = min(self._policy.longest_wait, drawn)
        asked = min(retry_after or 0.0, _LONGEST_PACE)
        self._policy.sleep(min(max(self._wait, asked), left))
        return True

    def _limit(self) -> float:
        # One look-up at a slow resolver may take longer than `reach`.
        if self._reached or self._failed < _FEWEST_TRIES:
            return self._seconds
        return min(self._seconds, self._policy.reach)


class _Stopwatch:
    """How long the last request took, and whether there is time for another such."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._clock = policy.clock
        self._began = policy.clock()
        self._took = 0.0

    def begin(self) -> None:
        self._began = self._clock()

    def end(self) -> None:
        self._took = self._clock() - self._began

    @property
    def allows(self) -> bool:
        """False where the storage does not answer and the caller's time would run out first."""
        return self._took <= _BRIEF or seconds_left() >= self._took


class _OwnerHiddenError(Exception):
    """The service won't say whose an object is."""


def create_once(
    client: ObjectClient, key: str, body: bytes, path: str, policy: RetryPolicy
) -> None:
    """Make an object exactly once, whatever becomes of the replies.

    Takes the budget, the grace and two requests at the longest.

    Args:
        client: of the bucket.
        key: of the object.
        body: its bytes.
        path: its name in messages.
        policy: how often to ask.

    Raises:
        FileExistsError: another writer has the key.
        CommitOutcomeUnknownError: it can't be found out; the object may exist, now or later.
        OSError: it was not made. Other exceptions of the client pass through likewise.
    """
    # One for all tries of a call. An ETag would not do: two writers may have the same bytes.
    token = uuid.uuid4().hex
    patience = policy.start()
    uncertain, seen = False, ""
    watch = _Stopwatch(policy)
    while True:
        watch.begin()
        try:
            # The condition is the service's: a look before the request would leave a gap in which
            # another writer creates the object.
            client.create(key, body, token)
        except KeyTakenError as error:
            # "Exists" is also what the second delivery of one request hears: an SDK, a proxy or
            # this loop may have sent it twice.
            if _is_ours(client, key, token, path, policy):
                return
            # It was deleted since. A server that contradicts itself may be wrong about either,
            # and a request that was delivered twice may have met its own object.
            uncertain, seen = True, f"{error}, and then it was not there"
            more = patience.pause()
        except TryAgainError as error:
            watch.end()
            uncertain, seen = uncertain or error.may_have_landed, str(error)
            # Looked for before it is sent again: where it has landed, the job goes on at once and
            # need not find out by a refusal.
            if error.may_have_landed and _has_landed(client, key, token, path, patience, watch):
                return
            more = watch.allows and patience.pause_after(error)
        except Exception as error:
            if not (uncertain or isinstance(error, NotTheServiceError)):
                raise
            evidence = f"{seen}; then {error}" if seen else str(error)
            _settle(client, key, token, path, policy, evidence, watch)
            return
        else:
            return
        if not more:
            if uncertain:
                _settle(client, key, token, path, policy, seen, watch)
                return
            # Each request was refused or never left, so this is certain.
            raise patience.spent(f"{path} was not written: {seen}")


def _has_landed(
    client: ObjectClient, key: str, token: str, path: str, patience: Patience, watch: _Stopwatch
) -> bool:
    """Whether an unanswered request has made the object, asked until an answer comes.

    The bytes are not sent again to a service that answers nothing: it has them, or is gone.

    Returns:
        `False` if there is none yet, if the owner can't be read, or when the time is up.

    Raises:
        FileExistsError: it is another's.
    """
    while True:
        if not watch.allows:
            return False
        watch.begin()
        try:
            owner = client.owner(key)
        except TryAgainError as error:
            watch.end()
            if not patience.pause_after(error):
                return False
        except Exception:  # noqa: BLE001, RUF100  # repeating the create shows as much
            return False
        else:
            break
    if owner is None:
        return False
    if owner.token != token:
        raise FileExistsError(f"{path} exists: another writer made it")
    return True


def repeat(request: Callable[[], _T], path: str, policy: RetryPolicy) -> _T:
    """Repeat an idempotent request until it succeeds.

    Raises:
        StorageUnavailableError: it failed for now until the budget was spent. What else it raised
            passes through.
    """
    patience = policy.start()
    while True:
        try:
            return request()
        except TryAgainError as error:
            if not patience.pause_after(error):
                raise patience.spent(f"{path}: {error}") from error


def _is_ours(client: ObjectClient, key: str, token: str, path: str, policy: RetryPolicy) -> bool:
    """Whether the object is this call's; `False` if there is none.

    Raises:
        FileExistsError: it is another's.
        CommitOutcomeUnknownError: its owner can't be read.
    """
    try:
        owner = _owner(client, key, policy)
    except _OwnerHiddenError as hidden:
        _unknown(path, f"the service says that it exists, but its owner can't be read: {hidden}")
    if owner is None:
        return False
    if owner.token != token:
        raise FileExistsError(f"{path} exists: another writer made it")
    return True


def _settle(
    client: ObjectClient,
    key: str,
    token: str,
    path: str,
    policy: RetryPolicy,
    seen: str,
    watch: _Stopwatch,
) -> None:
    """The last look, when a request may have landed: return if it did."""
    if not watch.allows:
        _unknown(path, f"{seen}; no time is left to look it up")
    try:
        owner = _owner(client, key, policy)
    except _OwnerHiddenError as hidden:
        _unknown(path, f"{seen}; afterwards it could not be looked up: {hidden}")
    # Absent proves nothing: the request may be on its way still, and arrive after we have said that
    # it failed.
    if owner is None:
        _unknown(path, f"{seen}; it is absent now, and may still land")
    if owner.token != token:
        raise FileExistsError(f"{path} exists: another writer made it")


def _unknown(path: str, evidence: str) -> NoReturn:
    raise CommitOutcomeUnknownError(path, evidence) from None


def _owner(client: ObjectClient, key: str, policy: RetryPolicy) -> Owner | None:
    # The budget may be spent, and one look too few would make an outcome unknown for nothing.
    patience = policy.start(policy.grace)
    while True:
        try:
            return client.owner(key)
        except TryAgainError as error:
            if not patience.pause_after(error):
                raise _OwnerHiddenError(str(error)) from error
        except Exception as error:
            raise _OwnerHiddenError(str(error)) from error
