"""`format("lakelog")`: a Python Data Source, for SQL, temporary views and Connect.

Spark runs this in processes of its own, which have no session: what they need from the session's
conf is in the class that `register` makes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, ClassVar

from pyspark.errors import PySparkNotImplementedError
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType as SparkStructType

from lakelog.core import DeltaConf, DeltaLog
from lakelog.core.engine.streams import StreamOptions, change_schema, stream_snapshot
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType
from lakelog.spark.format.source_reader import FilteringReader, SourceReader
from lakelog.spark.format.source_writer import SourceWriter
from lakelog.spark.format.stream_on_driver import (
    CAN_READ_ON_DRIVER,
    driver_reader,
    wants_driver,
)
from lakelog.spark.format.stream_source import stream_reader
from lakelog.spark.reading.read_options import chosen_columns, wants_changes
from lakelog.spark.reading.spark_scan import readable_schema
from lakelog.spark.reading.time_travel import millis_in_zone, names_older_state, snapshot_of
from lakelog.spark.session.option_names import check_option_names
from lakelog.spark.session.session import with_storage
from lakelog.spark.types.spark_types import to_delta_schema
from lakelog.spark.workers.marked_errors import marked
from lakelog.spark.writing.options import WriteOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceWriter,
        SimpleDataSourceStreamReader,
    )

    from lakelog.core import Snapshot

_WRITE = "lakelog.spark.write(df)"


class LakelogSource(DataSource):
    """One use of `format("lakelog")`; `register` makes a subclass with keys of the session."""

    conf: ClassVar[Mapping[str, str]] = {}
    traceparent: ClassVar[str | None] = None
    """The session's span when it was registered, for those of this source's commits."""
    filters: ClassVar[bool] = False
    """Whether the session pushes filters down to Python sources; otherwise such a reader fails."""

    @classmethod
    def name(cls) -> str:
        """`lakelog`."""
        return "lakelog"

    def schema(self) -> SparkStructType:
        """The table's columns, or those that the option `columns` names."""
        with marked():
            snapshot = self._snapshot(or_changes=True)
            whole = self._all_columns(snapshot)
            text = str(self.options.get("columns") or "")
            names = chosen_columns(whole, text, snapshot.table) or whole.names
            spark = readable_schema(whole)
            return SparkStructType([spark[name] for name in names])

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        """Plan a read.

        Args:
            schema: the result of `schema`, or what the caller gave: some of the table's columns.
        """
        with marked():
            snapshot = self._snapshot()
            wanted = StructType.from_json(schema.json())
            self._compare(snapshot, wanted)
            kind = FilteringReader if self.filters else SourceReader
            return kind(snapshot, schema)

    def streamReader(self, schema: SparkStructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's
        """Plan a streaming read.

        Args:
            schema: see `reader`.

        Raises:
            PySparkNotImplementedError: the stream asks for `simpleStreamReader`.
        """
        with marked():
            on_driver = CAN_READ_ON_DRIVER and wants_driver(self._lowered())
        if on_driver:
            raise PySparkNotImplementedError(
                errorClass="NOT_IMPLEMENTED", messageParameters={"feature": "streamReader"}
            )
        return self._stream_reader(schema)

    def simpleStreamReader(self, schema: SparkStructType) -> SimpleDataSourceStreamReader:  # noqa: N802  # PySpark's
        """Plan a streaming read whose rows the driver reads.

        Args:
            schema: see `reader`.
        """
        return driver_reader(functools.partial(self._stream_reader, schema))

    def _stream_reader(self, schema: SparkStructType) -> DataSourceStreamReader:
        with marked():
            options = self._lowered()
            check_option_names(options)
            for name in _OF_STATES:
                if name.lower() in options:
                    raise DeltaAnalysisError(
                        "[DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS] Cannot time travel streams: "
                        f"{name} reads one version, and a stream goes on from one to the next. "
                        "Use startingVersion or startingTimestamp.",
                        option=name,
                    )
            log = DeltaLog.for_table(self._path(), self._conf())
            wanted = StreamOptions.from_options(options, self._millis)
            snapshot = stream_snapshot(log, wanted)
            self._compare(snapshot, StructType.from_json(schema.json()))
            self._check_complete(schema)
            return stream_reader(log, wanted, schema, changes=wants_changes(options))

    def writer(self, schema: SparkStructType, overwrite: bool) -> DataSourceWriter:
        """Plan a write.

        Args:
            schema: the schema of the rows.
            overwrite: mode `overwrite`; else `append`. Spark allows Python sources no others.
        """
        with marked():
            self._refuse_older()
            options = self._write_options("overwrite" if overwrite else "append")
            rows = to_delta_schema(schema)
            return SourceWriter(self._path(), rows, options, self._conf(), self.traceparent)

    def _refuse_older(self) -> None:
        """Refuse to write by way of a view of an older version."""
        options, path = self._lowered(), self._path()
        older = [name for name in _OF_STATES if name.lower() in options]
        if older or names_older_state(path, self._conf()):
            raise DeltaAnalysisError(
                "[DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION] Expect a full scan of the latest "
                f"version of the Delta source: {' and '.join(older) or path} names an older one, "
                "and a write makes the newest. Write to the table itself",
                table=path,
            )

    def _lowered(self) -> dict[str, str]:
        return {key.lower(): str(value) for key, value in self.options.items()}

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise DeltaAnalysisError(
                'format("lakelog") needs the path of a table: load(path), save(path), or '
                "OPTIONS (path '…') in SQL. Spark does not keep the path of tables created with "
                "CREATE TABLE … USING lakelog; use CREATE TEMPORARY VIEW … USING lakelog"
            )
        return str(path)

    def _conf(self) -> dict[str, str]:
        return with_storage(self.conf, {key: str(value) for key, value in self.options.items()})

    def _snapshot(self, *, or_changes: bool = False) -> Snapshot:
        """The version to read; `or_changes`: or the newest, where it is changes that are read."""
        # Asked again for each query: Spark keeps this object for as long as a view lives.
        options = self._lowered()
        check_option_names(options)
        if or_changes and (wants_changes(options) or _tracks(options)):
            wanted = StreamOptions.from_options(options, self._millis)
            return stream_snapshot(DeltaLog.for_table(self._path(), self._conf()), wanted)
        return snapshot_of(self._path(), options, self._conf(), self._millis)

    def _millis(self, text: str) -> int:
        return millis_in_zone(text, self.conf.get("spark.sql.session.timeZone", "UTC"))

    def _all_columns(self, snapshot: Snapshot) -> StructType:
        """All columns that a read may have."""
        options = self._lowered()
        return change_schema(snapshot) if wants_changes(options) else snapshot.schema

    def _compare(self, snapshot: Snapshot, wanted: StructType) -> None:
        table = to_delta_schema(readable_schema(self._all_columns(snapshot)))
        for field in wanted:
            found = table.get(field.name)
            if found is None or str(found.data_type) != str(field.data_type):
                kind = "does not exist" if found is None else f"is {found.data_type}"
                raise DeltaAnalysisError(
                    f"the column {field.name} was requested as {field.data_type}, but in "
                    f"{snapshot.table} it {kind}. Leave out schema(…)",
                    column=field.name,
                )

    def _check_complete(self, schema: SparkStructType) -> None:
        """Refuse a stream whose DataFrame was made before the table got further columns."""
        missing = [name for name in self.schema().names if name not in schema.names]
        if missing:
            raise DeltaAnalysisError(
                "[DELTA_STREAMING_SCHEMA_MISMATCH_ON_RESTART] The streaming query's schema does "
                f"not match the current table schema: {self._path()} has the columns "
                f"{', '.join(missing)} as well. Make the streaming DataFrame again, by load(path); "
                "to leave columns out, name the others with the option columns.",
                columns=missing,
            )

    def _write_options(self, mode: str) -> WriteOptions:
        given = {k: str(v) for k, v in self.options.items() if k.lower() not in _NOT_FOR_WRITES}
        named = str(self.options.get("partitionBy") or "")
        partition_by = [each.strip() for each in named.split(",") if each.strip()]
        options = WriteOptions.from_options(
            "overwrite" if mode == "overwrite" else "append",
            partition_by or None,
            given,
            DeltaConf.from_mapping(self.conf),
        )
        for name, asked in (
            ("replaceWhere", options.replace_where),
            ("partitionOverwriteMode=dynamic", options.dynamic_overwrite),
        ):
            if asked:
                raise DeltaAnalysisError(
                    f'format("lakelog") can\'t do {name}: use '
                    f'{_WRITE}.mode("overwrite").option(…).save(path)',
                    option=name,
                )
        return options


def _tracks(options: Mapping[str, str]) -> bool:
    return any(options.get(name) for name in ("schematrackinglocation", "schemalocation"))


_OF_STATES = ("versionAsOf", "timestampAsOf")
_NOT_FOR_WRITES = {"path", "partitionby", "columns"}
