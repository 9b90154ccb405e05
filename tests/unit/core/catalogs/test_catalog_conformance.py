"""The kit for catalogs: lakelog's own keeps its promises, and each broken one breaks its own."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from lakelog.core.catalogs.conformance import CatalogConformance
from lakelog.core.catalogs.contract import (
    Catalog,
    CatalogCapabilities,
    CatalogTable,
    RatifiedCommit,
    StagedTable,
    VersionTakenError,
)
from lakelog.core.catalogs.names import TableName
from lakelog.core.catalogs.unity import UnityCatalog
from lakelog.core.errors import TableNotFoundError
from lakelog.logstores.conformance import PromiseBrokenError
from support.model_catalog import ModelCatalog, make_model_table
from support.unity_server import UnityServer, Ways, serving
from support.unity_tables import make_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class TestUnityCatalog(CatalogConformance):
    race_rounds = 3

    @pytest.fixture
    def server(self, tmp_path: Path) -> Iterator[UnityServer]:
        with serving(UnityServer(tmp_path, Ways(checks_published=True), token="t0ken")) as served:
            yield served

    @pytest.fixture
    def catalog(self, server: UnityServer) -> Catalog:
        return UnityCatalog("lake", server.conf())

    @pytest.fixture
    def another(self, server: UnityServer) -> Catalog:
        return UnityCatalog("lake", server.conf())

    @pytest.fixture
    def name(self, server: UnityServer) -> TableName:
        make_table(server)
        return TableName("lake", "s", "t")


class TestModelCatalog(CatalogConformance):
    race_rounds = 3

    @pytest.fixture(autouse=True)
    def _fresh(self) -> Iterator[None]:
        ModelCatalog.reset()
        yield
        ModelCatalog.reset()

    @pytest.fixture
    def catalog(self) -> Catalog:
        return ModelCatalog("model", {})

    @pytest.fixture
    def another(self) -> Catalog:
        return ModelCatalog("model", {})

    @pytest.fixture
    def name(self) -> TableName:
        return make_model_table()


# -- catalogs that break one promise -----------------------------------------------------------


class Broken(ModelCatalog):
    """Keeps all promises, by its parent's tables."""


class _SaysOtherwise(Broken):
    numbers = itertools.count(1)

    @property
    def capabilities(self) -> CatalogCapabilities:
        return replace(super().capabilities, most_unpublished=next(self.numbers))


class _IsPickled(Broken):
    def __reduce__(self) -> Any:
        return ModelCatalog, (self.name, {})


class _MakesUpTables(Broken):
    def load(self, name: TableName) -> CatalogTable:
        try:
            return super().load(name)
        except TableNotFoundError:
            return next(iter(self.tables.values()))


class _KnowsItAlone(Broken):
    """Each instance keeps what it has ratified to itself."""

    def __init__(self, *of: Any) -> None:
        super().__init__(*of)
        self._mine: dict[TableName, CatalogTable] = {}

    def load(self, name: TableName) -> CatalogTable:
        return self._mine.get(name) or super().load(name)

    def _keep(self, table: CatalogTable, published: int | None) -> CatalogTable:
        before = self.tables.get(table.name)
        made = super()._keep(table, published)
        self._mine[table.name] = made
        if before is not None:
            self.tables[table.name] = before
        return made

    def _same(self, table: CatalogTable) -> CatalogTable:
        return self._mine.get(table.name) or super()._same(table)


class _LeavesGaps(Broken):
    checks_order = False


class _TakesTheLast(Broken):
    def _ratify(
        self, table: CatalogTable, commit: RatifiedCommit, published: int | None
    ) -> CatalogTable:
        with self.lock:
            now = self._same(table)
            if commit.version != now.latest:
                return super()._ratify(table, commit, published)
            return self._keep(
                replace(now, commits={**now.commits, commit.version: commit}), published
            )


class _HasSeveralWinners(Broken):
    """Looks, and then takes: whoever has looked meanwhile wins as well."""

    looked = threading.Barrier(2)

    def _ratify(
        self, table: CatalogTable, commit: RatifiedCommit, published: int | None
    ) -> CatalogTable:
        now = self._same(table)
        if commit.version <= now.latest:
            raise VersionTakenError("taken")
        try:
            self.looked.wait(0.5)
        except threading.BrokenBarrierError:
            self.looked.reset()
        commits = {**now.commits, commit.version: commit}
        return self._keep(replace(now, latest=commit.version, commits=commits), published)


class _MakesAnotherOfTheSame(Broken):
    def _ratify(
        self, table: CatalogTable, commit: RatifiedCommit, published: int | None
    ) -> CatalogTable:
        known = self._same(table).commits.get(commit.version)
        if known == commit:
            commit = replace(commit, version=commit.version + 1)
        return super()._ratify(table, commit, published)


class _HasNoBound(Broken):
    bound = 1000


class _ForgetsTheOldest(Broken):
    """Rather than refuse."""

    def _ratify(
        self, table: CatalogTable, commit: RatifiedCommit, published: int | None
    ) -> CatalogTable:
        with self.lock:
            now = self._same(table)
            if len(now.commits) >= 9:
                first = min(now.commits)
                kept = {v: c for v, c in now.commits.items() if v != first}
                self.tables[table.name] = replace(now, commits=kept)
            return super()._ratify(table, commit, published)


class _ReportsAll(Broken):
    def report(self, table: CatalogTable, published: int) -> CatalogTable:
        with self.lock:
            now = self._same(table)
            self.tables[table.name] = replace(now, commits={})
            return self.tables[table.name]


class _GoesByTheName(Broken):
    def _same(self, table: CatalogTable) -> CatalogTable:
        return self.tables[table.name]


class _ShowsWhatIsStaged(Broken):
    def stage_table(self, name: TableName) -> StagedTable:
        staged = super().stage_table(name)
        self.tables[name] = CatalogTable(
            name=name,
            table_id=staged.table_id,
            location=staged.location,
            is_governed=True,
            latest=-1,
        )
        return staged


class _KeepsTheOldName(Broken):
    def rename_table(self, table: CatalogTable, name: TableName) -> None:
        super().rename_table(table, name)
        self.tables[table.name] = table


class _GivesAnIdAgain(Broken):
    def stage_table(self, name: TableName) -> StagedTable:
        return replace(super().stage_table(name), table_id=f"id of {name.schema}")


BROKEN: dict[type[Broken], str] = {
    _SaysOtherwise: "test_it_says_what_it_can",
    _IsPickled: "test_it_is_not_pickled",
    _MakesUpTables: "test_a_table_that_is_not_there",
    _KnowsItAlone: "test_a_commit_is_seen_by_all",
    _LeavesGaps: "test_versions_come_in_order",
    _TakesTheLast: "test_a_version_that_is_taken_stays",
    _HasSeveralWinners: "test_of_writers_at_once_one_wins",
    _MakesAnotherOfTheSame: "test_the_same_again_is_the_same",
    _HasNoBound: "test_what_waits_to_be_published_is_bounded_and_kept",
    _ForgetsTheOldest: "test_what_waits_to_be_published_is_bounded_and_kept",
    _ReportsAll: "test_a_report_ends_at_what_it_says",
    _GoesByTheName: "test_another_table_of_the_name_gets_nothing",
    _ShowsWhatIsStaged: "test_a_table_is_made_renamed_and_dropped",
    _KeepsTheOldName: "test_a_table_is_made_renamed_and_dropped",
    _GivesAnIdAgain: "test_a_table_is_made_renamed_and_dropped",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda each: each.__name__.strip("_"))
def test_a_catalog_that_breaks_a_promise_is_found(broken: type[Broken]) -> None:
    ModelCatalog.reset()
    kit, name = CatalogConformance(), make_model_table()
    check: Callable[..., None] = getattr(kit, BROKEN[broken])
    given = {"catalog": broken("model", {}), "another": broken("model", {}), "name": name}
    wanted = check.__code__.co_varnames[1 : check.__code__.co_argcount]
    try:
        with pytest.raises(PromiseBrokenError):
            check(**{each: given[each] for each in wanted})
    finally:
        ModelCatalog.reset()


def test_each_check_is_failed_by_a_broken_catalog() -> None:
    checks = {each for each in dir(CatalogConformance) if each.startswith("test_")}
    assert checks - {*BROKEN.values()} == {"test_a_table_is_known_alike"}
