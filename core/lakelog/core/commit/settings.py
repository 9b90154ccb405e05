"""What a session's conf says about commits, read once for all commits under it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from lakelog.core import keys
from lakelog.core.commit.backoff import RetryLimits
from lakelog.core.conflicts.rules import ConflictRules
from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from lakelog.core.conf import DeltaConf


class CommitSettings:
    """The settings of commits; get them by `conf.derived(CommitSettings)`.

    Each is read when it is first needed, and a bad value is an error only then:
    `DeltaAnalysisError`, which names key and value.
    """

    def __init__(self, conf: DeltaConf) -> None:
        """Read nothing yet."""
        self._conf = conf

    @cached_property
    def limits(self) -> RetryLimits:
        """When a commit gives up."""
        return RetryLimits.from_conf(self._conf)

    @cached_property
    def rules(self) -> ConflictRules:
        """How strict the conflict checks are."""
        return ConflictRules.from_conf(self._conf)

    @cached_property
    def session_tz(self) -> str:
        """The zone of times that name none."""
        return self._conf.session_tz

    @cached_property
    def checks_duplicates(self) -> bool:
        """Whether a path may come only once (`duplicateActionCheck.enabled`)."""
        return self._conf.read(keys.CHECK_DUPLICATES)

    @cached_property
    def checks_partition_keys(self) -> bool:
        """Whether files must have the table's partition columns (`commitValidation.enabled`)."""
        return self._conf.read(keys.CHECK_PARTITIONS)

    @cached_property
    def checks_vectors(self) -> bool:
        """`deletionVectors.skipCommitCheck`: true, against its name, is the check."""
        return self._conf.read(keys.CHECK_VECTORS)

    @cached_property
    def data_change_mode(self) -> str:
        """What a mixture of `dataChange` means: `off`, `log` or `fatal`."""
        mode = self._conf.read(keys.DATA_CHANGE)
        if mode not in ("off", "log", "fatal"):
            raise DeltaAnalysisError(
                "the conf spark.databricks.delta.commitValidation.consistentDataChange.mode must "
                f"be off, log or fatal, but it is {mode!r}",
                value=mode,
            )
        return mode

    @cached_property
    def refuses_empty_files(self) -> bool:
        """Whether a file of no bytes is an error, not a warning."""
        return self._conf.read(keys.EMPTY_FILES)

    @cached_property
    def refuses_null_partitions(self) -> bool:
        """Whether a null for a NOT NULL partition column is an error, not a warning."""
        return self._conf.read(keys.NULL_PARTITIONS)

    @cached_property
    def records_operation(self) -> bool:
        """Whether `commitInfo` says more than the operation's name (`commitInfo.enabled`)."""
        return self._conf.read(keys.COMMIT_INFO)

    @cached_property
    def records_metrics(self) -> bool:
        """Whether it has the operation's metrics (`history.metricsEnabled`)."""
        return self._conf.read(keys.METRICS)

    @cached_property
    def user_metadata(self) -> str | None:
        """The note of commits that have none of their own (`commitInfo.userMetadata`)."""
        return self._conf.read(keys.USER_METADATA)
