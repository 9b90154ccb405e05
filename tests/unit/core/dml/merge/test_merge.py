from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakelog.core import (
    DeltaLog,
    MergeBuilder,
    OptimisticTransaction,
    create_table,
    delete_rows,
    lit,
    merge,
    retry_on_conflict,
    write_arrow,
)
from lakelog.core.alter import add_constraint
from lakelog.core.data.change_files import ChangeFileWriter
from lakelog.core.data.file_reader import TableFileReader
from lakelog.core.data.file_writer import DataFileWriter
from lakelog.core.deletion_vectors.vector_writer import VectorWriter
from lakelog.core.dml.merge.positions import mask_of
from lakelog.core.errors import (
    AppendOnlyError,
    CommitOutcomeUnknownError,
    ConcurrentAppendException,
    ConcurrentDeleteReadException,
    ConstraintViolationError,
    DeltaAnalysisError,
    DeltaConcurrentModificationException,
    DeltaError,
    InvalidPredicateError,
    PostCommitError,
)
from lakelog.core.schema.column_fills import (
    column_with_default,
    generated_column,
    identity_column,
)
from lakelog.core.schema.types import PrimitiveType, StructField, StructType
from support.faults import Crash, Fault, FaultyLogStore

VECTORS = {"delta.enableDeletionVectors": "true"}
WAYS = {"vectors": VECTORS, "rewrite": {}}
either_way = pytest.mark.parametrize("properties", WAYS.values(), ids=WAYS)
LONG = PrimitiveType("long")


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def rows(uri: str) -> list[dict[str, Any]]:
    return sorted(DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist(), key=str)


def version(uri: str) -> int:
    return DeltaLog.for_table(uri).snapshot.version


def files_on_disk(uri: str) -> set[str]:
    found = (p for p in Path(uri).rglob("*") if p.is_file() and "_delta_log" not in p.parts)
    return {str(p.relative_to(uri)) for p in found}


def commit_info(uri: str) -> dict[str, Any]:
    path = Path(uri) / "_delta_log" / f"{version(uri):020d}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return next(line["commitInfo"] for line in lines if "commitInfo" in line)


def upsert(uri: Any, source: Any) -> MergeBuilder:
    return merge(uri, source, ["id"]).when_matched_update_all().when_not_matched_insert_all()


def people(*names: str) -> dict[str, Any]:
    return {"id": list(range(1, len(names) + 1)), "name": list(names)}


def test_the_history_shows_it_as_delta_does(uri):
    write_arrow(uri, people("a", "b"))
    merge(
        uri, {"id": [2, 3], "name": ["B", "C"]}, "t.id = s.id", target_alias="t", source_alias="s"
    ).when_matched_update({"name": "s.name"}, "t.id > 0").when_not_matched_insert_all().execute()
    info = commit_info(uri)
    assert info["operation"] == "MERGE"
    assert info["operationParameters"] == {
        "predicate": '["t.id = s.id"]',
        "matchedPredicates": '[{"predicate":"t.id > 0","actionType":"update"}]',
        "notMatchedPredicates": '[{"actionType":"insert"}]',
        "notMatchedBySourcePredicates": "[]",
    }
    metrics = info["operationMetrics"]
    assert metrics["numTargetRowsUpdated"] == metrics["numTargetRowsInserted"] == "1"
    assert metrics["numTargetRowsCopied"] == "1"
    assert metrics["numOutputRows"] == "3"


@either_way
def test_rows_that_match_but_to_which_no_clause_applies_are_not_inserted(uri, properties):
    write_arrow(uri, people("a", "b"), properties=properties)
    done = (
        merge(uri, people("x", "y"), ["id"])
        .when_matched_update({"name": "source.name"}, "false")
        .when_not_matched_insert_all()
        .execute()
    )
    assert done.version is None
    assert [r["name"] for r in rows(uri)] == ["a", "b"]


def test_several_matches_are_refused_with_their_keys(uri):
    write_arrow(uri, people("a", "b"))
    before = files_on_disk(uri)
    twice = {"id": [2, 2, 2], "name": ["x", "y", "z"]}
    with pytest.raises(DeltaAnalysisError, match=r"target.id = 2 \(3 source rows\)"):
        merge(uri, twice, ["id"]).when_matched_update_all().execute()
    with pytest.raises(DeltaAnalysisError, match="MULTIPLE_SOURCE_ROW"):
        merge(uri, twice, ["id"]).when_matched_delete("source.name = 'x'").execute()
    assert files_on_disk(uri) == before
    done = merge(uri, twice, ["id"]).when_matched_delete().execute()
    assert done.metrics["numTargetRowsDeleted"] == 1
    assert rows(uri) == [{"id": 1, "name": "a"}]


SOURCES = {
    "table": lambda: pa.table(people("x")),
    "batch": lambda: pa.RecordBatch.from_pydict(people("x")),
    "reader": lambda: pa.table(people("x")).to_reader(),
    "dictionary": lambda: pa.table({"id": [1], "name": pa.array(["x"]).dictionary_encode()}),
    "large": lambda: pa.table({"id": [1], "name": pa.array(["x"], pa.large_string())}),
    "rows": lambda: [{"id": 1, "name": "x"}],
    "polars": lambda: pytest.importorskip("polars").DataFrame(people("x")),
    "duckdb": lambda: pytest.importorskip("duckdb").sql("SELECT 1 AS id, 'x' AS name"),
}


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
def test_the_source_is_anything_that_arrow_takes(uri, make):
    write_arrow(uri, people("a"))
    merge(uri, make(), ["id"]).when_matched_update_all().execute()
    assert rows(uri) == [{"id": 1, "name": "x"}]


def test_a_stream_is_read_once_and_a_run_may_be_repeated(uri):
    write_arrow(uri, people("a"))
    builder = merge(uri, pa.table(people("x", "y")).to_reader(), ["id"])
    inserting = builder.when_not_matched_insert_all()
    assert inserting.execute().metrics["numTargetRowsInserted"] == 1
    assert inserting.execute().version is None


def test_numbers_that_are_equal_match_and_null_only_where_asked(uri):
    nan, zero = float("nan"), -0.0
    data = {"k": pa.array([nan, zero, None, 1.5]), "n": [1, 2, 3, 4]}
    write_arrow(uri, pa.table(data))
    source = pa.table({"k": pa.array([nan, 0.0, None]), "n": [10, 20, 30]})
    merge(uri, source, "target.k = source.k").when_matched_update({"n": "source.n"}).execute()
    assert sorted(r["n"] for r in rows(uri)) == [3, 4, 10, 20]
    merge(uri, source, "target.k <=> source.k").when_matched_delete().execute()
    assert [r["n"] for r in rows(uri)] == [4]


def test_keys_of_other_types_are_compared_as_spark_does(uri):
    write_arrow(uri, {"k": ["1", "02", "3"]})
    with pytest.raises(DeltaAnalysisError):
        merge(uri, {"k": [1, 2, 3], "x": ["", "", ""]}, ["x"]).when_matched_delete().execute()
    merge(uri, {"k": [1, 2]}, ["k"]).when_matched_delete().execute()
    assert rows(uri) == [{"k": "3"}]


def test_names_with_dots_spaces_and_ticks(uri):
    mapped = {"delta.columnMapping.mode": "name"}
    data = {"a.b": [1, 2], "x y": ["p", "q"], "t`k": [1, 1], "É": [5, 5]}
    write_arrow(uri, data, properties=mapped)
    source = {"a.b": [2, 3], "x y": ["Q", "R"], "t`k": [7, 8], "É": [6, 6]}
    merge(uri, source, ["a.b"]).when_matched_update(
        {
            "`x y`": "source.`x y`",
            "target.`t``k`": "`target`.`t``k` + source.`T``K`",
            "é": "source.é",
        }
    ).when_not_matched_insert_all().execute()
    assert rows(uri) == [
        {"a.b": 1, "x y": "p", "t`k": 1, "É": 5},
        {"a.b": 2, "x y": "Q", "t`k": 8, "É": 6},
        {"a.b": 3, "x y": "R", "t`k": 8, "É": 6},
    ]


def test_fields_of_structs_defaults_and_values(uri):
    schema = StructType(
        (
            StructField("id", LONG),
            StructField("s", StructType((StructField("a", LONG), StructField("b", LONG)))),
            column_with_default("d", LONG, "40 + 2"),
            StructField("t", PrimitiveType("string")),
        )
    )
    create_table(uri, schema, properties={"delta.feature.allowColumnDefaults": "supported"})
    start = pa.table({"id": [1, 2], "s": [{"a": 1, "b": 2}, None], "d": [0, 0], "t": ["x", "x"]})
    write_arrow(uri, start, mode="append")
    merge(uri, {"id": [1, 2, 3], "v": [7, 8, 9]}, ["id"]).when_matched_update(
        {"s.b": "v", "d": "DEFAULT", "t": lit("v")}
    ).when_not_matched_insert({"id": "id", "s": "named(v)"}, "false").when_not_matched_insert(
        {"id": "source.id", "t": None}
    )
    merge(uri, {"id": [1, 2, 3], "v": [7, 8, 9]}, ["id"]).when_matched_update(
        {"s.b": "v", "d": "DEFAULT", "t": lit("v")}
    ).when_not_matched_insert({"id": "source.id", "t": None}).execute()
    assert rows(uri) == [
        {"id": 1, "s": {"a": 1, "b": 7}, "d": 42, "t": "v"},
        {"id": 2, "s": {"a": None, "b": 8}, "d": 42, "t": "v"},
        {"id": 3, "s": None, "d": 42, "t": None},
    ]


def test_generated_columns_follow_and_identities_go_on(uri):
    schema = StructType(
        (
            identity_column("n"),
            StructField("id", LONG),
            generated_column("g", LONG, "id * 10"),
        )
    )
    create_table(uri, schema)
    write_arrow(uri, {"id": [1, 2]}, mode="append")
    merge(uri, {"id": [2, 3, 4]}, ["id"]).when_matched_update(
        {"id": "target.id + 100"}
    ).when_not_matched_insert_all().execute()
    found = rows(uri)
    assert [(r["id"], r["g"]) for r in sorted(found, key=lambda r: r["id"])] == [
        (1, 10),
        (3, 30),
        (4, 40),
        (102, 1020),
    ]
    assert sorted(r["n"] for r in found) == [1, 2, 3, 4]
    with pytest.raises(ConstraintViolationError):
        merge(uri, {"id": [1]}, ["id"]).when_matched_update({"g": "5"}).execute()


@either_way
def test_new_rows_keep_the_rules_and_old_ones_are_left_alone(uri, properties):
    write_arrow(uri, people("a", "b"), properties=properties)
    add_constraint(uri, "short", "length(name) < 3")
    before = files_on_disk(uri)
    builder = merge(uri, {"id": [2, 3], "name": ["long", "long"]}, ["id"])
    for each in (builder.when_matched_update_all(), builder.when_not_matched_insert_all()):
        with pytest.raises(ConstraintViolationError):
            each.execute()
    assert files_on_disk(uri) == before
    assert version(uri) == 1


@pytest.mark.parametrize("mode", ["name", "id"])
def test_the_schema_evolves_where_columns_are_mapped(uri, mode):
    mapped = {"delta.columnMapping.mode": mode, "delta.enableChangeDataFeed": "true"}
    write_arrow(uri, {"id": [1, 2], "s": [{"a": 1}, {"a": 2}]}, properties=mapped)
    source = {"id": [2, 3], "s": [{"a": 5, "b": "x"}, {"a": 6, "b": "y"}], "new": [1.5, 2.5]}
    merge(
        uri, source, ["id"], with_schema_evolution=True
    ).when_matched_update_all().when_not_matched_insert_all().execute()
    assert rows(uri) == [
        {"id": 1, "s": {"a": 1, "b": None}, "new": None},
        {"id": 2, "s": {"a": 5, "b": "x"}, "new": 1.5},
        {"id": 3, "s": {"a": 6, "b": "y"}, "new": 2.5},
    ]


def test_without_evolution_new_columns_are_left_out_and_missing_ones_refused(uri):
    write_arrow(uri, people("a"))
    merge(uri, {"id": [1], "name": ["x"], "more": [1]}, ["id"]).when_matched_update_all().execute()
    assert rows(uri) == [{"id": 1, "name": "x"}]
    with pytest.raises(DeltaAnalysisError, match="Cannot resolve name in UPDATE clause"):
        merge(uri, {"id": [1]}, ["id"]).when_matched_update_all().execute()


REFUSED = {
    "ambiguous": ("id = 1", DeltaAnalysisError, r"AMBIGUOUS_REFERENCE.*target.id and source.id"),
    "unknown": ("target.idd = source.id", DeltaAnalysisError, r"did you mean"),
    "subquery": ("target.id IN (SELECT 1)", DeltaAnalysisError, r"UNSUPPORTED_SUBQUERY"),
    "random": ("rand() < 1", DeltaAnalysisError, r"NON_DETERMINISTIC"),
    "aggregate": ("max(target.id) = 1", DeltaAnalysisError, r"AGGREGATION_NOT_SUPPORTED"),
    "only Spark": ("soundex(target.name) = 'x'", InvalidPredicateError, r"only Spark"),
    "no SQL": ("target.id = = 1", InvalidPredicateError, r"can't parse"),
}


@pytest.mark.parametrize(("sql", "error", "text"), REFUSED.values(), ids=REFUSED)
def test_conditions_that_mean_nothing_here_are_refused(uri, sql, error, text):
    write_arrow(uri, people("a"))
    with pytest.raises(error, match=text):
        merge(uri, people("x"), sql).when_matched_delete().execute()
    with pytest.raises(error, match=text):
        merge(uri, people("x"), ["id"]).when_matched_delete(sql).execute()
    assert version(uri) == 0


def test_clauses_see_only_the_rows_that_they_have(uri):
    write_arrow(uri, people("a"))
    builder = merge(uri, people("x"), ["id"])
    for each in (
        builder.when_not_matched_insert({"id": "target.id"}),
        builder.when_not_matched_by_source_update({"name": "source.name"}),
    ):
        with pytest.raises(DeltaAnalysisError, match="MERGE_UNRESOLVED_EXPRESSION"):
            each.execute()
    with pytest.raises(InvalidPredicateError, match="only Spark"):
        builder.when_matched_update({"name": "soundex(source.name)"}).execute()
    with pytest.raises(DeltaAnalysisError, match="MISSING_WHEN"):
        builder.execute()


def test_arguments_that_mean_nothing(uri):
    write_arrow(uri, people("a"))
    wrong: list[dict[str, Any]] = [
        {"target_alias": "x", "source_alias": "X"},
        {"source_alias": "a.b"},
        {"app_id": "a"},
        {"user_metadata": 5},
    ]
    for each in wrong:
        with pytest.raises(DeltaAnalysisError):
            merge(uri, people("x"), ["id"], **each)
    with pytest.raises(DeltaAnalysisError):
        merge(uri, people("x"), [])


def test_an_append_only_table_takes_inserts_alone(uri):
    write_arrow(uri, people("a"), properties={"delta.appendOnly": "true"})
    builder = merge(uri, people("x", "y"), ["id"])
    with pytest.raises(AppendOnlyError):
        builder.when_matched_delete().execute()
    builder.when_not_matched_insert_all().execute()
    assert [r["name"] for r in rows(uri)] == ["a", "y"]


def test_a_job_that_runs_again_does_nothing(uri):
    write_arrow(uri, people("a"))
    for expected in (1, None):
        done = (
            merge(uri, people("x"), ["id"], app_id="job", app_version=3)
            .when_matched_update_all()
            .execute()
        )
        assert done.version == expected


@either_way
def test_only_files_that_can_hold_the_keys_are_read(uri, properties):
    write_arrow(uri, {"id": [1, 2], "v": [1, 2]}, properties=properties)
    write_arrow(uri, {"id": [100, 200], "v": [1, 2]}, mode="append")
    (far,) = DeltaLog.for_table(uri).snapshot.files(where="id > 50")
    (Path(uri) / far.path).unlink()
    source = {"id": list(range(70)), "v": [0] * 70}
    done = merge(uri, source, ["id"]).when_matched_update_all("target.id > 1").execute()
    assert done.metrics["numTargetRowsUpdated"] == 1


class Interrupting:
    """Runs another writer's job before the first commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, job: Any) -> None:
        real, pending = OptimisticTransaction.commit_if_needed, [job]

        def commit(txn: Any, *args: Any) -> Any:
            if pending:
                pending.pop()()
            return real(txn, *args)

        monkeypatch.setattr(OptimisticTransaction, "commit_if_needed", commit)


def test_rows_elsewhere_are_no_conflict_and_rows_that_may_match_are(uri, monkeypatch):
    write_arrow(uri, {"p": ["a", "b"], "id": [1, 2]}, partition_by=["p"])
    upsert = merge(uri, {"p": ["a"], "id": [5]}, ["p", "id"]).when_not_matched_insert_all()
    with monkeypatch.context() as patched:
        Interrupting(patched, lambda: write_arrow(uri, {"p": ["b"], "id": [5]}, mode="append"))
        assert upsert.execute().version == 2
    before = files_on_disk(uri)
    more = merge(uri, {"p": ["a"], "id": [6]}, ["p", "id"]).when_not_matched_insert_all()
    with monkeypatch.context() as patched:
        Interrupting(patched, lambda: write_arrow(uri, {"p": ["a"], "id": [6]}, mode="append"))
        with pytest.raises(ConcurrentAppendException):
            more.execute()
    assert len(files_on_disk(uri) - before) == 1
    with monkeypatch.context() as patched:
        Interrupting(patched, lambda: write_arrow(uri, {"p": ["a"], "id": [7]}, mode="append"))
        assert retry_on_conflict(more.execute, max_wait=0.01).version is None
    assert sorted(r["id"] for r in rows(uri)) == [1, 2, 5, 5, 6, 7]


def test_a_concurrent_delete_of_a_matched_row_conflicts(uri, monkeypatch):
    write_arrow(uri, people("a", "b"), properties=VECTORS)
    Interrupting(monkeypatch, lambda: delete_rows(uri, "id = 1"))
    with pytest.raises((ConcurrentDeleteReadException, DeltaConcurrentModificationException)):
        merge(uri, people("x"), ["id"]).when_matched_update_all().execute()
    assert rows(uri) == [{"id": 2, "name": "b"}]


def test_two_merges_do_not_number_rows_alike(uri, monkeypatch):
    create_table(uri, StructType((identity_column("n"), StructField("id", LONG))))
    one = merge(uri, {"id": [1]}, "false").when_not_matched_insert({"id": "source.id"})
    two = merge(uri, {"id": [2]}, "false").when_not_matched_insert({"id": "source.id"})
    Interrupting(monkeypatch, two.execute)
    with pytest.raises(DeltaConcurrentModificationException):
        one.execute()
    one.execute()
    assert rows(uri) == [{"n": 1, "id": 2}, {"n": 2, "id": 1}]


@pytest.mark.parametrize("positions", [[], [0], [4], [0, 1], [1, 2, 4], [0, 2, 3], [0, 1, 2, 3, 4]])
def test_positions_as_a_mask(positions):
    found = mask_of(pa.array(positions, pa.int64()), 5)
    assert found.to_pylist() == [i in positions for i in range(5)]


@pytest.mark.parametrize("fault", [each for each in Fault if each is not Fault.NONE])
def test_after_a_fault_the_table_is_the_old_or_the_new_one_and_whole(uri, fault):
    write_arrow(uri, people("a", "b"), properties={**VECTORS, "delta.enableChangeDataFeed": "true"})
    log = DeltaLog.for_table(uri)
    before = files_on_disk(uri)
    faulty = DeltaLog(log.table, FaultyLogStore(log.store, fault), log.conf, log.clock)
    source = {"id": [2, 3], "name": ["B", "C"]}
    try:
        upsert(faulty, source).execute()
    except (Crash, CommitOutcomeUnknownError, OSError, DeltaError) as exc:
        refused = isinstance(exc, OSError | DeltaError) and not isinstance(
            exc, CommitOutcomeUnknownError | PostCommitError
        )
        if refused and version(uri) == 0:
            assert files_on_disk(uri) == before
    old, new = people("a", "b"), people("a", "B", "C")
    assert pa.Table.from_pylist(rows(uri)).to_pydict() in (old, new)
    upsert(uri, source).execute()
    assert pa.Table.from_pylist(rows(uri)).to_pydict() == new


STEPS = (
    (DataFileWriter, "write"),
    (DataFileWriter, "close"),
    (VectorWriter, "add"),
    (VectorWriter, "close"),
    (ChangeFileWriter, "write"),
    (ChangeFileWriter, "close"),
    (TableFileReader, "pieces"),
    (TableFileReader, "deleted"),
)


@pytest.mark.parametrize("owner_and_name", STEPS, ids=[f"{o.__name__}.{n}" for o, n in STEPS])
def test_an_error_at_any_step_leaves_nothing_behind(uri, monkeypatch, owner_and_name):
    write_arrow(uri, people("a", "b"), properties={**VECTORS, "delta.enableChangeDataFeed": "true"})
    before = files_on_disk(uri)
    builder = upsert(uri, {"id": [2, 3], "name": ["B", "C"]})
    calls = fails_at = 0
    for fails_at in range(1, 9):
        calls = 0

        owner, name = owner_and_name
        plain = getattr(owner, name)

        def failing(*args: Any, _plain: Any = plain, _at: int = fails_at, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == _at:
                raise OSError("injected")
            return _plain(*args, **kwargs)

        with monkeypatch.context() as patched:
            patched.setattr(owner, name, failing)
            try:
                builder.execute()
            except OSError:
                assert files_on_disk(uri) == before
                assert version(uri) == 0
                continue
        break
    assert fails_at > 1
    assert [r["name"] for r in rows(uri)] == ["a", "B", "C"]
