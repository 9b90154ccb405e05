"""The checks as a module that pytest collects: see `lakelog.logstores.conformance.plugin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakelog.logstores.conformance import LogStoreConformance

if TYPE_CHECKING:
    from lakelog.logstores.contract import LogStore

__all__ = ["TestStore"]


class TestStore(LogStoreConformance):
    """Every check, on the store that the command line names."""

    @pytest.fixture
    def store(self, lakelog_store: LogStore) -> LogStore:
        """The store of `--lakelog-uri`, `--lakelog-store` and `--lakelog-conf`."""
        return lakelog_store

    @pytest.fixture
    def root(self, lakelog_root: str) -> str:
        """A new folder below `--lakelog-uri`."""
        return lakelog_root
