"""DELETE and UPDATE: the rows of some files are taken out, others may take their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.engine import offers

if TYPE_CHECKING:
    from lakelog.core.dml.delete_update import RowsPlan, change_few_rows
    from lakelog.core.dml.file_copies import Copied, CopyTask, run_in_threads
    from lakelog.core.dml.matching_rows import matching_rows
    from lakelog.core.dml.merge.positions import mask_of
    from lakelog.core.dml.merge.update import updated_columns
    from lakelog.core.dml.rewrite import RowRewrite
    from lakelog.core.dml.touched_files import (
        TouchedFile,
        can_evaluate,
        empty_mask,
        touched_at,
        touched_whole,
    )
else:
    __getattr__ = offers(
        __name__,
        {
            "lakelog.core.dml.delete_update": "RowsPlan change_few_rows",
            "lakelog.core.dml.file_copies": "Copied CopyTask run_in_threads",
            "lakelog.core.dml.matching_rows": "matching_rows",
            "lakelog.core.dml.merge.positions": "mask_of",
            "lakelog.core.dml.merge.update": "updated_columns",
            "lakelog.core.dml.rewrite": "RowRewrite",
            "lakelog.core.dml.touched_files": (
                "TouchedFile can_evaluate empty_mask touched_at touched_whole"
            ),
        },
    )
