"""What the service and its clients say to each other: frames, and the fields in them.

A frame is four bytes of length, one byte that says what it is, and the rest. Numbers are
big-endian; a text is four bytes of length and UTF-8.

    client                                   service
    HELLO  magic, version, token, who, conf  OK version, who
    WRITE  overwrite, path; DATA…; END       OK
                            DATA…; ABORT     FAIL            when nothing of it is left
    READ   path                              DATA…; END
    LIST   path                              DATA…; END      (name, length, time, is folder)…
    PARTIAL path                             OK is visible
    DIGEST path                              OK length, SHA-256

A request is answered before the next one. Instead of any answer, and in the midst of DATA, comes
FAIL with a kind and a text. A client that closes before its END has written nothing: the service
begins no file under its final name before it has the END. So only a connection that breaks between
END and OK leaves a doubt, and DIGEST is what settles it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

PROTOCOL_VERSION: Final = 1
"""Raised with every change that the other end would not understand."""
MAGIC: Final = "lakelog"
MOST_PAYLOAD: Final = 1 << 20
"""Bytes of a frame beside its head: what one end has to hold of the other's words at a time."""

HELLO, WRITE, READ, LIST, PARTIAL, DIGEST = b"H", b"W", b"R", b"L", b"P", b"G"
DATA, END, ABORT, OK, FAIL = b"D", b"E", b"A", b"K", b"X"

_HEAD: Final = struct.Struct(">Ic")
_U32: Final = struct.Struct(">I")
_I64: Final = struct.Struct(">q")
_ENTRY: Final = struct.Struct(">qq?")


class ProtocolError(Exception):
    """The other end sent what no client of this protocol sends."""


def write_frame(out: BinaryIO, kind: bytes, payload: bytes = b"") -> None:
    """Put a frame into a buffered stream; DATA may be longer than one frame, and becomes several.

    Args:
        out: who calls has to flush it.
        kind: one of the kinds above.
        payload: what `packed` gives, or the content's bytes.
    """
    for start in range(0, max(len(payload), 1), MOST_PAYLOAD):
        part = payload[start : start + MOST_PAYLOAD]
        out.write(_HEAD.pack(len(part), kind))
        out.write(part)


def read_frame(source: BinaryIO) -> tuple[bytes, bytes]:
    """The next frame, its kind and its payload.

    Raises:
        EOFError: the other end has closed the connection, or broken it off.
        ProtocolError: the head is none.
    """
    length, kind = _HEAD.unpack(_exactly(source, _HEAD.size))
    if length > MOST_PAYLOAD:
        raise ProtocolError(f"a frame of {length} bytes, where {MOST_PAYLOAD} is the most")
    return kind, _exactly(source, length)


def _exactly(source: BinaryIO, length: int) -> bytes:
    data = source.read(length)
    if len(data) < length:
        raise EOFError("the connection ended")
    return data


def packed(*fields: str | bool | int | bytes | Mapping[str, str]) -> bytes:
    """The bytes of some fields, each by its type: texts, truths, numbers, raw bytes, mappings."""
    return b"".join(map(_packed, fields))


def _packed(field: str | bool | int | bytes | Mapping[str, str]) -> bytes:
    match field:
        case bool():
            return b"\1" if field else b"\0"
        case int():
            return _I64.pack(field)
        case bytes():
            return field
        case str():
            data = field.encode()
            return _U32.pack(len(data)) + data
    pairs = [part for pair in field.items() for part in pair]
    return _U32.pack(len(field)) + packed(*pairs)


def packed_entry(name: str, length: int, time: int, is_folder: bool) -> bytes:
    """What `packed` gives for these four; of a long listing each microsecond counts."""
    data = name.encode()
    return _U32.pack(len(data)) + data + _ENTRY.pack(length, time, is_folder)


class Fields:
    """Reads the fields of a payload, one after another."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._at = 0

    def text(self) -> str:
        """The next field, a text.

        Raises:
            ProtocolError: there is none.
        """
        try:
            return self._take(self._count()).decode()
        except UnicodeDecodeError:
            raise ProtocolError("a text that is not UTF-8") from None

    def truth(self) -> bool:
        """The next field, a truth."""
        return self._take(1) != b"\0"

    def number(self) -> int:
        """The next field, a number."""
        return int(_I64.unpack(self._take(_I64.size))[0])

    def rest(self) -> bytes:
        """All that is left."""
        return self._take(len(self._payload) - self._at)

    def mapping(self) -> dict[str, str]:
        """The next field, a mapping."""
        return {self.text(): self.text() for _ in range(self._count())}

    def more(self) -> bool:
        """Whether there is another field."""
        return self._at < len(self._payload)

    def _count(self) -> int:
        return int(_U32.unpack(self._take(_U32.size))[0])

    def _take(self, length: int) -> bytes:
        part = self._payload[self._at : self._at + length]
        if len(part) < length:
            raise ProtocolError("a frame that ends within a field")
        self._at += length
        return part
