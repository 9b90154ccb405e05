"""What a store on object storage is built on: one class, and a client of six requests to write.

`ObjectLogStore` makes a contract-keeping store of an `ObjectClient`: lost replies are settled by
tokens, exclusion is tested before the first commit. The stores for S3, GCS and Azure are built on
it, and so are those of `lakelog.contrib`; `docs/logstores.md` shows how to build another.
`lakelog.logstores.object_store.filesystem` makes the store's pyarrow file system of its client.
"""

from lakelog.logstores.object_store.client import (
    TOKEN_NAME,
    KeyTakenError,
    NotTheServiceError,
    ObjectClient,
    ObjectEntry,
    ObjectInfo,
    Owner,
    PreparedRequest,
    RangedObjectClient,
    TryAgainError,
)
from lakelog.logstores.object_store.create_once import RetryPolicy
from lakelog.logstores.object_store.store import ObjectLogStore, retry_policy

__all__ = [
    "TOKEN_NAME",
    "KeyTakenError",
    "NotTheServiceError",
    "ObjectClient",
    "ObjectEntry",
    "ObjectInfo",
    "ObjectLogStore",
    "Owner",
    "PreparedRequest",
    "RangedObjectClient",
    "RetryPolicy",
    "TryAgainError",
    "retry_policy",
]
