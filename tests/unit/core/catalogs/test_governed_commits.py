"""Committing to a table that a catalog governs: whatever is lost on the way, each commit is there
once, or not at all, and its writer knows which."""

from __future__ import annotations

from collections import deque
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog
from lakelog.core.catalogs.governed_store import GovernedStore
from lakelog.core.catalogs.published import PublishedCommits
from lakelog.core.errors import (
    CatalogError,
    CommitOutcomeUnknownError,
    StorageUnavailableError,
    TableNotFoundError,
    UnsupportedFeatureError,
)
from lakelog.core.hooks import publishing
from lakelog.core.log.file_names import commit_path
from lakelog.core.transaction.host_commit import HostCommits
from lakelog.logstores import MemoryLogStore
from support.commits import append
from support.examples import examples
from support.manual_clock import ManualClock
from support.model_catalog import ModelCatalog, make_model_table, open_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lakelog.core.catalogs.names import TableName

ROUNDS = 12


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What follows a commit is done at once, so that each test has one order of events."""
    monkeypatch.setattr(publishing, "do_later", lambda table, what, do: do())
    ModelCatalog.reset()
    yield
    ModelCatalog.reset()


def die_after_ratifying(log: DeltaLog) -> None:
    """Let its commits be published by others, unless its own next one needs room."""
    store: Any = log.store
    store.end_commit = lambda metrics: None


def paths(name: TableName) -> list[str]:
    return sorted(each.path for each in open_model(name).snapshot.files())


def published(name: TableName) -> list[int]:
    location = ModelCatalog.tables[name].location
    found = MemoryLogStore().list_from(f"{location}/_delta_log/")
    return [int(each.name[:20]) for each in found if each.name.endswith(".json")]


def test_processes_with_another_token_for_the_catalog_do_not_commit_for_each_other() -> None:
    # The catalog would take the one for the other.
    name = make_model_table()
    log = open_model(name)
    token = f"spark.sql.catalog.{name.catalog}.token"

    def queue(**more: str) -> str:
        conf = {**log.conf, **more}
        return HostCommits(DeltaLog.for_table(str(name), conf))._key

    one = queue(**{token: "one"})
    assert one == queue(**{token: "one"})
    assert one != queue(**{token: "two"})
    assert one == queue(**{token: "one", "spark.sql.catalog.another.token": "two"})


def test_a_commit_is_staged_ratified_published_and_reported_by_the_next() -> None:
    name = make_model_table()
    log = open_model(name)
    assert append(log, "a") == 1
    assert published(name) == [0, 1]
    assert sorted(ModelCatalog.tables[name].commits) == [1]
    assert append(log, "b") == 2
    # 1 was reported with 2.
    assert sorted(ModelCatalog.tables[name].commits) == [2]
    assert paths(name) == ["a", "b"]


def test_a_published_file_holds_the_bytes_that_were_ratified() -> None:
    name = make_model_table()
    append(open_model(name), "a")
    table, store = ModelCatalog.tables[name], MemoryLogStore()
    staged = f"{table.location}/_delta_log/_staged_commits/{table.commits[1].file_name}"
    data = store.read_bytes(staged)
    assert store.read_bytes(commit_path(table.location, 1)) == data
    assert table.commits[1].size == len(data)


def test_who_comes_next_publishes_for_a_writer_that_died() -> None:
    name = make_model_table()
    log = open_model(name)
    die_after_ratifying(log)
    for each in range(5):
        append(log, f"dead-{each}")
    assert published(name) == [0]
    assert append(open_model(name), "next") == 6
    assert published(name) == list(range(7))
    assert len(paths(name)) == 6


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_what_another_client_published_in_part_is_made_whole(share: float) -> None:
    name = make_model_table()
    log = open_model(name)
    die_after_ratifying(log)
    append(log, "a")
    table, store = ModelCatalog.tables[name], MemoryLogStore()
    staged = f"{table.location}/_delta_log/_staged_commits/{table.commits[1].file_name}"
    data, path = store.read_bytes(staged), commit_path(table.location, 1)
    with store.filesystem.open_output_stream(store.filesystem_path(path)) as file:
        file.write(data[: int(len(data) * share)])
    assert append(open_model(name), "b") == 2
    assert published(name) == [0, 1, 2]
    assert store.read_bytes(path) == data


def test_ten_commits_may_wait_and_the_next_writer_goes_on() -> None:
    name = make_model_table()
    log = open_model(name)
    die_after_ratifying(log)
    for each in range(10):
        append(log, f"{each}")
    assert len(ModelCatalog.tables[name].commits) == 10
    assert append(open_model(name), "next") == 11
    assert published(name) == list(range(12))


@pytest.mark.parametrize("fate", ["lost", "odd"])
def test_a_lost_reply_is_settled_by_the_name_of_the_file(fate: str) -> None:
    name = make_model_table()
    ModelCatalog.fates = deque([fate])
    assert append(open_model(name), "a") == 1
    assert paths(name) == ["a"]
    assert ModelCatalog.asked.count("commit") == 1


def test_a_request_that_comes_late_is_recognised_by_its_txn_id() -> None:
    name = make_model_table()
    ModelCatalog.fates = deque(["late"])
    assert append(open_model(name), "a") == 1
    assert paths(name) == ["a"]


def test_another_writers_version_is_a_conflict_only_once_it_was_seen() -> None:
    name = make_model_table()
    log = open_model(name)

    def other(what: str) -> bool:
        if what == "commit":
            append(open_model(name), "theirs")
        return what == "commit"

    _ = log.snapshot
    ModelCatalog.between = other
    assert append(log, "ours") == 2
    assert paths(name) == ["ours", "theirs"]


def test_a_version_that_was_forgotten_and_never_published_is_unknown() -> None:
    name = make_model_table()
    log = open_model(name, None, {"spark.databricks.delta.maxNonConflictCommitAttempts": "2"})
    _ = log.snapshot

    def purged(what: str) -> None:
        # As a server does that takes a report of a file that was never written.
        table = ModelCatalog.tables[name]
        if what == "load" and table.latest == 1:
            from dataclasses import replace

            ModelCatalog.tables[name] = replace(table, commits={})

    ModelCatalog.fates, ModelCatalog.between = deque(["lost"]), purged
    with pytest.raises(CommitOutcomeUnknownError, match="does not exist"):
        append(log, "a")


def test_a_table_that_was_dropped_meanwhile_gets_nothing() -> None:
    name = make_model_table()
    log = open_model(name)
    _ = log.snapshot

    def dropped(what: str) -> bool:
        if what == "commit":
            del ModelCatalog.tables[name]
            make_model_table(str(name))
        return what == "commit"

    ModelCatalog.between = dropped
    with pytest.raises(TableNotFoundError):
        append(log, "a")
    assert paths(name) == []


@pytest.mark.parametrize("what", ["optimize", "vacuum", "restore", "drop_feature"])
def test_work_that_the_catalog_forbids(what: str) -> None:
    from lakelog.core import optimize, restore, vacuum
    from lakelog.core.alter import drop_feature

    name = make_model_table()
    log = open_model(name)
    append(log, "a")
    calls = {
        "optimize": lambda: optimize(log),
        "vacuum": lambda: vacuum(log),
        "restore": lambda: restore(log, version=0),
        "drop_feature": lambda: drop_feature(log, "catalogManaged"),
    }
    with pytest.raises(
        UnsupportedFeatureError, match="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"
    ):
        calls[what]()


def test_checkpoints_stand_for_published_versions_alone() -> None:
    name = make_model_table()
    log = open_model(name)
    die_after_ratifying(log)
    for each in range(3):
        append(log, f"{each}")
    assert published(name) == [0]
    log.checkpoint()
    assert published(name)[:4] == [0, 1, 2, 3]
    assert len(paths(name)) == 3


FATES: list[str] = ["ok", "lost", "unsent", "late"]


def history(
    fates: list[str], others: set[int], dead: set[int], slow: frozenset[int] = frozenset()
) -> None:
    """Two writers in turns, others between their requests; afterwards all is counted.

    Args:
        fates: of the commits, in order.
        others: before which requests another writer commits.
        dead: after which rounds a writer dies, once it has ratified.
        slow: which commits are published some requests later, or never.
    """
    with pytest.MonkeyPatch.context() as patch:
        waiting: deque[Callable[[], object]] = deque()
        numbers = count()

        def later(table: str, what: str, do: Callable[[], object]) -> None:
            if next(numbers) in slow:
                waiting.append(do)
            else:
                do()

        patch.setattr(publishing, "do_later", later)
        _history(fates, others, dead, waiting)


def _history(
    fates: list[str], others: set[int], dead: set[int], waiting: deque[Callable[[], object]]
) -> None:
    ModelCatalog.reset()
    name, clock = make_model_table(), ManualClock()
    ModelCatalog.fates = deque(fates)
    requests, committed, unknown = 0, set(), set()

    def other(what: str) -> None:
        nonlocal requests
        requests += 1
        if waiting and requests % 3 == 0:
            waiting.popleft()()
        if requests in others:
            kept, ModelCatalog.fates = ModelCatalog.fates, deque()
            path = f"other-{requests}"
            append(open_model(name, clock), path)
            committed.add(path)
            ModelCatalog.fates = kept

    ModelCatalog.between = other
    logs = [open_model(name, clock), open_model(name, clock)]
    for each in range(ROUNDS):
        log, path = logs[each % 2], f"ours-{each}"
        if each in dead:
            die_after_ratifying(log)
            logs[each % 2] = open_model(name, clock)  # for the rounds after it
        try:
            append(log, path)
            committed.add(path)
        except CommitOutcomeUnknownError:
            unknown.add(path)
    ModelCatalog.between = None
    while ModelCatalog.late:
        try:
            ModelCatalog.late.popleft()()
        except CatalogError:
            continue

    found = paths(name)
    assert len(found) == len(set(found)), "a commit is there twice"
    assert committed <= set(found) <= committed | unknown
    table = ModelCatalog.tables[name]
    store: Any = open_model(name).store
    store.publish()
    assert published(name) == list(range(table.latest + 1))


@settings(max_examples=examples(18), deadline=None)
@given(
    fates=st.lists(st.sampled_from(FATES), max_size=40),
    others=st.sets(st.integers(0, 30)),
    dead=st.sets(st.integers(0, ROUNDS)),
    slow=st.frozensets(st.integers(0, 2 * ROUNDS)),
)
def test_nothing_is_lost_and_nothing_is_doubled(
    fates: list[str], others: set[int], dead: set[int], slow: frozenset[int]
) -> None:
    history(fates, others, dead, slow)


def _guesses_that_nothing_was_done(store: Any, path: str, commit: Any, said: CatalogError) -> None:
    raise StorageUnavailableError(str(said))


def _guesses_that_all_went_well(store: Any, path: str, commit: Any, said: CatalogError) -> None:
    return


def _drops_what_is_in_doubt(store: Any, path: str, commit: Any, said: CatalogError) -> None:
    store._drop_staged(commit.file_name)
    LOOK(store, path, commit, said)


def _reports_unseen(published: Any, table: Any) -> int | None:
    return table.latest if table.commits else None


def _publishes_the_newest_alone(published: Any, table: Any, version: int) -> None:
    commit = table.commits.get(version)
    if commit is not None and version > published._copied:
        published._copy(published._storage(), commit)
        published._note(version)


def _publishes_nothing(published: Any, table: Any, version: int) -> None:
    published._note(version)


def _lets_another_files_version_be_its_own(
    store: Any, path: str, commit: Any, said: CatalogError
) -> None:
    if store.refresh().latest >= commit.version:
        return
    LOOK(store, path, commit, said)


LOOK = GovernedStore._look
MUTANTS = {
    (GovernedStore, "_look"): (
        _guesses_that_nothing_was_done,
        _guesses_that_all_went_well,
        _drops_what_is_in_doubt,
        _lets_another_files_version_be_its_own,
    ),
    (PublishedCommits, "reportable"): (_reports_unseen,),
    (PublishedCommits, "copy"): (_publishes_the_newest_alone, _publishes_nothing),
}


@pytest.mark.parametrize(
    ("of", "member", "mutant"),
    [(*member, mutant) for member, some in MUTANTS.items() for mutant in some],
    ids=lambda value: value if isinstance(value, str) else value.__name__.strip("_"),
)
def test_the_histories_kill_a_store_that_guesses(
    monkeypatch: pytest.MonkeyPatch, of: type[Any], member: str, mutant: Any
) -> None:
    monkeypatch.setattr(of, member, mutant)
    random = Random(7)

    def survives() -> bool:
        fates = random.choices(FATES, k=20)
        others = {each for each in range(30) if random.random() < 0.3}
        dead = {each for each in range(ROUNDS) if random.random() < 0.3}
        slow = frozenset(each for each in range(30) if random.random() < 0.3)
        try:
            history(fates, others, dead, slow)
        except Exception:  # whatever its kind, somebody sees it
            return False
        return True

    assert not all(survives() for _ in range(30))
