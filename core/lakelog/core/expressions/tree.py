"""Expressions of Spark's SQL as a tree: what filters, values and the parser have in common.

The meaning is Spark's: three-valued logic, `<=>` treats null as a value, NaN equals itself and is
greater than every number, -0.0 equals 0.0. What the tree can't express is kept as `Opaque`, which
is not evaluated here: pruning keeps every file for it, and a scan refuses it.

A text is parsed into nodes that know columns by their written names (`Name`) and that any value may
be a part of. A filter that `normalize_filter` returned is *bound*: what statistics can answer is a
node of its own there (`Comparison`, `In`, `IsNull`, `StartsWith`), in which columns are spelled as
in the schema and know their type, a column is on the left, and the type of the literal is the one
that both are compared in. All else is `Computed`, which has a tree of the first kind, or `Opaque`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from lakelog.core.expressions.context import DEFAULTS, EvalContext
from lakelog.core.schema import DataType, PrimitiveType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct."""

    path: tuple[str, ...]
    data_type: DataType | None = None
    """`None` until it is bound."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A value: `bool`, `int`, `float`, `Decimal`, `str`, `bytes`, `date`, `datetime`, or null.

    A `datetime` of type `timestamp` is in UTC. As an expression a literal is true, false or null.
    """

    value: Any
    data_type: DataType | None = None
    """`None` for null, and until it is bound."""
    exact: bool = False
    """Whether text is compared as it is with a CHAR column, not filled up with spaces first."""


def lit(value: Any) -> Literal:
    """A value as it is, where text would be SQL.

        update_rows("/lake/people", {"name": lit("upper(name)")})

    Args:
        value: of Python, numpy or pandas, an Arrow scalar, or `None`.
    """
    return Literal(value)


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left op right`."""

    op: str
    """One of `=`, `!=`, `<`, `<=`, `>`, `>=`, `<=>`."""
    left: Column
    right: Column | Literal


@dataclass(frozen=True, slots=True)
class In:
    """Whether a column is one of some values; null where it is not and one of them is null."""

    column: Column
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether a column is null; never null itself."""

    column: Column


@dataclass(frozen=True, slots=True)
class StartsWith:
    """Whether a string begins with a prefix: `LIKE 'prefix%'`."""

    column: Column
    prefix: str


@dataclass(frozen=True, slots=True)
class And:
    """All parts."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any part."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The opposite; null stays null."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Opaque:
    """A part that only an engine understands."""

    sql: str
    columns: frozenset[tuple[str, ...]] = frozenset()
    """The columns it is known to refer to; there may be more. Empty until it is bound."""
    names: tuple[Name, ...] = field(default=(), compare=False)
    """What may be columns, as the parser found them; variables of lambdas are not among them."""
    calls: tuple[str, ...] = field(default=(), compare=False)
    """The functions that it calls."""
    holds: frozenset[str] = field(default=frozenset(), compare=False)
    """Of `subquery`, `lambda` and `other` (windows, stars, placeholders) those within it."""
    why: str = field(default="", compare=False)
    """What an error says instead of `sql`."""


@dataclass(frozen=True, slots=True)
class Computed:
    """A condition of arithmetic, casts or functions, which is evaluated row by row.

    No statistics answer it, and it may have no result for some row.
    """

    sql: str
    columns: frozenset[tuple[str, ...]]
    """All that it refers to."""
    context: EvalContext = DEFAULTS
    """With the time only where that is asked for."""
    arrow: bytes | None = None
    """Instead of SQL an expression of pyarrow, pickled: two of those have no equality."""
    root: Expression | None = field(default=None, compare=False, repr=False)
    """What `sql` is the text of; `None` beside `arrow`."""


# What the parser makes of text ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Name:
    """A column as it is written, or a function of the time without its parentheses."""

    path: tuple[str, ...]
    quoted: bool = False
    """Whether the first part stands in backticks: then it is no function."""
    span: tuple[int, int] | None = field(default=None, compare=False)
    """Where it stands in the text: from, to."""


@dataclass(frozen=True, slots=True)
class Negative:
    """`-part`."""

    part: Expression


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`first op part op part …`, from left to right whatever the operators are.

    A chain is one node, so that no sum is too long for Python's stack.
    """

    first: Expression
    rest: tuple[tuple[str, Expression], ...]
    """Of `+`, `-`, `*`, `/`, `DIV`, `%`, and what is on the right."""


@dataclass(frozen=True, slots=True)
class Interval:
    """`INTERVAL number unit`, on the right of `+` or `-`."""

    number: int
    unit: str
    """In capitals, without a plural's S."""


@dataclass(frozen=True, slots=True)
class Cast:
    """`CAST(part AS type)`, and what is short for it: `DATE '…'`, `12L`."""

    part: Expression
    target: DataType
    safe: bool = False
    """`TRY_CAST`: null where there is no result."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by its name in lower case."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """An argument of a lambda, or a field of it."""

    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lambda:
    """`(variables) -> body`, which a function is given."""

    variables: tuple[str, ...]
    body: Expression


@dataclass(frozen=True, slots=True)
class Case:
    """`CASE WHEN test THEN result … ELSE otherwise END`, and `IF`."""

    tests: tuple[Expression, ...]
    results: tuple[Expression, ...]
    otherwise: Expression


@dataclass(frozen=True, slots=True)
class Compare:
    """`left op right`, of any two values; `Comparison` is the one that statistics answer."""

    op: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Between:
    """`part BETWEEN low AND high`.

    Not the same as two comparisons: these fill up a CHAR, and it does not.
    """

    part: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Among:
    """`part IN (items)`, of any values."""

    part: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class NullTest:
    """`part IS NULL`, of any value."""

    part: Expression


@dataclass(frozen=True, slots=True)
class TruthTest:
    """`part IS TRUE` or `part IS FALSE`; never null itself."""

    part: Expression
    wanted: bool


@dataclass(frozen=True, slots=True)
class Like:
    """`part LIKE pattern`, or `ILIKE`."""

    part: Expression
    pattern: Expression
    ignores_case: bool = False


Expression: TypeAlias = (
    Literal | Comparison | In | IsNull | StartsWith | And | Or | Not | Computed | Opaque
    | Name | Negative | Arithmetic | Interval | Cast | Call | Case
    | Compare | Between | Among | NullTest | TruthTest | Like | Lambda | Variable
)  # fmt: skip

FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""The equivalent operator with the sides exchanged, where it is a different one."""

_JOINTS = (
    *(And, Or, Not, Negative, Arithmetic, Cast, Call, Case),
    *(Compare, Between, Among, NullTest, TruthTest, Like, Lambda),
)
_NODES = (
    *(*_JOINTS, Literal, Comparison, In, IsNull, StartsWith, Computed, Opaque, Name, Interval),
    Variable,
)

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "<=>")


def join_and(parts: Iterable[Expression]) -> Expression:
    """The conjunction, flattened; TRUE of nothing."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat)) if flat else Literal(True, _BOOLEAN)


def join_or(parts: Iterable[Expression]) -> Expression:
    """The disjunction, flattened; FALSE of nothing."""
    flat = [p for part in parts for p in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat)) if flat else Literal(False, _BOOLEAN)


_BOOLEAN = PrimitiveType("boolean")


def columns(expr: Expression) -> frozenset[tuple[str, ...]]:
    """The paths of all columns that the expression is known to refer to."""
    match expr:
        case And(parts) | Or(parts):
            return frozenset().union(*map(columns, parts))
        case Not(part):
            return columns(part)
        case Comparison(_, left, right):
            both = [left.path, right.path] if isinstance(right, Column) else [left.path]
            return frozenset(both)
        case In(column, _) | IsNull(column) | StartsWith(column, _):
            return frozenset([column.path])
        case Opaque(_, found) | Computed(_, found):
            return found
        case _:
            return frozenset()


def conjuncts(expr: Expression | None) -> list[Expression]:
    """The parts that must all hold; none for `None`."""
    if expr is None:
        return []
    if isinstance(expr, And):
        return [each for part in expr.parts for each in conjuncts(part)]
    return [expr]


def is_partition_only(expr: Expression, partition_columns: Iterable[str]) -> bool:
    """Whether partition values alone decide it, so that it is true or not for a whole file.

    Something opaque is not decided here, whatever it refers to.
    """
    if is_opaque(expr):
        return False
    names = {name.lower() for name in partition_columns}
    return all(len(path) == 1 and path[0].lower() in names for path in columns(expr))


def is_opaque(expr: Expression) -> bool:
    """Whether a part of it is one that only an engine understands."""
    return _has(expr, Opaque)


def is_computed(expr: Expression) -> bool:
    """Whether a part of it may have no result for some row."""
    return _has(expr, Computed)


def _has(expr: Expression, kind: type[Opaque | Computed]) -> bool:
    match expr:
        case And(parts) | Or(parts):
            return any(_has(each, kind) for each in parts)
        case Not(part):
            return _has(part, kind)
        case _:
            return isinstance(expr, kind)


def children(expr: Expression) -> tuple[Expression, ...]:
    """The expressions that a node is made of; none for bound, opaque and computed ones."""
    if not isinstance(expr, _JOINTS):
        return ()
    return tuple(_within(getattr(expr, each) for each in expr.__dataclass_fields__))


def _within(values: Iterable[Any]) -> Iterator[Expression]:
    for value in values:
        if isinstance(value, tuple):
            yield from _within(value)
        elif isinstance(value, _NODES):
            yield value


def walk(expr: Expression) -> Iterator[Expression]:
    """All nodes, each before what it is made of, from left to right."""
    stack = [expr]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(children(node))


def renamed(expr: Expression, change: Callable[[Name], Expression]) -> Expression:
    """The same tree with each `Name` replaced; within opaque parts names stay as they are."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        if isinstance(value, Name):
            return change(value)
        if not isinstance(value, _JOINTS):
            return value
        parts = (changed(getattr(value, each)) for each in value.__dataclass_fields__)
        return type(value)(*parts)

    found: Expression = changed(expr)
    return found


def names(expr: Expression) -> list[Name]:
    """All names, those within opaque parts too, in the order of the text."""
    found: list[Name] = []
    for node in walk(expr):
        if isinstance(node, Name):
            found.append(node)
        elif isinstance(node, Opaque):
            found += node.names
    return found


def calls(expr: Expression) -> list[str]:
    """The names of all functions, in lower case, in the order of the text."""
    found: list[str] = []
    for node in walk(expr):
        if isinstance(node, Call):
            found.append(node.name)
        elif isinstance(node, Opaque):
            found += node.calls
    return found


def holds(expr: Expression) -> frozenset[str]:
    """See `Opaque.holds`, of all opaque parts."""
    return frozenset().union(*(n.holds for n in walk(expr) if isinstance(n, Opaque)))
