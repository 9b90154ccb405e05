"""CACHE TABLE, UNCACHE TABLE and CLEAR CACHE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark import StorageLevel

from lakelog.core import drop_table
from lakelog.core.errors import DeltaAnalysisError
from lakelog.spark.session.session import session_conf
from lakelog.spark.sql_statements.commands.create_view import NewView, made_view
from lakelog.spark.sql_statements.queries.cached_rows import (
    forget_cached,
    has_cached,
    hold,
    release,
)
from lakelog.spark.sql_statements.queries.named_tables import entry_of, place_of
from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
from lakelog.spark.sql_statements.text.keywords import QUERY
from lakelog.spark.sql_statements.text.options_clause import given_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.sql_statements.commands.context import Command, CommandContext
    from lakelog.spark.sql_statements.queries.cached_rows import Key


def cache(s: CommandContext) -> Command | None:
    """`CACHE [LAZY] TABLE t [OPTIONS ('storageLevel' '…')] [[AS] query]`."""
    c = s.cursor
    c.need("CACHE")
    lazy = c.took("LAZY")
    c.need("TABLE")
    name = c.name()
    level = _level(s) if c.took("OPTIONS") else None
    with_query = c.took("AS") or c.word in (*QUERY, "(")
    if not with_query:
        c.end()
        if key_of(s.spark, s.runner, name.parts) is None:
            return None
        s.is_ours = True

        def keep() -> DataFrame:
            cache_named(s.spark, s.runner, name.parts, level, eager=not lazy)
            return s.nothing()

        return keep
    make = made_view(s, NewView(name, temporary=True), c.rest())
    if make is None:
        return None

    def make_and_keep() -> DataFrame:
        from lakelog.spark.names.lookup import forget

        made = make()
        forget()
        cache_named(s.spark, s.runner, name.parts, level, eager=not lazy)
        return made

    return make_and_keep


def uncache(s: CommandContext) -> Command | None:
    """`UNCACHE TABLE [IF EXISTS] t`."""
    c = s.cursor
    c.need("UNCACHE", "TABLE")
    c.took("IF", "EXISTS")
    name = c.name()
    c.end()
    key = key_of(s.spark, s.runner, name.parts)
    if key is None:
        return None
    s.is_ours = True

    def run() -> DataFrame:
        release(s.spark, key)
        return s.nothing()

    return run


def clear_cache(s: CommandContext) -> Command | None:
    """`CLEAR CACHE`, which is Spark's own."""
    forget_cached(s.spark)
    return None


def drop(s: CommandContext) -> Command | None:
    """`DROP TABLE t`, `DROP VIEW v`: what is cached of them is let go.

    Both are Spark's own, but for a table of a catalog that lakelog asks.
    """
    c = s.cursor
    c.need("DROP")
    of_table = c.need_any("TABLE", "VIEW") == "TABLE"
    if_exists = c.took("IF", "EXISTS")
    parts = c.name().parts
    if has_cached(s.spark):
        key = key_of(s.spark, s.runner, parts)
        if key is not None:
            release(s.spark, key)
    entry = entry_of(s.spark, parts) if of_table else None
    if entry is None or not entry.is_governed:
        return None
    s.is_ours = True
    c.took("PURGE")  # the catalog alone knows what becomes of the files
    c.end()

    def run() -> DataFrame:
        drop_table(entry.location or "", if_exists=if_exists, conf=session_conf(s.spark))
        return s.nothing()

    return run


def key_of(spark: SparkSession, runner: QueryRunner, parts: Sequence[str]) -> Key | None:
    """What a table of ours, or a view over one, is cached as; `None` for others."""
    place = place_of(spark, parts)
    if place is not None:
        return place.path
    entry = entry_of(spark, parts)
    if entry is None or runner.named(parts) is None:
        return None
    return tuple(each.lower() for each in entry.parts)


def cache_named(
    spark: SparkSession,
    runner: QueryRunner,
    parts: Sequence[str],
    level: StorageLevel | None = None,
    *,
    eager: bool = False,
) -> None:
    """Cache a table of ours, or a view over one.

    Args:
        spark: the session.
        runner: reads it.
        parts: its name.
        level: see `hold`.
        eager: see `hold`.
    """
    key = key_of(spark, runner, parts)
    # One of its own: its `read` has the versions of this frame, and of nothing else that the
    # statement read.
    fresh = QueryRunner(spark, runner.plain)
    frame = fresh.named(parts)
    if key is not None and frame is not None:
        hold(spark, key, frame, fresh.read, level, eager=eager)


def _level(s: CommandContext) -> StorageLevel | None:
    name = given_options(s.cursor.group(), s.runner.value).get("storagelevel")
    if name is None:
        return None
    found = getattr(StorageLevel, name.upper(), None)
    if not isinstance(found, StorageLevel):
        raise DeltaAnalysisError(
            f"[INVALID_STORAGE_LEVEL] {name} is no storage level: MEMORY_ONLY, MEMORY_AND_DISK, "
            "DISK_ONLY and so on are",
            level=name,
        )
    return found
