"""Malformed variants: every one that a change of bytes makes is refused, or still a variant."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from lakelog.core import DeltaLog, create_table, write_arrow
from lakelog.core.arrow.variant_checks import check_variants
from lakelog.core.arrow.variant_values import ARROW_VARIANT, variant_array
from lakelog.core.errors import DeltaAnalysisError
from support.variant_values import decoded

if TYPE_CHECKING:
    from pathlib import Path

METADATA = b"\x11\x03\x00\x01\x02\x04" + "abé".encode()
PLAIN = {
    "null": b"\x00",
    "true": b"\x04",
    "byte": b"\x0c\x07",
    "long": b"\x18" + bytes(8),
    "double": b"\x1c" + bytes(8),
    "decimal": b"\x20\x02\x0f\x00\x00\x00",
    "date": b"\x2c" + bytes(4),
    "short text": b"\x05x",
    "text": b"\x40\x02\x00\x00\x00\xc3\xa9",
    "binary": b"\x3c\x01\x00\x00\x00\xff",
    "uuid": b"\x50" + bytes(16),
    "array": b"\x03\x02\x00\x01\x03\x00\x0c\x07",
    "object": b"\x02\x02\x00\x02\x00\x01\x03\x00\x0c\x07",
    "nested": b"\x02\x01\x01\x00\x06\x03\x01\x00\x02\x05x",
}
MALFORMED: dict[str, tuple[bytes, bytes]] = {
    "no metadata": (b"", b"\x00"),
    "no value": (METADATA, b""),
    "unknown version": (b"\x12\x00\x00", b"\x00"),
    "metadata cut": (METADATA[:-1], b"\x00"),
    "metadata longer": (METADATA + b"x", b"\x00"),
    "names backwards": (b"\x11\x02\x00\x02\x01ab", b"\x00"),
    "a name twice": (b"\x11\x02\x00\x01\x02aa", b"\x00"),
    "a name that is no text": (b"\x11\x01\x00\x01\xff", b"\x00"),
    "unknown type": (METADATA, b"\xfc"),
    "text of no UTF-8": (METADATA, b"\x05\xff"),
    "decimal of ten digits": (METADATA, b"\x20\x0a\x0f\x00\x00\x00"),
    "more behind the value": (METADATA, b"\x00\x00"),
    "unknown field": (METADATA, b"\x02\x01\x03\x00\x01\x00"),
    "fields not in order": (METADATA, b"\x02\x02\x01\x00\x00\x01\x02\x00\x00"),
    "a field twice": (METADATA, b"\x02\x02\x00\x00\x00\x01\x02\x00\x00"),
    "element outside": (METADATA, b"\x03\x01\x05\x01\x00"),
    "many elements": (METADATA, b"\x13\xff\xff\xff\xff\x00"),
    **{f"{name} cut": (METADATA, value[:-1]) for name, value in PLAIN.items() if len(value) > 1},
}


def of(*pairs: tuple[bytes, bytes] | None) -> pa.Array:
    rows = [
        None if each is None else dict(zip(("metadata", "value"), each, strict=True))
        for each in pairs
    ]
    return pa.array(rows, ARROW_VARIANT)


def refused(pair: tuple[bytes, bytes]) -> bool:
    try:
        check_variants(of(pair))
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("name", PLAIN)
def test_variants_are_taken(name: str) -> None:
    check_variants(of((METADATA, PLAIN[name]), None))


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_one_is_refused_by_column_and_row(name: str, tmp_path: Path) -> None:
    good = (METADATA, PLAIN["object"])
    bad = of(good, None, MALFORMED[name])
    create_table(tmp_path, "v variant, s struct<l: array<variant>>")
    lists = pa.ListArray.from_arrays([0, 2, 3], bad)
    chunked = pa.chunked_array([of(good), bad])
    for data, column, row in (
        ({"v": chunked}, "v", 3),
        ({"s": pa.StructArray.from_arrays([lists], ["l"])}, "s.l.element", 2),
    ):
        with pytest.raises(
            DeltaAnalysisError, match=rf"{column}: value {row} .* not a variant"
        ) as caught:
            write_arrow(tmp_path, pa.table(data), mode="append")
        assert caught.value.fields == {"column": column, "row": row}
    assert DeltaLog.for_table(tmp_path).update().version == 0


def test_bytes_that_are_taken_are_read_whatever_was_changed_in_them() -> None:
    draw = random.Random(7)
    taken = 0
    for _ in range(3000):
        halves: list[Any] = [bytearray(METADATA), bytearray(draw.choice(list(PLAIN.values())))]
        for _ in range(draw.randint(1, 3)):
            half = draw.choice(halves)
            match draw.randrange(3):
                case 0 if half:
                    half[draw.randrange(len(half))] = draw.choice(
                        [0, 1, 2, 3, 127, 255, draw.randrange(256)]
                    )
                case 1 if half:
                    del half[draw.randrange(len(half))]
                case _:
                    half.insert(draw.randint(0, len(half)), draw.randrange(256))
        pair = (bytes(halves[0]), bytes(halves[1]))
        if not refused(pair):
            taken += 1
            decoded(*pair)
            variant_array(of(pair))
    assert 100 < taken < 2000
