"""IBM Cloud Object Storage: Amazon's protocol, with Stocator's names and settings.

A path is `cos://bucket.service/key`, where `service` is a name that the user chooses, under which
the conf has the endpoint and the HMAC keys: `fs.cos.<service>.endpoint`, `….access.key`,
`….secret.key` (https://github.com/CODAIT/stocator). A commit is a PUT with `If-None-Match: *`, as
Stocator's atomic write is, on which Delta's own IBMCOSLogStore builds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from lakelog.logstores import LogStoreConfError, S3ConditionalLogStore
from lakelog.logstores.locations import shown
from lakelog.logstores.object_store import ObjectLogStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.fs

    from lakelog.logstores.object_store import ObjectClient

_HADOOP: Final = "spark.hadoop."
_URI: Final = re.compile(r"cos://([^/]+)\.([^./]+)(?:/(.*))?", re.DOTALL)
_REGION: Final = re.compile(r"s3\.(?:private\.|direct\.)?([a-z0-9-]+)\.cloud-object-storage\.")


class IBMCOSLogStore(ObjectLogStore):
    """A log on IBM Cloud Object Storage, for any number of writers anywhere.

    IBM documents that on a bucket with versioning its *own* header against overwriting is
    ignored; about `If-None-Match` it says nothing. The endpoint is therefore probed before the
    first commit, like every one that no documentation vouches for, and refused if it lets two
    writers win.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a retry setting is not a number.
        """
        super().__init__(conf)
        self._stores: dict[str, S3ConditionalLogStore] = {}
        self._service: str | None = None

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """Arrow's S3 file system, with the settings of the service that was named first.

        Raises:
            LogStoreConfError: no path was used yet and the conf has no single service, or the
                service lacks a setting.
        """
        return self._store(self._service or self._only_service()).filesystem

    def filesystem_path(self, path: str) -> str:
        """`cos://bucket.service/key` as `bucket/key`.

        Raises:
            ValueError: the path is not such a URI.
            LogStoreConfError: the conf lacks a setting of the service.
        """
        bucket, service, key = _split(path)
        return self._store(service).filesystem_path(f"s3://{bucket}/{key}")

    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        bucket, service, key = _split(path)
        return self._store(service)._locate(f"s3://{bucket}/{key}")

    def _store(self, service: str) -> S3ConditionalLogStore:
        found = self._stores.get(service)
        if found is None:
            found = self._stores[service] = S3ConditionalLogStore(_as_s3(self.conf, service))
            self._service = self._service or service
        return found

    def _only_service(self) -> str:
        pattern = re.compile(r"(?:spark\.hadoop\.)?fs\.cos\.([^.]+)\.endpoint")
        services = {match[1] for key in self.conf if (match := pattern.fullmatch(key))}
        if len(services) != 1:
            raise LogStoreConfError(
                f"the conf has {len(services)} services (fs.cos.<service>.endpoint); a path must "
                "name one of them"
            )
        return services.pop()


def _split(path: str) -> tuple[str, str, str]:
    match = _URI.fullmatch(path)
    if match is None:
        raise LogStoreConfError(f"{shown(path)} is not of the form cos://bucket.service/key")
    return match[1], match[2], match[3] or ""


def _as_s3(conf: Mapping[str, str], service: str) -> dict[str, str]:
    """The conf with the service's settings under the names that the S3 store reads."""
    if _setting(conf, f"fs.cos.{service}.iam.api.key"):
        raise LogStoreConfError(
            f"fs.cos.{service}.iam.api.key: API keys are not supported. Create service credentials "
            f"with HMAC, and set fs.cos.{service}.access.key and fs.cos.{service}.secret.key."
        )
    endpoint = _needed(conf, service, "endpoint")
    if "://" not in endpoint:
        endpoint = f"https://{endpoint}"
    host = urlsplit(endpoint).hostname or ""
    region = _REGION.match(host)
    # Settings of another cloud's bucket in the same conf must not apply to this one.
    own = {k: v for k, v in conf.items() if not k.removeprefix(_HADOOP).startswith("fs.s3a.")}
    s3 = {
        "endpoint": endpoint,
        "endpoint.region": _setting(conf, f"fs.cos.{service}.region")
        or (region[1] if region else "us-south"),
        "access.key": _needed(conf, service, "access.key"),
        "secret.key": _needed(conf, service, "secret.key"),
        "path.style.access": "true",
    }
    return {**own, **{f"{_HADOOP}fs.s3a.{key}": value for key, value in s3.items()}}


def _setting(conf: Mapping[str, str], key: str) -> str | None:
    return conf.get(_HADOOP + key) or conf.get(key) or None


def _needed(conf: Mapping[str, str], service: str, name: str) -> str:
    value = _setting(conf, f"fs.cos.{service}.{name}")
    if value is None:
        raise LogStoreConfError(
            f"{_HADOOP}fs.cos.{service}.{name} is missing; the path names the service {service!r}"
        )
    return value
