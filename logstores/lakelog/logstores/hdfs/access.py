"""The HDFS that a Spark conf names: one client for each authority."""

from __future__ import annotations

import threading
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Final

from lakelog.logstores import keys
from lakelog.logstores.hdfs.client import HdfsClient
from lakelog.logstores.hdfs.conf import HadoopConf, hadoop_conf, split_uri
from lakelog.logstores.hdfs.webhdfs import WebHdfs
from lakelog.logstores.object_store.store import retry_policy
from lakelog.logstores.systems import after_fork
from lakelog.logstores.travelling import own_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.object_store.create_once import RetryPolicy

_LIVE: Final[weakref.WeakSet[Hdfs]] = weakref.WeakSet()


def _reset_after_fork() -> None:
    # The locks may have been held at the fork, by threads that the child doesn't have.
    for each in list(_LIVE):
        each.forget_locks()


after_fork(_reset_after_fork)


class Hdfs:
    """Clients by authority. Pickles as what the conf says about HDFS."""

    def __init__(self, conf: Mapping[str, str]) -> None:
        """Keep the conf.

        Raises:
            LogStoreConfError: a retry setting is not a number.
        """
        self.conf: dict[str, str] = dict(conf)
        self.policy: RetryPolicy = retry_policy(conf)
        self.timeout: float = keys.REQUEST_TIMEOUT.of(conf)
        self._lock = threading.Lock()
        self._clients: dict[str, tuple[HdfsClient, WebHdfs]] = {}
        _LIVE.add(self)

    def __reduce__(self) -> tuple[type[Hdfs], tuple[dict[str, str]]]:
        """Rebuild from the conf."""
        return type(self), (own_settings(self.conf, "lakelog.logstores.HDFSLogStore"),)

    @cached_property
    def hadoop(self) -> HadoopConf:
        """Hadoop's settings, read at the first use."""
        return hadoop_conf(self.conf)

    def split(self, uri: str) -> tuple[str, str]:
        """Authority and path of a URI; see `split_uri`."""
        return split_uri(uri, self.hadoop.default_authority)

    def at(self, authority: str) -> tuple[HdfsClient, WebHdfs]:
        """The clients of an authority.

        Raises:
            LogStoreConfError: the conf does not say where it is.
        """
        with self._lock:
            if authority not in self._clients:
                service = self.hadoop.service(authority)
                self._clients[authority] = (
                    HdfsClient(service, self.hadoop, self.policy, self.timeout),
                    WebHdfs(service, self.hadoop.user, self.timeout),
                )
            return self._clients[authority]

    def forget_locks(self) -> None:
        """In a forked child: no thread holds them, whatever they say."""
        self._lock = threading.Lock()
        for _, web in self._clients.values():
            web.forget_lock()

    def close(self) -> None:
        """Let go of all connections; they are made again where needed."""
        with self._lock:
            clients, self._clients = self._clients, {}
        for client, web in clients.values():
            client.close()
            web.close()
