"""SQL text to a tree, by sqlglot's Spark dialect.

A tree must never say less than what Spark would evaluate. sqlglot is lenient where Spark is not and
marks some negations as flags of a node, so what has an argument that is not read here is opaque
(`tree_shapes`), and so is every form that has no node of ours.
"""

from __future__ import annotations

import functools
import re
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NoReturn

from lakelog.core.errors import InvalidPredicateError
from lakelog.core.expressions.nesting import explained_depth
from lakelog.core.expressions.parse.long_lists import cut_lists
from lakelog.core.expressions.parse.plain_words import in_plain_words
from lakelog.core.expressions.parse.string_literals import for_sqlglot, has_odd_escapes
from lakelog.core.expressions.parse.tree_shapes import check_sqlglot, is_read, unread_below
from lakelog.core.expressions.parse.type_names import SQL_TYPES, decimal_type
from lakelog.core.expressions.tree import (
    OPERATORS,
    Among,
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
    TruthTest,
    Variable,
    join_and,
    join_or,
    names,
)
from lakelog.core.schema import DecimalType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lakelog.core.expressions.parse.long_lists import CutText, PlainValue
    from lakelog.core.schema import DataType

_BOOLEAN, _STRING = PrimitiveType("boolean"), PrimitiveType("string")
_INTEGER, _LONG = PrimitiveType("integer"), PrimitiveType("long")
_DATE: Final = PrimitiveType("date")
_DOUBLE, _BINARY = PrimitiveType("double"), PrimitiveType("binary")
_TYPES: Final = {**SQL_TYPES, "VARCHAR": "string"}
_COMPARED: Final[dict[str, str]] = dict(
    zip(("EQ", "NEQ", "LT", "LTE", "GT", "GTE", "NullSafeEQ"), OPERATORS, strict=True)
)
_CALCULATED: Final = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "DIV", "Mod": "%"}
_FORMS: Final = ("CAST", "TRY_CAST", "EXTRACT")
"""Functions with a grammar of their own."""
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_WHOLE_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_DIGITS: Final = 38
_LONG_DIGITS: Final = 19
_MOST_REMEMBERED: Final = 4096
"""Characters of a text whose tree is kept."""


def parse_sql(sql: str) -> Expression:
    """The expression as a tree in which every function keeps its own name.

    Raises:
        InvalidPredicateError: it can't be parsed, or is more than an expression.
    """
    # Rules of a table are asked for again with each file; a list of keys never is, and may be long.
    return _remembered(sql) if len(sql) <= _MOST_REMEMBERED else _parsed(sql)


def _without_lists(sql: str) -> CutText:
    try:
        sql.encode()
    except UnicodeEncodeError as exc:
        at = exc.start
        raise InvalidPredicateError(
            f"{sql!r} is no text of Unicode: half a pair of surrogates is at position {at}",
            position=at,
        ) from None
    return cut_lists(for_sqlglot(sql))


def _parsed(sql: str) -> Expression:
    import sqlglot
    from sqlglot import errors, exp

    check_sqlglot()
    cut = _without_lists(sql)
    with explained_depth(sql):
        try:
            root: Any = sqlglot.parse_one(cut.sql, dialect=_plain_dialect())
        except errors.SqlglotError as exc:
            problem = in_plain_words(str(exc))
            raise InvalidPredicateError(f"can't parse the expression {sql!r}: {problem}") from None
        if not isinstance(root, exp.Condition | exp.Interval) or isinstance(root, exp.Query):
            raise InvalidPredicateError(f"{sql!r} is not an expression")
        return _Reader(sql, cut).read(root)


_remembered = functools.lru_cache(maxsize=64)(_parsed)


def parse_as_spark(sql: str) -> Expression:
    """The same by sqlglot's whole grammar of Spark.

    It covers forms that `parse_sql` does not, `trim(BOTH 'a' FROM s)`, and rewrites functions as
    sqlglot sees fit. So of those that it returns nothing is computed: they are opaque.

    Raises:
        InvalidPredicateError: it can't be parsed, or is no condition. Fields: `position`, 0-based,
            where it is known.
    """
    import sqlglot
    from sqlglot import errors, exp

    check_sqlglot()
    cut = _without_lists(sql)
    with explained_depth(sql):
        try:
            root: Any = sqlglot.parse_one(cut.sql, dialect="spark")
        except errors.ParseError as exc:
            _refuse_parse(sql, cut, exc.errors)
        except errors.SqlglotError as exc:
            problem = in_plain_words(str(exc))
            raise InvalidPredicateError(f"can't parse the filter {sql!r}: {problem}") from None
        # `a = 1 b` parses, as a column with an alias; `select 1` parses too.
        if not isinstance(root, exp.Condition):
            at = root.args.get("alias")
            position = cut.position(at.meta.get("start") or 0) if at is not None else 0
            raise InvalidPredicateError(
                f"the filter {sql!r} is not a condition (see position {position})",
                position=position,
            )
        return _Reader(sql, cut, simple=True).read(root)


def referenced_columns(sql: str) -> frozenset[tuple[str, ...]]:
    """The paths of the columns that an expression of Spark SQL names, as it spells them.

    Variables of lambda functions are not columns. Empty where the text can't be parsed: Spark may
    know more than the parser here, and has the better error where it does not.

    Raises:
        InvalidPredicateError: it nests too deeply to be parsed.
    """
    try:
        root = parse_as_spark(sql)
    except InvalidPredicateError as exc:
        if "levels" in exc.fields:
            raise
        return frozenset()
    return frozenset(each.path for each in names(root))


def _refuse_parse(sql: str, cut: CutText, found: list[dict[str, Any]]) -> NoReturn:
    first = found[0] if found else {}
    line, column = first.get("line") or 1, first.get("col") or 1
    before = sum(len(each) + 1 for each in cut.sql.splitlines()[: line - 1])
    position = cut.position(before + column - 1)
    what = in_plain_words(first.get("description", "no condition"))
    raise InvalidPredicateError(
        f"can't parse the filter {sql!r} at position {position}: {what}", position=position
    )


@functools.cache
def _plain_dialect() -> Any:
    """Spark's grammar without sqlglot's own idea of what each function means.

    It would rewrite `date_format`, `year` and others into functions of its own, each release a
    little differently.
    """
    from sqlglot.dialects import Spark

    parser: Any = Spark.Parser
    kept = {k: v for k, v in parser.FUNCTION_PARSERS.items() if k in _FORMS}
    plain = {"FUNCTIONS": {}, "FUNCTION_PARSERS": kept, "NO_PAREN_FUNCTIONS": {}}
    made = type("Parser", (parser,), {**plain, "STRICT_CAST": True})
    return type(Spark)("LakelogValues", (Spark,), {"Parser": made})


class _Reader:
    """One walk over sqlglot's tree."""

    def __init__(self, sql: str, cut: CutText, *, simple: bool = False) -> None:
        # Simple: columns, literals and how they are compared, and nothing that computes.
        from sqlglot import exp

        self._exp: Any = exp
        self._cut = cut
        self._odd_escapes = has_odd_escapes(sql)
        self._variables: frozenset[str] = frozenset()
        self._rules: dict[Any, Callable[[Any], Expression]] = {
            exp.And: lambda n: join_and(map(self.read, _chain(n))),
            exp.Or: lambda n: join_or(map(self.read, _chain(n))),
            exp.Not: lambda n: Not(self.read(n.this)),
            exp.Paren: lambda n: self.read(n.this),
            exp.Boolean: lambda n: Literal(bool(n.this), _BOOLEAN),
            exp.Null: lambda _: Literal(None),
            exp.Column: self._name,
            exp.Dot: self._name,
            exp.Literal: self._literal,
            exp.HexString: self._bytes,
            exp.Neg: self._negative,
            exp.Cast: self._literal_cast if simple else self._cast,
            exp.TryCast: self._literal_cast if simple else self._cast,
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: lambda n: Between(
                self.read(n.this), self.read(n.args["low"]), self.read(n.args["high"])
            ),
            exp.Like: self._like,
            exp.StartsWith: lambda n: Call("startswith", self._both(n)),
        }
        if not simple:
            self._rules |= {
                exp.Anonymous: self._call,
                exp.Transform: lambda n: Call("transform", self._both(n)),
                exp.Lambda: self._lambda,
                exp.Identifier: self._name,
                exp.ILike: self._like,
                exp.RegexpLike: lambda n: Call("rlike", self._both(n)),
                exp.Extract: self._extract,
                exp.Interval: self._interval,
                exp.If: self._if,
                exp.Case: self._case,
                exp.DPipe: self._joined,
                exp.Concat: self._literals_in_a_row,
                **{getattr(exp, each): self._arithmetic for each in _CALCULATED},
            }

    def read(self, node: Any) -> Expression:
        """The node as ours."""
        if not is_read(node):
            return self._opaque(node)
        rule = self._rules.get(type(node))
        if rule is not None:
            return rule(node)
        op = _COMPARED.get(type(node).__name__)
        return Compare(op, *self._both(node)) if op else self._opaque(node)

    def _both(self, node: Any) -> tuple[Expression, Expression]:
        return self.read(node.this), self.read(node.expression)

    def _opaque(self, node: Any, why: str = "") -> Opaque:
        exp = self._exp
        kinds = {
            "subquery": (exp.Query, exp.Subquery, exp.Exists),
            "lambda": (exp.Lambda,),
            "other": (exp.Window, exp.Star, exp.Placeholder),
        }
        found = (
            self._named(each) for each in node.find_all(exp.Column) if not self._is_bound(each)
        )
        return Opaque(
            self._cut.whole(node.sql(dialect="spark")),
            names=tuple(each for each in found if each is not None),
            calls=tuple(str(each.this).lower() for each in node.find_all(exp.Anonymous)),
            holds=frozenset(k for k, sought in kinds.items() if node.find(*sought) is not None),
            why=why,
        )

    def _is_bound(self, column: Any) -> bool:
        """Whether a name is that of a lambda's argument."""
        around = column.find_ancestor(self._exp.Lambda)
        while around is not None:
            name = column.parts[0].name.lower()
            if any(each.name.lower() == name for each in around.expressions):
                return True
            around = around.find_ancestor(self._exp.Lambda)
        return False

    # Columns and literals -----------------------------------------------------------------------

    def _name(self, node: Any) -> Expression:
        return self._variable(node) or self._named(node) or self._opaque(node)

    def _variable(self, node: Any) -> Variable | None:
        if not self._variables or unread_below(node) is not None:
            return None
        is_dot = isinstance(node, self._exp.Dot)
        parts = list(node.flatten()) if is_dot else getattr(node, "parts", [node])
        is_path = all(isinstance(each, self._exp.Identifier) for each in parts)
        is_known = is_path and parts[0].name.lower() in self._variables
        return Variable(tuple(each.name for each in parts)) if is_known else None

    def _lambda(self, node: Any) -> Expression:
        variables, around = tuple(each.name for each in node.expressions), self._variables
        self._variables = around | {each.lower() for each in variables}
        body = self.read(node.this)
        self._variables = around
        return Lambda(variables, body)

    def _named(self, node: Any) -> Name | None:
        """A column; `None` of a field of anything else, such as a function's result."""
        root = node
        while isinstance(root, self._exp.Dot):
            root = root.this
        if not isinstance(root, self._exp.Column) or unread_below(node) is not None:
            return None
        parts = node.parts
        if not all(isinstance(each, self._exp.Identifier) for each in parts):
            return None
        start, end = parts[0].meta.get("start"), parts[-1].meta.get("end")
        place = None
        if start is not None and end is not None:
            place = self._cut.position(start), self._cut.position(end) + 1
        return Name(tuple(each.name for each in parts), any(each.quoted for each in parts), place)

    def _literal(self, node: Any) -> Expression:
        text = str(node.this)
        if not node.is_string:
            return _number(text) or self._opaque(node, f"the number {text}")
        # The parser has resolved escapes that mean something else to Spark.
        if self._odd_escapes:
            return self._opaque(node, "a string with a backslash")
        return Literal(text, _STRING)

    def _negative(self, node: Any) -> Expression:
        part = self.read(node.this)
        return _negated(part) if isinstance(node.this, self._exp.Literal) else Negative(part)

    def _literals_in_a_row(self, node: Any) -> Expression:
        """`'a' 'b'`, which is one text to Spark."""
        found = [self.read(each) for each in node.expressions]
        texts = [each.value for each in found if isinstance(each, Literal)]
        if len(texts) < len(found) or not all(isinstance(each, str) for each in texts):
            return self._opaque(node)
        return Literal("".join(texts), _STRING)

    def _bytes(self, node: Any) -> Expression:
        text = str(node.this)
        return Literal(bytes.fromhex(text.zfill(len(text) + len(text) % 2)), _BINARY)

    # Values --------------------------------------------------------------------------------------

    def _cast(self, node: Any) -> Expression:
        target = _type(node.to) if unread_below(node.to) is None else None
        if target is None:
            return self._opaque(node)
        part = self.read(node.this)
        if isinstance(part, Literal):
            found = _short_for(part, target)
            if found is not None:
                return found
        return Cast(part, target, isinstance(node, self._exp.TryCast))

    def _literal_cast(self, node: Any) -> Expression:
        found = self._cast(node)
        part = found
        while isinstance(part, Cast | Negative):
            part = part.part
        return found if isinstance(part, Literal) else self._opaque(node)

    def _call(self, node: Any) -> Expression:
        if not isinstance(node.this, str):
            return self._opaque(node)
        name, given = node.this.lower(), tuple(map(self.read, node.expressions))
        if name in ("isnull", "isnotnull") and len(given) == 1:
            return NullTest(given[0]) if name == "isnull" else Not(NullTest(given[0]))
        return Call(name, given)

    def _extract(self, node: Any) -> Expression:
        """`EXTRACT(field FROM part)`, which is short for `date_part('field', part)`."""
        if not is_read(node.this):
            return self._opaque(node)
        return Call("date_part", (Literal(node.this.name, _STRING), self.read(node.expression)))

    def _interval(self, node: Any) -> Expression:
        """An interval of one unit; others are left to Spark."""
        unit, count = node.args.get("unit"), node.this
        whole = isinstance(count, self._exp.Literal) and re.fullmatch(r"-?\d{1,9}", count.this)
        if not whole or not isinstance(unit, self._exp.Var) or unread_below(node) is not None:
            return self._opaque(node)
        return Interval(int(count.this), unit.name.upper().removesuffix("S"))

    def _arithmetic(self, node: Any) -> Expression:
        first, *steps = _spine(node, tuple(_CALCULATED))
        rest = ((_CALCULATED[type(each).__name__], self.read(each.expression)) for each in steps)
        return Arithmetic(self.read(first), tuple(rest))

    def _joined(self, node: Any) -> Expression:
        """`a || b || c`, another name of `concat`."""
        first, *steps = _spine(node, ("DPipe",))
        parts = [first, *(each.expression for each in steps)]
        # Spark reads `a || b + c` from left to right, sqlglot does not.
        if any(type(each).__name__ in ("Add", "Sub", "Mul") for each in parts):
            return self._opaque(node, "|| next to arithmetic without parentheses")
        return Call("concat", tuple(map(self.read, parts)))

    def _if(self, node: Any) -> Expression:
        otherwise = node.args.get("false")
        return Case(
            (self.read(node.this),),
            (self.read(node.args["true"]),),
            Literal(None) if otherwise is None else self.read(otherwise),
        )

    def _case(self, node: Any) -> Expression:
        arms, key, otherwise = node.args["ifs"], node.this, node.args.get("default")
        if not all(is_read(each) and each.args.get("false") is None for each in arms):
            return self._opaque(node)
        tests = [self.read(each.this) for each in arms]
        if key is not None:
            # As Spark rewrites it.
            tests = [Compare("=", self.read(key), each) for each in tests]
        return Case(
            tuple(tests),
            tuple(self.read(each.args["true"]) for each in arms),
            Literal(None) if otherwise is None else self.read(otherwise),
        )

    # Conditions ----------------------------------------------------------------------------------

    def _is(self, node: Any) -> Expression:
        given = node.expression
        if is_read(given) and isinstance(given, self._exp.Null):
            return NullTest(self.read(node.this))
        if is_read(given) and isinstance(given, self._exp.Boolean):
            return TruthTest(self.read(node.this), bool(given.this))
        return self._opaque(node)

    def _like(self, node: Any) -> Expression:
        found = Like(*self._both(node), isinstance(node, self._exp.ILike))
        return Not(found) if node.args.get("negate") else found

    def _in(self, node: Any) -> Expression:
        if not node.expressions:
            return self._opaque(node)
        return Among(self.read(node.this), tuple(self._listed(node.expressions)))

    def _listed(self, nodes: list[Any]) -> Iterable[Expression]:
        first = nodes[0]
        if len(nodes) == 1 and isinstance(first, self._exp.Literal) and first.is_string:
            found = self._cut.values(first.this)
            if found is not None:
                return map(_plain, found)
        return map(self.read, nodes)


def _chain(node: Any) -> Iterator[Any]:
    """The conditions of `a AND b AND c`, or of such an OR, from left to right."""
    stack = [node]
    while stack:
        each = stack.pop()
        if type(each) is type(node) and is_read(each):
            stack += [each.expression, each.this]
        else:
            yield each


def _spine(node: Any, kinds: tuple[str, ...]) -> list[Any]:
    """What a chain of operators starts with, and each of its steps."""
    steps = [node]
    while type(steps[-1].this).__name__ in kinds and is_read(steps[-1].this):
        steps.append(steps[-1].this)
    return [steps[-1].this, *reversed(steps)]


def _type(node: Any) -> DataType | None:
    name = getattr(node.this, "name", "")
    if name == "DECIMAL":
        return decimal_type(node.expressions)
    known = name in _TYPES and not node.expressions
    return PrimitiveType(_TYPES[name]) if known else None


def _number(text: str) -> Literal | None:
    """A number as Spark types it; `None` of one that has more digits than any type."""
    # By its length first: Python refuses to convert thousands of digits, in a bare ValueError.
    if len(text) <= _LONG_DIGITS and text.isdigit() and int(text) < 1 << 63:
        return Literal(int(text), _INTEGER if int(text) < 1 << 31 else _LONG)
    if "e" in text.lower():
        return Literal(float(text), _DOUBLE)
    exact = Decimal(text)
    scale = max(-int(exact.as_tuple().exponent), 0)
    digits = max(len(exact.as_tuple().digits), scale)
    return Literal(exact, DecimalType(digits, scale)) if digits <= _MOST_DIGITS else None


def _negated(part: Expression) -> Expression:
    """`-` and a number, which are one number to Spark: so the smallest integers have their type."""
    match part:
        case Literal(value, kind) if (value, kind) == (1 << 31, _LONG):
            return Literal(-(1 << 31), _INTEGER)
        case Literal(value, kind) if (value, kind) == (1 << 63, DecimalType(19, 0)):
            return Literal(-(1 << 63), _LONG)
    return Negative(part)


def _short_for(literal: Literal, target: DataType) -> Literal | None:
    """`1.5D`, `1.5BD` and `DATE '…'`, which sqlglot has as a CAST; `None` of what Spark casts."""
    value = literal.value
    if target == _DATE and isinstance(value, str):
        return _day(value)
    if target == _DOUBLE and isinstance(value, Decimal):
        return Literal(float(value), _DOUBLE)
    is_number = isinstance(value, str) and _NUMBER.fullmatch(value) is not None
    if not is_number or not isinstance(target, DecimalType):
        return None
    exact = Decimal(value)
    fits = -int(exact.as_tuple().exponent) == target.scale
    fits = fits and exact.adjusted() < target.precision - target.scale
    return Literal(exact, target) if fits else None


def _day(text: str) -> Literal | None:
    if _WHOLE_DAY.fullmatch(text) is None:
        return None
    try:
        return Literal(date.fromisoformat(text), _DATE)
    except ValueError:
        return None


def _plain(given: PlainValue) -> Expression:
    """A value of a long list."""
    word, value = given
    if word == "DATE" and (day := _day(str(value))) is not None:
        return day
    if word is not None:
        return Cast(Literal(value, _STRING), PrimitiveType(word.lower()))
    if value is None or isinstance(value, str):
        return Literal(value, None if value is None else _STRING)
    if isinstance(value, int) and abs(value) < 1 << 31:
        return Literal(value, _INTEGER)
    found = _number(str(abs(value)))
    if found is None:
        return Opaque(str(value), why=f"the number {value}")
    return _negated(found) if value < 0 else found
