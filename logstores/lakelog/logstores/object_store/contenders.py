"""The two ways to race for a name: on an object store's own client, or on any LogStore."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Final

from lakelog.logstores.errors import CommitOutcomeUnknownError, UnsafeLogStoreError
from lakelog.logstores.object_store.client import KeyTakenError, TryAgainError
from lakelog.logstores.object_store.race import Outcome, send_together
from lakelog.logstores.threads import run_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.logstores.contract import LogStore
    from lakelog.logstores.object_store.client import ObjectClient, PreparedRequest

_READS: Final = 4
"""Attempts to read an object back; each may time out, so no more."""


class Contender(ABC):
    """Creates files under numbered names, alone and in races."""

    pre_sent: bool = False
    """Whether the requests of a race are made to arrive together, not just started together."""

    @abstractmethod
    def create(self, number: int, text: str) -> Outcome:
        """Create a file alone.

        Raises:
            UnsafeLogStoreError: the storage says that it can't create exclusively.
            OSError: it refuses for another reason.
        """

    @abstractmethod
    def race(self, number: int, texts: Sequence[str]) -> list[Outcome]:
        """Let one writer per text create the same file at once."""

    @abstractmethod
    def stored(self, number: int) -> str | None:
        """The text of a file; `None` if there is none.

        Raises:
            OSError: it can't be read.
        """


def prepared(
    client: ObjectClient, key: str, text: str, *, streamed: bool = False
) -> PreparedRequest | None:
    """A create as bytes; `None` where that is not possible.

    If signing fails, for lack of credentials for instance, the client's own next request reports
    it in the store's words.
    """
    try:
        return client.prepared_create(key, text.encode(), uuid.uuid4().hex, streamed=streamed)
    except Exception:  # noqa: BLE001, RUF100  # SDKs sign, and raise what they like
        return None


class ObjectContender(Contender):
    """Sends single conditional puts, without the loop that settles lost replies."""

    def __init__(self, client: ObjectClient, prefix: str, timeout: float) -> None:
        """Race below a prefix.

        Args:
            client: of the bucket.
            prefix: ends with a slash; what is made stays there for the caller to remove.
            timeout: seconds for each reply.
        """
        self._client = client
        self._prefix = prefix
        self._timeout = timeout
        self._made: set[str] = set()
        self.pre_sent: bool = prepared(client, self._key(0), "x") is not None
        # A server that has to check a signature over the body takes it all before it looks for
        # the object, and whichever looks first may well be done before the next one looks. Without
        # that signature every writer has looked when the last bytes come.
        self._streamed = [True, False]

    def _key(self, number: int) -> str:
        return f"{self._prefix}{number:020d}.json"

    def create(self, number: int, text: str) -> Outcome:
        may_be_there = True
        try:
            self._client.create(self._key(number), text.encode(), uuid.uuid4().hex)
        except KeyTakenError:
            return Outcome.LOST
        except TryAgainError as error:
            may_be_there = error.may_have_landed
            return Outcome.UNANSWERED
        except OSError:
            may_be_there = False
            raise
        finally:
            if may_be_there:
                self._made.add(self._key(number))
        return Outcome.WON

    def race(self, number: int, texts: Sequence[str]) -> list[Outcome]:
        self._made.add(self._key(number))
        if self.pre_sent:
            outcomes = self._pre_sent_race(number, texts)
            if set(outcomes) != {Outcome.UNANSWERED}:
                return outcomes
            # A proxy for the SDKs alone, a certificate that only they trust: sockets of our own
            # don't get through, and the client may.
            self.pre_sent = False
        return run_together([partial(self._attempt, number, text) for text in texts])

    def _pre_sent_race(self, number: int, texts: Sequence[str]) -> list[Outcome]:
        """Race in one of the forms of a request, in turn; one that gets no answer is given up."""
        while self._streamed:
            streamed = self._streamed[number % len(self._streamed)]
            key = self._key(number)
            requests = [prepared(self._client, key, text, streamed=streamed) for text in texts]
            try:
                outcomes = send_together([r for r in requests if r is not None], self._timeout)
            except OSError:
                outcomes = []
            if set(outcomes) - {Outcome.UNANSWERED}:
                return outcomes
            # Such as a policy of the bucket that wants every body signed.
            self._streamed.remove(streamed)
        return [Outcome.UNANSWERED]

    def _attempt(self, number: int, text: str) -> Outcome:
        try:
            return self.create(number, text)
        except OSError:
            return Outcome.UNANSWERED

    def stored(self, number: int) -> str | None:
        failure = TryAgainError("not asked", may_have_landed=False)
        for _ in range(_READS):
            try:
                return self._client.get(self._key(number)).decode(errors="replace")
            except FileNotFoundError:
                return None
            except TryAgainError as error:
                failure = error
        raise OSError(f"{self._key(number)} can't be read back: {failure}")

    def clear(self) -> list[str]:
        """Delete what was made, and say which keys may be left."""
        left = []
        for key in sorted(self._made):
            try:
                self._client.delete(key)
            except (OSError, TryAgainError):
                left.append(key)
        self._made.clear()
        return left


class StoreContender(Contender):
    """Commits through `LogStore.write`, as a table's writers do."""

    def __init__(self, store: LogStore, folder: str) -> None:
        """Race in a folder that looks like a table's log, but belongs to no table.

        Args:
            store: any.
            folder: a URI that ends in `/_delta_log`; it exists.
        """
        self._store = store
        self._folder = folder

    def _path(self, number: int) -> str:
        return f"{self._folder}/{number:020d}.json"

    def create(self, number: int, text: str) -> Outcome:
        try:
            self._store.write(self._path(number), [text])
        except FileExistsError:
            return Outcome.LOST
        except CommitOutcomeUnknownError:
            return Outcome.UNANSWERED
        return Outcome.WON

    def race(self, number: int, texts: Sequence[str]) -> list[Outcome]:
        return run_together([partial(self._attempt, number, text) for text in texts])

    def _attempt(self, number: int, text: str) -> Outcome:
        try:
            return self.create(number, text)
        except (OSError, UnsafeLogStoreError):
            return Outcome.UNANSWERED

    def stored(self, number: int) -> str | None:
        try:
            return "\n".join(self._store.read(self._path(number)))
        except FileNotFoundError:
            return None
