"""The lock table on DynamoDB, one request at a time, on boto3."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from lakelog.logstores.s3.conf import S3Settings
from lakelog.logstores.s3.credentials import CredentialSource
from lakelog.logstores.s3.sdk import new_client
from lakelog.logstores.s3_dynamodb.lock_rows import CommitRow
from lakelog.logstores.s3_dynamodb.lock_table import ensure_table
from lakelog.logstores.s3_dynamodb.replies import TablePlace, check_reply, speaking_dynamodb
from lakelog.logstores.s3_dynamodb.row_table import RowTable
from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.s3_dynamodb.conf import LockTableSettings

_NEVER_TAKEN: Final = "attribute_not_exists(tablePath)"
"""True only where there is no item of that whole key: Delta's `Expected: fileName, Exists=false`
says the same."""

_MOST: Final = 64
"""Clients that are kept; the oldest is dropped when another one is made."""


class _Shelf:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clients: dict[LockTableSettings, Any] = {}
        self.checked: set[TablePlace] = set()


_shelf = _Shelf()


def _reset_after_fork() -> None:
    # A child of a fork must not share connections, and the lock may have been held.
    global _shelf
    _shelf = _Shelf()


after_fork(_reset_after_fork)


class DynamoDBTable(RowTable):
    """The table that the settings name. Holds settings only, so it may be pickled and forked."""

    def __init__(self, settings: LockTableSettings) -> None:
        """Connect to nothing yet."""
        self._settings = settings
        self._place = TablePlace(settings.table, settings.region, settings.endpoint)

    @property
    def place(self) -> str:
        return str(self._place)

    @property
    def sdk(self) -> Any:
        """The boto3 client of this process."""
        shelf = _shelf
        with shelf.lock:
            if self._settings not in shelf.clients:
                while len(shelf.clients) >= _MOST:
                    del shelf.clients[next(iter(shelf.clients))]
                shelf.clients[self._settings] = _new_client(self._settings)
            return shelf.clients[self._settings]

    def get(self, table_path: str, file_name: str) -> CommitRow | None:
        key = {"tablePath": {"S": table_path}, "fileName": {"S": file_name}}
        reply = self._ask("GetItem", "get_item", Key=key, ConsistentRead=True)
        item = reply.get("Item")
        return CommitRow.from_item(item) if item else None

    def newest(self, table_path: str) -> CommitRow | None:
        items = self._query(table_path, ScanIndexForward=False, Limit=1).get("Items", [])
        return CommitRow.from_item(items[0]) if items else None

    def insert(self, row: CommitRow) -> None:
        self._ask(
            "PutItem",
            "put_item",
            Item=row.to_item(),
            ConditionExpression=_NEVER_TAKEN,
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )

    def replace(self, row: CommitRow) -> None:
        self._ask("PutItem", "put_item", Item=row.to_item())

    def rows(self, table_path: str) -> Iterator[CommitRow]:
        start: dict[str, Any] = {}
        while True:
            reply = self._query(table_path, **start)
            yield from (CommitRow.from_item(item) for item in reply.get("Items", []))
            if "LastEvaluatedKey" not in reply:
                return
            start = {"ExclusiveStartKey": reply["LastEvaluatedKey"]}

    def delete(self, row: CommitRow) -> None:
        key = {"tablePath": {"S": row.table_path}, "fileName": {"S": row.file_name}}
        self._ask("DeleteItem", "delete_item", Key=key)

    def _query(self, table_path: str, **extra: Any) -> Any:
        return self._ask(
            "Query",
            "query",
            ConsistentRead=True,
            KeyConditionExpression="tablePath = :t",
            ExpressionAttributeValues={":t": {"S": table_path}},
            **extra,
        )

    def _ask(self, action: str, method: str, **request: Any) -> Any:
        checked = _shelf.checked
        with speaking_dynamodb(action, self._place):
            sdk = self.sdk
        if self._place not in checked:
            ensure_table(sdk, self._settings, self._place)
            checked.add(self._place)
        with speaking_dynamodb(action, self._place):
            reply = getattr(sdk, method)(TableName=self._settings.table, **request)
        check_reply(reply, self._place)
        return reply


def _new_client(settings: LockTableSettings) -> Any:
    own = settings.access_key is not None
    sources = settings.sources
    if own and not sources:
        sources = (
            CredentialSource.TEMPORARY if settings.session_token else CredentialSource.SIMPLE,
        )
    reached = S3Settings(
        endpoint=settings.endpoint,
        region=settings.region,
        access_key=settings.access_key if own else settings.s3.access_key,
        secret_key=settings.secret_key if own else settings.s3.secret_key,
        session_token=settings.session_token if own else settings.s3.session_token,
        sources=sources,
        role=settings.s3.role,
        connect_timeout=settings.timeout,
        read_timeout=settings.timeout,
    )
    return new_client("dynamodb", reached)
