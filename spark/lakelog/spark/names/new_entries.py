"""New entries in the catalog, and their end: as delta-spark makes them, so that both can use them.

An entry holds the format, the folder and the description. It has no columns, as
in delta-spark: the table's log has them, and nothing would update the entry's when they change.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from pyarrow.fs import FileSelector
from pyspark.errors import PySparkException

from lakelog.core import DeltaLog
from lakelog.core.errors import CommitOutcomeUnknownError, DeltaAnalysisError, TableExistsError
from lakelog.spark.names.identifiers import parse, quoted_name
from lakelog.spark.names.lookup import find, forget, qualified
from lakelog.spark.names.provider import accepts_delta, run_using_delta
from lakelog.spark.names.resolve import not_ours
from lakelog.spark.session.session import session_conf
from lakelog.spark.types.path_forms import hadoop_path, quoted
from lakelog.spark.types.type_sql import type_sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from lakelog.core.schema import StructType
    from lakelog.spark.names.catalog_entries import Entry

# Hive's metastore refuses names with these.
_NOT_FOR_HIVE = frozenset(",:;")
# What the catalog refuses with columns and without.
_SETTLED = ("TABLE_OR_VIEW_ALREADY_EXISTS", "LOCATION_ALREADY_EXISTS", "SCHEMA_NOT_FOUND")


def create_entry(
    spark: SparkSession,
    name: str | Sequence[str],
    schema: StructType,
    location: str | None = None,
    comment: str | None = None,
) -> Entry:
    """Make a name for a table: `CREATE TABLE name (…) USING delta [LOCATION …]`.

    Of several that do this at once, in whatever process, one succeeds.

    Args:
        spark: the session.
        name: one of Spark's own catalog, or its parts.
        schema: the columns, for a catalog that has no entry without.
        location: the table's folder; `None` for a managed table, in the folder of its database.
        comment: a description.

    Returns:
        The new entry, with its folder.

    Raises:
        TableExistsError: the catalog has a table or view of that name.
        DeltaAnalysisError: the folder of a managed table is not empty, there is no such database,
            or the name is one of another catalog or has other characters than the catalog allows.
    """
    parts = parse(name) if isinstance(name, str) else tuple(name)
    whole = qualified(spark, parts)
    if whole is None:
        raise not_ours(parts)
    about = " USING delta"
    if location is not None:
        about += f" LOCATION {literal(hadoop_path(location))}"
    if comment is not None:
        about += f" COMMENT {literal(comment)}"
    try:
        _create(spark, f"CREATE TABLE {quoted_name(whole)}", _columns(schema), about)
    except PySparkException as exc:
        raise _explained(exc, whole) from exc
    finally:
        # Also where it failed: another process may have taken the name, of which nothing is known
        # yet.
        forget()
    # Asked with its database: a temporary view of the name hides nothing here.
    entry = find(spark, whole)
    if entry is None or entry.location is None:
        raise DeltaAnalysisError(
            f"the catalog took the table {'.'.join(whole)}, but does not show its folder: only "
            "Spark's own catalog, in memory or in a Hive metastore, can be used by lakelog",
            table=".".join(whole),
        )
    return entry


@contextlib.contextmanager
def claimed(
    spark: SparkSession,
    name: str | Sequence[str],
    schema: StructType,
    location: str | None = None,
    comment: str | None = None,
) -> Iterator[Entry]:
    """A name for a table that the `with` block makes; the entry goes again if it makes none.

    The name is taken before anything is written, so that of two who want it the second one has
    done nothing when it is refused. The name of a managed table stays where its folder holds files:
    the next one who makes the table uses it as if it were new.

    Args:
        spark: see `create_entry`.
        name: see `create_entry`.
        schema: see `create_entry`.
        location: see `create_entry`.
        comment: see `create_entry`.

    Raises:
        DeltaError: see `create_entry`.
    """
    conf = session_conf(spark)
    before = None if location is None else _version(DeltaLog.for_table(location, conf))
    entry = create_entry(spark, name, schema, location, comment)
    try:
        yield entry
    except CommitOutcomeUnknownError:
        # The table may be there yet.
        raise
    except BaseException:
        # An error on the way here is less than the one that is about to be raised.
        with contextlib.suppress(Exception):
            log = DeltaLog.for_table(entry.location or "", conf)
            # Dropping a managed table deletes its folder. Files that are still in it belong to a
            # commit in doubt, or to another process that makes the table by the same name.
            if _version(log) == before and not (entry.managed and _holds_files(log)):
                drop_entry(spark, entry)
        raise


def drop_entry(spark: SparkSession, entry: Entry, *, purge: bool = False) -> None:
    """Take an entry out of the catalog; a managed table's folder goes with it, as by Spark.

    Args:
        spark: the session.
        entry: of a table.
        purge: as `PURGE`: without a bin, where the catalog has one.

    Raises:
        PySparkException: what Spark raises.
    """
    try:
        run_using_delta(
            spark, f"DROP TABLE IF EXISTS {quoted_name(entry.parts)}{' PURGE' if purge else ''}"
        )
    finally:
        forget()


def _version(log: DeltaLog) -> int | None:
    """The newest, whatever features the table has; `None` if there is no table."""
    return log.update().version if log.table_exists() else None


def _holds_files(log: DeltaLog) -> bool:
    store = log.store
    root = FileSelector(store.filesystem_path(log.table), recursive=True, allow_not_found=True)
    return any(each.is_file for each in store.filesystem.get_file_info(root))


def _create(spark: SparkSession, text: str, columns: str, about: str) -> None:
    """Make an entry without columns, or with them where that can't be."""
    if accepts_delta(spark):
        try:
            run_using_delta(spark, f"{text}{about}")
        except PySparkException as exc:
            # It may be a Spark that doesn't tell the source that the columns are for an entry.
            if (exc.getCondition() or "").startswith(_SETTLED):
                raise
        else:
            return
    run_using_delta(spark, f"{text} ({columns}){about}")


def _columns(schema: StructType) -> str:
    """Those that every catalog can show; there must be one."""
    shown = [
        f"{quoted(each.name)} {type_sql(each.data_type)}"
        for each in schema
        if not set(each.name) & _NOT_FOR_HIVE and "void" not in str(each.data_type)
    ]
    return ", ".join(shown) or "`col` array<string>"


def literal(text: str) -> str:
    """A string where the grammar allows no expression."""
    for quote in ("'", '"'):
        if quote not in text:
            # A raw one, in which a backslash is itself under every setting of the parser.
            return f"{'r' if chr(92) in text else ''}{quote}{text}{quote}"
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _explained(exc: PySparkException, whole: Sequence[str]) -> DeltaAnalysisError:
    name, condition = ".".join(whole[1:]), exc.getCondition() or ""
    if condition.startswith("TABLE_OR_VIEW_ALREADY_EXISTS"):
        return TableExistsError(
            f"[DELTA_TABLE_ALREADY_EXISTS] Table {name} already exists: choose another name, or "
            "say what to do with the table (mode('append') or mode('overwrite'), createOrReplace)",
            table=name,
        )
    if condition.startswith("LOCATION_ALREADY_EXISTS"):
        return DeltaAnalysisError(
            "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table "
            f"{name}: its folder within the database's is not empty, and the catalog has no table "
            "there. Clear the folder, or, if it is a Delta table, name it where it is: "
            f"CREATE TABLE {name} USING delta LOCATION '…'. {exc}",
            table=name,
        )
    return DeltaAnalysisError(f"the catalog can't have the table {name}: {exc}", table=name)
