from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from lakelog.core.actions.file_table import files_from_json
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.arrow.masks import evaluate_mask
from lakelog.core.expressions.filter import Filter, normalize_filter
from lakelog.core.expressions.parse import long_lists as sql_lists
from lakelog.core.expressions.prune import keep_files
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import In, is_opaque
from lakelog.core.schema import StructType
from support.examples import examples
from support.garbage import uncollected

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = StructType.from_json(
    b'{"type":"struct","fields":['
    b'{"name":"n","type":"long"},{"name":"s","type":"string"},{"name":"d","type":"date"},'
    b'{"name":"c","type":"decimal(10,2)"},{"name":"x","type":"double"},{"name":"p","type":"long"},'
    b'{"name":"t","type":"timestamp"}]}'
)
ROWS = pa.table(
    {
        "n": pa.array([0, 5, None], pa.int64()),
        "s": ["k0", "", None],
        "d": pa.array([0, 1, None], pa.date32()),
        "c": pa.array([0, 1, None], pa.decimal128(10, 2)),
        "x": [0.0, 1.5, None],
        "p": pa.array([0, 1, None], pa.int64()),
        "t": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
    }
)
FILES = files_from_json(
    [
        {
            "path": str(i),
            "partitionValues": {"p": str(i)},
            "stats": '{"numRecords":3,"minValues":{"n":0,"s":"a","x":0},"maxValues":{"n":5,"s":"z",'
            '"x":2},"nullCount":{"n":1,"s":0,"x":0}}',
        }
        for i in range(3)
    ]
)
FILTERS: dict[str, Callable[[int], Filter]] = {
    "numbers": lambda n: f"n IN ({', '.join(map(str, range(n)))})",
    "partitions": lambda n: f"p NOT IN ({', '.join(map(str, range(n)))})",
    "texts": lambda n: "s IN (" + ",".join(f"'k{i}'" for i in range(n)) + ")",
    "doubles": lambda n: f"x IN ({', '.join(f'{i}.5' for i in range(n))})",
    "dates": lambda n: "d IN (" + ",".join(f"DATE '2024-01-{i % 28 + 1}'" for i in range(n)) + ")",
    "only for Spark": lambda n: f"rand(n) IN ({', '.join(map(str, range(n)))})",
    "a chain of OR": lambda n: " OR ".join(f"n = {i}" for i in range(n)),
    "a chain of AND": lambda n: " AND ".join(f"n != {i} AND p != {i}" for i in range(n)),
    "a chain of BETWEEN": lambda n: " OR ".join(f"n BETWEEN {i} AND {i}" for i in range(n)),
    "a tuple": lambda n: [("n", "in", list(range(n)))],
    "tuples": lambda n: [("n", "!=", i) for i in range(n)],
    "lists of tuples": lambda n: [[("n", "=", i), ("x", "<", i)] for i in range(n)],
}


def calls(function: Callable[..., object], *args: object) -> int:
    """How many functions were called, those written in C among them."""
    count = 0

    def seen(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    with uncollected():
        sys.setprofile(seen)
        try:
            function(*args)
        finally:
            sys.setprofile(None)
    return count


def use(given: Filter) -> None:
    """Whatever a scan does with a filter."""
    bound = normalize_filter(given, SCHEMA)
    assert bound is not None
    to_sql(bound)
    keep_files(FILES, bound, SCHEMA, ["p"])
    if not is_opaque(bound):
        evaluate_mask(bound, ROWS, SCHEMA)


@pytest.mark.parametrize("kind", FILTERS)
def test_twice_the_values_are_twice_the_work(kind: str) -> None:
    use(FILTERS[kind](3))
    once, twice = (calls(use, FILTERS[kind](n)) for n in (80, 160))
    assert twice < 2.2 * once


@pytest.mark.parametrize("kind", ["numbers", "partitions", "texts", "doubles", "dates"])
def test_a_long_list_costs_a_few_calls_a_value(kind: str) -> None:
    few, many = (calls(normalize_filter, FILTERS[kind](n), SCHEMA) for n in (200, 1200))
    # The parser takes some eighty for each.
    assert (many - few) / 1000 < 45


PLAIN = "0|7|-3|1.5|NULL|null|'a'|''|'IN (1,2)'|1L|2e3|'a''b'|'a\\\\'|TRUE|n|r'a'|X'00'|'1'|.5|5.|-"
VALUE = st.sampled_from(
    [
        *PLAIN.split("|"),
        *("DATE '2024-01-02'", "date  '2024-1-2'", "TIMESTAMP '2024-01-02 03:04:05'", "DATE 'x'"),
        *("- 2", "'a' 'b'", "/* , */ 3", "4 -- five\n", "(1)", "'a,b'", "'\n'", "1 /*'*/"),
    ]
)
TERM = st.builds(
    "{} {}IN{}({})".format,
    st.sampled_from(
        ["n", "s", "d", "t", "c", "x", "`n`", "st.z", "rand(n)", "n + 1", "'q IN (1)'"]
    ),
    st.sampled_from(["", "NOT ", "/* IN (1) */ "]),
    st.sampled_from(["", " ", "\n"]),
    st.lists(VALUE, max_size=4).map(", ".join),
)
TEXT = st.lists(TERM, min_size=1, max_size=3).map(" AND ".join)


@settings(max_examples=examples(32))
@given(TEXT)
def test_a_list_that_is_cut_out_means_what_it_meant(sql: str) -> None:
    found = []
    with pytest.MonkeyPatch.context() as patch:
        for worth in (0, 1 << 60):
            patch.setattr(sql_lists, "_WORTH_IT", worth)
            try:
                expr: Any = normalize_filter(sql, SCHEMA)
            except InvalidPredicateError as exc:
                # The position, and what is wrong there; the words around it may differ in spaces.
                expr = exc.fields.get("position"), exc.fields.get("column")
            found.append(expr)
    cut, whole = found
    if isinstance(whole, tuple) or isinstance(cut, tuple):
        assert cut == whole
    else:
        # What only Spark evaluates keeps the words that it was given in.
        assert spelled(cut) == spelled(whole)


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("'a' IN ({})", "TRUE"),
        ("'b' IN ({})", "FALSE"),
        ("'b' NOT IN ({})", "NOT FALSE"),
        ("n = 1 AND 'a' NOT IN ({})", "n = 1 AND (NOT TRUE)"),
        ("s = IF('a' IN ({}), 'x', 'y')", "s = 'x'"),
    ],
)
def test_a_list_without_a_column_is_worked_out_whole(sql: str, wanted: str, count: int) -> None:
    found = normalize_filter(sql.format(", ".join(["'a'"] * count)), SCHEMA)
    assert found is not None
    assert to_sql(found) == wanted


def spelled(expr: Any) -> str:
    return parse_one(to_sql(expr), dialect="spark").sql(dialect="spark")


def test_a_position_behind_a_long_list_is_that_of_the_whole_text() -> None:
    numbers = ", ".join(map(str, range(500)))
    sql = f"n IN ({numbers}) AND\n p IN ({numbers}) AND nope = 1"
    with pytest.raises(InvalidPredicateError) as caught:
        normalize_filter(sql, SCHEMA)
    assert caught.value.fields["position"] == sql.index("nope")
    with pytest.raises(InvalidPredicateError) as caught:
        normalize_filter(sql.replace("nope =", "= ="), SCHEMA)
    assert abs(caught.value.fields["position"] - sql.index("nope")) < 6


def test_a_text_with_the_mark_of_a_list_is_a_text() -> None:
    mark = "\ue0000\ue000"
    found = normalize_filter(f"s IN ('{mark}', {', '.join(['NULL'] * 200)})", SCHEMA)
    assert isinstance(found, In)
    assert found.values[0].value == mark
