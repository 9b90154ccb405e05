"""DELETE and UPDATE: the rows of some files are taken out, others may take their place.

An engine reads the files that `OptimisticTransaction.reads.filter_file_table` gives, finds the
rows, and hands their places to `touched_rows` (or `touched_at`, as bitmaps; `touched_whole` where
all rows of files match). `RowRewrite` removes them, by deletion vectors or copies as the
table's properties say, takes the new rows of an UPDATE, writes the change data feed, and gives the
actions of the commit. Copies may run anywhere: `CopyTask` can be pickled. `change_few_rows` does
all of a `RowsPlan` in this process, or gives `None` where that is the engine's. Missing and damaged
files are `DataFileMissingError` and `DataFileError`; broken rules of the table
`ConstraintViolationError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from lakelog.core.dml.delete_update import RowsPlan, change_few_rows
    from lakelog.core.dml.file_copies import Copied, CopyTask, run_in_threads
    from lakelog.core.dml.matching_rows import matching_rows
    from lakelog.core.dml.merge.updated_columns import updated_columns
    from lakelog.core.dml.rewrite import RowRewrite
    from lakelog.core.dml.touched_files import (
        TouchedFile,
        can_evaluate,
        touched_at,
        touched_rows,
        touched_whole,
    )
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "dml.delete_update": "RowsPlan change_few_rows",
            "dml.file_copies": "Copied CopyTask run_in_threads",
            "dml.matching_rows": "matching_rows",
            "dml.merge.updated_columns": "updated_columns",
            "dml.rewrite": "RowRewrite",
            "dml.touched_files": ("TouchedFile can_evaluate touched_at touched_rows touched_whole"),
        },
        below="lakelog.core",
    )
