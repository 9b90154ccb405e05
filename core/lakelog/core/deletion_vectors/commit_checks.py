"""Checks on the deletion vectors of one commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from lakelog.core.errors import DeltaAnalysisError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.actions import AddFile
    from lakelog.core.actions.operation import Operation
    from lakelog.core.features.terms import TableTerms


def check_vectors(
    adds: Iterable[AddFile],
    terms: TableTerms,
    table: str,
    operation: Operation,
) -> None:
    """Check that a table may get these files, as far as they have deletion vectors.

    An operation that only moves files, such as RESTORE, may add them with the vectors that they
    had, though the table makes no new ones.

    Raises:
        UnsupportedFeatureError: the table has no deletion vectors, or makes no new ones.
        DeltaAnalysisError: statistics do not say how many rows a file holds, or call bounds
            tight that are not.
    """
    with_vectors = [add for add in adds if add.deletion_vector is not None]
    if not with_vectors:
        return
    _check_allowed(with_vectors[0], terms, table, operation)
    for add in with_vectors:
        # Readers subtract the cardinality from it; without it the number of rows left is unknown.
        if add.num_records is None:
            raise DeltaAnalysisError(
                f"[DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS] {table}: the file {add.path} has a "
                "deletion vector, but its statistics do not say how many rows it holds",
                table=table,
                path=add.path,
            )
        if operation.takes_files_as_they_are:
            continue
        # The smallest and largest values may be those of deleted rows now. A reader that took them
        # for tight would answer MIN and MAX from them.
        if orjson.loads(add.stats or "{}").get("tightBounds") is not False:
            raise DeltaAnalysisError(
                "[DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED] "
                f"{table}: the file {add.path} has a deletion vector, so its statistics must say "
                "tightBounds=false",
                table=table,
                path=add.path,
            )


def _check_allowed(add: AddFile, terms: TableTerms, table: str, operation: Operation) -> None:
    if "deletionVectors" not in terms.features:
        why = "the table's protocol lacks the feature deletionVectors"
    elif operation.takes_files_as_they_are or terms.properties.deletion_vectors:
        return
    else:
        why = "they are not enabled: set the table property delta.enableDeletionVectors to true"
    raise UnsupportedFeatureError(
        f"[DELTA_ADDING_DELETION_VECTORS_DISALLOWED] {table}: the file {add.path} has a "
        f"deletion vector, but {why}",
        table=table,
        features=["deletionVectors"],
        access="write",
    )
