"""The log on S3 with a DynamoDB table that decides commits, shared with Delta's own writers."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from lakelog.logstores.lines import encode_lines
from lakelog.logstores.object_store.trust import ensure_trusted
from lakelog.logstores.s3 import S3ConditionalLogStore
from lakelog.logstores.s3_dynamodb.client import DynamoDBTable
from lakelog.logstores.s3_dynamodb.conf import LockTableSettings
from lakelog.logstores.s3_dynamodb.lock_rows import LogFile, LogFolder
from lakelog.logstores.s3_dynamodb.lock_table_commit import commit
from lakelog.logstores.s3_dynamodb.log_objects import LogObjects
from lakelog.logstores.s3_dynamodb.row_decided_log import LockedLog, LogRules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from lakelog.logstores.contract import FileStatus

_T = TypeVar("_T")


class S3DynamoDBLogStore(S3ConditionalLogStore):
    """A log on S3 whose commits are decided by rows of a DynamoDB table.

    Table, rows, drafts, and the order of steps are those of Delta's
    `io.delta.storage.S3DynamoDBLogStore`, so its writers and this one's may commit to one table
    at once, and each finishes what the other began. A commit file, `N.json` in a `_delta_log`,
    is made by way of the table. Any other file that must be created exclusively is created by
    a conditional put, and an overwrite never touches the table, as with Delta.

    Also works on S3 services without conditional puts: there the row alone excludes writers, as
    it does for Delta. Where the service has them, the last step is one, so that a writer which
    slept until its rival's row expired can't overwrite the rival's file.

    `docs/backends/s3-dynamodb.md` lists the settings, which are Delta's, and the few of our own.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a setting of the table is invalid or unknown.
        """
        super().__init__(conf)
        self._table_settings = LockTableSettings.from_conf(self.conf)
        self._rules = LogRules(self._policy, self._table_settings.ttl, self._table_settings.guard)

    @property
    def key_scheme(self) -> str | None:
        """The scheme that `tablePath` gets; `None`: that of the URI."""
        return self._table_settings.key_scheme

    def read(self, path: str) -> Iterator[str]:
        """As the contract has it; a commit file that was decided but not made is made first."""
        return self._read_finishing(path, super().read)

    def read_bytes(self, path: str) -> bytes:
        """As `read`."""
        return self._read_finishing(path, super().read_bytes)

    def write(self, path: str, lines: Iterable[str], *, overwrite: bool = False) -> None:
        """As the contract has it.

        Raises:
            LockTableError: the table is missing or unusable, or its rows are of an older table.
            TableBypassedError: another writer does not use the table.
            TableMovedError: `migrate` moved the log to conditional puts.
            LostDraftError: a commit was begun that no process can finish.
        """
        file = None if overwrite else LogFile.from_path(path, self.key_scheme)
        if file is None:
            super().write(path, lines, overwrite=overwrite)
            return
        commit(self.locked_log(file.folder), file, b"".join(encode_lines(lines)))

    def list_from(self, path: str) -> Iterator[FileStatus]:
        """As the contract has it; the newest commit is finished first if its writer died."""
        folder = LogFolder.from_uri(path.rpartition("/")[0], self.key_scheme)
        if folder is not None:
            self.locked_log(folder).settle()
        return super().list_from(path)

    def settings(self) -> Mapping[str, str]:
        """Those of S3, and which table decides, and how long its rows live."""
        table = self._table_settings
        found = dict(super().settings())
        found["lock table"] = DynamoDBTable(table).place
        found["lock table's rows expire after"] = f"{table.ttl} s"
        found["scheme in the rows' keys"] = table.key_scheme or "that of the URI"
        found["guard against writers that bypass the table"] = "on" if table.guard else "off"
        return found

    def require_conditional_puts(self, folder: LogFolder) -> None:
        """Make sure that the log's bucket can do without the table.

        Raises:
            UnsafeLogStoreError: its conditional put failed the probe, or there is none.
        """
        client, prefix = self._locate(folder.uri)
        ensure_trusted(client, prefix, self.conf, self._timeout)

    def _read_finishing(self, path: str, read: Callable[[str], _T]) -> _T:
        try:
            return read(path)
        except FileNotFoundError:
            file = LogFile.from_path(path, self.key_scheme)
            if file is None or not self.locked_log(file.folder).roll_forward(file):
                raise
        return read(path)

    def locked_log(self, folder: LogFolder) -> LockedLog:
        """The log of a folder: what `commit` and `migrate` work on."""
        client, prefix = self._locate(folder.uri)
        objects = LogObjects(client, prefix, folder.uri, self._policy)
        return LockedLog(folder, DynamoDBTable(self._table_settings), objects, self._rules)
