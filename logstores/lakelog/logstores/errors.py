"""What a store raises, grouped by what the caller does next.

    LogStoreError
    +-- CommitOutcomeUnknownError    read the file back before anything else
    +-- UnsafeLogStoreError          choose another store, or declare a single writer
    +-- LogStoreConfError            fix the conf                             (ValueError)
    |   +-- InvalidLogStoreConfError        class and scheme keys at once
    |   +-- InconsistentLogStoreConfError   two spellings, two values
    |   +-- UnknownLogStoreKeyError         a key that nothing reads
    |   +-- LogStoreClassError              a class that can't be found, imported or made
    |   +-- UnreadableValueError            a value of another kind than its key takes
    +-- MissingExtraError            install the extra                        (ImportError)

A store also raises the built-in `FileExistsError` (lost the race: rebase, next
version), `FileNotFoundError` and `OSError`, of which two have names of their own:

    OSError
    +-- StorageUnavailableError      nothing was done; run it again when the storage is back
    +-- FileTooLargeError            nothing was read; raise the limit, or find out who wrote it
"""

from __future__ import annotations

__all__ = [
    "CommitOutcomeUnknownError",
    "FileTooLargeError",
    "InconsistentLogStoreConfError",
    "InvalidLogStoreConfError",
    "LogStoreClassError",
    "LogStoreConfError",
    "LogStoreError",
    "MissingExtraError",
    "StorageUnavailableError",
    "UnknownLogStoreKeyError",
    "UnreadableValueError",
    "UnsafeLogStoreError",
    "install_command",
]


def install_command(extra: str) -> str:
    """How to install an extra: in the way in which lakelog itself was installed.

    Args:
        extra: its name, or several with commas between them.
    """
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("lakelog").read_text("direct_url.json")
    except PackageNotFoundError:  # shipped to a cluster as a bare zip
        origin = "{}"
    if origin is None:
        return f"pip install 'lakelog[{extra}]'"
    url = str(json.loads(origin).get("url", ""))
    if url.endswith(".whl"):
        return f"pip install 'lakelog[{extra}] @ {url}'"
    return f"pip install '.[{extra}]' in a clone of lakelog"


class LogStoreError(Exception):
    """Base of all errors that are `lakelog.logstores`' own."""


class CommitOutcomeUnknownError(LogStoreError):
    """A write whose outcome could not be settled: it may have landed, or may still land.

    Nothing that the write refers to may be deleted.
    """

    def __init__(self, path: str, evidence: str) -> None:
        """Name the file and what was seen of it."""
        super().__init__(
            f"the outcome of writing {path} is unknown: {evidence}. "
            "Read that file before anything else: if it holds this writer's txnId the write "
            "landed. Don't delete any data file that it may refer to."
        )
        self.path = path
        self.evidence = evidence

    def __reduce__(self) -> tuple[type[CommitOutcomeUnknownError], tuple[str, str]]:
        """Rebuild from the two values, so that it survives a process boundary."""
        return type(self), (self.path, self.evidence)


class StorageUnavailableError(OSError):
    """The store has repeated its request for as long as it may, without success.

    The operation was not carried out, and others are bound to meet the same silence.
    """


class FileTooLargeError(OSError):
    """A file of a log is larger than `spark.lakelog.log.maxBytes`; nothing of it was kept."""

    def __init__(self, path: str, size: int, limit: int) -> None:
        """Name the file, the bytes that it has at least, and those that it may have."""
        super().__init__(
            f"{path} has {size} bytes or more, over the limit of {limit} for a file of a log. "
            "If one of your writers made it, raise spark.lakelog.log.maxBytes"
        )
        self.path = path
        self.size = size
        self.limit = limit

    def __reduce__(self) -> tuple[type[FileTooLargeError], tuple[str, int, int]]:
        """Rebuild from the three values, so that it survives a process boundary."""
        return type(self), (self.path, self.size, self.limit)


class UnsafeLogStoreError(LogStoreError):
    """The store excludes fewer writers than the job needs."""


class LogStoreConfError(LogStoreError, ValueError):
    """The conf that chooses or sets up a store is wrong."""


class UnreadableValueError(LogStoreConfError):
    """A conf, an option or a property has a value that it can't have."""

    def __init__(self, key: str, value: str, expected: str, where: str) -> None:
        """Name all four.

        Args:
            key: the name.
            value: as it was set.
            expected: the words that complete "must be …".
            where: what it was set in.
        """
        super().__init__(f"{where} {key} must be {expected}, but it is {value!r}")
        self.key = key
        self.value = value
        self.expected = expected


class InvalidLogStoreConfError(LogStoreConfError):
    """A global class and a class per scheme are both set (DELTA_INVALID_LOGSTORE_CONF)."""


class InconsistentLogStoreConfError(LogStoreConfError):
    """One key, with and without `spark.`, has two values (DELTA_INCONSISTENT_LOGSTORE_CONFS)."""


class UnknownLogStoreKeyError(LogStoreConfError):
    """A key under `delta.logStore.` that nothing reads."""


class LogStoreClassError(LogStoreConfError):
    """The class that the conf names can't be found, imported, or constructed."""


class MissingExtraError(LogStoreError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, extra: str, needed_for: str) -> None:
        """Name the extra that brings it."""
        super().__init__(f"{needed_for} needs an extra: {install_command(extra)}")
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str]]:
        """Rebuild from the two values, so that it survives a process boundary."""
        return type(self), (self.extra, str(self).partition(" needs an extra")[0])
