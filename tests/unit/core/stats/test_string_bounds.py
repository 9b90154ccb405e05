from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.stats.collect import truncate_max, truncate_min

LAST = "\U0010ffff"
TEXTS = st.text(st.sampled_from(["a", "b", "\x7f", "é", "\uffff", "😀", LAST]), max_size=12)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


@given(TEXTS, st.integers(-1, 8))
def test_the_minimum_bounds_and_is_short(text: str, length: int) -> None:
    bound = truncate_min(text, length)
    if bound is None:
        assert length <= 0
    else:
        assert bound <= text
        assert bound == text or units(bound) <= length


@given(TEXTS, TEXTS, st.integers(-1, 8))
def test_the_maximum_bounds_every_text_not_above_the_original(
    text: str, other: str, length: int
) -> None:
    bound = truncate_max(text, length)
    if bound is not None:
        assert bound >= text
        if other <= text:
            assert other <= bound
        assert bound == text or units(bound) <= 2 * length + 2


@pytest.mark.parametrize(
    ("text", "length", "wanted"),
    [
        ("abcd", 4, "abcd"),
        ("abcd", 2, "ab\x7f"),
        ("ab\x7fd", 2, "ab" + LAST),
        ("abéd", 2, "ab" + LAST),
        ("a😀b", 2, "a" + LAST),
        ("a😀b", 3, "a😀\x7f"),
        (f"ab{LAST}c", 2, f"ab{LAST}\x7f"),
        (f"ab{LAST}{LAST}", 2, f"ab{LAST}{LAST}"),
        (f"ab{LAST}{LAST}c", 2, None),
        ("", 0, ""),
        ("a", 0, None),
        ("a", -1, None),
    ],
)
def test_the_tie_breaker_depends_on_what_was_dropped(
    text: str, length: int, wanted: str | None
) -> None:
    assert truncate_max(text, length) == wanted


def test_a_minimum_never_splits_a_surrogate_pair() -> None:
    assert truncate_min("a😀b", 2) == "a"
    assert truncate_min("a😀b", 3) == "a😀"
