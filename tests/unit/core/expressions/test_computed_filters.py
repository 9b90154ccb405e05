from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core import DeltaLog, Operation, delete_rows, update_rows, write_arrow
from lakelog.core.actions.file_table import files_from_json
from lakelog.core.errors import ConcurrentAppendException, DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.prune import keep_files
from lakelog.core.expressions.tree import And, Or
from lakelog.core.schema import StructType
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = StructType.from_json(
    b'{"type":"struct","fields":[{"name":"p","type":"string"},{"name":"n","type":"long"}]}'
)
TEXTS = ["1", "2", "03", " 4 ", "-1", None]
PARTS = [
    "p = 1", "p IN (1, 3)", "p > 2", "p BETWEEN 2 AND 4", "NOT p <=> 3", "p LIKE '%3%'",
    "length(p) = 1", "cast(p AS int) % 2 = 0", "n + 1 > p", "n = 1", "p IS NULL", "p = '03'",
    "10 / n > 4", "p + n = 3",
]  # fmt: skip


def rows() -> pa.Table:
    texts = [text for text in TEXTS for _ in range(4)]
    return pa.table({"p": texts, "n": pa.array([0, 1, 2, None] * len(TEXTS), pa.int64())})


def oracle(part: str, p: str | None, n: int | None) -> bool | None:
    """The same in Python: null is `None`, and a quotient of zero an error."""
    number = None if p is None else int(p)
    if part == "NOT p <=> 3":
        return number != 3
    if part == "p IS NULL":
        return p is None
    needs: dict[str, tuple[Any, Callable[[], bool]]] = {
        "p = 1": (p, lambda: number == 1),
        "p IN (1, 3)": (p, lambda: number in (1, 3)),
        "p > 2": (p, lambda: (number or 0) > 2),
        "p BETWEEN 2 AND 4": (p, lambda: 2 <= (number or 0) <= 4),
        "p LIKE '%3%'": (p, lambda: "3" in (p or "")),
        "length(p) = 1": (p, lambda: len(p or "") == 1),
        "cast(p AS int) % 2 = 0": (p, lambda: (number or 0) % 2 == 0),
        "n + 1 > p": (None if n is None else p, lambda: (n or 0) + 1 > (number or 0)),
        "n = 1": (n, lambda: n == 1),
        "p = '03'": (p, lambda: p == "03"),
        "10 / n > 4": (n, lambda: 10 / (n or 0) > 4),
    }
    known, answer = needs[part]
    return None if known is None else answer()


LEAVES = st.sampled_from([p for p in PARTS if "/" not in p and p != "p + n = 3"])


@settings(max_examples=examples(24), deadline=None)
@given(st.lists(st.lists(LEAVES, min_size=1, max_size=3), min_size=1, max_size=3))
def test_masks_agree_with_python_and_pruning_never_narrows(groups: list[list[str]]) -> None:
    sql = " OR ".join(f"({' AND '.join(group)})" for group in groups)
    expr = normalize_filter(sql, SCHEMA)
    assert expr is not None
    wanted = []
    for p, n in zip(*(rows()[name].to_pylist() for name in ("p", "n")), strict=True):
        ands = [_all([oracle(part, p, n) for part in group]) for group in groups]
        wanted.append(_not(_all([_not(each) for each in ands])))
    assert evaluate_mask(expr, rows(), SCHEMA).to_pylist() == wanted
    files = [{"path": str(i), "partitionValues": {"p": p}} for i, p in enumerate(TEXTS)]
    kept = keep_files(files_from_json(files), expr, SCHEMA, ["p"]).to_pylist()
    for index, keep in enumerate(kept):
        assert keep or True not in wanted[4 * index : 4 * index + 4]


def _all(found: list[bool | None]) -> bool | None:
    return False if False in found else None if None in found else True


def _not(found: bool | None) -> bool | None:
    return None if found is None else not found


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("n != 0 AND 10 / n > 4", {1, 2}),
        ("10 / n > 4 AND n != 0", {1, 2}),
        ("NOT (n = 0 OR 10 / n <= 5)", {1}),
        ("n > 0 AND (n = 2 OR 10 / n > 9)", {1, 2}),
    ],
)
def test_what_is_computed_is_not_asked_of_rows_that_are_decided(sql: str, wanted: set[int]) -> None:
    expr = normalize_filter(sql, SCHEMA)
    assert expr is not None
    found = rows().filter(evaluate_mask(expr, rows(), SCHEMA))
    assert set(found["n"].to_pylist()) == wanted


def test_a_row_without_a_result_is_an_error_and_no_answer() -> None:
    for sql in ("10 / n > 4", "n = 1 OR 10 / n > 4"):
        expr = normalize_filter(sql, SCHEMA)
        assert expr is not None
        with pytest.raises(DeltaAnalysisError, match="no result for some row"):
            evaluate_mask(expr, rows(), SCHEMA)


def table(path: Path, texts: list[str | None]) -> Path:
    data = pa.table({"p": texts, "n": pa.array(range(len(texts)), pa.int64())})
    write_arrow(path, data, partition_by=["p"], mode="append")
    return path


def left(path: Path) -> list[int]:
    return sorted(DeltaLog.for_table(path).update().to_arrow()["n"].to_pylist())


DOORS: dict[str, Callable[[Path, str], object]] = {
    "delete_rows": lambda path, sql: delete_rows(path, sql),
    "update_rows": lambda path, sql: update_rows(path, {"n": 100}, sql),
    "replace_where": lambda path, sql: write_arrow(
        path,
        pa.table({"p": ["1"], "n": pa.array([100], pa.int64())}),
        mode="overwrite",
        replace_where=sql,
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_partitions_of_text_go_by_numbers(tmp_path: Path, door: str) -> None:
    path = table(tmp_path / "t", ["1", "01", "2", None])
    DOORS[door](path, "p = 1")
    assert [n for n in left(path) if n < 100] == [2, 3]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("sql", ["p = 1", "p IN (1, 2)", "NOT p > 1", "soundex(p) = 1"])
def test_what_can_not_be_told_of_a_file_never_takes_it(tmp_path: Path, door: str, sql: str) -> None:
    path = table(tmp_path / "t", ["1", "east", "2"])
    with pytest.raises(DeltaAnalysisError):
        DOORS[door](path, sql)
    assert left(path) == [0, 1, 2]
    with pytest.raises(DeltaAnalysisError):
        DeltaLog.for_table(path).update().to_arrow(where=sql)
    kept = DeltaLog.for_table(path).update().files(sql)
    assert "east" in [add.partition_values["p"] for add in kept]


@pytest.mark.parametrize(("added", "conflicts"), [("2", False), ("01", True), ("east", True)])
def test_a_read_by_numbers_concerns_the_partitions_that_it_names(
    tmp_path: Path, added: str, conflicts: bool
) -> None:
    path = table(tmp_path / "t", ["1", "3"])
    txn = DeltaLog.for_table(path).start_transaction()
    read = txn.filter_files("p = 1 OR p IN (4, 5)")
    assert len(read) == 1
    write_arrow(path, pa.table({"p": [added], "n": pa.array([9], pa.int64())}), mode="append")
    operation = Operation("DELETE", {})
    if conflicts:
        with pytest.raises(ConcurrentAppendException):
            txn.commit([add.remove(0) for add in read], operation)
    else:
        assert txn.commit([add.remove(0) for add in read], operation) == 2


def test_a_tree_of_computed_parts_survives_being_bound_again() -> None:
    expr = normalize_filter("n = 1 AND (length(p) = 1 OR NOT p = 3)", SCHEMA)
    assert isinstance(expr, And)
    assert isinstance(expr.parts[1], Or)
    assert normalize_filter(expr, SCHEMA) == expr


@pytest.mark.parametrize(
    "sql", ["length(p) <=> n", "n + 1 <=> cast(p AS bigint) + n", "n / 2 <=> p"]
)
def test_null_equals_null_where_it_is_asked_so(sql: str) -> None:
    expr = normalize_filter(sql, SCHEMA)
    assert expr is not None
    none = pa.table({"p": pa.array([None, "7"]), "n": pa.array([None, 3], pa.int64())})
    assert evaluate_mask(expr, none, SCHEMA).to_pylist() == [True, False]


ARROW: dict[str, Any] = {
    "compared": pc.field("n") > 1,
    "listed": pc.field("p").isin(["1", "2"]),
    "joined": (pc.field("p") == "1") & ~(pc.field("n") == 0) | pc.field("p").is_null(),
    "called": pc.utf8_length(pc.field("p")) == 1,  # pyright: ignore[reportAttributeAccessIssue]
    "struct": pc.field("st", "a") == 1,
    "constant": pc.scalar(True),
}


@pytest.mark.parametrize("door", ["read", "delete_rows", "update_rows"])
@pytest.mark.parametrize("kind", ARROW)
@pytest.mark.parametrize("partitioned", [True, False])
def test_an_expression_of_pyarrow_is_a_condition(
    tmp_path: Path, door: str, kind: str, partitioned: bool
) -> None:
    data = pa.table(
        {
            "p": ["1", "1", "22", None],
            "n": pa.array([0, 1, 2, 3], pa.int64()),
            "st": [{"a": 1}, None, {"a": 2}, {"a": 1}],
        }
    )
    write_arrow(tmp_path / "t", data, partition_by=["p"] if partitioned else None, mode="append")
    wanted = data.filter(ARROW[kind])["n"].to_pylist()
    if door == "read":
        # The columns that it needs are not among those that come out.
        found = DeltaLog.for_table(tmp_path / "t").update().to_arrow(["n"], ARROW[kind])
        assert sorted(found["n"].to_pylist()) == wanted
    elif door == "delete_rows":
        delete_rows(tmp_path / "t", ARROW[kind])
        assert left(tmp_path / "t") == sorted({0, 1, 2, 3} - set(wanted))
    else:
        update_rows(tmp_path / "t", {"n": 100}, ARROW[kind])
        assert left(tmp_path / "t") == sorted({0, 1, 2, 3} - set(wanted)) + [100] * len(wanted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pc.field("nope") == 1, "nope"),
        (pc.field("n") + 1, "not a condition"),
        (pc.field("p") > 1, "does not fit"),
    ],
)
def test_an_expression_that_fits_no_rows_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidPredicateError, match=message):
        normalize_filter(given, SCHEMA)


AT: list[Any] = [pc.field(0), pc.field(1), pc.field(2)]
AROUND: dict[str, Callable[[Any], Any]] = {
    "null": lambda at: at.is_null(),
    "not null": lambda at: ~at.is_null(),
    "itself": lambda at: at == at,  # of any type, and true for all but nulls
    "beside a name": lambda at: (pc.field("n") == 0) | at.is_valid(),
    "in a call": lambda at: pc.if_else(at.is_null(), True, False),  # pyright: ignore[reportAttributeAccessIssue]
}


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
@pytest.mark.parametrize("at", AT, ids=str)
def test_a_column_by_its_position_is_refused(tmp_path: Path, at: Any, around: Any) -> None:
    path = table(tmp_path / "t", ["1", "2", "3"])
    before = DeltaLog.for_table(path).snapshot.to_arrow()
    with pytest.raises(InvalidPredicateError, match="name"):
        delete_rows(path, around(at))
    with pytest.raises(InvalidPredicateError, match="name"):
        DeltaLog.for_table(path).snapshot.to_arrow(where=around(at))
    assert DeltaLog.for_table(path).snapshot.to_arrow() == before


def test_two_expressions_of_pyarrow_are_two_reads(tmp_path: Path) -> None:
    path = table(tmp_path / "t", ["1", "2", "3"])
    txn = DeltaLog.for_table(path).start_transaction()
    many = [str(n) for n in range(100, 200)]
    # Their texts are cut short, and the same.
    one, two = (pc.field("p").isin(["0", *many, last, *many]) for last in ("7", "8"))
    assert str(one) == str(two)
    txn.filter_files(one)
    txn.filter_files(two)
    write_arrow(path, pa.table({"p": ["8"], "n": pa.array([9], pa.int64())}), mode="append")
    with pytest.raises(ConcurrentAppendException):
        txn.commit([add.remove(0) for add in txn.filter_files("p = '1'")], Operation("DELETE", {}))
