"""Alibaba Cloud OSS: a commit is a PutObject that forbids overwriting.

Settings are those of Hadoop's Aliyun connector (`fs.oss.endpoint`, `fs.oss.accessKeyId`,
`fs.oss.accessKeySecret`, `fs.oss.securityToken`), else `OSS_ACCESS_KEY_ID` and
`OSS_ACCESS_KEY_SECRET` in the environment. OSS's S3-compatible API is not used: what it does with
`If-None-Match` on a put is not documented.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

from lakelog.contrib.oss_client import OSSClient
from lakelog.contrib.sdk_store import SdkLogStore
from lakelog.logstores import LogStoreConfError, MissingExtraError
from lakelog.logstores.locations import shown

_REGION: Final = re.compile(r"(?:https?://)?oss-(?P<region>[a-z]+-[a-z0-9-]+?)(?:-internal)?\.")


class OSSLogStore(SdkLogStore):
    """A log on Alibaba Cloud OSS, for any number of writers, on a bucket without versioning."""

    scheme = "oss"
    settings_prefix = "fs.oss."

    def _split(self, path: str) -> tuple[tuple[str, ...], str]:
        bucket, _, key = path.removeprefix("oss://").partition("/")
        if not path.startswith("oss://") or not bucket:
            raise LogStoreConfError(f"{shown(path)} is not of the form oss://bucket/key")
        return (bucket,), key

    def _client(self, place: tuple[str, ...]) -> OSSClient:
        try:
            import alibabacloud_oss_v2 as oss
            from alibabacloud_oss_v2.retry import NopRetryer
        except ImportError as error:
            raise MissingExtraError("oss", "Alibaba Cloud OSS") from error

        endpoint = self._setting("endpoint")
        if endpoint is None:
            raise LogStoreConfError(
                "fs.oss.endpoint is missing, such as oss-cn-hangzhou.aliyuncs.com"
            )
        if "://" not in endpoint:
            endpoint = f"https://{endpoint}"
        region = self._setting("region") or _region(endpoint)
        config = oss.config.load_default()
        config.credentials_provider = self._credentials(oss)
        config.endpoint = endpoint
        # Without a region only the older signature can be made.
        config.region, config.signature_version = region or "", "v4" if region else "v1"
        config.retryer = NopRetryer()
        config.connect_timeout = config.readwrite_timeout = self._timeout
        return OSSClient(oss.Client(config), endpoint, place[0])

    def _credentials(self, oss: Any) -> Any:
        if self._setting("credentials.provider"):
            raise LogStoreConfError(
                "fs.oss.credentials.provider names a Java class, which can't be used from Python. "
                "Set fs.oss.accessKeyId and fs.oss.accessKeySecret, or the environment."
            )
        key, secret = self._setting("accessKeyId"), self._setting("accessKeySecret")
        if (key is None) != (secret is None):
            raise LogStoreConfError("fs.oss.accessKeyId and fs.oss.accessKeySecret go together")
        if key is not None:
            return oss.credentials.StaticCredentialsProvider(
                key, secret, self._setting("securityToken")
            )
        if not os.environ.get("OSS_ACCESS_KEY_ID"):
            raise LogStoreConfError(
                "no credentials for OSS: set spark.hadoop.fs.oss.accessKeyId and "
                "spark.hadoop.fs.oss.accessKeySecret, or OSS_ACCESS_KEY_ID and "
                "OSS_ACCESS_KEY_SECRET in the environment"
            )
        return oss.credentials.EnvironmentVariableCredentialsProvider()


def _region(endpoint: str) -> str | None:
    match = _REGION.match(endpoint)
    return match["region"] if match else None
