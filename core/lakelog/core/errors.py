"""The errors of the core, grouped by what the caller does next.

    DeltaError
    +-- DeltaConcurrentModificationException   another writer won: run again (retry_on_conflict)
    |   +-- ConcurrentWriteException
    |   +-- ConcurrentAppendException
    |   +-- ConcurrentDeleteReadException
    |   +-- ConcurrentDeleteDeleteException
    |   +-- MetadataChangedException
    |   +-- ProtocolChangedException
    |   +-- ConcurrentTransactionException
    +-- MaxCommitAttemptsExceededError         separate the jobs, or raise the budget
    +-- PostCommitError                        the commit is in the table: do not repeat it
    |   +-- PostCommitHookFailedError
    |   +-- InvalidCommittedVersionError         the storage does not show what it accepted
    +-- DeltaAnalysisError                     fix the call                     (ValueError)
    |   +-- SchemaMismatchError                fix the data, or let the schema evolve
    |   +-- InvalidPredicateError
    |   +-- ConstraintViolationError           rows break a rule of the table
    |   +-- VersionNotFoundError               ask for a version that exists
    |   +-- TimestampOutOfRangeError           ask for a time that the log covers
    |   +-- TableExistsError                   mode "error" met a table  (FileExistsError)
    |   +-- AppendOnlyError
    +-- AppenderFullError                      append again later         (TimeoutError)
    +-- AppenderStoppedError                   see its cause, and open another appender
    +-- TableNotFoundError                     check the path             (FileNotFoundError)
    +-- CatalogError                           read what the catalog says, ask its owner (OSError)
    +-- UnsupportedFeatureError                use a client that has the feature
    +-- CorruptLogError                        repair the log: the file is named
    |   +-- CorruptCommitError
    |   +-- CorruptCheckpointError
    |   +-- LogGapError
    +-- LogTooLargeError                       raise the limit, or find out who wrote the log
    +-- DataFileMissingError                   restore the file           (FileNotFoundError)
    +-- DataFileError                          restore the file, or write it again

`CommitOutcomeUnknownError` and the other errors of stores are those of `lakelog.logstores`; where
part of the commit is in the log, it is a `TornCommitError`. Names that end in `Exception`
are Delta's (package `io.delta.exceptions`); the others are ours.

Where lakelog.spark is imported, each is also an instance of the PySpark class by which a script
catches delta-spark's error for the same (`lakelog.spark.session.raised_as`).

Every message says what was wrong, where (path and version), and what to do.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Self

from lakelog.logstores.errors import (
    CommitOutcomeUnknownError,
    FileTooLargeError,
    LogStoreConfError,
    LogStoreError,
    MissingExtraError,
    StorageUnavailableError,
    UnsafeLogStoreError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "AppendOnlyError",
    "AppenderFullError",
    "AppenderStoppedError",
    "CatalogError",
    "CommitOutcomeUnknownError",
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "ConstraintViolationError",
    "CorruptCheckpointError",
    "CorruptCommitError",
    "CorruptLogError",
    "DataFileError",
    "DataFileMissingError",
    "DeltaAnalysisError",
    "DeltaConcurrentModificationException",
    "DeltaError",
    "FileTooLargeError",
    "InvalidCommittedVersionError",
    "InvalidPredicateError",
    "LogGapError",
    "LogStoreConfError",
    "LogStoreError",
    "LogTooLargeError",
    "MaxCommitAttemptsExceededError",
    "MetadataChangedException",
    "MissingExtraError",
    "PostCommitError",
    "PostCommitHookFailedError",
    "ProtocolChangedException",
    "SchemaMismatchError",
    "StorageUnavailableError",
    "TableExistsError",
    "TableNotFoundError",
    "TimestampOutOfRangeError",
    "TornCommitError",
    "UnsafeLogStoreError",
    "UnsupportedFeatureError",
    "VersionNotFoundError",
]


_IN_PYTHON = 1 << 9
"""The flag of classes that Python code makes; the others are Python's own."""


class DeltaError(Exception):
    """Base of all errors of `lakelog.core`.

    `fields` keeps the values in the message, by name, so that a handler can read values and never
    has to parse text; it survives pickling.
    """

    def __new__(cls, *args: Any, **_fields: Any) -> Self:
        """Make an instance of the class that a front has for this one, where there is a front."""
        chosen = cls if _chosen is None else _chosen(cls, str(args[0]) if args else "")
        # Of several bases `super` may find one that can't make what is laid out as an OSError.
        base: Any = chosen
        while base.__flags__ & _IN_PYTHON:
            base = base.__base__
        made: Self = base.__new__(chosen, *args)
        return made

    def __init__(self, message: str, **fields: Any) -> None:
        """Set the message; every keyword becomes an entry of `fields`."""
        super().__init__(message)
        self.fields: dict[str, Any] = fields

    @staticmethod
    def make_all_as(choose: Callable[[type[Any], str], type[Any]]) -> None:
        """Have all errors of this process made as classes that a front chooses.

        lakelog.spark chooses classes that are PySpark's too: whoever catches one of PySpark's
        catches them, wherever they are raised.

        Args:
            choose: gives for a class and a message a subclass that takes the same arguments, or the
                class itself.
        """
        global _chosen  # one front a process
        _chosen = choose

    def __getattr__(self, name: str) -> Any:
        """An entry of `fields` as an attribute: `error.version`, `error.path`."""
        fields = self.__dict__.get("fields", {})
        try:
            return fields[name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no {name!r}") from None

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from message and fields."""
        return _rebuild, (type(self), self.args[0], self.fields)


_chosen: Callable[[type[Any], str], type[Any]] | None = None


def _rebuild(cls: type[DeltaError], message: str, fields: dict[str, Any]) -> DeltaError:
    return cls(message, **fields)


class DeltaConcurrentModificationException(DeltaError):  # noqa: N818  # Delta's name
    """Another transaction committed something that this one must not ignore.

    Nothing of this transaction is in the table. Read the table again and repeat the job, as
    `lakelog.core.retry_on_conflict` does.

    Fields: `table` (path), `version` (the winner's), `commit_info` (the winner's, a dict, or
    `None`), `sub_condition` (`WITH_PARTITION_HINT` where the message names a partition,
    `WITHOUT_HINT` where it can't; `None` for conflicts that are not about files).
    """

    condition: str = ""
    """The error condition of delta-spark, such as `DELTA_CONCURRENT_APPEND`."""

    @property
    def winning_version(self) -> int | None:
        """The version that the winner committed."""
        return self.fields.get("version")


class ConcurrentWriteException(DeltaConcurrentModificationException):
    """A transaction that can't be rebased met another commit."""

    condition = "DELTA_CONCURRENT_WRITE"


class ConcurrentAppendException(DeltaConcurrentModificationException):
    """Files were added to a part of the table that this transaction read."""

    condition = "DELTA_CONCURRENT_APPEND"


class ConcurrentDeleteReadException(DeltaConcurrentModificationException):
    """A file that this transaction read was removed."""

    condition = "DELTA_CONCURRENT_DELETE_READ"


class ConcurrentDeleteDeleteException(DeltaConcurrentModificationException):
    """A file that this transaction removes has been removed already."""

    condition = "DELTA_CONCURRENT_DELETE_DELETE"


class MetadataChangedException(DeltaConcurrentModificationException):
    """Schema, partitioning or properties of the table changed."""

    condition = "DELTA_METADATA_CHANGED"


class ProtocolChangedException(DeltaConcurrentModificationException):
    """The protocol of the table changed, or another writer created the table."""

    condition = "DELTA_PROTOCOL_CHANGED"


class ConcurrentTransactionException(DeltaConcurrentModificationException):
    """Another writer recorded progress for the same application, or the same domain."""

    condition = "DELTA_CONCURRENT_TRANSACTION"


class MaxCommitAttemptsExceededError(DeltaError):
    """The commit lost too many races, or ran out of its time budget. Nothing was committed."""


class PostCommitError(DeltaError):
    """The commit is in the table; the work that follows it failed. Do not run the job again.

    Fields: `table`, `version` (the committed one).
    """


class PostCommitHookFailedError(PostCommitError):
    """A hook that runs after commits failed, and the hook or the conf turns that into an error.

    Fields: as the base, and `hook` (its name); `__cause__` is what it raised.
    """

    condition = "DELTA_POST_COMMIT_HOOK_FAILED"


class InvalidCommittedVersionError(PostCommitError):
    """The storage accepted a commit but does not show it.

    Fields: as the base, and `current_version` (-1 where it shows no table).
    """

    condition = "DELTA_INVALID_COMMITTED_VERSION"


class AppenderFullError(DeltaError, TimeoutError):
    """An appender holds as many bytes as it may, and the wait for room is over.

    The rows of the call were not taken: append them again under the same `seq`.

    Fields: `table`, `app_id`, `acknowledged` (the last `seq` that is in the table, -1 for none),
    `pending` (appends that wait).
    """


class AppenderStoppedError(DeltaError):
    """An appender takes and commits no more: its cause says why.

    Appends up to `acknowledged` are in the table, each once. Open another appender with the same
    `app_id`, and append again whatever is after its `last_seq`.

    Fields: `table`, `app_id`, `acknowledged` (the last `seq` known to be in the table, -1 for
    none), `pending` (appends that were taken and are not known to be there), `failed_seq` and
    `failed_row` (the append whose rows the table refused, and the first of them, counted from 0; or
    `None`).
    """


class DeltaAnalysisError(DeltaError, ValueError):
    """The call can't be carried out as given; nothing was changed."""


class SchemaMismatchError(DeltaAnalysisError):
    """Data and table disagree on columns; the message shows the difference column by column."""


class InvalidPredicateError(DeltaAnalysisError):
    """A filter that can't be parsed, names an unknown column, or compares unlike types."""


class ConstraintViolationError(DeltaAnalysisError):
    """Rows break NOT NULL, a CHECK constraint, or the predicate of `replaceWhere`."""


class VersionNotFoundError(DeltaAnalysisError):
    """The version does not exist, or can't be rebuilt any more.

    Fields: `table`, `version`, `earliest`, `latest`.
    """


class TimestampOutOfRangeError(DeltaAnalysisError):
    """The time lies before the first or after the last commit that can be read."""


class TableExistsError(DeltaAnalysisError, FileExistsError):
    """A table exists where a new one was to be created."""


class AppendOnlyError(DeltaAnalysisError):
    """`delta.appendOnly` is set and the commit removes data."""


class TornCommitError(CommitOutcomeUnknownError):
    """A version holds only part of this writer's commit: a store exposed a half-written file.

    Nothing that the commit refers to may be deleted.
    """

    def __init__(self, path: str, evidence: str) -> None:
        """Name the file and what is in it."""
        super().__init__(path, evidence)
        self.args: tuple[Any, ...] = (
            f"the outcome of writing {path} is unknown: {evidence}. Until it is fixed, readers "
            "see part of the commit, or fail. Stop the table's writers and look at the file "
            "again. If it stays as it is and is the newest version, move it away and run the job "
            "again; if there are newer ones, restore the table to the version before it. Until "
            "then, do not delete any data file that it may refer to.",
        )


class TableNotFoundError(DeltaError, FileNotFoundError):
    """No Delta table at the path."""

    def __str__(self) -> str:
        """The message itself: `FileNotFoundError` would print errno and file name."""
        return str(self.args[0])


class CatalogError(DeltaError, OSError):
    """A catalog refused, or could not be reached. Nothing was changed."""

    def __str__(self) -> str:
        """The message itself."""
        return str(self.args[0])


class UnsupportedFeatureError(DeltaError):
    """The table needs features that this client does not have.

    Fields: `table`, `features` (names, sorted), `access` ("read" or "write").
    """


class CorruptLogError(DeltaError):
    """The log can't be trusted; the message names the file.

    Fields: `table`, `path`, `version`.
    """


class CorruptCommitError(CorruptLogError):
    """A commit file is torn, empty, or no JSON."""


class CorruptCheckpointError(CorruptLogError):
    """A checkpoint can't be read and nothing older stands in for it."""


class LogGapError(CorruptLogError):
    """Commit files are missing between those that exist."""


class LogTooLargeError(DeltaError):
    """Reading the log would take more memory than `spark.lakelog.log.maxBytes` allows.

    Nothing was changed. Fields: `path` (the file that is too much), `size` (bytes that would be
    needed, or more), `limit` (bytes that are allowed), `key` (the conf that says so).
    """


class DataFileMissingError(DeltaError, FileNotFoundError):
    """The log lists a data file that the storage does not have."""

    def __str__(self) -> str:
        """The message itself."""
        return str(self.args[0])


class DataFileError(DeltaError):
    """A data file or its deletion vector is not what the log says; the message names the file.

    Fields: `path`, and `table` and `version` where a deletion vector is damaged.
    """


RESTORE_EITHER: Final = "Restore the file, or an older version of the table."
READ_NEWER: Final = "Read a newer version, or restore the file."


@contextmanager
def listed_file(
    path: str | None, table: str, version: int, way_out: str, *, what: str = ""
) -> Iterator[None]:
    """Say of a file that is not there that a version lists it.

    Args:
        path: of the file.
        table: its location.
        version: of the table.
        way_out: a sentence.
        what: what the file is, and its path, if it is no data file.

    Raises:
        DataFileMissingError: it does not exist.
    """
    try:
        yield
    except DataFileMissingError:
        raise
    except FileNotFoundError as exc:
        raise DataFileMissingError(
            f"the {what or f'data file {path}'} is missing: version {version} of {table} lists it. "
            "VACUUM may have deleted it, if the version is older than the retention period, or it "
            f"was deleted manually. {way_out}",
            table=table,
            path=path,
            version=version,
        ) from exc
