"""What a reader saw of a version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from simulation.numbering import MARK, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.state.snapshot import Snapshot


@dataclass(frozen=True)
class Seen:
    """A version as a job saw it."""

    version: int
    at_least: int
    """The newest version when the job began to look."""
    files: frozenset[str]
    settings: Mapping[str, str]
    features: frozenset[str]
    apps: Mapping[str, int]
    domains: Mapping[str, str]


def look(snapshot: Snapshot, at_least: int = 0) -> Seen:
    """What a snapshot says, as plain values."""
    return Seen(
        snapshot.version,
        at_least,
        frozenset(snapshot.file_table["path"].to_pylist()),
        plain(snapshot.metadata.configuration),
        frozenset(snapshot.protocol.writer_features or ()),
        dict(snapshot.transactions),
        {
            name: each.configuration
            for name, each in snapshot.domain_metadata.items()
            if name != MARK
        },
    )
