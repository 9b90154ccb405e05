"""Row ids: every row of a table has a number of its own, for as long as it lives.

A file carries the id of its first row (`baseRowId`) and the version that its rows come from
(`defaultRowCommitVersion`). Ids are assigned in the order of the log, from a high-water mark that
the table keeps as the metadata of a domain (PROTOCOL.md, "Row Tracking"). So they are assigned when
a commit is made, and again each time it loses a version to another one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from lakelog.core.actions import AddFile, DomainMetadata
from lakelog.core.errors import CorruptLogError, DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.features.terms import TableTerms

ROW_TRACKING_DOMAIN = "delta.rowTracking"
"""The domain whose metadata holds the high-water mark of row ids."""

BACKFILL = "ROW TRACKING BACKFILL"
"""The operation that gives ids to files from before the feature."""

UNBACKFILL = "ROW TRACKING UNBACKFILL"
"""The one that removes them again."""

PRESERVED = "delta.rowTracking.preserved"
"""The tag of a commit that says whether the rows it moved kept their ids."""

NO_MARK = -1
"""The high-water mark of a table that has assigned no id yet."""


def preservation_tags(terms: TableTerms, *, preserved: bool) -> dict[str, str]:
    """The tags of a commit that changes rows and leaves others as they are.

    Args:
        terms: the table's.
        preserved: whether every row that stays has the id that it had.
    """
    if not terms.is_row_tracking_enabled:
        return {}
    return {PRESERVED: str(preserved).lower()}


def high_water_mark(domains: Mapping[str, DomainMetadata], table: str) -> int:
    """The highest id that was ever assigned; `NO_MARK` for none.

    Raises:
        CorruptLogError: the domain's configuration is not what the protocol says.
    """
    domain = domains.get(ROW_TRACKING_DOMAIN)
    if domain is None or domain.removed:
        return NO_MARK
    try:
        mark = orjson.loads(domain.configuration)["rowIdHighWaterMark"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        mark = None
    if type(mark) is not int:
        raise CorruptLogError(
            f"{table}: the metadata of the domain {ROW_TRACKING_DOMAIN} is "
            f"{domain.configuration!r}, but should hold a whole number rowIdHighWaterMark. Row "
            "ids can't be assigned without it: restore the table to an earlier version.",
            table=table,
            domain=ROW_TRACKING_DOMAIN,
        )
    return mark


def mark_action(mark: int) -> DomainMetadata:
    """The action that records a high-water mark, in the words of delta-spark."""
    content = {"rowIdHighWaterMark": mark, "domainName": ROW_TRACKING_DOMAIN}
    return DomainMetadata(
        domain=ROW_TRACKING_DOMAIN, configuration=orjson.dumps(content).decode(), removed=False
    )


def with_row_ids(
    actions: Iterable[Action],
    mark: int,
    table: str,
    *,
    assigned_above: int | None = None,
    keep: Collection[str] = (),
) -> tuple[list[Action], int]:
    """Give ids to the added files that lack them.

    Args:
        actions: of one commit.
        mark: the high-water mark to continue from.
        table: for messages.
        assigned_above: ids above this one were assigned by an earlier attempt of the same commit,
            and are assigned again; `None` in the first attempt.
        keep: paths of files whose ids stay as they are.

    Returns:
        The actions, and the new high-water mark.

    Raises:
        DeltaAnalysisError: a file does not say how many rows it has.
    """
    out: list[Action] = []
    for action in actions:
        if isinstance(action, AddFile) and _lacks_id(action, assigned_above, keep):
            count = action.num_records
            if count is None:
                raise _no_count(action.path, table)
            action = replace(action, base_row_id=mark + 1)
            mark += count
        out.append(action)
    return out, mark


def _lacks_id(add: AddFile, assigned_above: int | None, keep: Collection[str]) -> bool:
    if add.base_row_id is None:
        return True
    return assigned_above is not None and add.base_row_id > assigned_above and add.path not in keep


def _no_count(path: str, table: str) -> DeltaAnalysisError:
    return DeltaAnalysisError(
        f"[DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS] {table}: cannot assign row IDs to {path} without "
        "row count statistics (numRecords in the add action's stats). Write the file with "
        "statistics, or collect them with delta-spark: ANALYZE TABLE … COMPUTE DELTA STATISTICS.",
        table=table,
        path=path,
    )


def with_versions(actions: Sequence[Action], version: int) -> list[Action]:
    """Give the version of the commit to the added files that have none."""
    return [
        replace(action, default_row_commit_version=version)
        if isinstance(action, AddFile) and action.default_row_commit_version is None
        else action
        for action in actions
    ]


def reassigned_versions(
    actions: Sequence[Action], lost: int, keep: Collection[str] = ()
) -> list[Action]:
    """The same once the version `lost` went to another writer: the next one is tried."""
    return [
        replace(action, default_row_commit_version=lost + 1)
        if isinstance(action, AddFile)
        and action.default_row_commit_version in (None, lost)
        and action.path not in keep
        else action
        for action in actions
    ]
