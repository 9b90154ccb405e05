"""What a transaction reads, recorded so that conflicts with it are seen."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from lakelog.core.actions.file_table import NO_FILES, to_add_files
from lakelog.core.conflicts.read_set import ReadSet
from lakelog.core.data.partition_keys import files_in_partitions, partition_keys
from lakelog.core.expressions.context import EvalContext

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from lakelog.core.actions import AddFile
    from lakelog.core.expressions.filter import Filter
    from lakelog.core.state.snapshot import Snapshot


class Reads:
    """The snapshot that a transaction reads, and the record of what it read of it.

    Whatever decides what is committed has to be read here: what was read past the record can be
    changed by another writer unnoticed.
    """

    def __init__(self, snapshot: Snapshot | None) -> None:
        """Start with nothing read.

        Args:
            snapshot: what is read; None where no table exists yet.
        """
        self.snapshot = snapshot
        self.record: ReadSet = ReadSet()

    @property
    def version(self) -> int:
        """The version that is read; -1 where the table does not exist yet."""
        return -1 if self.snapshot is None else self.snapshot.version

    def filter_files(self, where: Filter | None = None) -> list[AddFile]:
        """See `OptimisticTransaction.filter_files`."""
        return to_add_files(self.filter_file_table(where))

    def filter_file_table(self, where: Filter | None = None) -> pa.Table:
        """The same as `filter_files`, as rows of `FILE_SCHEMA`, for large numbers of files."""
        if self.snapshot is None:
            # It was read as empty: whatever another writer puts there meanwhile conflicts.
            self.record.add_predicate(None)
            return NO_FILES
        from lakelog.core.expressions.filter import normalize_filter

        context = EvalContext.of(self.snapshot.conf, self.snapshot.clock.now_ms())
        predicate = normalize_filter(where, self.snapshot.schema, context)
        files = self.snapshot.file_table_for(predicate)
        self.record.add_predicate(predicate)
        self.record.add_files(files)
        return files

    def files_in_same_partitions(self, adds: Iterable[AddFile]) -> list[AddFile]:
        """The live files of the partitions that new files lie in (dynamic overwrite).

        Those partitions count as read, so that a concurrent append to one of them conflicts. The
        files themselves do not: the caller removes them, which conflicts with other removes.
        """
        if self.snapshot is None:
            self.record.add_partitions(())
            return []
        schema = self.snapshot.partition_schema
        zone = self.snapshot.conf.session_tz
        keys = partition_keys(adds, schema, session_tz=zone)
        self.record.add_partitions(keys)
        files = files_in_partitions(self.snapshot.file_table, keys, schema, session_tz=zone)
        self.record.add_seen(files)
        return to_add_files(files)

    def track_files_read(self, files: pa.Table) -> None:
        """Record live files, as rows of `FILE_SCHEMA`, as read, and no more than these."""
        self.record.add_files(files)

    @contextmanager
    def undone_on_error(self) -> Iterator[None]:
        """See the function of that name in `optimistic`."""
        before = self.record.copy()
        try:
            yield
        except BaseException:
            self.record = before
            raise

    def read_whole_table(self) -> None:
        """Record that everything was read: any concurrent append or delete conflicts."""
        self.record.whole_table = True
        self.record.add_predicate(None)

    def txn_version(self, app_id: str) -> int:
        """See `OptimisticTransaction.txn_version`."""
        self.record.app_ids.add(app_id)
        return -1 if self.snapshot is None else self.snapshot.txn_version(app_id)
