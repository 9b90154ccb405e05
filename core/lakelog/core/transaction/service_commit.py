"""Commits of several hosts as one version, by a service (`spark.lakelog.commit.service`).

A client leaves its append with the service (`commit_service`), which commits it together with those
of others, and says as which version. Where the service does not answer, the client commits by
itself. No reply is needed to be sure of the outcome, for the log alone decides: whoever tries to
commit a transaction, client or service, goes through every version between the one that the
transaction read and the one that it creates, and finds it where it is (`commit.loop`). So it is in
one version at most, whatever was lost on the way and whoever was killed.

What a lost reply leaves open is only the opposite: that the transaction is not in the log does not
say that it will not be. Until it is there, a failure to commit it is an unknown outcome
(`Landing.elsewhere`).
"""

from __future__ import annotations

import functools
import logging
import os
import ssl
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from lakelog.core.commit.attempt import Landing
from lakelog.core.commit.commit_settings import CommitSettings
from lakelog.core.commit.prepare import engine_info
from lakelog.core.errors import CommitOutcomeUnknownError, DeltaAnalysisError
from lakelog.core.hooks.post_commit import post_commit
from lakelog.core.log.commit_identity import (
    added_by,
    read_commit_info,
    transactions_in,
    transactions_of,
)
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction.group import outcome_of
from lakelog.core.transaction.requests import (
    FORM,
    committed_from,
    made_elsewhere,
    to_bytes,
    to_stats,
    waiting_for_others,
)
from lakelog.core.wire import LostReplyError, NotSentError, Wire
from lakelog.logstores import keys
from lakelog.logstores.locations import without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.core.conf import DeltaConf
    from lakelog.core.events import CommitStats
    from lakelog.core.hooks.post_commit import CommittedTransaction
    from lakelog.core.table_log import TableLog
    from lakelog.core.transaction.group import Member
    from lakelog.core.wire import Reply

logger: logging.Logger = logging.getLogger("lakelog")

COMMIT_PATH = "/commit"
MOST_BYTES = 4 << 20
"""Of a request; whoever has a larger one commits by itself."""
TOKEN_VARIABLE = "LAKELOG_SERVICE_TOKEN"  # the name of a variable
_CONNECT_SECONDS = 3.0
_AWAY_SECONDS = 10.0
"""For how long a service that can't be reached is not asked again."""
_ASKS = 3


class ServiceCommits:
    """Commits of this process to one table that a service makes."""

    def __init__(self, log: TableLog) -> None:
        """Ask for nothing yet.

        Raises:
            DeltaAnalysisError: the conf does not say which service, or which token.
        """
        self._log = log
        self._limits = log.conf.derived(CommitSettings).limits
        url = log.conf.read(keys.COMMIT_SERVICE) or ""
        trust = log.conf.read(keys.SERVICE_CA_FILE) or None
        self._service = _service(url, trust, _modified(trust))

    def commit(self, member: Member, otherwise: Callable[[], int]) -> int:
        """Let the service commit a transaction, or commit it here.

        Args:
            member: the transaction.
            otherwise: commits it where the service was not asked, or refused it.

        Returns:
            The version that holds the commit.

        Raises:
            Exception: what `OptimisticTransaction.commit` raises.
        """
        service = self._service
        body = None if service.is_away_from(self._log.table) else self._asking(member)
        if body is None or len(body) > MOST_BYTES:
            return otherwise()
        token = _token(self._log.conf)
        member.share(waiting_for_others(self._log.table))
        began = time.monotonic()
        landing: Landing | None = None
        try:
            heard = self._ask(body, token)
            member.waited(time.monotonic() - began)
            committed = self._checked(member, heard) if isinstance(heard, _Landed) else None
            if isinstance(heard, _Landed) and committed is not None:
                return self._conclude(member, heard, committed)
            if isinstance(heard, _Silent):
                service.tell(self._log.table, f"what it did is not known ({heard.why})")
            if not isinstance(heard, _Refused):
                landing = self._leave_open(member)
                return member.alone()
            service.tell(self._log.table, heard.why)
            member.share(None)
        except CommitOutcomeUnknownError:
            raise
        except Exception as exc:
            # Of what knows of no doubt, as where a lock can't be had, or of a signal's handler, as
            # one that limits a job.
            if member.after() is not None or (landing is not None and landing.version is not None):
                raise
            if landing is None:
                self._leave_open(member)
            raise self._unknown(member) from exc
        except BaseException as exc:
            exc.add_note(
                f"The transaction {member.txn_id} on {self._log.table} was interrupted while "
                f"{service} committed it; it landed if a version's commitInfo names it."
            )
            raise
        return otherwise()

    def _unknown(self, member: Member) -> CommitOutcomeUnknownError:
        path = commit_path(self._log.table, member.snapshot.version + 1)
        why = f"{self._service} was asked to commit it, as this version or a later one"
        return CommitOutcomeUnknownError(path, why)

    def _asking(self, member: Member) -> bytes | None:
        """The request; None for what no service can commit as it would be committed here."""
        settings, info = self._log.conf.derived(CommitSettings), member.snapshot.commit_info
        if not (settings.records_operation and settings.records_metrics):
            return None
        operation = member.operation
        if operation.user_metadata is None:
            operation = replace(operation, user_metadata=settings.user_metadata)
        about = {
            "engine": [engine_info(), FORM],
            "table": self._log.table,
            "read": member.snapshot.version,
            "readTxnId": None if info is None else info.txn_id,
        }
        try:
            return orjson.dumps(about) + b"\n" + to_bytes(replace(member, operation=operation))
        except TypeError:  # a value that JSON does not have
            return None

    def _ask(self, body: bytes, token: str) -> _Heard:
        """Ask until an answer comes back; each time by the same id."""
        reserve = self._limits.reserve
        until = time.monotonic() + reserve
        lost: Exception | None = None
        for _ in range(_ASKS):
            left = until - time.monotonic()
            if left <= 0:  # it stands still: for as long it is not asked again
                self._service.note_away(reserve)
                break
            try:
                heard = _heard(self._service.send(body, token, left))
            except NotSentError as exc:
                self._service.note_away()
                heard = _Refused(f"it can't be reached ({exc})")
            except LostReplyError as exc:
                lost = exc
                continue
            # What was asked before may still be on its way, whatever this request met.
            return heard if lost is None or isinstance(heard, _Landed) else _Silent(lost)
        return _Silent(lost)

    def _leave_open(self, member: Member) -> Landing:
        landing = Landing(elsewhere=member.snapshot.version + 1)
        fate = made_elsewhere(self._log.table, member.txn_id, landing, [], None)
        member.share(fate)
        return landing

    def _checked(self, member: Member, heard: _Landed) -> CommittedTransaction | None:
        """What was committed, where it holds the transaction, and is in this table's log."""
        log, service = self._log, self._service
        try:
            committed = committed_from(log, member.snapshot, heard.version, heard.lines)
            is_held = member.txn_id in transactions_of(committed.commit_info)
            if is_held and not added_by(member.actions) <= added_by(committed.actions):
                raise ValueError("it is torn")
            if is_held and not service.has_made(log.table, heard.service):
                # The same path may lead two hosts to two tables, of which one is a copy.
                is_held = member.txn_id in self._held(heard.version)
        except Exception as exc:  # the answer may hold anything
            service.tell(log.table, f"its answer can't be checked ({type(exc).__name__})")
            return None
        if is_held:
            service.note_made(log.table, heard.service)
            return committed
        why = f"version {heard.version} does not hold what it says: it has another table"
        service.tell(log.table, f"{why}. It is not asked again")
        service.note_other_table(log.table)
        return None

    def _held(self, version: int) -> frozenset[str]:
        """The transactions that a version holds in this table's log."""
        path = commit_path(self._log.table, version)
        try:
            return transactions_in(read_commit_info(self._log.store, path))
        except FileNotFoundError:
            return frozenset()

    def _conclude(self, member: Member, heard: _Landed, committed: CommittedTransaction) -> int:
        landing = Landing()
        landing.landed(heard.version)
        txn_id = committed.commit_info.txn_id or member.txn_id
        fate = made_elsewhere(self._log.table, txn_id, landing, heard.attempts, committed)
        member.fate = fate
        member.share(fate)
        post_commit(committed, ())  # the hooks of the version are the service's
        return outcome_of(member)


class _Landed(NamedTuple):
    """The transaction is in the log."""

    version: int
    lines: list[bytes]
    """Of that version."""
    service: str
    """Which run of the service has made it, or found it."""
    attempts: list[CommitStats]


class _Refused(NamedTuple):
    """The service did not commit the transaction, and will not because of this request."""

    why: str


class _Silent(NamedTuple):
    """Nothing is known."""

    why: object


_Heard = _Landed | _Refused | _Silent


def _heard(reply: Reply) -> _Heard:
    first, *lines = reply.body.split(b"\n")
    try:
        said: dict[str, Any] = orjson.loads(first)
        if "refused" in said:
            return _Refused(str(said["refused"]))
        attempts = [to_stats(each.encode()) for each in said["attempts"]]
        return _Landed(int(said["version"]), lines, str(said["service"]), attempts)
    except (ValueError, TypeError, LookupError, AttributeError):
        # A proxy's word says nothing of what the service did.
        return _Silent(f"it answered {reply.status}")


class _Service:
    """One service, as this process knows it."""

    def __init__(self, url: str, trust: str | None) -> None:
        """Connect to nothing yet.

        Raises:
            DeltaAnalysisError: it is no URL, or there are no such certificates.
        """
        key = keys.COMMIT_SERVICE.name
        context = None if trust is None else _trusting(trust)
        # Without TLS, a proxy of the environment would be shown the token.
        self._wire = Wire(url, _CONNECT_SECONDS, key=key, trust=context, is_direct_here=True)
        self._away_until = 0.0
        self._told: set[str] = set()
        self._others: set[str] = set()
        self._known: dict[str, str] = {}

    def __str__(self) -> str:
        return f"lakelog serve at {self._wire.url}"

    def is_away_from(self, table: str) -> bool:
        """Whether it could not be reached a moment ago, or has another table by that name."""
        return time.monotonic() < self._away_until or table in self._others

    def note_away(self, seconds: float = 0.0) -> None:
        """It can't be reached, or has not answered for so long."""
        self._away_until = time.monotonic() + max(_AWAY_SECONDS, seconds)

    def send(self, body: bytes, token: str, seconds: float) -> Reply:
        """Make one request; see `Wire.send`."""
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-ndjson"}
        return self._wire.send("POST", COMMIT_PATH, body, headers, seconds)

    def tell(self, table: str, why: str) -> None:
        """Warn that commits to a table are made without it, until it has made one."""
        if table not in self._told:
            self._told.add(table)
            why = without_secrets(why)
            logger.warning("%s: the commit is made here, not by %s: %s", table, self, why)

    def has_made(self, table: str, run: str) -> bool:
        """Whether that run of the service was seen to have committed to this very table."""
        return self._known.get(table) == run

    def note_made(self, table: str, run: str) -> None:
        """That run of the service has committed to a table, which is the same here and there."""
        self._told.discard(table)
        self._known[table] = run

    def note_other_table(self, table: str) -> None:
        """What it has by that name is another table."""
        self._others.add(table)


@functools.lru_cache(maxsize=64)
def _service(url: str, trust: str | None, _changed: int) -> _Service:
    return _Service(url, trust)


def _modified(path: str | None) -> int:
    """When a file of certificates was changed: others are believed from then on."""
    try:
        return 0 if path is None else Path(path).stat().st_mtime_ns
    except OSError:
        return 0


def _trusting(path: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as exc:
        key = keys.SERVICE_CA_FILE.name
        raise DeltaAnalysisError(
            f"{key} = {path} holds no certificates that can be read ({type(exc).__name__}).",
            key=key,
        ) from None


def _token(conf: DeltaConf) -> str:
    """The service's token, by the conf or the environment.

    Raises:
        DeltaAnalysisError: there is none, or none that can be sent.
    """
    token, file = conf.read(keys.SERVICE_TOKEN), conf.read(keys.SERVICE_TOKEN_FILE)
    where = keys.SERVICE_TOKEN.name
    if file:
        where = f"the file {file}, which {keys.SERVICE_TOKEN_FILE} names,"
        try:
            token = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as exc:
            raise DeltaAnalysisError(
                f"{where} can't be read ({type(exc).__name__}).", key=keys.SERVICE_TOKEN_FILE.name
            ) from None
    elif not token:
        where, token = TOKEN_VARIABLE, os.environ.get(TOKEN_VARIABLE, "")
    token = (token or "").strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise DeltaAnalysisError(
            f"{where} has no token for the service that {keys.COMMIT_SERVICE} names. It is in the "
            f"file that `lakelog serve --token-file` was given: set {keys.SERVICE_TOKEN_FILE}, "
            f"{keys.SERVICE_TOKEN}, or {TOKEN_VARIABLE} in the environment.",
            key=keys.SERVICE_TOKEN.name,
        )
    return token
