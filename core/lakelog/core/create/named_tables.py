"""Renaming and dropping tables that have a name in a catalog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.arguments import read_arguments
from lakelog.core.catalogs.names import known_catalogs, table_name
from lakelog.core.catalogs.one_call import forget_loads
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError, TableExistsError, TableNotFoundError
from lakelog.logstores.locations import shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.catalogs.contract import Catalog
    from lakelog.core.catalogs.names import TableName


@read_arguments
def drop_table(
    name: str, *, if_exists: bool = False, conf: Mapping[str, str] | None = None
) -> bool:
    """Remove a table from its catalog, for good.

    What becomes of the files of a table that the catalog governs is the catalog's business; those
    of any other table stay.

    Args:
        name: the table, as `catalog.schema.table`; a table at a path is dropped with its folder.
        if_exists: whether it is fine that there is none.
        conf: the user's whole Spark conf, which says where the catalog is.

    Returns:
        Whether there was one.

    Raises:
        TableNotFoundError: the catalog has no such table.
        DeltaAnalysisError: it is no name in a catalog of the conf.
        CatalogError: the catalog refuses, or can't be reached, or did not say what it did.
    """
    found, catalog = _named(name, conf)
    try:
        catalog.drop_table(catalog.load(found))
    except TableNotFoundError:
        if not if_exists:
            raise
        return False
    return True


def rename_table(name: str, new_name: str, *, conf: Mapping[str, str] | None = None) -> None:
    """Give a table another name in its schema. Logs that are open by the old one are at an end.

    Args:
        name: the table, as `catalog.schema.table`.
        new_name: likewise; of the same schema.
        conf: the user's whole Spark conf, which says where the catalog is.

    Raises:
        TableNotFoundError: the catalog has no such table.
        TableExistsError: it has another one of the new name.
        DeltaAnalysisError: no names in a catalog of the conf, or of two schemas.
        CatalogError: the catalog refuses, or can't be reached, or did not say what it did.
    """
    from lakelog.core.catalogs.contract import NameTakenError

    found, catalog = _named(name, conf)
    wanted, _ = _named(new_name, conf)
    if found[:2] != wanted[:2]:
        raise DeltaAnalysisError(
            f"{found} can't become {wanted}: a table stays in its catalog and its schema.",
            table=str(found),
        )
    try:
        catalog.rename_table(catalog.load(found), wanted)
    except NameTakenError as exc:
        raise TableExistsError(f"{found} can't become {wanted}: {exc}", table=str(wanted)) from exc


def _named(text: str, conf: Mapping[str, str] | None) -> tuple[TableName, Catalog]:
    from lakelog.core.catalogs.resolution import catalog_for

    settings = DeltaConf.from_mapping(conf)
    found = table_name(text, settings.derived(known_catalogs))
    if found is None:
        raise DeltaAnalysisError(
            f"{shown(str(text))} is no name in a catalog: catalog.schema.table, with the catalog "
            "in the conf: spark.sql.catalog.<catalog>.uri. A table at a path is moved or deleted "
            "with its folder.",
        )
    forget_loads()  # what is asked for after this is another table, or none
    return found, catalog_for(found.catalog, settings)
