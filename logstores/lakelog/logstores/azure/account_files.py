"""One Azure account as a pyarrow file system, on the SDK, for what Arrow's own can't reach.

Paths are `container/key`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.logstores.azure.client import AzureClient
from lakelog.logstores.object_store.create_once import RetryPolicy
from lakelog.logstores.object_store.filesystem import ObjectFiles

if TYPE_CHECKING:
    from collections.abc import Hashable

    from lakelog.logstores.azure.conf import AzureSettings


class BlobFiles(ObjectFiles):
    """What pyarrow calls. It holds settings only, so that it may be pickled."""

    def __init__(self, settings: AzureSettings, budget: float) -> None:
        """Connect at the first use.

        Args:
            settings: endpoint and credentials.
            budget: seconds that an operation may be repeated.
        """
        super().__init__("azure-blob", RetryPolicy(budget))
        self._settings = settings

    def delete_dir(self, path: str) -> None:
        """Remove everything below a folder, and the blob that marks it, if any."""
        super().delete_dir(path)
        client, key = self._locate(path.rstrip("/"))
        self._delete(client, key)

    def _locate(self, path: str) -> tuple[AzureClient, str]:
        container, _, key = path.partition("/")
        return AzureClient(self._settings, container), key

    def _identity(self) -> Hashable:
        return self._settings
