"""Lines to bytes and back."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.logstores.lines import CHUNK_CHARS, decode_lines, encode_lines

LINE = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))


@given(st.lists(LINE.filter(lambda line: not line.endswith("\r"))))
def test_lines_come_back_as_they_were(lines: list[str]) -> None:
    data = b"".join(encode_lines(lines))
    assert data == "".join(line + "\n" for line in lines).encode()
    assert list(decode_lines(io.BytesIO(data))) == lines


def test_large_content_is_given_in_pieces() -> None:
    pieces = list(encode_lines(["x" * (CHUNK_CHARS // 2)] * 6))
    assert len(pieces) == 3
    assert sum(map(len, pieces)) == 6 * (CHUNK_CHARS // 2 + 1)


def test_nothing_is_taken_before_the_first_piece_is_asked_for() -> None:
    lines = iter(["a"])
    pieces = encode_lines(lines)
    assert next(lines) == "a"
    assert list(pieces) == []


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        list(encode_lines(["\ud800"]))


def test_bytes_that_are_no_utf8_are_refused() -> None:
    decoded = decode_lines([b"fine\n", b"\xff\n"])
    assert next(decoded) == "fine"
    with pytest.raises(UnicodeDecodeError):
        next(decoded)
