"""SQL text to a filter tree, by sqlglot's Spark dialect.

A tree must never be narrower than what Spark would evaluate: everything that is not literally a
comparison of a column with a value is left `Opaque`. sqlglot is lenient where Spark is not and
marks some negations as flags of a node, so a node with an argument that is not read here is
opaque too (`tree_shapes`).
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from lakelog.core.arrow.partitions import parse_value
from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.binding import (
    FLIPPED,
    coerce,
    comparable,
    fills_up,
    resolve,
    unify,
)
from lakelog.core.expressions.nesting import explained_depth
from lakelog.core.expressions.parse.long_lists import cut_lists
from lakelog.core.expressions.parse.plain_words import in_plain_words
from lakelog.core.expressions.parse.string_literals import for_sqlglot, has_odd_escapes
from lakelog.core.expressions.parse.tree_shapes import check_sqlglot, is_read, unread_below
from lakelog.core.expressions.parse.type_names import SQL_TYPES
from lakelog.core.expressions.tree import (
    Column,
    Comparison,
    Computed,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    StartsWith,
    join_and,
    join_or,
)
from lakelog.core.expressions.values.evaluate import (
    constant_of,
    is_now,
    parse_sql,
    tree_sql,
    value_type,
)
from lakelog.core.schema import DecimalType, PrimitiveType, StructType
from lakelog.core.schema.char_varchar import limit_of
from lakelog.core.schema.column_paths import unknown_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lakelog.core.expressions.parse.long_lists import CutText, PlainValue
    from lakelog.core.expressions.values.casts import Value
    from lakelog.core.schema import DataType

_OPERATORS = {
    "EQ": "=",
    "NEQ": "!=",
    "LT": "<",
    "LTE": "<=",
    "GT": ">",
    "GTE": ">=",
    "NullSafeEQ": "<=>",
}
_NO_LITERALS = ("boolean", "string", "binary", "variant")
_CASTS = {k: v for k, v in SQL_TYPES.items() if v not in _NO_LITERALS}
_BOOLEAN = PrimitiveType("boolean")
_STRING = PrimitiveType("string")
_TIMES = tuple(map(PrimitiveType, ("date", "timestamp", "timestamp_ntz")))


def parse_filter(
    sql: str, schema: StructType, *, session_tz: str = "UTC", now_ms: int | None = None
) -> Expression:
    """Parse a condition of Spark SQL and bind it to a schema.

    Args:
        sql: what follows `WHERE`.
        schema: the table's schema.
        session_tz: the zone of timestamps without one.
        now_ms: what `current_timestamp()` and `current_date()` are computed from; where it is
            `None`, they are left to Spark.

    Raises:
        InvalidPredicateError: it does not parse, names an unknown column, or has a string that is
            not a value of the column's type. Fields: `position`, 0-based, where it is known.
    """
    import sqlglot
    from sqlglot import errors

    if not sql.strip():
        raise InvalidPredicateError("a filter can't be empty; None means all rows")
    check_sqlglot()
    cut = cut_lists(for_sqlglot(sql))
    with explained_depth(sql):
        # First with every function under its own name, so that it is evaluated as it was written;
        # sqlglot's Spark grammar then covers forms that this one does not.
        with contextlib.suppress(InvalidPredicateError, _RewrittenError):
            plain = parse_sql(cut.sql)
            return _Parser(sql, cut, schema, session_tz, now_ms, computes=True).parse(plain)
        try:
            root = sqlglot.parse_one(cut.sql, dialect="spark")
        except errors.ParseError as exc:
            _refuse_parse(sql, cut, exc.errors)
        except errors.SqlglotError as exc:
            problem = in_plain_words(str(exc))
            raise InvalidPredicateError(f"can't parse the filter {sql!r}: {problem}") from None
        return _Parser(sql, cut, schema, session_tz, now_ms, computes=False).parse(root)


def _refuse_parse(sql: str, cut: CutText, found: list[dict[str, Any]]) -> NoReturn:
    first = found[0] if found else {}
    line, column = first.get("line") or 1, first.get("col") or 1
    before = sum(len(each) + 1 for each in cut.sql.splitlines()[: line - 1])
    position = cut.position(before + column - 1)
    what = in_plain_words(first.get("description", "no condition"))
    raise InvalidPredicateError(
        f"can't parse the filter {sql!r} at position {position}: {what}", position=position
    )


class _Parser:
    """One walk over sqlglot's tree."""

    def __init__(
        self,
        sql: str,
        cut: CutText,
        schema: StructType,
        session_tz: str,
        now_ms: int | None,
        *,
        computes: bool,
    ) -> None:
        from sqlglot import exp

        self._exp: Any = exp
        self._sql = sql
        self._cut = cut
        self._schema = schema
        self._tz = session_tz
        self._now_ms = now_ms
        self._computes = computes
        self._odd_escapes = has_odd_escapes(sql)
        self._rules: dict[Any, Callable[[Any], Expression]] = {
            exp.And: lambda n: join_and(map(self._visit, _chain(n))),
            exp.Or: lambda n: join_or(map(self._visit, _chain(n))),
            exp.Not: lambda n: Not(self._visit(n.this)),
            exp.Paren: lambda n: self._visit(n.this),
            exp.Boolean: lambda n: Literal(bool(n.this), _BOOLEAN),
            exp.Null: lambda _: Literal(None),
            exp.Column: self._boolean_column,
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.Like: self._like,
            exp.StartsWith: lambda n: self._starts_with(n, n.this, n.expression),
            exp.Anonymous: self._function,
        }

    def parse(self, root: Any) -> Expression:
        # `a = 1 b` parses, as a column with an alias; `select 1` parses too.
        if not isinstance(root, self._exp.Condition):
            at = root.args.get("alias")
            position = self._cut.position(at.meta.get("start") or 0) if at is not None else 0
            raise InvalidPredicateError(
                f"the filter {self._sql!r} is not a condition (see position {position})",
                position=position,
            )
        return self._visit(root)

    def _visit(self, node: Any) -> Expression:
        if not is_read(node):
            return self._opaque(node)
        rule = self._rules.get(type(node))
        if rule is not None:
            return rule(node)
        op = _OPERATORS.get(type(node).__name__)
        return self._comparison(op, node) if op else self._opaque(node)

    def _opaque(self, node: Any) -> Expression:
        return self._computed(node) or self._unknown(node)

    def _computed(self, node: Any) -> Expression | None:
        """A condition that is evaluated row by row, or once for all where it has no column."""
        # The parser has resolved escapes that mean something else to Spark.
        if not self._computes or self._odd_escapes:
            return None
        sql = tree_sql(node)
        if parse_sql(sql) != node:
            raise _RewrittenError
        columns = self._columns(node)
        if columns is None:
            return None
        if not columns:
            constant = self._constant(node)
            if constant is None or constant.data_type not in (_BOOLEAN, PrimitiveType("void")):
                return None
            return Literal(constant.data.as_py(), _BOOLEAN)
        whole = self._cut.whole(sql)
        kind = value_type(whole, self._schema, session_tz=self._tz, now_ms=self._now_ms)
        now = self._now_ms if _uses_current_time(node) else None
        return Computed(whole, columns, self._tz, now) if kind == _BOOLEAN else None

    def _constant(self, node: Any) -> Value | None:
        """The value of a node without columns, with its long lists back in place."""
        whole = parse_sql(self._cut.whole(tree_sql(node))) if self._cut.lists else node
        return constant_of(whole, session_tz=self._tz, now_ms=self._now_ms)

    def _columns(self, node: Any) -> frozenset[tuple[str, ...]] | None:
        """The columns below a node; `None` where something else may be among them."""
        if node.find(self._exp.Lambda, self._exp.Query) is not None:
            return None
        found = set()
        for each in node.find_all(self._exp.Column):
            if self._is_now(each):
                continue
            column = self._column(each)
            if column is None:
                return None
            found.add(column.path)
        return frozenset(found)

    def _is_now(self, node: Any) -> bool:
        """`current_date` without parentheses, which a column of that name hides."""
        if not isinstance(node, self._exp.Column) or len(node.parts) != 1 or not self._computes:
            return False
        name = node.parts[0]
        return not name.quoted and is_now(name.name) and resolve((name.name,), self._schema) is None

    def _folded(self, node: Any) -> Literal | None:
        """The value of an expression without columns."""
        if not self._computes or self._odd_escapes or self._columns(node) != frozenset():
            return None
        found = self._constant(node)
        if found is None:
            return None
        try:
            value = found.data.as_py()
        except (OverflowError, ValueError):
            return None  # A time that Python can't represent; Arrow compares with it.
        kind = found.data_type
        if kind == PrimitiveType("void") or value is None:
            return Literal(None)
        return Literal(value) if isinstance(kind, DecimalType) else Literal(value, kind)

    def _function(self, node: Any) -> Expression:
        name = str(node.this).lower()
        if name == "startswith" and len(node.expressions) == 2:
            return self._starts_with(node, *node.expressions)
        if name in ("isnull", "isnotnull") and len(node.expressions) == 1:
            column = self._column(node.expressions[0])
            if column is not None:
                return IsNull(column) if name == "isnull" else Not(IsNull(column))
        return self._opaque(node)

    def _unknown(self, node: Any) -> Opaque:
        found = set()
        # Names inside a lambda or a subquery can't be resolved here.
        inner = node.find(self._exp.Lambda, self._exp.Query) is not None
        for each in node.find_all(self._exp.Column):
            column = self._column(each, required=not inner)
            if column is not None:
                found.add(column.path)
        return Opaque(self._text(node), frozenset(found))

    def _column(self, node: Any, *, required: bool = True) -> Column | None:
        """The column that a node names; `None` where it is not a column, or is part of an array."""
        if not isinstance(node, self._exp.Column | self._exp.Dot) or self._is_now(node):
            return None
        parts = node.parts
        if not all(isinstance(p, self._exp.Identifier) for p in parts):
            return None
        if unread_below(node) is not None:
            return None
        path = tuple(p.name for p in parts)
        found = resolve(path, self._schema)
        top = resolve(path[:1], self._schema)
        if found is not None or not required or path[0] == "_metadata":
            return found
        if top is not None and not _only_structs(path, self._schema):
            return None
        start = parts[0].meta.get("start")
        start = None if start is None else self._cut.position(start)
        where = "" if start is None else f" at position {start}"
        error = unknown_column(path, self._schema, where)
        error.fields["position"] = start
        raise error

    def _literal(self, node: Any) -> Literal | None:
        """The value of a literal; `None` where the node is something else."""
        exp = self._exp
        if unread_below(node) is not None:
            return None
        match node:
            case exp.Paren():
                return self._literal(node.this)
            case exp.Null():
                return Literal(None)
            case exp.Boolean():
                return Literal(bool(node.this), _BOOLEAN)
            case exp.Neg():
                inner = self._literal(node.this)
                known = inner is not None and type(inner.value) in (int, float, Decimal)
                if inner and known:
                    return Literal(-inner.value, inner.data_type)
                return self._folded(node)
            case exp.HexString():
                text = str(node.this)
                return Literal(bytes.fromhex(text if len(text) % 2 == 0 else "0" + text))
            case exp.Cast() | exp.TryCast():
                return self._cast(node) or self._folded(node)
            case exp.Literal() if node.is_string:
                return None if self._odd_escapes else Literal(node.this)
            case exp.Literal():
                return _number(node.this)
            case exp.Column() if not self._is_now(node):
                return None
        return self._folded(node)

    def _cast(self, node: Any) -> Literal | None:
        """`DATE '…'`, `1L`, `1.5BD`, `CAST('…' AS DATE)`: sqlglot has one node for them all."""
        literal = node.this
        if isinstance(literal, self._exp.Neg | self._exp.Paren):
            inner = self._literal(literal)
            text = "" if inner is None or inner.value is None else str(inner.value)
            number = inner is not None and isinstance(inner.value, int | float | Decimal)
        elif isinstance(literal, self._exp.Literal) and not self._odd_escapes:
            text = str(literal.this).strip()
            number = not literal.is_string
        else:
            return None
        kind = self._cast_type(node.to)
        if not text or kind is None or (number and kind in _TIMES):
            return None  # A number is not the text of a time: 2024 is not a year.
        return self._time(text, kind)

    def _time(self, text: str, kind: DataType) -> Literal | None:
        try:
            if kind == PrimitiveType("date"):
                return coerce(Literal(text), kind, self._tz)
            value = parse_value(text, kind, self._tz)
        except ValueError:
            return None
        return Literal(value, kind)

    def _cast_type(self, node: Any) -> DataType | None:
        name = node.this.name if hasattr(node.this, "name") else ""
        if name == "DECIMAL":
            sizes = [int(each.name) for each in node.expressions]
            return DecimalType(*sizes) if len(sizes) == 2 else None
        return PrimitiveType(_CASTS[name]) if name in _CASTS and not node.expressions else None

    def _comparison(self, op: str, node: Any) -> Expression:
        left, right = self._column(node.this), self._column(node.expression)
        if left is not None and right is not None:
            is_plain = comparable(left, right) and not fills_up(left, right, self._schema)
            return Comparison(op, left, right) if is_plain else self._opaque(node)
        column = left or right
        literal = self._literal(node.expression if left is not None else node.this)
        if column is None or literal is None:
            return self._opaque(node)
        return self._typed(op, column, literal, node, flipped=left is None)

    def _typed(
        self, op: str, column: Column, literal: Literal, node: Any, *, flipped: bool = False
    ) -> Expression:
        right = self._coerced(literal, column, node)
        if right is None:
            return self._opaque(node)
        return Comparison(FLIPPED.get(op, op) if flipped else op, column, right)

    def _coerced(self, literal: Literal, column: Column, node: Any) -> Literal | None:
        """The literal in the type in which it is compared; `None` where Spark casts the column."""
        assert column.data_type is not None
        try:
            return coerce(literal, column.data_type, self._tz)
        except ValueError as exc:
            raise InvalidPredicateError(
                f"in {self._text(node)!r}: column {'.'.join(column.path)} is of type "
                f"{column.data_type}: {exc}"
            ) from None

    def _text(self, node: Any) -> str:
        """The SQL of a node. It costs a walk over the node: only for messages and opaque parts."""
        return self._cut.whole(node.sql(dialect="spark"))

    def _boolean_column(self, node: Any) -> Expression:
        column = self._column(node)
        if column is None or column.data_type != _BOOLEAN:
            return self._opaque(node)
        return Comparison("=", column, Literal(True, _BOOLEAN))

    def _is(self, node: Any) -> Expression:
        column = self._column(node.this)
        if column is None or not is_read(node.expression):
            return self._opaque(node)
        if isinstance(node.expression, self._exp.Null):
            return IsNull(column)
        if isinstance(node.expression, self._exp.Boolean) and column.data_type == _BOOLEAN:
            return Comparison("<=>", column, Literal(bool(node.expression.this), _BOOLEAN))
        return self._opaque(node)

    def _in(self, node: Any) -> Expression:
        column = self._column(node.this)
        if column is None or not node.expressions:
            return self._opaque(node)
        values = []
        for literal in self._listed(node.expressions):
            typed = None if literal is None else self._coerced(literal, column, node)
            if typed is None:
                return self._opaque(node)
            values.append(typed)
        # Spark compares all of a mixed list in one type, which may not be ours.
        same = unify(values)
        return In(column, same) if same else self._opaque(node)

    def _listed(self, nodes: Sequence[Any]) -> Iterable[Literal | None]:
        """The values of a list, `None` for each that is not a literal."""
        first = nodes[0]
        if len(nodes) == 1 and isinstance(first, self._exp.Literal) and first.is_string:
            found = self._cut.values(first.this)
            if found is not None:
                return map(self._plain, found)
        return map(self._literal, nodes)

    def _plain(self, value: PlainValue) -> Literal | None:
        word, plain = value
        if word is None:
            return Literal(plain)
        return self._time(str(plain).strip(), PrimitiveType(word.lower()))

    def _between(self, node: Any) -> Expression:
        column = self._column(node.this)
        low, high = self._literal(node.args["low"]), self._literal(node.args["high"])
        if column is None or low is None or high is None:
            return self._opaque(node)
        parts = [self._typed(">=", column, low, node), self._typed("<=", column, high, node)]
        if self._is_char(column):
            # Unlike `>=` and `<=`, BETWEEN compares a CHAR with the text as it is.
            parts = [_exactly(each) for each in parts]
        known = all(isinstance(each, Comparison) for each in parts)
        return join_and(parts) if known else self._opaque(node)

    def _is_char(self, column: Column) -> bool:
        limit = limit_of(self._schema.get(column.path[0])) if len(column.path) == 1 else None
        return limit is not None and limit.pads

    def _like(self, node: Any) -> Expression:
        column, literal = self._column(node.this), self._literal(node.expression)
        pattern = literal.value if literal is not None else None
        if column is None or column.data_type != _STRING or not isinstance(pattern, str):
            return self._opaque(node)
        stem = pattern.removesuffix("%")
        if re.search(r"[%_\\]", stem):
            return self._opaque(node)
        found: Expression = StartsWith(column, stem)
        if stem == pattern:
            if self._is_char(column):
                return self._opaque(node)  # LIKE, unlike `=`, counts the spaces.
            found = Comparison("=", column, Literal(stem, _STRING))
        return Not(found) if node.args.get("negate") else found

    def _starts_with(self, node: Any, text: Any, start: Any) -> Expression:
        column, literal = self._column(text), self._literal(start)
        prefix = literal.value if literal is not None else None
        if column is None or column.data_type != _STRING or not isinstance(prefix, str):
            return self._opaque(node)
        return StartsWith(column, prefix)


class _RewrittenError(Exception):
    """sqlglot would rewrite a part of the expression in another form."""


def _uses_current_time(node: Any) -> bool:
    return any(is_now(name) for name in re.findall(r"\w+", tree_sql(node)))


def _chain(node: Any) -> Iterable[Any]:
    """The conditions of `a AND b AND c`, or of such an OR, from left to right."""
    stack = [node]
    while stack:
        each = stack.pop()
        if type(each) is type(node) and is_read(each):
            stack += [each.expression, each.this]
        else:
            yield each


def _only_structs(path: tuple[str, ...], schema: StructType) -> bool:
    """Whether a path leads through structs only."""
    current: DataType = schema
    for part in path:
        if not isinstance(current, StructType):
            return isinstance(current, PrimitiveType | DecimalType)
        each = current.get(part)
        if each is None:
            return True
        current = each.data_type
    return True


def _number(text: str) -> Literal | None:
    if re.fullmatch(r"\d+", text):
        return Literal(int(text))
    if re.fullmatch(r"\d+\.\d*|\.\d+", text):
        return Literal(Decimal(text))
    try:
        return Literal(float(text))
    except ValueError:
        return None


def _exactly(part: Expression) -> Expression:
    if not isinstance(part, Comparison) or not isinstance(part.right, Literal):
        return part
    return replace(part, right=replace(part.right, exact=True))
