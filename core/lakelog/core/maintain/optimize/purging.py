"""REORG ... APPLY (PURGE): files with rows or columns that the table no longer has."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lakelog.core.arrays import array_of
from lakelog.core.compute import pc
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.maintain.optimize.plan import packed
from lakelog.core.metadata.row_tracking_rules import materialized_names
from lakelog.core.schema import StructType
from lakelog.core.schema.column_mapping import physical_schema
from lakelog.logstores.threads import REQUESTS, at_once

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from lakelog.core.actions import AddFile
    from lakelog.core.data.file_reader import DataFile
    from lakelog.core.maintain.optimize.ordering import RowOrder
    from lakelog.core.maintain.optimize.plan import Bin
    from lakelog.core.maintain.optimize.run_settings import OptimizeSettings
    from lakelog.core.state.snapshot import Snapshot


class Purge:
    """Files with deleted rows or dropped columns are rewritten, small ones together."""

    def __init__(self, snapshot: Snapshot, settings: OptimizeSettings) -> None:
        """Take the version and the limits."""
        self._snapshot = snapshot
        self._settings = settings
        self.order: RowOrder | None = None

    def outputs(self, size: int) -> int:
        """One file, whatever the size."""
        del size
        return 1

    def candidates(self, files: pa.Table) -> pa.Table:
        """Those with a deletion vector, and by their footers those with other columns.

        Raises:
            DataFileMissingError: the storage does not have a file.
        """
        import pyarrow as pa

        masked = pc.is_valid(files["deletion_vector"])
        if self._snapshot.properties.column_mapping_mode == "none" or not files.num_rows:
            return files.filter(masked)  # without a mapping no column can be dropped
        reader = TableFileReader(self._snapshot, StructType(()))
        known, places = _leaves(self._snapshot), reader.find(files)
        has_more = partial(_has_more, reader, known)
        more = at_once(has_more, places, REQUESTS, "lakelog-purge")
        return files.filter(pc.or_(masked, array_of(more, pa.bool_())))

    def bins(self, files: Sequence[AddFile]) -> Iterator[Sequence[AddFile]]:
        """All of them, up to the target's size together."""
        yield from packed(sorted(files, key=lambda file: file.size), self._settings.target_size)

    def stats(self, considered: pa.Table, done: Sequence[Bin]) -> dict[str, Any]:
        """Nothing besides what every kind counts."""
        del considered, done
        return {}

    def tagged(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """As they are."""
        return [replace(add) for add in adds]


def _leaves(snapshot: Snapshot) -> frozenset[str]:
    """The paths of the leaves that files of the table may have, as Parquet writes them."""
    import pyarrow as pa

    from lakelog.core.arrow.arrow_types import to_arrow_schema

    schema = to_arrow_schema(physical_schema(snapshot.read_schema))
    for name in materialized_names(snapshot.metadata) or ():
        schema = schema.append(pa.field(name, pa.int64()))
    return frozenset(_paths(schema))


def _paths(fields: Iterable[pa.Field[Any]], above: str = "") -> Iterator[str]:
    """The struct fields at any depth; how lists and maps are spelled on the way does not count."""
    import pyarrow as pa

    for each in fields:
        path = f"{above}{each.name}\0"
        yield path
        kinds = [each.type]
        while kinds:
            kind = kinds.pop()
            if pa.types.is_struct(kind):
                yield from _paths(kind, path)
            elif pa.types.is_map(kind):
                kinds += [kind.key_type, kind.item_type]
            elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
                kinds.append(kind.value_type)


def _has_more(reader: TableFileReader, known: frozenset[str], place: DataFile) -> bool:
    return not known.issuperset(_paths(reader.file_schema(place)))
