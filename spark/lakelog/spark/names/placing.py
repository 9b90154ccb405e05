"""Where a table is to be made that a name is given to, or that has the name already."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.core import DeltaLog
from lakelog.core.engine.tables import governed
from lakelog.core.errors import DeltaAnalysisError, TableExistsError, TableNotFoundError
from lakelog.spark.names.identifiers import parse, path_in
from lakelog.spark.names.lookup import entry_elsewhere, find, qualified
from lakelog.spark.names.new_entries import claimed
from lakelog.spark.names.resolve import not_ours
from lakelog.spark.session.session import session_conf

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from lakelog.core.engine.tables import CreateMode
    from lakelog.core.schema import StructType
    from lakelog.spark.names.catalog_entries import Entry


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a table that is to be made or replaced."""

    location: str
    """Or its name, by which a catalog that is not Spark's own opens it."""
    exists: bool
    """Whether there is a table now."""
    managed: bool = False


@contextlib.contextmanager
def place_for(
    spark: SparkSession,
    name: str | Sequence[str],
    schema: StructType,
    mode: CreateMode,
    location: str | None = None,
    comment: str | None = None,
) -> Iterator[Place]:
    """The folder for a table; a new name is taken first, and goes again if no table is made.

    A name whose table was never made, by a process that ended early, is used as if it were new.

    Args:
        spark: the session.
        name: one of Spark's own catalog, or ``delta.`/its/path` ``; or its parts.
        schema: what catalogs show as columns.
        mode: `create` refuses a name that has a table, `replace` one that has none.
        location: the folder of a table outside of its database's.
        comment: a description.

    Raises:
        TableExistsError: the name has a table, or a view.
        TableNotFoundError: there is nothing to replace.
        DeltaAnalysisError: the name is one of something that is not a Delta table, or of one in
            another folder; and see `create_entry`.
    """
    parts = parse(name) if isinstance(name, str) else tuple(name)
    text = ".".join(parts)
    path = path_in(parts)
    if path is not None:
        check_location(spark, text, path, location)
        yield Place(path, exists(spark, path))
        return
    entry = entry_for(spark, parts)
    if entry is not None:
        place = Place(entry.location or "", exists(spark, entry.location or ""), entry.managed)
        if mode == "create" and place.exists:
            raise TableExistsError(
                f"[DELTA_TABLE_ALREADY_EXISTS] Table {text} already exists: choose another name, "
                "or say what to do with the table (mode('append') or mode('overwrite'), "
                "createOrReplace)",
                table=text,
            )
        if location is not None and entry.is_governed:
            raise DeltaAnalysisError(
                f"[DELTA_TABLE_LOCATION_MISMATCH] {text} can't be at {location}: the catalog "
                f"{entry.parts[0]} decides where its tables are. Leave the location out",
                table=text,
                location=location,
            )
        check_location(spark, text, place.location, location)
        if mode == "replace" and not place.exists:
            raise nothing_to_replace(text)
        yield place
        return
    if mode == "replace":
        raise nothing_to_replace(text)
    with claimed(spark, parts, schema, location, comment) as made:
        folder = made.location or ""
        yield Place(folder, location is not None and exists(spark, folder), made.managed)


def entry_for(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """The Delta table that has a name now; `None` where the name is free.

    A temporary view of the name is passed by: tables are made beside it.

    Raises:
        DeltaAnalysisError: something else has the name, or it is one of another catalog.
    """
    governed = entry_elsewhere(spark, parts)
    if governed is not None:
        return governed
    whole = qualified(spark, parts)
    if whole is None:
        raise not_ours(parts)
    entry = find(spark, whole, again=True)
    if entry is None or entry.is_delta:
        return entry
    what = entry.kind if entry.kind != "table" else f"table of the format {entry.provider}"
    raise DeltaAnalysisError(
        f"[DELTA_MISSING_DELTA_TABLE] {entry.text} is a {what}, not a Delta table: choose another "
        "name, or drop it first",
        table=entry.text,
    )


def is_taken(spark: SparkSession, parts: Sequence[str]) -> bool:
    """Whether the catalog has a table or a view of a name, of whatever format.

    A temporary view of the name is passed by: tables are made beside it.

    Raises:
        DeltaAnalysisError: it is a name of another catalog.
    """
    governed = entry_elsewhere(spark, parts)
    if governed is not None:
        return exists(spark, governed.location or "")
    whole = qualified(spark, parts)
    if whole is None:
        raise not_ours(parts)
    return find(spark, whole, again=True) is not None


def check_location(spark: SparkSession, text: str, there: str, location: str | None) -> None:
    """Refuse a location that is not the one of the table.

    Raises:
        DeltaAnalysisError: it is another folder.
    """
    if location is None:
        return
    conf = session_conf(spark)
    if DeltaLog.for_table(location, conf).table != DeltaLog.for_table(there, conf).table:
        raise DeltaAnalysisError(
            f"[DELTA_TABLE_LOCATION_MISMATCH] The location of the existing table {text} is "
            f"{there}. It doesn't match the specified location {location}: leave the location out",
            table=text,
            location=there,
        )


def nothing_to_replace(text: str) -> TableNotFoundError:
    """The error for replacing a table where there is none."""
    return TableNotFoundError(
        f"[DELTA_CANNOT_REPLACE_MISSING_TABLE] Table {text} cannot be replaced as it does not "
        "exist: the name cannot be found in the catalog. Use createOrReplace to make it",
        table=text,
    )


def exists(spark: SparkSession, location: str) -> bool:
    """Whether there is a table.

    Args:
        spark: the session.
        location: its folder, or its name where a catalog governs it.
    """
    try:
        log = DeltaLog.for_table(location, session_conf(spark))
        return governed(log.store) is not None or log.table_exists()
    except TableNotFoundError:
        return False  # a name that its catalog does not have
