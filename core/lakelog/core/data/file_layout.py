"""How a table's data files are written: their columns, folders and statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lakelog.core.data.file_writer import add_files, add_files_at, write_plan
from lakelog.core.data.write_conf import file_settings, parquet_codec
from lakelog.core.features.clustering import clustering_columns
from lakelog.core.schema.rules import without_void
from lakelog.core.stats.collect import StatsConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyarrow.fs import FileSystem

    from lakelog.core.actions import AddFile, DomainMetadata
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.portable.hive_writer import WritePlan
    from lakelog.core.schema import StructType
    from lakelog.logstores import LogStore

_IN_FILES_TOO = (
    "delta.enableMaterializePartitionColumnsFeature",
    "delta.writePartitionColumnsToParquet",
)
"""Properties by which files have the partition columns too."""
_CODEC = "delta.parquet.compression.codec"
"""The table's own setting takes precedence over the session's conf."""
_ROWS_ALONE = StatsConfig(num_indexed_cols=0)


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What a writer of data files needs from the table's metadata."""

    schema: StructType
    """The columns that files can hold: without void ones. Its fields carry the metadata of column
    mapping only where the table maps columns."""
    partition_columns: tuple[str, ...]
    stats: StatsConfig | None
    """Which columns get statistics; `None` for no statistics at all."""
    options: Mapping[str, Any]
    """What the properties and the conf say of `WritePlan`."""

    @classmethod
    def from_terms(
        cls,
        terms: TableTerms,
        conf: Mapping[str, str] | None = None,
        domains: Mapping[str, DomainMetadata] | None = None,
    ) -> FileLayout:
        """Read the layout from a table's terms.

        Args:
            terms: as the table has them when the files become part of it.
            conf: the session's.
            domains: the table's; columns that it is clustered by have statistics in any case.

        Raises:
            ValueError: the table maps columns, and one has no id or no physical name.
            DeltaAnalysisError: the conf, or the table's codec, has a value that is not valid for
                files.
        """
        metadata, properties, schema = terms.metadata, terms.properties, terms.read_schema
        options = file_settings(conf)
        if codec := metadata.configuration.get(_CODEC):
            options["compression"] = parquet_codec(codec, f"the table property {_CODEC}")
        if terms.column_mapping_mode != "none" or properties.randomize_file_prefixes:
            options["prefix_length"] = properties.random_prefix_length
        compat = terms.iceberg_compat is not None
        if compat or any(map(properties.get, _IN_FILES_TOO)):
            options["materialize_partitions"] = True
        stats, clustering = (
            StatsConfig.from_properties(properties, conf),
            clustering_columns(domains or {}),
        )
        if stats is None and (compat or clustering):
            stats = _ROWS_ALONE
        if stats is not None and clustering:
            stats = replace(stats, always=clustering)
        return cls(without_void(schema), tuple(metadata.partition_columns), stats, options)

    def plan(self, store: LogStore, table: str, **options: Any) -> WritePlan:
        """How files are written; `options` are other fields of `WritePlan`.

        Raises:
            DeltaAnalysisError: a type that Arrow can't write.
        """
        chosen = {**self.options, **options}
        return write_plan(store, table, self.schema, self.partition_columns, **chosen)

    def add_files(
        self,
        results: Iterable[Sequence[Any]],
        *,
        data_change: bool = True,
        on_footer: Callable[[Any], None] | None = None,
    ) -> list[AddFile]:
        """`writer.add_files` for files of this table."""
        return add_files(
            results,
            self.schema,
            self.partition_columns,
            stats=self.stats,
            data_change=data_change,
            on_footer=on_footer,
        )

    def add_files_at(
        self,
        filesystem: FileSystem,
        root: str,
        files: Sequence[tuple[str, Mapping[str, str | None]]],
        *,
        data_change: bool = True,
        on_footer: Callable[[Any], None] | None = None,
    ) -> list[AddFile]:
        """`writer.add_files_at` for files of this table."""
        return add_files_at(
            filesystem,
            root,
            files,
            self.schema,
            self.partition_columns,
            stats=self.stats,
            data_change=data_change,
            on_footer=on_footer,
        )
