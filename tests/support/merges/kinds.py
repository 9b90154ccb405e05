"""The kinds of tables that the generated MERGEs change, and the rows that these begin with.

Each has `id INT, name STRING, n BIGINT, x DOUBLE`, and something of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core import DeltaLog, create_table, delete_rows, write_arrow
from lakelog.core.input.given_types import schema_from
from lakelog.core.schema import (
    PrimitiveType,
    StructField,
    StructType,
    column_with_default,
    generated_column,
    identity_column,
)

if TYPE_CHECKING:
    from pathlib import Path

BASE: Final = "id INT, name STRING, n BIGINT, x DOUBLE"
_COLUMNS: Final = schema_from(BASE)
_VECTORS: Final = {"delta.enableDeletionVectors": "true"}
_FEED: Final = {"delta.enableChangeDataFeed": "true"}


@dataclass(frozen=True, slots=True)
class Kind:
    """A table that a MERGE changes."""

    name: str
    extra: tuple[StructField, ...] = ()
    """Its columns after those that each kind has."""
    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    own: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Column -> SQL texts of values, for those of the extra columns that rows are given."""
    masked: bool = False
    """Whether a row of the table is hidden by a deletion vector before."""

    @property
    def schema(self) -> StructType:
        """Its columns."""
        return StructType((*_COLUMNS, *self.extra))

    def lay_out(self, path: Path, files: list[list[dict[str, Any]]]) -> None:
        """Make the table, with these rows in each of its files."""
        create_table(
            str(path), self.schema, partition_by=self.partition_by, properties=self.properties
        )
        for rows in files:
            if rows:
                write_arrow(str(path), arrow(rows, self.given()), mode="append")
        if self.masked:
            delete_rows(DeltaLog.for_table(str(path)), "id = 3")

    def given(self) -> StructType:
        """The columns that rows are given."""
        own = {f.name for f in self.extra if f.name in self.own}
        base = {f.name for f in _COLUMNS}
        return StructType(tuple(f for f in self.schema if f.name in own | base))


def arrow(rows: list[dict[str, Any]], schema: StructType) -> pa.Table:
    """Rows as Arrow."""
    from lakelog.core.arrow.arrow_types import to_arrow_schema

    return pa.Table.from_pylist(rows, to_arrow_schema(schema))


def _field(ddl: str) -> StructField:
    return next(iter(schema_from(ddl)))


_CHECKS: Final = {
    "delta.constraints.positive": "n >= 0 OR n IS NULL",
    "delta.constraints.named": "name IS NULL OR name <> 'bad'",
}
_NESTED: Final = (
    _field("s STRUCT<a: INT, b: STRING, c: STRUCT<d: INT>>"),
    _field("l ARRAY<STRUCT<e: INT>>"),
    _field("m MAP<STRING, INT>"),
)
_TYPES: Final = tuple(
    map(_field, ("d DECIMAL(10,2)", "day DATE", "ts TIMESTAMP", "b BOOLEAN", "by TINYINT"))
)

KINDS: Final = {
    each.name: each
    for each in (
        Kind("plain"),
        Kind("partitioned", (_field("p STRING"),), ("p",), own={"p": ("a", "b c", "d/e=f", "")}),
        Kind("vectors", properties=_VECTORS, masked=True),
        Kind("feed", properties=_FEED),
        Kind("feed_vectors", properties={**_FEED, **_VECTORS}, masked=True),
        Kind(
            "feed_partitioned",
            (_field("p INT"),),
            ("p",),
            properties=_FEED,
            own={"p": ("1", "2")},
        ),
        Kind(
            "mapped",
            (_field("`odd name` STRING"),),
            properties={"delta.columnMapping.mode": "name"},
            own={"odd name": ("o", "é")},
        ),
        Kind("mapped_by_id", properties={"delta.columnMapping.mode": "id", **_VECTORS}),
        Kind("tracked", properties={"delta.enableRowTracking": "true"}),
        Kind(
            "generated",
            (generated_column("g", PrimitiveType("long"), "n * 2"),),
        ),
        Kind("identity", (identity_column("no", start=10, step=5),)),
        Kind("identity_by_default", (identity_column("no", by_default=True),)),
        Kind(
            "defaults",
            (column_with_default("c", PrimitiveType("string"), "'unset'"),),
            properties={"delta.feature.allowColumnDefaults": "supported"},
            own={"c": ("set",)},
        ),
        Kind("checked", properties=_CHECKS),
        Kind(
            "not_null",
            (StructField("must", PrimitiveType("integer"), False),),
            own={"must": ("7",)},
        ),
        Kind("nested", _NESTED, own={"s": (), "l": (), "m": ()}),
        Kind("types", _TYPES, own={f.name: () for f in _TYPES}),
        Kind("append_only", properties={"delta.appendOnly": "true"}),
    )
}
