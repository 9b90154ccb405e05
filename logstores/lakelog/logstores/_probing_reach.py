"""Which endpoints a store talks to for a URI, and whether they can be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.logstores._objects import ObjectLogStore
from lakelog.logstores._probing import Finding, Status
from lakelog.logstores._probing_connection import Connection, probe_http
from lakelog.logstores._resolution import scheme_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores._contract import LogStore

__all__ = ["reach"]

_S3: Final = "spark.hadoop.fs.s3a.endpoint"
_AZURE: Final = "the URI and the spark.hadoop.fs.azure.* keys of its account"
_ASKED_BY: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    "gs": "spark.hadoop.fs.gs.storage.root.url",
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az"), _AZURE),
}
_PROXY_KEYS: Final = (".proxy.host", ".proxy.address")


def reach(store: LogStore, uri: str, timeout: float) -> tuple[str | None, list[Connection]]:
    """Try to reach what the store talks to.

    Args:
        store: any.
        uri: of the table.
        timeout: seconds, of each step of a connection.

    Returns:
        The endpoint as the store has it (`None`: none is known), and what became of each attempt.

    Raises:
        LogStoreError: a setting is wrong, or an extra is missing.
        OSError: the store can't even name its endpoint, for lack of credentials for instance.
        ValueError: the URI is none of the store's.
    """
    if not isinstance(store, ObjectLogStore):
        return None, []
    client, _ = store._locate(uri.rstrip("/") + "/")
    endpoint = client.endpoint
    if _has_proxy(store.conf):
        said = "not tried: the conf names a proxy, and only the SDK goes that way"
        return endpoint, [Connection(Finding("connection", Status.SKIPPED, said))]
    asked_by = _ASKED_BY.get(scheme_of(uri), "the conf of the store")
    if "://" not in endpoint:
        return endpoint, []
    return endpoint, [probe_http(endpoint, timeout, asked_by=asked_by)]


def _has_proxy(conf: Mapping[str, str]) -> bool:
    return any(key.endswith(_PROXY_KEYS) and value.strip() for key, value in conf.items())
