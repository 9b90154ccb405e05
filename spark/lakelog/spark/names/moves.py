"""Names that change: `ALTER TABLE … RENAME TO`, and `SET LOCATION`, which changes the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lakelog.core import DeltaLog
from lakelog.core import rename_table as rename_in_catalog
from lakelog.core.errors import DeltaAnalysisError, TableExistsError, TableNotFoundError
from lakelog.spark.names.governed import governed_entry
from lakelog.spark.names.identifiers import quoted_name
from lakelog.spark.names.lookup import find, forget, qualified
from lakelog.spark.names.new_entries import literal
from lakelog.spark.names.provider import run_using_delta
from lakelog.spark.names.resolve import not_ours, resolve
from lakelog.spark.session.session import session_conf
from lakelog.spark.types.path_forms import hadoop_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession


def rename_table(spark: SparkSession, name: Sequence[str], new: Sequence[str]) -> None:
    """Give a table another name in its database. A managed table's folder moves with it.

    In a catalog that is not Spark's own the folder stays.

    Args:
        spark: the session.
        name: the parts of a Delta table's name.
        new: the parts of the new one; without a database it is in that of the table.

    Raises:
        TableNotFoundError: there is no such table.
        TableExistsError: the new name is taken.
        DeltaAnalysisError: the new name is one of another database, or the catalog refuses it.
    """
    entry = resolve(spark, name)
    if entry.is_governed:
        parts = [*entry.parts[: 3 - len(new)], *new]
        renamed = governed_entry(spark, parts)
        if renamed is None:
            raise not_ours(parts)
        rename_in_catalog(entry.location or "", renamed.location or "", conf=session_conf(spark))
        return
    whole = qualified(spark, (*entry.parts[:2], *new) if len(new) == 1 else new)
    if whole is None:
        raise not_ours(new)
    if whole[1].lower() != entry.parts[1].lower():
        raise DeltaAnalysisError(
            f"[DELTA_OPERATION_NOT_ALLOWED] {entry.text} can't be renamed to {'.'.join(new)}: a "
            "table stays in its database. Make a name there with CREATE TABLE … USING delta "
            f"LOCATION '{entry.location}', and drop this one",
            table=entry.text,
        )
    # For the message alone: of two that take the name at once the catalog refuses one.
    if find(spark, whole, again=True) is not None:
        raise TableExistsError(
            f"[TABLE_OR_VIEW_ALREADY_EXISTS] {entry.text} can't be renamed to {'.'.join(new)}: the "
            "catalog has a table or view of that name",
            table=entry.text,
        )
    try:
        run_using_delta(
            spark, f"ALTER TABLE {quoted_name(entry.parts)} RENAME TO {quoted_name(whole[1:])}"
        )
    except PySparkException as exc:
        raise DeltaAnalysisError(
            f"the catalog can't rename {entry.text} to {'.'.join(new)}: {exc}", table=entry.text
        ) from exc
    finally:
        forget()


def set_location(spark: SparkSession, name: Sequence[str], location: str) -> None:
    """Let a name mean the Delta table in another folder. No file of either table is touched.

    Args:
        spark: the session.
        name: the parts of a Delta table's name.
        location: the folder of another Delta table, with the same columns.

    Raises:
        TableNotFoundError: there is no such name, or no Delta table in the folder.
        DeltaAnalysisError: the columns differ, or the catalog refuses it.
    """
    entry = resolve(spark, name)
    if entry.is_governed:
        raise DeltaAnalysisError(
            f"[DELTA_OPERATION_NOT_ALLOWED] {entry.text} can't be put in another folder: the "
            f"catalog {entry.parts[0]} decides where its tables are. Make a table, and copy the "
            "rows",
            table=entry.text,
        )
    conf = session_conf(spark)
    wanted = DeltaLog.for_table(location, conf)
    if not wanted.table_exists():
        raise TableNotFoundError(
            f"[DELTA_MISSING_DELTA_TABLE] {entry.text} can't be set to {location}: there is no "
            "Delta table",
            table=entry.text,
            location=location,
        )
    present = DeltaLog.for_table(entry.location or "", conf)
    if present.table_exists() and present.snapshot.schema != wanted.snapshot.schema:
        raise DeltaAnalysisError(
            "[DELTA_SET_LOCATION_SCHEMA_MISMATCH] The schema of the new Delta location is "
            f"different than the current table schema.\n  original: {present.snapshot.schema}\n"
            f"  destination: {wanted.snapshot.schema}\nChange the columns of one of them first, or "
            "drop the name and create it again with CREATE TABLE … USING delta LOCATION",
            table=entry.text,
        )
    text = f"ALTER TABLE {quoted_name(entry.parts)} SET LOCATION {literal(hadoop_path(location))}"
    try:
        run_using_delta(spark, text)
    except PySparkException as exc:
        raise DeltaAnalysisError(
            f"the catalog can't set {entry.text} to {location}: {exc}", table=entry.text
        ) from exc
    finally:
        forget()
    # Not every catalog says that it did nothing, and who believed it would write to the old folder.
    now = find(spark, entry.parts, again=True)
    if now is None or DeltaLog.for_table(now.location or "", conf).table != wanted.table:
        raise DeltaAnalysisError(
            f"the catalog took the location of {entry.text}, and still shows another: drop the "
            "name, and create it again with CREATE TABLE … USING delta LOCATION",
            table=entry.text,
        )
