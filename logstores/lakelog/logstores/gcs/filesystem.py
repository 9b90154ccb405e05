"""Data files and checkpoints on Google Cloud Storage, as a pyarrow file system.

Arrow's own `GcsFileSystem` is fastest, but takes only Application Default Credentials, no
credentials at all, or a token that expires. For the rest (a key in the conf, a paying project, a
proxy with a password, or one of the environment) there is one on google-cloud-storage.
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow.fs

from lakelog.logstores.environment import needs_requests
from lakelog.logstores.gcs.client import GCSClient
from lakelog.logstores.gcs.connection import connection_of
from lakelog.logstores.gcs.errors import translated
from lakelog.logstores.gcs.pace import pace_of
from lakelog.logstores.object_store.client import TryAgainError
from lakelog.logstores.object_store.create_once import RetryPolicy
from lakelog.logstores.object_store.filesystem import ObjectFiles

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator
    from pathlib import Path

    from lakelog.logstores.gcs.conf import GCSSettings


def gcs_filesystem(settings: GCSSettings, budget: float) -> pyarrow.fs.FileSystem:
    """A file system for settings. It may be pickled and used on another host.

    Args:
        settings: endpoint and credentials.
        budget: seconds that an operation may be repeated.
    """
    is_plain = settings.auth in ("default", "anonymous") and not settings.paying_project
    if not is_plain or settings.proxy or needs_requests(settings.root_url):
        return pyarrow.fs.PyFileSystem(GCSFiles(settings, budget))
    parts = urlsplit(settings.root_url)
    return pyarrow.fs.GcsFileSystem(
        anonymous=settings.auth == "anonymous",
        target_service_account=settings.impersonated,
        scheme=parts.scheme,
        endpoint_override=parts.netloc,
        project_id=settings.project,
        retry_time_limit=timedelta(seconds=max(1.0, budget)),
    )


class GCSFiles(ObjectFiles):
    """What pyarrow calls. It holds settings only, so that it may be pickled.

    Uploads and copies are the SDK's own, which go on where a large one was interrupted. The rest is
    requests of `GCSClient`: all of them go to the conf's endpoint, and to no other that a reply
    names.
    """

    def __init__(self, settings: GCSSettings, budget: float) -> None:
        """Connect at the first use.

        Args:
            settings: endpoint and credentials.
            budget: seconds that an operation may be repeated.
        """
        super().__init__("gcs", RetryPolicy(budget))
        self._settings = settings
        self._budget = budget

    def copy_file(self, src: str, dest: str) -> None:
        """Copy on the server's side."""
        with _asking(f"{src} to {dest}", "storage.objects.create"):
            target, source, token = self._blob(dest), self._blob(src), None
            while True:
                token, _, _ = target.rewrite(
                    source, token=token, retry=self._retry, timeout=self._timeouts
                )
                if token is None:
                    return

    def publish(self, path: str, source: Path) -> None:
        """Upload a local file."""
        with _asking(path, "storage.objects.create"):
            self._blob(path).upload_from_filename(
                str(source),
                content_type="application/octet-stream",
                client=connection_of(self._settings).client,
                retry=self._retry,
                timeout=self._timeouts,
            )

    def _locate(self, path: str) -> tuple[GCSClient, str]:
        bucket, _, key = path.partition("/")
        # Files have names of their own, so that none waits for its turn.
        return GCSClient(self._settings, bucket, pace_of(self._settings.root_url, 0.0)), key

    def _identity(self) -> Hashable:
        return self._settings

    @property
    def _retry(self) -> Any:
        from google.cloud.storage.retry import DEFAULT_RETRY

        return DEFAULT_RETRY.with_timeout(self._budget)

    @property
    def _timeouts(self) -> tuple[float, float]:
        return (self._settings.timeout, self._settings.timeout)

    def _blob(self, path: str) -> Any:
        bucket, _, key = path.partition("/")
        if not key:
            raise IsADirectoryError(path)
        return connection_of(self._settings).bucket(bucket).blob(key)


@contextmanager
def _asking(path: str, permission: str) -> Iterator[None]:
    """Errors of the service as `OSError`s, which is what pyarrow passes on."""
    from google.api_core.exceptions import RetryError

    try:
        with translated(f"gs://{path}", permission):
            try:
                yield
            except RetryError as error:  # the SDK's budget is spent: say what it last saw
                if error.cause is None:
                    raise
                raise error.cause from None
    except TryAgainError as error:
        raise OSError(str(error)) from error
