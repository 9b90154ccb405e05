"""The catalog that a name belongs to, and the store of a table that it governs."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from lakelog.core.catalogs.catalog_conf import CatalogConf
from lakelog.core.catalogs.contract import Catalog
from lakelog.core.catalogs.governed_store import GovernedStore
from lakelog.core.errors import CatalogError, DeltaAnalysisError
from lakelog.core.forks import lock_of
from lakelog.core.paths import normalize_table_uri
from lakelog.logstores import log_store_for

if TYPE_CHECKING:
    from lakelog.core.catalogs.contract import CatalogTable, Credentials
    from lakelog.core.catalogs.names import TableName
    from lakelog.core.clock import Clock
    from lakelog.core.conf import DeltaConf
    from lakelog.logstores import LogStore

_SHARE: Final = 0.5
"""Credentials are renewed once this share of their life is left, or five minutes."""
_FIVE_MINUTES: Final = 300_000


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
    except (ImportError, AttributeError, ValueError) as exc:
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
    table = catalog.load(name)
    location = normalize_table_uri(table.location, conf)
    storage = _Storage(catalog, table, location, conf, clock)
    if not table.is_governed:
        return location, storage()
    return location, GovernedStore(catalog, table, location, storage, conf, clock)


class _Storage:
    """The store of a table's folder, with credentials that hold for now."""

    def __init__(
        self,
        catalog: Catalog,
        table: CatalogTable,
        location: str,
        conf: DeltaConf,
        clock: Clock,
    ) -> None:
        self._catalog, self._table, self._location = catalog, table, location
        self._conf, self._clock = conf, clock
        self._store: LogStore | None = None
        self._renew_at: float | None = None
        self._lock = lock_of(self)

    def __call__(self) -> LogStore:
        """The store; another one where the credentials of the last are about to end."""
        with self._lock:
            due = self._renew_at is not None and self._clock.now_ms() >= self._renew_at
            if self._store is None or due:
                self._store = self._made()
            return self._store

    def _made(self) -> LogStore:
        given = self._credentials()
        self._renew_at = None
        if given is not None and given.ends_at_ms is not None:
            now = self._clock.now_ms()
            life = max(given.ends_at_ms - now, 0)
            self._renew_at = given.ends_at_ms - min(life * _SHARE, _FIVE_MINUTES)
        conf = self._conf if not given else {**self._conf, **given.conf}
        return log_store_for(self._location, conf)

    def _credentials(self) -> Credentials | None:
        """None where the user's own are to be used."""
        own = CatalogConf(self._catalog.name, self._conf).own("credentials")
        if own == "own" or self._location.startswith("/"):
            return None
        try:
            return self._catalog.credentials(self._table, write=True)
        except CatalogError:
            # Who may only read gets what reading takes; a write then fails by the storage.
            return self._catalog.credentials(self._table, write=False)
