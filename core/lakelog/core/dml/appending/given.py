"""Rows as they are given, brought to the columns of their table as soon as they come."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from lakelog.core.arrow.arrow_casts import cast_table
from lakelog.core.arrow.arrow_types import from_arrow_schema
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.features.identity_columns import missing_identities
from lakelog.core.input.given_rows import arrow_table
from lakelog.core.input.row_source import RowSource
from lakelog.core.input.unfit_values import checked_columns, typed_table
from lakelog.core.schema import StructField, StructType
from lakelog.core.schema.column_fills import is_filled
from lakelog.core.schema.column_mapping import NAME_KEY, physical_name, renamed_since
from lakelog.core.schema.column_paths import map_types
from lakelog.core.schema.rules import check_unique
from lakelog.core.schema.schema_evolution import check_write_compatible, merge_schemas

if TYPE_CHECKING:
    from lakelog.core.input.given_rows import GivenRows
    from lakelog.core.schema import DataType
    from lakelog.core.state.snapshot import Snapshot


class Fitted(NamedTuple):
    """Rows, and the table as it was when they came."""

    rows: pa.Table
    schema: StructType
    """The table's `read_schema`, of the columns of the rows at least."""

    def under(self, now: StructType) -> pa.Table:
        """The rows as the table has their columns by now: under their names, days as times perhaps.

        Args:
            now: its `read_schema`.

        Raises:
            SchemaMismatchError: a column was dropped, and another one has its name.
            DeltaAnalysisError: columns can't be told apart.
        """
        if self.schema == now:
            return self.rows
        own = from_arrow_schema(self.rows.schema)
        found = renamed_since(own, self.schema, now)
        if found == own:
            return self.rows
        check_unique(found)
        rows = cast_table(self.rows, own)
        return cast_table(rows, found, purpose="read", match=lambda _, target: list(target))


def filled_columns(schema: StructType) -> set[str]:
    """The columns that are not null where rows lack them."""
    return {each.name for each in schema if is_filled(each)}


def have_same_columns(one: StructType, other: StructType) -> bool:
    """Whether rows that came for one schema of a table may go with rows that came for another."""
    if one == other:
        return True
    same = map_types(one, _as_named) == map_types(other, _as_named)
    return same and filled_columns(one) == filled_columns(other)


def _as_named(kind: DataType) -> DataType:
    """A struct with no more than what says which columns it has."""
    if not isinstance(kind, StructType):
        return kind
    return StructType(
        tuple(replace(each, metadata={NAME_KEY: physical_name(each)}) for each in kind)
    )


_OTHER_TIMES: Final = re.compile(r"timestamp\[(s|ms|ns)\b")
_NO_COLUMNS: Final = "the rows have no columns: give each a value of one column at least"


def fitted_rows(
    given: GivenRows, snapshot: Snapshot, *, merges: bool, sifts: bool
) -> tuple[Fitted, list[tuple[Mapping[str, Any], DeltaAnalysisError]]]:
    """Rows with the names and types of their table, as far as it has them.

    Args:
        given: the rows; a stream is held as a whole.
        snapshot: of the table.
        merges: whether they may have columns that it does not have.
        sifts: whether rows that don't fit are given back.

    Returns:
        The rows that fit, and those that don't, with the reason.

    Raises:
        DeltaAnalysisError: rows don't fit, and are not sifted; or they are no rows.
    """
    table, unfit = _sifted_rows(given, snapshot, merges=merges, sifts=sifts)
    return Fitted(table, snapshot.read_schema), unfit


def _sifted_rows(
    given: GivenRows, snapshot: Snapshot, *, merges: bool, sifts: bool
) -> tuple[pa.Table, list[tuple[Mapping[str, Any], DeltaAnalysisError]]]:
    data: Any = given
    if not _is_python(data):
        return _owned(_fitted_arrow(given, snapshot, merges)), []
    try:
        table = _typed(data, snapshot, merges)
        return (_owned(table) if isinstance(data, Mapping) else table), []
    except DeltaAnalysisError:
        if not sifts:
            raise
    if isinstance(data, Mapping):
        data = arrow_rows(data)
    fitting: list[pa.Table] = []
    unfit: list[tuple[Mapping[str, Any], DeltaAnalysisError]] = []
    parts = [list(data)]
    while parts:
        part = parts.pop()
        try:
            fitting.append(_typed(part, snapshot, merges))
        except DeltaAnalysisError as exc:
            if len(part) == 1:
                unfit.append((part[0], exc))
                continue
            half = len(part) // 2
            parts += [part[half:], part[:half]]
    return pa.concat_tables(fitting or [pa.table({})], promote_options="permissive"), unfit


def arrow_rows(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A dict of columns as rows.

    Raises:
        DeltaAnalysisError: they are no lists, or not of one length.
    """
    lists = {name: list(each) for name, each in checked_columns(columns).items()}
    if len({len(each) for each in lists.values()}) > 1:
        raise DeltaAnalysisError("the columns are not of one length")
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _is_python(data: Any) -> bool:
    if isinstance(data, Mapping):
        return True
    return isinstance(data, Sequence) and all(isinstance(each, Mapping) for each in data)


def _owned(rows: pa.Table) -> pa.Table:
    """A copy: arrays of NumPy and frames of pandas may be written over while their rows wait."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        return reader.read_all()


def _typed(data: Any, snapshot: Snapshot, merges: bool) -> pa.Table:
    """Rows of Python with the table's types; of columns that it lacks, with their own."""
    schema = snapshot.schema
    rows = data if isinstance(data, Mapping) else None
    names = list(dict.fromkeys(rows or (name for row in data for name in row)))
    if data and not names:
        # A row of no values is one of nulls, which takes a column that nothing else fills.
        names = [field.name for field in schema if not is_filled(field)][:1]
        if not names:
            raise DeltaAnalysisError(_NO_COLUMNS)
    found = {name: schema.get(name) if isinstance(name, str) else None for name in names}
    others = [name for name in names if found[name] is None]
    if others and not merges:
        raise DeltaAnalysisError(
            f"the rows have {others[0]!r}, which the table does not have; it has "
            f"{', '.join(schema.names)}. schema_mode='merge' adds columns.",
            column=str(others[0]),
        )
    columns = rows or {name: [row.get(name) for row in data] for name in names}
    kept = [name for name in names if found[name] is not None]
    fields = tuple(StructField(n, f.data_type) for n in kept if (f := found[n]) is not None)
    _refuse_numbered(snapshot, kept)
    table = typed_table({name: columns[name] for name in kept}, StructType(fields))
    table = table.rename_columns([f.name for n in kept if (f := found[n]) is not None])
    if others:
        new = arrow_table({name: columns[name] for name in others})
        new = _in_microseconds(new, from_arrow_schema(new.schema))
        if kept and new.num_rows != table.num_rows:
            raise DeltaAnalysisError("the columns are not of one length")
        for name in others:
            table = table.append_column(new.schema.field(name), new.column(name))
    check_unique(from_arrow_schema(table.schema))
    return table


def _fitted_arrow(given: GivenRows, snapshot: Snapshot, merges: bool) -> pa.Table:
    """Rows that have types, checked against the table's."""
    source = RowSource(given)
    data, schema = from_arrow_schema(source.schema), snapshot.schema
    tables = list(source.tables())
    if not source.schema.names and any(each.num_rows for each in tables):
        raise DeltaAnalysisError(_NO_COLUMNS)
    check_unique(data)
    if merges:
        widens = snapshot.properties.type_widening
        schema = merge_schemas(schema, data, allow_type_widening=widens)
    check_write_compatible(schema, data)
    _refuse_numbered(snapshot, data.names)
    names = [field.name if (field := schema.get(n)) else n for n in source.schema.names]
    return _in_microseconds(pa.concat_tables(tables).rename_columns(names), schema)


def _refuse_numbered(snapshot: Snapshot, names: Sequence[str]) -> None:
    """Refuse columns that the table numbers itself, whatever rows have in them."""
    fields = (snapshot.schema.get(name) for name in names)
    given = StructType(tuple(each for each in fields if each is not None))
    missing_identities(snapshot.schema, given, snapshot.table)


def _in_microseconds(rows: pa.Table, schema: StructType) -> pa.Table:
    """The rows with all times in the table's unit, which those that are finer don't fit."""
    for at, field in enumerate(rows.schema):
        own = schema.get(field.name)
        if own is not None and _OTHER_TIMES.search(str(field.type)):
            kind = StructType((StructField(own.name, own.data_type),))
            column = cast_table(rows.select([at]), kind)
            rows = rows.set_column(at, column.schema.field(0), column.column(0))
    return rows
