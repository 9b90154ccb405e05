"""What the change data feed forbids in a table's schema, and in one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.actions import AddCDCFile, AddFile, RemoveFile
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.schema.column_mapping import physical_path
from lakelog.core.schema.column_paths import dotted, walk
from lakelog.core.schema.columns_before import lossy_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.features.table_properties import TableProperties
    from lakelog.core.features.terms import TableTerms
    from lakelog.core.schema import StructType

CDC_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns that the change data feed adds to a table's own."""


def perform_cdc_metadata_check(
    old: TableProperties | None, new: TableProperties, names: Sequence[str]
) -> None:
    """Refuse a table with a change data feed whose own columns have the feed's names.

    Args:
        old: the table's properties as they are; `None` for a new table.
        new: as they will be.
        names: of the table's columns, as they will be.

    Raises:
        DeltaAnalysisError: names the columns, and whether to rename them before the feed is
            enabled, or not to add them.
    """
    if not new.change_data_feed:
        return
    taken = [name for name in names if name.lower() in CDC_COLUMNS]
    if not taken:
        return
    columns = ", ".join(taken)
    if old is not None and old.change_data_feed:
        text = (
            f"[RESERVED_CDC_COLUMNS_ON_WRITE] The columns {columns} have names that the change "
            "data feed of this table uses for its own columns. Rename them, or set "
            "delta.enableChangeDataFeed to false."
        )
    else:
        text = (
            "[DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS] The change data feed can't be enabled: "
            f"it uses the names of the columns {columns} for its own. Rename or drop them first."
        )
    raise DeltaAnalysisError(text, columns=taken)


def check_mapping_with_cdc(
    old: TableTerms, new: TableTerms, actions: Iterable[Action], operation: str
) -> None:
    """Refuse to change files and names of columns in one commit while there is a feed.

    The change data of that version would have to be read with two schemas.

    Args:
        old: those of the table as it is.
        new: those after the commit.
        actions: of the commit.
        operation: its name.

    Raises:
        DeltaAnalysisError: it does both.
    """
    if old.metadata is new.metadata or not new.properties.change_data_feed:
        return
    if new.column_mapping_mode == "none":
        return
    changes = _changes_of_names(old, new)
    if not changes or not any(isinstance(a, AddFile | RemoveFile | AddCDCFile) for a in actions):
        return
    raise DeltaAnalysisError(
        f'[DELTA_BLOCK_COLUMN_MAPPING_AND_CDC_OPERATION] Operation "{operation}" is not allowed: '
        f"the table has a change data feed, and the commit both changes files and {changes}. "
        "Change the schema in a separate commit.",
        operation=operation,
    )


def check_removed_rows_fit(
    old: TableTerms, new: TableTerms, actions: Iterable[Action], operation: str
) -> None:
    """Refuse to remove rows that the change data feed could not show in the new columns.

    Args:
        old: terms of the table as it is.
        new: those after the commit.
        actions: of the commit.
        operation: its name.

    Raises:
        DeltaAnalysisError: names the columns that have other types then.
    """
    if old.metadata.schema_string == new.metadata.schema_string:
        return
    if not new.properties.change_data_feed:
        return
    lossy = lossy_columns(new.read_schema, old.read_schema)
    if not lossy:
        return
    actions = [*actions]
    if any(isinstance(each, AddCDCFile) for each in actions):
        return
    if any(isinstance(each, RemoveFile) and each.data_change for each in actions):
        raise DeltaAnalysisError(
            "[DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE] Operation "
            f'"{operation}" is not allowed: the table has a change data feed, and the commit both '
            f"removes rows and changes the type of {', '.join(lossy)}, which would not hold all "
            "their values, so the feed could not show the removed values. Remove the rows in a "
            "commit of its own first (DELETE without a condition), then do this again; or let the "
            "table be without the feed from then on (delta.enableChangeDataFeed=false). Nothing "
            "was committed.",
            operation=operation,
            columns=lossy,
        )


def _changes_of_names(old: TableTerms, new: TableTerms) -> str:
    """What happens to the columns' names, in words; empty where nothing does."""
    if old.column_mapping_mode == "none":
        return "enables column mapping"
    before, after = _logical_names(old.schema), _logical_names(new.schema)
    dropped = sorted(dotted(before[path]) for path in before.keys() - after.keys())
    if dropped:
        return f"drops {', '.join(dropped)}"
    renamed = sorted(dotted(p) for key, p in before.items() if after[key] != p)
    return f"renames {', '.join(renamed)}" if renamed else ""


def _logical_names(schema: StructType) -> dict[tuple[str, ...], tuple[str, ...]]:
    return {physical_path(schema, path): path for path, _ in walk(schema, containers=False)}
