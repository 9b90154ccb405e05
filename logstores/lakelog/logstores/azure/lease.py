"""A writer's turn: the lease of one blob next to the log, held for the length of one commit.

The turn is a courtesy, never the guarantee. A lease protects the blob that it is on and no
other, and a writer may stall for longer than its lease lasts; what protects one writer's version
from another is the conditional create of the commit file, which is made with and without a turn. So
whatever goes wrong with a lease, the write goes on, and at worst it is refused by that create:

    the lease is free               take it, write, give it back
    another writer has it           look for our file: there already -> we lost, nothing was sent;
                                    else wait and try again
    the wait is over                break the lease (its holder stalled), take it; go on without
                                    it if another writer was faster
    it can't be acquired at all          go on without it
    it is lost while we write       go on: the create decides
"""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from lakelog.logstores.azure.client import LOCK_NAME, LeaseHeldError, LeaseLostError
from lakelog.logstores.object_store.client import KeyTakenError, NotTheServiceError, TryAgainError
from lakelog.logstores.object_store.create_once import RetryPolicy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.object_store.client import Owner

_logger = logging.getLogger("lakelog.azure")

_FIRST_WAIT: Final = 0.02
_LONGEST_WAIT: Final = 0.25
_RELEASE: Final = RetryPolicy(budget=2.0, first_wait=_FIRST_WAIT, longest_wait=_LONGEST_WAIT)


class LeaseClient(Protocol):
    """The requests that a turn needs; `AzureClient` has them."""

    def acquire_lease(self, key: str, lease_id: str, seconds: int) -> None: ...
    def renew_lease(self, key: str, lease_id: str) -> None: ...
    def release_lease(self, key: str, lease_id: str) -> None: ...
    def break_lease(self, key: str) -> None: ...
    def create(self, key: str, body: bytes, token: str) -> None: ...
    def owner(self, key: str) -> Owner | None: ...


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long to hold, and how long to wait."""

    seconds: int = 15
    """Length of the lease. Azure allows 15 to 60."""
    wait: float = 10.0
    """Seconds to wait for another writer's turn to end."""
    renew_every: float = 5.0
    """Seconds between renewals while a write lasts."""
    release: RetryPolicy = _RELEASE
    """How long to try to release the lease; after that it expires by itself."""


@contextlib.contextmanager
def lease(client: LeaseClient, key: str, path: str, terms: LeaseTerms) -> Iterator[None]:
    """Hold the lease for writing `key`, if it can be acquired, until the block ends.

    Raises:
        FileExistsError: `key` was created during another writer's turn.
    """
    folder, slash, _ = key.rpartition("/")
    lock = folder + slash + LOCK_NAME
    # The id is ours to propose: an acquire whose reply got lost is repeated and succeeds.
    lease_id = str(uuid.uuid4())
    try:
        taken = _acquire_in_turn(client, lock, lease_id, key, path, terms)
    except FileExistsError:
        raise  # another writer has the lease
    except BaseException:  # Ctrl-C, when the lease may be ours already
        _release(client, lock, lease_id, terms.release)
        raise
    if not taken:
        yield
        return
    done = threading.Event()
    threading.Thread(
        target=_renew, args=(client, lock, lease_id, terms.renew_every, done), daemon=True
    ).start()
    try:
        yield
    finally:
        done.set()
        _release(client, lock, lease_id, terms.release)


def _acquire_in_turn(
    client: LeaseClient, lock: str, lease_id: str, key: str, path: str, terms: LeaseTerms
) -> bool:
    """Whether the lease is ours now."""
    patience = RetryPolicy(
        budget=terms.wait, first_wait=_FIRST_WAIT, longest_wait=_LONGEST_WAIT
    ).start()
    held = doubtful = False
    try:
        while True:
            try:
                _acquire(client, lock, lease_id, terms.seconds)
            except LeaseHeldError:
                held = True
                if _exists(client, key):
                    raise FileExistsError(f"{path} exists: another writer made it") from None
            except TryAgainError as error:
                _logger.debug("waiting for the lease of %s: %s", lock, error)
                doubtful = doubtful or error.may_have_landed
                if error.unreached:
                    return False  # the create will say so
            else:
                return True
            if not patience.pause():
                if held:
                    try:
                        if _taken_over(client, lock, lease_id, terms):
                            return True
                    except TryAgainError as error:
                        doubtful = doubtful or error.may_have_landed
                break
    except FileExistsError:
        raise
    except (OSError, LeaseLostError) as error:
        _logger.debug("writing %s without the lease: %s", path, error)
        doubtful = doubtful or isinstance(error, NotTheServiceError)
    if doubtful:  # it may be ours all the same, and no other process would release it
        _release(client, lock, lease_id, terms.release)
    return False


def _acquire(client: LeaseClient, lock: str, lease_id: str, seconds: int) -> None:
    try:
        client.acquire_lease(lock, lease_id, seconds)
    except FileNotFoundError:
        with contextlib.suppress(KeyTakenError):
            client.create(lock, b"", uuid.uuid4().hex)
        client.acquire_lease(lock, lease_id, seconds)


def _exists(client: LeaseClient, key: str) -> bool:
    try:
        return client.owner(key) is not None
    except (TryAgainError, OSError):  # the create will show
        return False


def _taken_over(client: LeaseClient, lock: str, lease_id: str, terms: LeaseTerms) -> bool:
    """Break a lease that outlasted the wait. Its holder, if alive, is still bound by the create.

    Raises:
        TryAgainError: it may be ours all the same.
    """
    _logger.warning("the lease of %s was held by others for %g s: breaking it", lock, terms.wait)
    try:
        client.break_lease(lock)
        client.acquire_lease(lock, lease_id, terms.seconds)
    except LeaseHeldError:
        return False
    return True


def _renew(
    client: LeaseClient, lock: str, lease_id: str, every: float, done: threading.Event
) -> None:
    while not done.wait(every):
        try:
            client.renew_lease(lock, lease_id)
        except TryAgainError as error:
            _logger.debug("could not renew the lease of %s: %s", lock, error)
        except (LeaseLostError, OSError) as error:
            if not done.is_set():
                _logger.warning(
                    "lost the lease of %s while writing; the write goes on, and the conditional "
                    "create decides (%s)",
                    lock,
                    error,
                )
            return


def _release(client: LeaseClient, lock: str, lease_id: str, policy: RetryPolicy) -> None:
    patience = policy.start()
    while True:
        try:
            client.release_lease(lock, lease_id)
        except (LeaseLostError, FileNotFoundError):
            return
        except (TryAgainError, OSError) as error:
            # A refusal too: until the lease expires every other writer waits for it.
            if patience.pause():
                continue
            _logger.debug("the lease of %s was not released: %s", lock, error)
        return
