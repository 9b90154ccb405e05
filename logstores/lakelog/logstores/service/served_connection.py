"""One connection: who is there, and then one request after another."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

from lakelog.logstores.lines import encode_lines
from lakelog.logstores.service import frames
from lakelog.logstores.service.failures import failure_of
from lakelog.logstores.service.frames import (
    Fields,
    ProtocolError,
    packed,
    packed_entry,
    read_frame,
    write_frame,
)
from lakelog.logstores.service.stores import refuse_unsafe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import BinaryIO

    from lakelog.logstores.contract import LogStore
    from lakelog.logstores.service.stores import Stores

_LISTED_AT_A_TIME: Final = 1 << 16
"""Bytes."""
_BEFORE_ALL: Final = "\0"
"""How Delta says the start of a folder, as Hadoop's paths can't end with a slash."""


class Conversation:
    """What one client and the service say to each other, until one of them goes.

    Args:
        source: what the client says.
        out: what it hears.
        token: what it has to know.
        who: the service, as clients show it.
        stores: where requests go.
        at_work: entered for each request, so that the service knows who is idle.
    """

    def __init__(
        self,
        source: BinaryIO,
        out: BinaryIO,
        *,
        token: str,
        who: str,
        stores: Stores,
        at_work: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._source = source
        self._out = out
        self._token = token
        self._who = who
        self._stores = stores
        self._at_work = at_work
        self._settings: dict[str, str] = {}
        self._requests: dict[bytes, Callable[[Fields], None]] = {
            frames.WRITE: self._write,
            frames.READ: self._read,
            frames.LIST: self._list,
            frames.PARTIAL: self._partial,
            frames.DIGEST: self._digest,
        }

    def introduce(self) -> bool:
        """Learn who it is; false, after saying why, where the connection ends.

        Raises:
            EOFError, OSError: the connection is gone.
            ProtocolError: whoever it is does not speak the protocol.
        """
        kind, payload = read_frame(self._source)
        fields = Fields(payload)
        if kind != frames.HELLO or fields.text() != frames.MAGIC:
            raise ProtocolError("no greeting")
        version = fields.number()
        if version != frames.PROTOCOL_VERSION:
            # First, because nothing behind it need be where this version has it.
            self._fail(
                "version",
                f"the service ({self._who}) speaks version {frames.PROTOCOL_VERSION} of the "
                f"protocol, and the jar version {version}: take both from one lakelog",
            )
            return False
        if not hmac.compare_digest(fields.text().encode(), self._token.encode()):
            self._fail("token", "the token is not this service's")
            return False
        fields.text()  # who the client is, for whoever looks at the wire
        self._settings = fields.mapping()
        self._say(frames.OK, packed(frames.PROTOCOL_VERSION, self._who))
        return True

    def serve(self) -> None:
        """Answer requests until the client goes.

        Raises:
            EOFError, OSError, ClientGoneError: the connection is gone.
            ProtocolError: the client said what is no request.
        """
        while True:
            kind, payload = read_frame(self._source)
            answer = self._requests.get(kind)
            if answer is None:
                raise ProtocolError(f"no request is called {kind!r}")
            with self._at_work():
                answer(Fields(payload))

    def _write(self, fields: Fields) -> None:
        overwrite, path = fields.truth(), fields.text()
        content = _Content(self._source)
        try:
            store = self._store(path)
            if not overwrite:
                refuse_unsafe(store, path)
            store.write(path, content.lines(), overwrite=overwrite)
        except ClientGoneError:
            raise
        except _AbortedError:
            self._fail("aborted", "taken back by who was writing")
            return
        except Exception as error:  # noqa: BLE001, RUF100  # whatever a store raises is the answer
            failure = failure_of(error)
            content.skip()
            self._fail(*failure)
            return
        content.skip()
        self._say(frames.OK)

    def _read(self, fields: Fields) -> None:
        path = fields.text()
        self._stream(lambda: encode_lines(self._store(path).read(path)))

    def _list(self, fields: Fields) -> None:
        path = fields.text()
        self._stream(lambda: self._entries(path))

    def _entries(self, path: str) -> Iterator[bytes]:
        held, size = [], 0
        for each in self._store(path).list_from(path.removesuffix(_BEFORE_ALL)):
            held.append(
                packed_entry(each.name, each.length, each.modification_time, each.is_directory)
            )
            size += len(held[-1])
            if size >= _LISTED_AT_A_TIME:
                yield b"".join(held)
                held, size = [], 0
        yield b"".join(held)

    def _partial(self, fields: Fields) -> None:
        path = fields.text()
        self._answer(lambda: packed(self._store(path).is_partial_write_visible(path)))

    def _digest(self, fields: Fields) -> None:
        path = fields.text()

        def found() -> bytes:
            digest, length = hashlib.sha256(), 0
            for chunk in encode_lines(self._store(path).read(path)):
                digest.update(chunk)
                length += len(chunk)
            return packed(length, digest.digest())

        self._answer(found)

    def _store(self, path: str) -> LogStore:
        return self._stores.store_for(path, self._settings)

    def _answer(self, find: Callable[[], bytes]) -> None:
        try:
            found = find()
        except Exception as error:  # noqa: BLE001, RUF100
            self._fail(*failure_of(error))
        else:
            self._say(frames.OK, found)

    def _stream(self, begin: Callable[[], Iterator[bytes]]) -> None:
        """Send what comes, and what a store raises on the way; a client that goes stops it."""
        chunks: Iterator[bytes] | None = None
        while True:
            try:
                chunks = begin() if chunks is None else chunks
                chunk = next(chunks, None)
            except Exception as error:  # noqa: BLE001, RUF100
                self._fail(*failure_of(error))
                return
            if chunk is None:
                break
            if chunk:
                write_frame(self._out, frames.DATA, chunk)
        self._say(frames.END)

    def _fail(self, kind: str, text: str) -> None:
        # A text is for people: a long one is cut, so that it always fits into a frame.
        self._say(frames.FAIL, packed(kind, text[:10_000]))

    def _say(self, kind: bytes, payload: bytes = b"") -> None:
        write_frame(self._out, kind, payload)
        self._out.flush()


class ClientGoneError(Exception):
    """The client went, or broke off, before the end of what it was writing."""


class _AbortedError(Exception):
    """The client has taken back what it was writing, and waits until nothing of it is left."""


class _Content:
    """What a client sends to be written, as lines. Nothing is held but the line that is being read.

    A line is complete before the store sees it, and the store has seen no end before the client
    has said so: then no store has made the file visible.
    """

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._ended = False

    def lines(self) -> Iterator[str]:
        begun: list[bytes] = []
        for chunk in self._chunks():
            first, *others = chunk.split(b"\n")
            begun.append(first)
            for line in others:
                yield b"".join(begun).decode()
                begun = [line]
        if any(begun):
            yield b"".join(begun).decode()

    def skip(self) -> None:
        """Hear the rest of it, so that an answer is what comes next."""
        with contextlib.suppress(_AbortedError):
            for _ in self._chunks():
                pass

    def _chunks(self) -> Iterator[bytes]:
        while not self._ended:
            try:
                kind, payload = read_frame(self._source)
            except (EOFError, OSError, ProtocolError) as error:
                raise ClientGoneError(str(error)) from error
            self._ended = kind in (frames.END, frames.ABORT)
            if kind == frames.ABORT:
                raise _AbortedError
            if kind == frames.END:
                return
            if kind != frames.DATA:
                raise ClientGoneError(f"no content is called {kind!r}")
            yield payload
