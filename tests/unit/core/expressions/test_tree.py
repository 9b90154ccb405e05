from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.filter import normalize_filter
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    And,
    Column,
    Comparison,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Or,
    StartsWith,
    columns,
    conjuncts,
    is_computed,
    is_opaque,
    is_partition_only,
)
from lakelog.core.schema import DecimalType, PrimitiveType, StructType

SCHEMA = StructType.from_json(
    b'{"type":"struct","fields":['
    b'{"name":"Id","type":"long"},{"name":"n","type":"integer"},{"name":"s","type":"string"},'
    b'{"name":"d","type":"date"},{"name":"t","type":"timestamp"},{"name":"u","type":"timestamp_ntz"},'
    b'{"name":"c","type":"decimal(10,2)"},{"name":"x","type":"double"},{"name":"f","type":"float"},'
    b'{"name":"b","type":"boolean"},{"name":"y","type":"binary"},{"name":"m","type":"integer"},'
    b'{"name":"st","type":{"type":"struct","fields":['
    b'{"name":"a","type":"long"},{"name":"odd name","type":"string"}]}},'
    b'{"name":"l","type":{"type":"array","elementType":"long","containsNull":true}},'
    b'{"name":"a.b","type":"long"}]}'
)


def parsed(sql: str, tz: str = "UTC") -> Expression:
    found = normalize_filter(sql, SCHEMA, EvalContext(tz))
    assert found is not None
    return found


def col(*path: str) -> Column:
    from lakelog.core.expressions.coerce import resolve

    found = resolve(path, SCHEMA)
    assert found is not None
    return found


def lit(value: Any, kind: str) -> Literal:
    return Literal(value, PrimitiveType(kind))


def test_no_filter_is_none() -> None:
    assert normalize_filter(None, SCHEMA) is None


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("ID = 5", Comparison("=", col("Id"), lit(5, "long"))),
        ("5 < n", Comparison(">", col("n"), lit(5, "integer"))),
        ("n >= -3", Comparison(">=", col("n"), lit(-3, "integer"))),
        ("n < 3000000000", Comparison("<", col("n"), lit(3000000000, "long"))),
        ("n = '7'", Comparison("=", col("n"), lit(7, "integer"))),
        ("n = 1.5", Comparison("=", col("n"), Literal(Decimal("1.5"), DecimalType(38, 1)))),
        ("n = 1e3", Comparison("=", col("n"), lit(1000.0, "double"))),
        ("n <=> NULL", Comparison("<=>", col("n"), Literal(None))),
        ("n == 1L", Comparison("=", col("n"), lit(1, "integer"))),
        ("n <> 1", Comparison("!=", col("n"), lit(1, "integer"))),
        ("n = m", Comparison("=", col("n"), col("m"))),
        ("x > 1", Comparison(">", col("x"), lit(1.0, "double"))),
        ("f = 0.5", Comparison("=", col("f"), lit(0.5, "double"))),
        ("x = double('NaN')", Comparison("=", col("x"), lit(math.nan, "double"))),
        ("c = 1.5", Comparison("=", col("c"), Literal(Decimal("1.5"), DecimalType(10, 2)))),
        ("c = 2", Comparison("=", col("c"), Literal(Decimal(2), DecimalType(10, 2)))),
        ("c = 1.125BD", Comparison("=", col("c"), Literal(Decimal("1.125"), DecimalType(11, 3)))),
        ("s = \"q\"", Comparison("=", col("s"), lit("q", "string"))),
        (r"s = 'it\'s \\ it'", Comparison("=", col("s"), lit("it's \\ it", "string"))),
        ("d >= '2020-01-02'", Comparison(">=", col("d"), lit(date(2020, 1, 2), "date"))),
        ("d = '2020-1-2'", Comparison("=", col("d"), lit(date(2020, 1, 2), "date"))),
        ("d = DATE '2020-01-02'", Comparison("=", col("d"), lit(date(2020, 1, 2), "date"))),
        ("d = cast('2020-01-02' as date)",
         Comparison("=", col("d"), lit(date(2020, 1, 2), "date"))),
        ("t < TIMESTAMP '2020-01-01 02:00:00+02:00'",
         Comparison("<", col("t"), lit(datetime(2020, 1, 1, tzinfo=UTC), "timestamp"))),
        ("t < '2020-01-01'",
         Comparison("<", col("t"), lit(datetime(2020, 1, 1, tzinfo=UTC), "timestamp"))),
        ("y = X'0aFF'", Comparison("=", col("y"), lit(b"\x0a\xff", "binary"))),
        ("b", Comparison("=", col("b"), lit(True, "boolean"))),
        ("b IS NOT TRUE", Not(Comparison("<=>", col("b"), lit(True, "boolean")))),
        ("s IS NULL", IsNull(col("s"))),
        ("s IS NOT NULL", Not(IsNull(col("s")))),
        ("s LIKE 'ab%'", StartsWith(col("s"), "ab")),
        ("s NOT LIKE 'ab%'", Not(StartsWith(col("s"), "ab"))),
        ("s LIKE 'ab'", Comparison("=", col("s"), lit("ab", "string"))),
        ("startswith(s, 'ab')", StartsWith(col("s"), "ab")),
        ("n IN (1, NULL)", In(col("n"), (lit(1, "integer"), Literal(None)))),
        ("n NOT IN (1)", Not(In(col("n"), (lit(1, "integer"),)))),
        ("c IN (1, 2.5)", In(col("c"), (Literal(Decimal(1), DecimalType(10, 2)),
                                        Literal(Decimal("2.5"), DecimalType(10, 2))))),
        ("st.`odd name` = 'a'", Comparison("=", col("st", "odd name"), lit("a", "string"))),
        ("ST.A = 1", Comparison("=", col("st", "a"), lit(1, "long"))),
        ("`a.b` = 1", Comparison("=", col("a.b"), lit(1, "long"))),
        ("l IS NULL", IsNull(col("l"))),
        ("true", lit(True, "boolean")),
        ("NULL", Literal(None)),
    ],
)  # fmt: skip
def test_sql_becomes_a_bound_tree(sql: str, wanted: Expression) -> None:
    # As text: since Python 3.13 a NaN makes a tree unlike itself.
    assert repr(parsed(sql)) == repr(wanted)


def test_between_is_two_comparisons_and_connectives_are_flat() -> None:
    one = Comparison("=", col("n"), lit(1, "integer"))
    two = Comparison("=", col("m"), lit(2, "integer"))
    assert parsed("n BETWEEN 1 AND 2") == And(
        (
            Comparison(">=", col("n"), lit(1, "integer")),
            Comparison("<=", col("n"), lit(2, "integer")),
        )
    )
    assert parsed("n = 1 AND (m = 2 AND (n = 1))") == And((one, two, one))
    assert parsed("n = 1 OR NOT (m = 2) OR n = 1") == Or((one, Not(two), one))


def test_a_long_chain_of_ors_does_not_exhaust_the_stack() -> None:
    found = parsed(" OR ".join(f"n = {i}" for i in range(3000)))
    assert isinstance(found, Or)
    assert len(found.parts) == 3000


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ("upper(s) = 'A'", {("s",)}),
        ("n + 1 = 2", {("n",)}),
        ("cast(s as int) = 2", {("s",)}),
        ("s = 5", {("s",)}),
        ("s LIKE 'a_b%'", {("s",)}),
        ("s LIKE '%a'", {("s",)}),
        ("n IN (1, m)", {("n",), ("m",)}),
        ("n IN (1, 2.5)", {("n",)}),
        ("d = t", {("d",), ("t",)}),
        ("d = TIMESTAMP '2020-01-01 00:00:00'", {("d",)}),
        ("u = TIMESTAMP '2020-01-01 00:00:00'", {("u",)}),
        ("CASE WHEN n = 1 THEN true END", {("n",)}),
        ("t > d AND false OR s IN (1, '2')", {("t",), ("d",), ("s",)}),
        ("st.a % 2 = 0", {("st", "a")}),
    ],
)  # fmt: skip
def test_arithmetic_casts_and_functions_are_computed(sql: str, paths: set[Any]) -> None:
    found = parsed(sql)
    assert is_computed(found)
    assert not is_opaque(found)
    assert columns(found) == paths
    assert parsed(to_sql(found)) == found


@pytest.mark.parametrize(
    ("sql", "paths"),
    [
        ("n = '5.5' || ''", {("n",)}),
        (r"s LIKE 'a\\%%'", {("s",)}),
        ("s LIKE 'a%' ESCAPE '/'", {("s",)}),
        (r"s = '\101'", {("s",)}),
        ("s ILIKE 'a%' ESCAPE '/'", {("s",)}),
        ("s RLIKE '(?i)a'", {("s",)}),
        ("n IN (SELECT 1)", {("n",)}),
        ("exists(l, v -> array_position(l, v) > 1)", {("l",)}),
        ("l[0] = 1", {("l",)}),
        ("n = current_date()", {("n",)}),
        ("n IS DISTINCT FROM 1", {("n",)}),
        ("d = DATE '2020-01-01' + INTERVAL 1 HOUR", {("d",)}),
        ("(n, m) = (1, 2)", {("n",), ("m",)}),
        ("_metadata.file_path = 'x'", set()),
        ("s = 'a' COLLATE UNICODE_CI", {("s",)}),
        ("st = 1", {("st",)}),
        ("rand() < 0.5", set()),
    ],
)  # fmt: skip
def test_what_is_no_plain_comparison_stays_opaque(sql: str, paths: set[Any]) -> None:
    found = parsed(sql)
    assert isinstance(found, Opaque)
    assert found.columns == paths


@pytest.mark.parametrize("number", ["2024", "-2024", "(2024)", "(-(2024))", "2024L", "2024.0"])
@pytest.mark.parametrize("cast", ["CAST", "TRY_CAST"])
@pytest.mark.parametrize(
    ("column", "kind"), [("d", "DATE"), ("t", "TIMESTAMP"), ("u", "TIMESTAMP_NTZ")]
)
def test_a_number_is_no_text_of_a_time(column: str, kind: str, cast: str, number: str) -> None:
    assert isinstance(parsed(f"{column} >= {cast}({number} AS {kind})"), Opaque)
    text = "'2024-01-01 00:00:00'"
    assert isinstance(parsed(f"{column} >= {cast}({text} AS {kind})"), Comparison)


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("n = 1 + 1", "n = 2"),
        ("1 = 1", "TRUE"),
        ("length('ab') = 3", "FALSE"),
        ("d >= current_date()", "d >= DATE '2023-11-14'"),
        ("current_date > d", "d < DATE '2023-11-14'"),
        ("d IN (date_sub(current_date(), 7), DATE '2020-01-01')",
         "d IN (DATE '2023-11-07', DATE '2020-01-01')"),
        ("t < now()", "t < TIMESTAMP '2023-11-14 22:13:20Z'"),
        ("s = 'a' || 'b'", "s = 'ab'"),
        ("x <=> double('NaN')", "x <=> double('NaN')"),
    ],
)  # fmt: skip
def test_what_has_no_column_is_worked_out_once(sql: str, wanted: str) -> None:
    found = normalize_filter(sql, SCHEMA, EvalContext(now_ms=1_700_000_000_000))
    assert found is not None
    assert to_sql(found) == wanted


def test_without_a_clock_there_is_no_today() -> None:
    assert isinstance(parsed("d >= current_date()"), Opaque)


def test_only_the_part_that_is_not_understood_is_opaque() -> None:
    found = parsed("n = 1 AND base64(s) = 'A'")
    assert isinstance(found, And)
    assert [type(p) for p in found.parts] == [Comparison, Opaque]


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("n = ", "position", 2),
        ("n = 1 m", "position 6", 6),
        ("(n = 1", "position", 5),
        ("n = 1 AND zz = 2", r"unknown column zz at position 10.*Known columns: Id, n", 10),
        ("id = 1 AND\n  idd = 2", r"did you mean Id\?", 13),
        ("st.zz = 1", r"st\.zz", 0),
        ("upper(zz) = 'A'", "zz", 6),
        ("SELECT 1", "not a condition", 0),
    ],
)
def test_what_is_no_filter_is_refused_with_its_position(
    sql: str, message: str, position: int
) -> None:
    with pytest.raises(InvalidPredicateError, match=message) as caught:
        parsed(sql)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "sql", ["", "  ", "n = 'x'", "d = 'soon'", "t > 'soon'", "x = 'y'", "n = 1;2"]
)
def test_texts_that_spark_would_refuse_are_refused(sql: str) -> None:
    with pytest.raises(InvalidPredicateError):
        parsed(sql)


def test_times_without_zone_are_of_the_session() -> None:
    noon = Comparison("=", col("t"), lit(datetime(2020, 6, 1, 10, tzinfo=UTC), "timestamp"))
    for sql in ("t = '2020-06-01 12:00:00'", "t = TIMESTAMP '2020-06-01 12:00:00'"):
        assert parsed(sql, "Europe/Berlin") == noon
    local = datetime(2020, 6, 1, 12)  # noqa: DTZ001 # what a user gives
    found = normalize_filter([("t", "=", local)], SCHEMA, EvalContext("Europe/Berlin"))
    assert found == noon
    midnight = lit(datetime(2020, 5, 31, 22, tzinfo=UTC), "timestamp")
    found = normalize_filter([("t", ">", date(2020, 6, 1))], SCHEMA, EvalContext("Europe/Berlin"))
    assert found == Comparison(">", col("t"), midnight)


def test_tuples_are_and_and_lists_of_them_are_or() -> None:
    one = Comparison("=", col("n"), lit(1, "integer"))
    two = Not(In(col("s"), (lit("a", "string"),)))
    assert normalize_filter([("n", "==", 1)], SCHEMA) == one
    assert normalize_filter([("n", "=", 1), ("s", "not in", ["a"])], SCHEMA) == And((one, two))
    groups: list[list[tuple[str, str, Any]]] = [[("n", "=", 1)], [("s", "NOT IN", {"a"})]]
    assert normalize_filter(groups, SCHEMA) == Or((one, two))
    assert normalize_filter([("st.a", "is not", None)], SCHEMA) == Not(IsNull(col("st", "a")))
    assert normalize_filter([("a.b", "<", 1)], SCHEMA) == Comparison(
        "<", col("a.b"), lit(1, "long")
    )


@pytest.mark.parametrize(
    "given",
    [
        [],
        [("n", "=")],
        [("n", "~", 1)],
        [("n", "=", None)],
        [("n", "=", "x")],
        [("n", "=", True)],
        [("s", "=", 1)],
        [("d", "=", datetime(2020, 1, 1, tzinfo=UTC))],
        [("zz", "=", 1)],
        [("`n", "=", 1)],
        [("n", "in", "abc")],
        [("n", "is", 1)],
        [("l", "=", 1)],
        Comparison("=", Column(("n",)), Column(("s",))),
        StartsWith(Column(("n",)), "x"),
        IsNull(Column(("zz",))),
    ],
)
def test_filters_that_make_no_sense_are_refused(given: Any) -> None:
    with pytest.raises(InvalidPredicateError):
        normalize_filter(given, SCHEMA)


def test_a_tree_of_the_users_is_bound() -> None:
    given = And(
        (
            Comparison("<", Column(("ID",)), Literal(3)),
            In(Column(("N",)), (Literal(1), Literal(2.5))),
        )
    )
    assert normalize_filter(given, SCHEMA) == And(
        (
            Comparison("<", col("Id"), lit(3, "long")),
            Or((
                Comparison("=", col("n"), lit(1, "integer")),
                Comparison("=", col("n"), lit(2.5, "double")),
            )),
        )
    )  # fmt: skip


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "Id": st.integers(-(2**63), 2**63 - 1),
    "s": st.text(),
    "d": st.dates(),
    "t": st.datetimes(timezones=st.just(UTC)),
    "u": st.datetimes(),
    "c": st.decimals(-(10**7), 10**7, places=2),
    "x": st.one_of(st.floats(allow_nan=False), st.just(math.nan)),
    "b": st.booleans(),
    "y": st.binary(),
}


@st.composite
def leaves(draw: st.DrawFn) -> Expression:
    name = draw(st.sampled_from(sorted(VALUES)))
    column = Column((name,))
    values = st.one_of(st.just(Literal(None)), VALUES[name].map(Literal))
    kind = draw(st.sampled_from(["compare", "in", "null", "starts"]))
    if kind == "compare":
        return Comparison(draw(st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "<=>"])), column,
                          draw(values))  # fmt: skip
    if kind == "in":
        return In(column, tuple(draw(st.lists(values, min_size=1, max_size=3))))
    return IsNull(column) if kind == "null" else StartsWith(Column(("s",)), draw(st.text()))


def trees(leaf: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, min_size=2, max_size=3).map(lambda p: And(tuple(p))),
            st.lists(inner, min_size=2, max_size=3).map(lambda p: Or(tuple(p))),
        ),
        max_leaves=6,
    )


def flat(expr: Expression) -> Expression:
    from lakelog.core.expressions.tree import join_and, join_or

    match expr:
        case And(parts):
            return join_and(map(flat, parts))
        case Or(parts):
            return join_or(map(flat, parts))
        case Not(part):
            return Not(flat(part))
    return expr


@given(trees(leaves()))
def test_the_sql_of_a_tree_parses_to_the_same_tree(tree: Expression) -> None:
    bound = normalize_filter(tree, SCHEMA)
    assert bound is not None
    assert parsed(to_sql(bound)) == flat(bound)


def test_conjuncts_columns_and_partition_only() -> None:
    both = parsed("n = 1 AND (m = 2 OR d IS NULL) AND st.a = 3")
    assert [to_sql(p) for p in conjuncts(both)] == [
        "n = 1", "m = 2 OR d IS NULL", "st.a = 3",
    ]  # fmt: skip
    assert conjuncts(None) == []
    assert columns(both) == {("n",), ("m",), ("d",), ("st", "a")}
    assert is_partition_only(parsed("n = 1 OR NOT m IN (2)"), ["M", "N"])
    assert not is_partition_only(both, ["n", "m", "d"])
    assert is_partition_only(parsed("n + 1 = 2"), ["n"])
    assert not is_partition_only(parsed("n + rand() = 2"), ["n"])
    assert is_partition_only(parsed("true"), [])
