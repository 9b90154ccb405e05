r"""Text lines to bytes and back, the way the contract wants it.

Every store needs these two, and Python's own helpers are wrong for them: `str.splitlines` and
text files also break at `\r`, `\x0b`, `\x85` and U+2028, all of which are legal inside JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CHUNK_CHARS = 1 << 20
"""How much text `encode_lines` collects before it yields."""


def encode_lines(lines: Iterable[str]) -> Iterator[bytes]:
    r"""Yield the UTF-8 bytes of the lines, a `\n` after each, in chunks of about a megabyte.

    Nothing is taken from `lines` before the first `next()`, and what it raises passes through.

    Raises:
        UnicodeEncodeError: a line holds a lone surrogate.
    """
    held: list[str] = []
    chars = 0
    for line in lines:
        held.append(line)
        chars += len(line) + 1
        if chars >= CHUNK_CHARS:
            held.append("")
            yield "\n".join(held).encode()
            held.clear()
            chars = 0
    if held:
        held.append("")
        yield "\n".join(held).encode()


def decode_lines(raw: Iterable[bytes]) -> Iterator[str]:
    r"""Yield text without line ends from byte lines as a binary file yields them.

    Args:
        raw: pieces that end at `\n`, the last one perhaps not.

    Raises:
        UnicodeDecodeError: a line is not UTF-8.
    """
    for line in raw:
        if line.endswith(b"\r\n"):
            yield line[:-2].decode()
        elif line.endswith(b"\n"):
            yield line[:-1].decode()
        else:
            yield line.decode()
