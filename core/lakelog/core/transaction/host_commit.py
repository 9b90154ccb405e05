"""Commits of several processes of one host, as one version (`spark.lakelog.commit.host`).

Who finds that no other process of the host commits to the table commits at once. Who finds one
leaves a request (`host_queue`) and waits. When the turn is free one of those who wait has it next,
and commits for all whose appends fit into one commit with its own: the rules are those of `group`.
There is no process to start and none that must live: a turn is a lock which the kernel takes from
whoever dies.

Nothing rests on that lock but speed. What decides is the exclusive create of a version, and the
steps of a group, each of which can be made once:

- A leader says what it is about to send before it sends it: version and bytes. It goes on to
  another version only by a further step.
- Who finds a group without an outcome, and has the turn, settles it as every writer settles a
  version in doubt (`commit.loop`): it looks; if the version is missing it sends the same bytes to
  the same version. Its own step comes first, so that the former leader, if it lives after all,
  can't say any more that the commit was refused, nor go on to another version.
- A group is dissolved only where it is proven that no version holds its commit or will: another's
  commit has the version, or nobody but the one who says so ever sent it. Its members then commit
  by themselves.

So each member hears one outcome, whoever is killed when. The request of a process that is gone
before it was taken is dropped; one that was taken may be committed, as with any writer that is
killed while it commits. Where all who wait are gone, nothing is sent again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.actions import CommitInfo, action_from_json
from lakelog.core.actions.operation import Operation
from lakelog.core.commit.attempt import Attempt, Landing
from lakelog.core.commit.backoff import Backoff
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.fence import check_fence
from lakelog.core.commit.lock import hold_lock, lock_for
from lakelog.core.commit.prepare import engine_info
from lakelog.core.commit.version_writer import CommitWriter, LineDigest, Written
from lakelog.core.conf import travelling_conf
from lakelog.core.errors import CommitOutcomeUnknownError, DeltaError
from lakelog.core.events import CommitOutcome, CommitStats
from lakelog.core.hooks.post_commit import CommittedTransaction, post_commit
from lakelog.core.log.commit_file import parse_commit
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction.group import (
    MOST_ACTIONS,
    MOST_MEMBERS,
    Fate,
    Joined,
    holds_at,
    is_behind,
    outcome_of,
)
from lakelog.core.transaction.host_queue import Group, HostQueue, Step, Ticket
from lakelog.logstores.limits import limited
from lakelog.logstores.locks import host_lock, lock_file
from lakelog.logstores.systems import after_fork, need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from lakelog.core.actions import Action
    from lakelog.core.commit.attempt import Lines
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog
    from lakelog.core.transaction.group import Member

logger: logging.Logger = logging.getLogger("lakelog")

_LOOK_SECONDS = 0.2
"""How long it takes at most to notice that the process which had the turn is gone."""
_FORM = 1
"""Of requests; processes that write another one commit apart."""


_inside: set[tuple[int, str]] = set()
"""The threads that lead or wait, and the queue."""

after_fork(_inside.clear)


class _TakenOverError(Exception):
    """Another process has gone on with this one's group."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A commit that waits, as its file says."""

    name: str
    kind: str
    """Equal where one `commitInfo` can tell of both, and both read the same metadata."""
    apps: Mapping[str, int]
    """The applications whose version it read or sets, and the version that it read."""
    joined: Joined


class HostCommits:
    """Commits of this process to one table, which take turns with those of others."""

    def __init__(self, log: TableLog) -> None:
        """Name the queue; nothing is made yet.

        Raises:
            UnsafeLogStoreError: the system has no FIFOs.
        """
        need(os, "mkfifo", "spark.lakelog.commit.host")
        self._log = log
        self._key = _queue_key(log)
        self._queue = HostQueue(lock_file(self._key).removesuffix(".lock") + ".queue")
        self._limits = log.conf.derived(CommitSettings).limits

    def commit(self, member: Member, newest: Callable[[], Snapshot | None]) -> int:
        """Commit a transaction, with those of other processes that wait or by itself.

        Args:
            member: the transaction.
            newest: gives the newest snapshot that is known, without asking the storage.

        Returns:
            The version that holds the commit.

        Raises:
            Exception: what `OptimisticTransaction.commit` raises.
            UnsafeLogStoreError: the folder for the queue is another user's, or open to others.
        """
        place = threading.get_ident(), self._key
        if place in _inside:
            # A handler of a signal or of a log record would wait for its own thread.
            return member.alone()
        try:
            _inside.add(place)
            return self._commit(member, newest)
        finally:
            _inside.discard(place)

    def _commit(self, member: Member, newest: Callable[[], Snapshot | None]) -> int:
        with contextlib.ExitStack() as turn:
            if self._has_turn(turn):
                return self._lead(member, newest)
        member.share(_waiting(self._log.table))
        try:
            ticket = self._queue.enter(_to_bytes(member))
        except OSError as exc:
            logger.warning(
                "%s: the commit is made apart from those of other processes, for its request can't "
                "be left in %s (%s)",
                self._log.table,
                self._queue.folder,
                exc,
            )
            member.share(None)
            return member.alone()
        try:
            return self._wait(member, ticket, newest)
        except BaseException as exc:
            if ticket.withdraw():
                member.share(None)
            elif not isinstance(exc, Exception):
                exc.add_note(
                    f"The transaction {member.txn_id} on {self._log.table} was interrupted while "
                    "another process committed it; it landed if a version's commitInfo.tags say so."
                )
            raise
        finally:
            ticket.close()

    def _has_turn(self, turn: contextlib.ExitStack) -> bool:
        try:
            turn.enter_context(host_lock(self._key, timeout=0.0))
        except TimeoutError:
            return False
        # After the lock is free again, for the next one would find it taken. Callbacks run last
        # first, so the lock has to be entered after this one.
        held = turn.pop_all()
        turn.callback(self._pass_on)
        turn.push(held)
        return True

    def _pass_on(self) -> None:
        """Wake the one who waits longest."""
        any(self._queue.wake(each) for each in self._queue.waiting())

    def _wait(self, member: Member, ticket: Ticket, newest: Callable[[], Snapshot | None]) -> int:
        patience = time.monotonic() + self._limits.seconds
        while True:
            if not ticket.is_waiting():
                group = ticket.group()
                if group is None:
                    return self._tell(member, None, Step("unknown"))
                step = group.last()
                if step is not None and step.is_last:
                    return self._tell(member, group, step, ticket.name)
            late = time.monotonic() > patience
            with contextlib.ExitStack() as turn:
                # One who has the turn and does nothing, as a process that was stopped, is not
                # waited for without an end: the steps need no turn.
                if self._has_turn(turn) or late:
                    if ticket.withdraw():
                        member.share(None)
                        return member.alone() if late else self._lead(member, newest)
                    self._settle_groups()  # of the one that took it, and is gone
            ticket.wait(_LOOK_SECONDS)

    def _lead(self, member: Member, newest: Callable[[], Snapshot | None]) -> int:
        """Commit with those who wait; this process has the turn."""
        self._settle_groups()
        self._catch_up()
        try:
            return self._lead_from(member, newest() or member.snapshot)
        finally:
            after = member.after()
            before = None if after is None else _before(after)
            if after is not None and before is not None:
                lines = (each.to_json() for each in (after.commit_info, *after.actions))
                self._queue.tell(after.version, "\n".join([before, *lines]).encode())

    def _catch_up(self) -> None:
        """Take over what other processes have told, without asking the storage.

        Only what follows the very commit that is known: the path may hold another table by now.
        """
        log = self._log
        with contextlib.suppress(OSError, DeltaError):
            while (known := log.known_snapshot) is not None:
                version, info = known.version + 1, known.commit_info
                before, _, lines = (self._queue.told(version) or b"").partition(b"\n")
                if not before or info is None or info.txn_id != before.decode():
                    return
                log.after_commit(parse_commit(lines, version, commit_path(log.table, version)))
                if log.known_version == known.version:
                    return

    def _lead_from(self, member: Member, base: Snapshot) -> int:
        group: Group | None = None
        others: list[_Request] = []
        if holds_at(member, base):
            try:
                group, others = self._take(member, base)
            except OSError as exc:
                logger.warning("%s: no commit of several processes (%s)", self._log.table, exc)
        if group is None and not is_behind(member, base):
            return member.alone()
        watch = None if group is None else _Witness(group, base)
        fate = member.together(base, [member, *(each.joined for each in others)], watch)
        member.fate = fate
        member.share(fate)
        try:
            fate.settle()
        finally:
            fate.is_over = True
            told = self._end(group, fate) if group is not None else None
        if group is not None and told is not None:
            return self._tell(member, group, told)
        return outcome_of(member)

    def _take(self, member: Member, base: Snapshot) -> tuple[Group | None, list[_Request]]:
        """Take those who wait and fit."""
        kind = _kind(member, base)
        room, apps = MOST_ACTIONS - len(member.actions), set(member.apps)
        fitting: list[_Request] = []
        for name in self._queue.waiting():
            data = self._queue.read(name)
            request = None if data is None else _from_bytes(name, data)
            if request is None or request.kind != kind or apps & request.apps.keys():
                continue
            fits = len(request.joined.actions) <= room and len(fitting) < MOST_MEMBERS - 1
            if fits and all(base.txn_version(app) == at for app, at in request.apps.items()):
                fitting.append(request)
                apps |= request.apps.keys()
                room -= len(request.joined.actions)
        if not fitting:
            return None, []
        group = Group(self._queue, str(uuid.uuid4()))
        group.make()
        taken = [each for each in fitting if group.take(each.name)]
        if taken:
            return group, taken
        group.remove()
        return None, []

    def _end(self, group: Group, fate: Fate) -> Step | None:
        """Say what became of a group; None where this process knows more than its files do."""
        landing = fate.landing
        is_open = landing.is_possible and landing.version is None
        if is_open and not isinstance(fate.error, Exception):
            return None  # Ctrl-C: who has the turn next finds out
        if landing.version is not None:
            step = Step("landed", landing.version)
        elif landing.is_possible:
            step = Step("unknown", landing.tried or 0)
        else:
            step = Step("dissolved")
        try:
            with contextlib.suppress(OSError):  # records are not worth an outcome
                lines = (each.to_json().encode() for each in fate.attempts)
                group.keep_attempts(b"\n".join(lines))
            if group.add(step):
                group.wake()
                return None
            told: Step | None = self._settle(group)
        except OSError as exc:
            # The disk is full, or the folder was removed: the members find out by themselves.
            logger.warning("%s: the outcome can't be left (%s)", self._log.table, exc)
            # Without a step none can send it; after one, who finds it may send it again.
            told = Step("unknown") if group.has_begun and not landing.is_possible else None
        return None if landing.version is not None else told

    def _settle_groups(self) -> None:
        """Settle what others left open, and remove what is over."""
        self._queue.sweep()
        for group in self._queue.groups():
            with contextlib.suppress(OSError):
                step = group.last()
                if step is None or not step.is_last:
                    self._settle(group)
                    group.wake()
                if not group.is_awaited():
                    group.remove()

    def _settle(self, group: Group) -> Step:
        """Find out what became of a group, whoever led it.

        Raises:
            OSError: no step can be made.
        """
        while True:
            last = group.last()
            if last is None:
                if group.add(Step("dissolved")):  # so nothing of it can be sent any more
                    return Step("dissolved")
                continue
            if last.is_last:
                return last
            if not group.is_awaited():
                found = Step("unknown", last.version)
            elif group.add(last):
                found = self._send_again(group, last)
            else:
                continue
            if group.add(found):
                return found

    def _send_again(self, group: Group, step: Step) -> Step:
        log, limits = self._log, self._limits
        header, _, body = group.kept(step.lines).partition(b"\n")
        sent = _SentLines(body)
        about: dict[str, Any] = orjson.loads(header)
        info = about["info"] and CommitInfo.from_json_value(about["info"])
        landing, digest = Landing(), LineDigest()
        for line in sent:
            digest.add(line)
        landing.trying(step.version)
        landing.given(digest.value)
        backoff = Backoff(log.clock, limits.max_wait)
        writer = CommitWriter(log.store, log.clock, log.table, sent, limits, backoff, landing)
        deadline = log.clock.monotonic() + limits.seconds
        writer.deadline, writer.brief = deadline, limits.brief

        def settle() -> Step:
            attempt = Attempt(step.version)
            while True:
                found = writer.read(attempt, step.version)
                if found is not None:
                    ours = writer.is_ours(found)
                    return Step("landed", step.version) if ours else Step("dissolved")
                check_fence(log.store, log.table, about["read"] + 1, info, about["modified"])
                if writer.write(attempt) is Written.OURS:
                    return Step("landed", step.version)
                left = deadline - log.clock.monotonic()
                if left <= limits.reserve:
                    return Step("unknown", step.version)
                pace = log.store.capabilities.min_commit_interval
                backoff.wait(attempt.write_seconds, at_least=pace, at_most=left)

        def left() -> float:
            return deadline - limits.reserve - log.clock.monotonic()

        try:
            with hold_lock(
                lock_for(log.store, log.table, log.conf), log.table, timeout=limits.seconds
            ):
                return limited(left, settle)
        except Exception as exc:
            logger.warning("%s: version %d is in doubt (%s)", log.table, step.version, exc)
            return Step("unknown", step.version)

    def _tell(
        self, member: Member, group: Group | None, step: Step, name: str | None = None
    ) -> int:
        """Make the outcome that the files say the member's own."""
        landing = Landing()
        after: CommittedTransaction | None = None
        attempts: list[CommitStats] = []
        error: Exception | None = None
        table = self._log.table
        if step.kind == "landed" and group is not None:
            landing.landed(step.version)
            after = self._committed(member, group, step.version)
            attempts = [_to_stats(each) for each in group.attempts().splitlines()]
        elif step.kind != "dissolved":
            landing.trying(max(0, step.version))
            error = CommitOutcomeUnknownError(
                commit_path(table, max(0, step.version)),
                "the process that committed it is gone, and the storage did not say"
                if group is not None
                else f"its request was removed from {self._queue.folder}; it landed if a version's "
                f"commitInfo.tags name {member.txn_id}",
            )
        member.fate = Fate(
            table=table,
            txn_id=group.txn_id if group is not None else member.txn_id,
            landing=landing,
            attempts=attempts,
            run=lambda: None,
            after=lambda: after,
            error=error,
            is_over=True,
        )
        if group is not None and name is not None:
            group.forget(name)
        if after is not None:
            self._catch_up()
            # The hooks of the version are run by who committed it.
            post_commit(after, ())
        return outcome_of(member)

    def _committed(self, member: Member, group: Group, version: int) -> CommittedTransaction | None:
        sent = group.sent()
        if sent is None:
            return None
        info, *actions = (action_from_json(line) for line in sent.splitlines()[1:])
        assert isinstance(info, CommitInfo)
        read = member.snapshot
        return CommittedTransaction(
            delta_log=self._log,
            version=version,
            read_version=read.version,
            actions=actions,
            commit_info=info,
            metadata=read.metadata,
            protocol=read.protocol,
            read_snapshot=read,
        )


class _Witness:
    """Says, before a leader sends something, what that is."""

    def __init__(self, group: Group, base: Snapshot) -> None:
        """Say nothing yet."""
        info = base.commit_info
        self.txn_id: str = group.txn_id
        self._group = group
        about = {
            "read": base.version,
            "info": None if info is None else info.to_json_value(),
            "modified": base.state.timestamp,
        }
        self._header = orjson.dumps(about) + b"\n"
        self._said: tuple[int, bytes] | None = None

    def __call__(self, version: int, lines: Lines) -> None:
        """Called before each write.

        Raises:
            OSError: it can't be said, so nothing may be sent.
            _TakenOverError: another process has gone on with the group.
        """
        body = "\n".join(lines).encode()
        if self._said == (version, body):
            return
        name = self._group.keep(self._header + body)
        if not self._group.add(Step("try", version, name)):
            raise _TakenOverError(f"another process commits {self._group.txn_id}")
        self._said = version, body


class _SentLines:
    """Lines as they were sent."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.decode().split("\n")
        self.bytes = len(data)
        self.num_actions = len(self._lines) - 1
        info = action_from_json(self._lines[0])
        assert isinstance(info, CommitInfo)
        self.commit_info = info

    def sizes(self) -> dict[str, int]:
        return {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._lines)


def _before(committed: CommittedTransaction) -> str | None:
    """The txnId of the version before a commit, where that is known."""
    if committed.winners:
        last = committed.winners[-1]
        return last.txn_id if last.version == committed.version - 1 else None
    read = committed.read_snapshot
    if read is None or read.version != committed.version - 1 or read.commit_info is None:
        return None
    return read.commit_info.txn_id


def _waiting(table: str) -> Fate:
    return Fate(
        table=table, txn_id="", landing=Landing(), attempts=[], run=lambda: None, after=lambda: None
    )


def _queue_key(log: TableLog) -> str:
    """What two processes have in common that may commit for each other."""
    # Another host may see the same folder, and a container a host's.
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        start = ""
    # With other settings it may be another storage, or other credentials for it.
    conf = travelling_conf(log.conf, log.table)
    kept = sorted(each for each in conf.items() if not each[0].startswith("spark.app."))
    about = [_FORM, engine_info(), socket.gethostname(), start, log.table, kept]
    digest = hashlib.sha256(orjson.dumps(about)).hexdigest()
    return f"commits:{digest}"


def _kind(member: Joined, read: Snapshot) -> str:
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


def _to_bytes(member: Member) -> bytes:
    read, operation = member.snapshot, member.operation
    header = {
        "kind": _kind(member, read),
        "txnId": member.txn_id,
        "readAt": member.read_at_ms,
        "apps": {app: read.txn_version(app) for app in sorted(member.apps)},
        "hasWritten": member.has_written,
        "name": operation.name,
        "parameters": dict(operation.parameters),
        "metrics": dict(operation.metrics),
        "note": operation.user_metadata,
        "tags": dict(operation.tags),
    }
    lines = [orjson.dumps(header), *(each.to_json().encode() for each in member.actions)]
    return b"\n".join(lines)


def _from_bytes(name: str, data: bytes) -> _Request:
    first, *lines = data.split(b"\n")
    header: dict[str, Any] = orjson.loads(first)
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
    return _Request(name, header["kind"], header["apps"], joined)


def _to_stats(line: bytes) -> CommitStats:
    values: dict[str, Any] = orjson.loads(line)
    values["outcome"] = CommitOutcome(values["outcome"])
    return CommitStats(**values)
