"""Listings are in the order of names, whatever the pages, and go no further than they are read."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.logstores.object_store.client import ObjectEntry
from lakelog.logstores.object_store.listing import in_name_order

if TYPE_CHECKING:
    from collections.abc import Iterator

# Below and above a slash, and above all of ASCII.
NAMES = st.text("!-.0aé", min_size=1, max_size=4)
FOLDERS = st.sets(st.tuples(NAMES, st.booleans()), max_size=30)


def entry(name: str, is_folder: bool = False) -> ObjectEntry:
    return ObjectEntry(name, 0, 0, is_folder)


def key(pair: tuple[str, bool]) -> str:
    return f"{pair[0]}/" if pair[1] else pair[0]


@given(FOLDERS, st.integers(1, 5), NAMES | st.just(""), st.booleans())
def test_pages_by_key_become_names_in_order(
    folder: set[tuple[str, bool]], size: int, start: str, declared: bool
) -> None:
    by_key = [entry(*pair) for pair in sorted(folder, key=key)]
    pages = [by_key[at : at + size] for at in range(0, len(by_key), size)]
    pages = [p for page in pages for p in ([], page)]
    found = list(in_name_order(pages, start, lists_in_order=declared))
    objects = {name for name, is_folder in folder if not is_folder}
    assert [each.name for each in found] == sorted({n for n, _ in folder if n >= start})
    assert all(each.is_prefix == (each.name not in objects) for each in found)


@given(FOLDERS, st.randoms())
def test_pages_in_no_order_are_sorted(folder: set[tuple[str, bool]], random: object) -> None:
    shuffled = [entry(*pair) for pair in folder]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    pages = [[each] for each in shuffled]
    found = in_name_order(pages, "", lists_in_order=False)
    assert [each.name for each in found] == sorted({name for name, _ in folder})


def counted(names: list[str], size: int, asked: list[int]) -> Iterator[list[ObjectEntry]]:
    for at in range(0, len(names), size):
        asked.append(at)
        yield [entry(name) for name in names[at : at + size]]


def test_the_first_entry_needs_one_page_and_the_next_ones_theirs() -> None:
    log = [f"{n:020d}.{kind}" for n in range(50_000) for kind in ("crc", "json")]
    asked: list[int] = []
    found = in_name_order(counted(log, 1000, asked), "", lists_in_order=True)
    assert next(found).name == log[0]
    assert asked == [0]
    assert [each.name for each in itertools.islice(found, 1500)] == log[1:1501]
    assert asked == [0, 1000]
    assert [each.name for each in found] == log[1501:]


def test_a_folder_that_comes_late_is_waited_for() -> None:
    asked: list[int] = []

    def pages() -> Iterator[list[ObjectEntry]]:
        for at, page in enumerate(([entry("A"), entry("a-b")], [entry("a", True), entry("b")])):
            asked.append(at)
            yield page

    found = in_name_order(pages(), "", lists_in_order=True)
    assert next(found).name == "A"
    assert asked == [0]
    assert [each.name for each in found] == ["a", "a-b", "b"]


def test_storage_that_lists_against_its_word_is_not_followed() -> None:
    found = in_name_order([[entry("b")], [entry("a")]], "", lists_in_order=True)
    assert next(found).name == "b"
    with pytest.raises(OSError, match="'a' after 'b'"):
        next(found)
