"""The entries of a listing in the order of their names, while its pages still come.

A service lists keys, and a folder `a` has the key `a/`: it comes after `a-` and `a.b`, though its
name is less than theirs. So some entries of a page wait for the next one, and most do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lakelog.logstores.object_store.client import ObjectEntry


def in_name_order(
    pages: Iterable[list[ObjectEntry]], start: str, *, lists_in_order: bool
) -> Iterator[ObjectEntry]:
    """The entries with a name, each name once, ascending by code points.

    An object and a folder may share a name; the object is what can be read.

    Args:
        pages: of a listing of one folder.
        start: names below it are left out.
        lists_in_order: whether the pages ascend by key. If not, all of them are waited for.

    Raises:
        OSError: they do not ascend, against what was said of them.
    """
    held: dict[str, ObjectEntry] = {}
    passed: str | None = None
    for page in pages:
        # A server that orders by UTF-16 agrees with code points as long as all is ASCII.
        lists_in_order = lists_in_order and all(entry.name.isascii() for entry in page)
        for entry in page:
            name = entry.name
            if passed is not None and name <= passed:
                if name == passed:  # the folder beside an object, or one object twice
                    continue
                raise OSError(
                    f"the storage listed {name!r} after {passed!r}: its listings are not in the "
                    "order of names, which its client declares (lists_in_order)"
                )
            if name and name >= start and not (entry.is_prefix and name in held):
                held[name] = entry
        if lists_in_order and page:
            floor = _floor(page)
            for name in sorted(name for name in held if floor is None or name < floor):
                passed = name
                yield held.pop(name)
    for name in sorted(held):
        yield held[name]


def _floor(page: list[ObjectEntry]) -> str | None:
    """The least name that a later page may have; `None` where that is above all of this page.

    What comes later has a greater key than the last one here. Its name can be less only if it is
    a folder whose name the last key begins with, followed by a character that is below a slash.
    """
    last = max(f"{entry.name}/" if entry.is_prefix else entry.name for entry in page)
    cut = next((at for at, char in enumerate(last) if at and char < "/"), None)
    return None if cut is None else last[:cut]
