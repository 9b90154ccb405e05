"""What the doctor asks about the DynamoDB table behind `S3DynamoDBLogStore`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, cast

from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.errors import LogStoreError
from lakelog.logstores.object_store.client import TryAgainError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores.contract import LogStore
    from lakelog.logstores.s3_dynamodb import S3DynamoDBLogStore
    from lakelog.logstores.s3_dynamodb.client import DynamoDBTable
    from lakelog.logstores.s3_dynamodb.replies import TablePlace

_ERRORS: Final = (OSError, LogStoreError, TryAgainError)


def as_dynamodb_store(store: LogStore) -> S3DynamoDBLogStore | None:
    """The store, if it is an `S3DynamoDBLogStore`; nothing is imported to find out."""
    module = sys.modules.get("lakelog.logstores.s3_dynamodb")
    if module is None or not isinstance(store, module.S3DynamoDBLogStore):
        return None
    return cast("S3DynamoDBLogStore", store)


def lock_table_findings(store: S3DynamoDBLogStore, uri: str) -> Iterator[Finding]:
    """Whether the table exists and is usable, how its rows expire, and what is unfinished.

    Args:
        store: whose table it is.
        uri: of the Delta table whose rows are looked at.
    """
    from lakelog.logstores.s3_dynamodb.errors import LockTableError
    from lakelog.logstores.s3_dynamodb.lock_table import describe

    table, place = _table(store)
    try:
        found = describe(table.sdk, place)
    except PermissionError as error:
        summary = f"the table could not be described, which commits don't need: {error}"
        yield Finding("lock-table", Status.SKIPPED, summary)
    except _ERRORS as error:
        yield Finding.failed("lock-table", error)
        return
    else:
        if found is None and store._table_settings.create:
            summary = f"there is no {place} yet; the first commit creates it, as the conf asks"
            yield Finding("lock-table", Status.NOTE, summary, "", {"exists": False})
            return
        if found is None:
            yield Finding.failed("lock-table", LockTableError(place.missing()))
            return
    yield from _rows(store, table, uri)
    yield _expiry(table, place)


def _rows(store: S3DynamoDBLogStore, table: DynamoDBTable, uri: str) -> Iterator[Finding]:
    from lakelog.logstores.s3_dynamodb.lock_rows import LogFolder

    folder = LogFolder.from_uri(f"{uri.rstrip('/')}/_delta_log", store.key_scheme)
    if folder is None:
        return
    try:
        rows = list(table.rows(folder.table_path))
    except _ERRORS as error:
        yield Finding.failed("lock-table", error)
        return
    open_rows = [row.file_name for row in rows if not row.complete]
    measured = {"rows": len(rows), "incomplete": open_rows}
    summary = f"the {table.place} answers; it has {len(rows)} rows of this table"
    if not open_rows:
        yield Finding("lock-table", Status.FINE, summary, "", measured)
        return
    yield Finding(
        "lock-table",
        Status.NOTE,
        f"{summary}, of which {len(open_rows)} are decided but not finished: "
        f"{', '.join(open_rows)}",
        "Nothing, if a writer is finishing them right now. Otherwise the next reader or writer "
        "does.",
        measured,
    )


def _expiry(table: DynamoDBTable, place: TablePlace) -> Finding:
    from lakelog.logstores.s3_dynamodb.lock_table import TTL_ATTRIBUTE, time_to_live

    check = "lock-table-ttl"
    try:
        attribute = time_to_live(table.sdk, place)
    except PermissionError:
        summary = "these credentials may not see how rows expire (dynamodb:DescribeTimeToLive)"
        return Finding(check, Status.SKIPPED, summary)
    except _ERRORS as error:
        return Finding.failed(check, error)
    if attribute == TTL_ATTRIBUTE:
        summary = f"rows of finished commits expire by {TTL_ATTRIBUTE}"
        return Finding(check, Status.FINE, summary, "", {"attribute": attribute})
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
    """Delete the rows of a log that was made for a probe; return whether all are gone."""
    from lakelog.logstores.s3_dynamodb.lock_rows import LogFolder

    folder = LogFolder.from_uri(log, store.key_scheme)
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
    from lakelog.logstores.s3_dynamodb.client import DynamoDBTable
    from lakelog.logstores.s3_dynamodb.replies import TablePlace

    settings = store._table_settings
    return DynamoDBTable(settings), TablePlace(settings.table, settings.region, settings.endpoint)


def lock_table_endpoint(store: S3DynamoDBLogStore) -> str:
    """The URL of the service that has the table."""
    table, _ = _table(store)
    return str(table.sdk.meta.endpoint_url)
