"""How a table's metadata wants data files: their columns, folders and statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lakelog.core.column_mapping import read_schema_of
from lakelog.core.data_files import add_files, add_files_at, write_plan
from lakelog.core.properties import TableProperties
from lakelog.core.schema import StructType
from lakelog.core.schema_rules import without_void
from lakelog.core.stats import StatsConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyarrow.fs import FileSystem

    from lakelog.core.actions import AddFile, Metadata
    from lakelog.core.executor_writer import WritePlan
    from lakelog.logstores import LogStore

__all__ = ["FileLayout"]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What whoever writes files of a table must know of its metadata."""

    schema: StructType
    """The columns that files can hold: without void ones. The metadata of column mapping stands
    in its fields only where the table maps columns."""
    partition_columns: tuple[str, ...]
    stats: StatsConfig | None
    """Which columns get statistics; `None` for no statistics at all."""
    options: Mapping[str, Any]
    """What the properties say of `WritePlan`."""

    @classmethod
    def of(cls, metadata: Metadata, conf: Mapping[str, str] | None = None) -> FileLayout:
        """What the metadata says.

        Args:
            metadata: as the table has it when the files become part of it.
            conf: the session's.

        Raises:
            ValueError: the table maps columns, and one has no id or no physical name.
        """
        properties = TableProperties(metadata.configuration)
        mode = properties.column_mapping_mode
        schema = read_schema_of(StructType.from_json(metadata.schema_string), mode)
        options: dict[str, Any] = {}
        if mode != "none" or properties.randomize_file_prefixes:
            options["prefix_length"] = properties.random_prefix_length
        return cls(
            without_void(schema),
            tuple(metadata.partition_columns),
            StatsConfig.of(properties, conf),
            options,
        )

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
        """`data_files.add_files` for files of this table."""
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
        """`data_files.add_files_at` for files of this table."""
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
