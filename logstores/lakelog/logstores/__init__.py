"""Where a table's log lives: the LogStore contract, the stores, and which URI gets which.

    store = log_store_for("/lake/flights", {"spark.delta.logStore.class": "my.module.MyStore"})

A store reads, writes and lists the files of a log, says by honest `Capabilities` what that is
worth, and shows the same storage as a pyarrow file system: six members, and some with defaults.
`docs/logstores.md` says how to write one, and `lakelog.logstores.conformance` checks it.
"""

import typing

from lakelog.logstores.contract import Capabilities, FileStatus, LogStore, Scope
from lakelog.logstores.errors import (
    CommitOutcomeUnknownError,
    FileTooLargeError,
    InconsistentLogStoreConfError,
    InvalidLogStoreConfError,
    LogStoreClassError,
    LogStoreConfError,
    LogStoreError,
    MissingExtraError,
    StorageUnavailableError,
    UnknownLogStoreKeyError,
    UnreadableValueError,
    UnsafeLogStoreError,
)
from lakelog.logstores.local import LocalLogStore
from lakelog.logstores.resolution import Resolution, log_store_for, resolve

if typing.TYPE_CHECKING:
    from lakelog.logstores.azure import AzureConditionalLogStore, AzureLeaseLogStore
    from lakelog.logstores.gcs import GCSLogStore
    from lakelog.logstores.hdfs import HDFSLogStore
    from lakelog.logstores.memory import MemoryLogStore
    from lakelog.logstores.s3 import S3ConditionalLogStore, S3SingleDriverLogStore
    from lakelog.logstores.s3_dynamodb import S3DynamoDBLogStore

__all__ = [
    "AzureConditionalLogStore",
    "AzureLeaseLogStore",
    "Capabilities",
    "CommitOutcomeUnknownError",
    "FileStatus",
    "FileTooLargeError",
    "GCSLogStore",
    "HDFSLogStore",
    "InconsistentLogStoreConfError",
    "InvalidLogStoreConfError",
    "LocalLogStore",
    "LogStore",
    "LogStoreClassError",
    "LogStoreConfError",
    "LogStoreError",
    "MemoryLogStore",
    "MissingExtraError",
    "Resolution",
    "S3ConditionalLogStore",
    "S3DynamoDBLogStore",
    "S3SingleDriverLogStore",
    "Scope",
    "StorageUnavailableError",
    "UnknownLogStoreKeyError",
    "UnreadableValueError",
    "UnsafeLogStoreError",
    "log_store_for",
    "resolve",
]

# Loaded when they are asked for: a program on one cloud need not import the others.
_LAZY = {
    "AzureConditionalLogStore": "azure",
    "AzureLeaseLogStore": "azure",
    "GCSLogStore": "gcs",
    "HDFSLogStore": "hdfs",
    "MemoryLogStore": "memory",
    "S3ConditionalLogStore": "s3",
    "S3DynamoDBLogStore": "s3_dynamodb",
    "S3SingleDriverLogStore": "s3",
}

if not typing.TYPE_CHECKING:  # else a type checker takes every name for one that is here

    def __getattr__(name: str) -> typing.Any:
        import importlib

        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
