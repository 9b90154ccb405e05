"""The columns that the keys of an assignment name, found as Spark finds them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema import StructType
from lakelog.core.schema.column_paths import dotted, find_column, walk
from lakelog.core.schema.edits import column_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.schema import DataType, StructField


def find_named(
    key: str, schema: StructType, alias: str | None = None
) -> tuple[tuple[str, ...], DataType] | None:
    """The column or field that a key names, in the schema's spelling, and its type.

    Args:
        key: `a`, `a.b`, `` `odd name` ``, or one of these after the table's alias, which goes
            before a column of that name.
        schema: the table's.
        alias: what the statement calls the table.

    Raises:
        DeltaAnalysisError: the key is not a path.
    """
    path = column_path(key)
    if alias is not None and len(path) > 1 and path[0].lower() == alias.lower():
        found = find_column(path[1:], schema)
        if found is not None:
            return found
    return find_column(path, schema)


def struct_field(path: Iterable[str], schema: StructType) -> StructField | None:
    """The field at a path of the schema's own spelling, below structs only."""
    found: StructField | None = None
    inside: DataType = schema
    for name in path:
        found = inside.get(name) if isinstance(inside, StructType) else None
        if found is None:
            return None
        inside = found.data_type
    return found


def check_unambiguous(source: StructType) -> None:
    """Refuse a source with two columns of one name: no expression could tell them apart.

    Raises:
        DeltaAnalysisError: names them.
    """
    seen: dict[str, str] = {}
    for name in source.names:
        before = seen.setdefault(name.lower(), name)
        if before is not name:
            raise DeltaAnalysisError(
                f"[AMBIGUOUS_REFERENCE] the source has two columns that differ at most by upper "
                f"and lower case, {dotted([before])} and {dotted([name])}. Rename one of them.",
                column=name,
            )


def unresolved(key: str, what: str, *schemas: StructType) -> DeltaAnalysisError:
    """The error for a name that none of some schemas has: the known ones, and the nearest.

    Args:
        key: the name.
        what: where it stands: `UPDATE clause` of a MERGE, or `UPDATE`.
        schemas: of the tables that it could be a column of.
    """
    known = [dotted(p) for s in schemas for p, _ in walk(s, containers=False)]
    spelled = {each.lower(): each for each in known}
    near = difflib.get_close_matches(key.lower(), spelled, n=1)
    hint = f"; did you mean {spelled[near[0]]}?" if near else "."
    condition = "DELTA_MERGE_UNRESOLVED_EXPRESSION"
    if what == "UPDATE":
        # Which Spark resolves, and not Delta.
        condition = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
    return DeltaAnalysisError(
        f"[{condition}] Cannot resolve {key} in {what} given columns {', '.join(known)}{hint}",
        column=key,
        known=known,
    )
