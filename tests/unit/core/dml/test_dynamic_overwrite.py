"""Overwrites that replace the partitions which the data has, and leave the others alone."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, write_arrow
from lakelog.core.dml.table_write import WriteRequest
from lakelog.core.errors import AppendOnlyError, ConcurrentAppendException, DeltaAnalysisError
from support.examples import examples

KEY = "spark.sql.sources.partitionOverwriteMode"
CONF = {KEY: "dynamic"}
SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string(), "q": pa.int32()})

rows_of = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.integers(0, 99),
            "p": st.sampled_from([None, "", "a", "ä/ =%"]),
            "q": st.sampled_from([None, 0, 1]),
        }
    ),
    max_size=5,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(sorted(row.items(), key=str)))


def found(uri: str) -> list[dict[str, Any]]:
    return in_order(DeltaLog.for_table(uri).snapshot.to_arrow().to_pylist())


def partition(row: dict[str, Any], names: list[str]) -> tuple[Any, ...]:
    # The empty text is null in a partition.
    return tuple(row[name] or None if name == "p" else row[name] for name in names)


@settings(max_examples=examples(10), deadline=None)
@given(
    st.lists(rows_of, min_size=1, max_size=3),
    st.sampled_from([["p"], ["p", "q"], []]),
    st.booleans(),
)
def test_each_overwrite_replaces_the_partitions_of_its_rows_alone(
    writes: list[list[dict[str, Any]]], names: list[str], by_conf: bool
) -> None:
    said: dict[str, Any] = {"conf": CONF} if by_conf else {"partition_overwrite_mode": "dynamic"}
    with tempfile.TemporaryDirectory() as folder:
        uri, expected = f"{folder}/t", list[dict[str, Any]]()
        for rows in writes:
            write_arrow(uri, table(rows), mode="overwrite", partition_by=names, **said)
            replaced = {partition(row, names) for row in rows}
            kept = [r for r in expected if partition(r, names) not in replaced] if names else []
            new = [{**r, "p": (r["p"] or None) if "p" in names else r["p"]} for r in rows]
            expected = [*kept, *new]
            assert found(uri) == in_order(expected)


OLD = [{"id": 1, "p": "a", "q": 0}, {"id": 2, "p": "b", "q": 0}]
NEW = [{"id": 3, "p": "b", "q": 1}]


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "t")
    write_arrow(uri, table(OLD), partition_by="p", mode="append")
    return uri


def test_it_is_reported_in_the_history_as_delta_tells_it(uri: str) -> None:
    write_arrow(uri, table(NEW), mode="overwrite", conf=CONF)
    text = (Path(uri) / "_delta_log" / f"{1:020d}.json").read_text()
    info = next(
        json.loads(line)["commitInfo"] for line in text.splitlines() if "commitInfo" in line
    )
    assert info["operationParameters"]["isDynamicPartitionOverwrite"] is True
    assert info["operationMetrics"]["numRemovedFiles"] == "1"


@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "overwrite", "partition_overwrite_mode": "static", "conf": CONF},
        {"mode": "overwrite", "conf": {**CONF, KEY: "STATIC"}},
        {
            "mode": "overwrite",
            "conf": {**CONF, "spark.databricks.delta.dynamicPartitionOverwrite.enabled": "false"},
        },
    ],
)
def test_what_is_said_otherwise_replaces_the_table(uri: str, arguments: dict[str, Any]) -> None:
    write_arrow(uri, table(NEW), **arguments)
    assert found(uri) == NEW


def test_an_append_and_replace_where_are_what_they_are_whatever_the_conf_says(uri: str) -> None:
    write_arrow(uri, table(NEW), conf=CONF, mode="append")
    assert found(uri) == in_order([*OLD, *NEW])
    write_arrow(uri, table([]), mode="overwrite", replace_where="p = 'b'", conf=CONF)
    assert found(uri) == OLD[:1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"partition_overwrite_mode": "dynamic"}, "needs mode 'overwrite'"),
        ({"mode": "overwrite", "partition_overwrite_mode": "x"}, "'static' or 'dynamic'"),
        (
            {"mode": "overwrite", "partition_overwrite_mode": "dynamic", "replace_where": "p = 1"},
            "give only one of them",
        ),
        (
            {"mode": "overwrite", "partition_overwrite_mode": "dynamic"}
            | {"schema_mode": "overwrite"},
            "give only one of them",
        ),
        ({"mode": "overwrite", "schema_mode": "overwrite", "conf": CONF}, "give only one of them"),
    ],
)
def test_contradictions_are_refused(uri: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(DeltaAnalysisError, match=message):
        write_arrow(uri, table(NEW), **arguments)
    assert found(uri) == OLD


def test_a_table_that_only_grows_keeps_its_partitions_and_gets_no_file(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    properties = {"delta.appendOnly": "true"}
    write_arrow(uri, table(OLD), partition_by="p", properties=properties, mode="append")
    before = set(Path(uri).rglob("*.parquet"))
    with pytest.raises(AppendOnlyError):
        write_arrow(uri, table(NEW), mode="overwrite", conf=CONF)
    assert set(Path(uri).rglob("*.parquet")) == before


@pytest.mark.parametrize(("where", "meets"), [("b", True), ("a", False)])
def test_an_append_to_the_same_partition_meanwhile_conflicts(
    uri: str, where: str, meets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lakelog.core import OptimisticTransaction

    commit = OptimisticTransaction.commit
    late = [{"id": 9, "p": where, "q": 0}]

    def behind_another(self: OptimisticTransaction, *args: Any) -> int:
        monkeypatch.setattr(OptimisticTransaction, "commit", commit)
        write_arrow(uri, table(late), mode="append")
        return commit(self, *args)

    monkeypatch.setattr(OptimisticTransaction, "commit", behind_another)
    if meets:
        with pytest.raises(ConcurrentAppendException):
            write_arrow(uri, table(NEW), mode="overwrite", conf=CONF)
        assert found(uri) == in_order([*OLD, *late])
    else:
        write_arrow(uri, table(NEW), mode="overwrite", conf=CONF)
        assert found(uri) == in_order([OLD[0], *NEW, *late])


def test_no_engine_asks_for_another_schema_of_some_partitions() -> None:
    with pytest.raises(DeltaAnalysisError, match="give only one of them"):
        WriteRequest(mode="overwrite", overwrite_schema=True, dynamic_overwrite=True)
