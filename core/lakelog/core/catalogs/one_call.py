"""What a catalog has said of a table, for as long as one call of a user's takes.

A statement opens its table by name more than once: to see whether it is there, for its columns, to
write. What was said since the call began is as new as the call, so it is asked for once. What a
log sees afterwards, such as who has won a version, is asked anew.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.core.catalogs.contract import Catalog, CatalogTable
    from lakelog.core.catalogs.names import TableName
    from lakelog.core.clock import Clock

_SECONDS: Final = 5.0
"""How old it may be: a statement may take hours."""
_loads: ContextVar[dict[tuple[Catalog, TableName], tuple[CatalogTable, float]] | None] = ContextVar(
    "lakelog-loads", default=None
)


@contextmanager
def one_call() -> Iterator[None]:
    """A call of a user's, or a part of one, in this thread."""
    if _loads.get() is not None:
        yield
        return
    token = _loads.set({})
    try:
        yield
    finally:
        _loads.reset(token)


def loaded(catalog: Catalog, name: TableName, clock: Clock) -> CatalogTable:
    """The table, as the catalog says or has said in this call; see `Catalog.load`.

    Args:
        catalog: that has it.
        name: of the table.
        clock: says how old an answer is.
    """
    found = said(catalog, name, clock)
    if found is None:
        began = clock.monotonic()
        found = catalog.load(name)
        if (known := _loads.get()) is not None:
            known[catalog, name] = found, began
    return found


def said(catalog: Catalog, name: TableName, clock: Clock) -> CatalogTable | None:
    """What `loaded` was told in this call; None where it has to ask."""
    found = (_loads.get() or {}).get((catalog, name))
    return None if found is None or clock.monotonic() - found[1] > _SECONDS else found[0]


def forget_loads() -> None:
    """Ask again: something was changed."""
    if (known := _loads.get()) is not None:
        known.clear()
