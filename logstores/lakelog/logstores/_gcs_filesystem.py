"""Data files and checkpoints on Google Cloud Storage, as a pyarrow file system.

Arrow's own `GcsFileSystem` is fastest, but takes only Application Default Credentials, no name at
all, or a token that expires. For the rest (a key in the conf, a paying project, a proxy with a
password) there is one on google-cloud-storage.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import pyarrow.fs

    from lakelog.logstores._gcs_conf import GCSSettings

__all__ = ["gcs_filesystem"]


def gcs_filesystem(settings: GCSSettings, budget: float) -> pyarrow.fs.FileSystem:
    """A file system for settings. It may be pickled and used on another host.

    Args:
        settings: endpoint and credentials.
        budget: seconds that an operation may be repeated.
    """
    import pyarrow.fs

    if settings.auth not in ("default", "anonymous") or settings.paying_project or settings.proxy:
        from lakelog.logstores._gcs_handler import GCSHandler

        return pyarrow.fs.PyFileSystem(GCSHandler(settings, budget))
    parts = urlsplit(settings.root_url)
    return pyarrow.fs.GcsFileSystem(
        anonymous=settings.auth == "anonymous",
        target_service_account=settings.impersonated,
        scheme=parts.scheme,
        endpoint_override=parts.netloc,
        project_id=settings.project,
        retry_time_limit=timedelta(seconds=max(1.0, budget)),
    )
