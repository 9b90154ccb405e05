"""The memory store keeps the contract."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from lakelog.logstores import LogStore, MemoryLogStore
from support.kit_sizes import SizedConformance, alike_in_other_processes

if TYPE_CHECKING:
    from collections.abc import Iterator


class TestMemoryLogStore(SizedConformance, race_rounds=100):
    @pytest.fixture
    def store(self) -> LogStore:
        return MemoryLogStore()

    @pytest.fixture
    def root(self) -> Iterator[str]:
        name = uuid.uuid4().hex
        yield f"memory://{name}/tables"
        MemoryLogStore.forget(name)


@alike_in_other_processes
class TestMemoryLogStoreWithoutAName(SizedConformance, race_rounds=10, large_megabytes=3):
    @pytest.fixture
    def store(self) -> LogStore:
        return MemoryLogStore()

    @pytest.fixture
    def root(self) -> Iterator[str]:
        yield f"memory:/conformance-{uuid.uuid4().hex}"
        MemoryLogStore.forget("")
