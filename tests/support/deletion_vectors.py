"""Deletion vectors written by hand: the bytes of files, and descriptors for the log."""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import TYPE_CHECKING, Any

from pyroaring import BitMap, BitMap64

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def bitmap(rows: Iterable[int], *, optimized: bool = False) -> bytes:
    """The rows as Delta stores them: the portable form behind its magic number."""
    found = BitMap64(rows)
    if optimized:
        found.run_optimize()
    return struct.pack("<i", 1681511377) + bytes(found.serialize())


def native_bitmap(rows: Iterable[int]) -> bytes:
    """The older form, of rows below 2**32: a count of bitmaps, and each behind its length."""
    one = bytes(BitMap(rows).serialize())
    return struct.pack("<iii", 1681511376, 1, len(one)) + one


def z85(data: bytes) -> str:
    """Z85 of the bytes and of zeros up to a multiple of four."""
    text = ""
    for start in range(0, len(data), 4):
        value = int.from_bytes(data[start : start + 4].ljust(4, b"\0"), "big")
        text += "".join(_ALPHABET[value // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text


def inline(rows: Iterable[int]) -> dict[str, Any]:
    """A descriptor that holds its vector."""
    wanted = set(rows)
    data = bitmap(wanted)
    return {
        "storageType": "i",
        "pathOrInlineDv": z85(data),
        "sizeInBytes": len(data),
        "cardinality": len(wanted),
    }


def stored(
    table: Path, *vectors: Iterable[int], prefix: str = "", absolute: bool = False
) -> list[dict[str, Any]]:
    """Write one file with some vectors, and give a descriptor for each."""
    name = uuid.uuid4()
    path = table / prefix / f"deletion_vector_{name}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    content, found = b"\x01", []
    for each in vectors:
        wanted = set(each)
        data = bitmap(wanted)
        found.append(
            {
                "storageType": "p" if absolute else "u",
                "pathOrInlineDv": path.as_uri() if absolute else prefix + z85(name.bytes),
                "offset": len(content),
                "sizeInBytes": len(data),
                "cardinality": len(wanted),
            }
        )
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    path.write_bytes(content)
    return found
