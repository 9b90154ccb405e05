"""The store for Oracle's storage keeps the contract, on a server written from its API reference."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.oracle_oci import OracleCloudLogStore
from support.kit_sizes import ContributedConformance
from support.oci_server import oci_server
from support.rsa_key import new_pem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores import LogStore


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    key = tmp_path_factory.mktemp("oci") / "key.pem"
    key.write_text(new_pem())
    with oci_server() as server:
        yield {
            "spark.hadoop.fs.oci.client.hostname": server.url,
            "spark.hadoop.fs.oci.client.auth.tenantId": "ocid1.tenancy.oc1..a",
            "spark.hadoop.fs.oci.client.auth.userId": "ocid1.user.oc1..a",
            "spark.hadoop.fs.oci.client.auth.fingerprint": ":".join(["00"] * 16),
            "spark.hadoop.fs.oci.client.auth.pemfilepath": str(key),
        }


class TestOracleCloudLogStore(ContributedConformance):
    @pytest.fixture
    def store(self, conf: dict[str, str]) -> LogStore:
        return OracleCloudLogStore(conf)

    @pytest.fixture
    def root(self) -> str:
        return f"oci://bucket@ns/{uuid.uuid4().hex}"
