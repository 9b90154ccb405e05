"""The fsspec store keeps the contract as far as it was declared."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.contrib.fsspec_store import FsspecLogStore
from lakelog.logstores import LogStore, Scope
from support.fsspec_files import KnowingLogStore
from support.kit_sizes import SizedConformance

if TYPE_CHECKING:
    from pathlib import Path

FEWER = {"many_files": 300, "large_megabytes": 5, "race_rounds": 8, "model_examples": 8}
SCOPE = "spark.lakelog.fsspec.exclusiveCreate"


class TestOnTheLocalDisk(SizedConformance, **FEWER, crash_rounds=1):
    """fsspec's own local files: an exclusive create by a lock of the host."""

    @pytest.fixture
    def store(self) -> LogStore:
        return FsspecLogStore({SCOPE: "host"})

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/a table"


class TestInMemory(SizedConformance, **FEWER, crash_rounds=1):
    """fsspec's file system in memory: an exclusive create by a lock of the process."""

    @pytest.fixture
    def store(self) -> LogStore:
        return FsspecLogStore({SCOPE: "process"})

    @pytest.fixture
    def root(self) -> str:
        return f"memory://{uuid.uuid4().hex}/t"


class TestOnATrueExclusiveCreate(SizedConformance, **FEWER, crash_rounds=1):
    """A file system whose own create has one winner: no lock is taken."""

    @pytest.fixture
    def store(self) -> LogStore:
        return KnowingLogStore({SCOPE: "cluster", "spark.lakelog.fsspec.wholeFiles": "true"})

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"linked://{tmp_path}/t"

    def test_it_claims_the_cluster_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.CLUSTER
