"""The local store keeps the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LocalLogStore, LogStore, Scope
from support.kit_sizes import SizedConformance, alike_in_other_processes

if TYPE_CHECKING:
    from pathlib import Path


class TestLocalLogStore(SizedConformance, race_processes=6, race_rounds=60):
    @pytest.fixture
    def store(self) -> LogStore:
        return LocalLogStore()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path)

    def test_it_claims_the_host_so_that_processes_are_raced(self, store: LogStore) -> None:
        assert store.capabilities.exclusive_create == Scope.HOST


@alike_in_other_processes
class TestLocalLogStoreByFileUri(SizedConformance, race_rounds=10, large_megabytes=3):
    @pytest.fixture
    def store(self) -> LogStore:
        return LocalLogStore()

    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/a folder with ü and %20"
