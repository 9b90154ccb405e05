"""Names, in a session that counts what it is asked."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql import Row
from pyspark.sql.types import StructType

from lakelog.core.errors import DeltaAnalysisError, TableNotFoundError
from lakelog.spark.names import lookup
from lakelog.spark.names.lookup import (
    choose_namespace,
    chosen_namespace,
    entry_elsewhere,
    find,
    forget,
    unwatch,
    watch,
)
from lakelog.spark.names.resolve import location_of, resolve, with_location
from lakelog.spark.sql_statements.queries.query_runner import QueryRunner
from lakelog.spark.sql_statements.queries.sparks_own import refuse_sparks
from lakelog.spark.sql_statements.text.statement import Statement

if TYPE_CHECKING:
    from collections.abc import Iterator


class Reader:
    """`spark.read`, of which the columns of a view are asked."""

    def table(self, name: str) -> Any:
        return SimpleNamespace(schema=StructType())


class Session:
    """One database, `Default`, and what Spark says of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.rows: list[Any] = []
        self.read = Reader()
        self.namespace = ["spark_catalog", "Default"]
        self.confs: dict[str, str] = {}
        self.conf = SimpleNamespace(
            get=lambda key, default=None: self.confs.get(key, default),
            getAll=self.confs,
            set=self.confs.__setitem__,
            unset=lambda key: self.confs.pop(key, None),
        )
        self.catalog = SimpleNamespace(
            currentCatalog=lambda: self.namespace[0], currentDatabase=lambda: self.namespace[1]
        )

    def add(self, name: str, location: str, provider: str = "delta") -> None:
        information = f"Type: EXTERNAL\nProvider: {provider}\nLocation: {location}\n"
        self.rows.append(
            Row(namespace="Default", tableName=name, isTemporary=False, information=information)
        )

    def add_view(self, name: str) -> None:
        self.rows.append(Row(namespace="", tableName=name, isTemporary=True, information=""))

    def sql(self, text: str) -> Any:
        self.asked.append(text)
        return SimpleNamespace(collect=lambda: list(self.rows))


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def watched(session: Session) -> Iterator[Session]:
    watch(Session)
    yield session
    unwatch(Session)


def location(session: Any, name: str) -> str | None:
    entry = find(session, name)
    return None if entry is None else entry.location


def test_a_name_is_asked_for_once_while_changes_are_seen(watched: Session) -> None:
    watched.add("t", "/a")
    for name in ("t", "T", "t"):
        assert location(watched, name) == "/a"
    assert len(watched.asked) == 1
    assert location(watched, "default.t") == "/a"
    assert location(watched, "spark_catalog.Default.t") == "/a"
    assert len(watched.asked) == 2
    assert watched.asked[0] == "SHOW TABLE EXTENDED IN `spark_catalog`.`Default` LIKE 't'"
    for _ in range(2):
        assert find(watched, "none") is None  # type: ignore[arg-type]
    assert len(watched.asked) == 3


def test_nothing_is_kept_where_changes_are_not_seen(session: Session) -> None:
    session.add("t", "/a")
    assert location(session, "t") == "/a"
    session.rows.clear()
    session.add("t", "/b")
    assert location(session, "t") == "/b"


def test_a_change_is_followed_by_another_question(watched: Session) -> None:
    watched.add("t", "/a")
    assert location(watched, "t") == "/a"
    watched.rows.clear()
    watched.namespace[1] = "other"
    assert location(watched, "t") == "/a"
    forget()
    assert location(watched, "t") is None
    assert "`other`" in watched.asked[-1]


def test_answers_age(watched: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(lookup, "_clock", lambda: now[0])
    watched.confs["spark.lakelog.names.cacheSeconds"] = "5"
    watched.add("t", "/a")
    for now[0] in (0.0, 4.9):
        assert location(watched, "t") == "/a"
    assert len(watched.asked) == 1
    now[0] = 5.1
    assert location(watched, "t") == "/a"
    assert len(watched.asked) == 2
    watched.confs["spark.lakelog.names.cacheSeconds"] = "0"
    now[0] = 20
    for _ in range(2):
        assert location(watched, "t") == "/a"
    assert len(watched.asked) == 4


def test_a_temporary_view_hides_a_table_without_its_database(session: Any) -> None:
    session.add("t", "/a")
    session.add_view("T")
    found = find(session, "t")
    assert found is not None
    assert found.kind == "temporary view"
    assert location(session, "default.t") == "/a"
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_TABLE_ONLY_OPERATION.*temporary view"):
        resolve(session, "t")


@pytest.mark.parametrize("name", ["cat.t", "cat.a.t", "a.b.c.d", "default.`a b`", "default.`t*`"])
def test_names_that_spark_s_catalog_can_t_have_are_not_asked_for(session: Any, name: str) -> None:
    session.confs["spark.sql.catalog.cat"] = "some.Catalog"
    session.add("t", "/a")
    assert find(session, name) is None
    assert session.asked == []


@pytest.mark.parametrize("key", ["spark.sql.catalog.lake.uri", "spark.lakelog.catalog.lake.class"])
def test_a_name_in_a_catalog_of_the_conf_stands_for_its_folder(session: Any, key: str) -> None:
    assert find(session, "lake.sales.orders") is None
    session.confs[key] = "http://unity.example"
    for name, known_by in (
        ("lake.sales.orders", "lake.sales.orders"),
        ("`lake`.sales.`a b`", "lake.sales.`a b`"),
    ):
        entry = find(session, name)
        assert entry is not None
        assert (entry.is_delta, entry.is_governed, entry.location) == (True, True, known_by)
        assert location_of(session, name) == known_by
    assert session.asked == []
    # Two parts are a database and a table, as ever; and what the catalog lacks is its own to say.
    assert find(session, "lake.sales") is None
    session.asked.clear()
    with pytest.raises(TableNotFoundError, match="the catalog has none"):
        with_location(session, "lake.sales.orders", _none)
    assert session.asked == []


@pytest.fixture
def chosen(watched: Session) -> Session:
    """A session in which `USE lake.sales` was run, and which has a table `Default.t` of its own."""
    watched.add("t", "/a")
    watched.confs["spark.sql.catalog.lake.uri"] = "http://unity.example"
    watched.confs["spark.sql.catalog.other"] = "some.Catalog"
    choose_namespace(cast("Any", watched), ("lake", "sales"))
    return watched


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("orders", "lake.sales.orders"),
        ("`odd name`", "lake.sales.`odd name`"),
        ("t", "lake.sales.t"),
        ("old.orders", "lake.old.orders"),
        ("default.t", "lake.default.t"),
        ("lake.old.orders", "lake.old.orders"),
        ("spark_catalog.default.t", "/a"),
        ("lake.orders", None),
        ("other.orders", None),
        ("spark_catalog.none", None),
        ("parquet.`/some/folder`", None),
        ("a.b.c.d", None),
    ],
)
def test_a_short_name_is_one_of_the_catalog_that_was_chosen(
    chosen: Session, name: str, meant: str | None
) -> None:
    assert location(chosen, name) == meant
    assert chosen_namespace(cast("Any", chosen)) == ("lake", "sales")


def test_a_temporary_view_comes_before_a_table_of_the_chosen_schema(chosen: Any) -> None:
    chosen.add_view("orders")
    found = find(chosen, "Orders")
    assert found is not None
    assert found.kind == "temporary view"
    assert location(chosen, "sales.orders") == "lake.sales.orders"
    # A table may be made beside it.
    beside = entry_elsewhere(chosen, ("orders",))
    assert beside is not None
    assert beside.location == "lake.sales.orders"
    asked = len(chosen.asked)
    find(chosen, "orders")
    assert len(chosen.asked) == asked


def test_what_was_read_before_a_catalog_was_chosen_is_not_kept_after_it(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched.confs["spark.sql.catalog.lake.uri"] = "https://unity.example"
    read: Any = vars(lookup)["set_confs"]

    def slow(spark: Any) -> dict[str, str]:
        monkeypatch.setattr(lookup, "set_confs", read)
        found = dict(read(spark))
        other = threading.Thread(target=choose_namespace, args=(watched, ("lake", "sales")))
        other.start()
        other.join()
        return found

    monkeypatch.setattr(lookup, "set_confs", slow)
    find(watched, "t")
    assert chosen_namespace(watched) == ("lake", "sales")


@pytest.mark.parametrize(
    ("statement", "is_refused"),
    [
        ("CREATE TABLE wrong USING parquet AS SELECT * FROM v", True),
        ("CREATE TABLE wrong USING parquet AS SELECT * FROM spark_catalog.default.x", True),
        ("CREATE TABLE wrong USING parquet AS SELECT * FROM parquet.`/x`", True),
        ("CREATE VIEW wrong AS SELECT * FROM spark_catalog.default.x", True),
        ("CREATE TABLE v USING parquet AS SELECT 1", True),
        ("DROP SCHEMA v CASCADE", True),
        ("DROP VIEW v", False),
        ("DROP VIEW IF EXISTS v", False),
        ("CREATE TABLE spark_catalog.default.x USING parquet AS SELECT * FROM v", False),
        ("CREATE TABLE parquet.`/x` USING parquet AS SELECT 1", False),
        ("DROP SCHEMA spark_catalog.s CASCADE", False),
        ("DESCRIBE v", False),
    ],
)
def test_sparks_own_statements_are_told_by_what_they_make_or_drop(
    chosen: Any, statement: str, is_refused: bool
) -> None:
    chosen.add_view("v")
    with pytest.raises(DeltaAnalysisError) if is_refused else nullcontext():
        refuse_sparks(chosen, Statement(statement))


def test_names_in_a_persistent_view_are_of_its_catalog(chosen: Any) -> None:
    runner = QueryRunner(chosen, chosen.sql, ("spark_catalog", "default"))
    assert runner._whole(("t",)) == ("spark_catalog", "default", "t")
    assert runner._whole(("sales", "t")) == ("spark_catalog", "sales", "t")
    for same in (("global_temp", "t"), ("delta", "/lake/t"), ("lake", "sales", "t")):
        assert runner._whole(same) == same


def test_sparks_own_names_are_meant_again_afterwards(chosen: Any) -> None:
    choose_namespace(chosen, None)
    assert chosen_namespace(chosen) is None
    assert location(chosen, "t") == "/a"
    choose_namespace(chosen, ("lake", "sales"))
    assert location(chosen, "t") == "lake.sales.t"
    # A catalog that the conf no longer has is nobody's.
    del chosen.confs["spark.sql.catalog.lake.uri"]
    forget()
    assert location(chosen, "t") == "/a"


def test_names_without_a_catalog_in_the_conf_cost_what_they_did(watched: Session) -> None:
    watched.add("t", "/a")
    for name in ("t", "default.t", "t"):
        assert location(watched, name) == "/a"
    assert len(watched.asked) == 2


def test_a_catalogs_name_alone_is_no_schema(session: Any) -> None:
    session.confs["spark.sql.catalog.lake.uri"] = "http://unity.example"
    with pytest.raises(TableNotFoundError, match=r"is named lake\.schema\.orders"):
        resolve(session, "lake.orders")


def _none(location: str) -> None:
    raise TableNotFoundError("the catalog has none", table=location)


def test_a_database_may_have_the_name_of_a_catalog(watched: Any) -> None:
    watched.confs["spark.sql.catalog.default"] = "some.Catalog"
    watched.add("t", "/a")
    for _ in range(2):
        assert location(watched, "default.t") is None
        assert location(watched, "spark_catalog.default.t") == "/a"
        assert location(watched, "t") == "/a"
    assert len(watched.asked) == 2


def test_names_mean_another_catalog_while_that_is_the_current_one(session: Any) -> None:
    session.add("t", "/a")
    session.namespace[:] = ["cat", "x"]
    assert find(session, "t") is None
    assert find(session, "default.t") is None
    assert location(session, "spark_catalog.default.t") == "/a"
    with pytest.raises(DeltaAnalysisError, match=r"another catalog.*spark_catalog\.database"):
        resolve(session, "t")


def test_what_is_no_delta_table_is_named(session: Any) -> None:
    session.add("p", "/p", "parquet")
    with pytest.raises(DeltaAnalysisError, match=r"DELTA_MISSING_DELTA_TABLE.*parquet"):
        resolve(session, "p")
    session.rows.clear()
    session.add("flights", "/f")
    with pytest.raises(TableNotFoundError, match=r"DELTA_TABLE_NOT_FOUND.*mean Default\.flights"):
        resolve(session, "flihgts")
    assert location_of(session, "delta.`/lake/t`") == "/lake/t"


def test_a_table_that_has_moved_is_found_again(watched: Any) -> None:
    watched.add("t", "/old")
    assert location_of(watched, "t") == "/old"
    watched.rows.clear()
    watched.add("t", "/new")

    def opened(path: str) -> str:
        if path != "/new":
            raise TableNotFoundError(f"no Delta table at {path}")
        return path

    assert with_location(watched, "t", opened) == "/new"
    assert location_of(watched, "t") == "/new"
    watched.rows.clear()
    watched.add("t", "/gone")
    forget()
    with pytest.raises(TableNotFoundError, match="DROP TABLE t"):
        with_location(watched, "t", opened)
