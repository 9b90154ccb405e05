"""`DeltaLog`: the log of one table, and the ways to write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn, TypeAlias, TypeVar, Union

from lakelog.core.arguments import read_arguments
from lakelog.core.catalogs.names import known_catalogs, table_name
from lakelog.core.catalogs.refusals import governed
from lakelog.core.clock import SystemClock
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError
from lakelog.core.table_log import TableLog

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from lakelog.core.actions import Protocol
    from lakelog.core.actions.operation import Operation
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.optimistic import OptimisticTransaction

T = TypeVar("T")


class DeltaLog(TableLog):
    """One table, by its path. It need not exist yet.

    Safe for threads. There is no cache beyond this object: two of them know nothing about each
    other, as if in two processes.
    """

    @read_arguments
    def start_transaction(self, *, newest: bool = True) -> OptimisticTransaction:
        """Start a transaction on the newest version; on none where the table does not exist yet.

        Args:
            newest: ask the storage for newer versions first. `False` is for appends that read
                nothing: where no other writer was met for a while, they begin at the version that
                this log has seen within the last second, and the create of the next version finds
                out whether there is a newer one. What was committed before the transaction, and is
                not known here, then counts as committed beside it: new metadata is a conflict.

        Raises:
            TableNotFoundError: its catalog has the table no more.
        """
        from lakelog.core.transaction.optimistic import OptimisticTransaction

        known = None if newest else self.known_alone()
        if known is not None:
            return OptimisticTransaction(self, known, is_newest=False)
        try:
            snapshot: Snapshot | None = self.update()
        except TableNotFoundError:
            store = governed(self._store)
            if store is not None and store.unmade is None:
                raise  # a table that is gone from its catalog is made anew by its name alone
            snapshot = None
        return OptimisticTransaction(self, snapshot)

    def with_new_transaction(self, work: Callable[[OptimisticTransaction], T]) -> T:
        """Run something with a new transaction, which is the thread's active one while it runs.

        Args:
            work: reads, changes and commits the transaction; without a commit nothing happens.

        Returns:
            What `work` returned.

        Raises:
            DeltaAnalysisError: a transaction is active in this thread already.
        """
        from lakelog.core.transaction.optimistic import run_active

        return run_active(self.start_transaction(), work)

    @staticmethod
    def active_transaction() -> OptimisticTransaction | None:
        """The transaction of this thread that `with_new_transaction` runs."""
        from lakelog.core.transaction.committer import active_transaction

        active: OptimisticTransaction | None = active_transaction.get()
        return active

    @property
    def is_commit_lock_enabled(self) -> bool:
        """Whether commits take a lock of the process or of the host.

        `spark.databricks.delta.commitLock.enabled` decides where it is set, else the store does.

        Raises:
            UnsafeLogStoreError: the store can't exclude other writers.
        """
        from lakelog.core.commit.lock import LockKind, lock_for

        return lock_for(self._store, self._table, self._conf).kind is not LockKind.NONE

    def lock_commit_if_enabled(self) -> AbstractContextManager[None]:
        """The lock that a commit takes: hold it while doing what no commit may interrupt.

        Not reentrant: a transaction that commits inside waits for itself.

        Raises:
            UnsafeLogStoreError: the store can't exclude other writers.
        """
        from lakelog.core.commit.lock import hold_lock, lock_for

        return hold_lock(lock_for(self._store, self._table, self._conf), self._table)

    @read_arguments
    def upgrade_protocol(
        self,
        reader_version: int | None = None,
        writer_version: int | None = None,
        *,
        features: Iterable[str] = (),
    ) -> int:
        """Require more of the table's clients, so that it may use more. This can't be undone.

        Nothing is removed from the protocol: lower versions change nothing. The protocol is stored
        in its lowest form, so reader 3 and writer 7 without features add nothing, and lists of
        features that a version number implies become that number.

        Args:
            reader_version: the version of the protocol that readers must have, 1 to 3.
            writer_version: that of writers, 1 to 7.
            features: names of table features, such as `domainMetadata`.

        Returns:
            The version that holds the change; the table's present one where there was none.

        Raises:
            TableNotFoundError: there is no table.
            DeltaAnalysisError: there is no such version or feature.
            UnsupportedFeatureError: this client could no longer write the table.
            ProtocolChangedException: another writer changed the protocol at the same time.
        """
        from lakelog.core.actions.operation import Operation, json_text
        from lakelog.core.features.table_properties import FEATURE_PREFIX

        words = {f"{FEATURE_PREFIX}{name}": "supported" for name in features}
        if reader_version is not None:
            words["delta.minReaderVersion"] = str(reader_version)
        if writer_version is not None:
            words["delta.minWriterVersion"] = str(writer_version)
        # Its name in delta-spark, whose methods set these words as properties.
        operation = Operation("SET TBLPROPERTIES", {"properties": json_text(words)})
        return _upgrade(self, words, lambda _: operation)

    if not TYPE_CHECKING:  # a type checker would take any name for one that is there

        def __getattr__(self, name: str) -> NoReturn:
            from lakelog.core.names_elsewhere import LOG, SNAPSHOT, refuse_name

            instead = SNAPSHOT.get(name, "").replace("snap", "log.snap", 1) or LOG.get(name)
            refuse_name("a DeltaLog", name, instead)


def require_feature(log: DeltaLog, name: str) -> int:
    """Require a feature of the table's clients because a command is about to need it.

    Args:
        log: the table.
        name: the feature's.

    Returns:
        As `DeltaLog.upgrade_protocol`, which says what is raised.
    """
    from lakelog.core.actions.operation import Operation, json_text
    from lakelog.core.features.table_properties import FEATURE_PREFIX

    def operation(protocol: Protocol) -> Operation:
        text = json_text(protocol.to_json_value())
        return Operation("UPGRADE PROTOCOL", {"newProtocol": text})

    return _upgrade(log, {f"{FEATURE_PREFIX}{name}": "supported"}, operation)


def _upgrade(
    log: DeltaLog, words: Mapping[str, str], operation: Callable[[Protocol], Operation]
) -> int:
    from dataclasses import replace

    from lakelog.core.features.protocol import upgraded_for
    from lakelog.core.features.table_properties import validate_properties

    txn = begin_change(log)
    asked = {**txn.metadata.configuration, **validate_properties(words, log.conf)}
    protocol = upgraded_for(txn.changes.protocol, replace(txn.metadata, configuration=asked))
    if protocol is None:
        return txn.reads.version
    return txn.commit([protocol], operation(protocol))


TableOrLog: TypeAlias = Union[str, "os.PathLike[str]", DeltaLog]
"""What functions of tables take: where the table is, or its log, which need not be opened again."""


def log_of(uri: TableOrLog, conf: Mapping[str, str] | None = None) -> DeltaLog:
    """The log of the table that a function was given.

    Args:
        uri: where the table is, or its log.
        conf: the user's whole Spark conf, for a table that is opened here.

    Raises:
        DeltaAnalysisError: a conf together with a log, which has one already.
        LogStoreConfError: the conf does not lead to a store.
    """
    if not isinstance(uri, DeltaLog):
        log = DeltaLog.for_table(uri, conf)
        if (store := governed(log.store)) is not None:
            # Nobody else has this log: asking where the table is was a look at it.
            store.trust_load()
        return log
    if conf is not None:
        raise DeltaAnalysisError(
            f"conf can't be given with the open log of {uri.table}, which has its own. Leave it "
            "out, or open the log with it: DeltaLog.for_table(uri, conf).",
            table=uri.table,
        )
    return uri


def log_to_make(uri: TableOrLog, conf: Mapping[str, str] | None = None) -> DeltaLog:
    """The log of a table that may have to be made; see `log_of`.

    For a name that its catalog does not have, the catalog sets a place aside, which nobody sees
    until the first commit.

    Raises:
        TableNotFoundError: the catalog has no such schema.
        CatalogError: it can't be reached, or makes no tables.
    """
    try:
        return log_of(uri, conf)
    except TableNotFoundError:
        settings = DeltaConf.from_mapping(conf)
        name = table_name(uri, settings.derived(known_catalogs))
        if name is None:
            raise
    from lakelog.core.catalogs.resolution import store_of_a_new_table

    clock = SystemClock()
    table, store = store_of_a_new_table(name, settings, clock)
    return DeltaLog(table, store, settings, clock)


def making(
    uri: TableOrLog,
    conf: Mapping[str, str] | None,
    work: Callable[[DeltaLog], T],
    *,
    may_repeat: Callable[[], bool] = lambda: True,
) -> T:
    """Do something with the log of a table that may have to be made; see `log_to_make`.

    Args:
        uri: where the table is, or its log.
        conf: as for `log_of`.
        work: done again with the table of another writer who made one of that name first.
        may_repeat: whether it can be.

    Raises:
        CatalogError: another writer was first, and the log was given, or the work can't be
            repeated.
    """
    log = log_to_make(uri, conf)
    store = governed(log.store)
    if store is None or store.unmade is None or log is uri:
        return work(log)
    from lakelog.core.catalogs.contract import NameTakenError

    try:
        return work(log)
    except NameTakenError:
        if not may_repeat():
            raise
    return work(log_of(uri, conf))


def begin_change(uri: TableOrLog, conf: Mapping[str, str] | None = None) -> OptimisticTransaction:
    """Begin a transaction on a table that exists; see `log_of`.

    Raises:
        TableNotFoundError: there is none.
    """
    log = log_of(uri, conf)
    txn = log.start_transaction()
    if txn.snapshot is None:
        _ = log.snapshot  # raises, and says what is there instead
    return txn
