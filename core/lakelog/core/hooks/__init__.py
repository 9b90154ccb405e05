"""What follows a commit: checkpoints, checksums, manifests, and hooks of one's own."""

from lakelog.core.hooks.post_commit import (
    AnyHook,
    CommittedTransaction,
    PostCommitHook,
    hook_failed,
)

__all__ = ["AnyHook", "CommittedTransaction", "PostCommitHook", "hook_failed"]
