"""Z85, in which deletion vectors are named and inline ones are written (PROTOCOL.md)."""

from __future__ import annotations

_ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"

_DIGITS = {character: value for value, character in enumerate(_ALPHABET)}


def z85_decoded(text: str) -> bytes:
    """The bytes of a string in Z85 (rfc.zeromq.org/spec/32): four for every five characters.

    Raises:
        ValueError: another length, a character beyond the alphabet, or a group above 32 bits.
    """
    if len(text) % 5:
        raise ValueError(f"the length of Z85 text must be a multiple of 5, and it is {len(text)}")
    out = bytearray()
    for start in range(0, len(text), 5):
        value = 0
        for character in text[start : start + 5]:
            if character not in _DIGITS:
                raise ValueError(f"{character!r} is not a Z85 character")
            value = 85 * value + _DIGITS[character]
        if value >> 32:
            raise ValueError(f"{text[start : start + 5]!r} does not fit 4 bytes")
        out += value.to_bytes(4, "big")
    return bytes(out)


def z85_encoded(data: bytes) -> str:
    """Five characters of Z85 for every four bytes; at the end, zeros stand in for missing ones."""
    padded = data.ljust(-(-len(data) // 4) * 4, b"\0")
    text = []
    for start in range(0, len(padded), 4):
        value = int.from_bytes(padded[start : start + 4], "big")
        text += [_ALPHABET[value // 85**power % 85] for power in (4, 3, 2, 1, 0)]
    return "".join(text)
