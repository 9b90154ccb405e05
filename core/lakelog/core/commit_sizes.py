"""How many actions of each kind a commit has, and how much data they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.actions import (
    AddCDCFile,
    AddFile,
    DomainMetadata,
    RemoveFile,
    SetTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.actions import Action

__all__ = ["sizes_of"]


def sizes_of(actions: Iterable[Action]) -> dict[str, int]:
    """Count a commit's actions in one pass.

    Returns:
        By the names of `CommitStats`: `num_add`, `num_remove`, `num_cdc_files`,
        `num_set_transaction`, `num_domain_metadatas`, `bytes_new` (of files that change data),
        `cdc_bytes_new`, `num_absolute_paths_in_add`, `num_distinct_partitions_in_add`.
    """
    adds = removes = cdc = progress = domains = absolute = 0
    bytes_new = cdc_bytes = 0
    partitions: set[tuple[tuple[str, str | None], ...]] = set()
    for action in actions:
        match action:
            case AddFile():
                adds += 1
                bytes_new += action.size if action.data_change else 0
                absolute += _is_absolute(action.path)
                partitions.add(tuple(sorted(action.partition_values.items())))
            case RemoveFile():
                removes += 1
            case AddCDCFile():
                cdc += 1
                cdc_bytes += action.size
            case SetTransaction():
                progress += 1
            case DomainMetadata():
                domains += 1
            case _:
                pass
    return {
        "num_add": adds,
        "num_remove": removes,
        "num_cdc_files": cdc,
        "num_set_transaction": progress,
        "num_domain_metadatas": domains,
        "bytes_new": bytes_new,
        "cdc_bytes_new": cdc_bytes,
        "num_absolute_paths_in_add": absolute,
        "num_distinct_partitions_in_add": len(partitions),
    }


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "file:")) or "://" in path
