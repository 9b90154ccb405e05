"""Rows in any form that callers have, converted to an Arrow table."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union

import pyarrow as pa

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.input.unfit_values import checked_columns, typed_table, unfit_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from lakelog.core.schema import StructType


class SupportsArrow(Protocol):
    """What can export itself to Arrow: a table, batch or reader of pyarrow, a DataFrame of pandas
    or Polars, a relation of DuckDB.

    pyarrow's classes are not named in what may be given, because they have no types without
    stubs, and what may be anything has no type at all.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class SupportsArrowArray(Protocol):
    """What can export itself as one batch: a struct array of nanoarrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> object: ...


class ArrowBatch(SupportsArrow, Protocol):
    """A batch or a table of pyarrow."""

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        ...

    def to_pylist(self) -> list[dict[str, Any]]:
        """Its rows."""
        ...


class ArrowDataset(Protocol):
    """A dataset of pyarrow."""

    def get_fragments(self, condition: Any = None, /) -> Any:
        """Its files."""
        ...


class PolarsQuery(Protocol):
    """A LazyFrame of Polars, which is run a batch at a time."""

    def collect_schema(self) -> Any:
        """Its columns."""
        ...

    def collect(self, *args: Any, **kwargs: Any) -> Any:
        """Its rows."""
        ...


GivenRows: TypeAlias = Union[
    SupportsArrow,
    SupportsArrowArray,
    ArrowDataset,
    "Mapping[str, Any]",
    # One list, so that a type checker knows what the rows written in it are meant to be.
    "Sequence[Mapping[str, Any] | ArrowBatch]",
    "Iterator[ArrowBatch]",
    PolarsQuery,
]
"""Arrow data, datasets of pyarrow, generators of batches, `{"id": [1, 2]}`, `[{"id": 1}]`, or what
can export itself to Arrow; queries of Polars too."""

_INDEX = re.compile(r"__index_level_\d+__")
_OPTIONS = {
    "mergeschema": "schema_mode='merge'",
    "overwriteschema": "schema_mode='overwrite'",
    "partitionby": "partition_by=[…]",
    "replacewhere": "replace_where='…'",
    "predicate": "replace_where='…'",
    "partitionoverwritemode": "partition_overwrite_mode='dynamic'",
    "usermetadata": "user_metadata='…'",
    "txnappid": "app_id='…', app_version=…",
    "txnversion": "app_id='…', app_version=…",
    "configuration": "properties={…}",
    "tblproperties": "properties={…}",
    "storageoptions": "conf={…}",
    "options": "conf={…}",
    "savemode": "mode='…'",
    "format": "nothing: it writes Delta tables alone",
    "compression": "conf={'spark.sql.parquet.compression.codec': '…'}",
}
"""Argument names of Spark and deltalake, in lower case without underscores -> ours."""


def arrow_table(given: GivenRows, schema: StructType | None = None) -> pa.Table:
    """The rows as a table.

    Args:
        given: the rows.
        schema: of rows that are Python's; `None`: types follow from the values.

    Raises:
        DeltaAnalysisError: the value has no rows, or rows that Arrow can't hold; or a schema for
            rows that have one.
    """
    data: Any = given  # anything else is refused below
    if schema is not None:
        return typed_table(data, schema)
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    try:
        if isinstance(data, Mapping):
            return _columns(checked_columns(data))
        if hasattr(data, "__arrow_c_stream__"):
            return _columns(data)
        if _is_rows(data):
            names = dict.fromkeys(name for row in data for name in row)
            return _columns({name: [row.get(name) for row in data] for name in names})
        if hasattr(data, "__arrow_c_array__"):
            return pa.Table.from_batches([pa.record_batch(data)])
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as exc:
        raise DeltaAnalysisError(
            f"the data can't be converted to an Arrow table: {unfit_value(data) or exc}"
        ) from exc
    raise DeltaAnalysisError(
        "the data must be a pyarrow Table, RecordBatch, RecordBatchReader or Dataset, a generator "
        "of batches, a DataFrame of pandas or Polars, a dict of columns or a list of dicts, not "
        f"{type(data).__name__}"
    )


def arrow_stream(given: GivenRows) -> pa.RecordBatchReader | None:
    """The rows as a stream, where that is what was given; `None` where they are in memory.

    Raises:
        DeltaAnalysisError: it can't be exported to Arrow.
    """
    data: Any = given  # anything else is for `arrow_table`
    if isinstance(data, pa.RecordBatchReader):
        return data
    if _is_polars(data, "LazyFrame"):
        return _collected(data)
    if isinstance(data, pa.Table | pa.RecordBatch | Mapping) or _is_pandas(data):
        return None
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    if _is_polars(data, "DataFrame"):
        _refuse_objects(data.schema)
    try:
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise DeltaAnalysisError(
            f"the data can't be converted to an Arrow table: {_unknown_column(data) or exc}"
        ) from exc


def _collected(frame: Any) -> pa.RecordBatchReader:
    """A query of Polars, run a batch at a time."""
    kinds = frame.collect_schema()
    empty = sys.modules["polars"].DataFrame(schema=kinds)
    first = arrow_stream(empty)
    assert first is not None  # a DataFrame exports itself
    # Polars 1.33 and before has no batches.
    frames = frame.collect_batches() if hasattr(frame, "collect_batches") else [frame.collect()]
    batches = (batch for each in frames for batch in pa.RecordBatchReader.from_stream(each))
    return pa.RecordBatchReader.from_batches(first.schema, batches)


def _refuse_objects(kinds: Mapping[str, Any]) -> None:
    """Refuse columns whose export is the addresses of Python's objects."""
    for name, kind in kinds.items():
        if str(kind) == "Object":
            raise DeltaAnalysisError(
                f"the column {name} holds Python's objects (Polars' type Object), which are no "
                "values of a table: make a column of one type of them, or leave it out",
                column=name,
                type=str(kind),
            )


def _unknown_column(data: Any) -> str | None:
    """Which column of a frame of Polars Arrow does not know, as text."""
    if not _is_polars(data, "DataFrame"):
        return None
    for name, kind in data.schema.items():
        try:
            pa.RecordBatchReader.from_stream(data.select(name))
        except (pa.ArrowException, ValueError):
            return f"the column {name} is of Polars' type {kind}, which Arrow has not; cast it"
    return None


def refuse_options(function: str, given: Collection[str], names: Collection[str]) -> None:
    """Refuse arguments that a function does not have, and name the ones to use instead.

    Args:
        function: its name.
        given: the names of the arguments.
        names: those that it has.

    Raises:
        TypeError: there is one.
    """
    for name in given:
        bare = name.replace("_", "").lower()
        meant = _OPTIONS.get(bare) or next(
            (each for each in names if each.replace("_", "") == bare), None
        )
        hint = f"; here it is {meant}" if meant else f"; it has {', '.join(names)}"
        raise TypeError(f"{function}() takes no argument {name!r}{hint}")


def _is_rows(data: Any) -> bool:
    return (
        isinstance(data, Sequence)
        and bool(data)
        and all(isinstance(each, Mapping) for each in data)
    )


def _is_pandas(data: Any) -> bool:
    # Another thread may be importing it, as pyarrow does at its first array.
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    return frame is not None and isinstance(data, frame)


def _is_polars(data: Any, kind: str) -> bool:
    found = getattr(sys.modules.get("polars"), kind, None)
    return found is not None and isinstance(data, found)


def _columns(data: Any) -> pa.Table:
    frame = _is_pandas(data)
    table = _from_frame(data) if frame else without_index(pa.table(data))
    if frame or isinstance(data, Mapping):
        for name, column in zip(table.column_names, table.columns, strict=True):
            # Arrow's own data has a unit; of Python's objects it takes microseconds.
            if "timestamp[us" in str(column.type) and name in data:
                _refuse_nanoseconds(data[name], name)
    return table


def _from_frame(frame: Any) -> pa.Table:
    """A DataFrame of pandas, with its index where that has a name."""
    named = [name for name in frame.index.names if name is not None]
    if not named and frame.index.dtype.kind not in "iu":
        warnings.warn(
            f"the index of the DataFrame ({frame.index[:3].tolist()!r}, …) has no name and is not "
            "written: name it (frame.index.name = …) to write it as a column, or drop it by "
            "frame.reset_index(drop=True)",
            stacklevel=8,
        )
    for name in named:
        if name in frame.columns:
            raise ValueError(
                f"{name!r} is the name of a column and of the index; rename one of them, or leave "
                "the index out with reset_index(drop=True)"
            )
    return without_index(pa.Table.from_pandas(frame, preserve_index=bool(named)))


def _refuse_nanoseconds(given: Any, name: str) -> None:
    """Refuse a `pandas.Timestamp` that Arrow would cut to microseconds, at any depth."""
    if isinstance(given, pa.Array | pa.ChunkedArray) or getattr(given, "dtype", "O") != "O":
        return
    for each in given.values() if isinstance(given, Mapping) else given:
        if getattr(each, "nanosecond", 0) > 0:
            raise ValueError(
                f"column {name}: {each!r} has nanoseconds, which Delta's types would lose"
            )
        if isinstance(each, Mapping | list | tuple) or getattr(each, "ndim", 0) > 0:
            _refuse_nanoseconds(each, name)


def without_index(table: pa.Table) -> pa.Table:
    """Rows without the index column that pandas adds: it is a row's position, not a value."""
    kept = kept_columns(table.schema)
    return table if len(kept) == table.num_columns else table.select(kept)


def kept_columns(schema: pa.Schema) -> list[str]:
    """The names of the columns that `without_index` leaves."""
    return [name for name in schema.names if not _INDEX.fullmatch(name)]
