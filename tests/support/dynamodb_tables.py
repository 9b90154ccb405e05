"""A Delta log behind the real lock table and the real bucket, and looks around the store."""

from __future__ import annotations

import functools
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakelog.logstores.s3_dynamodb import S3DynamoDBLogStore
from lakelog.logstores.s3_dynamodb.lock_rows import LogFolder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.s3_dynamodb.row_decided_log import LockedLog
    from support.servers.dynamodb import DynamoDBEndpoint
    from support.servers.minio import S3Endpoint


def commit_name(version: int) -> str:
    """The file name of a version."""
    return f"{version:020d}.json"


@functools.cache
def _dynamodb_client(endpoint: DynamoDBEndpoint) -> Any:
    import boto3

    return boto3.client(
        "dynamodb",
        endpoint_url=endpoint.url,
        region_name=endpoint.region,
        aws_access_key_id=endpoint.access_key,
        aws_secret_access_key=endpoint.secret_key,
    )


@functools.cache
def _s3_client(endpoint: S3Endpoint) -> Any:
    return endpoint.client()


@dataclass
class LockedTable:
    """A table of its own in a bucket, with a lock table that is there."""

    s3: S3Endpoint
    dynamodb: DynamoDBEndpoint
    bucket: str
    lock_table: str
    name: str = field(default_factory=lambda: f"t-{uuid.uuid4().hex[:8]}")

    @property
    def uri(self) -> str:
        return f"s3a://{self.bucket}/{self.name}"

    def path(self, version: int) -> str:
        return f"{self.uri}/_delta_log/{commit_name(version)}"

    def conf(self, **more: str) -> dict[str, str]:
        """Keyword arguments are settings of Delta's: `ddb_ttl="0"`."""
        extra = {
            f"spark.io.delta.storage.S3DynamoDBLogStore.{name.replace('_', '.')}": value
            for name, value in more.items()
        }
        return {
            **self.s3.conf,
            **self.dynamodb.conf(self.lock_table),
            "spark.lakelog.store.endpointProbe": "never",
            "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
            **extra,
        }

    def store(self, more: Mapping[str, str] | None = None, **settings: str) -> S3DynamoDBLogStore:
        return S3DynamoDBLogStore({**self.conf(**settings), **(more or {})})

    def log(self, store: S3DynamoDBLogStore) -> LockedLog:
        """The table's log, as the store sees it."""
        folder = LogFolder.from_uri(f"{self.uri}/_delta_log")
        assert folder is not None
        return store.locked_log(folder)

    def sdks(self, store: S3DynamoDBLogStore) -> tuple[Any, Any]:
        """The boto3 clients that the store uses: of S3, and of DynamoDB."""
        rows: Any = self.log(store).rows
        client: Any = store._locate(self.uri)[0]
        return client.sdk, rows.sdk

    def ddb(self) -> Any:
        """A boto3 client for the lock table, beside the store."""
        return _dynamodb_client(self.dynamodb)

    def item(self, version: int) -> dict[str, Any] | None:
        """The row of a version, as DynamoDB has it."""
        key = {"tablePath": {"S": self.uri}, "fileName": {"S": commit_name(version)}}
        found: dict[str, Any] | None = (
            self.ddb().get_item(TableName=self.lock_table, Key=key, ConsistentRead=True).get("Item")
        )
        return found

    def put_item(self, version: int, temp_path: str, complete: str, **more: Any) -> None:
        """A row as somebody else puts it."""
        item = {
            "tablePath": {"S": self.uri},
            "fileName": {"S": commit_name(version)},
            "tempPath": {"S": temp_path},
            "complete": {"S": complete},
            **more,
        }
        self.ddb().put_item(TableName=self.lock_table, Item=item)

    def delete_item(self, version: int) -> None:
        """What the expiry of a row does."""
        key = {"tablePath": {"S": self.uri}, "fileName": {"S": commit_name(version)}}
        self.ddb().delete_item(TableName=self.lock_table, Key=key)

    def put_object(self, name: str, text: str) -> None:
        """A file of the log as somebody else puts it."""
        key = f"{self.name}/_delta_log/{name}"
        _s3_client(self.s3).put_object(Bucket=self.bucket, Key=key, Body=text.encode())

    def delete_object(self, name: str) -> None:
        _s3_client(self.s3).delete_object(Bucket=self.bucket, Key=f"{self.name}/_delta_log/{name}")

    def text(self, name: str) -> str | None:
        """A file of the log, read around the store."""
        client = _s3_client(self.s3)
        try:
            reply = client.get_object(Bucket=self.bucket, Key=f"{self.name}/_delta_log/{name}")
        except client.exceptions.NoSuchKey:
            return None
        body: bytes = reply["Body"].read()
        return body.decode()
