"""A catalog in some hundred lines, as a user may write one: in memory, with faults on demand.

Chosen by `spark.lakelog.catalog.<name>.class = support.model_catalog.ModelCatalog`; its tables are
those of the process.
"""

from __future__ import annotations

import contextlib
import json
import threading
import uuid
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core.catalogs.contract import (
    Catalog,
    CatalogCapabilities,
    CatalogTable,
    Credentials,
    MetadataChange,
    NameTakenError,
    RatifiedCommit,
    StagedTable,
    TooManyUnpublishedError,
    UnansweredError,
    VersionTakenError,
)
from lakelog.core.catalogs.names import TableName
from lakelog.core.errors import CatalogError, TableNotFoundError
from lakelog.logstores import MemoryLogStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from lakelog.core import Clock, DeltaLog

CONF = {
    "spark.lakelog.catalog.model.class": "support.model_catalog.ModelCatalog",
    "spark.lakelog.catalog.model.credentials": "own",
}
_PROTOCOL: dict[str, Any] = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["catalogManaged", "vacuumProtocolCheck"],
    "writerFeatures": ["catalogManaged", "vacuumProtocolCheck", "inCommitTimestamp"],
}
_read = MemoryLogStore.read_bytes
"""The catalog's own look, which no test counts as a client's."""
_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


class ModelCatalog(Catalog):
    """One winner a version, in order; ten may wait."""

    tables: dict[TableName, CatalogTable] = {}  # noqa: RUF012  # of the process
    lock = threading.RLock()
    fates: deque[str] = deque()  # noqa: RUF012
    """What becomes of the next commits: `ok`, `lost` (done, and the reply is lost), `unsent`
    (neither), `late` (done when the table is next looked at, or after), `odd` (done, and an error
    is raised that is none of a catalog's)."""
    late: deque[Callable[[], object]] = deque()  # noqa: RUF012
    between: Callable[[str], object] | None = None
    """Called before each request, with its name, until it gives true."""
    asked: list[str] = []  # noqa: RUF012
    bound = 10
    checks_order = True

    @classmethod
    def reset(cls) -> None:
        """Forget all."""
        cls.tables, cls.fates, cls.late, cls.between, cls.asked = {}, deque(), deque(), None, []

    @property
    def capabilities(self) -> CatalogCapabilities:
        return CatalogCapabilities(
            most_unpublished=10, allows_maintenance=False, replays_are_seen=True
        )

    def _begin(self, what: str) -> None:
        self.asked.append(what)
        if (between := type(self).between) is not None:
            type(self).between = None  # what it does asks as well
            if not between(what):
                type(self).between = between

    def load(self, name: TableName) -> CatalogTable:
        self._begin("load")
        with self.lock:
            if name not in self.tables:
                raise TableNotFoundError(f"no table {name}", table=str(name))
            found = self.tables[name]
            while self.late:
                with contextlib.suppress(CatalogError):  # others were faster
                    self.late.popleft()()
            return found

    def commit(
        self,
        table: CatalogTable,
        commit: RatifiedCommit,
        change: MetadataChange | None,
        published: int | None,
    ) -> CatalogTable:
        self._begin("commit")
        fate = self.fates.popleft() if self.fates else "ok"
        if fate == "late":
            self.late.append(lambda: self._ratify(table, commit, published))
            raise UnansweredError("no answer came")
        if fate == "unsent":
            raise UnansweredError("no answer came")
        made = self._ratify(table, commit, published)
        if fate == "odd":
            raise OSError("of another library")
        if fate == "lost":
            raise UnansweredError("no answer came")
        return made

    def _ratify(
        self, table: CatalogTable, commit: RatifiedCommit, published: int | None
    ) -> CatalogTable:
        with self.lock:
            now = self._same(table)
            if now.commits.get(commit.version) == commit:
                return now
            if commit.version <= now.latest:
                raise VersionTakenError(f"the newest version is {now.latest}")
            if commit.version > now.latest + 1 and self.checks_order:
                raise CatalogError(f"the newest version is {now.latest}")
            if len(now.commits) >= self.bound:
                raise TooManyUnpublishedError(f"{len(now.commits)} commits wait")
            commits = {**now.commits, commit.version: commit}
            return self._keep(replace(now, latest=commit.version, commits=commits), published)

    def report(self, table: CatalogTable, published: int) -> CatalogTable:
        self._begin("report")
        with self.lock:
            return self._keep(self._same(table), published)

    def credentials(self, table: CatalogTable | StagedTable, *, write: bool) -> Credentials:
        return Credentials(conf={})

    def stage_table(self, name: TableName) -> StagedTable:
        self._begin("stage_table")
        return StagedTable(
            name=name,
            table_id=str(uuid.uuid4()),
            location=f"memory://{uuid.uuid4()}/{name.table}",
            features=frozenset(_PROTOCOL["writerFeatures"]),
            properties={"delta.enableInCommitTimestamps": "true"},
        )

    def create_table(
        self, staged: StagedTable, first: MetadataChange, timestamp: int
    ) -> CatalogTable:
        self._begin("create_table")
        fate = self.fates.popleft() if self.fates else "ok"
        if fate == "late":
            self.late.append(lambda: self._make(staged))
        if fate in ("late", "unsent"):
            raise UnansweredError("no answer came")
        made = self._make(staged)
        if fate == "odd":
            raise OSError("of another library")
        if fate == "lost":
            raise UnansweredError("no answer came")
        return made

    def _make(self, staged: StagedTable) -> CatalogTable:
        with self.lock:
            if staged.name in self.tables:
                raise NameTakenError(f"there is {staged.name}")
            _read(MemoryLogStore(), f"{staged.location}/_delta_log/{0:020d}.json")
            made = CatalogTable(
                name=staged.name,
                table_id=staged.table_id,
                location=staged.location,
                is_governed=True,
                latest=0,
            )
            self.tables[staged.name] = made
            return made

    def rename_table(self, table: CatalogTable, name: TableName) -> None:
        self._begin("rename_table")
        with self.lock:
            now = self._same(table)
            if name in self.tables:
                raise NameTakenError(f"there is {name}")
            self.tables[name] = replace(now, name=name)
            del self.tables[table.name]

    def drop_table(self, table: CatalogTable) -> None:
        self._begin("drop_table")
        with self.lock:
            self._same(table)
            del self.tables[table.name]

    def _same(self, table: CatalogTable) -> CatalogTable:
        now = self.tables.get(table.name)
        if now is None or now.table_id != table.table_id:
            raise TableNotFoundError(f"{table.name} is gone", table=str(table.name))
        return now

    def _keep(self, table: CatalogTable, published: int | None) -> CatalogTable:
        if published is not None:
            for version in (v for v in table.commits if v <= published):
                path = f"{table.location}/_delta_log/{version:020d}.json"
                _read(MemoryLogStore(), path)  # what is reported has to be there
            left = {v: c for v, c in table.commits.items() if v > published or v == table.latest}
            table = replace(table, commits=left)
        self.tables[table.name] = table
        return table


def make_model_table(name: str = "model.s.t") -> TableName:
    """A table of one column, `id`, without rows, in a bucket of memory of its own."""
    made = TableName(*name.split("."))
    location, table_id = f"memory://{uuid.uuid4()}/{made.table}", str(uuid.uuid4())
    info: Mapping[str, object] = {
        "inCommitTimestamp": 1,
        "timestamp": 1,
        "operation": "CREATE TABLE",
        "operationParameters": {},
        "txnId": str(uuid.uuid4()),
    }
    metadata = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _SCHEMA,
        "partitionColumns": [],
        "configuration": {"delta.enableInCommitTimestamps": "true"},
        "createdTime": 1,
    }
    actions = ({"commitInfo": info}, {"protocol": _PROTOCOL}, {"metaData": metadata})
    path = f"{location}/_delta_log/{0:020d}.json"
    MemoryLogStore().write(path, [json.dumps(each) for each in actions])
    ModelCatalog.tables[made] = CatalogTable(
        name=made, table_id=table_id, location=location, is_governed=True, latest=0
    )
    return made


def open_model(
    name: TableName, clock: Clock | None = None, conf: Mapping[str, str] | None = None
) -> DeltaLog:
    """Its log, as another process would open it."""
    from lakelog.core import DeltaLog

    return DeltaLog.for_table(str(name), {**CONF, **(conf or {})}, clock)
