"""What the doctor asks about the DynamoDB table behind `S3DynamoDBLogStore`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, cast

from lakelog.logstores._object_client import TryAgainError
from lakelog.logstores._probing import Finding, Status
from lakelog.logstores.errors import LogStoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores._contract import LogStore
    from lakelog.logstores._dynamodb_client import DynamoDBTable
    from lakelog.logstores._dynamodb_replies import TablePlace
    from lakelog.logstores.s3_dynamodb import S3DynamoDBLogStore

__all__ = [
    "as_dynamodb_store",
    "forget_rows",
    "lock_table_endpoint",
    "lock_table_findings",
]

_ERRORS: Final = (OSError, LogStoreError, TryAgainError)


def as_dynamodb_store(store: LogStore) -> S3DynamoDBLogStore | None:
    """The store, if it is that one; nothing is imported to find out."""
    module = sys.modules.get("lakelog.logstores.s3_dynamodb")
    if module is None or not isinstance(store, module.S3DynamoDBLogStore):
        return None
    return cast("S3DynamoDBLogStore", store)


def lock_table_findings(store: S3DynamoDBLogStore, uri: str) -> Iterator[Finding]:
    """Whether the table is there and fit, how its rows expire, and what is unfinished.

    Args:
        store: whose table it is.
        uri: of the Delta table whose rows are looked at.
    """
    from lakelog.logstores._dynamodb_admin import describe
    from lakelog.logstores._dynamodb_errors import LockTableError

    table, place = _table(store)
    try:
        found = describe(table.sdk, place)
    except PermissionError as error:
        said = f"the table could not be described, which commits don't need: {error}"
        yield Finding("lock-table", Status.SKIPPED, said)
    except _ERRORS as error:
        yield Finding.failed("lock-table", error)
        return
    else:
        if found is None and store._table_settings.create:
            said = f"there is no {place} yet; the first commit makes it, as the conf asks"
            yield Finding("lock-table", Status.NOTE, said, "", {"exists": False})
            return
        if found is None:
            yield Finding.failed("lock-table", LockTableError(place.missing()))
            return
    yield from _rows(store, table, uri)
    yield _expiry(table, place)


def _rows(store: S3DynamoDBLogStore, table: DynamoDBTable, uri: str) -> Iterator[Finding]:
    from lakelog.logstores._dynamodb_rows import LogFolder

    folder = LogFolder.of(f"{uri.rstrip('/')}/_delta_log", store.key_scheme)
    if folder is None:
        return
    try:
        rows = list(table.rows(folder.table_path))
    except _ERRORS as error:
        yield Finding.failed("lock-table", error)
        return
    open_rows = [row.file_name for row in rows if not row.complete]
    measured = {"rows": len(rows), "incomplete": open_rows}
    said = f"the {table.place} answers; it has {len(rows)} rows of this table"
    if not open_rows:
        yield Finding("lock-table", Status.FINE, said, "", measured)
        return
    yield Finding(
        "lock-table",
        Status.NOTE,
        f"{said}, of which {len(open_rows)} are decided and not finished: {', '.join(open_rows)}",
        "Nothing, if a writer is at it right now. Else the next reader or writer finishes them.",
        measured,
    )


def _expiry(table: DynamoDBTable, place: TablePlace) -> Finding:
    from lakelog.logstores._dynamodb_admin import TTL_ATTRIBUTE, time_to_live

    check = "lock-table-ttl"
    try:
        attribute = time_to_live(table.sdk, place)
    except PermissionError:
        said = "these credentials may not see how rows expire (dynamodb:DescribeTimeToLive)"
        return Finding(check, Status.SKIPPED, said)
    except _ERRORS as error:
        return Finding.failed(check, error)
    if attribute == TTL_ATTRIBUTE:
        said = f"rows of finished commits expire by {TTL_ATTRIBUTE}"
        return Finding(check, Status.FINE, said, "", {"attribute": attribute})
    seen = "rows never expire, so the table grows with every commit"
    if attribute is not None:
        seen = f"rows expire by {attribute!r}, which no row has, so the table grows"
    return Finding(
        check,
        Status.NOTE,
        seen,
        "Turn on time to live for the attribute expireTime: aws dynamodb update-time-to-live "
        f"--region {place.region} --table-name {place.table} --time-to-live-specification "
        f"Enabled=true,AttributeName={TTL_ATTRIBUTE}",
        {"attribute": attribute},
    )


def forget_rows(store: S3DynamoDBLogStore, log: str) -> bool:
    """Delete the rows of a log that was made for a probe; say whether all are gone."""
    from lakelog.logstores._dynamodb_rows import LogFolder

    folder = LogFolder.of(log, store.key_scheme)
    if folder is None:
        return True
    table, _ = _table(store)
    try:
        for row in list(table.rows(folder.table_path)):
            table.delete(row)
    except _ERRORS:
        return False
    return True


def _table(store: S3DynamoDBLogStore) -> tuple[DynamoDBTable, TablePlace]:
    from lakelog.logstores._dynamodb_client import DynamoDBTable
    from lakelog.logstores._dynamodb_replies import TablePlace

    settings = store._table_settings
    return DynamoDBTable(settings), TablePlace(settings.table, settings.region, settings.endpoint)


def lock_table_endpoint(store: S3DynamoDBLogStore) -> str:
    """The URL of the service that has the table."""
    table, _ = _table(store)
    return str(table.sdk.meta.endpoint_url)
