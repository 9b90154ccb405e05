"""How many actions of each kind a commit has, and how much data they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from lakelog.core.actions import (
    AddCDCFile,
    AddFile,
    DomainMetadata,
    RemoveFile,
    SetTransaction,
)

if TYPE_CHECKING:
    from lakelog.core.actions import Action

__all__ = ["CommitSizes"]


@dataclass(slots=True)
class CommitSizes:
    """The counts so far."""

    num_add: int = 0
    num_remove: int = 0
    num_cdc_files: int = 0
    num_set_transaction: int = 0
    num_domain_metadatas: int = 0
    bytes_new: int = 0
    """Of files that change data."""
    cdc_bytes_new: int = 0
    num_absolute_paths_in_add: int = 0
    _partitions: set[tuple[tuple[str, str | None], ...]] = field(default_factory=set)

    def add(self, action: Action) -> None:
        """Count one more."""
        match action:
            case AddFile():
                self.num_add += 1
                self.bytes_new += action.size if action.data_change else 0
                self.num_absolute_paths_in_add += _is_absolute(action.path)
                self._partitions.add(tuple(sorted(action.partition_values.items())))
            case RemoveFile():
                self.num_remove += 1
            case AddCDCFile():
                self.num_cdc_files += 1
                self.cdc_bytes_new += action.size
            case SetTransaction():
                self.num_set_transaction += 1
            case DomainMetadata():
                self.num_domain_metadatas += 1
            case _:
                pass

    def values(self) -> dict[str, int]:
        """By the names of `CommitStats`."""
        counts = {f.name: getattr(self, f.name) for f in fields(self) if f.name[0] != "_"}
        return {**counts, "num_distinct_partitions_in_add": len(self._partitions)}


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "file:")) or "://" in path
