"""One walk over a tree: of each node the type, whether it may be null, and what computes it.

What a function gives is said once, by its `Rule`: the type, and what computes it. A tree from the
parser has a type only here; one that is bound is typed by the same rules, whole.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import pyarrow as pa

from lakelog.core.arrays import array_of, integers, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.comparing import compare
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaError
from lakelog.core.expressions.coerce import (
    INTEGERS,
    NotInCoreError,
    as_decimal,
    common_type,
    compared_type,
    has_order,
)
from lakelog.core.expressions.sql_text import to_sql
from lakelog.core.expressions.tree import (
    Among,
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Comparison,
    Computed,
    Expression,
    In,
    Interval,
    IsNull,
    Lambda,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    NullTest,
    Opaque,
    Or,
    StartsWith,
    TruthTest,
    Variable,
    children,
    is_computed,
    walk,
)
from lakelog.core.expressions.values.by_arrow import arrow_mask
from lakelog.core.expressions.values.casts import cast_value, conjoined, try_cast_value
from lakelog.core.expressions.values.char_texts import filled_up
from lakelog.core.expressions.values.decimals import arithmetic
from lakelog.core.expressions.values.explained import explained
from lakelog.core.expressions.values.functions import FUNCTIONS
from lakelog.core.expressions.values.lambdas import LAMBDAS, Argument, Body, element_of
from lakelog.core.expressions.values.numbers import remainder
from lakelog.core.expressions.values.simple import simple_condition
from lakelog.core.expressions.values.times import day_shift, later
from lakelog.core.expressions.values.value import Rule, Value, computed, known, made_of
from lakelog.core.schema import DataType, DecimalType, PrimitiveType, StructField, StructType
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_paths import find_column, unknown_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lakelog.core.expressions.context import EvalContext

_BOOLEAN, _DATE = PrimitiveType("boolean"), PrimitiveType("date")
_LONG, _VOID = PrimitiveType("long"), PrimitiveType("void")
_STRING, _TIMESTAMP = PrimitiveType("string"), PrimitiveType("timestamp")
_FLOAT, _DOUBLE = PrimitiveType("float"), PrimitiveType("double")
_ADDED: Final = {"+": "add", "-": "subtract", "*": "multiply"}
_NULL = pa.nulls(1, pa.bool_())[0]
_may_fail = attrgetter("may_fail")
_signature = functools.cache(inspect.signature)
LAZY: Final = ("coalesce", "ifnull", "nullif", "nvl", "nvl2")
"""Functions of which Spark evaluates an argument only for the rows that need it."""
NOW: Final = ("current_timestamp", "now")
TODAY: Final = ("current_date", "curdate")
_BOUND: Final = (Comparison, In, IsNull, StartsWith)
_HARMLESS: Final = (
    *(Name, Literal, NullTest, TruthTest, Not, And, Or, Between, Among, Compare),
    *_BOUND,
)


def is_now(name: str) -> bool:
    """Whether a name without parentheses may be a function of the current time."""
    return name.lower() in (*NOW, *TODAY)


def typed(root: Expression, schema: StructType, context: EvalContext, *, sql: str = "") -> Value:
    """What a tree is over a schema, by Spark's rules: a tree of values, one for each node.

    An interval is no node of its own here, but a part of its sum.

    Args:
        root: the tree, as the parser made it or bound.
        schema: of the rows.
        context: of the evaluation.
        sql: of the whole expression, for messages.

    Raises:
        InvalidPredicateError: an unknown column.
        NotInCoreError: a part that only Spark evaluates. The data may be refused so too.
    """
    return _Typer(schema, context, sql).value(root)


def typed_condition(root: Expression, schema: StructType, context: EvalContext) -> Value:
    """What a condition is over a schema: true, false or null a row; see `typed`."""
    typer = _Typer(schema, context, "")
    return typer.condition(typer.value(root))


class _Typer:
    def __init__(self, schema: StructType, context: EvalContext, sql: str) -> None:
        self._sql = sql
        self._schema = schema
        self._context = context
        self._variables: dict[str, tuple[str, Value]] = {}
        self._columns: dict[tuple[str, ...], Value] = {}

    def value(self, node: Expression) -> Value:
        if isinstance(node, _BOUND):
            return self._bound(node)
        rule: Any = getattr(self, f"_{type(node).__name__.lower()}", None)
        if rule is None:
            raise NotInCoreError(to_sql(node))
        found: Value
        if isinstance(node, Call | Computed):
            found, parts = rule(node)
        else:
            parts = tuple(map(self.value, _operands(node)))
            found = rule(node, *parts)
        may_fail = not isinstance(node, _HARMLESS) or any(map(_may_fail, parts))
        return found._replace(node=node, parts=parts, may_fail=may_fail)

    def _opaque(self, node: Opaque) -> Value:
        raise NotInCoreError(node.why or to_sql(node))

    def _computed(self, node: Computed) -> tuple[Value, tuple[Value, ...]]:
        """A condition with an error of its own for rows without a result."""
        if node.root is None:
            named = tuple(self.value(Name(each, quoted=True)) for each in sorted(node.columns))
            return made_of(named, _BOOLEAN, partial(arrow_mask, node), nullable=True), named
        with explained(node.sql):
            found = typed(node.root, self._schema, node.context, sql=node.sql)
        return found._replace(of=explained(node.sql)(found.of)), (found,)

    # Values, columns and casts --------------------------------------------------------------

    def _literal(self, node: Literal) -> Value:
        if node.value is None:
            return known(scalar_of(None, pa.null()), _VOID)
        if node.data_type is None:
            raise NotInCoreError(f"{to_sql(node)} without a type")
        return known(scalar_of(node.value, to_arrow_type(node.data_type)), node.data_type)

    def _negative(self, _: Negative, part: Value) -> Value:
        return FUNCTIONS["negative"](self._context, part)

    def _name(self, node: Name) -> Value:
        found = find_column(node.path, self._schema)
        if found is None:
            if len(node.path) == 1 and not node.quoted and is_now(node.path[0]):
                return self._now(node.path[0].lower())
            raise unknown_column(node.path, self._schema, f" in the expression {self._sql!r}")
        path, data_type = found
        limit = limit_of(self._schema.get(path[0])) if len(path) == 1 else None
        char = limit.length if limit is not None and limit.pads else -1
        return Value(data_type, reader(path), _is_nullable(path, self._schema), char=char)

    def _now(self, name: str) -> Value:
        now_ms = self._context.now_ms
        if now_ms is None:
            raise NotInCoreError(f"{name}()")
        seconds, rest = divmod(now_ms, 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
        now = known(scalar_of(moment, to_arrow_type(_TIMESTAMP)), _TIMESTAMP)
        return now if name in NOW else cast_value(now, _DATE, self._context)

    def _cast(self, node: Cast, part: Value) -> Value:
        cast = try_cast_value if node.safe else cast_value
        return cast(_bare(part), node.target, self._context)

    def _variable(self, node: Variable) -> Value:
        name, held = self._variables[node.path[0].lower()]
        inside = StructType((StructField(name, held.data_type, held.nullable),))
        found = find_column((name, *node.path[1:]), inside)
        if found is None:
            raise NotInCoreError(to_sql(node))
        return Value(found[1], reader(found[0]), _is_nullable(found[0], inside))

    def _body(self, node: Lambda, typed: list[Value], *given: Value) -> Body:
        """A lambda whose variables are such values."""
        around, names = self._variables, [each.lower() for each in node.variables]
        if not 0 < len(set(names)) == len(names) <= len(given):
            raise NotInCoreError(to_sql(node))
        columns = [f"\0{len(around)}{name}" for name in names]
        self._variables = around | dict(zip(names, zip(columns, given, strict=False), strict=True))
        value = self.value(node.body)
        self._variables = around
        typed.append(value._replace(node=node, parts=(value,)))
        parts = [each for each in walk(node.body) if isinstance(each, Variable | Name)]
        held = [around.get(each.path[0].lower()) for each in parts if isinstance(each, Variable)]
        fields = [self._schema.get(each.path[0]) for each in parts if isinstance(each, Name)]
        used = {*(each[0] for each in held if each), *(each.name for each in fields if each)}
        return Body(value, columns, sorted(used))

    def _call(self, node: Call) -> tuple[Value, tuple[Value, ...]]:
        """What a function gives, and its arguments; a lambda is of the type of its body."""
        name = node.name
        if is_now(name) and not node.arguments:
            return self._now(name), ()
        if not (name in LAZY or name in LAMBDAS or name in FUNCTIONS):
            raise NotInCoreError(f"the function {name}")
        bodies: list[Value] = []
        given: list[Argument] = [
            partial(self._body, each, bodies) if isinstance(each, Lambda) else self.value(each)
            for each in node.arguments
        ]
        values = [each for each in given if isinstance(each, Value)]
        if name in LAZY:
            return self._first(node, values), tuple(values)
        with _in_core(node):
            rest = [_bare(each) if isinstance(each, Value) else each for each in given]
            if name in LAMBDAS:
                array, *others = rest
                if not isinstance(array, Value):
                    raise NotInCoreError(to_sql(node))
                found = _called(LAMBDAS[name], array, element_of(array), *others)
            else:
                found = _called(FUNCTIONS[name], self._context, *rest)
        found = found if found.constant else found._replace(of=_guarded(node, found.of))
        bodies.reverse()
        return found, tuple(e if isinstance(e, Value) else bodies.pop() for e in given)

    # Arithmetic ------------------------------------------------------------------------------

    def _arithmetic(self, node: Arithmetic, start: Value, *others: Value) -> Value:
        found, steps, right = start, [], iter(others)
        for op, part in node.rest:
            # What is on the left is given to each step: no chain is too long for Python's stack.
            left = found._replace(of=itemgetter(0), constant=False)
            if _moves(part, op):
                count = part.number if op == "+" else -part.number
                found = later(left, count, part.unit, self._context)
            else:
                found = self._step(op, left, _second(next(right)), node)
            steps.append(found.of)

        def of(rows: Any) -> Any:
            data = start.of(rows)
            for step in steps:
                data = step((data, rows))
            return data

        return made_of([start, *others], found.data_type, of, nullable=found.nullable)

    def _step(self, op: str, left: Value, right: Value, node: Arithmetic) -> Value:
        if left.data_type == _DATE and op in "+-":
            if right.data_type not in tuple(map(PrimitiveType, INTEGERS[:3])):
                raise NotInCoreError(f"a date and {right.data_type} in one sum")
            return day_shift(self._context, left, right, sign=1 if op == "+" else -1)
        kinds = (left.data_type, right.data_type)
        if op != "DIV" and any(isinstance(each, DecimalType) for each in kinds):
            decimals = self._decimals([left, right])
            if decimals is not None:
                return arithmetic(op, decimals, self._context)
        if op == "/":
            _numeric(common_type([left.data_type, right.data_type]), op, node)
            doubles = (cast_value(each, _DOUBLE, self._context) for each in (left, right))
            return computed(_DOUBLE, pc.divide_checked, *doubles)
        both, common = conjoined([left, right], self._context)
        checked = _numeric(common, op, node)
        if op in _ADDED:
            return computed(common, getattr(pc, f"{_ADDED[op]}{checked}"), *both)
        if not checked:
            raise NotInCoreError(f"{op} of {common}")
        if op == "%":
            return computed(common, remainder, *both)
        longs = (cast_value(each, _LONG, self._context) for each in both)
        return computed(_LONG, pc.divide_checked, *longs)

    def _decimals(self, sides: Sequence[Value]) -> list[Value] | None:
        """Both sides as decimals, where one is a decimal and the other one or an integer.

        An integer that is written there has as many digits as it needs, any other those of its
        type.
        """
        found = []
        for each in sides:
            kind = as_decimal(each.data_type)
            digits = _written_digits(each.node)
            if kind is not None and digits is not None:
                kind = DecimalType(digits, 0)
            if kind is None:
                return None
            found.append(cast_value(each, kind, self._context))
        return found

    # Conditions ------------------------------------------------------------------------------

    def _bound(self, node: Comparison | In | IsNull | StartsWith) -> Value:
        """A bound condition, whose parts are columns; each is looked up once for all conditions."""
        has_null, never_null = False, isinstance(node, IsNull)
        if isinstance(node, Comparison):
            right, never_null = node.right, node.op == "<=>"
            columns = (node.left, right) if isinstance(right, Column) else (node.left,)
            has_null = isinstance(right, Literal) and right.value is None
        else:
            columns = (node.column,)
            if isinstance(node, In):
                has_null = any(each.value is None for each in node.values)
        parts = tuple(map(self._looked_up, columns))
        nullable = not never_null and (has_null or parts[0].nullable or parts[-1].nullable)
        data = self._columns

        def of(rows: Any) -> Any:
            return simple_condition(node, lambda path: data[path].of(rows), lambda value: value)

        return Value(_BOOLEAN, of, nullable, node=node, parts=parts)

    def _looked_up(self, column: Column) -> Value:
        found = self._columns.get(column.path)
        if found is None:
            found = self._columns[column.path] = self.value(Name(column.path, quoted=True))
        return found

    def _compare(self, node: Compare, *both: Value) -> Value:
        return self._compared(node.op, both)

    def _compared(self, op: str, both: Sequence[Value], *, fills_up: bool = True) -> Value:
        compared, nans = self._comparable(filled_up(both) if fills_up else both)
        nullable = False if op == "<=>" else None
        return computed(_BOOLEAN, _comparer(op, nans=nans), *compared, nullable=nullable)

    def _comparable(self, values: Sequence[Value]) -> tuple[list[Value], bool]:
        """The values in the type in which they are compared; whether NaN may be among them."""
        common = compared_type([each.data_type for each in values])
        if not has_order(common):
            raise NotInCoreError(f"a comparison of {common}")
        found = [cast_value(each, common, self._context) for each in values]
        return found, common in (_FLOAT, _DOUBLE)

    def _nulltest(self, _: NullTest, part: Value) -> Value:
        return computed(_BOOLEAN, pc.is_null, part, nullable=False)

    def _truthtest(self, node: TruthTest, part: Value) -> Value:
        if part.data_type != _BOOLEAN:
            raise NotInCoreError(to_sql(node))
        wanted, no = (scalar_of(each, pa.bool_()) for each in (node.wanted, False))
        return computed(
            _BOOLEAN, lambda data: pc.coalesce(pc.equal(data, wanted), no), part, nullable=False
        )

    def _like(self, node: Like, text: Value, pattern: Value) -> Value:
        is_plain = pattern.constant and text.data_type == pattern.data_type == _STRING
        wanted = pattern.of(None).as_py() if is_plain else None
        # Some escapes are refused by Spark and not by Arrow.
        if wanted is None or "\\" in wanted:
            raise NotInCoreError(to_sql(node))
        if node.ignores_case:
            # Of both in lower case, which is how Spark defines it.
            text, wanted = FUNCTIONS["lower"](self._context, text), wanted.lower()
        return computed(_BOOLEAN, lambda data: pc.match_like(data, wanted), text)

    def _and(self, _: And, *parts: Value) -> Value:
        return self._joined(parts, pc.and_kleene, decided=False)

    def _or(self, _: Or, *parts: Value) -> Value:
        return self._joined(parts, pc.or_kleene, decided=True)

    def _joined(self, parts: Sequence[Value], join: Any, *, decided: bool) -> Value:
        # What statistics answer comes first, wherever it stands: it has a result for every row.
        conditions = list(map(self.condition, parts))
        if any(map(_may_fail, conditions)):
            conditions.sort(key=_is_computed)
        return _in_turn(conditions, join, decided=decided)

    def _not(self, _: Not, part: Value) -> Value:
        return computed(_BOOLEAN, pc.invert, self.condition(part))

    def _between(self, _: Between, part: Value, low: Value, high: Value) -> Value:
        # Spark fills up a CHAR in each single comparison, but not in BETWEEN.
        ends = [
            self._compared(op, (part, end), fills_up=False)._replace(may_fail=end.may_fail)
            for op, end in ((">=", low), ("<=", high))
        ]
        return _in_turn(ends, pc.and_kleene, decided=False)

    def _among(self, _: Among, *found: Value) -> Value:
        # All of a list are compared in one type.
        values = filled_up(found) if all(each.constant for each in found[1:]) else found
        compared, nans = self._comparable(values)
        members = None if nans else _members(compared[1:])
        if members is not None:

            def inside(wanted: Any) -> Any:
                return pc.if_else(pc.is_valid(wanted), pc.is_in(wanted, value_set=members), _NULL)

            return computed(_BOOLEAN, inside, compared[0])
        equal = _comparer("=", nans=nans)
        if any(map(_may_fail, found[1:])):
            same = [
                computed(_BOOLEAN, equal, compared[0], each)._replace(may_fail=item.may_fail)
                for each, item in zip(compared[1:], found[1:], strict=True)
            ]
            return _in_turn(same, pc.or_kleene, decided=True)

        def is_any(wanted: Any, *items: Any) -> Any:
            return functools.reduce(pc.or_kleene, (equal(wanted, each) for each in items))

        return computed(_BOOLEAN, is_any, *compared)

    def condition(self, found: Value) -> Value:
        if found.data_type in (_BOOLEAN,):  # which looks first whether it is the same object
            return found
        if found.data_type != _VOID:
            assert found.node is not None  # a part of the tree
            raise NotInCoreError(f"{to_sql(found.node)} as a condition")
        truth = cast_value(found, _BOOLEAN, self._context)
        return truth._replace(node=found.node, may_fail=found.may_fail)

    # Choices ---------------------------------------------------------------------------------

    def _case(self, node: Case, *parts: Value) -> Value:
        count = len(node.tests)
        return self._chosen(parts[:count], parts[count:])

    def _chosen(self, tests: Sequence[Value], arms: Sequence[Value]) -> Value:
        """The first that applies. A row's value is that of its arm; the others may have none."""
        values, kind = conjoined(arms, self._context)
        *results, otherwise = values
        pairs = list(zip(map(self.condition, tests), results, strict=True))

        def chosen(rows: Any) -> Any:
            found = otherwise.of(rows)
            for test, arm in reversed(pairs):
                found = pc.if_else(pc.fill_null(test.of(rows), False), arm.of(rows), found)
            return found

        by_arm = _by_arm([partial(_taken_by, *pair) for pair in pairs], otherwise)
        of = by_arm if any(map(_may_fail, (*tests[1:], *arms))) else chosen
        nullable = any(each.nullable for each in values)
        return made_of([*values, *(test for test, _ in pairs)], kind, of, nullable=nullable)

    def _first(self, node: Call, given: Sequence[Value]) -> Value:
        """`coalesce` and its kin."""
        name = node.name
        if len(given) < len(node.arguments):
            raise NotInCoreError(to_sql(node))  # a lambda
        if name == "nullif" and len(given) == 2:
            # Spark rewrites it after it has filled up what is compared with a CHAR.
            same, kept = self._compared("=", given, fills_up=False), given[0]
            missing = scalar_of(None, to_arrow_type(kept.data_type))

            def unless(kept: Any, same: Any) -> Any:
                return pc.if_else(pc.fill_null(same, False), missing, kept)

            return computed(kept.data_type, unless, kept, same, nullable=True)
        if name == "nvl2" and len(given) == 3:
            valid = computed(_BOOLEAN, pc.is_valid, given[0], nullable=False)
            return self._chosen([valid], given[1:])
        if name in ("nullif", "nvl2") or not given or (name != "coalesce" and len(given) != 2):
            raise NotInCoreError(to_sql(node))
        values, kind = conjoined(given, self._context)
        values = _until_never_null(values, lambda each: each.constant)
        # No row should come to what is behind a column that may not be null, but a file may lack
        # that column: then its rows do.
        asked = _until_never_null(values, lambda _: True)

        def first(rows: Any) -> Any:
            return pc.coalesce(*[each.of(rows) for each in values])

        by_arm = _by_arm([partial(_given_by, each) for each in values[:-1]], values[-1])
        of = by_arm if any(map(_may_fail, given[1 : len(values)])) else first
        return made_of(asked, kind, of, nullable=asked[-1].nullable)


def _operands(node: Expression) -> Sequence[Expression]:
    """What a node is made of; not the intervals of a sum, which are steps of it."""
    match node:
        case Arithmetic(first, rest):
            return [first, *(part for op, part in rest if not _moves(part, op))]
        case And(parts) | Or(parts):
            return parts
        case _:
            return children(node)


def _moves(part: Expression, op: str) -> TypeGuard[Interval]:
    """Whether a step of arithmetic is one by an interval."""
    return isinstance(part, Interval) and op in "+-"


def _is_computed(value: Value) -> bool:
    return value.node is not None and is_computed(value.node)


def _is_nullable(path: Sequence[str], schema: StructType) -> bool:
    """Whether a field, or a struct that it is in, may be null."""
    field = schema.get(path[0])
    if field is None or field.nullable:
        return True
    inner = field.data_type
    return len(path) > 1 and isinstance(inner, StructType) and _is_nullable(path[1:], inner)


def _until_never_null(values: list[Value], believed: Callable[[Value], bool]) -> list[Value]:
    """The values up to the first that is never null, if what it says of that is believed."""
    found = (n for n, each in enumerate(values, 1) if not each.nullable and believed(each))
    return values[: next(found, len(values))]


def reader(path: Sequence[str]) -> Callable[[pa.RecordBatch], Any]:
    """What takes a column out of rows, or a field of a struct."""
    name, *inner = path
    if not inner:
        return lambda rows: rows.column(name)
    return lambda rows: pc.struct_field(rows.column(name), inner)


@contextlib.contextmanager
def _in_core(node: Call) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, DeltaError):
        raise
    except (ValueError, IndexError, OverflowError):
        # A different number of arguments than the function has here, or a time that Python lacks.
        raise NotInCoreError(to_sql(node)) from None


def _called(rule: Rule, *given: Any) -> Value:
    try:
        _signature(rule).bind(*given)
    except TypeError:
        raise ValueError("another number of arguments") from None
    return rule(*given)


def _guarded(node: Call, of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def guarded(rows: Any) -> Any:
        with _in_core(node):
            return of(rows)

    return guarded


def _second(value: Value) -> Value:
    """What is on the right of a step of arithmetic, which is given the left one and the rows."""
    return value if value.constant else value._replace(of=lambda both: value.of(both[1]))


def _comparer(op: str, *, nans: bool) -> Callable[[Any, Any], Any]:
    return lambda a, b: compare(op, a, b, nans=nans, b_nan=None)


def _members(items: Sequence[Value]) -> Any:
    """The items of a list as one array; `None` where one is null, or not plainly a value."""
    if not all(each.constant and not each.nullable for each in items):
        return None
    try:
        scalars = [each.of(None) for each in items]
        return array_of([each.as_py() for each in scalars], scalars[0].type)
    except (OverflowError, pa.ArrowException):
        return None  # a time that Python can't represent, or no value at all


def _in_turn(parts: Sequence[Value], join: Any, *, decided: bool) -> Value:
    """Conditions joined by AND or OR.

    One that may fail need not have a value where the conditions before it decide, as in Spark.
    """
    first, *others = parts
    rest = scalar_of(decided, pa.bool_())

    def of(rows: pa.RecordBatch) -> Any:
        found = first.of(rows)
        for part in others:
            if not part.may_fail:
                found = join(found, part.of(rows))
                continue
            truth = pa.repeat(found, rows.num_rows) if isinstance(found, pa.Scalar) else found
            asked = pc.fill_null(pc.not_equal(truth, rest), True)
            count = asked.true_count
            data = part.of(rows if count == len(asked) else rows.filter(asked))
            data = pa.repeat(data, count) if isinstance(data, pa.Scalar) else data
            found = join(truth, pc.replace_with_mask(pa.repeat(rest, len(asked)), asked, data))
        return found

    return made_of(parts, _BOOLEAN, of)


def _taken_by(test: Value, arm: Value, rows: pa.RecordBatch) -> tuple[Any, Any]:
    """For which of some rows a test is true, and an arm's values for those."""
    passed = _flags(test.of(rows), rows.num_rows)
    return passed, arm.of(_some(rows, pc.indices_nonzero(passed)))


def _given_by(arm: Value, rows: pa.RecordBatch) -> tuple[Any, Any]:
    """For which of some rows an arm is not null, and its values there; evaluated once."""
    found = arm.of(rows)
    passed = _flags(pc.is_valid(found), rows.num_rows)
    return passed, found if isinstance(found, pa.Scalar) else found.filter(passed)


def _by_arm(
    arms: Sequence[Callable[[pa.RecordBatch], tuple[Any, Any]]], otherwise: Value
) -> Callable[[pa.RecordBatch], Any]:
    """Of each row the first arm that takes it, asked about the rows alone that come to it."""
    arrow = to_arrow_type(otherwise.data_type)

    def of(batch: pa.RecordBatch) -> Any:
        rows = integers(range(batch.num_rows))
        taken: list[tuple[Any, Any]] = []
        for arm in arms:
            passed, found = arm(_some(batch, rows))
            taken.append((rows.filter(passed), found))
            rows = rows.filter(pc.invert(passed))
            if not len(rows):
                break  # What is asked for by no row may be a constant without a value.
        else:
            taken.append((rows, otherwise.of(_some(batch, rows))))
        return _spread(taken, batch.num_rows, arrow)

    return of


def _some(batch: pa.RecordBatch, rows: Any) -> pa.RecordBatch:
    return batch if len(rows) == batch.num_rows else batch.take(rows)


def _bare(value: Value) -> Value:
    """The value as any other string: only a column itself is a CHAR."""
    return value._replace(char=-1)


def _spread(parts: Sequence[tuple[Any, Any]], count: int, kind: pa.DataType) -> Any:
    """Values at their rows, given in ascending order for each part; null at all others."""
    places = pa.concat_arrays([rows.cast(pa.int64()) for rows, _ in parts])
    values = pa.concat_arrays(
        [
            pa.repeat(data, len(rows)) if isinstance(data, pa.Scalar) else data
            for rows, data in parts
        ]
    )
    assert values.type == kind
    at = pc.index_in(integers(range(count), pa.int64()), value_set=places)
    return values.take(at)


def _flags(found: Any, count: int) -> Any:
    """A condition for so many rows, in which null is false."""
    found = pa.repeat(found, count) if isinstance(found, pa.Scalar) else found
    return pc.fill_null(found, False)


def _written_digits(node: Expression | None) -> int | None:
    """The digits of an integer that is written in an expression; `None` of anything else."""
    match node:
        case Negative(part):
            return _written_digits(part)
        case Cast(part) if _written_digits(part) is not None:
            # `2L` is also written so in the tree, and has other digits to Spark than a CAST.
            raise NotInCoreError(f"{to_sql(node)} next to a decimal")
        case Literal(int() as value) if not isinstance(value, bool):
            return len(str(abs(value)))
        case _:
            return None


def _numeric(kind: DataType, op: str, node: Expression) -> str:
    """The suffix of Arrow's functions: integers are checked for overflow, doubles are not."""
    if kind == _DOUBLE or (kind == _FLOAT and op in _ADDED):
        return ""
    if isinstance(kind, PrimitiveType) and kind.name in INTEGERS:
        return "_checked"
    raise NotInCoreError(f"{to_sql(node)} of {kind}")
