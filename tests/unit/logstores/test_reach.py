"""Where nobody is, every store says so in seconds: the budget of a busy service is not spent on it.

The budgets are told apart by the error, which names the one that was spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.alibaba_oss import OSSLogStore
from lakelog.contrib.ibm_cos import IBMCOSLogStore
from lakelog.contrib.oracle_oci import OracleCloudLogStore
from lakelog.logstores import (
    AzureConditionalLogStore,
    AzureLeaseLogStore,
    GCSLogStore,
    HDFSLogStore,
    S3ConditionalLogStore,
    S3DynamoDBLogStore,
)
from support.rsa_key import new_pem
from support.servers._service import free_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakelog.logstores import LogStore

BUDGETS = {
    "spark.lakelog.store.connect.timeBudget": "0.2",
    "spark.lakelog.store.retry.timeBudget": "61",
    "spark.lakelog.store.endpointProbe": "never",
}
HOSTS = {"a refused port": "127.0.0.1", "a name that does not resolve": "no-such-host.invalid"}


def _s3(url: str) -> tuple[LogStore, str]:
    conf = {"endpoint": url, "access.key": "abcdefgh", "secret.key": "abcdefgh"}
    return S3ConditionalLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.s3a.{name}": value for name, value in conf.items()}}
    ), "s3a://bucket/t"


def _dynamodb(url: str) -> tuple[LogStore, str]:
    store, root = _s3(url)
    own = "spark.io.delta.storage.S3DynamoDBLogStore."
    lock = {
        f"{own}ddb.region": "eu-west-1",
        "spark.lakelog.s3dynamodb.endpoint": url,
        "spark.lakelog.s3dynamodb.access.key": "abcdefgh",
        "spark.lakelog.s3dynamodb.secret.key": "abcdefgh",
    }
    return S3DynamoDBLogStore({**store.conf, **lock}), root


def _cos(url: str) -> tuple[LogStore, str]:
    conf = {"endpoint": url, "access.key": "abcdefgh", "secret.key": "abcdefgh", "region": "x"}
    return IBMCOSLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.cos.lab.{name}": value for name, value in conf.items()}}
    ), "cos://bucket.lab/t"


def _gcs(url: str) -> tuple[LogStore, str]:
    conf = {"storage.root.url": url, "auth.type": "UNAUTHENTICATED"}
    return GCSLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.gs.{name}": value for name, value in conf.items()}}
    ), "gs://bucket/t"


def _azure(kind: type[LogStore]) -> Callable[[str], tuple[LogStore, str]]:
    def make(url: str) -> tuple[LogStore, str]:
        conf = {
            "spark.lakelog.azure.endpoint": f"{url}/account",
            "spark.hadoop.fs.azure.account.key": "Zm9vYmFyZm9v",
        }
        return kind({**BUDGETS, **conf}), "az://container/t"

    return make


def _hdfs(url: str) -> tuple[LogStore, str]:
    return HDFSLogStore(BUDGETS), url.replace("http", "hdfs") + "/t"


def _oss(url: str) -> tuple[LogStore, str]:
    conf = {"endpoint": url, "accessKeyId": "abcdefgh", "accessKeySecret": "abcdefgh"}
    return OSSLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.oss.{name}": value for name, value in conf.items()}}
    ), "oss://bucket/t"


def _oci(url: str, key: str) -> tuple[LogStore, str]:
    conf = {
        "hostname": url,
        "auth.tenantId": "ocid1.tenancy.oc1..a",
        "auth.userId": "ocid1.user.oc1..a",
        "auth.fingerprint": ":".join(["00"] * 16),
        "auth.pemfilepath": key,
    }
    return OracleCloudLogStore(
        {**BUDGETS, **{f"spark.hadoop.fs.oci.client.{key}": value for key, value in conf.items()}}
    ), "oci://bucket@namespace/t"


STORES = {
    "s3": _s3,
    "s3-dynamodb": _dynamodb,
    "cos": _cos,
    "gcs": _gcs,
    "azure": _azure(AzureConditionalLogStore),
    "azure-lease": _azure(AzureLeaseLogStore),
    "hdfs": _hdfs,
    "oss": _oss,
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", [*STORES, "oci"])
def test_a_store_whose_storage_is_not_there_says_so_at_once(
    name: str, host: str, tmp_path: Path
) -> None:
    url = f"http://{HOSTS[host]}:{free_port()}"
    if name == "oci":
        key = tmp_path / "key.pem"
        key.write_text(new_pem())
        store, root = _oci(url, str(key))
    else:
        store, root = STORES[name](url)
    path = f"{root}/_delta_log/00000000000000000000.json"
    for work in (
        lambda: store.read_bytes(path),
        lambda: next(iter(store.list_from(path))),
        lambda: store.write(path, ["x"]),
    ):
        with pytest.raises(OSError, match=r"given up after 0\.2 s|no host of") as caught:
            work()
        assert not isinstance(caught.value, FileNotFoundError)
