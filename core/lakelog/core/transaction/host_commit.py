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
- Who waits for a group and finds that its leader is gone settles it as every writer settles a
  version in doubt (`commit.loop`): it looks; if the version is missing it sends the same bytes to
  the same version. A step that says so comes first, so that the former leader, if it lives after
  all, can't say any more that the commit was refused, nor go on to another version. Several may
  settle one group: what they find is the same.
- A group is dissolved only where it is proven that no version holds its commit or will: another's
  commit has the version, or nobody but the one who says so ever sent it. Its members then commit
  by themselves.
- Whoever hears that a version holds the group looks whether its own request is among those that
  were sent. Then a queue that loses a move, as on a network share, costs no more than time.

So each member hears one outcome, whoever is killed when. The request of a process that is gone
before it was taken is dropped; one that was taken may be committed, as with any writer that is
killed while it commits. Where all who wait are gone, nothing is sent again.

Two processes meet only where the same names lead both to the same files and servers: on one host,
in the same namespaces, with the same settings, in the conf and in the environment (`_queue_key`).
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import socket
import threading
import time
import uuid
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from lakelog.core.actions import CommitInfo, action_from_json
from lakelog.core.catalogs.catalog_conf import CatalogConf
from lakelog.core.catalogs.refusals import governed
from lakelog.core.commit.attempt import Attempt, Landing
from lakelog.core.commit.backoff import Backoff
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.fence import check_fence
from lakelog.core.commit.lock import hold_lock, lock_for
from lakelog.core.commit.prepare import engine_info
from lakelog.core.commit.version_writer import CommitWriter, LineDigest, Written
from lakelog.core.conf import travelling_conf
from lakelog.core.errors import CommitOutcomeUnknownError, DeltaError
from lakelog.core.hooks.post_commit import CommittedTransaction, post_commit
from lakelog.core.log.commit_file import parse_commit
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction.group import (
    MOST_ACTIONS,
    MOST_MEMBERS,
    Fate,
    holds_at,
    is_behind,
    outcome_of,
)
from lakelog.core.transaction.host_queue import Group, HostQueue, Step, Ticket
from lakelog.core.transaction.requests import (
    FORM,
    Request,
    committed_from,
    from_bytes,
    kind_of,
    made_elsewhere,
    to_bytes,
    to_stats,
    waiting_for_others,
)
from lakelog.logstores import keys
from lakelog.logstores.limits import limited
from lakelog.logstores.locks import LockHeldError, host_lock, lock_file
from lakelog.logstores.systems import after_fork, need

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakelog.core.commit.attempt import Lines
    from lakelog.core.events import CommitStats
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.table_log import TableLog
    from lakelog.core.transaction.group import Member

logger: logging.Logger = logging.getLogger("lakelog")

_LOOK_SECONDS = 0.2
"""How long it takes at most to notice that the process which had the turn is gone."""
_ENVIRONMENT = re.compile(
    "(ALIBABA_CLOUD|AWS|AZURE|CLOUDSDK|GOOGLE|HADOOP|LAKELOG|OCI|OSS|STORAGE)_|KRB5"
    "|(HTTPS?|ALL|NO)_PROXY$|HOME$",
    re.IGNORECASE,
)
"""The variables that say where a storage is, and who asks it."""


_inside: set[tuple[int, str]] = set()
"""The threads that lead or wait, and the queue."""

after_fork(_inside.clear)


class _TakenOverError(Exception):
    """Another process has gone on with this one's group."""


class HostCommits:
    """Commits of this process to one table, which take turns with those of others."""

    def __init__(self, log: TableLog) -> None:
        """Name the queue; nothing is made yet.

        Raises:
            UnsafeLogStoreError: the system has no FIFOs.
        """
        need(os, "mkfifo", keys.COMMIT_HOST.name)
        self._log = log
        self._key = _queue_key(log)
        self._limits = log.conf.derived(CommitSettings).limits

    @cached_property
    def _queue(self) -> HostQueue:
        return HostQueue(lock_file(self._key).removesuffix(".lock") + ".queue")

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
            try:
                has_turn = self._has_turn(turn)
            except OSError as exc:
                if not _is_of_files(exc):
                    raise
                return self._apart(member, exc)
            if has_turn:
                return self._lead(member, newest)
        member.share(waiting_for_others(self._log.table))
        try:
            ticket = self._queue.enter(to_bytes(member))
        except (OSError, TypeError) as exc:  # a value that JSON does not have
            if isinstance(exc, OSError) and not _is_of_files(exc):
                raise
            return self._apart(member, exc)
        try:
            return self._wait(member, ticket, newest)
        finally:
            ticket.close()

    def _apart(self, member: Member, why: Exception) -> int:
        logger.warning(
            "%s: the commit is made apart from those of other processes, for the files by which "
            "they commit as one can't be used (%s: %s)",
            self._log.table,
            type(why).__name__,
            why,
        )
        member.share(None)
        return member.alone()

    def _has_turn(self, turn: contextlib.ExitStack) -> bool:
        try:
            turn.enter_context(host_lock(self._key, timeout=0.0))
        except LockHeldError:
            return False
        # After the lock is free again, for the next one would find it taken. Callbacks run last
        # first, so the lock has to be entered after this one.
        held = turn.pop_all()
        turn.callback(self._pass_on)
        turn.push(held)
        return True

    def _pass_on(self) -> None:
        """Wake the one who waits longest."""
        with contextlib.suppress(OSError):  # it looks by itself
            any(self._queue.wake(each) for each in self._queue.waiting())

    def _wait(self, member: Member, ticket: Ticket, newest: Callable[[], Snapshot | None]) -> int:
        began = time.monotonic()
        with contextlib.ExitStack() as turn:
            try:
                heard = self._listen(ticket, turn)
            except Exception as exc:
                is_withdrawn = _is_withdrawn(ticket)
                if is_withdrawn and not _is_of_files(exc):
                    member.share(None)
                    raise
                logger.warning("%s: %s can't be used (%s)", member.txn_id, self._queue.folder, exc)
                if not is_withdrawn:
                    return self._conclude(member, None, Step("unknown"), why=exc)
                heard = _Heard()
            except BaseException as exc:
                if _is_withdrawn(ticket):
                    member.share(None)
                else:
                    exc.add_note(
                        f"The transaction {member.txn_id} on {self._log.table} was interrupted "
                        "while another process committed it; it landed if a version's "
                        "commitInfo.tags name it."
                    )
                raise
            member.waited(time.monotonic() - began)
            if heard.step is not None:
                return self._conclude(member, heard.group, heard.step, ticket.name)
            member.share(None)
            return self._lead(member, newest) if heard.has_turn else member.alone()

    def _listen(self, ticket: Ticket, turn: contextlib.ExitStack) -> _Heard:
        """Wait for an outcome or for the turn, which `turn` then holds.

        Raises:
            OSError: the files of the queue can't be read or made.
        """
        # One who has the turn and does nothing, as a process that was stopped, is not waited for
        # without an end: the steps need no turn.
        patience = time.monotonic() + self._limits.reserve
        while True:
            if not ticket.is_waiting():
                group = ticket.group()
                step = Step("unknown") if group is None else group.last()
                if step is not None and step.is_last:
                    return _Heard(step, group)
            with contextlib.ExitStack() as held:
                has_turn = self._has_turn(held)
                if has_turn or time.monotonic() > patience:
                    if ticket.withdraw():
                        turn.push(held.pop_all())
                        return _Heard(has_turn=has_turn)
                    taken_by = ticket.group()
                    if taken_by is not None:  # and its leader is gone
                        self._settle(taken_by)
                        taken_by.wake()
                        continue
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
                self._queue.share(after.version, "\n".join([before, *lines]).encode())

    def _catch_up(self) -> None:
        """Take over what other processes have committed, without asking the storage.

        Only what follows the very commit that is known: the path may hold another table by now.
        """
        log = self._log
        with contextlib.suppress(OSError, DeltaError):
            while (known := log.known_snapshot) is not None:
                version, info = known.version + 1, known.commit_info
                before, _, lines = (self._queue.shared(version) or b"").partition(b"\n")
                if not before or info is None or info.txn_id != before.decode(errors="replace"):
                    return
                log.after_commit(parse_commit(lines, version, commit_path(log.table, version)))
                if log.known_version == known.version:
                    return

    def _lead_from(self, member: Member, base: Snapshot) -> int:
        group: Group | None = None
        others: list[Request] = []
        if holds_at(member, base):
            try:
                group, others = self._take(member, base)
            except (OSError, TypeError) as exc:
                logger.warning("%s: no commit of several processes (%s)", self._log.table, exc)
        if group is None and not is_behind(member, base):
            return member.alone()
        watch = None if group is None else _Witness(group, base, [each.name for each in others])
        fate = member.together(base, [member, *(each.joined for each in others)], watch)
        member.fate = fate
        member.share(fate)
        try:
            fate.settle()
        finally:
            fate.is_over = True
            heard = self._end(group, fate) if group is not None else None
        if group is not None and heard is not None:
            return self._conclude(member, group, heard)
        return outcome_of(member)

    def _take(self, member: Member, base: Snapshot) -> tuple[Group | None, list[Request]]:
        """Take those who wait and fit."""
        kind = kind_of(member, base)
        room, apps = MOST_ACTIONS - len(member.actions), set(member.apps)
        fitting: list[Request] = []
        for name in self._queue.waiting():
            request = self._request(name)
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

    def _request(self, name: str) -> Request | None:
        data = self._queue.read(name)
        try:
            return None if data is None else from_bytes(name, data)
        except Exception as exc:
            logger.warning("%s: the request %s makes no sense (%r)", self._log.table, name, exc)
            return None  # it is committed by its own process

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
            heard: Step | None = self._settle(group)
        except OSError as exc:
            # The disk is full, or the folder was removed: the members find out by themselves.
            logger.warning("%s: the outcome can't be left (%s)", self._log.table, exc)
            # Without a step none can send it; after one, who finds it may send it again.
            doubtful = group.tried is not None and not landing.is_possible
            heard = Step("unknown", group.tried or 0) if doubtful else None
        return None if landing.version is not None else heard

    def _settle_groups(self) -> None:
        """Settle what others left open, and remove what is over."""
        groups: list[Group] = []
        with contextlib.suppress(OSError):
            self._queue.sweep()
            groups.extend(self._queue.groups())
        for group in groups:
            with contextlib.suppress(OSError):
                step = group.last()
                if step is None or not step.is_last:
                    self._settle(group, is_ours=False)
                    group.wake()
            with contextlib.suppress(OSError):  # also what can't be read
                if not group.is_awaited():
                    group.remove()

    def _settle(self, group: Group, *, is_ours: bool = True) -> Step:
        """Find out what became of a group, whoever led it.

        Args:
            group: the group.
            is_ours: whether a transaction of this process is in it; where none that is in it lives,
                nothing is sent.

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
            if not is_ours and not group.is_awaited():
                found = Step("unknown", last.version)
            elif last.kind == "try":
                group.add(Step("again", last.version, last.lines))  # or another has
                continue
            else:
                found = self._send_again(group, last)
            if group.add(found):
                return found

    def _send_again(self, group: Group, step: Step) -> Step:
        data = group.kept(step.lines)
        try:
            return self._sent_again(data, step)
        except Exception as exc:
            logger.warning("%s: version %d is in doubt (%s)", self._log.table, step.version, exc)
            return Step("unknown", step.version)

    def _sent_again(self, data: bytes, step: Step) -> Step:
        log, limits = self._log, self._limits
        header, _, body = data.partition(b"\n")
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

        with hold_lock(lock_for(log.store, log.table, log.conf), log.table, timeout=limits.seconds):
            return limited(left, settle)

    def _conclude(
        self,
        member: Member,
        group: Group | None,
        step: Step,
        name: str | None = None,
        why: Exception | None = None,
    ) -> int:
        """Make the outcome that the files say the member's own.

        Args:
            member: the transaction.
            group: what committed it; None where its request is in none.
            step: the last one.
            name: of the member's request; None where it leads the group.
            why: what ended the wait for the last step.
        """
        landing = Landing()
        after: CommittedTransaction | None = None
        attempts: list[CommitStats] = []
        error: Exception | None = None
        table = self._log.table
        version = step.version if step.version >= 0 else member.snapshot.version + 1
        evidence = ""
        if step.kind == "landed" and group is not None:
            try:
                found = self._committed(member, group, version, name)
            except Exception as exc:  # the files may hold anything
                evidence = f"what was committed with it can't be read ({exc})"
            else:
                if found is not None:  # it is in that version, and not only in the group's folder
                    landing.landed(version)
                    after = found
                    with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
                        attempts = [to_stats(each) for each in group.attempts().splitlines()]
        elif step.kind != "dissolved":
            evidence = (
                "the storage did not say, or whoever committed it with others is gone"
                if group is not None
                else f"its request is not in {self._queue.folder} any more"
            )
        if evidence:
            landing.trying(version)
            error = CommitOutcomeUnknownError(
                commit_path(table, version),
                f"{evidence}; it landed if a version's commitInfo.tags name {member.txn_id}",
            )
            error.__cause__ = why
        txn_id = group.txn_id if group is not None else member.txn_id
        member.fate = made_elsewhere(table, txn_id, landing, attempts, after, error)
        member.share(member.fate)
        if group is not None and name is not None:
            group.forget(name)
        if after is not None:
            self._catch_up()
            # The hooks of the version are run by who committed it.
            post_commit(after, ())
        return outcome_of(member)

    def _committed(
        self, member: Member, group: Group, version: int, name: str | None
    ) -> CommittedTransaction | None:
        """What the group committed; None where that does not hold the member's request."""
        header, info, *lines = (group.sent() or b"").split(b"\n")
        if name is not None and name not in orjson.loads(header)["members"]:
            return None
        return committed_from(self._log, member.snapshot, version, [info, *lines])


@dataclass(frozen=True, slots=True)
class _Heard:
    """What becomes of a request that waited."""

    step: Step | None = None
    """The outcome; None where it was withdrawn."""
    group: Group | None = None
    """Whose outcome that is."""
    has_turn: bool = False


def _is_of_files(error: Exception) -> bool:
    """Whether the system raised it, and not a handler of a signal, as one that limits a job."""
    return isinstance(error, OSError) and error.errno is not None


def _is_withdrawn(ticket: Ticket) -> bool:
    try:
        return ticket.withdraw()
    except OSError:
        return False


class _Witness:
    """Says, before a leader sends something, what that is."""

    def __init__(self, group: Group, base: Snapshot, members: Sequence[str]) -> None:
        """Say nothing yet."""
        info = base.commit_info
        self.txn_id: str = group.txn_id
        self._group = group
        about = {
            "read": base.version,
            "info": None if info is None else info.to_json_value(),
            "modified": base.state.timestamp,
            "members": members,
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


def _queue_key(log: TableLog) -> str:
    """What two processes have in common that may commit for each other."""
    # With other settings it may be another storage, or other credentials for it.
    conf = travelling_conf(log.conf, log.table)
    kept = sorted(each for each in conf.items() if not each[0].startswith("spark.app."))
    around = sorted(each for each in os.environ.items() if _ENVIRONMENT.match(each[0]))
    store = governed(log.store)
    asked = store and CatalogConf(store.catalog.name, log.conf).pairs
    about = [FORM, engine_info(), _host(), log.table, kept, around, asked]
    digest = hashlib.sha256(repr(about).encode("utf-8", "surrogateescape")).hexdigest()
    return f"commits:{digest}"


def _host() -> list[object]:
    """What lets the same paths and addresses lead two processes to the same files and servers."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        start = str(uuid.getnode())
    # Another host may see the same folder for temporary files, and a container that of its host.
    spaces = []
    for kind in ("mnt", "net", "user"):
        with contextlib.suppress(OSError):
            spaces.append(os.readlink(f"/proc/thread-self/ns/{kind}"))  # noqa: PTH115 (no file)
    root = os.stat("/")  # noqa: PTH116
    return [socket.gethostname(), start, *spaces, root.st_dev, root.st_ino]
