"""Does a catalog keep the promises of `contract.Catalog`? Checks for the author of one.

With pytest, inherit `CatalogConformance` and give it three fixtures:

    class TestMyCatalog(CatalogConformance):
        @pytest.fixture
        def catalog(self):
            return MyCatalog("lake", {"my.key": "value"})

        @pytest.fixture
        def another(self):
            return MyCatalog("lake", {"my.key": "value"})

        @pytest.fixture
        def name(self, catalog):
            return TableName("lake", "s", make_a_new_table_of_version_0(catalog))

Each check commits to the table of that name, of which nothing but its log is needed. A catalog that
makes tables is asked to make some beside it, in its schema.
"""

from __future__ import annotations

import json
import pickle
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lakelog.core.catalogs.contract import (
    Catalog,
    CatalogTable,
    MetadataChange,
    NameTakenError,
    RatifiedCommit,
    TooManyUnpublishedError,
    VersionTakenError,
)
from lakelog.core.errors import CatalogError, TableNotFoundError
from lakelog.core.features.registry import FEATURES
from lakelog.core.log.file_names import STAGED_FOLDER, commit_path, log_path
from lakelog.core.paths import normalize_table_uri
from lakelog.logstores import log_store_for
from lakelog.logstores.conformance.checks.expect import expect, expect_equal, refusal
from lakelog.logstores.threads import in_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lakelog.core.catalogs.contract import StagedTable
    from lakelog.core.catalogs.names import TableName
    from lakelog.logstores import LogStore

_PROTOCOL: dict[str, Any] = {"minReaderVersion": 3, "minWriterVersion": 7}
_SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'


class CatalogConformance:
    """Every promise of the contract, a method each. Inherit it, and define the fixtures `catalog`,
    `another` (an instance of its own, as another process has it) and `name` (of a new table).
    """

    conf: Mapping[str, str] = {}  # read only
    """What opens the storage of the tables, where the catalog's credentials don't."""
    race_rounds = 10
    writers = 4

    def test_it_says_what_it_can(self, catalog: Catalog) -> None:
        """The same each time; at least one commit may wait to be published."""
        said = catalog.capabilities
        expect_equal(catalog.capabilities, said, "capabilities, asked again")
        expect(said.most_unpublished >= 1, "most_unpublished is less than 1")

    def test_it_is_not_pickled(self, catalog: Catalog) -> None:
        """It would carry a token."""
        with refusal(TypeError, "pickling the catalog"):
            pickle.dumps(catalog)

    def test_a_table_that_is_not_there(self, catalog: Catalog, name: TableName) -> None:
        """Is missed by an error of its own."""
        with refusal(TableNotFoundError, "loading a table that is not there"):
            catalog.load(name._replace(table=f"no_{uuid.uuid4().hex}"))

    def test_a_table_is_known_alike(
        self, catalog: Catalog, another: Catalog, name: TableName
    ) -> None:
        """Two instances say the same of it, and its commits have no gap."""
        table = _loaded(catalog, name)
        expect_equal(_facts(_loaded(another, name)), _facts(table), "the table, by another one")
        expect(table.latest >= 0, f"its newest version is {table.latest}")

    def test_a_commit_is_seen_by_all(
        self, catalog: Catalog, another: Catalog, name: TableName
    ) -> None:
        """At once, with the file that was proposed, of whatever instance is asked."""
        table = _loaded(catalog, name)
        commit = self._staged(catalog, table)
        made = catalog.commit(table, commit, None, None)
        for found in (made, _loaded(another, name), _loaded(catalog, name)):
            expect_equal(found.latest, commit.version, "the newest version, after a commit")
            expect_equal(found.commits.get(commit.version), commit, "the commit")

    def test_versions_come_in_order(self, catalog: Catalog, name: TableName) -> None:
        """One that would leave a gap is refused."""
        table = _loaded(catalog, name)
        far = self._staged(catalog, table, table.latest + 2)
        with refusal(CatalogError, "a commit that leaves a gap"):
            catalog.commit(table, far, None, None)
        expect_equal(_loaded(catalog, name).latest, table.latest, "the newest version")

    def test_a_version_that_is_taken_stays(
        self, catalog: Catalog, another: Catalog, name: TableName
    ) -> None:
        """Whatever is proposed for it later, and by whom."""
        table = _loaded(catalog, name)
        first = self._staged(catalog, table)
        catalog.commit(table, first, None, None)
        for each in (catalog, another):
            with refusal(VersionTakenError, "another file for a version that is taken"):
                each.commit(table, self._staged(each, table), None, None)
            expect_equal(_loaded(each, name).commits.get(first.version), first, "the commit")

    def test_the_same_again_is_the_same(self, catalog: Catalog, name: TableName) -> None:
        """A commit that is sent again makes no other version; it is known, or taken."""
        table = _loaded(catalog, name)
        commit = self._staged(catalog, table)
        catalog.commit(table, commit, None, None)
        if catalog.capabilities.replays_are_seen:
            found = catalog.commit(table, commit, None, None)
            expect_equal(found.commits.get(commit.version), commit, "the commit, sent again")
        else:
            with refusal(VersionTakenError, "the same commit again"):
                catalog.commit(table, commit, None, None)
        expect_equal(_loaded(catalog, name).latest, commit.version, "the newest version")

    def test_of_writers_at_once_one_wins(
        self, catalog: Catalog, another: Catalog, name: TableName
    ) -> None:
        """Each version, and the catalog names the winner's file."""
        for _ in range(self.race_rounds):
            table = self._published(catalog, _loaded(catalog, name))
            staged = [self._staged(catalog, table) for _ in range(self.writers)]

            def propose(number: int, table: CatalogTable = table, staged: Any = staged) -> bool:
                try:
                    (another if number % 2 else catalog).commit(table, staged[number], None, None)
                except VersionTakenError:
                    return False
                return True

            won = [*in_order(propose, range(self.writers), self.writers, "lakelog-catalog-race")]
            expect_equal(won.count(True), 1, "winners of a version")
            found = _loaded(another, name).commits.get(table.latest + 1)
            expect_equal(found, staged[won.index(True)], "the version's commit")

    def test_what_waits_to_be_published_is_bounded_and_kept(
        self, catalog: Catalog, another: Catalog, name: TableName
    ) -> None:
        """One commit beyond is refused, and goes on once others are published."""
        table = self._published(catalog, _loaded(catalog, name))
        first = table.latest + 1
        for _ in range(catalog.capabilities.most_unpublished - len(table.commits)):
            table = catalog.commit(table, self._staged(catalog, table), None, None)
        beyond = self._staged(catalog, table)
        with refusal(TooManyUnpublishedError, "a commit beyond most_unpublished"):
            catalog.commit(table, beyond, None, None)
        found = _loaded(another, name)
        expect_equal(found.latest, table.latest, "the newest version")
        missing = [v for v in range(first, table.latest + 1) if v not in found.commits]
        expect_equal(missing, [], "commits that are neither published nor named")
        table = self._published(catalog, table)
        made = catalog.commit(table, beyond, None, None)
        expect_equal(made.latest, beyond.version, "the newest version, after publishing")

    def test_a_report_ends_at_what_it_says(
        self, catalog: Catalog, another: Catalog, name: TableName
    ) -> None:
        """Later commits stay, and the same report again changes nothing."""
        table = self._published(catalog, _loaded(catalog, name))
        upto = table.latest + 1
        for _ in range(min(3, catalog.capabilities.most_unpublished - len(table.commits))):
            table = catalog.commit(table, self._staged(catalog, table), None, None)
        if table.latest < upto:
            return  # it takes none before the last one is gone
        self._publish(catalog, table, upto)
        for _ in range(2):
            table = catalog.report(table, upto)
            found = _loaded(another, name)
            missing = [v for v in range(upto + 1, table.latest + 1) if v not in found.commits]
            expect_equal(missing, [], "commits that are not published and no longer named")
            expect_equal(found.latest, table.latest, "the newest version, after a report")

    def test_another_table_of_the_name_gets_nothing(
        self, catalog: Catalog, name: TableName
    ) -> None:
        """A commit says of which table it is, by its id."""
        table = _loaded(catalog, name)
        commit = self._staged(catalog, table)
        with refusal(TableNotFoundError, "a commit to a table of another id"):
            catalog.commit(replace(table, table_id=str(uuid.uuid4())), commit, None, None)
        expect_equal(_facts(_loaded(catalog, name)), _facts(table), "the table that has the name")

    def test_a_table_is_made_renamed_and_dropped(
        self, catalog: Catalog, another: Catalog, name: TableName
    ) -> None:
        """Where the catalog does that: seen by all, and not before, and under one name."""
        if type(catalog).stage_table is Catalog.stage_table:
            with refusal(CatalogError, "making a table"):
                catalog.stage_table(name)
            return
        new, other = (name._replace(table=f"t_{uuid.uuid4().hex}") for _ in range(2))
        staged = catalog.stage_table(new)
        with refusal(TableNotFoundError, "loading a table that is only staged"):
            another.load(new)
        made = self._made(catalog, staged)
        expect_equal((made.table_id, made.latest), (staged.table_id, 0), "the new table")
        expect_equal(_facts(_loaded(another, new)), _facts(made), "the new table, by another one")
        with refusal(NameTakenError, "a name that is taken"):
            self._made(catalog, catalog.stage_table(new))
        catalog.rename_table(made, other)
        with refusal(TableNotFoundError, "the name before"):
            another.load(new)
        found = _loaded(another, other)
        expect_equal(found.table_id, made.table_id, "the id, under another name")
        catalog.drop_table(found)
        with refusal(TableNotFoundError, "a table that was dropped"):
            another.load(other)
        again = self._made(catalog, catalog.stage_table(other))
        expect(again.table_id != made.table_id, "another table has the id of one that was dropped")
        with refusal(TableNotFoundError, "dropping a table whose name another one has"):
            catalog.drop_table(found)
        catalog.drop_table(again)

    # -- what the checks share ------------------------------------------------------------------

    def _store(self, catalog: Catalog, table: CatalogTable | StagedTable) -> tuple[LogStore, str]:
        location = normalize_table_uri(table.location, self.conf)
        given = catalog.credentials(table, write=True)
        return log_store_for(location, {**self.conf, **given.conf}), location

    def _staged(
        self, catalog: Catalog, table: CatalogTable, version: int | None = None
    ) -> RatifiedCommit:
        """A commit that adds nothing, staged for a version; the next if None."""
        store, location = self._store(catalog, table)
        version = table.latest + 1 if version is None else version
        name = f"{version:020d}.{uuid.uuid4()}.json"
        now = time.time_ns() // 1_000_000 + version
        line = _info(now)
        store.create_folder(log_path(location, STAGED_FOLDER))
        store.write(log_path(location, f"{STAGED_FOLDER}/{name}"), [line])
        return RatifiedCommit(
            version=version,
            file_name=name,
            size=len(line.encode()) + 1,
            timestamp=now,
            modification_time=now,
        )

    def _publish(self, catalog: Catalog, table: CatalogTable, upto: int) -> None:
        store, location = self._store(catalog, table)
        for version, commit in sorted(table.commits.items()):
            if version <= upto:
                staged = log_path(location, f"{STAGED_FOLDER}/{commit.file_name}")
                path = commit_path(location, version)
                try:
                    store.write(path, list(store.read(staged)))
                except FileExistsError:
                    continue

    def _published(self, catalog: Catalog, table: CatalogTable) -> CatalogTable:
        """The table, once all of its commits are published, and that was reported."""
        if not table.commits:
            return table
        self._publish(catalog, table, table.latest)
        return catalog.report(table, table.latest)

    def _made(self, catalog: Catalog, staged: StagedTable) -> CatalogTable:
        store, location = self._store(catalog, staged)
        features = sorted(staged.features)
        read = [each for each in features if each in FEATURES and FEATURES[each].read is not None]
        protocol = {**_PROTOCOL, "readerFeatures": read, "writerFeatures": features}
        metadata = {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": _SCHEMA,
            "partitionColumns": [],
            "configuration": dict(staged.properties),
        }
        now = time.time_ns() // 1_000_000
        lines = [_info(now), json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
        store.create_folder(log_path(location, STAGED_FOLDER))
        store.write(commit_path(location, 0), lines)
        change = MetadataChange(metadata=metadata, protocol=protocol)
        return catalog.create_table(staged, change, now)


def _info(now: int) -> str:
    info = {
        "inCommitTimestamp": now,
        "timestamp": now,
        "operation": "WRITE",
        "operationParameters": {},
        "txnId": str(uuid.uuid4()),
    }
    return json.dumps({"commitInfo": info})


def _loaded(catalog: Catalog, name: TableName) -> CatalogTable:
    table = catalog.load(name)
    expect_equal(table.name, name, "the name of a table")
    expect(table.is_governed, f"{name} is not governed, so nothing can be asked of it here")
    known = sorted(table.commits)
    whole = [*range(table.latest - len(known) + 1, table.latest + 1)]
    expect_equal(known, whole, f"the commits of a table of version {table.latest}")
    wrong = [v for v, commit in table.commits.items() if commit.version != v]
    expect_equal(wrong, [], "commits under another version")
    return table


def _facts(table: CatalogTable) -> tuple[object, ...]:
    return table.table_id, table.location, table.latest, dict(table.commits)
