"""ALTER TABLE, as methods of `DeltaTable`."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import DataType, StructType

from lakelog.core.alter import (
    add_columns,
    change_column,
    cluster_by,
    drop_columns,
    drop_constraint,
    drop_feature,
    rename_column,
    replace_columns,
    set_properties,
    sync_identity,
    unset_properties,
)
from lakelog.core.engine.tables import add_checked_constraint
from lakelog.core.schema import StructType as CoreStruct
from lakelog.core.schema import type_from_json_value
from lakelog.spark.session.argument_checks import check_flag, check_int, check_text
from lakelog.spark.table.new_constraint import check_new_constraint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from lakelog.core import DeltaLog


class TableAlteration:
    """What changes schema, properties and protocol of a table; each call is one commit.

    A column is its name, `"s.x"` for a field of a struct, or the list of its names. Each method
    returns the version that holds the change, except those that delta-spark also has.
    """

    _spark: SparkSession
    _log: DeltaLog

    def addColumns(  # noqa: N802  # as its neighbours
        self,
        columns: str | StructType,
        parent: str | Sequence[str] = (),
        after: str | None = None,
        first: bool = False,
    ) -> int:
        """Add columns, which are null in every existing row.

        Args:
            columns: DDL as `"day DATE, n INT COMMENT 'x'"`, or a schema.
            parent: the struct to add them to; the table itself by default.
            after: put them after this sibling instead of after all of them.
            first: put them before all of their siblings.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.add_columns`.
        """
        return add_columns(self._log, _schema(columns), parent=parent, after=after, first=first)

    def replaceColumns(self, columns: str | StructType) -> int:  # noqa: N802  # as its neighbours
        """Give the table these columns, in this order.

        Args:
            columns: all of them: DDL, or a schema.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.replace_columns`.
        """
        return replace_columns(self._log, _schema(columns))

    def renameColumn(  # noqa: N802  # as its neighbours
        self, column: str | Sequence[str], name: str
    ) -> int:
        """Give a column another name; the table must map columns.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.rename_column`.
        """
        return rename_column(self._log, column, name)

    def dropColumns(self, *columns: str | Sequence[str]) -> int:  # noqa: N802  # as its neighbours
        """Remove columns; the table must map columns.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.drop_columns`.
        """
        return drop_columns(self._log, columns)

    def alterColumn(  # noqa: N802  # as its neighbours
        self,
        column: str | Sequence[str],
        dataType: str | DataType | None = None,  # noqa: N803  # as its neighbours
        nullable: bool | None = None,
        comment: str | None = None,
        default: str | None = None,
        after: str | None = None,
        first: bool = False,
    ) -> int:
        """Change what a column is, or its place among its siblings.

        Args:
            column: which.
            dataType: a wider type, of a table with `delta.enableTypeWidening`: DDL such as
                `"BIGINT"`, or one of `pyspark.sql.types`.
            nullable: True removes its NOT NULL.
            comment: the new comment; an empty string removes it.
            default: SQL for rows written from now on without the column, in a table with
                `delta.feature.allowColumnDefaults=supported`; an empty string removes it.
            after: put it after this sibling.
            first: put it before all of its siblings.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.change_column`.
        """
        kind: Any = dataType
        if isinstance(dataType, DataType):
            kind = type_from_json_value(dataType.jsonValue())
        return change_column(
            self._log,
            column,
            data_type=kind,
            nullable=nullable,
            comment=comment,
            default=default,
            after=after,
            first=first,
        )

    def syncIdentity(self, column: str) -> int:  # noqa: N802  # as its neighbours
        """Let an identity column go on after the furthest number in it.

        Raises:
            DeltaAnalysisError: it is not an identity column.
            ConcurrentAppendException: rows were added meanwhile.
        """
        return sync_identity(self._log, column)

    def addConstraint(self, name: str, condition: str) -> int:  # noqa: N802  # as its neighbours
        """Add a CHECK constraint, after Spark has looked at every row of the newest version.

        `lakelog.core.alter.add_constraint` does so without Spark, where it can evaluate the
        condition.

        Args:
            name: of the constraint; kept in lower case.
            condition: SQL that must be true for every row, now and later.

        Returns:
            The version of the commit.

        Raises:
            ConstraintViolationError: rows of the table break it.
            DeltaAnalysisError: the name is taken, or the condition is not boolean.
            ConcurrentAppendException: rows were added meanwhile that have not been checked.
        """
        check = partial(check_new_constraint, self._spark)
        return add_checked_constraint(self._log, name, condition, check)

    def dropConstraint(  # noqa: N802  # as its neighbours
        self,
        name: str,
        ifExists: bool = False,  # noqa: N803  # as its neighbours
    ) -> int:
        """Remove a CHECK constraint.

        Raises:
            DeltaAnalysisError: there is no such constraint.
        """
        return drop_constraint(self._log, name, if_exists=ifExists)

    def setProperties(  # noqa: N802  # as its neighbours
        self, properties: Mapping[str, str | bool | int]
    ) -> int:
        """Set table properties, and switch on the features that they need.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.set_properties`.
        """
        return set_properties(self._log, properties)

    def unsetProperties(  # noqa: N802  # as its neighbours
        self,
        *names: str,
        ifExists: bool = False,  # noqa: N803  # as its neighbours
    ) -> int:
        """Remove table properties, so that their defaults hold.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.unset_properties`.
        """
        return unset_properties(self._log, names, if_exists=ifExists)

    def clusterBy(self, *columns: str | Sequence[str]) -> int:  # noqa: N802  # as its neighbours
        """Choose the columns that `OPTIMIZE` sorts files by; none ends the clustering.

        Raises:
            DeltaAnalysisError: as `lakelog.core.alter.cluster_by`.
        """
        return cluster_by(self._log, columns)

    def upgradeTableProtocol(  # noqa: N802  # delta-spark's name
        self,
        readerVersion: int,  # noqa: N803  # delta-spark's name
        writerVersion: int,  # noqa: N803  # delta-spark's name
    ) -> None:
        """Require more of the table's clients. This can't be undone; lower versions do nothing.

        Args:
            readerVersion: 1 to 3.
            writerVersion: 1 to 7.

        Raises:
            DeltaAnalysisError: there is no such version.
        """
        check_int(readerVersion, "readerVersion")
        check_int(writerVersion, "writerVersion")
        self._log.upgrade_protocol(operator.index(readerVersion), operator.index(writerVersion))

    def addFeatureSupport(  # noqa: N802  # delta-spark's name
        self,
        featureName: str,  # noqa: N803  # delta-spark's name
    ) -> None:
        """Require of the table's clients that they support a table feature.

        Args:
            featureName: such as `deletionVectors`.

        Raises:
            DeltaAnalysisError: there is no such feature.
        """
        check_text(featureName, "featureName")
        self._log.upgrade_protocol(features=[featureName])

    def dropFeatureSupport(  # noqa: N802  # delta-spark's name
        self,
        featureName: str,  # noqa: N803  # delta-spark's name
        truncateHistory: bool | None = None,  # noqa: N803  # delta-spark's name
    ) -> None:
        """Take a table feature out of the protocol; `lakelog.core.alter.drop_feature` says how.

        Args:
            featureName: such as `deletionVectors`.
            truncateHistory: delete the versions that need the feature, once they are old enough,
                instead of protecting them from clients without it.

        Raises:
            DeltaAnalysisError: it can't be dropped, or not yet; says why.
        """
        check_text(featureName, "featureName")
        if truncateHistory is not None:
            check_flag(truncateHistory, "truncateHistory")
        drop_feature(self._log, featureName, truncate_history=bool(truncateHistory))


def _schema(given: str | StructType) -> Any:
    if isinstance(given, StructType):
        return CoreStruct.from_json(given.json())
    return given
