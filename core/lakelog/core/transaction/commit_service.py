"""The service that commits for several hosts: what `lakelog serve --listen` answers.

Each request is one transaction, committed through one log of its table, where those that wait for
each other become one version (`group`). Whether the log holds a transaction already is looked up
before it is committed, for its client may have asked before, may have asked another service, or may
have committed by itself: see `service_commit`.

Who asks may write to the table, and so may commit any append. What it says is checked as far as the
service itself depends on it.
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import OrderedDict
from concurrent.futures import Future
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

import orjson

from lakelog.core import keys
from lakelog.core.actions import AddFile, SetTransaction
from lakelog.core.catalogs.refusals import governed
from lakelog.core.commit.prepare import engine_info
from lakelog.core.conf import DeltaConf
from lakelog.core.errors import DeltaAnalysisError
from lakelog.core.log.commit_identity import (
    GROUP_TAG,
    read_commit_info,
    transactions_in,
    transactions_of,
)
from lakelog.core.log.file_names import commit_path
from lakelog.core.paths import data_path
from lakelog.core.table_log import TableLog
from lakelog.core.transaction.committer import Committer
from lakelog.core.transaction.group import MOST_ACTIONS
from lakelog.core.transaction.requests import FORM, from_bytes, kind_of
from lakelog.logstores import Scope
from lakelog.logstores import keys as store_keys
from lakelog.logstores.locations import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import UnionType

    from lakelog.core.log.commit_file import Commit
    from lakelog.core.state.snapshot import Snapshot
    from lakelog.core.transaction.requests import Request

logger: logging.Logger = logging.getLogger("lakelog")

_MOST_WAITING = 256
"""Requests; who comes then commits by itself."""
_MOST_TABLES = 256
_MOST_BEHIND = 200
"""Versions since the one that a transaction read; who has read an older one commits by itself."""
_LOOK_EVERY = 100
"""Versions made here, after which the log is looked at, and what it keeps of them let go."""
_KEPT = 1000
"""Versions of which it is kept which transactions they hold."""


class Answer(NamedTuple):
    """What a client is told."""

    status: HTTPStatus
    body: bytes


class _RefusedError(Exception):
    """The transaction is not committed because of this request, and will not be."""

    def __init__(self, why: str, status: HTTPStatus = HTTPStatus.CONFLICT) -> None:
        super().__init__(why)
        self.status = status


def refusal(status: HTTPStatus, why: str) -> Answer:
    """The answer to a request that changed nothing, and will change nothing."""
    return Answer(status, orjson.dumps({"refused": without_secrets(why)}))


class CommitService:
    """Commits what it is asked to, to the tables below some roots. Safe for threads."""

    def __init__(self, roots: Sequence[str], conf: Mapping[str, str]) -> None:
        """Open nothing yet.

        Args:
            roots: URIs of tables, or of folders of tables.
            conf: the service's own, by which it reaches their storage.

        Raises:
            DeltaAnalysisError: no root is given.
            LogStoreConfError: the conf leads to no store for a root.
        """
        own = {key: value for key, value in conf.items() if key not in _NOT_HERE}
        self._conf = DeltaConf({**own, store_keys.COMMIT_GROUP.name: "true"})
        if not roots:
            raise DeltaAnalysisError("the service needs a root: a table, or a folder of tables")
        opened = [TableLog.for_table(each, self._conf).table for each in roots]
        self.roots: list[str] = [each.rstrip("/") for each in opened]
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._logs: OrderedDict[str, ServedLog] = OrderedDict()
        self._running: dict[tuple[str, str], Future[Answer]] = {}
        self._is_closed = False
        self._id = str(uuid.uuid4())

    def close(self, seconds: float) -> bool:
        """Take no more requests, and wait for those that were taken.

        Args:
            seconds: to wait at most.

        Returns:
            Whether all of them came to their end.
        """
        with self._mutex:
            self._is_closed = True
            return self._idle.wait_for(lambda: not self._running, seconds)

    def answer(self, body: bytes) -> Answer:
        """Commit what a request asks for, once, however often it comes."""
        try:
            asked = _Asked.parse(body)
            self._check_place(asked.table)
        except _RefusedError as exc:
            return refusal(exc.status, str(exc))
        except Exception as exc:  # whatever hostile bytes lead to
            return refusal(HTTPStatus.BAD_REQUEST, f"this is no request: {type(exc).__name__}")
        place = asked.table, asked.request.joined.txn_id
        mine, answer = Future[Answer](), _UNKNOWN
        try:
            with self._mutex:
                running = self._running.get(place)
                if running is None:
                    if self._is_closed:
                        return refusal(HTTPStatus.CONFLICT, "the service is about to stop")
                    if len(self._running) >= _MOST_WAITING:
                        return refusal(HTTPStatus.TOO_MANY_REQUESTS, "too many requests wait")
                    self._running[place] = mine
            if running is not None:
                return running.result()
            answer = self._answered(asked)
        except Exception:
            logger.warning("%s: a request has no answer", asked.table, exc_info=True)
        finally:
            try:
                self._end(place, mine, answer)
            finally:  # whatever comes in the line above must leave nobody waiting
                self._end(place, mine, answer)
        return answer

    def _end(self, place: tuple[str, str], mine: Future[Answer], answer: Answer) -> None:
        """Tell those who have asked the same, if this request is the one that is committed."""
        if not mine.done():
            mine.set_result(answer)
        with self._mutex:
            if self._running.get(place) is mine:
                del self._running[place]
                self._idle.notify_all()

    def _check_place(self, table: str) -> None:
        parts = unquote(table).split("://", 1)[-1].split("/")
        is_plain = table.isprintable() and not {".", ".."}.intersection(parts)
        if not is_plain or not any(f"{table}/".startswith(f"{root}/") for root in self.roots):
            raise _RefusedError(
                "the table is not one that the service is for", HTTPStatus.FORBIDDEN
            )

    def _answered(self, asked: _Asked) -> Answer:
        log: ServedLog | None = None
        try:
            log = self._log(asked.table)
            base = _base(log, asked)
            since = range(asked.read + 1, base.version + 1)
            found = log.find(asked.request.joined.txn_id, since)
        except _RefusedError as exc:
            if log is not None:
                log.doubt()
            return refusal(exc.status, str(exc))
        except Exception as exc:
            logger.warning("%s: a request is refused", asked.table, exc_info=True)
            return refusal(HTTPStatus.CONFLICT, f"the table can't be read: {type(exc).__name__}")
        if found is not None:
            return self._found(log, found)
        joined = asked.request.joined
        committer = Committer.for_another(log, base, joined)
        try:
            committer.commit(joined.actions, joined.operation)
        except Exception as exc:
            if committer.committed is None and committer.may_be_committed:
                logger.warning("%s: the outcome of a commit is unknown", log.table, exc_info=True)
                return _UNKNOWN
            if committer.committed is None:
                log.doubt()
                return refusal(HTTPStatus.CONFLICT, f"committing it failed: {type(exc).__name__}")
            logger.warning("%s: a hook failed", log.table, exc_info=True)
        committed = committer.committed
        if committed is None:
            return _UNKNOWN
        lines = [each.to_json().encode() for each in (committed.commit_info, *committed.actions)]
        return self._said(committed.version, lines, [each.to_json() for each in committer.attempts])

    def _log(self, table: str) -> ServedLog:
        with self._mutex:
            log = self._logs.get(table)
        if log is None:
            # Not under the lock: a store may connect, and other tables must not wait for that.
            log = ServedLog.for_table(table, self._conf)
            if log.table != table:
                raise _RefusedError(f"the service calls this table {log.table}")
            if log.store.capabilities.exclusive_create < Scope.HOST or governed(log.store):
                raise _RefusedError("the table is one that each process commits to by itself")
        with self._mutex:
            log = self._logs.setdefault(table, log)
            self._logs.move_to_end(table)
            while len(self._logs) > _MOST_TABLES:
                self._logs.popitem(last=False)
            return log

    def _found(self, log: ServedLog, version: int) -> Answer:
        """What a version says that holds a transaction already."""
        lines = [line.encode() for line in log.store.read(commit_path(log.table, version))]
        return self._said(version, lines, [])

    def _said(self, version: int, lines: Iterable[bytes], attempts: list[str]) -> Answer:
        header = orjson.dumps({"service": self._id, "version": version, "attempts": attempts})
        return Answer(HTTPStatus.OK, b"\n".join([header, *lines]))


_NOT_HERE = {
    each.name
    for each in (
        store_keys.COMMIT_HOST,
        store_keys.COMMIT_SERVICE,
        store_keys.COMMIT_GROUP,
        # What a version says of its transactions is for their clients to say.
        keys.COMMIT_INFO,
        keys.METRICS,
        keys.USER_METADATA,
    )
}


_UNKNOWN = Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"")
"""The client finds out by itself."""


def _base(log: ServedLog, asked: _Asked) -> Snapshot:
    """A version after which the transaction may be committed.

    Raises:
        _RefusedError: there is none, or it is another table.
    """
    base = log.known_snapshot
    if base is None or base.version - log.looked_at >= _LOOK_EVERY or not _fits(asked, base):
        base = log.update()
        if not _fits(asked, base):
            raise _RefusedError(
                f"the table, which is at version {base.version} here, is not what the client has "
                f"read as version {asked.read}"
            )
    if base.version - asked.read > _MOST_BEHIND:
        raise _RefusedError(f"{base.version - asked.read} versions came since the table was read")
    log.check(base)
    if asked.read_txn_id is not None and asked.read_txn_id not in log.held(asked.read):
        raise _RefusedError(f"version {asked.read} is another one here: it is another table")
    return base


def _fits(asked: _Asked, base: Snapshot) -> bool:
    request = asked.request
    return (
        asked.read <= base.version
        and kind_of(request.joined, base) == request.kind
        and all(base.txn_version(app) == version for app, version in request.apps.items())
    )


class _Asked(NamedTuple):
    """One request."""

    table: str
    read: int
    """The version that the transaction read."""
    read_txn_id: str | None
    """The transaction that made that version; None where the client does not know."""
    request: Request

    @classmethod
    def parse(cls, body: bytes) -> _Asked:
        """What a client has sent.

        Raises:
            _RefusedError: it is another version of lakelog.
            Exception: it makes no sense.
        """
        first, _, rest = body.partition(b"\n")
        about: dict[str, Any] = orjson.loads(first)
        engine, form = about["engine"]
        if (engine, form) != (engine_info(), FORM):
            raise _RefusedError(
                f"the client is {str(engine)[:100]!r} and the service {engine_info()}: they must "
                "be of one version"
            )
        _require(rest.count(b"\n") < MOST_ACTIONS)  # a line each
        request, table = from_bytes("", rest), about["table"]
        _require(isinstance(table, str) and type(about["read"]) is int)
        _require(isinstance(about["readTxnId"], str | None) and about["read"] >= 0)
        _check(request, table)
        return cls(table, about["read"], about["readTxnId"], request)


def _check(request: Request, table: str) -> None:
    """Refuse what `from_bytes` takes, and the code after it does not expect."""
    joined, operation = request.joined, request.joined.operation
    # What JSON holds, whatever the types say.
    fields: list[tuple[Any, type[Any] | UnionType]] = [
        (request.kind, str),
        (request.apps, dict),
        (operation.name, str),
        (operation.parameters, dict),
        (operation.metrics, dict),
        (operation.user_metadata, str | None),
        (operation.tags, dict),
        (joined.has_written, bool),
        (joined.read_at_ms, int),
        *((each, int) for each in request.apps.values()),
        *((each, int | str) for each in operation.metrics.values()),
        *((each, str) for each in operation.tags.values()),
        *((each, AddFile | SetTransaction) for each in joined.actions),
    ]
    _require(all(isinstance(value, kind) for value, kind in fields))
    _require(str(uuid.UUID(joined.txn_id)) == joined.txn_id)
    _require(GROUP_TAG not in operation.tags)
    added = [each.path for each in joined.actions if isinstance(each, AddFile)]
    folder = data_path(table, "x")[:-1]
    # A client brings rows, and not what others may read elsewhere.
    _require(bool(added) and all(data_path(table, each).startswith(folder) for each in added))
    sets = {each.app_id for each in joined.actions if isinstance(each, SetTransaction)}
    _require(sets <= joined.apps)


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


class ServedLog(TableLog):
    """A log that knows which transactions its last versions hold."""

    looked_at: int = 0
    """The version that the last look found."""

    @cached_property
    def _held(self) -> dict[int, frozenset[str]]:
        return {}

    def update(self) -> Snapshot:
        """See `TableLog`."""
        found = super().update()
        self.looked_at = found.version
        return found

    def doubt(self) -> None:
        """See `TableLog`; the next request looks, too."""
        super().doubt()
        self.looked_at = -_LOOK_EVERY

    def after_commit(self, commit: Commit) -> None:
        """Take over a commit; see `TableLog`."""
        # First: whoever sees the new snapshot must find what its version holds.
        self._note(commit.version, transactions_of(commit.info))
        super().after_commit(commit)

    def _note(self, version: int, held: frozenset[str]) -> None:
        self._held[version] = held
        if len(self._held) > _KEPT:
            for each in sorted(self._held)[: _KEPT // 2]:
                self._held.pop(each, None)

    def check(self, base: Snapshot) -> None:
        """Forget all, unless it ends with this very version: the path may have become another's."""
        made = transactions_of(base.commit_info)
        if self._held.get(base.version) != made:
            self._held.clear()
            if made:  # which is not known of a version that a checkpoint stands for
                self._note(base.version, made)

    def held(self, version: int) -> frozenset[str]:
        """The transactions that a version holds.

        Raises:
            _RefusedError: log cleanup has removed it.
        """
        known = self._held.get(version)
        if known is None:
            try:
                info = read_commit_info(self.store, commit_path(self.table, version))
            except FileNotFoundError:
                raise _RefusedError(f"version {version} is not in the log any more") from None
            known = transactions_in(info)
            self._note(version, known)
        return known

    def find(self, txn_id: str, versions: range) -> int | None:
        """The version that holds a transaction, of some versions; None where none does."""
        return next((each for each in versions if txn_id in self.held(each)), None)

    def may_hold(self, txn_id: str, versions: range) -> bool:
        """Whether a transaction may be in one of some versions; asks no storage."""
        known = (self._held.get(each) for each in versions)
        return any(each is None or txn_id in each for each in known)
