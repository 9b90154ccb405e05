"""`format("lakelog")`: a Python Data Source, for SQL, temporary views and Connect.

Spark runs this in processes of its own, which have no session: what they need of the session's
conf is in the class that `register` makes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType as SparkStructType

from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType
from lakelog.spark._marked import marked
from lakelog.spark._option_names import check_option_names
from lakelog.spark._options import WriteOptions, chosen_columns
from lakelog.spark._scan import readable_schema
from lakelog.spark._session import with_storage
from lakelog.spark._source_reader import FilteringReader, SourceReader
from lakelog.spark._source_writer import SourceWriter
from lakelog.spark._time_travel import millis_in_zone, snapshot_of
from lakelog.spark._types import to_delta_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.datasource import DataSourceReader, DataSourceWriter

    from lakelog.core.snapshot import Snapshot

__all__ = ["LakelogSource"]

_WRITE = "lakelog.spark.write(df)"


class LakelogSource(DataSource):
    """One use of `format("lakelog")`; `register` makes a subclass with keys of the session."""

    conf: ClassVar[Mapping[str, str]] = {}
    filters: ClassVar[bool] = False
    """Whether the session lets Python sources see filters; a reader that wants them else fails."""

    @classmethod
    def name(cls) -> str:
        """`lakelog`."""
        return "lakelog"

    def schema(self) -> SparkStructType:
        """The table's columns, or those that the option `columns` names."""
        with marked():
            snapshot = self._snapshot()
            whole = readable_schema(snapshot.schema)
            return SparkStructType([whole[name] for name in self._columns(snapshot)])

    def reader(self, schema: SparkStructType) -> DataSourceReader:
        """Plan a read.

        Args:
            schema: what `schema` said, or what the caller gave: some of the table's columns.
        """
        with marked():
            snapshot = self._snapshot()
            wanted = StructType.from_json(schema.json())
            self._compare(snapshot, wanted)
            kind = FilteringReader if self.filters else SourceReader
            return kind(snapshot, schema)

    def writer(self, schema: SparkStructType, overwrite: bool) -> DataSourceWriter:
        """Plan a write.

        Args:
            schema: the schema of the rows.
            overwrite: mode `overwrite`; else `append`. Spark allows Python sources no others.
        """
        with marked():
            options = self._write_options("overwrite" if overwrite else "append")
            return SourceWriter(self._path(), to_delta_schema(schema), options, self._conf())

    def _path(self) -> str:
        path = self.options.get("path")
        if not path:
            raise DeltaAnalysisError(
                'format("lakelog") needs the path of a table: load(path), save(path), or '
                "OPTIONS (path '…') in SQL. Spark forgets the path of tables that were made with "
                "CREATE TABLE … USING lakelog; use CREATE TEMPORARY VIEW … USING lakelog"
            )
        return str(path)

    def _conf(self) -> dict[str, str]:
        return with_storage(self.conf, {key: str(value) for key, value in self.options.items()})

    def _snapshot(self) -> Snapshot:
        # Asked anew for each query: Spark keeps this object for as long as a view lives.
        options = {key.lower(): str(value) for key, value in self.options.items()}
        check_option_names(options)
        zone = self.conf.get("spark.sql.session.timeZone", "UTC")
        return snapshot_of(
            self._path(), options, self._conf(), lambda text: millis_in_zone(text, zone)
        )

    def _columns(self, snapshot: Snapshot) -> list[str]:
        text = str(self.options.get("columns") or "")
        return chosen_columns(snapshot.schema, text, snapshot.table) or snapshot.schema.names

    def _compare(self, snapshot: Snapshot, wanted: StructType) -> None:
        table = to_delta_schema(readable_schema(snapshot.schema))
        for field in wanted:
            found = table.get(field.name)
            if found is None or str(found.data_type) != str(field.data_type):
                kind = "does not exist" if found is None else f"is {found.data_type}"
                raise DeltaAnalysisError(
                    f"the column {field.name} is to be read as {field.data_type}, but in "
                    f"{snapshot.table} it {kind}. Leave out schema(…)",
                    column=field.name,
                )

    def _write_options(self, mode: str) -> WriteOptions:
        given = {k: str(v) for k, v in self.options.items() if k.lower() not in _NOT_FOR_WRITES}
        named = str(self.options.get("partitionBy") or "")
        partition_by = [each.strip() for each in named.split(",") if each.strip()]
        options = WriteOptions.of(
            "overwrite" if mode == "overwrite" else "append",
            partition_by or None,
            given,
            DeltaConf.of(self.conf),
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


_NOT_FOR_WRITES = {"path", "partitionby", "columns"}
