"""Group commit: appends of several threads of one process, committed as one version.

Writers that share a `DeltaLog` would race each other for every version, and each race lost costs
round trips. With `spark.lakelog.commit.group` they take turns instead. A writer that
arrives while no other is committing commits at once, alone. One that arrives during a commit waits
for its turn, and the first of the waiting commits for all whose appends fit into one commit.

- Every member has prepared its commit, so that what is wrong with one is its own failure.
- Members share the fate of their commit: its version, or an outcome that is unknown.
- A group that was not committed, and never will be, is dissolved: each of its members then commits
  by itself, and has its own outcome. So no member fails because of another.
- What was committed since a member read the table is minded as the conflict checks mind it: an
  append that read nothing conflicts with other metadata, another protocol, and other versions of
  its applications.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from lakelog.core.actions import AddFile, SetTransaction
from lakelog.core.errors import CommitOutcomeUnknownError
from lakelog.core.hooks.post_commit import commit_interrupted
from lakelog.core.log.commit_identity import GROUP_TAG
from lakelog.core.log.file_names import commit_path
from lakelog.logstores.systems import after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.actions.operation import Operation
    from lakelog.core.commit.attempt import Landing, Lines
    from lakelog.core.commit.prepare import PreparedCommit
    from lakelog.core.events import CommitStats
    from lakelog.core.hooks.post_commit import CommittedTransaction
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog

MOST_ACTIONS = 1000
"""Of one group; a commit of more is read back from its file."""
MOST_MEMBERS = 100


class Watch(Protocol):
    """Who wants to know of each write of a joint commit before it is sent."""

    @property
    def txn_id(self) -> str:
        """The one that the commit is to have."""
        ...

    def __call__(self, version: int, lines: Lines) -> None:
        """These lines are about to be sent as that version; what this raises prevents it."""
        ...


@dataclass(eq=False, slots=True, kw_only=True)
class Fate:
    """The one commit of several transactions, and what becomes of it."""

    table: str
    txn_id: str
    landing: Landing
    attempts: list[CommitStats]
    run: Callable[[], object]
    """Makes the commit."""
    after: Callable[[], CommittedTransaction | None]
    """What the hooks got, once it has landed."""
    error: BaseException | None = None
    is_over: bool = False
    """Whether `landing` says the last word."""

    def settle(self) -> None:
        """Make the commit. An `Exception` is kept, and raised for each member in its own thread."""
        try:
            self.run()
        except BaseException as exc:
            self.error = exc
            if not isinstance(exc, Exception):
                raise


@dataclass(eq=False, slots=True, kw_only=True)
class Joined:
    """What a commit of several transactions takes from each of them."""

    txn_id: str
    read_at_ms: int
    """When what it read was known to be the newest, epoch milliseconds."""
    actions: Sequence[Action]
    """Prepared."""
    operation: Operation
    apps: frozenset[str]
    """The applications whose version it read or sets."""
    has_written: bool = False
    """Whether it wrote the data files that it adds."""


@dataclass(eq=False, slots=True, kw_only=True)
class Member(Joined):
    """One transaction of this process that may be committed together with others."""

    snapshot: Snapshot
    """What it read."""
    alone: Callable[[], int]
    """Commits it by itself."""
    together: Callable[[Snapshot, Sequence[Joined], Watch | None], Fate]
    """One commit of it and others, not made yet."""
    share: Callable[[Fate | None], None]
    """Makes what becomes of a group its own; `None` takes that back."""
    after: Callable[[], CommittedTransaction | None]
    """What its hooks got, once it has landed."""
    may_be_in: Callable[[Snapshot], bool]
    """Whether a version after the one that it read, up to a snapshot's, may hold it already."""
    waited: Callable[[float], None]
    """Called with the seconds for which it waited for its turn, or for others to commit it."""
    fate: Fate | None = None
    """Of the group that it is in."""
    woken: threading.Event = field(default_factory=threading.Event)
    leads: bool = False
    """Whether it has the turn."""


class CommitGroups:
    """Those who wait to commit to one table through one `DeltaLog`."""

    def __init__(self) -> None:
        """No transaction waits yet."""
        self._mutex = threading.Lock()
        self._waiting: list[Member] = []
        self._is_led = False
        self._inside: set[int] = set()
        """The threads that wait or lead."""

    def commit(self, member: Member, newest: Callable[[], Snapshot | None]) -> int:
        """Commit a transaction, with those who wait or by itself.

        Args:
            member: the transaction.
            newest: gives the newest snapshot that is known, without asking the storage.

        Returns:
            The version that holds the commit.

        Raises:
            Exception: what `OptimisticTransaction.commit` raises.
        """
        thread = threading.get_ident()
        if thread in self._inside:
            # A handler of a signal or of a log record would wait for its own thread.
            return member.alone()
        try:
            self._inside.add(thread)
            self.enter(member)
            began = time.monotonic()
            member.woken.wait()
            member.waited(time.monotonic() - began)
            if member.leads:
                version = self._lead(member, newest() or member.snapshot)
                if version is not None:
                    return version
            return outcome_of(member)
        except CommitOutcomeUnknownError:
            raise
        except Exception as exc:
            # Of a signal's handler, as one that limits a job: to its caller it means that nothing
            # was committed.
            fate = member.fate
            if fate is not None and fate.landing.version is None and _is_in_doubt(fate, exc):
                raise _unknown(member, fate, exc) from exc
            raise
        except BaseException as exc:
            _note_doubt(member, exc)
            raise
        finally:
            self._leave(member)
            self._inside.discard(thread)

    def enter(self, member: Member) -> None:
        """Let a transaction wait; it has the turn at once if no other has it."""
        with self._mutex:
            self._waiting.append(member)
            if not self._is_led:
                self._pass_on()

    def _pass_on(self) -> None:
        if self._waiting:
            first = self._waiting[0]
            first.leads = True
            first.woken.set()
        # Last: whoever is interrupted in a line above has the turn, and passes it on, or nobody.
        self._is_led = bool(self._waiting)

    def _leave(self, member: Member) -> None:
        """Take out a transaction that was interrupted before a leader took it."""
        with self._mutex:
            if member in self._waiting:
                self._waiting.remove(member)
                if member.leads:
                    self._pass_on()

    def _lead(self, leader: Member, base: Snapshot) -> int | None:
        """Commit for those who wait.

        Returns:
            The version, where the leader was alone.
        """
        taken: list[Member] = []
        fate: Fate | None = None
        try:
            with self._mutex:
                taken = _companions(leader, self._waiting, base)
                # By itself, who waited while others committed would lose to what they committed.
                if len(taken) > 1 or is_behind(leader, base):
                    fate = leader.together(base, taken, None)
                # From here on whoever is interrupted while it waits is in doubt: its files stay.
                for each in taken:
                    each.fate = fate
                    if fate is not None:
                        each.share(fate)
                    self._waiting.remove(each)
            if fate is None:
                return leader.alone()
            fate.settle()
            return None
        finally:
            try:
                self._release(leader, taken, fate)
            finally:  # a Ctrl-C in the line above must leave no member waiting
                self._release(leader, taken, fate)

    def _release(self, leader: Member, taken: Sequence[Member], fate: Fate | None) -> None:
        if fate is not None:
            fate.is_over = True
        with self._mutex:
            # All of them were taken out, unless that was interrupted; none may be taken again.
            gone = {leader, *taken}
            self._waiting = [each for each in self._waiting if each not in gone]
            if leader.leads:
                self._pass_on()
                leader.leads = False
        for each in taken:
            each.woken.set()


def outcome_of(member: Member) -> int:
    """What became of a member of a group, once that is over.

    It follows from what the log is known to hold, whatever stopped the one who led.
    """
    fate = member.fate
    if fate is None:
        return member.alone()
    if fate.landing.version is not None:
        member.share(fate)
        if isinstance(fate.error, Exception):
            stopped = commit_interrupted(fate.table, fate.landing.version, fate.error)
            raise stopped from fate.error
        return fate.landing.version
    if fate.landing.is_possible:
        raise _unknown(member, fate, fate.error) from fate.error
    member.share(None)
    return member.alone()


def _unknown(member: Member, fate: Fate, error: BaseException | None) -> CommitOutcomeUnknownError:
    if isinstance(error, CommitOutcomeUnknownError):
        path, seen = error.path, error.evidence
    else:
        tried = fate.landing.tried
        first = member.snapshot.version + 1
        path = commit_path(fate.table, first if tried is None else tried)
        seen = f"it was interrupted by {type(error).__name__}"
    return CommitOutcomeUnknownError(
        path, f"{seen}; it is one commit of several transactions, with the txnId {fate.txn_id}"
    )


def _is_in_doubt(fate: Fate, exc: BaseException) -> bool:
    """Whether a commit may land though one of its members leaves."""
    return fate.error is not exc and (not fate.is_over or fate.landing.is_possible)


def _note_doubt(member: Member, exc: BaseException) -> None:
    """Say to Ctrl-C and its like how to find out about a commit that others make."""
    fate = member.fate
    if fate is not None and _is_in_doubt(fate, exc):
        exc.add_note(
            f"The transaction {member.txn_id} on {fate.table} was interrupted while others "
            f"committed it; it landed if a version's commitInfo.txnId is {fate.txn_id}."
        )


def _companions(leader: Member, waiting: Sequence[Member], base: Snapshot) -> list[Member]:
    """The leader, and those who can be in one commit with it."""
    taken, room = [leader], MOST_ACTIONS - len(leader.actions)
    apps = set(leader.apps)
    if not holds_at(leader, base):
        return taken
    for each in waiting:
        fits = len(each.actions) <= room and len(taken) < MOST_MEMBERS
        if each is leader or not fits or apps & each.apps:
            continue
        if _are_alike(leader.operation, each.operation) and holds_at(each, base):
            taken.append(each)
            apps |= each.apps
            room -= len(each.actions)
    return taken


def is_behind(leader: Member, base: Snapshot) -> bool:
    """Whether newer versions are known, and none of them is in the leader's way."""
    return leader.snapshot.version < base.version and holds_at(leader, base)


def _are_alike(one: Operation, other: Operation) -> bool:
    """Whether one `commitInfo` can tell of both."""
    mine, theirs = ((each.name, each.user_metadata, each.tags) for each in (one, other))
    return mine == theirs


def holds_at(member: Member, base: Snapshot) -> bool:
    """Whether nothing that was committed up to `base` is in the way of an append."""
    read, terms = member.snapshot, base.terms
    if read is base:
        return True
    return (
        read.version <= base.version
        and read.terms.metadata == terms.metadata
        and read.terms.protocol == terms.protocol
        and all(read.txn_version(app) == base.txn_version(app) for app in member.apps)
        and not member.may_be_in(base)
    )


def may_join(prepared: PreparedCommit, snapshot: Snapshot) -> bool:
    """Whether a commit is one that others can be committed with: an append that read nothing.

    Args:
        prepared: the commit.
        snapshot: what its transaction read.
    """
    # What reads, removes or changes metadata is checked against the commits before it: among others
    # in the same commit there is no before.
    terms, actions = prepared.terms, prepared.actions
    return (
        prepared.is_blind_append
        and terms is snapshot.terms
        and not terms.keeps_symlink_manifest
        and len(actions) < MOST_ACTIONS
        and any(isinstance(each, AddFile) for each in actions)
        and all(isinstance(each, AddFile | SetTransaction) for each in actions)
    )


def joint_actions(members: Sequence[Joined]) -> list[Action]:
    """What a commit of several transactions holds."""
    return [action for each in members for action in each.actions]


def joint_operation(members: Sequence[Joined]) -> Operation:
    """What it says that it did: parameters that all share, and the sums of their metrics."""
    first, *others = (each.operation for each in members)
    parameters = {
        name: value
        for name, value in first.parameters.items()
        if all(name in each.parameters and each.parameters[name] == value for each in others)
    }
    shared = set(first.metrics).intersection(*(each.metrics for each in others))
    metrics = {
        name: sum(int(each.metrics[name]) for each in (first, *others))
        for name in first.metrics
        if name in shared
    }
    ids = ",".join(each.txn_id for each in members)
    tags = {**first.tags, GROUP_TAG: ids}
    return replace(first, parameters=parameters, metrics=metrics, tags=tags)


class _Tables:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.groups: weakref.WeakKeyDictionary[TableLog, CommitGroups] = weakref.WeakKeyDictionary()


_tables = _Tables()


def _reset_after_fork() -> None:
    # A forked child has none of the threads that wait or lead.
    global _tables
    _tables = _Tables()


after_fork(_reset_after_fork)


def group_of(log: TableLog) -> CommitGroups:
    """Those who wait to commit through a log."""
    tables = _tables
    with tables.lock:
        return tables.groups.setdefault(log, CommitGroups())
