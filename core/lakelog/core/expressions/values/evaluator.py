"""One walk over a tree, for one batch of rows."""

from __future__ import annotations

import contextlib
import functools
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lakelog.core.arrays import array_of, integers, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.comparing import compare
from lakelog.core.compute import pc
from lakelog.core.expressions.coerce import (
    INTEGERS,
    NotInCoreError,
    as_decimal,
    common_type,
    compared_type,
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
    Like,
    Literal,
    Name,
    Negative,
    Not,
    NullTest,
    Or,
    TruthTest,
    walk,
)
from lakelog.core.expressions.values.casts import Value, cast_value, try_cast_value
from lakelog.core.expressions.values.char_texts import filled_up
from lakelog.core.expressions.values.decimals import arithmetic
from lakelog.core.expressions.values.functions import (
    FUNCTIONS,
    conjoined,
    remainder,
)
from lakelog.core.expressions.values.times import day_shift, later
from lakelog.core.schema import DataType, DecimalType, PrimitiveType, StructType
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_paths import find_column, unknown_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BOOLEAN, _DATE = PrimitiveType("boolean"), PrimitiveType("date")
_LONG, _VOID = PrimitiveType("long"), PrimitiveType("void")
_STRING, _TIMESTAMP = PrimitiveType("string"), PrimitiveType("timestamp")
_FLOAT, _DOUBLE = PrimitiveType("float"), PrimitiveType("double")
_ADDED: Final = {"+": "add", "-": "subtract", "*": "multiply"}
_NULL = pa.nulls(1, pa.bool_())[0]
LAZY: Final = ("coalesce", "ifnull", "nullif", "nvl", "nvl2")
"""Functions of which Spark evaluates an argument only for the rows that need it."""
NOW: Final = ("current_timestamp", "now")
TODAY: Final = ("current_date", "curdate")
_HARMLESS: Final = (Name, Literal, NullTest, TruthTest, Not, And, Or, Between, Among, Compare)


def is_now(name: str) -> bool:
    """Whether a name without parentheses may be a function of the current time."""
    return name.lower() in (*NOW, *TODAY)


class Evaluator:
    """Gives the value of each node, for all rows of a batch."""

    def __init__(
        self,
        sql: str,
        batch: pa.RecordBatch | None,
        schema: StructType,
        zone: str,
        now_ms: int | None,
    ) -> None:
        """Evaluate over rows.

        Args:
            sql: of the whole expression, for messages.
            batch: the rows; `None` where the types alone are asked for.
            schema: of the rows.
            zone: the session's.
            now_ms: what `current_timestamp()` gives.
        """
        self._sql = sql
        self._batch = batch
        self._schema = schema
        self._zone = zone
        self._now_ms = now_ms

    def value(self, node: Expression) -> Value:
        """The value of a node.

        Raises:
            NotInCoreError: only Spark evaluates it, or for these rows.
            pyarrow.ArrowException: a row has no result.
        """
        rule: Callable[[Any], Value] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if rule is None:
            raise NotInCoreError(to_sql(node))
        return rule(node)

    # Values, columns and casts --------------------------------------------------------------

    def _literal(self, node: Literal) -> Value:
        if node.value is None:
            return Value(scalar_of(None, pa.null()), _VOID)
        if node.data_type is None:
            raise NotInCoreError(f"{to_sql(node)} without a type")
        return Value(scalar_of(node.value, to_arrow_type(node.data_type)), node.data_type)

    def _negative(self, node: Negative) -> Value:
        return FUNCTIONS["negative"]([self.value(node.part)], self._zone)

    def _name(self, node: Name) -> Value:
        found = find_column(node.path, self._schema)
        if found is None:
            if len(node.path) == 1 and not node.quoted and is_now(node.path[0]):
                return self._now(node.path[0].lower())
            raise unknown_column(node.path, self._schema, f" in the expression {self._sql!r}")
        path, data_type = found
        if self._batch is None:
            # Not of the whole struct: an expression for each of its fields would go through all.
            return Value(pa.nulls(0, to_arrow_type(data_type)), data_type, self._char(path))
        data = self._batch.column(path[0])
        if len(path) > 1:
            data = pc.struct_field(data, list(path[1:]))
        return Value(data, data_type, self._char(path))

    def _char(self, path: Sequence[str]) -> int:
        limit = limit_of(self._schema.get(path[0])) if len(path) == 1 else None
        return limit.length if limit is not None and limit.pads else -1

    def _now(self, name: str) -> Value:
        if self._now_ms is None:
            raise NotInCoreError(f"{name}()")
        seconds, rest = divmod(self._now_ms, 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
        now = Value(scalar_of(moment, to_arrow_type(_TIMESTAMP)), _TIMESTAMP)
        return now if name in NOW else cast_value(now, _DATE, self._zone)

    def _cast(self, node: Cast) -> Value:
        cast = try_cast_value if node.safe else cast_value
        return cast(_bare(self.value(node.part)), node.target, self._zone)

    def _call(self, node: Call) -> Value:
        if is_now(node.name) and not node.arguments:
            return self._now(node.name)
        if node.name in LAZY:
            return self._first(node)
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise NotInCoreError(f"the function {node.name}")
        arguments = [_bare(self.value(each)) for each in node.arguments]
        try:
            return function(arguments, self._zone)
        except pa.ArrowException:
            raise
        except (ValueError, IndexError):
            # A different number of arguments than the function has here.
            raise NotInCoreError(to_sql(node)) from None

    # Arithmetic ------------------------------------------------------------------------------

    def _arithmetic(self, node: Arithmetic) -> Value:
        found, left = self.value(node.first), node.first
        for op, part in node.rest:
            found = self._step(op, found, left, part, node)
            left = node  # whose digits are those of its type, from now on
        return found

    def _step(
        self, op: str, left: Value, first: Expression, part: Expression, node: Arithmetic
    ) -> Value:
        if isinstance(part, Interval) and op in "+-":
            return later(left, part.number if op == "+" else -part.number, part.unit, self._zone)
        right = self.value(part)
        if left.data_type == _DATE and op in "+-":
            if right.data_type not in tuple(map(PrimitiveType, INTEGERS[:3])):
                raise NotInCoreError(f"a date and {right.data_type} in one sum")
            return day_shift(left, right, self._zone, 1 if op == "+" else -1)
        kinds = (left.data_type, right.data_type)
        if op != "DIV" and any(isinstance(each, DecimalType) for each in kinds):
            decimals = self._decimals([(first, left), (part, right)])
            if decimals is not None:
                return arithmetic(op, *decimals)
        if op == "/":
            _numeric(common_type([left.data_type, right.data_type]), op, node)
            a, b = (cast_value(each, _DOUBLE, self._zone).data for each in (left, right))
            return Value(pc.divide_checked(a, b), _DOUBLE)
        (a, b), common = conjoined([left, right], self._zone)
        checked = _numeric(common, op, node)
        if op in _ADDED:
            return Value(getattr(pc, f"{_ADDED[op]}{checked}")(a, b), common)
        if not checked:
            raise NotInCoreError(f"{op} of {common}")
        if op == "%":
            return Value(remainder(a, b), common)
        return Value(pc.divide_checked(pc.cast(a, pa.int64()), pc.cast(b, pa.int64())), _LONG)

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
            found.append(cast_value(each, kind, self._zone))
        return found

    # Conditions ------------------------------------------------------------------------------

    def _compare(self, node: Compare) -> Value:
        return self._comparison(node.op, node.left, node.right)

    def _comparison(
        self, op: str, left: Expression, right: Expression, *, fills_up: bool = True
    ) -> Value:
        both = [self.value(left), self.value(right)]
        (a, b), nans = self._comparable(filled_up(both) if fills_up else both)
        return Value(compare(op, a, b, nans=nans, b_nan=None), _BOOLEAN)

    def _comparable(self, values: Sequence[Value]) -> tuple[list[Any], bool]:
        """The data in the type in which values are compared, and whether NaN may be among them."""
        common = compared_type([each.data_type for each in values])
        if not isinstance(common, PrimitiveType | DecimalType):
            raise NotInCoreError(f"a comparison of {common}")
        found = [cast_value(each, common, self._zone).data for each in values]
        return found, common in (_FLOAT, _DOUBLE)

    def _nulltest(self, node: NullTest) -> Value:
        return Value(pc.is_null(self.value(node.part).data), _BOOLEAN)

    def _truthtest(self, node: TruthTest) -> Value:
        found = self.value(node.part)
        if found.data_type != _BOOLEAN:
            raise NotInCoreError(to_sql(node))
        equal = pc.equal(found.data, scalar_of(node.wanted, pa.bool_()))
        return Value(pc.coalesce(equal, scalar_of(False, pa.bool_())), _BOOLEAN)

    def _like(self, node: Like) -> Value:
        text, pattern = self.value(node.part), self.value(node.pattern)
        plain = isinstance(pattern.data, pa.Scalar) and {text.data_type, pattern.data_type}
        # Some escapes are refused by Spark and not by Arrow.
        if plain != {_STRING} or "\\" in (pattern.data.as_py() or ""):
            raise NotInCoreError(to_sql(node))
        if node.ignores_case:
            # Of both in lower case, which is how Spark defines it.
            if not pattern.data.is_valid:
                raise NotInCoreError(to_sql(node))
            text, pattern = (FUNCTIONS["lower"]([each], self._zone) for each in (text, pattern))
        return Value(pc.match_like(text.data, pattern.data.as_py()), _BOOLEAN)

    def _and(self, node: And) -> Value:
        return self._joined(node.parts, pc.and_kleene, decided=False)

    def _or(self, node: Or) -> Value:
        return self._joined(node.parts, pc.or_kleene, decided=True)

    def _joined(self, parts: Sequence[Expression], join: Any, *, decided: bool) -> Value:
        """A part need not have a value where those before it decide, as in Spark."""
        found = self._condition(parts[0])
        for part in parts[1:]:
            if self._batch is None or not _may_fail(part):
                found = join(found, self._condition(part))
                continue
            if isinstance(found, pa.Scalar):
                found = pa.repeat(found, self._batch.num_rows)
            kept = pc.fill_null(pc.not_equal(found, scalar_of(decided, pa.bool_())), True)
            rows = pc.indices_nonzero(kept)
            asked = self._of_rows(rows)._condition(part)
            found = join(found, _spread([(rows, asked)], len(found), pa.bool_()))
        return Value(found, _BOOLEAN)

    def _not(self, node: Not) -> Value:
        return Value(pc.invert(self._condition(node.part)), _BOOLEAN)

    def _between(self, node: Between) -> Value:
        # Spark fills up a CHAR in each single comparison, but not in BETWEEN.
        low = self._comparison(">=", node.part, node.low, fills_up=False)
        high = self._comparison("<=", node.part, node.high, fills_up=False)
        return Value(pc.and_kleene(low.data, high.data), _BOOLEAN)

    def _among(self, node: Among) -> Value:
        # All of a list are compared in one type.
        found = [self.value(each) for each in (node.part, *node.items)]
        if all(isinstance(each.data, pa.Scalar) for each in found[1:]):
            found = filled_up(found)
        (wanted, *items), nans = self._comparable(found)
        if not nans and all(isinstance(each, pa.Scalar) and each.is_valid for each in items):
            with contextlib.suppress(OverflowError):  # a time that Python can't represent
                members = array_of([each.as_py() for each in items], items[0].type)
                inside = pc.is_in(wanted, value_set=members)
                return Value(pc.if_else(pc.is_valid(wanted), inside, _NULL), _BOOLEAN)
        each = [compare("=", wanted, item, nans=nans, b_nan=None) for item in items]
        return Value(functools.reduce(pc.or_kleene, each), _BOOLEAN)

    def _condition(self, node: Expression) -> Any:
        found = self.value(node)
        if found.data_type not in (_BOOLEAN, _VOID):
            raise NotInCoreError(f"{to_sql(node)} as a condition")
        return cast_value(found, _BOOLEAN, self._zone).data

    # Choices ---------------------------------------------------------------------------------

    def _case(self, node: Case) -> Value:
        """The first that applies. A row's value is that of its arm; the others may have none."""
        arms = (*node.results, node.otherwise)
        if self._batch is not None and any(map(_may_fail, (*node.tests[1:], *arms))):
            pairs = zip(node.tests, node.results, strict=True)
            taken = [partial(self._taken_by, test, arm) for test, arm in pairs]
            return self._by_arm(taken, node.otherwise)
        values, kind = conjoined([self.value(each) for each in arms], self._zone)
        found = values[-1]
        for test, arm in zip(reversed(node.tests), values[-2::-1], strict=True):
            found = pc.if_else(pc.fill_null(self._condition(test), False), arm, found)
        return Value(found, kind)

    def _first(self, node: Call) -> Value:
        """`coalesce` and its kin."""
        given, name = node.arguments, node.name
        if name == "nullif" and len(given) == 2:
            # Spark rewrites it after it has filled up what is compared with a CHAR.
            same = self._comparison("=", given[0], given[1], fills_up=False)
            kept, missing = self.value(given[0]), pc.fill_null(same.data, False)
            return Value(pc.if_else(missing, scalar_of(None, kept.data.type), kept.data), kept[1])
        if name == "nvl2" and len(given) == 3:
            return self._case(Case((Not(NullTest(given[0])),), (given[1],), given[2]))
        if name in ("nullif", "nvl2") or not given or (name != "coalesce" and len(given) != 2):
            raise NotInCoreError(to_sql(node))
        if self._batch is not None and any(map(_may_fail, given[1:])):
            return self._by_arm([partial(self._given_by, each) for each in given[:-1]], given[-1])
        found, kind = conjoined([self.value(each) for each in given], self._zone)
        return Value(pc.coalesce(*found), kind)

    def _taken_by(self, test: Expression, arm: Expression, rows: Any) -> tuple[Any, Value]:
        """For which of some rows a test is true, and an arm's values for those."""
        passed = _flags(self._of_rows(rows)._condition(test), len(rows))
        return passed, self._of_rows(rows.filter(passed)).value(arm)

    def _given_by(self, arm: Expression, rows: Any) -> tuple[Any, Value]:
        """For which of some rows an arm is not null, and its values there; evaluated once."""
        found = self._of_rows(rows).value(arm)
        passed = _flags(pc.is_valid(found.data), len(rows))
        is_one = isinstance(found.data, pa.Scalar)
        return passed, found if is_one else found._replace(data=found.data.filter(passed))

    def _by_arm(
        self, arms: Sequence[Callable[[Any], tuple[Any, Value]]], otherwise: Expression
    ) -> Value:
        """Of each row the first arm that takes it, asked about the rows alone that come to it."""
        assert self._batch is not None
        count = self._batch.num_rows
        rows = integers(range(count))
        taken: list[tuple[Any, Value]] = []
        for arm in arms:
            passed, found = arm(rows)
            taken.append((rows.filter(passed), found))
            rows = rows.filter(pc.invert(passed))
        taken.append((rows, self._of_rows(rows).value(otherwise)))
        found_in_one, kind = conjoined([each for _, each in taken], self._zone)
        parts = [(at, data) for (at, _), data in zip(taken, found_in_one, strict=True)]
        return Value(_spread(parts, count, to_arrow_type(kind)), kind)

    def _of_rows(self, rows: Any) -> Evaluator:
        """The same walk over some of the rows."""
        assert self._batch is not None
        batch = self._batch if len(rows) == self._batch.num_rows else self._batch.take(rows)
        return Evaluator(self._sql, batch, self._schema, self._zone, self._now_ms)


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
            # `2L` is written so in the tree, too, and has other digits to Spark than a CAST.
            raise NotInCoreError(f"{to_sql(node)} next to a decimal")
        case Literal(int() as value) if not isinstance(value, bool):
            return len(str(value))
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
