"""Scans: the files of a version, and how a row of them is read.

`ScanPlan` gives an engine with a reader of its own the paths, the partitions' values and the
deleted rows. `RowReader` reads a file as Arrow, in the table's types, whatever the file has: mapped
columns, widened types, missing columns; it can be pickled. A partition value that can't be read is
a `CorruptLogError`, a file that is gone a `DataFileMissingError`, a damaged vector a
`DataFileError`: no row is shown that may be deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.arrow.partition_casts import cast_text
    from lakelog.core.arrow.partitions import partition_schema_of, typed_partition_table
    from lakelog.core.data.ahead import read_ahead
    from lakelog.core.data.file_locations import DataPlaces
    from lakelog.core.data.file_reader import DataFile, DataStores, storage_root
    from lakelog.core.data.partition_keys import decode_partition_values, encode_partition_values
    from lakelog.core.data.readable_partitions import check_partition_values, readable_partitions
    from lakelog.core.data.row_reader import RowReader
    from lakelog.core.data.scan_plan import ScanPlan, rows_of_files
    from lakelog.core.deletion_vectors.stored_vectors import DeletionVector
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "arrow.partition_casts": "cast_text",
            "arrow.partitions": "partition_schema_of typed_partition_table",
            "data.ahead": "read_ahead",
            "data.file_locations": "DataPlaces",
            "data.file_reader": "DataFile DataStores storage_root",
            "data.partition_keys": "decode_partition_values encode_partition_values",
            "data.readable_partitions": "check_partition_values readable_partitions",
            "data.row_reader": "RowReader",
            "data.scan_plan": "ScanPlan rows_of_files",
            "deletion_vectors.stored_vectors": "DeletionVector",
        },
        below="lakelog.core",
    )
