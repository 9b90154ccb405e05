"""Commits of other writers since a transaction read the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.actions.file_table import to_add_files
from lakelog.core.features.identity_columns import IDENTITY_TAG
from lakelog.core.log.commit_file import read_commit

if TYPE_CHECKING:
    from lakelog.core.actions import Action, AddFile, CommitInfo, Metadata, Protocol
    from lakelog.core.log.commit_file import Commit
    from lakelog.logstores import LogStore

ENABLEMENT_ONLY_TAG = "rowTrackingEnablementOnly"
"""Delta's tag for a commit that only enables row tracking."""


@dataclass(frozen=True)
class WinningCommit:
    """One commit, as seen by a transaction that lost a version to it."""

    commit: Commit

    @property
    def version(self) -> int:
        """The version that it took."""
        return self.commit.version

    @property
    def commit_info(self) -> CommitInfo | None:
        """Its provenance; None where the writer left none."""
        return self.commit.info

    @property
    def protocol(self) -> Protocol | None:
        """The protocol that it set."""
        return self.commit.protocol

    @property
    def metadata(self) -> Metadata | None:
        """The metadata that it set."""
        return self.commit.metadata

    @property
    def adds_files(self) -> bool:
        """Whether it added any."""
        return len(self.commit.adds) > 0

    @cached_property
    def adds(self) -> list[AddFile]:
        """The files that it added."""
        return to_add_files(self.commit.added())

    @cached_property
    def removed_paths(self) -> list[str]:
        """The paths of the files that it removed, as the log has them."""
        rows: Any = self.commit.removes
        if isinstance(rows, pa.Table):
            return list(rows["path"].to_pylist())
        return [row["path"] for row in rows]

    @property
    def actions(self) -> list[Action]:
        """What it says, if it is an append: no other is made of several transactions."""
        commit = self.commit
        return [*self.adds, *commit.transactions.values(), *commit.domains.values()]

    @property
    def app_ids(self) -> set[str]:
        """The applications whose progress it recorded."""
        return set(self.commit.transactions)

    @property
    def domains(self) -> set[str]:
        """The domains whose metadata it set or removed."""
        return set(self.commit.domains)

    @property
    def is_blind_append(self) -> bool:
        """As its writer said; if it said nothing, it may have read the table."""
        return bool(self.commit_info and self.commit_info.is_blind_append)

    @property
    def only_counts_identities(self) -> bool:
        """Whether its metadata differs only in how far identity columns have counted."""
        return self._is_tagged(IDENTITY_TAG)

    @property
    def only_enables_row_tracking(self) -> bool:
        """Whether it says that its metadata does nothing but enable row tracking."""
        return self._is_tagged(ENABLEMENT_ONLY_TAG)

    def _is_tagged(self, tag: str) -> bool:
        tags = self.commit_info.tags if self.commit_info else None
        return str((tags or {}).get(tag)).lower() == "true"

    @property
    def operation(self) -> str:
        """Its operation's name."""
        return (self.commit_info and self.commit_info.operation) or "an unnamed operation"

    @property
    def txn_id(self) -> str | None:
        """The id of the transaction that made it."""
        return self.commit_info.txn_id if self.commit_info else None


def read_winner(store: LogStore, table: str, version: int) -> WinningCommit | None:
    """Read one commit.

    Returns:
        None if the table has no such version.

    Raises:
        CorruptCommitError: the file is empty, torn, or not JSON.
        OSError: the storage can't be read.
    """
    try:
        return WinningCommit(read_commit(store, table, version))
    # A missing version is an answer: it ends the search for winners. All else is raised.
    except FileNotFoundError:
        return None
