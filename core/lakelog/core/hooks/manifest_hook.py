"""The hook that keeps symlink manifests up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.core.checkpoints.symlink_manifest import update_symlink_manifests
from lakelog.core.hooks import PostCommitHook

if TYPE_CHECKING:
    from lakelog.core.hooks import CommittedTransaction


class SymlinkManifestHook(PostCommitHook):
    """Brings the manifests of the touched partitions up to date."""

    @property
    def name(self) -> str:
        """As Delta calls it."""
        return "Generate Symlink Format Manifest"

    def __call__(self, committed: CommittedTransaction) -> None:
        """Write the manifests."""
        update_symlink_manifests(
            committed.delta_log.update(), committed.actions, committed.read_snapshot
        )

    def __eq__(self, other: object) -> bool:
        """One is like any other, so that it is registered once."""
        return isinstance(other, SymlinkManifestHook)

    def __hash__(self) -> int:
        """As equality wants it."""
        return hash(SymlinkManifestHook)
