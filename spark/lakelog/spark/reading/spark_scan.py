"""A snapshot's files as a DataFrame, read by Spark's own vectorised Parquet reader.

The file list comes from the log, never from listing folders. Spark still asks the storage for
the status of each path; the confs for that are set for the duration of the call (`_listing`).

Columns are read under the names that the files have (column mapping) and shown under the table's;
rows of deletion vectors are left out by their positions (`vectors`).
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegralType, NullType, StringType, StructField, StructType

from lakelog.core.engine.scan import DataPlaces
from lakelog.core.engine.schemas import check_known, limit_of, physical_schema, with_current_marks
from lakelog.core.engine.values import pc
from lakelog.core.errors import DataFileMissingError
from lakelog.spark.reading.layout import HiveLayout, Layout, LooseLayout, layouts, without_fractions
from lakelog.spark.reading.many_paths import parquet_of
from lakelog.spark.reading.row_positions import (
    FILE,
    METADATA,
    METADATA_TYPE,
    ROW,
    SIZE,
    with_places,
)
from lakelog.spark.reading.vectors import without_deleted
from lakelog.spark.session.session import is_connect
from lakelog.spark.session.temporary_confs import temporary_confs
from lakelog.spark.types.path_forms import file_path_uri, glob_escaped, hadoop_path, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession

    from lakelog.core.schema import StructType as TableSchema
    from lakelog.spark.reading.vectors import Vectors

_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_PARALLELISM = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
_DRIVER_LISTS_UP_TO = 4096
"""Files of an object store, each a request. The driver always checks local files itself."""
_LISTING_TASKS = "32"
_MOST_TRANSLATIONS = 256
"""A map literal is searched from its start for every row."""
_MOST_BRANCHES = 16
"""Branches of a union are planned one by one, at some 20 ms each."""
_METADATA = {FILE: "file_path", ROW: "row_index", SIZE: "file_size"}
"""Where Spark's Parquet reader has the hidden columns, in `METADATA`."""


def readable_schema(schema: TableSchema, *, nulls: bool = False) -> StructType:
    """The schema that a read gives.

    Metadata of columns (comments) is kept; what Delta itself stores there (`delta.*`) is not.

    Args:
        schema: the table's.
        nulls: keep what it says of nulls; else all is nullable, as Spark's file sources promise no
            more.

    Raises:
        DeltaAnalysisError: a column of a type that is not known.
    """
    check_known(schema)
    flags = ("nullable", "containsNull", "valueContainsNull")
    fixed: dict[str, bool] = {} if nulls else dict.fromkeys(flags, True)
    marked = with_current_marks(schema)
    return StructType.fromJson(_readable(json.loads(marked.to_json()), fixed))


def _readable(value: Any, fixed: Mapping[str, bool]) -> Any:
    if isinstance(value, list):
        return [_readable(v, fixed) for v in value]
    if not isinstance(value, dict):
        return value
    out = {
        k: fixed[k] if k in fixed else _readable(v, fixed)
        for k, v in value.items()
        if k != "metadata"
    }
    if "metadata" in value:
        kept = value["metadata"].items()
        out["metadata"] = {k: v for k, v in kept if not k.startswith("delta.")}
    return out


def read_only(df: DataFrame) -> DataFrame:
    """The same rows, by a plan that Spark does not write to.

    INSERT goes through a temporary view to the files below it, past the log: INSERT OVERWRITE would
    put a folder in the place of the only file. Where an operator is on top, Spark refuses. The
    optimiser takes this one out again; an alias would be passed by.
    """
    return df.where("true")


class SparkScan:
    """One read of a set of files of one version."""

    def __init__(
        self,
        spark: SparkSession,
        *,
        table: str,
        version: int,
        schema: TableSchema,
        partition_columns: Sequence[str],
        files: pa.Table,
        vectors: Vectors | None = None,
        positions: bool = False,
        metadata: bool = False,
    ) -> None:
        """Remember what to read; Spark is not called yet.

        Args:
            spark: a session, classic or Connect.
            table: the table's URI.
            version: the version that is read, for error messages.
            schema: the table's schema, with the metadata of column mapping where the table uses
                it by names.
            partition_columns: their names, in the order of the partitioning.
            files: rows of `FILE_SCHEMA`, of a table without any of `arrow_only_features`: this
                reader does not look.
            vectors: `read_vectors` of those files that have a deletion vector.
            positions: whether rows come with `FILE` and `ROW`.
            metadata: whether `METADATA` comes after these.
        """
        self._spark = spark
        self._table = table
        self._version = version
        self._schema = readable_schema(schema)
        stored = readable_schema(physical_schema(with_current_marks(schema)))
        self._stored = stored.names
        of_partitions = {stored.names[self._schema.names.index(c)] for c in partition_columns}
        names = [stored.names[self._schema.names.index(c)] for c in partition_columns]
        self._partitions = [stored[name] for name in names]
        # No file has a column of type void, and Spark before 4.1 refuses to look for one.
        self._data = StructType(
            [
                f
                for f in stored.fields
                if f.name not in of_partitions and not isinstance(f.dataType, NullType)
            ]
        )
        DataPlaces(table).resolve(files["path"].to_pylist())
        whole = [f.name for f in self._partitions if isinstance(f.dataType, IntegralType)]
        self._files = without_fractions(files, whole)
        self._vectors = vectors
        self._shown = (FILE, ROW) if positions else ()
        if metadata:
            self._shown = (*self._shown, METADATA)
        self._hidden: tuple[str, ...] = ()

    def to_df(self) -> DataFrame:
        """Plan the read.

        Raises:
            DataFileMissingError: the log names a file that the storage does not have.
        """
        if not self._files.num_rows:
            shown = self._schema
            if self._shown:
                shown = with_places(shown, metadata=METADATA in self._shown)
            return read_only(self._spark.createDataFrame([], shown))
        # Apart: the join that takes deleted rows out costs the files without a vector nothing.
        masked = self._files["deletion_vector"].is_valid()
        with temporary_confs(self._spark, self._listing()):
            try:
                df = self._frame(self._files.filter(pc.invert(masked)), None)
                rest = self._frame(self._files.filter(masked), self._vectors)
                df = rest if df is None else df if rest is None else df.union(rest)
                assert df is not None  # there are files
                if is_connect(self._spark):
                    # Planned later, the files would be listed again, and by a Spark job.
                    _ = df.schema
            except AnalysisException as exc:
                raise self._translated(exc) from exc
        return df

    def _frame(self, files: pa.Table, vectors: Vectors | None) -> DataFrame | None:
        """The rows of some files, without those of their vectors; `None` without files."""
        if not files.num_rows:
            return None
        self._hidden = self._shown
        if vectors is not None:
            needed = (FILE, ROW, SIZE) if vectors.by_size else (FILE, ROW)
            self._hidden = tuple(dict.fromkeys((*self._shown, *needed)))
        names = [f.name for f in self._partitions]
        found = layouts(self._table, files, names, self._stored)
        frames = [frame for layout in found for frame in self._read(layout, files)]
        df = functools.reduce(lambda a, b: a.union(b), frames)
        if vectors is None:
            return df
        added = [name for name in self._hidden if name not in self._shown]
        return without_deleted(self._spark, df, vectors).drop(*added)

    def _listing(self) -> dict[str, str]:
        """Confs under which Spark looks at the paths without a job of one task for each.

        Measured for 1000 local files: 4.4 s by Spark's default, 0.2 s by the driver itself.
        """
        count = self._files.num_rows
        if self._table.startswith("/") or count <= _DRIVER_LISTS_UP_TO:
            return {_THRESHOLD: "1000000"}
        return {_PARALLELISM: _LISTING_TASKS}

    def _translated(self, exc: AnalysisException) -> Exception:
        if exc.getCondition() != "PATH_NOT_FOUND":
            return exc
        path = (exc.getMessageParameters() or {}).get("path", "")
        path = path.replace("\\", "").removeprefix("file:")
        return DataFileMissingError(
            f"version {self._version} of {self._table} has the data file {path}, which does not "
            "exist. Restore the file, or read a version without it; if VACUUM deleted it, that "
            "version can no longer be read",
            path=path,
            table=self._table,
            version=self._version,
        )

    def _read(self, layout: Layout, files: pa.Table) -> list[DataFrame]:
        if isinstance(layout, HiveLayout):
            most = max(len(layout.translations(f.name)) for f in self._partitions)
            if most <= _MOST_TRANSLATIONS:
                return [self._read_hive(layout)]
            layout = self._loosened(layout, files)
        if not self._partitions:
            return [self._shaped(self._opened(self._reader(self._data), layout.files), [])]
        groups: dict[tuple[str | None, ...], list[str]] = {}
        for path, values in zip(layout.files, layout.values, strict=True):
            groups.setdefault(values, []).append(path)
        if len(groups) > _MOST_BRANCHES:
            return [self._read_joined(layout)]
        return [self._read_literal(paths, values) for values, paths in groups.items()]

    def _loosened(self, layout: HiveLayout, files: pa.Table) -> LooseLayout:
        from lakelog.core.engine.tables import data_path

        names = [f.name for f in self._partitions]
        wanted, loose = set(layout.files), LooseLayout()
        columns = (files.column(c).to_pylist() for c in ("path", "partition_values"))
        for path, entries in zip(*columns, strict=True):
            full, known = data_path(self._table, path), dict(entries or ())
            if full in wanted:
                loose.files.append(full)
                loose.values.append(tuple(known.get(n) or None for n in names))
        return loose

    def _reader(self, schema: StructType) -> DataFrameReader:
        # Files without a mark of their writer are other Delta clients', which count days and
        # micros by the proleptic calendar; Spark's own confs may say otherwise.
        return (
            self._spark.read.schema(schema)
            .option("datetimeRebaseMode", "CORRECTED")
            .option("int96RebaseMode", "CORRECTED")
        )

    def _opened(self, reader: DataFrameReader, paths: Sequence[str]) -> DataFrame:
        """Some files; with the hidden columns that are needed."""
        df = parquet_of(self._spark, reader, _spark_paths(paths))
        if not self._hidden:
            return df
        known = df.metadataColumn(METADATA)
        # Taken here, below what renames columns: Spark Connect does not find it from above.
        whole = sf.struct(*(known[name].alias(name) for name in METADATA_TYPE.names))
        columns = {name: known[field] for name, field in _METADATA.items()} | {METADATA: whole}
        return df.select("*", *(columns[name].alias(name) for name in self._hidden))

    def _read_hive(self, layout: HiveLayout) -> DataFrame:
        """Let Spark parse the folders, as texts, so that it prunes; cast the texts ourselves."""
        keys = [StructField(k, StringType()) for k in layout.keys]
        reader = self._reader(StructType([*self._data.fields, *keys]))
        reader = reader.option("basePath", hadoop_path(self._table))
        df = self._opened(reader, layout.files)
        texts: list[Column] = []
        for field in self._partitions:
            text = sf.col(quoted(field.name))
            if layout.translations(field.name):
                text = _translate(text, layout.texts[field.name])
            texts.append(text)
        return self._shaped(df, texts)

    def _read_literal(self, paths: list[str], values: tuple[str | None, ...]) -> DataFrame:
        """Attach one set of values as literals, which Catalyst folds and prunes by."""
        df = self._opened(self._reader(self._data), paths)
        return self._shaped(df, [sf.lit(v).cast("string") for v in values])

    def _read_joined(self, layout: LooseLayout) -> DataFrame:
        """Attach values by the path of each row's file."""
        import pyarrow as pa

        uris = [file_path_uri(p) for p in layout.files]
        names = [f"__lakelog_{i}" for i in range(len(self._partitions))]
        columns = [pa.array(c, pa.string()) for c in zip(*layout.values, strict=True)]
        known = pa.table([pa.array(uris, pa.string()), *columns], ["__lakelog_known", *names])
        before, self._hidden = self._hidden, self._hidden or (FILE,)
        df = self._opened(self._reader(self._data), layout.files)
        self._hidden = before
        right = sf.broadcast(self._spark.createDataFrame(known))
        on = sf.col(FILE) == sf.col("__lakelog_known")
        # A left join: rows of a path that is spelled differently must not vanish.
        stray = sf.raise_error(
            sf.concat(sf.lit("lakelog: no partition values for "), sf.col(FILE))
        ).cast("string")
        known_file = sf.col("__lakelog_known").isNotNull()
        texts = [sf.when(known_file, sf.col(n)).otherwise(stray) for n in names]
        return self._shaped(df.join(right, on, "left"), texts)

    def _shaped(self, df: DataFrame, texts: Iterable[Column]) -> DataFrame:
        """The table's columns in order, by its names; partition columns from their texts."""
        types = [field.dataType for field in self._schema]
        if not self._partitions and [field.dataType for field in self._data] == types:
            # A `Column` for each would cost a classic session some ten calls of the JVM.
            names = self._schema.names
            if self._stored != names:
                return df.toDF(*names, *self._hidden)
            return df if self._hidden else read_only(df)
        ready = {field.name: text for field, text in zip(self._partitions, texts, strict=True)}
        columns = [
            self._column(stored, field, ready.get(stored))
            for stored, field in zip(self._stored, self._schema.fields, strict=True)
        ]
        return df.select(*columns, *self._hidden)

    def _column(self, stored: str, field: StructField, text: Column | None) -> Column:
        if text is not None:
            column = text.cast(field.dataType)
            limit = limit_of(field)
            if limit is not None and limit.pads:
                # Spark does so for columns of files alone.
                column = sf.rpad(column, limit.length, " ")
            return column.alias(field.name, metadata=field.metadata)
        if isinstance(field.dataType, NullType):
            return sf.lit(None).alias(field.name, metadata=field.metadata)
        column = sf.col(quoted(stored))
        if self._data[stored].dataType != field.dataType:
            # Structs have other names in the files; Spark casts them by position.
            column = column.cast(field.dataType)
        elif stored == field.name:
            return column
        return column.alias(field.name, metadata=field.metadata)


def _spark_paths(paths: Iterable[str]) -> list[str]:
    return [glob_escaped(hadoop_path(p)) for p in paths]


def _translate(text: Column, texts: dict[str | None, str | None]) -> Column:
    pairs = [sf.lit(t) for key, value in texts.items() if key is not None for t in (key, value)]
    null = sf.lit(texts.get(None)).cast("string")
    known = sf.try_element_at(sf.create_map(*pairs), text) if pairs else null
    return sf.when(text.isNull(), null).otherwise(known)
