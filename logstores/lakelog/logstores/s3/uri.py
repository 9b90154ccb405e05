"""Bucket and key of an S3 URI."""

from __future__ import annotations

import re
from typing import Final

from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.locations import shown

SCHEMES: Final = ("s3", "s3a", "s3n")
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._\-]{0,254}")


def bucket_and_key(uri: str) -> tuple[str, str]:
    """Split `s3a://bucket/some/key`. Nothing is percent-decoded: a path is what S3 calls the key.

    Raises:
        LogStoreConfError: another scheme, no bucket or one of impossible letters, or credentials
            in the URI, which are not shown.
    """
    scheme, mark, rest = uri.partition("://")
    if not mark or scheme.lower() not in SCHEMES:
        raise LogStoreConfError(
            f"{shown(uri)} is not a path on S3: give s3://bucket/key or s3a://bucket/key"
        )
    bucket, _, key = rest.partition("/")
    if "@" in bucket:
        raise LogStoreConfError(
            f"an {scheme} URI for the bucket {bucket.rpartition('@')[2]!r} holds credentials, and "
            "URIs end up in logs: set spark.hadoop.fs.s3a.access.key and .secret.key instead"
        )
    if not _BUCKET.fullmatch(bucket):
        raise LogStoreConfError(
            f"{shown(uri)} does not name a valid S3 bucket: give s3://bucket/key"
        )
    return bucket, key
