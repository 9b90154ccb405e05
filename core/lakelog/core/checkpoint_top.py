"""The top level of a checkpoint: all of it that is no file action, and where those are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

from lakelog.core.actions import (
    CheckpointMetadata,
    DomainMetadata,
    Metadata,
    Protocol,
    SetTransaction,
    SidecarFile,
)
from lakelog.core.commit_file import Commit, parse_commit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakelog.core.log_budget import LogBudget

__all__ = ["ACTIONS", "SmallActions", "TopLevel"]

ACTIONS: Final[
    dict[
        str,
        type[Protocol | Metadata | SetTransaction | DomainMetadata]
        | type[SidecarFile | CheckpointMetadata],
    ]
] = {
    "protocol": Protocol,
    "metaData": Metadata,
    "txn": SetTransaction,
    "domainMetadata": DomainMetadata,
    "sidecar": SidecarFile,
    "checkpointMetadata": CheckpointMetadata,
}
"""Column of a checkpoint -> class, for the columns that hold no file actions."""

_V2 = ("sidecar", "checkpointMetadata")


@dataclass(slots=True)
class SmallActions:
    """Everything of a state but its files."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    transactions: dict[str, SetTransaction] = field(default_factory=dict)
    domains: dict[str, DomainMetadata] = field(default_factory=dict)


@dataclass(slots=True)
class TopLevel:
    """What the top level says."""

    small: SmallActions = field(default_factory=SmallActions)
    metadata: CheckpointMetadata | None = None
    sidecars: list[SidecarFile] = field(default_factory=list)
    inline: Commit | None = None
    """Of JSON: holds its file actions."""

    @property
    def num_files(self) -> int | None:
        """How many files the checkpoint says that it has; Spark's writers do."""
        tags = None if self.metadata is None else self.metadata.tags
        text = None if tags is None else tags.get("numOfAddFiles")
        return int(text) if text is not None and text.isdecimal() else None

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[str, dict[str, Any]]]) -> TopLevel:
        """Build it from the names and JSON values of actions.

        Raises:
            ValueError: an action lacks a field.
        """
        top = cls()
        for kind, value in rows:
            top._take(kind, value)
        return top

    @classmethod
    def of_json(
        cls, data: bytes, version: int, path: str, budget: LogBudget | None = None
    ) -> TopLevel:
        """Read a top level that is lines of JSON.

        Raises:
            CorruptCommitError: a line is no action.
            ValueError: an action lacks a field.
            LogTooLargeError: it would take more memory than there is.
        """
        commit = parse_commit(data, version, path, budget)
        small = SmallActions(commit.protocol, commit.metadata, commit.transactions, commit.domains)
        top = cls(small, inline=commit)
        for line in data.splitlines():
            # The others were parsed above, and a checkpoint with inline adds has many.
            if not any(f'"{kind}"'.encode() in line[:32] for kind in _V2):
                continue
            body = orjson.loads(line)
            for kind in _V2:
                if body.get(kind) is not None:
                    top._take(kind, body[kind])
        return top

    def _take(self, kind: str, value: dict[str, Any]) -> None:
        try:
            action = ACTIONS[kind].from_json_value(value)
        except (TypeError, AttributeError) as exc:
            raise ValueError(f"a {kind} action lacks a field ({exc})") from exc
        match action:
            case Protocol():
                self.small.protocol = action
            case Metadata():
                self.small.metadata = action
            case SetTransaction():
                self.small.transactions[action.app_id] = action
            case DomainMetadata():
                self.small.domains[action.domain] = action
            case SidecarFile():
                self.sidecars.append(action)
            case CheckpointMetadata():
                self.metadata = action
