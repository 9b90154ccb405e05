"""Which endpoints a store talks to for a URI, and whether they can be reached."""

from __future__ import annotations

import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import urlsplit

from lakelog.logstores.doctor.finding import Finding, Status
from lakelog.logstores.doctor.lock_table_checks import as_dynamodb_store, lock_table_endpoint
from lakelog.logstores.doctor.reachability import Connection, probe_http, probe_rpc
from lakelog.logstores.object_store.contenders import prepared
from lakelog.logstores.object_store.store import ObjectLogStore
from lakelog.logstores.resolution import scheme_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.logstores.contract import LogStore
    from lakelog.logstores.hdfs import HDFSLogStore
    from lakelog.logstores.object_store.client import ObjectClient

_S3: Final = "spark.hadoop.fs.s3a.endpoint"
_AZURE: Final = "the URI, or in spark.lakelog.azure.endpoint"
_ASKED_BY: Final = {
    **dict.fromkeys(("s3", "s3a", "s3n"), _S3),
    "gs": "spark.hadoop.fs.gs.storage.root.url",
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "az"), _AZURE),
}
_DYNAMODB: Final = (
    "spark.lakelog.s3dynamodb.endpoint (where it is not set, AWS is asked, in the region of "
    "spark.io.delta.storage.S3DynamoDBLogStore.ddb.region)"
)
_HDFS: Final = "the URI, in spark.hadoop.fs.defaultFS, or in HADOOP_CONF_DIR"
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
        OSError: the store can't even determine its endpoint, for lack of credentials for instance.
        ValueError: the URI is not one of the store's.
    """
    hdfs = _as_hdfs_store(store)
    if hdfs is not None:
        return _reach_hdfs(hdfs, uri, timeout)
    if not isinstance(store, ObjectLogStore):
        return None, []
    client, _ = store._locate(uri.rstrip("/") + "/")
    endpoint = client.endpoint
    if _has_proxy(store.conf):
        summary = "not tried: the conf names a proxy, and only the SDK uses it"
        return endpoint, [Connection(Finding("connection", Status.SKIPPED, summary))]
    asked_by = _ASKED_BY.get(scheme_of(uri), "the conf of the store")
    if client.is_known and asked_by == _S3:
        asked_by += " (AWS is asked where it is not set)"
    if not endpoint.startswith(("http://", "https://")):
        return endpoint, []
    found = [probe_http(endpoint, timeout, asked_by=asked_by)]
    if found[0].finding.status is Status.FINE:
        found += _reach_bucket_host(client, endpoint)
    locked = as_dynamodb_store(store)
    if locked is not None:
        url = lock_table_endpoint(locked)
        found.append(probe_http(url, timeout, asked_by=_DYNAMODB))
    return endpoint, found


def _reach_bucket_host(client: ObjectClient, endpoint: str) -> list[Connection]:
    """Where the bucket is in the host name: whether that name resolves."""
    request = prepared(client, "lakelog", "")
    if request is None or request.host == urlsplit(endpoint).hostname:
        return []
    try:
        socket.getaddrinfo(request.host, request.port)
    except OSError:
        return [
            Connection(
                Finding(
                    "connection",
                    Status.FAILED,
                    f"the endpoint answers, but the name of the bucket's host, {request.host}, "
                    "can't be resolved",
                    "Put the bucket into the path: spark.hadoop.fs.s3a.path.style.access=true.",
                )
            )
        ]
    return []


def _as_hdfs_store(store: LogStore) -> HDFSLogStore | None:
    module = sys.modules.get("lakelog.logstores.hdfs")
    if module is None or not isinstance(store, module.HDFSLogStore):
        return None
    return cast("HDFSLogStore", store)


def _reach_hdfs(
    store: HDFSLogStore, uri: str, timeout: float
) -> tuple[str | None, list[Connection]]:
    """Of the NameNodes of one service, one has to answer; which is active shows later."""
    authority, _ = store._hdfs.split(uri)
    nodes = store._hdfs.hadoop.service(authority).namenodes
    tried = []
    for node in nodes:
        host, _, port = node.rpartition(":")
        tried.append(probe_rpc(host, int(port), timeout, asked_by=_HDFS))
    good = [each for each in tried if each.finding.status is Status.FINE]
    if good and len(good) < len(tried):
        # One that is down is for the cluster's administrator; commits go on.
        tried = [each if each in good else _noted(each) for each in tried]
    return ", ".join(f"hdfs://{node}" for node in nodes), tried


def _noted(connection: Connection) -> Connection:
    return Connection(replace(connection.finding, status=Status.NOTE))


def _has_proxy(conf: Mapping[str, str]) -> bool:
    return any(key.endswith(_PROXY_KEYS) and value.strip() for key, value in conf.items())
