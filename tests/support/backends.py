"""Each storage as a table's home: a conf that leads to it, and how deltalake gets there.

backend = backend_of("minio", request)    # starts the server at its first use
DeltaLog.for_table(backend.uri("t"), backend.conf)
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pytest
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Backend:
    """Where tables may lie."""

    root: str
    conf: dict[str, str]
    deltalake_root: str
    """`root` as deltalake spells it."""
    storage_options: Mapping[str, str]

    @contextlib.contextmanager
    def chosen(self, spark: SparkSession) -> Iterator[None]:
        """Set the conf of a session for the length of the block.

        Of the session that there is: PySpark forgets what was registered with another one.
        """
        for key, value in self.conf.items():
            spark.conf.set(key, value)
        try:
            yield
        finally:
            for key in self.conf:
                spark.conf.unset(key)

    def uri(self, name: str) -> str:
        """Of a table."""
        return f"{self.root}/{name}"

    def rows_by_deltalake(self, name: str) -> list[dict[str, object]]:
        """What deltalake sees in a table."""
        from deltalake import DeltaTable

        options = dict(self.storage_options)
        table = DeltaTable(f"{self.deltalake_root}/{name}", storage_options=options)
        rows: list[dict[str, object]] = table.to_pyarrow_table().to_pylist()
        return rows


def backend_of(name: str, request: pytest.FixtureRequest) -> Backend:
    """The backend of that name; skips where its server can't be had."""
    return BACKENDS[name](request)


def _minio(request: pytest.FixtureRequest) -> Backend:
    minio = request.getfixturevalue("minio")
    bucket = request.getfixturevalue("s3_bucket")
    folder = uuid.uuid4().hex
    options = {
        "AWS_ENDPOINT_URL": minio.url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": minio.access_key,
        "AWS_SECRET_ACCESS_KEY": minio.secret_key,
        "AWS_REGION": minio.region,
    }
    return Backend(f"s3a://{bucket}/{folder}", minio.conf, f"s3://{bucket}/{folder}", options)


def _dynamodb(request: pytest.FixtureRequest) -> Backend:
    base = _minio(request)
    dynamodb = request.getfixturevalue("dynamodb")
    conf = {
        **base.conf,
        **dynamodb.conf(f"log-{uuid.uuid4().hex[:12]}"),
        "spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore",
        "spark.lakelog.s3dynamodb.createTable": "true",
    }
    return Backend(base.root, conf, base.deltalake_root, base.storage_options)


def _azurite(request: pytest.FixtureRequest) -> Backend:
    azurite = request.getfixturevalue("azurite")
    container = f"lakelog-{uuid.uuid4().hex[:12]}"
    with azurite.client() as client:
        client.create_container(container)
    options = {
        "azure_storage_account_name": azurite.account,
        "azure_storage_account_key": azurite.key,
        "azure_storage_use_emulator": "true",
        "azure_allow_http": "true",
    }
    # The emulator's address has no option of its own in delta-rs.
    os.environ["AZURITE_BLOB_STORAGE_URL"] = azurite.url.removesuffix(f"/{azurite.account}")
    host = f"{container}@{azurite.account}.dfs.core.windows.net"
    return Backend(f"abfss://{host}", azurite.conf, f"az://{container}", options)


def _gcs(request: pytest.FixtureRequest) -> Backend:
    gcs = request.getfixturevalue("fake_gcs")
    bucket = request.getfixturevalue("gcs_bucket")
    account = {
        "gcs_base_url": gcs.url,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    options = {"google_service_account_key": json.dumps(account), "allow_http": "true"}
    return Backend(f"gs://{bucket}", gcs.conf, f"gs://{bucket}", options)


def _hdfs(request: pytest.FixtureRequest) -> Backend:
    hdfs = request.getfixturevalue("hdfs")
    root = f"{hdfs.uri}/lakelog-test/{uuid.uuid4().hex}"
    return Backend(root, hdfs.conf, root, {})


BACKENDS = {
    "minio": _minio,
    "minio and DynamoDB": _dynamodb,
    "azurite": _azurite,
    "fake GCS": _gcs,
    "HDFS": _hdfs,
}
