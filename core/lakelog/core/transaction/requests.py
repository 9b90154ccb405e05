"""A commit that another process is asked to make, as bytes, and what becomes of it there.

An append that read nothing can be made by whoever can write the table: it is its actions, what its
`commitInfo` says, and what must still hold of the table. Those who ask are the processes of a host
(`host_commit`) and of several hosts (`service_commit`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.actions import CommitInfo, action_from_json
from lakelog.core.actions.operation import Operation
from lakelog.core.commit.attempt import Landing
from lakelog.core.events import CommitOutcome, CommitStats
from lakelog.core.hooks.post_commit import CommittedTransaction
from lakelog.core.transaction.group import Fate, Joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog
    from lakelog.core.transaction.group import Member


FORM = 1
"""Of requests; processes that write another one commit apart."""


@dataclass(frozen=True, slots=True)
class Request:
    """A commit that waits."""

    name: str
    """By which its process knows it."""
    kind: str
    """Equal where one `commitInfo` can tell of both, and both read the same metadata."""
    apps: Mapping[str, int]
    """The applications whose version it read or sets, and the version that it read."""
    joined: Joined


def kind_of(member: Joined, read: Snapshot) -> str:
    """What members of one commit have in common."""
    operation, terms = member.operation, read.terms
    about = [
        terms.metadata.to_json(),
        terms.protocol.to_json(),
        operation.name,
        operation.user_metadata,
        sorted(operation.tags.items()),
    ]
    return hashlib.sha256(orjson.dumps(about)).hexdigest()


def to_bytes(member: Member) -> bytes:
    """A request.

    Raises:
        TypeError: it has a value that JSON does not have.
    """
    read, operation = member.snapshot, member.operation
    header = {
        "kind": kind_of(member, read),
        "txnId": member.txn_id,
        "readAt": member.read_at_ms,
        "apps": {app: read.txn_version(app) for app in sorted(member.apps)},
        "hasWritten": member.has_written,
        "name": operation.name,
        "parameters": dict(operation.parameters),
        "metrics": dict(operation.metrics),
        "note": operation.user_metadata,
        "tags": dict(operation.tags),
        "actions": len(member.actions),
    }
    lines = [orjson.dumps(header), *(each.to_json().encode() for each in member.actions)]
    return b"\n".join(lines)


def from_bytes(name: str, data: bytes) -> Request:
    """What `to_bytes` made; anything may be raised where it did not."""
    first, *lines = data.split(b"\n")
    header: dict[str, Any] = orjson.loads(first)
    if header["actions"] != len(lines):  # as of a part that ends with a line
        raise ValueError("a part of the request is missing")
    actions: Sequence[Action] = tuple(action_from_json(line) for line in lines)
    operation = Operation(
        header["name"], header["parameters"], header["metrics"], header["note"], header["tags"]
    )
    joined = Joined(
        txn_id=header["txnId"],
        read_at_ms=header["readAt"],
        actions=actions,
        operation=operation,
        apps=frozenset(header["apps"]),
        has_written=header["hasWritten"],
    )
    return Request(name, header["kind"], header["apps"], joined)


def to_stats(line: bytes) -> CommitStats:
    """The record of an attempt, from its JSON."""
    values: dict[str, Any] = orjson.loads(line)
    values["outcome"] = CommitOutcome(values["outcome"])
    return CommitStats(**values)


def committed_from(
    log: TableLog, read: Snapshot, version: int, lines: Sequence[bytes]
) -> CommittedTransaction:
    """What a version holds, from its lines; of an append that read a snapshot."""
    commit_info = action_from_json(lines[0])
    assert isinstance(commit_info, CommitInfo)
    return CommittedTransaction(
        delta_log=log,
        version=version,
        read_version=read.version,
        actions=[action_from_json(line) for line in lines[1:]],
        commit_info=commit_info,
        metadata=read.metadata,
        protocol=read.protocol,
        read_snapshot=read,
    )


def waiting_for_others(table: str) -> Fate:
    """The fate of a request of which nothing was heard."""
    return Fate(
        table=table, txn_id="", landing=Landing(), attempts=[], run=lambda: None, after=lambda: None
    )


def made_elsewhere(
    table: str,
    txn_id: str,
    landing: Landing,
    attempts: list[CommitStats],
    after: CommittedTransaction | None,
    error: Exception | None = None,
) -> Fate:
    """The fate of a request, as another process says it.

    Args:
        table: the table's URI.
        txn_id: of the commit that it is in.
        landing: what is known of it.
        attempts: of whoever made the commit.
        after: the commit, once it has landed.
        error: why nothing is known.
    """
    return Fate(
        table=table,
        txn_id=txn_id,
        landing=landing,
        attempts=attempts,
        run=lambda: None,
        after=lambda: after,
        error=error,
        is_over=True,
    )
