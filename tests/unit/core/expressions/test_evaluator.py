"""What the core evaluates itself; `test_sql_values_as_spark.py` holds it against Spark."""

from __future__ import annotations

import contextlib
import re
import sys
from datetime import date, datetime
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.arrow.arrow_types import from_arrow_schema, to_arrow_schema, to_arrow_type
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.parse.sql import parse_sql
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    Among,
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Compare,
    Interval,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    NullTest,
    TruthTest,
)
from lakelog.core.expressions.values.evaluate import evaluate_value, value_type
from lakelog.core.expressions.values.functions import FUNCTIONS
from lakelog.core.expressions.values.typed import LAZY, typed
from lakelog.core.schema import (
    ArrayType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from support.examples import examples
from support.expressions.texts import CONDITIONS, VALUES
from support.expressions.texts import SCHEMA as TABLE
from support.expressions.texts import rows as table_rows

if TYPE_CHECKING:
    from decimal import Decimal

    from lakelog.core.expressions.tree import Expression
    from lakelog.core.schema import DataType

LONG, STRING, INT = PrimitiveType("long"), PrimitiveType("string"), PrimitiveType("integer")
SCHEMA = StructType((StructField("a", LONG), StructField("b", LONG), StructField("s", STRING)))


def values(sql: str, target: Any = None, **columns: list[Any]) -> list[Any]:
    size = len(next(iter(columns.values()), [None]))
    types = {"a": pa.int64(), "b": pa.int64(), "s": pa.string()}
    data = {name: pa.array(columns.get(name, [None] * size), t) for name, t in types.items()}
    kind = target or value_type(sql, SCHEMA) or STRING
    found: list[Any] = evaluate_value(sql, pa.table(data), SCHEMA, kind).to_pylist()
    return found


longs = st.integers(-(1 << 62), (1 << 62) - 1)
small = st.integers(-(1 << 30), 1 << 30)


@given(st.lists(st.tuples(small, small.filter(bool)), min_size=1))
def test_integers_divide_as_java_does(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    quotients, rests = values("a div b", a=a, b=b), values("a % b", a=a, b=b)
    for x, y, q, r in zip(a, b, quotients, rests, strict=True):
        assert q * y + r == x
        assert abs(r) < abs(y)
        assert r == 0 or (r > 0) == (x > 0)
    for r, y in zip(values("pmod(a, b)", a=a, b=b), b, strict=True):
        assert y < 0 or 0 <= r < y


@settings(max_examples=examples(24), deadline=None)
@given(st.lists(st.decimals(-(10**11), 10**11, places=7), min_size=1, max_size=8))
def test_decimals_become_the_nearest_double_and_lose_their_fraction(found: list[Decimal]) -> None:
    schema = StructType((StructField("d", DecimalType(20, 7)),))
    rows = pa.table({"d": pa.array(found, pa.decimal128(20, 7))})

    def cast(kind: str) -> list[Any]:
        data = evaluate_value("d", rows, schema, PrimitiveType(kind))
        return list(data.to_pylist())

    assert cast("double") == [float(each) for each in found]
    assert cast("long") == [int(each) for each in found]


@given(st.lists(longs, min_size=1), st.lists(longs, min_size=1))
def test_sums_are_exact_or_refused(a: list[int], b: list[int]) -> None:
    size = min(len(a), len(b))
    expected = [x + y for x, y in zip(a[:size], b[:size], strict=True)]
    if all(-(1 << 63) <= each < 1 << 63 for each in expected):
        assert values("a + b", a=a[:size], b=b[:size]) == expected
    else:
        with pytest.raises(DeltaAnalysisError, match="overflow"):
            values("a + b", a=a[:size], b=b[:size])


@given(st.lists(st.text() | st.none(), min_size=1), st.integers(-9, 9), st.integers(-2, 9))
def test_substrings_are_those_of_spark_s_definition(
    texts: list[str | None], start: int, length: int
) -> None:
    def spark(text: str) -> str:
        begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
        return text[max(begin, 0) : max(begin + max(length, 0), 0)]

    expected = [None if t is None else spark(t) for t in texts]
    assert values(f"substring(s, {start}, {length})", s=texts) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "rand()",
        "my_function(a)",
        "base64(s)",
        "CAST(a AS TIMESTAMP_NTZ)",
        "CAST(NULL AS STRUCT<x: INT, y: STRING>)",
        "CAST(NULL AS MAP<STRING, ARRAY<DECIMAL(3, 2)>>)",
        "a + 1.5F",
        "date_format(current_date(), 'yyyy')",
        "if(a > 0, exp(a), 0)",
        "s || a + 1",
        "'back\\slash'",
        "s LIKE s",
        "a[0]",
        "substring(s, a)",
        "length(a)",
        "year()",
    ],
)
def test_what_is_left_to_spark_is_refused_by_name(sql: str) -> None:
    with pytest.raises(InvalidPredicateError, match="only Spark evaluates") as caught:
        values(sql, STRING, a=[1], s=["x"])
    assert repr(sql) in str(caught.value)


@pytest.mark.parametrize("sql", ["a +", "SELECT 1", "", "a b"])
def test_what_is_no_expression_is_refused(sql: str) -> None:
    with pytest.raises(InvalidPredicateError):
        values(sql, STRING, a=[1])


def test_an_unknown_column_is_reported_with_the_known_ones() -> None:
    with pytest.raises(InvalidPredicateError, match=r"unknown column aa.*did you mean a"):
        values("aa + 1", LONG, a=[1])


def test_columns_are_found_in_any_case_and_batches_keep_their_order() -> None:
    batches = [pa.record_batch({"a": [i], "b": [0], "s": ["x"]}) for i in range(3)]
    rows = pa.Table.from_batches(batches)
    assert evaluate_value("`A` * 2", rows, SCHEMA, LONG).to_pylist() == [0, 2, 4]


def test_a_value_is_cast_to_its_column_s_type_or_refused() -> None:
    assert values("a", INT, a=[5]) == [5]
    with pytest.raises(DeltaAnalysisError, match=r"has no result for some row.*ansi\.enabled"):
        values("a", INT, a=[1 << 40])


@pytest.mark.parametrize(
    ("sql", "value"), [("hour(ts)", 22), ("CAST(CAST(ts AS DATE) AS STRING)", "2049-03-22")]
)
def test_a_zone_keeps_its_last_rules(sql: str, value: Any) -> None:
    schema = StructType((StructField("ts", PrimitiveType("timestamp")),))
    far = pa.table({"ts": pa.array([2_500_060_800_000_000], pa.timestamp("us", "UTC"))})
    kind = value_type(sql, schema)
    assert kind is not None
    found = evaluate_value(sql, far, schema, kind, EvalContext("Europe/Berlin"))
    assert found.to_pylist() == [value]


DAYS = pa.table(
    {
        "d": pa.array([date(2024, 1, 31), date(2023, 3, 1), None]),
        "s": pa.array(["ABC", "straße", None]),
        "t": pa.array([0, 1_700_000_000_000_000, None]).cast(pa.timestamp("us", "UTC")),
    }
)


@pytest.mark.parametrize(
    ("sql", "kind", "values"),
    [
        ("EXTRACT(year FROM d)", "integer", [2024, 2023, None]),
        ("extract(DOW FROM d)", "integer", [4, 4, None]),
        ("date_part('week', t)", "integer", [1, 46, None]),
        ("d + INTERVAL 1 DAY", "date", [date(2024, 2, 1), date(2023, 3, 2), None]),
        ("d - INTERVAL '31' DAYS", "date", [date(2023, 12, 31), date(2023, 1, 29), None]),
        ("s ILIKE '%b%'", "boolean", [True, False, None]),
        ("s NOT ILIKE 'STRAß_'", "boolean", [True, False, None]),
    ],
)
def test_forms_with_a_grammar_of_their_own(sql: str, kind: str, values: list[Any]) -> None:
    schema = from_arrow_schema(DAYS.schema)
    assert value_type(sql, schema) == PrimitiveType(kind)
    assert evaluate_value(sql, DAYS, schema, PrimitiveType(kind)).to_pylist() == values


@pytest.mark.parametrize(
    "sql",
    [
        "EXTRACT(second FROM t)",
        "d + INTERVAL 1 HOUR",
        "t + INTERVAL '1-2' YEAR TO MONTH",
        "d + INTERVAL '1 2' DAY TO HOUR",
        "d + INTERVAL 99999999999 DAY",
        "INTERVAL 1 DAY",
        "s ILIKE s",
        "s ILIKE NULL",
        "s ILIKE ANY ('a', 'b')",
        "s RLIKE '(?i)a'",
    ],
)
def test_what_would_need_more_is_left_to_spark(sql: str) -> None:
    assert value_type(sql, from_arrow_schema(DAYS.schema)) is None


@pytest.mark.one_day_in(3, 2)
@pytest.mark.parametrize(
    ("between", "part", "found"),
    [
        (" OR ", "a = {}", [True, False, None]),
        (" AND ", "a <> {}", [False, True, None]),
        (" AND a > 0 OR ", "a = {}", [True, False, None]),
        (" + ", "a * 0", [0, 0, None]),
        (" - 1 + ", "1", [1, 1, 1]),
        (" || ", "s", ["x" * 3000, "y" * 3000, None]),
    ],
)
def test_no_chain_is_too_long(between: str, part: str, found: list[Any]) -> None:
    sql = between.join(part.format(i) for i in range(3000))
    assert values(sql, a=[2999, 3000, None], s=["x", "y", None]) == found


def test_a_long_chain_is_found_from_the_left() -> None:
    most = (1 << 63) - 1
    assert values("a - b - b - b", a=[3], b=[1]) == [0]
    assert values("a - b + b", a=[most], b=[1]) == [most]
    with pytest.raises(DeltaAnalysisError, match="overflow"):
        values("a + b - b", a=[most], b=[1])


ODD = pa.table({"x": [1e300, 1.005, None], "i": [0, 2, 5], "s": ["9" * 500, "1", "2"]})


def odd(sql: str) -> list[Any]:
    schema = from_arrow_schema(ODD.schema)
    kind = value_type(sql, schema)
    assert kind is not None
    found: list[Any] = evaluate_value(sql, ODD, schema, kind).to_pylist()
    return found


def test_numbers_of_many_digits_are_rounded_or_refused() -> None:
    assert odd("round(x, 2)") == [1e300, 1.01, None]
    assert odd("round(x, 20)") == [1e300, 1.005, None]
    assert value_type("round(x, 1000)", from_arrow_schema(ODD.schema)) is None
    with pytest.raises(DeltaAnalysisError, match="does not fit"):
        odd("CAST(s AS DECIMAL(38, 2))")


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a?){30}b", "(a){2,}"])
def test_a_pattern_that_may_take_for_ever_is_not_tried(pattern: str) -> None:
    assert value_type(f"s RLIKE '{pattern}'", from_arrow_schema(ODD.schema)) is None


@given(
    st.lists(
        st.text(max_size=4)
        | st.integers(-(10**20), 10**20).map(str)
        | st.sampled_from(["2024-02-29", "2024-02-30", "2023-1", "true", " 7 ", "1e1", "-0.5"]),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(["TINYINT", "INT", "BIGINT", "BOOLEAN", "DATE", "DOUBLE", "DECIMAL(5,2)"]),
)
def test_what_is_tried_is_the_cast_or_null(texts: list[str], kind: str) -> None:
    def alone(text: str) -> Any:
        try:
            return values(f"CAST(s AS {kind})", s=[text])[0]
        except InvalidPredicateError:
            raise
        except DeltaAnalysisError:
            return None

    try:
        expected = [alone(each) for each in texts]
    except InvalidPredicateError:
        with pytest.raises(InvalidPredicateError, match="only Spark evaluates"):
            values(f"TRY_CAST(s AS {kind})", s=texts)
    else:
        assert values(f"TRY_CAST(s AS {kind})", s=texts) == expected


PATTERNS = {
    "yyyy-MM-dd HH:mm:ss.SSSSSS": "%Y-%m-%d %H:%M:%S.%f",
    "yyyyMMdd'T'HHmmss.SSSSSSSSS": "%Y%m%dT%H%M%S.%f000",
    "d.M.yyyy 'um' H'h' m": "%-d.%-m.%Y um %-Hh %-M",
    "MMddyyyyHHmmss": "%m%d%Y%H%M%S",
    "ss:mm:HH dd/MM/yyyy": "%S:%M:%H %d/%m/%Y",
    "yyyyMMdd": "%Y%m%d",
    "yyyy": "%Y",
}


@given(st.datetimes(min_value=datetime(1900, 1, 1)), st.sampled_from([*PATTERNS]))  # noqa: DTZ001
def test_a_time_is_read_by_the_pattern_that_wrote_it(moment: datetime, pattern: str) -> None:
    text = moment.strftime(PATTERNS[pattern])
    found = values(f'CAST(to_timestamp(s, "{pattern}") AS STRING)', s=[text, None])
    form = PATTERNS[pattern].replace("%-", "%")
    kept = datetime.strptime(text, form)  # noqa: DTZ007
    assert found == [re.sub(r"\.?0*$", "", f"{kept:%Y-%m-%d %H:%M:%S.%f}"), None]


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        ("EEE, d MMM yyyy", "'EEE'"),
        ("yyyy-MM-dd hh:mm a", "'hh'"),
        ("yyyy-MM-ddTHH:mm", "'T'"),
        ("dd/MM/yy", "'yy'"),
        ("dd.MM", "leaves out or repeats"),
        ("yyyy-dd", "leaves out or repeats"),
        ("yyyyMd", "next to each other"),
        ("HmmyyyyMMdd", "next to each other"),
        ("yyyyMMddHHmmssSSS", "next to each other"),
        ("yyyy[-MM]", "the date pattern"),
        ("yyyy''", "''"),
        ("'only text'", "leaves out or repeats"),
    ],
)
def test_a_pattern_that_java_reads_otherwise_is_refused_by_its_part(
    pattern: str, part: str
) -> None:
    for name in ("to_date", "to_timestamp"):
        with pytest.raises(InvalidPredicateError, match="only Spark evaluates") as caught:
            values(f'{name}(s, "{pattern}")', STRING, s=["2024"])
        assert part in str(caught.value)


def test_hashes_are_those_of_spark_s_documentation() -> None:
    rows = pa.table({"s": ["Spark"], "l": pa.array([[123]], pa.list_(pa.int32()))})
    schema = from_arrow_schema(rows.schema)
    for name, kind, wanted in (("hash", INT, -1321691492), ("xxhash64", LONG, 5602566077635097486)):
        assert evaluate_value(f"{name}(s, l, 2)", rows, schema, kind).to_pylist() == [wanted]


@given(st.lists(st.none() | st.integers(-(1 << 63), (1 << 63) - 1), min_size=1))
def test_a_column_s_hashes_are_those_of_its_values(found: list[int | None]) -> None:
    """Numbers are hashed all at once, bytes one by one, and one is the other."""
    for name in ("hash", "xxhash64"):
        data = [None if each is None else each.to_bytes(8, "little", signed=True) for each in found]
        rows = pa.table({"n": pa.array(found, pa.int64()), "y": pa.array(data, pa.binary())})
        schema = from_arrow_schema(rows.schema)
        same = evaluate_value(f"{name}(n) = {name}(y)", rows, schema, PrimitiveType("boolean"))
        assert same.to_pylist() == [True] * len(found)


ITEMS = pa.table({"l": pa.array([[1, None], [], None], pa.list_(pa.int64()))})


def test_an_element_that_is_not_there_is_an_error_or_null() -> None:
    schema = from_arrow_schema(ITEMS.schema)
    tried = evaluate_value("try_element_at(l, -2)", ITEMS, schema, LONG)
    assert tried.to_pylist() == [1, None, None]
    with pytest.raises(DeltaAnalysisError, match="an array of 0 elements has no element 2: try_"):
        evaluate_value("element_at(l, 2)", ITEMS, schema, LONG)
    with pytest.raises(DeltaAnalysisError, match="counts from 1"):
        evaluate_value("try_element_at(l, 0)", ITEMS, schema, LONG)


NESTED = {
    "coalesce({} div 1, i div 1)": "(i + 1)",
    "(i >= 0 AND {})": "1 div (i - i) > 0",  # fails at each level
}


@pytest.mark.parametrize("form", NESTED)
def test_what_is_nested_is_evaluated_once_a_level(form: str) -> None:
    """A part that is tried and then evaluated again would double the work with each level."""
    counts = []
    for depth in (4, 8):
        sql = NESTED[form]
        for _ in range(depth):
            sql = form.format(sql)
        with contextlib.suppress(DeltaAnalysisError):
            odd(sql)  # what is done once, is done
        walked: list[object] = []

        def seen(frame: Any, event: str, arg: Any, walked: list[object] = walked) -> None:
            if event == "call":
                walked.append(frame)

        sys.setprofile(seen)
        try:
            with contextlib.suppress(DeltaAnalysisError):
                odd(sql)
        finally:
            sys.setprofile(None)
        counts.append(len(walked))
    assert counts[1] <= 2.5 * counts[0]


FULL_SCHEMA = StructType(
    tuple(StructField(each.name, each.data_type, False, each.metadata) for each in TABLE)
)
FULL = table_rows().slice(0, table_rows().num_rows - 1)


@pytest.mark.parametrize("may_be_null", [True, False])
def test_what_is_never_null_is_never_null(may_be_null: bool) -> None:
    """Of every recorded expression, over columns with nulls and over ones without."""
    schema, rows = (TABLE, table_rows()) if may_be_null else (FULL_SCHEMA, FULL)
    counts = {True: 0, False: 0}
    for text in (*VALUES, *CONDITIONS):
        try:
            value = typed(parse_sql(text), schema, EvalContext(now_ms=0))
            found = [value.of(batch) for batch in rows.to_batches()]
        except (NotInCoreError, InvalidPredicateError, pa.ArrowException):
            continue
        counts[value.nullable] += 1
        nulls = sum(not each.is_valid if value.constant else each.null_count for each in found)
        assert value.nullable or not nulls, text
    assert counts[may_be_null] > 400


def test_an_argument_behind_one_that_is_never_null_is_not_evaluated() -> None:
    rows = FULL.select(["i"])
    sql = "coalesce(i, 1 div (i - i))"
    assert evaluate_value(sql, rows, FULL_SCHEMA, INT).equals(rows["i"])


KINDS: dict[str, DataType] = {
    **{name: PrimitiveType(name) for name in ("byte", "long", "double", "boolean", "string")},
    **{name: PrimitiveType(name) for name in ("binary", "date", "timestamp", "timestamp_ntz")},
    **{name: PrimitiveType(name) for name in ("void", "variant")},
    "decimal": DecimalType(10, 2),
    "array": ArrayType(INT),
    "map": MapType(STRING, INT),
    "struct": StructType((StructField("n", INT),)),
}
OF_KINDS = StructType(tuple(StructField(name, kind) for name, kind in KINDS.items()))
DAYS_ON = Interval(2, "DAY")
ONE, WORD = Literal(1, INT), Literal("a", STRING)


def joined(parts: tuple[Expression, ...]) -> list[Expression]:
    """Every function and operator that takes so many parts."""
    found: list[Expression] = [Call(name, parts) for name in (*FUNCTIONS, *LAZY)]
    if len(parts) == 1:
        return [*found, Negative(*parts), Not(*parts), NullTest(*parts), TruthTest(*parts, True)]
    left, right = parts
    found += [Compare(op, left, right) for op in ("=", "<", "<=>")]
    found += [Arithmetic(left, ((op, right),)) for op in ("+", "*", "/", "DIV", "%")]
    found += [Case((left,), (left,), right), Among(left, (right, ONE)), Like(left, right)]
    return [*found, And(parts), Between(left, right, left), Arithmetic(left, (("+", DAYS_ON),))]


@pytest.mark.parametrize("count", [1, 2])
def test_what_has_a_type_has_data_of_that_type(count: int) -> None:
    """For a pair of types that Arrow can't join there is no type, rather than an error of Arrow."""
    schema = to_arrow_schema(OF_KINDS)
    rows = pa.RecordBatch.from_arrays([pa.nulls(1, each.type) for each in schema], schema=schema)
    columns: list[Expression] = [Name((name,)) for name in KINDS]
    taken = 0
    for parts in product(columns, [*columns, ONE, WORD]) if count == 2 else zip(columns):
        for tree in joined(parts):
            try:
                value = typed(tree, OF_KINDS, EvalContext(now_ms=0))
            except NotInCoreError:
                continue
            if value.error is not None:
                assert isinstance(value.error, pa.ArrowInvalid)  # 'a' is no number
                continue
            assert value.of(rows).type == to_arrow_type(value.data_type), to_sql(tree)
            taken += 1
    assert taken > 300 * count


@pytest.mark.parametrize(
    ("sql", "kind", "found"),
    [
        ("pmod(i, 2147483647)", "int", [2147483646, 1, None]),
        ("pmod(-i, 2147483647)", "int", [1, 2147483646, None]),
        ("pmod(CAST(-100 AS TINYINT), CAST(-128 AS TINYINT))", "tinyint", [-100] * 3),
        ("pmod(9223372036854775806, 9223372036854775807)", "bigint", [(1 << 63) - 2] * 3),
        ("floor(x)", "bigint", [(1 << 63) - 1, 0, None]),
        ("ceil(-x)", "bigint", [-(1 << 63), 0, None]),
        ("-2147483648", "int", [-(1 << 31)] * 3),
        ("-(2147483648)", "bigint", [-(1 << 31)] * 3),
        ("-9223372036854775808", "bigint", [-(1 << 63)] * 3),
        ("hash(-2147483648) = hash(CAST('-2147483648' AS INT))", "boolean", [True] * 3),
    ],
)
def test_numbers_at_the_ends_of_their_types(sql: str, kind: str, found: list[Any]) -> None:
    table = pa.table(
        {
            "i": pa.array([2147483646, 1, None], pa.int32()),
            "x": [float("inf"), float("nan"), None],
        }
    )
    schema = from_arrow_schema(table.schema)
    target = value_type(sql, schema)
    assert str(target) == kind
    assert target is not None
    assert evaluate_value(sql, table, schema, target).to_pylist() == found


def test_the_smallest_integers_are_written_as_they_are_read() -> None:
    for sql in ("-2147483648", "-(-2147483648)", "1 - -9223372036854775808"):
        assert to_sql(parse_sql(sql)) == sql


@pytest.mark.parametrize("scale", [20, 28, 37])
def test_an_integer_becomes_a_decimal_of_any_scale(scale: int) -> None:
    for source in (pa.array([1, None], pa.int64()), pa.array([True, None])):
        table = pa.table({"n": source})
        schema = from_arrow_schema(table.schema)
        found = evaluate_value("n", table, schema, DecimalType(38, scale)).to_pylist()
        assert found == [1, None]


@pytest.mark.parametrize("sql", ["round(9223372036854775807, -1)", "round(n, -1)"])
def test_what_rounds_to_more_than_a_long_holds_has_no_result(sql: str) -> None:
    table = pa.table({"n": [(1 << 63) - 1]})
    with pytest.raises(DeltaAnalysisError, match="no result for some row"):
        evaluate_value(sql, table, from_arrow_schema(table.schema), LONG)


def test_days_beyond_python_s_are_left_to_spark() -> None:
    table = pa.table({"days": pa.array([[2_932_897]], pa.list_(pa.date32()))})
    with pytest.raises(InvalidPredicateError, match="only Spark"):
        evaluate_value("size(days)", table, from_arrow_schema(table.schema), INT)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("n BETWEEN 5 AND n DIV m", [False, False]),
        ("n IN (1, n DIV m)", [True, True]),
        ("n IN (n, n DIV m, NULL)", [True, True]),
        ("n NOT IN (1, n DIV m)", [False, False]),
    ],
)
def test_a_bound_or_an_item_is_computed_where_it_is_asked_for(sql: str, found: list[bool]) -> None:
    table = pa.table({"n": [1, 2], "m": [0, 1]})
    schema = from_arrow_schema(table.schema)
    values = evaluate_value(sql, table, schema, PrimitiveType("boolean"))
    assert values.to_pylist() == found


def test_an_arm_without_a_value_is_an_error_of_the_rows_that_ask_for_it() -> None:
    schema = from_arrow_schema(pa.schema({"n": pa.int64()}))
    for sql, found in (("if(n > 0, n, 1 DIV 0)", [1, 2]), ("nvl(n, 1 DIV 0)", [1, 2])):
        taken = evaluate_value(sql, pa.table({"n": [1, 2]}), schema, LONG)
        assert taken.to_pylist() == found
        with pytest.raises(DeltaAnalysisError, match="divide by zero"):
            evaluate_value(sql, pa.table({"n": pa.array([None], pa.int64())}), schema, LONG)


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("coalesce(n, 7)", [1, 7]),
        ("coalesce(n, m, 7 DIV m)", [1, 2]),
        ("coalesce(coalesce(n, m), 7)", [1, 2]),
        ("coalesce(st.x, n, -1)", [3, -1]),
        ("coalesce(7, n)", [7, 7]),
        ("coalesce(NULL, 7, 1 DIV 0)", [7, 7]),
    ],
)
def test_null_in_a_column_that_may_not_be_null_is_null(sql: str, found: list[int]) -> None:
    """A file may lack a column that became NOT NULL without it."""
    never = StructField("x", LONG, nullable=False)
    schema = StructType(
        (
            StructField("n", LONG, nullable=False),
            StructField("m", LONG, nullable=False),
            StructField("st", StructType((never,)), nullable=False),
        )
    )
    table = pa.table({"n": [1, None], "m": [2, 2], "st": [{"x": 3}, {"x": None}]})
    assert evaluate_value(sql, table, schema, LONG).to_pylist() == found
