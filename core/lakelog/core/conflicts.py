"""Whether a commit of another writer may be ignored (delta: `ConflictChecker`).

Each winner is checked once, in the order of versions. The first rule that fails decides which
exception the job sees, so that a commit which both changes the schema and adds files is
reported as a metadata change:

1. protocol  2. metadata  3. domain metadata  4. application transactions
5. files added to what was read  6. files removed that were read  7. files removed twice
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lakelog.core.column_mapping import physical_name
from lakelog.core.conflict_rules import USUAL_RULES, unsafe_upgrades
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from lakelog.core.identity_columns import moves_marks_only
from lakelog.core.isolation import ROW_TRACKING_DOMAIN, IsolationLevel
from lakelog.core.metadata_changes import harmless_change
from lakelog.core.paths import path_key
from lakelog.core.protocol import check_readable, check_writable, supported_features
from lakelog.core.reads import partition_key
from lakelog.core.row_tracking import BACKFILL, UNBACKFILL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import AddFile, Metadata, Protocol
    from lakelog.core.conflict_rules import ConflictRules
    from lakelog.core.reads import ReadSet
    from lakelog.core.schema import StructType
    from lakelog.core.winners import WinningCommit

__all__ = ["PendingCommit", "check_conflicts"]

_NUMBERING = frozenset({BACKFILL, UNBACKFILL})
"""Operations that add files once more, with row ids or without, and no rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingCommit:
    """What a transaction wants to commit, and what it relies on."""

    table: str
    read_version: int
    partition_schema: StructType
    """As it was when the transaction read."""
    metadata: Metadata
    """As it will be after the commit."""
    protocol: Protocol
    """As it will be after the commit."""
    reads: ReadSet
    isolation: IsolationLevel
    is_blind_append: bool
    changes_metadata: bool
    changes_protocol: bool
    removed_paths: Mapping[str, Mapping[str, str | None] | None]
    """Path -> partition values, of the files that it removes."""
    domains: frozenset[str]
    """The domains whose metadata it sets."""
    operation: str = ""
    """What history will call it."""
    session_tz: str = "UTC"
    """The zone of partition values that name none, as of its filters."""
    rules: ConflictRules = USUAL_RULES
    """What the session wants of the checks."""


def check_conflicts(current: PendingCommit, winner: WinningCommit) -> PendingCommit:
    """Check one commit of another writer.

    Returns:
        `current`, with the winner's protocol and metadata where they changed harmlessly.

    Raises:
        DeltaConcurrentModificationException: the winner did what `current` must not ignore.
        UnsupportedFeatureError: the winner made this a table that we can't write.
    """
    current = _check_protocol(current, winner)
    current = _check_metadata(current, winner)
    _check_domains(current, winner)
    _check_transactions(current, winner)
    _check_added_files(current, winner)
    _check_removed_and_read(current, winner)
    _check_removed_twice(current, winner)
    return current


def _check_protocol(current: PendingCommit, winner: WinningCommit) -> PendingCommit:
    protocol = winner.protocol
    if protocol is None:
        return current
    check_readable(protocol, current.table)
    created = winner.version == 0
    if current.changes_protocol:
        raise _conflict(
            ProtocolChangedException,
            "the table was created by another writer at the same moment"
            if created
            else "the protocol of the table was changed, which this transaction does too",
            "Open the table and append to it, or write with a mode that accepts one."
            if created
            else "Read the table again and repeat the change if it is still wanted.",
            current,
            winner,
        )
    dropped = supported_features(current.protocol) - supported_features(protocol)
    if dropped:
        raise _conflict(
            ProtocolChangedException,
            f"the table lost the features {', '.join(sorted(dropped))}",
            "Read the table again and run the job again.",
            current,
            winner,
        )
    added = supported_features(protocol) - supported_features(current.protocol)
    unsafe = unsafe_upgrades(added) if current.rules.strict_upgrades else []
    if unsafe:
        raise _conflict(
            ProtocolChangedException,
            f"the table got the features {', '.join(unsafe)}, which this transaction did not know "
            "of when it wrote",
            "Read the table again and run the job again.",
            current,
            winner,
        )
    check_writable(protocol, winner.metadata or current.metadata, current.table)
    return replace(current, protocol=protocol)


def _check_metadata(current: PendingCommit, winner: WinningCommit) -> PendingCommit:
    metadata = winner.metadata
    if metadata is None:
        return current
    resolves = current.rules.goes_by_enablement or winner.only_enables_row_tracking
    features = supported_features(current.protocol)
    if not current.changes_metadata and (
        (resolves and harmless_change(current.metadata, metadata, features))
        or (winner.only_counts_identities and moves_marks_only(current.metadata, metadata))
    ):
        check_writable(current.protocol, metadata, current.table)
        return replace(current, metadata=metadata)
    raise _conflict(
        MetadataChangedException,
        "the schema, the partitioning or a property of the table was changed",
        "Read the table again, check that the job fits the new schema, and run it again.",
        current,
        winner,
    )


def _check_domains(current: PendingCommit, winner: WinningCommit) -> None:
    both = (winner.domains & current.domains) - {ROW_TRACKING_DOMAIN}
    if both:
        raise _conflict(
            ConcurrentTransactionException,
            f"the metadata of the domain {sorted(both)[0]!r} was changed, which this "
            "transaction does too",
            "Read the domain's metadata again and repeat the change.",
            current,
            winner,
            domain=sorted(both)[0],
        )


def _check_transactions(current: PendingCommit, winner: WinningCommit) -> None:
    both = winner.app_ids & current.reads.app_ids
    if both:
        app_id = sorted(both)[0]
        raise _conflict(
            ConcurrentTransactionException,
            f"progress of the application {app_id!r} was recorded, which this transaction read",
            "Two runs of one application write at once: stop one of them. A job that simply "
            "runs again skips what the other one has committed.",
            current,
            winner,
            app_id=app_id,
        )


def _check_added_files(current: PendingCommit, winner: WinningCommit) -> None:
    if not winner.adds_files or current.isolation is IsolationLevel.SNAPSHOT_ISOLATION:
        return
    if current.is_blind_append or {current.operation, winner.operation} & _NUMBERING:
        return
    if (
        current.isolation is IsolationLevel.WRITE_SERIALIZABLE
        and winner.is_blind_append
        and not current.changes_metadata
    ):
        return
    hit = _first_read(current, winner.adds)
    if hit is None:
        return
    partition = _partition_text(hit.partition_values, current.partition_schema)
    raise _conflict(
        ConcurrentAppendException,
        f"files were added to {partition or 'the table'}, which this transaction read"
        + ("" if partition or not current.reads.is_empty else " or may depend on"),
        _append_advice(current),
        current,
        winner,
        hint=partition,
        partition_values=dict(hit.partition_values),
        files=[hit.path],
    )


def _append_advice(current: PendingCommit) -> str:
    if not len(current.partition_schema):
        return (
            "Run the job again. An unpartitioned table can't tell writers apart: partition it, "
            "or run its jobs one after the other."
        )
    names = ", ".join(current.partition_schema.names)
    if current.reads.whole_table or None in current.reads.predicates:
        return (
            f"Run the job again. It read the whole table: name the partitions ({names}) in its "
            "condition, so that writers of other partitions do not meet it."
        )
    return (
        f"Run the job again, or separate the jobs by partition ({names}): a condition on other "
        "columns does not."
    )


def _first_read(current: PendingCommit, adds: list[AddFile]) -> AddFile | None:
    """The first added file that lies where the transaction read."""
    if current.reads.whole_table or not len(current.partition_schema):
        return adds[0]
    if current.reads.partitions:
        for add in adds:
            key = partition_key(
                add.partition_values, current.partition_schema, session_tz=current.session_tz
            )
            if key in current.reads.partitions:
                return add
    for predicate in current.reads.predicates:
        if predicate is None:
            return adds[0]
        from lakelog.core.pruning import matches_partitions

        matches = matches_partitions(
            adds, predicate, current.partition_schema, session_tz=current.session_tz
        )
        for add, hit in zip(adds, matches, strict=True):
            if hit:
                return add
    return None


def _check_removed_and_read(current: PendingCommit, winner: WinningCommit) -> None:
    paths = winner.removed_paths
    # A commit that only numbers files simply leaves out what is gone.
    if not paths or current.operation in _NUMBERING:
        return
    found = current.reads.find_file(current.table, paths)
    if found is None and not current.reads.whole_table:
        return
    path, values = found or (paths[0], {})
    partition = _partition_text(values, current.partition_schema) if found else ""
    where = f" from {partition}" if partition else ""
    raise _conflict(
        ConcurrentDeleteReadException,
        f"the file {path} was removed{where}, and this transaction read it"
        if found
        else f"the file {path} was removed, and this transaction read the whole table",
        "Run the job again; keep it apart from jobs that delete, update or compact the same files.",
        current,
        winner,
        hint=partition,
        partition_values=values,
        files=[path],
    )


def _check_removed_twice(current: PendingCommit, winner: WinningCommit) -> None:
    if not current.removed_paths or not winner.removed_paths:
        return
    # Another client may spell a file otherwise: what counts is where it lies.
    mine = {path_key(current.table, path): v for path, v in current.removed_paths.items()}
    for path in winner.removed_paths:
        place = path_key(current.table, path)
        if place not in mine:
            continue
        values = mine[place] or {}
        partition = _partition_text(values, current.partition_schema)
        raise _conflict(
            ConcurrentDeleteDeleteException,
            f"the file {path}{f' of {partition}' if partition else ''} was removed, which "
            "this transaction does too",
            "Run the job again; keep jobs that delete, update or compact the same files apart.",
            current,
            winner,
            hint=partition,
            partition_values=dict(values),
            files=[path],
        )


def _partition_text(values: Mapping[str, str | None], partition_schema: StructType) -> str:
    """`[date=2024-01-01, country=null]`, or nothing for a table without partitions."""
    if not len(partition_schema) or not values:
        return ""
    texts = ((each.name, values.get(physical_name(each))) for each in partition_schema)
    parts = (f"{name}={'null' if text is None else text}" for name, text in texts)
    return f"[{', '.join(parts)}]"


def _conflict(
    error: type[DeltaConcurrentModificationException],
    what: str,
    advice: str,
    current: PendingCommit,
    winner: WinningCommit,
    *,
    hint: str | None = None,
    **fields: object,
) -> DeltaConcurrentModificationException:
    """The exception; `hint` is what tells the partition, of a rule that looks at files."""
    sub = None if hint is None else "WITH_PARTITION_HINT" if hint else "WITHOUT_HINT"
    info = winner.commit_info
    at = ""
    if info is not None and info.timestamp is not None:
        moment = datetime.fromtimestamp(info.timestamp / 1000, UTC)
        at = f" at {moment.isoformat(timespec='milliseconds')}"
    return error(
        f"[{error.condition}{f'.{sub}' if sub else ''}] {current.table}: {what}, "
        f"by version {winner.version} "
        f"({winner.operation}{at}), which was committed after version {current.read_version} "
        f"was read. Nothing of this transaction was committed. {advice}",
        table=current.table,
        version=winner.version,
        read_version=current.read_version,
        operation=winner.operation,
        commit_info=info.to_json_value() if info is not None else None,
        sub_condition=sub,
        **fields,
    )
