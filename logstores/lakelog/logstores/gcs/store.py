"""Google Cloud Storage: a commit is a conditional upload.

`ifGenerationMatch=0` lets an upload succeed only while the name has no live object, so of all
writers one wins: https://cloud.google.com/storage/docs/request-preconditions. Listings are
strongly consistent: https://cloud.google.com/storage/docs/consistency.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys
from lakelog.logstores.errors import LogStoreConfError
from lakelog.logstores.gcs.client import GCSClient
from lakelog.logstores.gcs.conf import gcs_settings
from lakelog.logstores.gcs.pace import pace_of
from lakelog.logstores.locations import shown
from lakelog.logstores.object_store.store import ObjectLogStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.fs

    from lakelog.logstores.contract import Capabilities
    from lakelog.logstores.object_store.store import ObjectClient

INTERVAL_KEY: Final = keys.GCS_INTERVAL.name
"""Seconds between two writes of one name; 0 for emulators, which have no such limit."""
_DOCUMENTED: Final = 1.0
_SCHEMES: Final = ("gs://",)
_SHOWN: Final = {
    "default": "Application Default Credentials",
    "anonymous": "none",
    "keyfile": "the service account's key in {}",
    "key": "the service account's key in the conf",
    "federation": "the workload identity federation in {}",
    "user": "the user's login in the conf",
    "token": "an access token in the conf",
}


class GCSLogStore(ObjectLogStore):
    """A log on Google Cloud Storage, for any number of writers anywhere.

    Settings and credentials are those of Google's Hadoop connector, else Application Default
    Credentials; see `docs/backends/gcs.md`.
    """

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Read the settings; connect at the first use.

        Raises:
            LogStoreConfError: a setting is wrong.
        """
        super().__init__(conf)
        self._settings = gcs_settings(self.conf, self._timeout)
        self._interval = _interval(self.conf)

    @property
    def capabilities(self) -> Capabilities:
        """Those of every object store; a name needs a second between two writes."""
        return replace(super().capabilities, min_commit_interval=self._interval)

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """Arrow's own file system where it supports the settings, else one on the SDK."""
        from lakelog.logstores.gcs.filesystem import gcs_filesystem

        return gcs_filesystem(self._settings, self._policy.budget)

    def filesystem_path(self, path: str) -> str:
        """`gs://bucket/key` as `bucket/key`.

        Raises:
            ValueError: the path is not such a URI.
        """
        bucket, key = _split(path)
        return f"{bucket}/{key}".rstrip("/")

    def settings(self) -> Mapping[str, str]:
        """The conf's, and what results from them: endpoint, and whose credentials are used."""
        auth = _SHOWN[self._settings.auth].format(self._settings.file)
        if self._settings.impersonated:
            auth += f", acting as {self._settings.impersonated}"
        found = {**super().settings(), "endpoint": self._settings.root_url, "credentials": auth}
        if self._settings.paying_project:
            found["requests are paid by"] = self._settings.paying_project
        return found

    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        bucket, key = _split(path)
        pace = pace_of(self._settings.root_url, self._interval)
        return GCSClient(self._settings, bucket, pace), key


def _split(path: str) -> tuple[str, str]:
    for scheme in _SCHEMES:
        if path.startswith(scheme):
            bucket, _, key = path.removeprefix(scheme).partition("/")
            if bucket:
                return bucket, key
    raise LogStoreConfError(f"{shown(path)} is not of the form gs://bucket/key")


def _interval(conf: Mapping[str, str]) -> float:
    value = keys.GCS_INTERVAL.of(conf)
    return _DOCUMENTED if value is None else value
