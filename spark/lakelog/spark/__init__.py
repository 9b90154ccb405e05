"""Delta tables for PySpark: planned and committed in the user's process, by public API only.

import lakelog.spark as delta

delta.write(df).mode("append").partitionBy("month").save("/lake/flights")
delta.read(spark).where("month = 1").load("/lake/flights").count()

`enable(spark)` sends PySpark's own `df.write.format("delta")` and `spark.read.format("delta")`
here, `register(spark)` makes `format("lakelog")` a Python Data Source for SQL and temporary views.
"""

from __future__ import annotations

import importlib
import zipimport
from typing import TYPE_CHECKING, Any

from lakelog.spark._json_stand_in import ensure_orjson

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.spark._enable import disable, enable
    from lakelog.spark._marked import original_error
    from lakelog.spark._reader import DeltaReader
    from lakelog.spark._register import register
    from lakelog.spark._table import DeltaTable
    from lakelog.spark._table_builder import DeltaTableBuilder, IdentityGenerator
    from lakelog.spark._writer import DeltaWriter

# Name -> module. Imported on first use: a worker that needs one of them has no PySpark session.
_HOMES = {
    "DeltaReader": "_reader",
    "DeltaTable": "_table",
    "DeltaTableBuilder": "_table_builder",
    "DeltaWriter": "_writer",
    "IdentityGenerator": "_table_builder",
    "disable": "_enable",
    "enable": "_enable",
    "original_error": "_marked",
    "register": "_register",
}

__all__ = [
    "DeltaReader",
    "DeltaTable",
    "DeltaTableBuilder",
    "DeltaWriter",
    "IdentityGenerator",
    "disable",
    "enable",
    "original_error",
    "read",
    "register",
    "write",
]

if isinstance(globals().get("__loader__"), zipimport.zipimporter):
    # Shipped to a worker by `_pyfiles`: compiled dependencies did not come along.
    ensure_orjson()


def read(spark: SparkSession) -> DeltaReader:
    """Begin a read; the counterpart of `spark.read.format("delta")`.

    Args:
        spark: a session, classic or Connect. Its conf chooses the LogStore.
    """
    from lakelog.spark._reader import DeltaReader

    return DeltaReader(spark)


def write(df: DataFrame) -> DeltaWriter:
    """Begin a write; the counterpart of `df.write.format("delta")`.

    Args:
        df: the rows. The conf of its session chooses the LogStore.
    """
    from lakelog.spark._writer import DeltaWriter

    return DeltaWriter(df)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
