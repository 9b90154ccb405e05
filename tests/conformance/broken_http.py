"""Stores on HTTP that break one promise each when the transport fails.

`breaks` names the fault check of the kit that must catch the store. Each is the sound store of
`support.object_server` with one thing wrong that real clients or stores do wrong.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from typing import TYPE_CHECKING, Any, ClassVar

from lakelog.logstores.errors import CommitOutcomeUnknownError
from lakelog.logstores.lines import encode_lines
from lakelog.logstores.object_store.store import (
    KeyTakenError,
    NotTheServiceError,
    ObjectClient,
    ObjectEntry,
    TryAgainError,
)
from support.object_server import TinyClient, TinyLogStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.logstores import FileStatus


class _OtherClient(TinyLogStore):
    """A store whose client is another."""

    kind: ClassVar[type[TinyClient]]

    def client(self, url: str, bucket: str, timeout: float) -> ObjectClient:
        return self.kind(url, bucket, timeout)


# Creating


class RepeatsBlindly(TinyLogStore):
    """What SDKs do: the repeated request meets its own object and is a conflict (icechunk)."""

    breaks: ClassVar[str] = "a_create_whose_reply_is_lost_is_known_as_ours"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        body = b"".join(encode_lines(lines))
        client, key = self._locate(path)
        try:
            self._again(path, lambda: client.create(key, body, "same"))
        except KeyTakenError:
            raise FileExistsError(path) from None


class CallsALostReplyAFailure(TinyLogStore):
    """obstore: a dropped reply is a GenericError, and the object is there."""

    breaks: ClassVar[str] = "a_create_whose_reply_is_lost_is_known_as_ours"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        client, key = self._locate(path)
        try:
            client.create(key, b"".join(encode_lines(lines)), "t")
        except TryAgainError as error:
            raise OSError(f"{path}: {error}") from error
        except KeyTakenError:
            raise FileExistsError(path) from None


class _BelievingClient(TinyClient):
    def create(self, key: str, body: bytes, token: str) -> None:
        try:
            super().create(key, body, token)
        except NotTheServiceError as error:
            raise PermissionError(str(error)) from error


class BelievesGateways(_OtherClient):
    """A page of a gateway in between is taken for the service's refusal."""

    breaks: ClassVar[str] = "an_answer_that_is_not_the_services_own_proves_nothing"
    kind = _BelievingClient


class RepeatsOnce(TinyLogStore):
    breaks: ClassVar[str] = "losing_two_replies_is_no_conflict_either"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        body = b"".join(encode_lines(lines))
        client, key = self._locate(path)
        for _ in range(2):
            with contextlib.suppress(TryAgainError):
                try:
                    client.create(key, body, "t")
                except KeyTakenError:
                    if client.get(key) != body:
                        raise FileExistsError(path) from None
                return
        raise OSError(f"{path}: failed twice")


class ComparesBytesAlone(TinyLogStore):
    """Two writers of the same bytes have both won."""

    breaks: ClassVar[str] = "a_lost_reply_does_not_make_a_rivals_file_ours"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        kept = list(lines)
        try:
            super().write(path, kept, overwrite=overwrite)
        except FileExistsError:
            if list(self.read(path)) != kept:
                raise


class TakesSilenceForConsent(TinyLogStore):
    breaks: ClassVar[str] = "a_request_that_got_lost_is_repeated"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        client, key = self._locate(path)
        with contextlib.suppress(TryAgainError):
            client.create(key, b"".join(encode_lines(lines)), "t")


class NeverAsksAgain(_OtherClient):
    breaks: ClassVar[str] = "a_busy_service_is_asked_again"

    class kind(TinyClient):  # noqa: N801
        def create(self, key: str, body: bytes, token: str) -> None:
            try:
                super().create(key, body, token)
            except TryAgainError as error:
                raise OSError(str(error)) from error


class BelievesEveryRefusal(_OtherClient):
    """A conflict is a conflict, the first time: nobody looks whose object it is."""

    breaks: ClassVar[str] = "a_request_delivered_twice_is_no_conflict"

    class kind(TinyClient):  # noqa: N801
        def create(self, key: str, body: bytes, token: str) -> None:
            try:
                super().create(key, body, token)
            except KeyTakenError:
                raise FileExistsError(key) from None


class OverwritesOnlyOnce(TinyLogStore):
    breaks: ClassVar[str] = "an_overwrite_survives_what_gets_lost"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        client, key = self._locate(path)
        if not overwrite:
            super().write(path, lines)
            return
        try:
            client.put(key, b"".join(encode_lines(lines)))
        except TryAgainError as error:
            raise OSError(str(error)) from error


class CallsEveryFailureUnknown(TinyLogStore):
    breaks: ClassVar[str] = "a_write_that_was_refused_is_known_as_not_made"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        try:
            super().write(path, lines, overwrite=overwrite)
        except FileExistsError:
            raise
        except OSError as error:
            raise CommitOutcomeUnknownError(path, str(error)) from error


class CallsWhatIsAbsentFailed(TinyLogStore):
    """Looks once more, sees nothing, and says that nothing was done."""

    breaks: ClassVar[str] = "a_request_that_may_land_later_leaves_the_outcome_unknown"

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        try:
            super().write(path, lines, overwrite=overwrite)
        except CommitOutcomeUnknownError as error:
            raise OSError(str(error)) from error


class CallsADeadServiceAFailure(CallsWhatIsAbsentFailed):
    breaks: ClassVar[str] = "a_service_that_dies_in_mid_write_leaves_the_outcome_unknown"


# Reading


class TakesWhatItGot(_OtherClient):
    """A body that ends early is the body."""

    breaks: ClassVar[str] = "a_torn_reading_is_repeated_or_an_error"

    class kind(TinyClient):  # noqa: N801
        def get(self, key: str) -> bytes:
            connection = http.client.HTTPConnection(self._host, timeout=self._timeout)
            with contextlib.closing(connection):
                try:
                    connection.request("GET", self._target(key))
                    return connection.getresponse().read()
                except http.client.IncompleteRead as error:
                    return error.partial
                except (http.client.HTTPException, OSError) as error:
                    raise TryAgainError(str(error), may_have_landed=False) from error


class TakesAPageItCannotReadForAnEmptyOne(_OtherClient):
    breaks: ClassVar[str] = "a_torn_listing_is_repeated_or_an_error"

    class kind(TinyClient):  # noqa: N801
        def page(
            self, prefix: str, start: str, continuation: str | None, limit: int | None
        ) -> tuple[list[ObjectEntry], str | None]:
            try:
                return super().page(prefix, start, continuation, limit)
            except TryAgainError:
                return [], None


class EndsAtAPageThatIsLost(_OtherClient):
    breaks: ClassVar[str] = "a_second_page_that_is_lost_does_not_end_the_listing"

    class kind(TinyClient):  # noqa: N801
        def page(
            self, prefix: str, start: str, continuation: str | None, limit: int | None
        ) -> tuple[list[ObjectEntry], str | None]:
            try:
                return super().page(prefix, start, continuation, limit)
            except TryAgainError:
                if continuation is None:
                    raise
                return [], None


class TakesTheFirstPiece(_OtherClient):
    breaks: ClassVar[str] = "slow_replies_are_waited_for"

    class kind(TinyClient):  # noqa: N801
        def get(self, key: str) -> bytes:
            connection = http.client.HTTPConnection(self._host, timeout=self._timeout)
            with contextlib.closing(connection):
                connection.request("GET", self._target(key))
                return connection.getresponse().read1(1 << 20)


class BelievesEveryPage(_OtherClient):
    """Any 200 is a success, whoever says it."""

    breaks: ClassVar[str] = "a_page_of_a_web_proxy_is_no_answer"

    class kind(TinyClient):  # noqa: N801
        def create(self, key: str, body: bytes, token: str) -> None:
            connection = http.client.HTTPConnection(self._host, timeout=self._timeout)
            with contextlib.closing(connection):
                connection.request("PUT", self._target(key), body, {"If-None-Match": "*"})
                reply = connection.getresponse()
                reply.read()
                if reply.status == 412:
                    raise KeyTakenError
                if reply.status != 200:
                    raise PermissionError(f"{key}: the service said {reply.status}")


class CallsWhatItCannotReachMissing(TinyLogStore):
    """`exists` of fsspec: any error is a no."""

    breaks: ClassVar[str] = "an_endpoint_that_is_down_is_an_error_in_bounded_time"

    def list_from(self, path: str) -> Iterator[FileStatus]:
        try:
            return super().list_from(path)
        except OSError as error:
            raise FileNotFoundError(path) from error


class CallsDeniedMissing(_OtherClient):
    breaks: ClassVar[str] = "credentials_that_expire_are_renewed_or_an_error"

    class kind(TinyClient):  # noqa: N801
        def get(self, key: str) -> bytes:
            try:
                return super().get(key)
            except PermissionError as error:
                raise FileNotFoundError(key) from error


class TellsItsConfInErrors(TinyLogStore):
    breaks: ClassVar[str] = "no_error_of_the_transport_shows_a_secret"

    def read(self, path: str) -> Iterator[str]:
        try:
            return super().read(path)
        except PermissionError as error:
            raise PermissionError(f"{path}: denied with {json.dumps(dict(self.conf))}") from error


# Not broken, though it is another kind of store: it never repeats what it can settle by a look.


class LooksBeforeItRepeats(TinyLogStore):
    """After a lost reply it looks first, and repeats only what is absent."""

    def client(self, url: str, bucket: str, timeout: float) -> ObjectClient:
        class Looking(TinyClient):
            def create(self, key: str, body: bytes, token: str) -> None:
                try:
                    super().create(key, body, token)
                except TryAgainError as error:
                    owner: Any = None
                    with contextlib.suppress(TryAgainError):
                        owner = self.owner(key)
                    if owner is None:
                        raise
                    if owner.token != token:
                        raise KeyTakenError from error

        return Looking(url, bucket, timeout)
