"""Writes: what a write may and replaces, how files of rows are laid out, and what is said of them.

`TableWrite` is a `WriteRequest` in a transaction: it settles the table's schema, partitioning and
properties, says which files the new ones replace, and what history shows.
`OptimisticTransaction.changes.file_layout` is the `FileLayout` of a table as the commit will have
it; its `plan` is a `WritePlan`, by which `write_batches` writes here and `write_in_arrow` on
executors that have pyarrow and no lakelog (`PICKLED_BY_VALUE`). Its `add_files` makes the actions
of what they return, statistics included. Rows must have the table's types: `cast_batch` casts what
loses nothing, and raises `SchemaMismatchError` else. Hand the files to `AttemptFiles`, which
deletes them where the commit fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.arrow.arrow_casts import cast_batch
    from lakelog.core.data.change_files import CHANGE_TYPE, change_layout
    from lakelog.core.data.file_layout import FileLayout
    from lakelog.core.data.file_writer import write_plan
    from lakelog.core.data.identity_bounds import IdentityBounds
    from lakelog.core.data.partition_errors import partition_errors
    from lakelog.core.data.write_conf import (
        file_settings,
        overwrites_dynamically,
        parquet_codec,
        rows_per_file,
    )
    from lakelog.core.dml.table_write import SaveMode, TableWrite, WriteRequest
    from lakelog.core.maintain.optimize.run_settings import byte_size
    from lakelog.core.portable.arrival import check_arrived
    from lakelog.core.portable.hive_writer import (
        PICKLED_BY_VALUE,
        RESULT_DDL,
        WritePlan,
        write_batches,
        write_in_arrow,
    )
    from lakelog.core.portable.interval_text import interval_text, interval_value
    from lakelog.core.portable.made_files import delete_made, drop_folder, make_folder, refuse_link
    from lakelog.core.portable.partition_text import (
        PartitionValueError,
        has_room,
        partition_folder,
        partition_texts,
        random_folder,
    )
    from lakelog.core.portable.syncing import sync_files
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "arrow.arrow_casts": "cast_batch",
            "data.change_files": "CHANGE_TYPE change_layout",
            "data.identity_bounds": "IdentityBounds",
            "data.file_layout": "FileLayout",
            "data.partition_errors": "partition_errors",
            "data.write_conf": ("file_settings overwrites_dynamically parquet_codec rows_per_file"),
            "data.file_writer": "write_plan",
            "dml.table_write": "SaveMode TableWrite WriteRequest",
            "maintain.optimize.run_settings": "byte_size",
            "portable.arrival": "check_arrived",
            "portable.interval_text": "interval_text interval_value",
            "portable.made_files": "delete_made drop_folder make_folder refuse_link",
            "portable.partition_text": (
                "PartitionValueError has_room partition_folder partition_texts random_folder"
            ),
            "portable.syncing": "sync_files",
            "portable.hive_writer": (
                "PICKLED_BY_VALUE RESULT_DDL WritePlan write_batches write_in_arrow"
            ),
        },
        below="lakelog.core",
    )
