"""Values of Spark's SQL on Arrow rows: what generated columns, defaults and CHECKs are made of.

The meaning is that of Spark in ANSI mode, its default: an overflow, a division by zero or a string
that is not a number is an error. Anything that may mean something else here than in Spark is
refused by name, so that a row never gets a value that Spark would not have given it.
"""

from __future__ import annotations

import contextlib
import functools
import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakelog.core.arrays import array_of, integers, scalar_of
from lakelog.core.arrow.arrow_types import to_arrow_type
from lakelog.core.arrow.comparing import compare
from lakelog.core.compute import pc
from lakelog.core.errors import DeltaAnalysisError, InvalidPredicateError
from lakelog.core.expressions.nesting import explained_depth
from lakelog.core.expressions.parse.plain_words import in_plain_words
from lakelog.core.expressions.parse.string_literals import for_sqlglot, has_odd_escapes
from lakelog.core.expressions.parse.tree_shapes import check_sqlglot, unread_below
from lakelog.core.expressions.parse.type_names import SQL_TYPES
from lakelog.core.expressions.values.casts import (
    INTEGERS,
    NotInCoreError,
    Value,
    assigned_value,
    cast_value,
)
from lakelog.core.expressions.values.char_texts import filled_up
from lakelog.core.expressions.values.decimals import arithmetic
from lakelog.core.expressions.values.functions import (
    FUNCTIONS,
    as_decimal,
    as_text,
    common_type,
    compared_type,
    conjoined,
    remainder,
)
from lakelog.core.expressions.values.texts import matches
from lakelog.core.expressions.values.times import day_shift, extracted, later
from lakelog.core.schema import DataType, DecimalType, PrimitiveType, StructType
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_paths import find_column, unknown_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_BOOLEAN, _DATE = PrimitiveType("boolean"), PrimitiveType("date")
_INTEGER, _LONG = PrimitiveType("integer"), PrimitiveType("long")
_STRING, _TIMESTAMP = PrimitiveType("string"), PrimitiveType("timestamp")
_VOID, _DOUBLE = PrimitiveType("void"), PrimitiveType("double")
_FLOAT = PrimitiveType("float")
_TYPES = {**SQL_TYPES, "VARCHAR": "string"}
_COMPARED = {
    "EQ": "=",
    "NEQ": "!=",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
}
_ADDED = {"Add": "add", "Sub": "subtract", "Mul": "multiply"}
_CHAINS = {
    **dict.fromkeys(("And", "Or"), "conditions"),
    **dict.fromkeys((*_ADDED, "Div", "IntDiv", "Mod"), "numbers"),
    "DPipe": "texts",
}
"""What is written in chains, `a + b + c`, and found from the left."""
_NULL = pa.nulls(1, pa.bool_())[0]
_FORMS = ("CAST", "TRY_CAST", "EXTRACT")
"""Functions with a grammar of their own."""
_LAZY = ("coalesce", "ifnull", "nullif", "nvl", "nvl2")
"""Functions of which Spark evaluates an argument only for the rows that need it."""
_NOW = ("current_timestamp", "now")
_TODAY = ("current_date", "curdate")


def evaluate_value(
    sql: str,
    rows: pa.Table,
    schema: StructType,
    target: DataType,
    *,
    session_tz: str = "UTC",
    now_ms: int | None = None,
    root: Any = None,
) -> pa.ChunkedArray:
    """The value of an expression for every row.

    Args:
        sql: the expression, in Spark's SQL.
        rows: columns with the names and Arrow types of the schema.
        schema: of the rows.
        target: the type that the values are cast to.
        session_tz: the time zone in which timestamps have dates.
        now_ms: what `current_timestamp()` gives; `None` refuses functions of the current time.
        root: what `parse_sql` makes of it, from callers that ask for many expressions in turn.

    Returns:
        As many values as there are rows, of the Arrow type of `target`.

    Raises:
        InvalidPredicateError: it can't be parsed, names an unknown column, or holds a part that
            only Spark evaluates.
        DeltaAnalysisError: a row without a result, such as a division by zero.
    """
    root = _parsed(sql) if root is None else root
    _refuse_unread(root, sql)
    arrow = to_arrow_type(target)
    chunks = []
    for batch in _used_columns(rows, root, schema).to_batches():
        walker = _Walker(sql, batch, schema, session_tz, now_ms)
        found = _evaluated(walker, root, target, sql, session_tz)
        if isinstance(found, pa.Scalar):
            found = pa.repeat(found, batch.num_rows)
        # Arrow's cast refuses a null struct whose part can't be null (a variant's), even to its own
        # type.
        chunks.append(found if found.type.equals(arrow) else found.cast(arrow))
    return pa.chunked_array(chunks, type=arrow)


def check_value(
    sql: str,
    schema: StructType,
    target: DataType,
    *,
    session_tz: str = "UTC",
    now_ms: int | None = None,
    root: Any = None,
) -> None:
    """Refuse an expression that `evaluate_value` would refuse for any rows.

    Args:
        sql: see `evaluate_value`, and so the rest.
        schema: of the rows to come.
        target: the type that the values are cast to.
        session_tz: the time zone in which timestamps have dates.
        now_ms: what `current_timestamp()` gives.
        root: what `parse_sql` makes of it, where that is known.

    Raises:
        DeltaAnalysisError: see `evaluate_value`.
    """
    root = parse_sql(sql) if root is None else root
    _refuse_unread(root, sql)
    walker = _Walker(sql, None, schema, session_tz, now_ms)
    _evaluated(walker, root, target, sql, session_tz)


def _used_columns(rows: pa.Table, root: Any, schema: StructType) -> pa.Table:
    """The columns that an expression names, or one that carries the number of rows.

    Arrow cuts a table into batches column by column, which is wasted work for unused columns.
    """
    from sqlglot import exp

    named = (schema.get(each.parts[0].name) for each in root.find_all(exp.Column))
    names = list(dict.fromkeys(field.name for field in named if field is not None))
    return rows.select(names or rows.column_names[:1])


def _evaluated(walker: _Walker, root: Any, target: DataType, sql: str, zone: str) -> Any:
    try:
        with explained_depth(sql):
            return assigned_value(walker.value(root), target, zone).data
    except NotInCoreError as exc:
        raise _only_spark(sql, str(exc)) from None
    except pa.ArrowException as exc:
        raise DeltaAnalysisError(
            f"the expression {sql!r} has no result for some row: {exc} (Spark's ANSI rules apply "
            "here, whatever spark.sql.ansi.enabled says)",
            sql=sql,
        ) from exc


def value_type(
    sql: str,
    schema: StructType,
    *,
    session_tz: str = "UTC",
    now_ms: int | None = 0,
    root: Any = None,
) -> DataType | None:
    """The type of an expression by Spark's rules; `None` where only Spark knows.

    Raises:
        InvalidPredicateError: it can't be parsed, or names an unknown column.
    """
    root = parse_sql(sql) if root is None else root
    if unread_below(root) is not None:
        return None
    try:
        with explained_depth(sql):
            return _Walker(sql, None, schema, session_tz, now_ms).value(root).data_type
    except (NotInCoreError, pa.ArrowException):
        return None


def true_for(
    sql: str, batch: pa.RecordBatch, schema: StructType, *, session_tz: str, now_ms: int | None
) -> Any:
    """A condition for each row of a batch: true, false or null.

    Raises:
        InvalidPredicateError: a part that only Spark evaluates, for the values of these rows.
        DeltaAnalysisError: a row for which it has no result.
    """
    walker = _Walker(sql, batch, schema, session_tz, now_ms)
    root = _parsed(sql)
    _refuse_unread(root, sql)
    found = _evaluated(walker, root, _BOOLEAN, sql, session_tz)
    return pa.repeat(found, batch.num_rows) if isinstance(found, pa.Scalar) else found


def constant_of(root: Any, *, session_tz: str, now_ms: int | None) -> Value | None:
    """The value of a tree without columns; `None` where it can't be computed here."""
    if unread_below(root) is not None:
        return None
    row = pa.record_batch({"": pa.nulls(1)})
    sql = tree_sql(root)
    try:
        found = _Walker(sql, row, StructType(()), session_tz, now_ms).value(root)
    except (NotInCoreError, InvalidPredicateError, pa.ArrowException):
        return None
    data = found.data if isinstance(found.data, pa.Scalar) else found.data[0]
    return Value(data, found.data_type)


def is_now(name: str) -> bool:
    """Whether a name without parentheses may be a function of the current time."""
    return name.lower() in (*_NOW, *_TODAY)


def tree_sql(root: Any) -> str:
    """The SQL of a tree of `parse_sql`."""
    sql: str = root.sql(dialect=_plain_dialect())
    return sql


@functools.lru_cache(maxsize=64)
def _parsed(sql: str) -> Any:
    """An expression is asked for every file."""
    return parse_sql(sql)


def parse_sql(sql: str) -> Any:
    """The expression as sqlglot's tree, in which every function keeps its own name.

    Raises:
        InvalidPredicateError: it can't be parsed, or is more than an expression.
    """
    import sqlglot
    from sqlglot import errors, exp

    check_sqlglot()
    with explained_depth(sql):
        try:
            root: Any = sqlglot.parse_one(for_sqlglot(sql), dialect=_plain_dialect())
        except errors.SqlglotError as exc:
            problem = in_plain_words(str(exc))
            raise InvalidPredicateError(f"can't parse the expression {sql!r}: {problem}") from None
    if not isinstance(root, exp.Condition | exp.Interval) or isinstance(root, exp.Query):
        raise InvalidPredicateError(f"{sql!r} is not an expression")
    return root


@functools.cache
def _plain_dialect() -> Any:
    """Spark's grammar without sqlglot's own idea of what each function means.

    It would rewrite `date_format`, `year` and others into functions of its own, each release a
    little differently.
    """
    from sqlglot.dialects import Spark

    parser: Any = Spark.Parser
    kept = {k: v for k, v in parser.FUNCTION_PARSERS.items() if k in _FORMS}
    names = {"FUNCTIONS": {}, "FUNCTION_PARSERS": kept, "NO_PAREN_FUNCTIONS": {}}
    plain = type("Parser", (parser,), {**names, "STRICT_CAST": True})
    return type(Spark)("LakelogValues", (Spark,), {"Parser": plain})


def _has_escape(pattern: Value) -> bool:
    """Whether a pattern of LIKE has an escape, some of which Spark refuses and Arrow does not."""
    return "\\" in (pattern.data.as_py() or "")


def _only_spark(sql: str, part: str) -> InvalidPredicateError:
    return InvalidPredicateError(
        f"the expression {sql!r} needs {part}, which only Spark evaluates", sql=sql, part=part
    )


class _Walker:
    """One walk over the tree, for one batch of rows."""

    def __init__(
        self,
        sql: str,
        batch: pa.RecordBatch | None,
        schema: StructType,
        zone: str,
        now_ms: int | None,
    ) -> None:
        # No batch: there are no rows, and the types alone are asked for.
        from sqlglot import exp

        self._exp: Any = exp
        self._sql = sql
        self._batch = batch
        self._schema = schema
        self._zone = zone
        self._now_ms = now_ms
        # The part below the one that `value` is at.
        self._found: tuple[Any, Any] = (None, None)

    def value(self, node: Any) -> Value:
        """The value of a node.

        `a OR b OR c …` is a tree as deep to the left as it is long, so its parts are found from
        the bottom: no such chain is too long for Python's stack.
        """
        if node is self._found[0]:
            return self._found[1]  # type: ignore[no-any-return]  # of the node that was just found
        chain = [node]
        while (kind := _CHAINS.get(type(chain[-1]).__name__)) is not None:
            if _CHAINS.get(type(chain[-1].this).__name__) != kind:
                break
            chain.append(chain[-1].this)
        for each in chain[:0:-1]:
            self._found = (each, self._of(each))
        return self._of(node)

    def _of(self, node: Any) -> Value:
        kind = type(node).__name__
        if kind in _COMPARED:
            return self._compared(kind, node)
        if kind in _ADDED:
            return self._arithmetic(kind, node)
        method = getattr(self, f"_{kind.lower()}", None)
        if method is None:
            raise NotInCoreError(node.sql(dialect="spark"))
        found: Value = method(node)
        return found

    # Values, columns and casts --------------------------------------------------------------

    def _paren(self, node: Any) -> Value:
        return self.value(node.this)

    def _null(self, _: Any) -> Value:
        return Value(scalar_of(None, pa.null()), _VOID)

    def _boolean(self, node: Any) -> Value:
        return Value(scalar_of(bool(node.this), pa.bool_()), _BOOLEAN)

    def _literal(self, node: Any) -> Value:
        text = str(node.this)
        if node.is_string:
            if has_odd_escapes(self._sql):
                raise NotInCoreError("a string with a backslash")
            return Value(scalar_of(text, pa.string()), _STRING)
        if text.isdigit():
            number = int(text)
            kind = _INTEGER if number < 1 << 31 else _LONG
            if number >= 1 << 63:
                raise NotInCoreError(f"the number {text}")
            return Value(scalar_of(number, to_arrow_type(kind)), kind)
        if "e" in text.lower():
            return Value(scalar_of(float(text), pa.float64()), _DOUBLE)
        exact = Decimal(text)
        scale = max(-int(exact.as_tuple().exponent), 0)
        decimal = DecimalType(max(len(exact.as_tuple().digits), scale), scale)
        return Value(scalar_of(exact, to_arrow_type(decimal)), decimal)

    def _neg(self, node: Any) -> Value:
        found = self.value(node.this)
        if found.data_type == _VOID:
            return found
        return Value(pc.negate_checked(found.data), found.data_type)

    def _column(self, node: Any) -> Value:
        parts = node.parts
        if not all(isinstance(each, self._exp.Identifier) for each in parts):
            raise NotInCoreError(node.sql(dialect="spark"))
        path = tuple(each.name for each in parts)
        found = find_column(path, self._schema)
        if found is None:
            if len(path) == 1 and not parts[0].quoted and path[0].lower() in (*_NOW, *_TODAY):
                return self._now(path[0].lower())
            raise unknown_column(path, self._schema, f" in the expression {self._sql!r}")
        spelled, data_type = found
        if self._batch is None:
            # Not of the whole struct: an expression for each of its fields would go through all.
            nothing = pa.nulls(0, to_arrow_type(data_type))
            return Value(nothing, data_type, self._char(spelled))
        data = self._batch.column(spelled[0])
        if len(spelled) > 1:
            data = pc.struct_field(data, list(spelled[1:]))
        return Value(data, data_type, self._char(spelled))

    def _char(self, path: Sequence[str]) -> int:
        limit = limit_of(self._schema.get(path[0])) if len(path) == 1 else None
        return limit.length if limit is not None and limit.pads else -1

    def _dot(self, node: Any) -> Value:
        root = node.this
        while isinstance(root, self._exp.Dot):
            root = root.this
        if not isinstance(root, self._exp.Column):
            # A field of a function's result.
            raise NotInCoreError(node.sql(dialect="spark"))
        return self._column(node)

    def _now(self, name: str) -> Value:
        if self._now_ms is None:
            raise NotInCoreError(f"{name}()")
        seconds, rest = divmod(self._now_ms, 1000)
        moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest * 1000)
        now = Value(scalar_of(moment, to_arrow_type(_TIMESTAMP)), _TIMESTAMP)
        return now if name in _NOW else cast_value(now, _DATE, self._zone)

    # Casts and functions --------------------------------------------------------------------

    def _cast(self, node: Any) -> Value:
        return cast_value(_bare(self.value(node.this)), self._type(node.to), self._zone)

    def _type(self, node: Any) -> DataType:
        name = getattr(node.this, "name", "")
        if name == "DECIMAL":
            sizes = [int(each.name) for each in node.expressions]
            return DecimalType(*sizes, *(0,) * (2 - len(sizes))) if sizes else DecimalType(10, 0)
        if name not in _TYPES or node.expressions:
            raise NotInCoreError(f"the type {node.sql(dialect='spark')}")
        return PrimitiveType(_TYPES[name])

    def _anonymous(self, node: Any) -> Value:
        name = str(node.this).lower()
        if name in (*_NOW, *_TODAY) and not node.expressions:
            return self._now(name)
        if name in _LAZY:
            return self._first(name, node)
        function = FUNCTIONS.get(name)
        if function is None:
            raise NotInCoreError(f"the function {name}")
        arguments = [_bare(self.value(each)) for each in node.expressions]
        try:
            return function(arguments, self._zone)
        except pa.ArrowException:
            raise
        except (ValueError, IndexError):
            # A different number of arguments than the function has here.
            raise NotInCoreError(node.sql(dialect="spark")) from None

    def _dpipe(self, node: Any) -> Value:
        for side in (node.this, node.expression):
            if type(side).__name__ in _ADDED:
                raise NotInCoreError("|| next to arithmetic without parentheses")
        texts = [as_text(self.value(each), self._zone) for each in (node.this, node.expression)]
        return Value(pc.binary_join_element_wise(*texts, "", null_handling="emit_null"), _STRING)

    # Arithmetic ------------------------------------------------------------------------------

    def _arithmetic(self, kind: str, node: Any) -> Value:
        if isinstance(node.expression, self._exp.Interval) and kind in ("Add", "Sub"):
            return self._later(kind, node)
        left, right = self.value(node.this), self.value(node.expression)
        if left.data_type == _DATE and kind in ("Add", "Sub"):
            return self._shifted(left, right, 1 if kind == "Add" else -1)
        if (decimals := self._decimals(node, left, right)) is not None:
            return arithmetic(kind, *decimals)
        (a, b), common = conjoined([left, right], self._zone)
        checked = _numeric(common, node)
        return Value(getattr(pc, f"{_ADDED[kind]}{checked}")(a, b), common)

    def _decimals(self, node: Any, left: Value, right: Value) -> list[Value] | None:
        """Both sides as decimals, if one of them is a decimal and the other one or an integer.

        An integer that is written there has as many digits as it needs, any other those of its
        type.
        """
        kinds = (left.data_type, right.data_type)
        if not any(isinstance(each, DecimalType) for each in kinds):
            return None
        found = []
        for part, each in ((node.this, left), (node.expression, right)):
            kind = as_decimal(each.data_type)
            digits = _written_digits(part)
            if kind is not None and digits is not None:
                kind = DecimalType(digits, 0)
            if kind is None:
                return None
            found.append(cast_value(each, kind, self._zone))
        return found

    def _later(self, kind: str, node: Any) -> Value:
        """A date or a time plus an interval of one unit; others are left to Spark."""
        start, interval = self.value(node.this), node.expression
        unit, count = interval.args.get("unit"), interval.this
        whole = isinstance(count, self._exp.Literal) and re.fullmatch(r"-?\d{1,9}", count.this)
        if not whole or not isinstance(unit, self._exp.Var):
            raise NotInCoreError(node.sql(dialect="spark"))
        number = int(count.this) if kind == "Add" else -int(count.this)
        return later(start, number, unit.name.upper().removesuffix("S"), self._zone)

    def _shifted(self, day: Value, days: Value, sign: int) -> Value:
        if days.data_type not in tuple(map(PrimitiveType, INTEGERS[:3])):
            raise NotInCoreError(f"a date and {days.data_type} in one sum")
        return day_shift(day, days, self._zone, sign)

    def _div(self, node: Any) -> Value:
        both = [self.value(node.this), self.value(node.expression)]
        if (decimals := self._decimals(node, *both)) is not None:
            return arithmetic("Div", *decimals)
        _numeric(common_type(both), node)
        a, b = (cast_value(each, _DOUBLE, self._zone).data for each in both)
        return Value(pc.divide_checked(a, b), _DOUBLE)

    def _intdiv(self, node: Any) -> Value:
        (a, b), common = conjoined([self.value(node.this), self.value(node.expression)], self._zone)
        if _numeric(common, node) == "":
            raise NotInCoreError(f"div of {common}")
        return Value(pc.divide_checked(pc.cast(a, pa.int64()), pc.cast(b, pa.int64())), _LONG)

    def _mod(self, node: Any) -> Value:
        both = [self.value(node.this), self.value(node.expression)]
        if (decimals := self._decimals(node, *both)) is not None:
            return arithmetic("Mod", *decimals)
        (a, b), common = conjoined(both, self._zone)
        if _numeric(common, node) == "":
            raise NotInCoreError(f"% of {common}")
        return Value(remainder(a, b), common)

    # Conditions ------------------------------------------------------------------------------

    def _compared(self, kind: str, node: Any) -> Value:
        return Value(self._comparison(_COMPARED[kind], node.this, node.expression), _BOOLEAN)

    def _comparison(self, op: str, left: Any, right: Any, *, fills_up: bool = True) -> Any:
        both = [self.value(left), self.value(right)]
        (a, b), nans = self._comparable(filled_up(both) if fills_up else both)
        return compare(op, a, b, nans=nans, b_nan=None)

    def _comparable(self, values: Sequence[Value]) -> tuple[list[Any], bool]:
        """The data in the type in which values are compared, and whether NaN may be among them."""
        common = compared_type(values)
        if not isinstance(common, PrimitiveType | DecimalType):
            raise NotInCoreError(f"a comparison of {common}")
        found = [cast_value(each, common, self._zone).data for each in values]
        return found, common in (PrimitiveType("float"), _DOUBLE)

    def _nullsafeeq(self, node: Any) -> Value:
        return Value(self._comparison("<=>", node.this, node.expression), _BOOLEAN)

    def _is(self, node: Any) -> Value:
        found = self.value(node.this)
        if isinstance(node.expression, self._exp.Null):
            return Value(pc.is_null(found.data), _BOOLEAN)
        if not isinstance(node.expression, self._exp.Boolean) or found.data_type != _BOOLEAN:
            raise NotInCoreError(node.sql(dialect="spark"))
        equal = pc.equal(found.data, scalar_of(bool(node.expression.this), pa.bool_()))
        return Value(pc.coalesce(equal, scalar_of(False, pa.bool_())), _BOOLEAN)

    def _like(self, node: Any) -> Value:
        pattern = self.value(node.expression)
        text = self.value(node.this)
        plain = isinstance(pattern.data, pa.Scalar) and pattern.data_type == _STRING
        if not plain or text.data_type != _STRING or _has_escape(pattern):
            raise NotInCoreError(node.sql(dialect="spark"))
        like = pc.match_like(text.data, pattern.data.as_py())
        return Value(pc.invert(like) if node.args.get("negate") else like, _BOOLEAN)

    def _ilike(self, node: Any) -> Value:
        """`LIKE` of both in lower case, which is how Spark defines it."""
        lower = FUNCTIONS["lower"]
        text, pattern = (self.value(each) for each in (node.this, node.expression))
        plain = isinstance(pattern.data, pa.Scalar) and pattern.data.is_valid
        if not plain or {text.data_type, pattern.data_type} != {_STRING} or _has_escape(pattern):
            raise NotInCoreError(node.sql(dialect="spark"))
        small = lower([text], self._zone).data
        like = pc.match_like(small, lower([pattern], self._zone).data.as_py())
        return Value(pc.invert(like) if node.args.get("negate") else like, _BOOLEAN)

    def _extract(self, node: Any) -> Value:
        return extracted(node.this.name, self.value(node.expression), self._zone)

    def _regexplike(self, node: Any) -> Value:
        return matches([self.value(node.this), self.value(node.expression)], self._zone)

    def _hexstring(self, node: Any) -> Value:
        text = str(node.this)
        data = bytes.fromhex(text.zfill(len(text) + len(text) % 2))
        return Value(scalar_of(data, pa.binary()), PrimitiveType("binary"))

    def _and(self, node: Any) -> Value:
        return Value(pc.and_kleene(*self._sides(node, decided=False)), _BOOLEAN)

    def _or(self, node: Any) -> Value:
        return Value(pc.or_kleene(*self._sides(node, decided=True)), _BOOLEAN)

    def _not(self, node: Any) -> Value:
        return Value(pc.invert(self._condition(node.this)), _BOOLEAN)

    def _sides(self, node: Any, *, decided: bool) -> tuple[Any, Any]:
        """Both sides of AND or OR. The right one need not have a value where the left decides."""
        left = self._condition(node.this)
        if self._batch is None or not _may_fail(node.expression):
            return left, self._condition(node.expression)
        if isinstance(left, pa.Scalar):
            left = pa.repeat(left, self._batch.num_rows)
        kept = pc.fill_null(pc.not_equal(left, scalar_of(decided, pa.bool_())), True)
        rows = pc.indices_nonzero(kept)
        right = self._of_rows(rows)._condition(node.expression)
        return left, _spread([(rows, right)], len(left), pa.bool_())

    def _between(self, node: Any) -> Value:
        # Spark fills up a CHAR in each single comparison, but not in BETWEEN.
        low = self._comparison(">=", node.this, node.args["low"], fills_up=False)
        high = self._comparison("<=", node.this, node.args["high"], fills_up=False)
        return Value(pc.and_kleene(low, high), _BOOLEAN)

    def _in(self, node: Any) -> Value:
        if not node.expressions:
            raise NotInCoreError(node.sql(dialect="spark"))
        # All of a list are compared in one type.
        found = [self.value(each) for each in (node.this, *node.expressions)]
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

    def _condition(self, node: Any) -> Any:
        found = self.value(node)
        if found.data_type not in (_BOOLEAN, _VOID):
            raise NotInCoreError(f"{node.sql(dialect='spark')} as a condition")
        return cast_value(found, _BOOLEAN, self._zone).data

    def _if(self, node: Any) -> Value:
        return self._chosen([node.this], [node.args["true"]], node.args.get("false"))

    def _case(self, node: Any) -> Value:
        arms = node.args["ifs"]
        if any(each.args.get("false") is not None for each in arms):
            raise NotInCoreError(node.sql(dialect="spark"))
        return self._chosen(
            [each.this for each in arms],
            [each.args["true"] for each in arms],
            node.args.get("default"),
        )

    def _chosen(self, when: Sequence[Any], then: Sequence[Any], otherwise: Any) -> Value:
        """The first that applies. A row's value is that of its arm; the others may have none."""
        otherwise = self._exp.Null() if otherwise is None else otherwise
        if self._batch is not None and any(map(_may_fail, (*when[1:], *then, otherwise))):
            return self._by_arm(
                [partial(self._taken_by, test, arm) for test, arm in zip(when, then, strict=True)],
                otherwise,
            )
        arms, kind = conjoined([self.value(each) for each in (*then, otherwise)], self._zone)
        found = arms[-1]
        for test, arm in zip(reversed(when), arms[-2::-1], strict=True):
            found = pc.if_else(pc.fill_null(self._condition(test), False), arm, found)
        return Value(found, kind)

    def _first(self, name: str, node: Any) -> Value:
        """`coalesce` and its kin."""
        given = node.expressions
        if name == "nullif" and len(given) == 2:
            # Spark rewrites it after it has filled up what is compared with a CHAR.
            same = self._comparison("=", given[0], given[1], fills_up=False)
            kept, missing = self.value(given[0]), pc.fill_null(same, False)
            return Value(pc.if_else(missing, scalar_of(None, kept.data.type), kept.data), kept[1])
        if name == "nvl2" and len(given) == 3:
            known = self._exp.Not(
                this=self._exp.Is(this=given[0].copy(), expression=self._exp.Null())
            )
            return self._chosen([known], [given[1]], given[2])
        if name in ("nullif", "nvl2") or not given or (name != "coalesce" and len(given) != 2):
            raise NotInCoreError(node.sql(dialect="spark"))
        if self._batch is not None and any(map(_may_fail, given[1:])):
            return self._by_arm([partial(self._given_by, each) for each in given[:-1]], given[-1])
        found, kind = conjoined([self.value(each) for each in given], self._zone)
        return Value(pc.coalesce(*found), kind)

    def _taken_by(self, test: Any, arm: Any, rows: Any) -> tuple[Any, Value]:
        """For which of some rows a test is true, and an arm's values for those."""
        passed = _flags(self._of_rows(rows)._condition(test), len(rows))
        return passed, self._of_rows(rows.filter(passed)).value(arm)

    def _given_by(self, arm: Any, rows: Any) -> tuple[Any, Value]:
        """For which of some rows an arm is not null, and its values there; evaluated once."""
        found = self._of_rows(rows).value(arm)
        passed = _flags(pc.is_valid(found.data), len(rows))
        is_one = isinstance(found.data, pa.Scalar)
        return passed, found if is_one else found._replace(data=found.data.filter(passed))

    def _by_arm(self, arms: Sequence[Callable[[Any], tuple[Any, Value]]], otherwise: Any) -> Value:
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

    def _of_rows(self, rows: Any) -> _Walker:
        """The same walk over some of the rows."""
        assert self._batch is not None
        batch = self._batch if len(rows) == self._batch.num_rows else self._batch.take(rows)
        return _Walker(self._sql, batch, self._schema, self._zone, self._now_ms)


def _bare(value: Value) -> Value:
    """The value as any other string: only a column itself is a CHAR."""
    return value._replace(char=-1)


def _refuse_unread(root: Any, sql: str) -> None:
    """Leave to Spark what has a part that no method of `_Walker` reads."""
    node = unread_below(root)
    if node is not None:
        raise _only_spark(sql, node.sql(dialect="spark"))


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


def _written_digits(node: Any) -> int | None:
    """The digits of an integer that is written in an expression; `None` of anything else."""
    kind = type(node).__name__
    if kind in ("Paren", "Neg"):
        return _written_digits(node.this)
    if kind == "Cast" and _written_digits(node.this) is not None:
        # `2L` is written so in the tree, too, and has other digits to Spark than a CAST.
        raise NotInCoreError(f"{node.sql(dialect='spark')} next to a decimal")
    if kind != "Literal" or node.is_string or not str(node.this).isdigit():
        return None
    return len(str(int(node.this)))


def _may_fail(node: Any) -> bool:
    """Whether some value could be an error: arithmetic, casts, any function."""
    kinds = {type(each).__name__ for each in node.walk()}
    harmless = {"Column", "Identifier", "Literal", "Null", "Boolean", "Paren", "Is", "Not"}
    harmless |= {"And", "Or", "Between", "In", "NullSafeEQ", *_COMPARED}
    return not kinds <= harmless


def _numeric(kind: DataType, node: Any) -> str:
    """The suffix of Arrow's functions: integers are checked for overflow, doubles are not."""
    if kind == _DOUBLE or (kind == _FLOAT and type(node).__name__ in _ADDED):
        return ""
    if isinstance(kind, PrimitiveType) and kind.name in INTEGERS:
        return "_checked"
    raise NotInCoreError(f"{node.sql(dialect='spark')} of {kind}")
