"""Where a table's log lives: the LogStore contract, the stores, and which URI gets which.

    store = log_store_for("/lake/flights", {"spark.delta.logStore.class": "my.module.MyStore"})

The transaction core needs four operations and honest `Capabilities`; `docs/logstores.md` says
how to write a store, and `lakelog.logstores.conformance` checks one.
"""

from lakelog.logstores._contract import Capabilities, FileStatus, LogStore, Scope
from lakelog.logstores._resolution import Resolution, log_store_for, resolve
from lakelog.logstores.errors import (
    CommitOutcomeUnknownError,
    InconsistentLogStoreConfError,
    InvalidLogStoreConfError,
    LogStoreClassError,
    LogStoreConfError,
    LogStoreError,
    MissingExtraError,
    UnknownLogStoreKeyError,
    UnsafeLogStoreError,
)
from lakelog.logstores.local import LocalLogStore
from lakelog.logstores.memory import MemoryLogStore

__all__ = [
    "Capabilities",
    "CommitOutcomeUnknownError",
    "FileStatus",
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
    "Scope",
    "UnknownLogStoreKeyError",
    "UnsafeLogStoreError",
    "log_store_for",
    "resolve",
]
