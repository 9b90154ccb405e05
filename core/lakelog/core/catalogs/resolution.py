"""The catalog that a name belongs to, and the store of a table that it governs."""

from __future__ import annotations

import importlib
import math
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

from lakelog.core.catalogs.catalog_conf import CatalogConf
from lakelog.core.catalogs.contract import Catalog, CatalogTable
from lakelog.core.catalogs.governed_store import GovernedStore
from lakelog.core.catalogs.one_call import loaded
from lakelog.core.catalogs.renewed_files import SentFiles
from lakelog.core.catalogs.renewed_store import RenewedStore
from lakelog.core.errors import CatalogError, DeltaAnalysisError
from lakelog.core.forks import lock_of
from lakelog.core.paths import normalize_table_uri
from lakelog.logstores import log_store_for
from lakelog.logstores.logins import without_logins

if TYPE_CHECKING:
    from lakelog.core.catalogs.contract import Credentials, StagedTable
    from lakelog.core.catalogs.names import TableName
    from lakelog.core.clock import Clock
    from lakelog.core.conf import DeltaConf
    from lakelog.logstores import LogStore

_SHARE: Final = 0.5
"""Credentials are renewed once this share of their life is left, or five minutes."""
_FIVE_MINUTES: Final = 300_000
_YOUNG: Final = 0.1
"""The share of their life that credentials may have behind them at the start of a job."""
_UNTIL_ASKED_AGAIN: Final = 60_000
"""Milliseconds until the catalog is asked again that gave less than what was asked for: no
credentials, those for reading alone, or some that have ended by the clock here."""


_made: dict[tuple[tuple[str, str], ...], Catalog] = {}
_MOST: Final = 32
"""Catalogs that are kept, each with its connections and its token."""


def catalog_for(name: str, conf: DeltaConf) -> Catalog:
    """The catalog of that name: the same for the same settings.

    Raises:
        DeltaAnalysisError: its class can't be had, or the conf of it is wrong.
    """
    found = CatalogConf(name, conf)
    key = found.pairs
    made = _made.get(key)
    if made is None:
        while len(_made) >= _MOST:
            _made.pop(next(iter(_made)), None)
        # Of two that are made at once, one is kept: neither has asked for anything.
        made = _made.setdefault(key, _make(found))
    return made


def _make(conf: CatalogConf) -> Catalog:
    path, key = conf.class_path, conf.own_key("class")
    module, _, attribute = path.replace(":", ".").rpartition(".")
    try:
        made = getattr(importlib.import_module(module), attribute)(conf.name, conf.conf)
    except (ImportError, AttributeError, ValueError, TypeError) as exc:
        if isinstance(exc, DeltaAnalysisError):
            raise
        raise DeltaAnalysisError(
            f"{key} = {path}: the class of the catalog {conf.name} can't be made "
            f"({type(exc).__name__}: {exc}).",
            key=key,
        ) from exc
    if not isinstance(made, Catalog):
        raise DeltaAnalysisError(
            f"{key} = {path}: it is not a subclass of lakelog.core.catalogs.contract.Catalog.",
            key=key,
        )
    return made


def governed_store(name: TableName, conf: DeltaConf, clock: Clock) -> tuple[str, LogStore]:
    """Where a table is, and the store of its log.

    Returns:
        The table's URI, and a store; that of the path, where the catalog does not govern the table.

    Raises:
        TableNotFoundError: the catalog has no such table.
        CatalogError: it can't be reached, or refuses.
        LogStoreConfError: no store serves the table's location.
    """
    catalog = catalog_for(name.catalog, conf)
    table = loaded(catalog, name, clock)
    location = normalize_table_uri(table.location, conf)
    storage = _Storage(catalog, table, location, conf, clock)
    if not table.is_governed:
        return location, RenewedStore(storage) if storage.asks_for_credentials else storage()
    return location, GovernedStore(catalog, table, location, storage, clock)


def store_of_a_new_table(
    name: TableName, conf: DeltaConf, clock: Clock
) -> tuple[str, GovernedStore]:
    """Where a table is to be that its catalog does not have yet, and the store of its log.

    Raises:
        TableNotFoundError: the catalog has no such schema.
        NameTakenError: another writer has made such a table.
        CatalogError: it can't be reached, or refuses.
        LogStoreConfError: no store serves the location.
    """
    catalog = catalog_for(name.catalog, conf)
    staged = catalog.stage_table(name)
    location = normalize_table_uri(staged.location, conf)
    storage = _Storage(catalog, staged, location, conf, clock)
    table = CatalogTable(
        name=name,
        table_id=staged.table_id,
        location=staged.location,
        is_governed=True,
        latest=-1,
    )
    storage()  # what can't be opened is found out before anything is written
    return location, GovernedStore(catalog, table, location, storage, clock, staged)


class _Moment(NamedTuple):
    """A time that has come by one of two clocks: one may be set back, and the other may stop while
    the machine sleeps.
    """

    wall: float
    """Milliseconds since the epoch; inf: never."""
    monotonic: float
    """Seconds."""

    @classmethod
    def of(cls, wall: float, clock: Clock) -> _Moment:
        """What the wall clock will show, which is right now."""
        return cls(wall, clock.monotonic() + (wall - clock.now_ms()) / 1000)

    def has_come(self, clock: Clock) -> bool:
        """Whether it is over."""
        return clock.now_ms() >= self.wall or clock.monotonic() >= self.monotonic


_NEVER: Final = _Moment(math.inf, math.inf)


class _Vended(NamedTuple):
    """Credentials, until when they are young, when to ask for others, and when they end."""

    credentials: Credentials
    young: _Moment
    renew: _Moment
    end: _Moment


_vended: WeakKeyDictionary[Catalog, dict[str, _Vended]] = WeakKeyDictionary()
"""Catalog -> id of a table -> what it gave: opening a table again need not ask again."""
_MOST_VENDED: Final = 256
"""Tables of one catalog."""


class _Storage:
    """The store of a table's folder, with credentials that hold for now."""

    def __init__(
        self,
        catalog: Catalog,
        table: CatalogTable | StagedTable,
        location: str,
        conf: DeltaConf,
        clock: Clock,
    ) -> None:
        self._catalog, self._table, self._location = catalog, table, location
        self._conf, self._clock = conf, clock
        own = CatalogConf(catalog.name, conf).own("credentials") == "own"
        self.asks_for_credentials: bool = not own and not location.startswith("/")
        self._store: LogStore | None = None
        self._renew = self._young = _NEVER
        self._ends_at_ms: int | None = None
        self._lock = lock_of(self)

    def __call__(self) -> LogStore:
        """The store; another one where the credentials of the last are about to end."""
        with self._lock:
            if self._store is None or self._renew.has_come(self._clock):
                self._store = self._made()
            return self._store

    def travelling(self) -> SentFiles:
        """The file system for a job elsewhere, where nobody renews credentials: with young ones."""
        with self._lock:
            if self._store is None or self._young.has_come(self._clock):
                self._store = self._made(young=True)
            name, catalog = self._table.name, self._catalog.name
            return SentFiles(self._store.filesystem, self._ends_at_ms, str(name), catalog)

    def _made(self, *, young: bool = False) -> LogStore:
        self._renew = self._young = _NEVER
        # A store of files asks no catalog, and travels with its conf.
        conf = without_logins(self._conf)
        if not self.asks_for_credentials:
            return log_store_for(self._location, conf)
        vended = _vended.setdefault(self._catalog, {})
        given = vended.get(self._table.table_id)
        if given is None or (given.young if young else given.renew).has_come(self._clock):
            given = self._asked(given)
            while len(vended) >= _MOST_VENDED:
                vended.pop(next(iter(vended)), None)
            vended[self._table.table_id] = given
        self._renew, self._young = given.renew, given.young
        self._ends_at_ms = given.credentials.ends_at_ms
        store = log_store_for(self._location, conf | dict(given.credentials.conf))
        # Keys for one bucket open the files of a store that was asked about that bucket.
        store.filesystem_path(self._location)
        return store

    def _asked(self, before: _Vended | None) -> _Vended:
        now = self._clock.now_ms()
        again = now + _UNTIL_ASKED_AGAIN
        latest = math.inf
        try:
            found = self._catalog.credentials(self._table, write=True)
        except CatalogError:
            if before is not None and not before.end.has_come(self._clock):
                then = _Moment.of(min(again, before.end.wall), self._clock)
                return before._replace(young=then, renew=then)
            # Who may only read gets what reading takes; a write then fails by the storage. But the
            # failure may have been a passing one.
            found = self._catalog.credentials(self._table, write=False)
            latest = again
        ends = math.inf if found.ends_at_ms is None else found.ends_at_ms
        # What has ended already has not: the catalog has another clock.
        due = ends - min((ends - now) * _SHARE, _FIVE_MINUTES) if ends > now else again
        due = min(latest, due)
        young = min(now + (ends - now) * _YOUNG, due) if ends > now else due
        return _Vended(found, *(_Moment.of(each, self._clock) for each in (young, due, ends)))
