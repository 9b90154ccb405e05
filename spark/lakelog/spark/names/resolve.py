"""`resolve`: the Delta table that a name must mean, or what it means instead."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, TypeVar

from pyspark.errors import AnalysisException

from lakelog.core.engine.tables import known_catalogs
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError
from lakelog.spark.names.identifiers import SESSION_CATALOG, parse, path_in, quoted_name
from lakelog.spark.names.lookup import find, qualified
from lakelog.spark.names.plain import plain_sql
from lakelog.spark.session.session import set_confs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from lakelog.spark.names.catalog_entries import Entry

_T = TypeVar("_T")


def resolve(spark: SparkSession, name: str | Sequence[str], *, again: bool = False) -> Entry:
    """The entry of a Delta table.

    Args:
        spark: a session, classic or Connect.
        name: as Spark reads it, or its parts; not a path.
        again: whether to ask the catalog even if the answer is known.

    Raises:
        TableNotFoundError: no such name; the message has the nearest.
        DeltaAnalysisError: a view, a table of another format or of another catalog.
    """
    parts = parse(name) if isinstance(name, str) else tuple(name)
    entry = find(spark, parts, again=again)
    text = ".".join(parts)
    if entry is None:
        whole = qualified(spark, parts)
        raise not_ours(parts) if whole is None else _missing(spark, text, whole)
    if entry.is_delta:
        return entry
    if entry.kind != "table":
        raise DeltaAnalysisError(
            f"[DELTA_TABLE_ONLY_OPERATION] {text} is a {entry.kind}, not a Delta table: name the "
            "table that it reads",
            table=text,
        )
    raise DeltaAnalysisError(
        f"[DELTA_MISSING_DELTA_TABLE] {text} is not a Delta table: its format is "
        f"{entry.provider}. A table of Parquet files becomes one by "
        "DeltaTable.convertToDelta(spark, 'parquet.`/its/path`')",
        table=text,
        provider=entry.provider,
    )


def location_of(spark: SparkSession, name: str | Sequence[str]) -> str:
    """What opens a Delta table: its folder, or its name where a catalog governs it.

    Args:
        spark: the session.
        name: the table's, or ``delta.`/its/path` ``.

    Raises:
        DeltaError: see `resolve`.
    """
    parts = parse(name) if isinstance(name, str) else tuple(name)
    path = path_in(parts)
    return path if path is not None else resolve(spark, parts).location or ""


def with_location(spark: SparkSession, name: str | Sequence[str], use: Callable[[str], _T]) -> _T:
    """Do something with a Delta table, and again if the table has moved meanwhile.

    Args:
        spark: the session.
        name: see `location_of`.
        use: opens the table by what `location_of` says, and changes nothing if there is none.

    Raises:
        TableNotFoundError: there is no table where the catalog says. And what `use` raises.
        DeltaError: see `resolve`.
    """
    location = location_of(spark, name)
    try:
        return use(location)
    except TableNotFoundError as exc:
        parts = parse(name) if isinstance(name, str) else tuple(name)
        entry = None if path_in(parts) is not None else resolve(spark, parts, again=True)
        if entry is None or entry.is_governed:
            raise
        now = entry.location or ""
        if now != location:
            return use(now)
        text = ".".join(parts)
        raise TableNotFoundError(
            f"[DELTA_TABLE_NOT_FOUND] the catalog has {text} at {location}, but there is no Delta "
            f"table: {exc}. Restore the folder, or take the name out with DROP TABLE {text}",
            table=text,
            location=location,
        ) from exc


def not_ours(parts: Sequence[str]) -> DeltaAnalysisError:
    """The error for a name that is in no catalog that is looked up in."""
    text = ".".join(parts)
    return DeltaAnalysisError(
        f"[DELTA_MISSING_DELTA_TABLE] {text} is a name of another catalog than Spark's own, "
        f"{SESSION_CATALOG}, and of none that the conf has a server for, as "
        "spark.sql.catalog.<name>.uri: use "
        f"{SESSION_CATALOG}.database.table, or the table's path",
        table=text,
    )


def _missing(spark: SparkSession, text: str, whole: Sequence[str]) -> TableNotFoundError:
    database, table = whole[1:]
    near = _near(table, _tables(spark, f"SHOW TABLES IN {quoted_name(whole[:2])}", "tableName"))
    if near is None and (
        other := _near(
            database, _tables(spark, f"SHOW DATABASES IN {SESSION_CATALOG}", "namespace")
        )
    ):
        near = f"{other}.{table}" if other.lower() != database.lower() else None
    elif near is not None:
        near = f"{database}.{near}"
    hint = "" if near is None else f" Did you mean {near}?"
    if database in known_catalogs(set_confs(spark)):
        hint = f" {database} is a catalog: a table of it is named {database}.schema.{table}."
    return TableNotFoundError(
        f"[DELTA_TABLE_NOT_FOUND] Delta table {text} doesn't exist: the catalog has no table of "
        f"that name in {database}.{hint}",
        table=text,
    )


def _tables(spark: SparkSession, text: str, column: str) -> list[str]:
    try:
        return [row[column] for row in plain_sql(spark, text).collect()]
    except AnalysisException:
        return []


def _near(name: str, others: Sequence[str]) -> str | None:
    by_lower = {each.lower(): each for each in others}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[near[0]] if near else None
