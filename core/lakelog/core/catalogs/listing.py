"""The schemas of a catalog; its tables, or those of one of its schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.catalogs.names import TableName, known_catalogs, name_parts
from lakelog.core.conf import DeltaConf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def schemas_in(catalog: str, conf: Mapping[str, str]) -> Iterator[str]:
    """The names of a catalog's schemas.

    Args:
        catalog: its name; one that the conf knows.
        conf: the user's whole Spark conf.

    Raises:
        CatalogError: it lists none, or can't be reached, or refuses.
    """
    from lakelog.core.catalogs.resolution import catalog_for

    return catalog_for(catalog, DeltaConf.from_mapping(conf)).schema_names()


def tables_in(catalog: str, schema: str, conf: Mapping[str, str]) -> Iterator[TableName]:
    """The tables of a schema.

    Args:
        catalog: its name; one that the conf knows.
        schema: its name within the catalog.
        conf: the user's whole Spark conf.

    Raises:
        TableNotFoundError: there is no such schema.
        CatalogError: the catalog lists none, or can't be reached, or refuses.
    """
    from lakelog.core.catalogs.resolution import catalog_for

    return catalog_for(catalog, DeltaConf.from_mapping(conf)).table_names(schema)


def listed_by(text: str, conf: Mapping[str, str]) -> Callable[[], Iterator[TableName]] | None:
    """What lists the tables that a text names: `catalog`, `catalog.schema`, or one of them.

    Nothing is asked before it is called, which raises `TableNotFoundError` or `CatalogError`.

    Args:
        text: what a user gave as a place of tables.
        conf: the user's whole Spark conf, which says where catalogs are.

    Returns:
        `None` where it is a path.
    """
    settings = DeltaConf.from_mapping(conf)
    parts = name_parts(text)
    if parts is None or parts[0] not in settings.derived(known_catalogs):
        return None
    catalog, *rest = parts

    def names() -> Iterator[TableName]:
        from lakelog.core.catalogs.resolution import catalog_for

        found = catalog_for(catalog, settings)
        if len(rest) == 2:
            yield found.load(TableName(catalog, *rest)).name
        else:
            yield from found.table_names(*rest)

    return names
