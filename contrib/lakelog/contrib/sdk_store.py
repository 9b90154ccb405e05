"""What the stores on a vendor's own SDK share."""

from __future__ import annotations

import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Final

from lakelog.logstores.object_store import ObjectLogStore
from lakelog.logstores.travelling import own_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow.fs

    from lakelog.logstores.object_store import ObjectClient

_HADOOP: Final = "spark.hadoop."


class SdkLogStore(ObjectLogStore):
    """A log on object storage that is reached by its vendor's SDK."""

    scheme: ClassVar[str]
    settings_prefix: ClassVar[str]
    """Of its keys, with or without `spark.hadoop.` before it."""

    def __init__(self, conf: Mapping[str, str] | None = None) -> None:
        """Keep the conf; connect at the first use.

        Raises:
            LogStoreConfError: a retry setting is not a number.
        """
        super().__init__(conf)
        self._clients: dict[tuple[object, ...], ObjectClient] = {}

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        """The bucket through the same SDK, whole objects at a time; Arrow has none for it."""
        from lakelog.logstores.object_store.filesystem import object_filesystem

        return object_filesystem(self, f"{self.scheme}://")

    def filesystem_path(self, path: str) -> str:
        """A URI of the store without its scheme.

        Raises:
            ValueError: the path is not such a URI.
        """
        place, key = self._split(path)
        return f"{'@'.join(place)}/{key}".rstrip("/")

    def __getstate__(self) -> dict[str, Any]:
        """Drop the connections, and the settings of other storages."""
        cls = type(self)
        conf = own_settings(self.conf, f"{cls.__module__}.{cls.__qualname__}")
        return {**self.__dict__, "_clients": {}, "_conf": conf}

    def _locate(self, path: str) -> tuple[ObjectClient, str]:
        place, key = self._split(path)
        name = (os.getpid(), *place)
        found = self._clients.get(name)
        if found is None:
            found = self._clients[name] = self._client(place)
        return found, key

    @abstractmethod
    def _split(self, path: str) -> tuple[tuple[str, ...], str]:
        """Where the bucket is, and the key in it.

        Raises:
            LogStoreConfError: the path is not a URI of this store.
        """

    @abstractmethod
    def _client(self, place: tuple[str, ...]) -> ObjectClient:
        """A client of a bucket."""

    def _setting(self, name: str) -> str | None:
        key = self.settings_prefix + name
        return self.conf.get(_HADOOP + key) or self.conf.get(key) or None
