"""Whether another writer's commit may be ignored (delta-spark: `ConflictChecker`).

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

from lakelog.core.catalogs.refusals import refuse_change_of_hands
from lakelog.core.conflicts.harmless_metadata import harmless_change
from lakelog.core.conflicts.session_rules import USUAL_RULES, unsafe_upgrades
from lakelog.core.data.partition_keys import partition_key
from lakelog.core.errors import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentTransactionException,
    DeltaConcurrentModificationException,
    MetadataChangedException,
    ProtocolChangedException,
)
from lakelog.core.features.identity_columns import moves_marks_only
from lakelog.core.features.isolation import IsolationLevel
from lakelog.core.features.numbered_rows import BACKFILL, ROW_TRACKING_DOMAIN, UNBACKFILL
from lakelog.core.features.protocol import check_readable, check_writable, supported_features
from lakelog.core.features.terms import TableTerms
from lakelog.core.paths import path_key
from lakelog.core.schema.column_mapping import physical_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.actions import AddFile, Metadata, Protocol
    from lakelog.core.conflicts.read_set import ReadSet
    from lakelog.core.conflicts.session_rules import ConflictRules
    from lakelog.core.conflicts.winner import WinningCommit
    from lakelog.core.schema import StructType

_AGAIN = "Run the job again (lakelog.core.retry_on_conflict does)"

_NUMBERING = frozenset({BACKFILL, UNBACKFILL})
"""Operations that add existing files again, with row ids or without them, and no rows."""


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

    @property
    def terms(self) -> TableTerms:
        """What metadata and protocol will require of a writer after the commit."""
        return TableTerms(self.metadata, self.protocol)


def check_conflicts(current: PendingCommit, winner: WinningCommit) -> PendingCommit:
    """Check one commit of another writer.

    Returns:
        `current`, with the winner's protocol and metadata where they changed harmlessly.

    Raises:
        DeltaConcurrentModificationException: the winner did something `current` must not ignore.
        UnsupportedFeatureError: the winner made the table one that we can't write.
    """
    # Before the metadata: whether a change of that is harmless depends on the features that the
    # winner may just have added.
    current = _check_protocol(current, winner)
    current = _check_metadata(current, winner)
    # Files last: only these checks may have to read and compare much, and what is refused above has
    # other advice for the job.
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
    # First, and not a conflict: running the job again would not help a client that is too old.
    check_readable(protocol, current.table)
    refuse_change_of_hands(current.protocol, protocol, current.table)
    created = winner.version == 0
    # Ours was computed from the protocol before theirs, and would undo theirs.
    if current.changes_protocol:
        raise _conflict(
            ProtocolChangedException,
            "created the table at the same moment"
            if created
            else "changed the protocol of the table, and this transaction changes it too",
            "Open the table and append to it, or write with a mode that accepts one."
            if created
            else "Read the table again and repeat the change if it is still wanted.",
            current,
            winner,
        )
    dropped = supported_features(current.protocol) - supported_features(protocol)
    # Our files may use a dropped feature, such as deletion vectors.
    if dropped:
        raise _conflict(
            ProtocolChangedException,
            f"dropped the table features {', '.join(sorted(dropped))}",
            f"Read the table again. {_AGAIN}.",
            current,
            winner,
        )
    added = supported_features(protocol) - supported_features(current.protocol)
    # Without the conf any new feature is adopted, which is Delta's default as well.
    unsafe = unsafe_upgrades(added) if current.rules.strict_upgrades else []
    if unsafe:
        raise _conflict(
            ProtocolChangedException,
            f"added the table features {', '.join(unsafe)}, which this transaction did not know "
            "about when it wrote its files",
            f"Read the table again. {_AGAIN}.",
            current,
            winner,
        )
    # With the winner's metadata where it has some: a feature that is listed but off forbids
    # nothing.
    check_writable(protocol, winner.metadata or current.metadata, current.table)
    return replace(current, protocol=protocol)


def _check_metadata(current: PendingCommit, winner: WinningCommit) -> PendingCommit:
    metadata = winner.metadata
    if metadata is None:
        return current
    resolves = current.rules.goes_by_enablement or winner.only_enables_row_tracking
    features = supported_features(current.protocol)
    # Metadata of ours would overwrite theirs, however harmless. A tag is only the winner's claim:
    # whether it really changed nothing but identity marks is checked as well.
    if not current.changes_metadata and (
        (resolves and harmless_change(current.metadata, metadata, features))
        or (winner.only_counts_identities and moves_marks_only(current.metadata, metadata))
    ):
        check_writable(current.protocol, metadata, current.table)
        # Adopted, so that the next winner is compared with the metadata it was committed on.
        return replace(current, metadata=metadata)
    raise _conflict(
        MetadataChangedException,
        "changed the schema, the partitioning or a property of the table",
        "Read the table again, check that the job fits the new schema, and run it again.",
        current,
        winner,
    )


def _check_domains(current: PendingCommit, winner: WinningCommit) -> None:
    # Every commit that assigns row ids moves that mark; `Draft.rebased` resolves it.
    both = (winner.domains & current.domains) - {ROW_TRACKING_DOMAIN}
    if both:
        raise _conflict(
            ConcurrentTransactionException,
            f"changed the metadata of the domain {sorted(both)[0]!r}, and this transaction changes "
            "it too",
            "Read the domain's metadata again and repeat the change.",
            current,
            winner,
            domain=sorted(both)[0],
        )


def _check_transactions(current: PendingCommit, winner: WinningCommit) -> None:
    # Only those that were read: a version set blindly depends on nothing, and the last one wins.
    both = winner.app_ids & current.reads.app_ids
    if both:
        app_id = sorted(both)[0]
        raise _conflict(
            ConcurrentTransactionException,
            f"recorded progress of the application {app_id!r}, which this transaction read",
            "Two runs of one application are writing at once: stop one of them. A job that simply "
            "runs again skips what the other run has committed.",
            current,
            winner,
            app_id=app_id,
        )


def _check_added_files(current: PendingCommit, winner: WinningCommit) -> None:
    # At snapshot isolation we change no row, so no append can make us wrong. The winner gets no
    # such discount, as in Delta: files that it added with dataChange=false conflict all the same.
    if not winner.adds_files or current.isolation is IsolationLevel.SNAPSHOT_ISOLATION:
        return
    # A blind append read nothing; and files that only got row ids hold the rows they held before.
    if current.is_blind_append or {current.operation, winner.operation} & _NUMBERING:
        return
    # WriteSerializable may order the winner's blind append after us, but not after new metadata of
    # ours, which its files were not written for.
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
        f"added files to {partition or 'the table'}, which this transaction read"
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
            f"{_AGAIN}. Writers of an unpartitioned table can't be distinguished: partition "
            "it, or run its jobs one after another."
        )
    names = ", ".join(current.partition_schema.names)
    if current.reads.whole_table or None in current.reads.predicates:
        return (
            f"{_AGAIN}. It read the whole table: name the partitions ({names}) in its "
            "condition, so that it doesn't conflict with writers of other partitions."
        )
    return (
        f"{_AGAIN}, or separate the jobs by partition ({names}): a condition on other "
        "columns does not separate them."
    )


def _first_read(current: PendingCommit, adds: list[AddFile]) -> AddFile | None:
    """The first added file that lies where the transaction read.

    Only partitions narrow a read, as in Delta: what a predicate says of other columns is not
    evaluated.
    """
    # In an unpartitioned table every commit but a blind append counts as having read all of it,
    # even if it recorded no read: as in Delta.
    if current.reads.whole_table or not len(current.partition_schema):
        return adds[0]
    # A dynamic overwrite replaces whole partitions. The keys are typed, because two writers may
    # write one timestamp in two ways.
    if current.reads.partitions:
        for add in adds:
            key = partition_key(
                add.partition_values, current.partition_schema, session_tz=current.session_tz
            )
            # Whatever the new file holds: the partition is replaced as a whole, and its rows would
            # survive it.
            if key in current.reads.partitions:
                return add
    for predicate in current.reads.predicates:
        if predicate is None:
            return adds[0]
        from lakelog.core.expressions.prune import matches_partitions

        matches = matches_partitions(
            adds, predicate, current.partition_schema, session_tz=current.session_tz
        )
        for add, hit in zip(adds, matches, strict=True):
            if hit:
                return add
    return None


def _check_removed_and_read(current: PendingCommit, winner: WinningCommit) -> None:
    # At every isolation level: even a compaction would bring the removed rows back. Only the path
    # counts and not the deletion vector, because a new vector is logged as a remove and an add.
    paths = winner.removed_paths
    # A (un)backfill leaves out what is gone; see `Draft.rebased`.
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
        f"removed the file {path}{where}, which this transaction read"
        if found
        else f"removed the file {path}, and this transaction read the whole table",
        f"{_AGAIN}; keep it apart from jobs that delete, update or compact the same files.",
        current,
        winner,
        hint=partition,
        partition_values=values,
        files=[path],
    )


def _check_removed_twice(current: PendingCommit, winner: WinningCommit) -> None:
    # A dynamic overwrite removes files that it did not read, which the rule above does not see. If
    # two writers both replaced a file, its rows would be there twice.
    if not current.removed_paths or not winner.removed_paths:
        return
    # Other clients may encode a path differently: what counts is where the file lies.
    mine = {path_key(current.table, path): v for path, v in current.removed_paths.items()}
    for path in winner.removed_paths:
        place = path_key(current.table, path)
        if place not in mine:
            continue
        values = mine[place] or {}
        partition = _partition_text(values, current.partition_schema)
        raise _conflict(
            ConcurrentDeleteDeleteException,
            f"removed the file {path}{f' from {partition}' if partition else ''}, which this "
            "transaction removes too",
            f"{_AGAIN}; keep jobs that delete, update or compact the same files apart.",
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
    """The exception.

    Args:
        error: its class.
        what: what the winner did, continuing "version 5 (WRITE), …".
        advice: what to do about it.
        current: the commit that lost.
        winner: the commit that it can't ignore.
        hint: the partition as text, empty if unknown; `None` for rules that don't look at files.
        fields: further fields of the exception.
    """
    sub = None if hint is None else "WITH_PARTITION_HINT" if hint else "WITHOUT_HINT"
    info = winner.commit_info
    at = ""
    if info is not None and info.timestamp is not None:
        moment = datetime.fromtimestamp(info.timestamp / 1000, UTC)
        at = f" at {moment.isoformat(timespec='milliseconds')}"
    return error(
        f"[{error.condition}{f'.{sub}' if sub else ''}] {current.table}: version "
        f"{winner.version} ({winner.operation}{at}), committed after this transaction read version "
        f"{current.read_version}, {what}. Nothing of this transaction was committed. {advice}",
        table=current.table,
        version=winner.version,
        read_version=current.read_version,
        operation=winner.operation,
        commit_info=info.to_json_value() if info is not None else None,
        sub_condition=sub,
        **fields,
    )
