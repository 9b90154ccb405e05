"""Delta tables for PySpark: planned and committed in the user's process, by public API only.

    import lakelog.spark as delta

    delta.write(df).mode("append").partitionBy("month").save("/lake/flights")
    delta.read(spark).where("month = 1").load("/lake/flights").count()

`enable(spark)` sends PySpark's own `df.write.format("delta")` and `spark.read.format("delta")`
here, `register(spark)` makes `format("lakelog")` a Python Data Source for SQL and temporary views.
"""

from __future__ import annotations

import sys
import zipimport
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lakelog.core.errors import DeltaError, MissingExtraError
from lakelog.core.lazy_names import lazy_names
from lakelog.spark.session.raised_as import error_class
from lakelog.spark.workers.json_stand_in import ensure_orjson

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark.dml.merge_builder import DeltaMergeBuilder
    from lakelog.spark.format.enable import disable, enable
    from lakelog.spark.format.register import register
    from lakelog.spark.format.stream_reader import DeltaStreamReader
    from lakelog.spark.reading.reader import DeltaReader
    from lakelog.spark.session.bridge import bridge
    from lakelog.spark.sql_statements.front import sql
    from lakelog.spark.sql_statements.script import sql_script
    from lakelog.spark.streaming.once import once_per_batch
    from lakelog.spark.streaming.stream_writer import DeltaStreamWriter
    from lakelog.spark.table.delta_table import DeltaTable
    from lakelog.spark.table.table_builder import DeltaTableBuilder, IdentityGenerator
    from lakelog.spark.workers.marked_errors import unwrap_error
    from lakelog.spark.writing.writer import DeltaWriter
    from lakelog.spark.writing.writer_v2 import DeltaWriterV2

__all__ = [
    "DeltaMergeBuilder",
    "DeltaReader",
    "DeltaStreamReader",
    "DeltaStreamWriter",
    "DeltaTable",
    "DeltaTableBuilder",
    "DeltaWriter",
    "DeltaWriterV2",
    "IdentityGenerator",
    "bridge",
    "disable",
    "enable",
    "once_per_batch",
    "read",
    "read_stream",
    "register",
    "sql",
    "sql_script",
    "unwrap_error",
    "write",
    "write_stream",
    "write_to",
]

if "pyspark" not in sys.modules and find_spec("pyspark") is None:
    raise MissingExtraError("spark", "lakelog.spark")

DeltaError.make_all_as(error_class)

if isinstance(globals().get("__loader__"), zipimport.zipimporter):
    # Shipped to a worker by `workers.pyfiles`, without compiled dependencies.
    ensure_orjson()
    if find_spec("pyarrow") is None:
        raise ModuleNotFoundError(
            f"No module named 'pyarrow' for {sys.executable}, the Python of Spark's workers, in "
            "which lakelog needs it here. Set PYSPARK_PYTHON to a Python with pyarrow, or install "
            "it there",
            name="pyarrow",
        )


def read(spark: SparkSession) -> DeltaReader:
    """Begin a read; the counterpart of `spark.read.format("delta")`.

    Args:
        spark: a session, classic or Connect. Its conf chooses the LogStore.
    """
    from lakelog.spark.reading.reader import DeltaReader

    return DeltaReader(spark)


def read_stream(spark: SparkSession) -> DeltaStreamReader:
    """Begin a streaming read; the counterpart of `spark.readStream.format("delta")`.

    Args:
        spark: a session, classic or Connect. Its conf chooses the LogStore.
    """
    from lakelog.spark.format.stream_reader import DeltaStreamReader

    return DeltaStreamReader(spark)


def write(df: DataFrame) -> DeltaWriter:
    """Begin a write; the counterpart of `df.write.format("delta")`.

    Args:
        df: the rows. The conf of its session chooses the LogStore.
    """
    from lakelog.spark.writing.writer import DeltaWriter

    return DeltaWriter(df)


def write_stream(df: DataFrame) -> DeltaStreamWriter:
    """Begin a streaming query; the counterpart of `df.writeStream.format("delta")`.

    Args:
        df: a streaming DataFrame. The conf of its session chooses the LogStore.
    """
    from lakelog.spark.streaming.stream_writer import DeltaStreamWriter

    return DeltaStreamWriter(df)


def write_to(df: DataFrame, table: str) -> DeltaWriterV2:
    """Begin a write to a named table; the counterpart of `df.writeTo(table)`.

    Args:
        df: the rows. The conf of its session chooses the LogStore.
        table: a name in Spark's own catalog, or ``delta.`/its/path` ``.
    """
    from lakelog.spark.writing.writer_v2 import DeltaWriterV2

    return DeltaWriterV2(df, table)


def load_ipython_extension(ipython: Any) -> None:
    """Make the cell magic `%%lakelog`, which runs its cell by `sql_script`; for `%load_ext`.

    Args:
        ipython: the shell.
    """
    from lakelog.spark.sql_statements.script import add_magic

    add_magic(ipython)


if not TYPE_CHECKING:  # else a type checker takes every name for one that is here
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "dml.merge_builder": "DeltaMergeBuilder",
            "format.enable": "disable enable",
            "format.register": "register",
            "format.stream_reader": "DeltaStreamReader",
            "reading.reader": "DeltaReader",
            "session.bridge": "bridge",
            "sql_statements.front": "sql",
            "sql_statements.script": "sql_script",
            "streaming.once": "once_per_batch",
            "streaming.stream_writer": "DeltaStreamWriter",
            "table.table_builder": "DeltaTableBuilder IdentityGenerator",
            "table.delta_table": "DeltaTable",
            "workers.marked_errors": "unwrap_error",
            "writing.writer": "DeltaWriter",
            "writing.writer_v2": "DeltaWriterV2",
        },
    )
