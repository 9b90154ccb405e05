"""A log on S3 whose commits a DynamoDB table decides, as Delta's own multi-cluster store does."""

from lakelog.logstores.s3_dynamodb.errors import (
    LockTableError,
    LostDraftError,
    TableBypassedError,
    TableMovedError,
)
from lakelog.logstores.s3_dynamodb.migration import Migration, migrate
from lakelog.logstores.s3_dynamodb.store import S3DynamoDBLogStore

__all__ = [
    "LockTableError",
    "LostDraftError",
    "Migration",
    "S3DynamoDBLogStore",
    "TableBypassedError",
    "TableMovedError",
    "migrate",
]
