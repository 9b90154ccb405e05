"""Whether a file holds the very lines that a writer gave to a store, without keeping them."""

from __future__ import annotations

import hashlib

__all__ = ["LineDigest", "digest_of_file"]


class LineDigest:
    """Takes lines one by one."""

    __slots__ = ("_hash",)

    def __init__(self) -> None:
        """No lines yet."""
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, line: str) -> None:
        """Take the next line, without its end."""
        # A lone surrogate is for the store to refuse.
        self._add(line.encode("utf-8", "surrogatepass"))

    def _add(self, line: bytes) -> None:
        self._hash.update(line + b"\n")

    @property
    def value(self) -> bytes:
        """What stands for the lines so far, and for no others."""
        return self._hash.digest()


def digest_of_file(data: bytes) -> bytes:
    """The digest of a file's lines, however they end; empty ones say nothing."""
    digest = LineDigest()
    for line in data.split(b"\n"):
        if line := line.rstrip(b"\r"):
            digest._add(line)
    return digest.value
