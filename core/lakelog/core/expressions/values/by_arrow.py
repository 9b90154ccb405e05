"""What an expression of pyarrow gives for rows."""

from __future__ import annotations

import functools
import pickle
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from lakelog.core.expressions.tree import Computed

_ROW = "\0row"


def arrow_mask(condition: Computed, batch: pa.RecordBatch) -> Any:
    """The condition for each row: true, false or null.

    Raises:
        DeltaAnalysisError: a row for which it has no result.
    """
    assert condition.arrow is not None
    try:
        return arrow_value(_expression(condition.arrow), pa.Table.from_batches([batch]))
    except pa.ArrowException as exc:
        raise DeltaAnalysisError(
            f"the condition {condition.sql} has no result for some row: {exc}", sql=condition.sql
        ) from exc


def arrow_value(expression: Any, rows: pa.Table) -> Any:
    """What an expression of pyarrow gives for each row, as one array.

    Raises:
        pa.ArrowException: it does not fit the rows, or has no result for one.
    """
    import pyarrow.dataset

    dataset: Any = pyarrow.dataset
    # One column more keeps the number of rows where the expression names none.
    numbered = rows.append_column(_ROW, pa.nulls(rows.num_rows))
    wanted = {"value": expression, _ROW: dataset.field(_ROW)}
    scanner = dataset.dataset(numbered).scanner(columns=wanted, use_threads=False)
    found = scanner.to_table().column("value").combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found


@functools.lru_cache(maxsize=64)
def _expression(pickled: bytes) -> Any:
    return pickle.loads(pickled)  # our own bytes, from this process or its driver
