"""`find`: what a name means in a session's catalog, asked once and kept while that is safe.

Spark shows an entry's format and folder in `SHOW TABLE EXTENDED` alone, in sessions of either kind
and for catalogs in memory and in Hive's metastore. The answer is kept only while `enable` is in
force, which sees the statements of this process that change the catalog, and no longer than
`spark.lakelog.names.cacheSeconds`, since other processes also change it.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException

from lakelog.core import DeltaConf
from lakelog.core.engine.tables import known_catalogs
from lakelog.logstores import keys as store_keys
from lakelog.spark.names.catalog_entries import Entry, read_entry
from lakelog.spark.names.governed import governed_entry
from lakelog.spark.names.identifiers import (
    SESSION_CATALOG,
    is_session_name,
    parse,
    quoted_name,
)
from lakelog.spark.names.plain import plain_sql, plain_table
from lakelog.spark.names.stored_views import described_view, kept_view
from lakelog.spark.session.session import set_confs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_CATALOG_PARTS = 3
_TEMPORARY = "global_temp"
_ALWAYS_THERE = "default"
"""A database of Spark's own catalog that can't be dropped; temporary views are listed with any."""


@dataclass(slots=True)
class _Known:
    """What is known of one session's catalog."""

    # Other processes change the catalog without notice: an answer is kept for as long as the conf
    # says, and `with_location` asks again where it turns out to be wrong.
    until: float = 0.0
    ours: frozenset[str] = frozenset()
    """The catalogs of the conf that lakelog asks."""
    chosen: tuple[str, str] | None = None
    """The catalog of those, and its schema, that `USE` made the current ones."""
    namespace: tuple[str, str] | None = None
    """Spark's current catalog and database."""
    entries: dict[tuple[str, ...], Entry | None] = field(default_factory=dict)
    catalogs: dict[str, bool] = field(default_factory=dict)
    """Whether a first part of two names a catalog."""


_clock = time.monotonic
_lock = threading.Lock()
_watched: set[type] = set()
_known: weakref.WeakKeyDictionary[SparkSession, _Known] = weakref.WeakKeyDictionary()
_forgotten = 0
"""How often all was forgotten: what was asked for before that is not kept after it."""


def watch(sessions: type) -> None:
    """Begin to keep answers for sessions of a class; the caller must also call `forget`."""
    _watched.add(sessions)


def unwatch(sessions: type) -> None:
    """End what `watch` began."""
    _watched.discard(sessions)
    forget()


def is_watched(spark: SparkSession) -> bool:
    """Whether `watch` is in force for a session."""
    return type(spark) in _watched


def forget() -> None:
    """Ask again for every name, after something that may have changed what a name means.

    Sessions share catalogs, so this holds for all of this process.
    """
    global _forgotten
    with _lock:
        _known.clear()
        _forgotten += 1


def find(spark: SparkSession, name: str | Sequence[str], *, again: bool = False) -> Entry | None:
    """What a name means: a table or a view of Spark's own catalog, or a temporary view.

    A temporary view hides a table of its name. A name in a catalog that lakelog asks itself means
    a table there, whether or not there is one: one of three parts, and a shorter one where `USE`
    made such a catalog the current one. A name in any other catalog is not looked up.

    Args:
        spark: a session, classic or Connect.
        name: as Spark reads it, or its parts. A path (see `path_in`) is not a name.
        again: whether to ask the catalog even if the answer is known.

    Returns:
        The entry, whatever its format; `None` if there is none, or none of a catalog that is asked.

    Raises:
        DeltaAnalysisError: the text is not a name.
    """
    parts = parse(name) if isinstance(name, str) else tuple(name)
    known = _of(spark)
    found = governed_entry(spark, _in_chosen(spark, parts, known))
    if found is not None:
        if len(parts) != 1 or not is_session_name(parts):
            return found
        place = (SESSION_CATALOG, _ALWAYS_THERE, parts[0])
        view = _kept(spark, place, known, alone=True, again=again)
        return view if view is not None and view.kind == "temporary view" else found
    whole = qualified(spark, parts, known)
    if whole is None or not is_session_name(whole[1:]):
        return None
    if len(parts) == _CATALOG_PARTS - 1 and _is_catalog(spark, parts[0]):
        # `other.t` is a table of a catalog `other`, even if there is a database of that name.
        return None
    return _kept(spark, whole, known, alone=len(parts) == 1, again=again)


def entry_elsewhere(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """The entry of a name in a catalog that lakelog asks; `None` for a name in any other.

    Args:
        spark: a session, classic or Connect.
        parts: of the name. A temporary view that hides it is passed by.
    """
    return governed_entry(spark, _in_chosen(spark, parts, _of(spark)))


def chosen_namespace(spark: SparkSession) -> tuple[str, str] | None:
    """The current catalog and schema, where lakelog asks that catalog; `None` where Spark does."""
    known = _of(spark)
    return None if known is None else known.chosen


def choose_namespace(spark: SparkSession, namespace: tuple[str, str] | None) -> None:
    """Make a catalog that lakelog asks the current one; with `None`, go back to Spark's.

    It is kept in the session's conf, which another object for the same session has too.
    """
    key = store_keys.NAMES_CURRENT.name
    if namespace is not None:
        spark.conf.set(key, quoted_name(namespace))
    elif chosen_namespace(spark) is not None:
        spark.conf.unset(key)
    forget()


def _in_chosen(spark: SparkSession, parts: Sequence[str], known: _Known | None) -> tuple[str, ...]:
    """A name with what `USE` chose before it, if it is one of that catalog; else as it is."""
    as_it_is = tuple(parts)
    # `` parquet.`/its/path` `` is no name of a catalog.
    if known is None or known.chosen is None or any("/" in each for each in parts):
        return as_it_is
    if len(parts) == 1:
        return (*known.chosen, *parts)
    first = parts[0]
    is_other = first.lower() in (_TEMPORARY, SESSION_CATALOG) or first in known.ours
    if len(parts) >= _CATALOG_PARTS or is_other or _is_catalog(spark, first):
        return as_it_is
    return (known.chosen[0], *parts)


def _kept(
    spark: SparkSession,
    whole: tuple[str, str, str],
    known: _Known | None,
    *,
    alone: bool,
    again: bool,
) -> Entry | None:
    # Names are compared ignoring case. A temporary view has one part, so `db.t` never means one.
    key = (str(alone), *(each.lower() for each in whole))
    if known is None or again or key not in known.entries:
        found = _ask(spark, whole, alone)
        if known is None:
            return found
        known.entries[key] = found
    return known.entries[key]


def qualified(
    spark: SparkSession, parts: Sequence[str], known: _Known | None = None
) -> tuple[str, str, str] | None:
    """A name with Spark's own catalog and a database; `None` for names of other catalogs.

    Args:
        spark: the session, which has a current catalog and database.
        parts: one, two or three.
        known: for `find`.
    """
    if not 1 <= len(parts) <= _CATALOG_PARTS:
        return None
    if len(parts) == _CATALOG_PARTS:
        catalog, database, table = parts
        return (SESSION_CATALOG, database, table) if catalog.lower() == SESSION_CATALOG else None
    known = _of(spark) if known is None else known
    if len(_in_chosen(spark, parts, known)) == _CATALOG_PARTS:
        return None
    if known is None or known.namespace is None:
        namespace = (spark.catalog.currentCatalog(), spark.catalog.currentDatabase())
        if known is not None:
            known.namespace = namespace
    else:
        namespace = known.namespace
    catalog, current = namespace
    if catalog != SESSION_CATALOG:
        return None
    if len(parts) == 1:
        return SESSION_CATALOG, current, parts[0]
    return SESSION_CATALOG, parts[0], parts[1]


def _of(spark: SparkSession) -> _Known | None:
    """What is kept for a session; `None` where nothing is."""
    if not is_watched(spark):
        return None
    now = _clock()
    with _lock:
        known, before = _known.get(spark), _forgotten
        if known is not None and now < known.until:
            return known
    conf = set_confs(spark)
    ours = known_catalogs(conf)
    names = [store_keys.NAMES_CACHE.name, store_keys.NAMES_CURRENT.name]
    settings = DeltaConf({each: conf[each] for each in names if each in conf})
    chosen = settings.read(store_keys.NAMES_CURRENT)
    catalog, schema = parse(chosen) if chosen else ("", "")
    known = _Known(now + settings.read(store_keys.NAMES_CACHE), ours)
    if catalog in ours:
        known.chosen = (catalog, schema)
        # What is Spark's then has its catalog or its database in the name.
        known.namespace = (SESSION_CATALOG, _ALWAYS_THERE)
    with _lock:
        # Another thread may have chosen another catalog since the conf was read.
        if before == _forgotten:
            _known[spark] = known
    return known


def _ask(spark: SparkSession, whole: tuple[str, str, str], alone: bool) -> Entry | None:
    """Ask the catalog for one name; with `alone`, for a temporary view first."""
    _, database, table = whole
    if database.lower() == _TEMPORARY and not alone:
        return _temporary(spark, (_TEMPORARY, table))
    # SHOW prints the entry alone. DESCRIBE and `spark.table` look for the source of the format,
    # which a session without delta-spark's jar does not have.
    text = f"SHOW TABLE EXTENDED IN {quoted_name(whole[:2])} LIKE '{table}'"
    try:
        rows = plain_sql(spark, text).collect()
    except AnalysisException:
        # No such database, or a catalog that does not show this: Spark itself says so.
        return None
    found = None
    for row in rows:
        if row.tableName.lower() != table.lower():
            continue
        if row.isTemporary and alone:
            return _temporary(spark, (row.tableName,))
        if not row.isTemporary:
            parts = (SESSION_CATALOG, row.namespace, row.tableName)
            found = read_entry(parts, row.information)
    if found is not None and found.kind == "view":
        shown = plain_sql(spark, f"DESCRIBE TABLE EXTENDED {quoted_name(found.parts)}").collect()
        return replace(found, view=described_view(shown))
    return found


def _temporary(spark: SparkSession, parts: tuple[str, ...]) -> Entry:
    """The entry of a temporary view, with its query where `enable` saw how it was made."""
    view = None
    if is_watched(spark):
        try:
            schema = plain_table(spark, quoted_name(parts)).schema
        except PySparkException:
            schema = None  # there is none, or Spark can no longer read it, and will say so
        view = None if schema is None else kept_view(schema, parts)
    return Entry(parts, "temporary view", view=view)


def is_sparks_catalog(spark: SparkSession, name: str) -> bool:
    """Whether a name is that of Spark's own catalog, or of one that the conf has a class for."""
    return name.lower() == SESSION_CATALOG or _is_catalog(spark, name)


def _is_catalog(spark: SparkSession, name: str) -> bool:
    known = _of(spark)
    if known is not None and name in known.catalogs:
        return known.catalogs[name]
    found = spark.conf.get(f"spark.sql.catalog.{name}", None) is not None
    if known is not None:
        known.catalogs[name] = found
    return found
