"""Files of a snapshot to a DataFrame: which of the ways to read is taken.

| storage | way | why |
|---|---|---|
| local, HDFS | `_scan`: Spark's own Parquet reader | fastest, prunes by the query itself |
| an object store that the session's Hadoop can open | `_scan` | the same |
| the same, with settings for one table or read | `_arrow_read` | Hadoop knows the session's |
| any other | `_arrow_read`: pyarrow on the executors | needs no connector |
| any, of tables in `arrow_only_features` | `_arrow_read` | Spark's reader would misread them |
| memory of this process | read here | nobody else can see it |

The conf `spark.lakelog.read.path` (`auto`, `native`, `arrow`) decides instead.
"""

from __future__ import annotations

import logging
import re
import weakref
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError
from lakelog.core.replaced_files import check_partition_values
from lakelog.spark._arrow_read import ArrowScan
from lakelog.spark._paths import quoted, scheme_of
from lakelog.spark._scan import Scan, readable_schema
from lakelog.spark._session import own_storage

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core.expressions import Expression
    from lakelog.core.schema import StructType as TableSchema
    from lakelog.core.snapshot import Snapshot

__all__ = ["arrow_only_features", "files_df", "lacks_filesystem"]

logger = logging.getLogger("lakelog")

_PATH_CONF = "spark.lakelog.read.path"
_PATHS = ("auto", "native", "arrow")
_HADOOPS_OWN = ("file", "hdfs")
"""Schemes whose classes come with Spark."""
_CONNECTORS = {
    "s3a": "org.apache.hadoop:hadoop-aws",
    "s3n": "org.apache.hadoop:hadoop-aws, and write s3a:// for s3n://",
    "s3": "org.apache.hadoop:hadoop-aws, and write s3a:// for s3://",
    "gs": "com.google.cloud.bigdataoss:gcs-connector",
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "org.apache.hadoop:hadoop-azure"),
}
_NO_FILESYSTEM = re.compile(
    r"No FileSystem for scheme"
    r"|ClassNotFoundException: Class \S*(?:FileSystem|AzureFileSystem\$Secure)\S* not found"
    r"|NoClassDefFoundError: (?:software/amazon|com/amazonaws|com/google/cloud|com/microsoft)"
)
_lacking: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()
"""The schemes that a session's Hadoop was found unable to open."""


def files_df(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table,
    *,
    schema: TableSchema | None = None,
    columns: Sequence[str] | None = None,
    prune: Expression | None = None,
) -> DataFrame:
    """The rows of some of a snapshot's files.

    Args:
        spark: a session, classic or Connect.
        snapshot: the version.
        files: rows of its `file_table`.
        schema: the table's, or one with fewer columns; the snapshot's own if `None`.
        columns: names of that schema to keep, in this order; all if `None`.
        prune: row groups without a row for which it is true may be left out.

    Raises:
        CorruptLogError: the log has a partition value that can't be read.
        DataFileMissingError: the log names a file that the storage does not have. Where pyarrow
            reads, that shows only when the DataFrame runs.
        DeltaAnalysisError: `spark.lakelog.read.path` names no way.
        UnsupportedFeatureError: `spark.lakelog.read.path` is `native`, and Spark's reader would
            misread the table.
    """
    whole = readable_schema(snapshot.schema if schema is None else schema)
    shown = whole if columns is None else StructType([whole[name] for name in columns])
    way = _way(spark, snapshot, files)
    if way == "driver":
        # Spark's readers can't see the memory of this process: the rows travel instead.
        rows = ArrowScan(snapshot, files, shown, prune).to_arrow()
        return spark.createDataFrame(rows, shown)
    if way != "arrow":
        check_partition_values(snapshot, files, shown.names)
        try:
            df = _native(spark, snapshot, files, schema)
            return df if columns is None else df.select(*map(quoted, columns))
        except Exception as exc:
            if way == "native" or not lacks_filesystem(exc):
                raise
            _remember(spark, snapshot.table)
    return ArrowScan(snapshot, files, shown, prune).to_df(spark)


def lacks_filesystem(exc: BaseException) -> bool:
    """Whether Spark failed because its Hadoop has no class for the scheme of a path."""
    return _NO_FILESYSTEM.search(str(exc)) is not None


def arrow_only_features(snapshot: Snapshot, files: pa.Table) -> list[str]:
    """The features that these files make use of and Spark's own Parquet reader knows nothing of.

    Args:
        snapshot: the version.
        files: rows of its `file_table`.
    """
    found = []
    if snapshot.properties.column_mapping_mode != "none":
        found.append("columnMapping")
    if files["deletion_vector"].null_count < files.num_rows:
        found.append("deletionVectors")
    # The reader widens some types and not others, and which of them depends on Spark's version.
    if '"delta.typeChanges"' in snapshot.metadata.schema_string:
        found.append("typeWidening")
    return found


def _way(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> str:
    way = snapshot.conf.get_str(_PATH_CONF, "auto").strip().lower()
    if way not in _PATHS:
        raise DeltaAnalysisError(
            f"the conf {_PATH_CONF} must be one of {', '.join(_PATHS)}, but it is {way!r}",
            key=_PATH_CONF,
            value=way,
        )
    if snapshot.store.filesystem.type_name.endswith("memory"):
        return "driver"
    features = arrow_only_features(snapshot, files)
    if features and way == "native":
        raise UnsupportedFeatureError(
            f"{snapshot.table} uses {', '.join(features)}, which Spark's own Parquet reader does "
            f"not know: set {_PATH_CONF} to auto or arrow, or read with Snapshot.to_arrow",
            table=snapshot.table,
            version=snapshot.version,
            features=features,
            access="read",
        )
    if features:
        return "arrow"
    scheme = scheme_of(snapshot.table)
    if way == "auto" and scheme in _HADOOPS_OWN:
        return "native"
    if way == "auto" and scheme in _lacking.get(spark, ()):
        return "arrow"
    # Spark's reader knows the session's settings of the storage, not those of one table or read.
    return "arrow" if way == "auto" and own_storage(spark, snapshot.conf) else way


def _remember(spark: SparkSession, table: str) -> None:
    """Ask the session's Hadoop no more for the scheme, and say so once."""
    scheme = scheme_of(table)
    _lacking.setdefault(spark, set()).add(scheme)
    connector = _CONNECTORS.get(scheme)
    advice = f"For Spark's own reader, which is faster, install {connector}. " if connector else ""
    logger.warning(
        "Spark's Hadoop can't open %s://, so tables there are read by pyarrow on the executors. "
        "%sTo choose this way without a word, set %s=arrow.",
        scheme,
        advice,
        _PATH_CONF,
    )


def _native(
    spark: SparkSession, snapshot: Snapshot, files: Any, schema: TableSchema | None
) -> DataFrame:
    return Scan(
        spark,
        table=snapshot.table,
        version=snapshot.version,
        schema=snapshot.schema if schema is None else schema,
        partition_columns=snapshot.partition_columns,
        files=files,
    ).to_df()
