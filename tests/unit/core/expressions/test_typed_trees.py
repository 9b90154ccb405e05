"""Every node of a typed tree claims a type and whether it may be null; the data keep to both."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.core.arrow.arrow_types import to_arrow_schema, to_arrow_type
from lakelog.core.errors import DeltaError, InvalidPredicateError
from lakelog.core.expressions.binding import bind
from lakelog.core.expressions.coerce import NotInCoreError
from lakelog.core.expressions.context import EvalContext
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    Among,
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    Compare,
    Expression,
    In,
    Interval,
    Lambda,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    NullTest,
    Or,
    StartsWith,
    TruthTest,
    Variable,
    children,
)
from lakelog.core.expressions.values.functions import FUNCTIONS
from lakelog.core.expressions.values.lambdas import LAMBDAS
from lakelog.core.expressions.values.typed import LAZY, _Typer, typed
from lakelog.core.expressions.values.value import Value, array_for
from lakelog.core.schema import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from lakelog.core.schema.column_paths import find_column
from support.examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

CONTEXT = EvalContext(now_ms=0)
BOOLEAN, INT, STRING = map(PrimitiveType, ("boolean", "integer", "string"))
DAY, DAYS = PrimitiveType("date"), st.sampled_from([date(1, 1, 1), date(2024, 2, 29)])
TIMES = st.sampled_from([datetime(1969, 12, 31, 23), datetime(2024, 3, 31, 1, 30, 5, 7)])  # noqa: DTZ001
TEXTS = st.sampled_from(["", "a", " 12 ", "-1.5", "2024-01-02", "a_%", "Straße"])
SMALL = st.sampled_from([-128, -1, 0, 1, 2, 127])
VALUES: dict[DataType, st.SearchStrategy[Any]] = {
    BOOLEAN: st.booleans(),
    PrimitiveType("byte"): SMALL,
    PrimitiveType("short"): SMALL,
    INT: SMALL | st.sampled_from([-(1 << 31), (1 << 31) - 1]),
    PrimitiveType("long"): SMALL | st.sampled_from([-(1 << 63), (1 << 63) - 1]),
    PrimitiveType("float"): st.sampled_from([-0.0, 0.5, 3.0, float("nan"), float("inf")]),
    PrimitiveType("double"): st.sampled_from([-0.0, 0.5, 3.0, float("nan"), 1e300]),
    DecimalType(5, 2): st.sampled_from([Decimal("-999.99"), Decimal(0), Decimal("1.25")]),
    DecimalType(38, 10): st.sampled_from([Decimal("0.0000000001"), Decimal(10**27)]),
    STRING: TEXTS,
    PrimitiveType("binary"): st.sampled_from([b"", b"a", b"\xff"]),
    DAY: DAYS,
    PrimitiveType("timestamp"): TIMES.map(lambda each: each.replace(tzinfo=UTC)),
    PrimitiveType("timestamp_ntz"): TIMES,
}
KINDS = st.sampled_from([*VALUES])


@st.composite
def schemas(draw: st.DrawFn) -> StructType:
    """Columns `a`, `b` and `c` of one or two types, that they meet, and a nested `d`."""
    few: st.SearchStrategy[DataType] = st.sampled_from(
        draw(st.lists(KINDS, min_size=1, max_size=2))
    )
    inner = draw(few)
    options: list[DataType] = []
    for each in (True, False):
        options += [ArrayType(inner, each)] * 3 + [MapType(STRING, inner, each)]
        options.append(StructType((StructField("x", inner, each),)))
    nested = draw(st.sampled_from(options))
    kinds: list[DataType] = [*(draw(few) for _ in "abc"), nested]
    pairs = zip("abcd", kinds, strict=True)
    return StructType(tuple(StructField(*each, draw(st.booleans())) for each in pairs))


def values_of(kind: DataType, *, nullable: bool) -> st.SearchStrategy[Any]:
    found: st.SearchStrategy[Any]
    match kind:
        case ArrayType(inner, contains_null):
            found = st.lists(values_of(inner, nullable=contains_null), max_size=3)
        case MapType(_, inner, contains_null):
            found = st.dictionaries(TEXTS, values_of(inner, nullable=contains_null), max_size=2)
            found = found.map(lambda each: [*each.items()])
        case StructType():
            (field,) = kind
            found = st.fixed_dictionaries(
                {field.name: values_of(field.data_type, nullable=field.nullable)}
            )
        case _:
            found = VALUES[kind]
    return st.none() | found if nullable else found


LITERALS = st.one_of(
    st.just(Literal(None)),
    st.booleans().map(lambda each: Literal(each, BOOLEAN)),
    SMALL.map(lambda each: Literal(each, INT)),
    TEXTS.map(lambda each: Literal(each, STRING)),
    st.just(Literal(Decimal("1.5"), DecimalType(2, 1))),
    DAYS.map(lambda each: Literal(each, DAY)),
)
NAMES = st.sampled_from([*(Name((name,)) for name in "aabbccd"), Name(("d", "x"))])
NESTED = st.just(Name(("d",)))
INTERVALS = st.builds(Interval, SMALL, st.sampled_from(["YEAR", "MONTH", "DAY", "HOUR"]))


def joined(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """Every kind of node over some others."""
    both = st.tuples(inner, inner)
    operators = st.sampled_from(["+", "-", "*", "/", "DIV", "%"])
    steps = st.lists(st.tuples(operators, inner), min_size=1, max_size=2).map(tuple)
    moved = st.tuples(st.tuples(st.sampled_from("+-"), INTERVALS))
    arguments = st.lists(inner, min_size=1, max_size=3).map(tuple)
    variable: Expression = Variable(("e",))
    bodies = inner | st.sampled_from([variable, NullTest(variable)])
    lambdas = bodies.map(lambda body: Lambda(("e",), Compare("=", variable, body))) | (
        bodies.map(lambda body: Lambda(("e",), body))
    )
    conditions = inner | st.builds(Compare, st.just("<"), inner, inner)
    tests = st.tuples(conditions)
    return st.one_of(
        st.builds(Negative, inner),
        st.builds(Arithmetic, inner, steps),
        st.builds(Arithmetic, inner, moved),
        st.builds(Cast, inner, KINDS, st.booleans()),
        st.builds(Call, st.sampled_from([*FUNCTIONS, *LAZY, *LAZY]), arguments),
        st.builds(Call, st.sampled_from([*LAMBDAS]), st.tuples(NESTED, lambdas)),
        st.builds(
            Call,
            st.just("aggregate"),
            st.tuples(
                NESTED,
                inner,
                st.just(Lambda(("a", "e"), Variable(("e",)))),
                bodies.map(lambda body: Lambda(("e",), body)),
            ),
        ),
        st.builds(Case, tests, st.tuples(inner), inner),
        st.builds(Compare, st.sampled_from(["=", "!=", "<", ">=", "<=>"]), inner, inner),
        st.builds(Between, inner, inner, inner),
        st.builds(Among, inner, both),
        st.builds(NullTest, inner),
        st.builds(TruthTest, conditions, st.booleans()),
        st.builds(Like, inner, st.just(Literal("a%", STRING)), st.booleans()),
        st.builds(Not, conditions),
        st.builds(And, st.tuples(conditions, conditions)),
        st.builds(Or, st.tuples(conditions, conditions)),
    )


LEAVES = NAMES | NAMES | LITERALS
TREES = st.lists(joined(LEAVES | joined(LEAVES)), min_size=20, max_size=30)


@st.composite
def rows_of(draw: st.DrawFn) -> tuple[StructType, pa.RecordBatch]:
    schema = draw(schemas())
    count = draw(st.integers(0, 3))
    data = [
        draw(
            st.lists(
                values_of(each.data_type, nullable=each.nullable), min_size=count, max_size=count
            )
        )
        for each in schema
    ]
    arrow = to_arrow_schema(schema)
    columns = [pa.array(each, kind.type) for each, kind in zip(data, arrow, strict=True)]
    return schema, pa.RecordBatch.from_arrays(columns, schema=arrow)


def apart(tree: Expression) -> Iterator[Expression]:
    """The tree, and each part of it that has a meaning alone: only a lambda's body has none."""
    yield tree
    for each in children(tree):
        if not isinstance(each, Lambda):
            yield from apart(each)


def nodes(value: Value) -> Iterator[Value]:
    """Of a typed tree all nodes but the bodies of lambdas, which have rows of their own."""
    yield value
    for each in value.parts:
        if not isinstance(each.node, Lambda):
            yield from nodes(each)


def keeps(value: Value, data: Any) -> None:
    """The data are of the type that a node claims, and null only where it says so."""
    shown = f"{value.node} claims {value.data_type}"
    assert data.type == to_arrow_type(value.data_type), shown
    nulls = not data.is_valid if isinstance(data, pa.Scalar) else data.null_count
    assert value.nullable or not nulls, shown


def test_each_node_has_data_of_the_type_that_it_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever asks for the data of a node, a lambda for those of its body among others."""
    rule, counts = _Typer.value, Counter[str]()

    def watched(typer: _Typer, node: Expression) -> Value:
        found = rule(typer, node)

        def of(rows: Any) -> Any:
            data = found.of(rows)
            keeps(found, data)
            counts[f"{type(node).__name__} {found.nullable}"] += 1
            return data

        return found._replace(of=of)

    monkeypatch.setattr(_Typer, "value", watched)

    @settings(max_examples=examples(60), deadline=None)
    @given(rows_of(), TREES)
    def check(rows: tuple[StructType, pa.RecordBatch], trees: list[Expression]) -> None:
        schema, batch = rows
        for each in chain.from_iterable(map(apart, trees)):
            try:
                value = typed(each, schema, CONTEXT)
            except (NotInCoreError, InvalidPredicateError, pa.ArrowException):
                continue  # what it is made of is looked at on its own
            counts["trees"] += 1
            try:
                value.of(batch)
            except (NotInCoreError, DeltaError, pa.ArrowException):
                counts["without a result"] += 1

    check()
    assert counts["trees"] > 500
    seen = {each.split()[0] for each in counts}
    assert seen >= {"Arithmetic", "Call", "Cast", "Compare", "Literal", "Name", "NullTest"}
    assert counts["Name False"] > 100


@settings(max_examples=examples(32), deadline=None)
@given(rows_of(), TREES)
def test_a_condition_is_typed_alike_before_it_is_bound_and_after(
    rows: tuple[StructType, pa.RecordBatch], trees: list[Expression]
) -> None:
    schema, batch = rows
    for each in chain.from_iterable(map(apart, trees)):
        try:
            bare = typed(each, schema, CONTEXT)
            bound = typed(bind(each, schema, CONTEXT), schema, CONTEXT)
        except (NotInCoreError, InvalidPredicateError, pa.ArrowException):
            continue
        if bare.data_type != BOOLEAN:
            continue
        assert bound.data_type in (BOOLEAN, PrimitiveType("void"))  # NULL alone
        try:
            was, now = (array_for(value, batch) for value in (bare, bound))
        except (NotInCoreError, DeltaError, pa.ArrowException):
            continue
        for value in nodes(bound):
            keeps(value, value.of(batch))
        assert now.to_pylist() == was.to_pylist(), to_sql(each)


@settings(max_examples=examples(16), deadline=None)
@given(st.data())
def test_a_bound_condition_is_null_where_its_column_is(data: st.DataObject) -> None:
    kind = data.draw(KINDS)
    literals = VALUES[kind].map(lambda each: Literal(each, kind))
    low, high = data.draw(literals), data.draw(literals)
    schema = StructType((StructField("a", kind), StructField("s", STRING)))
    columns = {"a": [None, data.draw(VALUES[kind])], "s": [None, data.draw(TEXTS)]}
    batch = pa.RecordBatch.from_pydict(columns, schema=to_arrow_schema(schema))
    column, text, start = Name(("A",)), Name(("S",)), Literal("a", STRING)
    trees: list[Expression] = [
        Like(text, Literal("a%", STRING)),
        Among(text, (start, Literal("", STRING))),
        Call("startswith", (text, start)),
        Among(column, (low, high)),
        Among(column, (low, Literal(None))),
        Compare("=", column, low),
        Between(column, low, high),
    ]
    bound = [bind(each, schema, CONTEXT) for each in trees]
    assert [*map(type, bound[:3])] == [StartsWith, In, StartsWith]
    for each in bound:
        found = typed(each, schema, CONTEXT)
        keeps(found, found.of(batch))
        assert array_for(found, batch)[0].as_py() is None, to_sql(each)
    safe = typed(bind(Compare("<=>", column, low), schema, CONTEXT), schema, CONTEXT)
    keeps(safe, safe.of(batch))


def test_a_long_filter_looks_up_each_column_once(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = StructType((StructField("a", INT), StructField("s", STRING)))
    numbers = [Compare("=", Name(("a",)), Literal(each, INT)) for each in range(300)]
    texts = [Compare("=", Name(("s",)), Literal(str(each), STRING)) for each in range(300)]
    bound, asked = bind(Or((*numbers, *texts)), schema, CONTEXT), Counter[str]()

    def found(path: Sequence[str], schema: StructType) -> tuple[tuple[str, ...], DataType] | None:
        asked[path[0]] += 1
        return find_column(path, schema)

    monkeypatch.setattr("lakelog.core.expressions.values.typed.find_column", found)
    assert len(typed(bound, schema, CONTEXT).parts) == 600
    assert asked == {"a": 1, "s": 1}
