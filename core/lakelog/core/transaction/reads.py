"""What a transaction reads, recorded so that conflicts with it are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.actions.file_table import NO_FILES, to_add_files
from lakelog.core.conflicts.read_set import ReadSet
from lakelog.core.data.partition_keys import files_in_partitions, partition_keys

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from lakelog.core.actions import AddFile
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.state.snapshot import Snapshot


class TransactionReads:
    """The reading half of `OptimisticTransaction`."""

    def __init__(self, snapshot: Snapshot | None) -> None:
        """Start with nothing read.

        Args:
            snapshot: what is read; None where no table exists yet.
        """
        self._snapshot = snapshot
        self._reads = ReadSet()

    @property
    def snapshot(self) -> Snapshot | None:
        """The state that it reads; None where the table does not exist yet."""
        return self._snapshot

    @property
    def read_version(self) -> int:
        """The version that it reads; -1 where the table does not exist yet."""
        return -1 if self._snapshot is None else self._snapshot.version

    def filter_files(self, where: Filter | None = None) -> list[AddFile]:
        """The live files that may hold rows for which a condition is true; recorded as read.

        Args:
            where: SQL text, an `Expression`, pyarrow-style tuples, or None for all files.

        Returns:
            With `data_change=False`: a caller that commits them again says what they are.
        """
        return to_add_files(self.filter_file_table(where))

    def filter_file_table(self, where: Filter | None = None) -> pa.Table:
        """The same as `filter_files`, as rows of `FILE_SCHEMA`, for large numbers of files."""
        if self._snapshot is None:
            self._reads.add_predicate(None)
            return NO_FILES
        from lakelog.core.expressions.filter import normalize_filter

        zone = self._snapshot.conf.session_tz
        predicate = normalize_filter(
            where,
            self._snapshot.schema,
            session_tz=zone,
            now_ms=self._snapshot.clock.now_ms(),
        )
        files = self._snapshot.file_table_for(predicate)
        self._reads.add_predicate(predicate)
        self._reads.add_files(files)
        return files

    def files_in_same_partitions(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """The live files of the partitions that new files lie in (dynamic overwrite).

        Those partitions count as read, so that a concurrent append to one of them conflicts. The
        files themselves do not: the caller removes them, which conflicts with other removes.
        """
        if self._snapshot is None:
            self._reads.add_partitions(())
            return []
        schema = self._snapshot.partition_schema
        zone = self._snapshot.conf.session_tz
        keys = partition_keys(adds, schema, session_tz=zone)
        self._reads.add_partitions(keys)
        files = files_in_partitions(self._snapshot.file_table, keys, schema, session_tz=zone)
        self._reads.add_seen(files)
        return to_add_files(files)

    def track_files_read(self, files: pa.Table) -> None:
        """Record live files, as rows of `FILE_SCHEMA`, as read, and no more than these."""
        self._reads.add_files(files)

    def read_whole_table(self) -> None:
        """Record that everything was read: any concurrent append or delete conflicts."""
        self._reads.whole_table = True
        self._reads.add_predicate(None)

    def txn_version(self, app_id: str) -> int:
        """The version that an application recorded last, or -1; recorded as read.

        A concurrent commit of the same application then conflicts.
        """
        self._reads.app_ids.add(app_id)
        return -1 if self._snapshot is None else self._snapshot.txn_version(app_id)
