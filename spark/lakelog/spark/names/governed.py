"""Tables of catalogs that lakelog asks by itself, such as Unity Catalog: their names, in a session.

Such a table is opened by its name wherever another one is by its path: `DeltaLog.for_table` takes
both. So what stands for the folder of a table in this package is, for one of these, its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine.tables import (
    CatalogConf,
    TableName,
    governed,
    known_catalogs,
    normalize_table_uri,
    table_name,
)
from lakelog.spark.names.catalog_entries import Entry
from lakelog.spark.names.identifiers import SESSION_CATALOG
from lakelog.spark.session.session import set_confs

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from lakelog.core import DeltaLog, Snapshot

_PARTS = 3


def governed_entry(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """The entry of a name whose first part is a catalog of the session's conf; `None` for others.

    The catalog is not asked: whoever opens the table learns whether there is one.

    Args:
        spark: a session, classic or Connect.
        parts: of the name, which has three.
    """
    if len(parts) != _PARTS or parts[0].lower() == SESSION_CATALOG:
        return None
    name = TableName(*parts)
    if name.catalog not in known_catalogs(set_confs(spark)):
        return None
    return Entry(tuple(name), "table", "delta", str(name), managed=True)


def lasting(target: str | os.PathLike[str], conf: Mapping[str, str]) -> str:
    """What opens a table from any process: its name as it is, or its path made absolute.

    Args:
        target: a name in a catalog of the conf, or a path.
        conf: the session's.

    Raises:
        ValueError: a path that can't be one; see `normalize_table_uri`.
    """
    name = table_name(target, known_catalogs(conf))
    return normalize_table_uri(target, conf) if name is None else str(name)


def keys_of_name(target: str, conf: Mapping[str, str]) -> list[str]:
    """The keys by which another process asks the catalog of a name; none for a path.

    Args:
        target: a name in a catalog of the conf, or a path.
        conf: the session's.
    """
    name = table_name(target, known_catalogs(conf))
    return [] if name is None else CatalogConf(name.catalog, conf).keys


def address_of(table: DeltaLog | Snapshot) -> str:
    """What opens a table again: its name, where a catalog governs it; else its URI."""
    store = governed(table.store)
    return table.table if store is None else str(store.table.name)
