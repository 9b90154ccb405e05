"""The operations that Delta names in a commit: their parameters and metrics.

Readers of history (delta-spark's `DESCRIBE HISTORY`, dashboards, audits) know these names. Names
that are not here are allowed; of them nothing is known, and nothing is changed.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class OperationKind(NamedTuple):
    """What is known of an operation by its name."""

    texts: tuple[str, ...] = ()
    """The parameters whose value is JSON *text*: a list of columns, a schema."""
    metrics: tuple[str, ...] = ()
    """The metrics that a commit may report; others are left out, as Delta does."""
    changes_data: bool = False
    """Whether it changes rows, whatever its actions say."""
    repartitions: bool = False
    """Whether it may give a table that exists other partition columns."""
    nulls: tuple[str, ...] = ()
    """The parameters that are written as null where they are not set."""


_WRITE: Final = (
    *("numFiles", "numOutputBytes", "numOutputRows", "numRemovedFiles", "numRemovedBytes"),
    *("numAddedChangeFiles", "numDeletedRows", "numCopiedRows"),
)
_REWRITE: Final = (
    *("numAddedFiles", "numRemovedFiles", "numDeletionVectorsAdded", "numDeletionVectorsRemoved"),
    *("numDeletionVectorsUpdated", "numAddedChangeFiles", "numCopiedRows", "executionTimeMs"),
    *("scanTimeMs", "rewriteTimeMs", "numRemovedBytes", "numAddedBytes"),
)
_MERGE: Final = (
    *("numSourceRows", "numTargetRowsInserted", "numTargetRowsUpdated"),
    *("numTargetRowsMatchedUpdated", "numTargetRowsNotMatchedBySourceUpdated"),
    *("numTargetRowsDeleted", "numTargetRowsMatchedDeleted"),
    *("numTargetRowsNotMatchedBySourceDeleted", "numTargetRowsCopied", "numTargetBytesAdded"),
    *("numTargetBytesRemoved", "numOutputRows", "numTargetFilesAdded", "numTargetFilesRemoved"),
    *("numTargetChangeFilesAdded", "executionTimeMs", "materializeSourceTimeMs", "scanTimeMs"),
    *("rewriteTimeMs", "numTargetDeletionVectorsAdded", "numTargetDeletionVectorsRemoved"),
    "numTargetDeletionVectorsUpdated",
)
_OPTIMIZE: Final = (
    *("numAddedFiles", "numRemovedFiles", "numAddedBytes", "numRemovedBytes", "minFileSize"),
    *("p25FileSize", "p50FileSize", "p75FileSize", "maxFileSize", "numDeletionVectorsRemoved"),
)
_RESTORE: Final = (
    *("tableSizeAfterRestore", "numOfFilesAfterRestore", "numRemovedFiles", "numRestoredFiles"),
    *("removedFilesSize", "restoredFilesSize"),
)
_CLONE: Final = (
    *("sourceTableSize", "sourceNumOfFiles", "numRemovedFiles", "numCopiedFiles"),
    *("removedFilesSize", "copiedFilesSize"),
)
_UNMAP: Final = (
    *("numRewrittenFiles", "numOutputBytes", "numRemovedBytes", "numCopiedRows"),
    "numDeletionVectorsRemoved",
)
_MERGE_TEXTS: Final = (
    *("predicate", "matchedPredicates", "notMatchedPredicates"),
    "notMatchedBySourcePredicates",
)
_TABLE_TEXTS: Final = ("partitionBy", "clusterBy", "properties")


def _table(*, selects: bool) -> OperationKind:
    metrics = _WRITE if selects else ()
    return OperationKind(_TABLE_TEXTS, metrics, selects, True, ("description",))


def _replace(*, selects: bool) -> OperationKind:
    return _table(selects=selects)._replace(changes_data=True)


KINDS: Final[dict[str, OperationKind]] = {
    "ADD COLUMNS": OperationKind(("columns",)),
    "ADD CONSTRAINT": OperationKind(),
    "CHANGE COLUMN": OperationKind(("column",)),
    "CHANGE COLUMNS": OperationKind(("columns",)),
    "CLONE": OperationKind((), _CLONE, True, True),
    "CLUSTER BY": OperationKind(),
    "COMPUTE STATS": OperationKind(("predicate",)),
    "CONVERT": OperationKind(("partitionedBy",), ("numConvertedFiles",), True),
    "CREATE OR REPLACE TABLE": _replace(selects=False),
    "CREATE OR REPLACE TABLE AS SELECT": _replace(selects=True),
    "CREATE TABLE": _table(selects=False),
    "CREATE TABLE AS SELECT": _table(selects=True),
    "DELETE": OperationKind(("predicate",), (*_REWRITE, "numDeletedRows"), True),
    "DOMAIN METADATA CLEANUP": OperationKind(),
    "DROP COLUMNS": OperationKind(("columns",)),
    "DROP CONSTRAINT": OperationKind(),
    "DROP FEATURE": OperationKind(),
    "Deletion Vector Tombstones": OperationKind(),
    "Empty Commit": OperationKind(),
    "MERGE": OperationKind(_MERGE_TEXTS, _MERGE, True),
    "Manual Update": OperationKind(repartitions=True),
    "OPTIMIZE": OperationKind(("predicate", "zOrderBy", "clusterBy"), _OPTIMIZE),
    "OPTIMIZE CHECKPOINT": OperationKind(),
    "REMOVE COLUMN MAPPING": OperationKind((), _UNMAP),
    "RENAME COLUMN": OperationKind(repartitions=True),
    "REORG": OperationKind(("predicate",), _OPTIMIZE),
    "REORG TABLE UPGRADE UNIFORM": OperationKind(("properties",)),
    "REPLACE COLUMNS": OperationKind(("columns",)),
    "REPLACE TABLE": _replace(selects=False),
    "REPLACE TABLE AS SELECT": _replace(selects=True),
    "RESTORE": OperationKind((), _RESTORE, True, False, ("version", "timestamp")),
    "ROW TRACKING BACKFILL": OperationKind(),
    "ROW TRACKING UNBACKFILL": OperationKind(),
    "SET TBLPROPERTIES": OperationKind(("properties",)),
    "STREAMING UPDATE": OperationKind(
        (), ("numAddedFiles", "numRemovedFiles", "numOutputRows", "numOutputBytes"), True
    ),
    "TRUNCATE": OperationKind((), ("numRemovedFiles", "executionTimeMs"), True),
    "UNSET TBLPROPERTIES": OperationKind(("properties",)),
    "UPDATE": OperationKind(("predicate",), (*_REWRITE, "numUpdatedRows"), True),
    "UPDATE SCHEMA": OperationKind(("oldSchema", "newSchema")),
    "UPGRADE PROTOCOL": OperationKind(("newProtocol",)),
    "VACUUM END": OperationKind((), ("numDeletedFiles", "numVacuumedDirectories")),
    "VACUUM START": OperationKind((), ("numFilesToDelete", "sizeOfDataToDelete")),
    "WRITE": OperationKind(("partitionBy",), _WRITE, True),
}
"""Name -> what is known of it, for all operations of Delta 4 that commit."""
