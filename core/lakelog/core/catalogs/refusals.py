"""What is refused of tables that a catalog governs: paths, and work that the catalog forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core.errors import UnsupportedFeatureError
from lakelog.core.features.protocol import supported_features

if TYPE_CHECKING:
    from lakelog.core.actions import Metadata, Protocol
    from lakelog.core.catalogs.governed_store import GovernedStore
    from lakelog.logstores import LogStore

FEATURE: Final = "catalogManaged"
TABLE_ID: Final = "io.unitycatalog.tableId"
"""The property by which a table says what Unity Catalog calls it."""


def governed(store: LogStore) -> GovernedStore | None:
    """The store as that of a governed table; None for a table that lies at a path."""
    # By attribute: where no catalog is used, nothing of theirs is imported.
    found: GovernedStore | None = getattr(store, "as_governed", None)
    return found


def is_governed(protocol: Protocol) -> bool:
    """Whether a protocol says that a catalog decides what the versions are."""
    return FEATURE in supported_features(protocol)


def refuse_path(store: LogStore, protocol: Protocol, metadata: Metadata, table: str) -> None:
    """Refuse to go by a path to a table that a catalog governs.

    Its folder says neither which versions there are nor which files they are.

    Raises:
        UnsupportedFeatureError: it is such a table, and was not opened by its name.
    """
    if not is_governed(protocol) or governed(store) is not None:
        return
    known = metadata.configuration.get(TABLE_ID)
    which = f" It is {metadata.name!r} there." if metadata.name else ""
    which += f" Unity Catalog knows it by the id {known}." if known else ""
    raise UnsupportedFeatureError(
        "[DELTA_PATH_BASED_ACCESS_TO_CATALOG_MANAGED_TABLE_BLOCKED] Path-based access is not "
        f"allowed for Catalog-Managed table: {table}. A catalog decides what its versions are, and "
        f"the folder may hold more or less than they.{which} Open it by its name, "
        "catalog.schema.table, with the catalog in the conf: spark.sql.catalog.<catalog>.uri. If "
        "it was opened so, that catalog does not say that it governs the table: ask who keeps it.",
        table=table,
        features=[FEATURE],
        access="read",
    )


def refuse_change_of_hands(
    old: Protocol | None, new: Protocol, table: str, *, by_name: bool = False
) -> None:
    """Refuse a commit after which a catalog begins or ceases to govern a table.

    Args:
        old: the table's protocol; None where it is being made.
        new: the one that it will have.
        table: its URI.
        by_name: whether a catalog makes the table.

    Raises:
        UnsupportedFeatureError: it is one.
    """
    before = by_name if old is None else is_governed(old)
    if before == is_governed(new):
        return
    what = "taken out of its catalog's hands" if before else "put into a catalog's hands"
    raise UnsupportedFeatureError(
        f"[DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_CREATION] The table {table} can't be {what} by "
        "a commit: only a catalog creates Catalog-Managed tables. Create one there, and copy the "
        "rows.",
        table=table,
        features=[FEATURE],
        access="write",
    )


def refuse_maintenance(store: LogStore, table: str, operation: str) -> None:
    """Refuse what a table's catalog does not let clients do.

    Args:
        store: of the table's log.
        table: its URI.
        operation: as SQL calls it.

    Raises:
        UnsupportedFeatureError: the catalog forbids it.
    """
    if may_maintain(store):
        return
    raise UnsupportedFeatureError(
        f"[DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION] {operation} is blocked by the "
        f"catalog for Catalog-Managed tables: {table}. The catalog does it by itself, or not at "
        "all.",
        table=table,
        features=[FEATURE],
        access="write",
    )


def may_maintain(store: LogStore) -> bool:
    """Whether clients may put files together and remove what is old."""
    found = governed(store)
    return found is None or found.catalog.capabilities.allows_maintenance
