"""The store for Alibaba OSS keeps the contract, on a server written from OSS's documentation."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.alibaba_oss import OSSLogStore
from support.kit_sizes import ContributedConformance
from support.oss_server import oss_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakelog.logstores import LogStore
    from support.oss_server import OSSServer


@pytest.fixture(scope="module")
def oss() -> Iterator[OSSServer]:
    with oss_server() as server:
        yield server


class TestOSSLogStore(ContributedConformance):
    @pytest.fixture
    def store(self, oss: OSSServer) -> LogStore:
        return OSSLogStore(
            {
                "spark.hadoop.fs.oss.endpoint": oss.url,
                "spark.hadoop.fs.oss.accessKeyId": "id",
                "spark.hadoop.fs.oss.accessKeySecret": "secret",
                "spark.hadoop.fs.oss.region": "cn-hangzhou",
            }
        )

    @pytest.fixture
    def root(self) -> str:
        return f"oss://bucket/{uuid.uuid4().hex}"
