"""One walk over a tree: of each node the type, whether it may be null, and what computes it."""

from __future__ import annotations

import contextlib
import functools
import inspect
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

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
    Compare,
    Expression,
    Interval,
    Lambda,
    Like,
    Literal,
    Name,
    Negative,
    Not,
    NullTest,
    Opaque,
    Or,
    TruthTest,
    Variable,
    walk,
)
from lakelog.core.expressions.values.casts import cast_value, conjoined, try_cast_value
from lakelog.core.expressions.values.char_texts import filled_up
from lakelog.core.expressions.values.decimals import arithmetic
from lakelog.core.expressions.values.functions import FUNCTIONS
from lakelog.core.expressions.values.lambdas import LAMBDAS, Argument, Body, element_of
from lakelog.core.expressions.values.numbers import remainder
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
_signature = functools.cache(inspect.signature)
LAZY: Final = ("coalesce", "ifnull", "nullif", "nvl", "nvl2")
"""Functions of which Spark evaluates an argument only for the rows that need it."""
NOW: Final = ("current_timestamp", "now")
TODAY: Final = ("current_date", "curdate")
_HARMLESS: Final = (Name, Literal, NullTest, TruthTest, Not, And, Or, Between, Among, Compare)


def is_now(name: str) -> bool:
    """Whether a name without parentheses may be a function of the current time."""
    return name.lower() in (*NOW, *TODAY)


def typed(root: Expression, schema: StructType, context: EvalContext, *, sql: str = "") -> Value:
    """What a tree is over a schema, by Spark's rules.

    Args:
        root: the tree.
        schema: of the rows.
        context: of the evaluation.
        sql: of the whole expression, for messages.

    Raises:
        InvalidPredicateError: an unknown column.
        NotInCoreError: a part that only Spark evaluates. The data may be refused so too.
    """
    return _Typer(schema, context, sql).value(root)


class _Typer:
    def __init__(self, schema: StructType, context: EvalContext, sql: str) -> None:
        self._sql = sql
        self._schema = schema
        self._context = context
        self._variables: dict[str, tuple[str, Value]] = {}

    def value(self, node: Expression) -> Value:
        rule: Callable[[Any], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if rule is None:
            raise NotInCoreError(to_sql(node))
        return rule(node)

    def _opaque(self, node: Opaque) -> Value:
        raise NotInCoreError(node.why or to_sql(node))

    # Values, columns and casts --------------------------------------------------------------

    def _literal(self, node: Literal) -> Value:
        if node.value is None:
            return known(scalar_of(None, pa.null()), _VOID)
        if node.data_type is None:
            raise NotInCoreError(f"{to_sql(node)} without a type")
        return known(scalar_of(node.value, to_arrow_type(node.data_type)), node.data_type)

    def _negative(self, node: Negative) -> Value:
        return FUNCTIONS["negative"](self._context, self.value(node.part))

    def _name(self, node: Name) -> Value:
        found = find_column(node.path, self._schema)
        if found is None:
            if len(node.path) == 1 and not node.quoted and is_now(node.path[0]):
                return self._now(node.path[0].lower())
            raise unknown_column(node.path, self._schema, f" in the expression {self._sql!r}")
        path, data_type = found
        nullable = _is_nullable(path, self._schema)
        return Value(data_type, _reader(path), nullable, char=self._char(path))

    def _char(self, path: Sequence[str]) -> int:
        limit = limit_of(self._schema.get(path[0])) if len(path) == 1 else None
        return limit.length if limit is not None and limit.pads else -1

    def _now(self, name: str) -> Value:
        now_ms = self._context.now_ms
        if now_ms is None:
            raise NotInCoreError(f"{name}()")
        seconds, rest = divmod(now_ms, 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
        now = known(scalar_of(moment, to_arrow_type(_TIMESTAMP)), _TIMESTAMP)
        return now if name in NOW else cast_value(now, _DATE, self._context)

    def _cast(self, node: Cast) -> Value:
        cast = try_cast_value if node.safe else cast_value
        return cast(_bare(self.value(node.part)), node.target, self._context)

    def _variable(self, node: Variable) -> Value:
        name, held = self._variables[node.path[0].lower()]
        inside = StructType((StructField(name, held.data_type, held.nullable),))
        found = find_column((name, *node.path[1:]), inside)
        if found is None:
            raise NotInCoreError(to_sql(node))
        return Value(found[1], _reader(found[0]), _is_nullable(found[0], inside))

    def _argument(self, node: Expression) -> Argument:
        return partial(self._body, node) if isinstance(node, Lambda) else _bare(self.value(node))

    def _body(self, node: Lambda, *given: Value) -> Body:
        """A lambda whose variables are such values."""
        around, names = self._variables, [each.lower() for each in node.variables]
        if not 0 < len(set(names)) == len(names) <= len(given):
            raise NotInCoreError(to_sql(node))
        columns = [f"\0{len(around)}{name}" for name in names]
        self._variables = around | dict(zip(names, zip(columns, given, strict=False), strict=True))
        value = self.value(node.body)
        self._variables = around
        parts = [each for each in walk(node.body) if isinstance(each, Variable | Name)]
        held = [around.get(each.path[0].lower()) for each in parts if isinstance(each, Variable)]
        fields = [self._schema.get(each.path[0]) for each in parts if isinstance(each, Name)]
        used = {*(each[0] for each in held if each), *(each.name for each in fields if each)}
        return Body(value, columns, sorted(used))

    def _call(self, node: Call) -> Value:
        if is_now(node.name) and not node.arguments:
            return self._now(node.name)
        if node.name in LAZY:
            return self._first(node)
        with _in_core(node):
            if node.name in LAMBDAS:
                first, *rest = node.arguments
                array, given = self.value(first), map(self._argument, rest)
                found = _called(LAMBDAS[node.name], array, element_of(array), *given)
            elif node.name in FUNCTIONS:
                arguments = [_bare(self.value(each)) for each in node.arguments]
                found = _called(FUNCTIONS[node.name], self._context, *arguments)
            else:
                raise NotInCoreError(f"the function {node.name}")
        return found if found.constant else found._replace(of=_guarded(node, found.of))

    # Arithmetic ------------------------------------------------------------------------------

    def _arithmetic(self, node: Arithmetic) -> Value:
        start, first = self.value(node.first), node.first
        found, parts, steps = start, [start], []
        for op, part in node.rest:
            # What is on the left is given to each step: no chain is too long for Python's stack.
            left = found._replace(of=itemgetter(0), constant=False)
            if isinstance(part, Interval) and op in "+-":
                count = part.number if op == "+" else -part.number
                found = later(left, count, part.unit, self._context)
            else:
                right = self.value(part)
                parts.append(right)
                found = self._step(op, left, first, _second(right), part, node)
            steps.append(found.of)
            first = node  # whose digits are those of its type, from now on

        def of(rows: Any) -> Any:
            data = start.of(rows)
            for step in steps:
                data = step((data, rows))
            return data

        return made_of(parts, found.data_type, of, nullable=found.nullable)

    def _step(
        self,
        op: str,
        left: Value,
        first: Expression,
        right: Value,
        part: Expression,
        node: Arithmetic,
    ) -> Value:
        if left.data_type == _DATE and op in "+-":
            if right.data_type not in tuple(map(PrimitiveType, INTEGERS[:3])):
                raise NotInCoreError(f"a date and {right.data_type} in one sum")
            return day_shift(self._context, left, right, sign=1 if op == "+" else -1)
        kinds = (left.data_type, right.data_type)
        if op != "DIV" and any(isinstance(each, DecimalType) for each in kinds):
            decimals = self._decimals([(first, left), (part, right)])
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

    def _decimals(self, sides: Sequence[tuple[Expression, Value]]) -> list[Value] | None:
        """Both sides as decimals, where one is a decimal and the other one or an integer.

        An integer that is written there has as many digits as it needs, any other those of its
        type.
        """
        found = []
        for part, each in sides:
            kind = as_decimal(each.data_type)
            digits = _written_digits(part)
            if kind is not None and digits is not None:
                kind = DecimalType(digits, 0)
            if kind is None:
                return None
            found.append(cast_value(each, kind, self._context))
        return found

    # Conditions ------------------------------------------------------------------------------

    def _compare(self, node: Compare) -> Value:
        return self._comparison(node.op, node.left, node.right)

    def _comparison(
        self, op: str, left: Expression, right: Expression, *, fills_up: bool = True
    ) -> Value:
        both = [self.value(left), self.value(right)]
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

    def _nulltest(self, node: NullTest) -> Value:
        return computed(_BOOLEAN, pc.is_null, self.value(node.part), nullable=False)

    def _truthtest(self, node: TruthTest) -> Value:
        found = self.value(node.part)
        if found.data_type != _BOOLEAN:
            raise NotInCoreError(to_sql(node))
        wanted, no = (scalar_of(each, pa.bool_()) for each in (node.wanted, False))
        return computed(
            _BOOLEAN, lambda data: pc.coalesce(pc.equal(data, wanted), no), found, nullable=False
        )

    def _like(self, node: Like) -> Value:
        text, pattern = self.value(node.part), self.value(node.pattern)
        is_plain = pattern.constant and text.data_type == pattern.data_type == _STRING
        wanted = pattern.of(None).as_py() if is_plain else None
        # Some escapes are refused by Spark and not by Arrow.
        if wanted is None or "\\" in wanted:
            raise NotInCoreError(to_sql(node))
        if node.ignores_case:
            # Of both in lower case, which is how Spark defines it.
            text, wanted = FUNCTIONS["lower"](self._context, text), wanted.lower()
        return computed(_BOOLEAN, lambda data: pc.match_like(data, wanted), text)

    def _and(self, node: And) -> Value:
        return self._joined(node.parts, pc.and_kleene, decided=False)

    def _or(self, node: Or) -> Value:
        return self._joined(node.parts, pc.or_kleene, decided=True)

    def _joined(self, parts: Sequence[Expression], join: Any, *, decided: bool) -> Value:
        return _in_turn([(self._condition(each), each) for each in parts], join, decided=decided)

    def _not(self, node: Not) -> Value:
        return computed(_BOOLEAN, pc.invert, self._condition(node.part))

    def _between(self, node: Between) -> Value:
        # Spark fills up a CHAR in each single comparison, but not in BETWEEN.
        low = self._comparison(">=", node.part, node.low, fills_up=False)
        high = self._comparison("<=", node.part, node.high, fills_up=False)
        return _in_turn([(low, node.low), (high, node.high)], pc.and_kleene, decided=False)

    def _among(self, node: Among) -> Value:
        # All of a list are compared in one type.
        found = [self.value(each) for each in (node.part, *node.items)]
        if all(each.constant for each in found[1:]):
            found = filled_up(found)
        compared, nans = self._comparable(found)
        members = None if nans else _members(compared[1:])
        if members is not None:

            def inside(wanted: Any) -> Any:
                return pc.if_else(pc.is_valid(wanted), pc.is_in(wanted, value_set=members), _NULL)

            return computed(_BOOLEAN, inside, compared[0])
        equal = _comparer("=", nans=nans)
        if any(map(_may_fail, node.items)):
            same = (computed(_BOOLEAN, equal, compared[0], each) for each in compared[1:])
            return _in_turn([*zip(same, node.items, strict=True)], pc.or_kleene, decided=True)

        def is_any(wanted: Any, *items: Any) -> Any:
            return functools.reduce(pc.or_kleene, (equal(wanted, each) for each in items))

        return computed(_BOOLEAN, is_any, *compared)

    def _condition(self, node: Expression) -> Value:
        found = self.value(node)
        if found.data_type not in (_BOOLEAN, _VOID):
            raise NotInCoreError(f"{to_sql(node)} as a condition")
        return cast_value(found, _BOOLEAN, self._context)

    # Choices ---------------------------------------------------------------------------------

    def _case(self, node: Case) -> Value:
        """The first that applies. A row's value is that of its arm; the others may have none."""
        arms = (*node.results, node.otherwise)
        values, kind = conjoined([self.value(each) for each in arms], self._context)
        *results, otherwise = values
        pairs = list(zip(map(self._condition, node.tests), results, strict=True))

        def chosen(rows: Any) -> Any:
            found = otherwise.of(rows)
            for test, arm in reversed(pairs):
                found = pc.if_else(pc.fill_null(test.of(rows), False), arm.of(rows), found)
            return found

        by_arm = _by_arm([partial(_taken_by, *pair) for pair in pairs], otherwise)
        of = by_arm if any(map(_may_fail, (*node.tests[1:], *arms))) else chosen
        nullable = any(each.nullable for each in values)
        return made_of([*values, *(test for test, _ in pairs)], kind, of, nullable=nullable)

    def _first(self, node: Call) -> Value:
        """`coalesce` and its kin."""
        given, name = node.arguments, node.name
        if name == "nullif" and len(given) == 2:
            # Spark rewrites it after it has filled up what is compared with a CHAR.
            same = self._comparison("=", given[0], given[1], fills_up=False)
            kept = self.value(given[0])
            missing = scalar_of(None, to_arrow_type(kept.data_type))

            def unless(kept: Any, same: Any) -> Any:
                return pc.if_else(pc.fill_null(same, False), missing, kept)

            return computed(kept.data_type, unless, kept, same, nullable=True)
        if name == "nvl2" and len(given) == 3:
            return self._case(Case((Not(NullTest(given[0])),), (given[1],), given[2]))
        if name in ("nullif", "nvl2") or not given or (name != "coalesce" and len(given) != 2):
            raise NotInCoreError(to_sql(node))
        values, kind = conjoined([self.value(each) for each in given], self._context)
        values = _until_never_null(values, lambda each: each.constant)
        # No row should come to what is behind a column that may not be null, but a file may lack
        # that column: then its rows do.
        asked = _until_never_null(values, lambda _: True)

        def first(rows: Any) -> Any:
            return pc.coalesce(*[each.of(rows) for each in values])

        by_arm = _by_arm([partial(_given_by, each) for each in values[:-1]], values[-1])
        of = by_arm if any(map(_may_fail, given[1 : len(values)])) else first
        return made_of(asked, kind, of, nullable=asked[-1].nullable)


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


def _reader(path: Sequence[str]) -> Callable[[pa.RecordBatch], Any]:
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


def _in_turn(parts: Sequence[tuple[Value, Expression]], join: Any, *, decided: bool) -> Value:
    """Conditions joined by AND or OR, each with the part of the tree that only it asks for.

    That part need not have a value where the conditions before it decide, as in Spark.
    """
    (first, _), *others = parts
    lazy = [(each, _may_fail(node)) for each, node in others]

    def of(rows: pa.RecordBatch) -> Any:
        found = first.of(rows)
        for part, may_fail in lazy:
            if not may_fail:
                found = join(found, part.of(rows))
                continue
            if isinstance(found, pa.Scalar):
                found = pa.repeat(found, rows.num_rows)
            kept = pc.fill_null(pc.not_equal(found, scalar_of(decided, pa.bool_())), True)
            asked = pc.indices_nonzero(kept)
            data = part.of(_some(rows, asked))
            found = join(found, _spread([(asked, data)], len(found), pa.bool_()))
        return found

    return made_of([each for each, _ in parts], _BOOLEAN, of)


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


def _written_digits(node: Expression) -> int | None:
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


def _may_fail(node: Expression) -> bool:
    """Whether some value could be an error: arithmetic, casts, any function."""
    return not all(isinstance(each, _HARMLESS) for each in walk(node))


def _numeric(kind: DataType, op: str, node: Expression) -> str:
    """The suffix of Arrow's functions: integers are checked for overflow, doubles are not."""
    if kind == _DOUBLE or (kind == _FLOAT and op in _ADDED):
        return ""
    if isinstance(kind, PrimitiveType) and kind.name in INTEGERS:
        return "_checked"
    raise NotInCoreError(f"{to_sql(node)} of {kind}")
