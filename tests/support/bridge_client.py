"""A LogStore whose every call goes by the bridge: to the service, or to a JVM in front of it.

`ServedStore` speaks to whoever an endpoint file names. With the service's own file that is the
service; with the file of a `BridgeJvm` it is a Java main (`java/BridgeHarness.java`) that passes
each call to `io.lakelog.BridgeLogStore`, which asks the service.
"""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from lakelog.logstores import (
    AzureConditionalLogStore,
    Capabilities,
    CommitOutcomeUnknownError,
    FileStatus,
    LocalLogStore,
    LogStore,
    LogStoreError,
    S3ConditionalLogStore,
)
from lakelog.logstores.lines import decode_lines, encode_lines
from lakelog.logstores.service import frames
from lakelog.logstores.service.endpoint import Endpoint
from lakelog.logstores.service.frames import Fields, packed, read_frame, write_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    import pyarrow.fs

ENDPOINT = "tests.bridge.endpoint"
"""The key that names the endpoint file of whoever is spoken to."""
BEHIND = "lakelog.bridge.endpoint"
"""The same for a JVM: whom it is to speak to."""


class RefusalError(OSError):
    """Any failure that has no exception of its own; `kind` is what the other end calls it."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text


@contextlib.contextmanager
def connected(
    endpoint: Endpoint, settings: dict[str, str] | None = None
) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """A connection after the greeting: what is said, and what is heard."""
    if endpoint.unix:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.connect(endpoint.unix)
    else:
        link = socket.create_connection(("127.0.0.1", endpoint.port))
    with link, link.makefile("wb") as out, link.makefile("rb") as source:
        hello = (frames.MAGIC, endpoint.version, endpoint.token, "tests", settings or {})
        write_frame(out, frames.HELLO, packed(*hello))
        out.flush()
        answer(source, "the greeting")
        yield out, source


def answer(source: BinaryIO, path: str) -> Fields | None:
    """The next answer; `None` for the END of a stream.

    Raises:
        Exception: what the other end says that it failed by, as an exception of Python's.
    """
    kind, payload = read_frame(source)
    if kind == frames.FAIL:
        fields = Fields(payload)
        raise _exception(path, fields.text(), fields.text())
    assert kind in (frames.OK, frames.DATA, frames.END)
    return None if kind == frames.END else Fields(payload)


def _exception(path: str, kind: str, text: str) -> Exception:
    match kind:
        case "exists":
            return FileExistsError(17, text, path)
        case "missing":
            return FileNotFoundError(2, text, path)
        case "not-utf8":
            return UnicodeDecodeError("utf-8", b"", 0, 1, text)
        case "unknown":
            return CommitOutcomeUnknownError(path, text)
        case "refused":
            return LogStoreError(text)
        case "denied":
            return PermissionError(13, text, path)
        case _:
            return RefusalError(kind, text)


class ServedStore(LogStore):
    """Files on the local disk: the log through the protocol, data files past it."""

    kind: ClassVar[type[LogStore]] = LocalLogStore
    """The store that the service has behind it, which here says what it promises."""

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        super().__init__(conf)
        self._beside = self.kind(conf)

    def read(self, path: str) -> Iterator[str]:
        return decode_lines(_lines(self._stream(frames.READ, path)))

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        with self._connected() as (out, source):
            write_frame(out, frames.WRITE, packed(overwrite, path))
            try:
                for chunk in encode_lines(lines):
                    write_frame(out, frames.DATA, chunk)
            except Exception:
                write_frame(out, frames.ABORT)
                out.flush()
                with contextlib.suppress(RefusalError):
                    answer(source, path)
                raise
            write_frame(out, frames.END)
            out.flush()
            answer(source, path)

    def list_from(self, path: str) -> Iterator[FileStatus]:
        folder = path.rpartition("/")[0] + "/"
        start = path + "\0" if path.endswith("/") else path
        for part in self._stream(frames.LIST, start):
            fields = Fields(part)
            while fields.more():
                name, length, time = fields.text(), fields.number(), fields.number()
                yield FileStatus(folder + name, length, time, fields.truth())

    def is_partial_write_visible(self, path: str) -> bool:
        fields = self._ask(frames.PARTIAL, path)
        return fields.truth()

    @property
    def capabilities(self) -> Capabilities:
        return self._beside.capabilities

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        return self._beside.filesystem

    def filesystem_path(self, path: str) -> str:
        return self._beside.filesystem_path(path)

    def create_folder(self, path: str) -> None:
        self._beside.create_folder(path)

    def delete_files(self, paths: Sequence[str]) -> dict[str, Exception]:
        return self._beside.delete_files(paths)

    @contextlib.contextmanager
    def staged(self, path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
        with self._beside.staged(path) as draft:
            yield draft

    def _ask(self, request: bytes, path: str) -> Fields:
        with self._connected() as (out, source):
            write_frame(out, request, packed(path))
            out.flush()
            found = answer(source, path)
            assert found is not None
            return found

    def _stream(self, request: bytes, path: str) -> Iterator[bytes]:
        with self._connected() as (out, source):
            write_frame(out, request, packed(path))
            out.flush()
            while (found := answer(source, path)) is not None:
                yield found.rest()

    def _connected(self) -> contextlib.AbstractContextManager[tuple[BinaryIO, BinaryIO]]:
        return connected(Endpoint.read(Path(self.conf[ENDPOINT])), dict(self.conf))


class ServedS3Store(ServedStore):
    """The same on S3."""

    kind = S3ConditionalLogStore


class ServedAzureStore(ServedStore):
    """The same on Azure."""

    kind = AzureConditionalLogStore


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Byte lines as a binary file yields them."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if rest:
        yield rest
