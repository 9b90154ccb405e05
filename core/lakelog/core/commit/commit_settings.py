"""What a session's conf says about commits, read once for all commits under it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from lakelog.core import keys
from lakelog.core.conflicts.session_rules import ConflictRules
from lakelog.core.errors import DeltaAnalysisError
from lakelog.logstores import keys as store_keys

if TYPE_CHECKING:
    from lakelog.core.conf import DeltaConf


_RESERVE_SECONDS = 90.0
_RESERVE_SHARE = 0.15
_BRIEF_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """When a commit stops trying."""

    attempts: int = 10_000_000
    """Retries after the first try (`spark.databricks.delta.maxCommitAttempts`)."""
    unknown: int = 10
    """Retries of a write whose outcome the storage did not report."""
    seconds: float = 600.0
    """The time budget of one commit (`spark.lakelog.commit.timeBudget`)."""
    max_wait: float = 5.0
    """The longest single wait, in seconds (`spark.lakelog.commit.maxBackoff`)."""

    reserve: float = field(init=False)
    """Seconds for what is on its way when the store may repeat no more."""
    brief: float = field(init=False)
    """Seconds: a request that is known to take no longer fits into any rest of the budget."""

    def __post_init__(self) -> None:
        """Work out what follows from the budget."""
        reserve = min(_RESERVE_SECONDS, self.seconds * _RESERVE_SHARE)
        object.__setattr__(self, "reserve", reserve)
        object.__setattr__(self, "brief", max(_BRIEF_SECONDS, reserve / 3))


class Together(NamedTuple):
    """Whose appends are committed as one version."""

    is_served: bool
    """Of whoever asks a service (`commit.service`)."""
    is_hosted: bool
    """Of the processes of a host (`commit.host`)."""
    is_grouped: bool
    """Of the threads that share a log (`commit.group`)."""


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
        conf = self._conf
        return RetryLimits(
            attempts=conf.read(keys.MAX_ATTEMPTS),
            unknown=conf.read(keys.MAX_UNKNOWN),
            seconds=conf.read(store_keys.TIME_BUDGET),
            max_wait=conf.read(store_keys.MAX_BACKOFF),
        )

    @cached_property
    def together(self) -> Together:
        """Who commits as one."""
        conf = self._conf
        return Together(
            bool(conf.read(store_keys.COMMIT_SERVICE)),
            conf.read(store_keys.COMMIT_HOST),
            conf.read(store_keys.COMMIT_GROUP),
        )

    @cached_property
    def rules(self) -> ConflictRules:
        """How strict the conflict checks are."""
        return ConflictRules(
            strict_upgrades=self._conf.read(keys.STRICT_UPGRADES),
            goes_by_enablement=self._conf.read(keys.ENABLEMENT),
        )

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
