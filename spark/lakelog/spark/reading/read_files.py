"""Files of a snapshot to a DataFrame: which way of reading is used.

`files_df` gives the rows, `positioned_df` the rows with their places. Both leave out the rows of
deletion vectors, and find mapped columns.

| storage | way | why |
|---|---|---|
| local, HDFS | `spark_scan`: Spark's own Parquet reader | fastest, prunes by the query itself |
| an object store that the session's Hadoop can open | `spark_scan` | the same |
| the same, with settings for one table or read | `arrow_scan` | Hadoop knows the session's |
| any other | `arrow_scan`: pyarrow on the executors | needs no connector |
| any, of tables in `arrow_only_features` | `arrow_scan` | Spark's reader would misread them |
| memory of this process | read here | no other process can see it |

The conf `spark.lakelog.read.path` (`auto`, `native`, `arrow`) decides instead.
"""

from __future__ import annotations

import logging
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from lakelog.core.engine.scan import DataPlaces, check_partition_values, rows_of_files
from lakelog.core.engine.schemas import (
    TYPE_CHANGES,
    holds_months,
    is_known,
    is_widening,
    mapped_like,
    shares_int32,
    walk,
)
from lakelog.core.engine.tables import data_path
from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError
from lakelog.core.schema import PrimitiveType, type_from_json_value
from lakelog.core.schema import StructType as Columns
from lakelog.logstores import keys as store_keys
from lakelog.spark.reading.arrow_scan import ArrowScan
from lakelog.spark.reading.row_positions import (
    FILE,
    METADATA,
    METADATA_TYPE,
    ROW,
    PositionedRows,
    with_places,
)
from lakelog.spark.reading.spark_scan import SparkScan, read_only, readable_schema
from lakelog.spark.reading.vectors import read_vectors
from lakelog.spark.session.job_errors import lacks_filesystem
from lakelog.spark.session.session import check_server, own_storage, spark_version
from lakelog.spark.types.path_forms import file_path_uri, quoted, scheme_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from lakelog.core import Expression, Snapshot
    from lakelog.core.schema import StructType as TableSchema

logger: logging.Logger = logging.getLogger("lakelog")

_PATH_CONF = store_keys.READ_PATH.name

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

_MOST_MASKED_ROWS = 1 << 29
"""Rows of files with deletion vectors that Spark's reader is given: 64 MiB of bits, which each
executor holds."""
_MOST_VECTORS = 1 << 12
"""Vectors that the driver reads, each by a request."""

_READS_VOID = (4, 1)
"""The Spark whose Parquet reader gives nulls for a field of type void in a struct."""
_VOID = PrimitiveType("void")

_NUMBER, _FACTS = "__lakelog_number", "__lakelog_facts"

_lacking: weakref.WeakKeyDictionary[SparkSession, set[str]] = weakref.WeakKeyDictionary()
"""The schemes that a session's Hadoop is known to be unable to open."""


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
    return _Read(spark, snapshot, files, schema, columns, prune).run()[0]


def positioned_df(
    spark: SparkSession,
    snapshot: Snapshot,
    files: pa.Table,
    *,
    schema: TableSchema | None = None,
    prune: Expression | None = None,
    metadata: bool = False,
) -> PositionedRows:
    """The same rows with the file and the position of each.

    Args:
        spark: a session, classic or Connect.
        snapshot: the version.
        files: rows of its `file_table`.
        schema: the table's, or one with fewer columns; the snapshot's own if `None`.
        prune: row groups without a row for which it is true may be left out.
        metadata: whether rows also come with `METADATA`.

    Raises:
        DeltaError: as `files_df`.
    """
    read = _Read(spark, snapshot, files, schema, None, prune, positions=True, metadata=metadata)
    df, by_spark = read.run()
    numbers = [str(number) for number in range(files.num_rows)]
    if by_spark or metadata:
        places = DataPlaces(snapshot.table).resolve(files["path"].to_pylist())
        uris = [file_path_uri(place) for place in places]
        if by_spark:
            numbers = uris
        else:
            df = _with_metadata(spark, df, uris, files)
    return PositionedRows(df, {number: i for i, number in enumerate(numbers)})


def _with_metadata(
    spark: SparkSession, rows: DataFrame, uris: Sequence[str], files: pa.Table
) -> DataFrame:
    """Rows that Arrow reads with what Spark's own reader would say of their files."""
    if not uris:  # of no row Spark Connect makes no frame
        return rows.withColumn(METADATA, sf.lit(None).cast(METADATA_TYPE))
    import pyarrow as pa

    sizes, modified = (files[name].combine_chunks() for name in ("size", "modification_time"))
    facts = {
        "file_path": pa.array(uris, pa.string()),
        "file_name": pa.array([uri.rpartition("/")[2] for uri in uris], pa.string()),
        "file_size": sizes,
        "file_block_start": pa.array([0] * len(uris), pa.int64()),
        "file_block_length": sizes,
        "file_modification_time": modified.cast(pa.timestamp("ms", "UTC")),
    }
    each = pa.StructArray.from_arrays(list(facts.values()), list(facts))
    known = pa.table({_NUMBER: [str(number) for number in range(len(uris))], _FACTS: each})
    right = sf.broadcast(spark.createDataFrame(known))
    whole = sf.struct(
        *(sf.col(_FACTS).getField(name).alias(name) for name in facts),
        sf.col(ROW).alias("row_index"),
    )
    joined = rows.join(right, sf.col(FILE) == sf.col(_NUMBER), "left")
    return joined.select(*map(quoted, rows.columns), whole.alias(METADATA))


@dataclass(frozen=True, slots=True)
class _Read:
    """What is read; the fields are the arguments of `files_df`."""

    spark: SparkSession
    snapshot: Snapshot
    files: pa.Table
    schema: TableSchema | None
    columns: Sequence[str] | None
    prune: Expression | None
    positions: bool = False
    metadata: bool = False

    def run(self) -> tuple[DataFrame, bool]:
        """The DataFrame, and whether Spark's own reader reads it."""
        spark, snapshot, files = self.spark, self.snapshot, self.files
        check_server(spark)
        whole = readable_schema(self._readable())
        names = self.columns
        shown = whole if names is None else StructType([whole[name] for name in names])
        way = _way(spark, snapshot, files)
        if way == "driver":
            # Spark's readers can't read the memory of this process, so the rows are sent instead.
            _check_for_arrow(shown)
            scan = ArrowScan(snapshot, files, shown, self.prune, positions=self.positions)
            schema = with_places(shown) if self.positions else shown
            return read_only(spark.createDataFrame(scan.to_arrow(), schema)), False
        if way != "arrow":
            check_partition_values(snapshot, files, shown.names)
            try:
                # By trying: no public name says what a session's Hadoop can open, and over Connect
                # it is on another machine.
                df = self._native()
                return (df if names is None else df.select(*map(quoted, names))), True
            except Exception as exc:
                if way == "native" or not lacks_filesystem(exc):
                    raise
                _remember(spark, snapshot.table)
        _check_for_arrow(shown)
        scan = ArrowScan(snapshot, files, shown, self.prune, positions=self.positions)
        return scan.to_df(spark), False

    def _readable(self) -> TableSchema:
        """The schema; without columns of unknown types, where a caller chose columns."""
        schema = self.snapshot.schema if self.schema is None else self.schema
        if self.columns is None:
            return schema
        wanted = {*self.columns, *self.snapshot.partition_columns}
        kept = tuple(f for f in schema if f.name in wanted or is_known(f.data_type))
        return schema if len(kept) == len(schema) else Columns(kept)

    def _native(self) -> DataFrame:
        snapshot = self.snapshot
        schema = self._readable()
        masked = self.files.filter(self.files["deletion_vector"].is_valid())
        return SparkScan(
            self.spark,
            table=snapshot.table,
            version=snapshot.version,
            schema=mapped_like(schema, snapshot.read_schema),
            partition_columns=snapshot.partition_columns,
            files=self.files,
            vectors=read_vectors(snapshot, masked) if masked.num_rows else None,
            positions=self.positions,
            metadata=self.metadata,
        ).to_df()


def _check_for_arrow(schema: StructType) -> None:
    """Refuse columns whose values PySpark can't take from Python."""
    for field in Columns.from_json(schema.json()):
        if holds_months(field.data_type):
            raise DeltaAnalysisError(
                f"column {field.name} has intervals of months, which PySpark can't take from "
                "Python, and this table is read in Python. Name the other columns with "
                'option("columns", …), or read the table with lakelog.core.',
                column=field.name,
                type=str(field.data_type),
            )


def arrow_only_features(snapshot: Snapshot, files: pa.Table) -> list[str]:
    """The features that these files use in a way that Spark's own Parquet reader can't follow.

    Column mapping by ids, for which Spark has a conf of the session alone; deletion vectors of a
    great many rows or files, of files without a number of rows in their statistics, or where the
    log has a file twice; changes of types that the protocol does not have.

    Args:
        snapshot: the version.
        files: rows of its `file_table`.
    """
    found = []
    if snapshot.properties.column_mapping_mode == "id":
        found.append("columnMapping")
    masked = files.filter(files["deletion_vector"].is_valid())
    if masked.num_rows:
        counts = [count for count in rows_of_files(masked) if count is not None]
        fits = masked.num_rows <= _MOST_VECTORS and sum(counts) <= _MOST_MASKED_ROWS
        # Rows of a file that the log has twice would find two vectors, and come once for each.
        places = {data_path(snapshot.table, path) for path in files["path"].to_pylist()}
        if not fits or len(counts) < masked.num_rows or len(places) < files.num_rows:
            found.append("deletionVectors")
    if '"delta.typeChanges"' in snapshot.metadata.schema_string and not _widens(snapshot.schema):
        found.append("typeWidening")
    return found


def _widens(schema: TableSchema) -> bool:
    """Whether every change of a type is one of the protocol, which Spark's reader can follow."""
    for _, field in walk(schema):
        for change in field.metadata.get(TYPE_CHANGES, ()):
            try:
                pair = (
                    type_from_json_value(change["fromType"]),
                    type_from_json_value(change["toType"]),
                )
            except (KeyError, TypeError, ValueError):
                return False
            if not (is_widening(*pair) or shares_int32(*pair)):
                return False
    return True


def _nests_void(schema: TableSchema) -> bool:
    """Whether a struct has a field of type void."""
    return any(len(path) > 1 and each.data_type == _VOID for path, each in walk(schema))


def _way(spark: SparkSession, snapshot: Snapshot, files: pa.Table) -> str:
    way = snapshot.conf.read(store_keys.READ_PATH).strip().lower()
    if way not in _PATHS:
        raise DeltaAnalysisError(
            f"the conf {_PATH_CONF} must be one of {', '.join(_PATHS)}, not {way!r}",
            key=_PATH_CONF,
            value=way,
        )
    if snapshot.store.filesystem.type_name.endswith("memory"):
        return "driver"
    features = arrow_only_features(snapshot, files)
    if features and way == "native":
        raise UnsupportedFeatureError(
            f"{snapshot.table} uses {', '.join(features)} in a way that Spark's own Parquet reader "
            f"does not support: set {_PATH_CONF} to auto or arrow, or read with Snapshot.to_arrow",
            table=snapshot.table,
            version=snapshot.version,
            features=features,
            access="read",
        )
    if features:
        return "arrow"
    if way == "auto" and spark_version(spark) < _READS_VOID and _nests_void(snapshot.schema):
        return "arrow"
    scheme = scheme_of(snapshot.table)
    if way == "auto" and scheme in _HADOOPS_OWN:
        return "native"
    if way == "auto" and scheme in _lacking.get(spark, ()):
        return "arrow"
    # Spark's reader knows the session's settings of the storage, not those of one table or read,
    # and not what a catalog vends.
    return "arrow" if way == "auto" and own_storage(spark, snapshot.store.conf) else way


def _remember(spark: SparkSession, table: str) -> None:
    """Stop trying the session's Hadoop for the scheme, and warn once."""
    scheme = scheme_of(table)
    _lacking.setdefault(spark, set()).add(scheme)
    connector = _CONNECTORS.get(scheme)
    advice = f"For Spark's own reader, which is faster, install {connector}. " if connector else ""
    logger.warning(
        "Spark's Hadoop can't open %s://, so tables there are read by pyarrow on the "
        "executors, which need it. %sTo choose this without the warning, set %s=arrow.",
        scheme,
        advice,
        _PATH_CONF,
    )
