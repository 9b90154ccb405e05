"""Where a query names tables: the places in its text, found without parsing its expressions.

Only what follows FROM, JOIN, a comma of FROM, or TABLE is a table. Names of common table
expressions are not, and `FROM` in `extract(…)`, `trim(…)` and `IS DISTINCT FROM` precedes no table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.text.keywords import (
    BEFORE_TABLE,
    ENDS_LIST,
    LOOKED_AT,
    NO_ALIAS,
    STARTS,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from lakelog.spark.sql_statements.text.tokens import Token

_FUNCTIONS = frozenset({"TABLE_CHANGES", "TABLE_CHANGES_BY_PATH"})
_TIMES = {
    "VERSION": "version",
    "SYSTEM_VERSION": "version",
    "TIMESTAMP": "timestamp",
    "SYSTEM_TIME": "timestamp",
}
_VERSION = re.compile(r"[vV]\d+")
_OPERATORS = frozenset({"+", "-", "*", "/", "%", "||"})


@dataclass(frozen=True, slots=True)
class Reference:
    """A table, or a call of `table_changes`, in a query. Numbers are those of tokens."""

    parts: tuple[str, ...]
    """The name; of a call, the function's."""
    first: int
    end: int
    """After the name, its AS OF and the arguments of a call."""
    travel: str | None = None
    """`version` or `timestamp`, if the name has an AS OF."""
    when: tuple[int, int] = (0, 0)
    """The tokens of the version or time."""
    arguments: tuple[tuple[int, int], ...] = ()
    """The tokens of each argument of a call."""
    alias_at: int | None = None
    """Before which token an alias may be put; `None` where there is one."""
    where: tuple[int, int] = (0, 0)
    """The tokens of the condition that all rows of the table must fulfil, if there is one."""
    alias: str | None = None
    """What that condition may call the table."""
    options: tuple[int, int] = (0, 0)
    """The tokens between the parentheses of `WITH (…)` after it."""

    @property
    def is_call(self) -> bool:
        """Whether it is a call of `table_changes`."""
        return bool(self.arguments)

    @property
    def name_end(self) -> int:
        """The token after the name."""
        return self.first + 2 * len(self.parts) - 1


def references(tokens: Sequence[Token]) -> list[Reference]:
    """The tables in the queries of a statement, in the order of the text."""
    scan = _Scan(tokens)
    scan.frame(0, len(tokens), frozenset(), relation=False, inner=False)
    return sorted(scan.found, key=lambda each: each.first)


def after_ctes(tokens: Sequence[Token]) -> int:
    """The token after the common table expressions that a statement begins with; 0: none."""
    if not tokens or tokens[0].upper != "WITH":
        return 0
    scan = _Scan(tokens)
    first = scan.cte(1, len(tokens))
    return 0 if first is None else scan.ctes(0, first, len(tokens), set())


# Why not a parser: each version of Spark adds to its grammar, and a shape that the parser did not
# know would keep Spark from a query that it can read. Spark's own parser is no way either: over
# Connect there is none in this process. What is overlooked here goes to Spark as it was written,
# which then reports the table.
class _Scan:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.found: list[Reference] = []
        self.closing = dict(_pairs(tokens))
        # A word after a dot is part of a name. The last one stands for what is beyond the end.
        after_dot = [False, *(each.text == "." for each in tokens)]
        words = zip(tokens, after_dot, strict=False)
        self.words = [*("" if dotted else each.upper for each, dotted in words), ""]
        # USING of a MERGE has a table after it, that of a join has columns.
        self.merges = "MERGE" in self.words and {"INTO", "MATCHED"} <= set(self.words)

    def upper(self, at: int) -> str:
        """The keyword or symbol at a place; empty after a dot, where it is part of a name."""
        return self.words[at] if 0 <= at < len(self.words) else ""

    def frame(
        self, low: int, high: int, outer: frozenset[str], *, relation: bool, inner: bool
    ) -> None:
        """Look at the tokens between two parentheses, or at a whole statement.

        Args:
            low: the first token.
            high: the token after the last.
            outer: the common table expressions that are known here, in lower case.
            relation: whether a table is expected at the beginning.
            inner: whether it is within parentheses.
        """
        known = set(outer)
        is_query = inner and self.upper(low) in STARTS
        expects, in_list = relation, False
        at = low
        while at < high:
            word = self.words[at]
            if not expects and word not in LOOKED_AT:
                at += 1
                continue
            if word == "(":
                close = min(self.closing.get(at, high), high)
                queries = self._starts_query(at)
                self.frame(
                    at + 1,
                    close,
                    frozenset(known),
                    relation=expects and not queries,
                    inner=queries,
                )
                expects, at = False, close + 1
                continue
            if expects:
                if word in ("LATERAL", "STREAM") and self._is_name(at + 1):
                    at += 1
                    expects = word == "LATERAL"
                    continue
                if word == "LATERAL":
                    at += 1
                    continue
                expects = False
                if word not in STARTS and self._is_name(at):
                    at = self._relation(at, high, known)
                    continue
                if word == "TABLE":
                    at += 1
                    continue
            if word == "WITH" and (cte := self.cte(at + 1, high)) is not None:
                at = self.ctes(at, cte, high, known)
                is_query = True
                continue
            if word == "SELECT":
                is_query = True
            if word == "FROM" and self._begins_list(at, is_query=is_query):
                is_query = expects = in_list = True
            elif (
                (word == "JOIN" and (is_query or relation))
                or (word == "," and in_list)
                or (word == "USING" and self.merges and not inner)
                or (word == "TABLE" and self._is_query_table(at, low, inner or is_query))
            ):
                expects = True
            elif word in ENDS_LIST or (word == "LATERAL" and self.upper(at + 1) == "VIEW"):
                in_list = False
            at += 1

    def _starts_query(self, at: int) -> bool:
        """Whether a query is in parentheses."""
        word = self.upper(at + 1)
        return word in STARTS and not (word == "FROM" and self.upper(at - 1) == "TRIM")

    def _is_query_table(self, at: int, low: int, is_query: bool) -> bool:
        """Whether TABLE begins a query, or an argument that is a table."""
        if at == low and not is_query:
            # `f(TABLE t)`, or the statement `TABLE t`.
            return True
        return (is_query or at != low) and self.upper(at - 1) in BEFORE_TABLE

    def _begins_list(self, at: int, *, is_query: bool) -> bool:
        before = self.upper(at - 1)
        if before == "DISTINCT" and self.upper(at - 2) in ("IS", "NOT"):
            return False
        if is_query:
            return True
        return at == 0 or before in ("AS", "EXPLAIN", "EXTENDED", "CODEGEN", "COST", "FORMATTED")

    def _is_name(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].name is not None

    def _relation(self, first: int, high: int, known: set[str]) -> int:
        """Note the table at a place; return the token after its name."""
        parts, at = self._name(first, high)
        if self.upper(at) == "(" and at < high:
            if len(parts) == 1 and parts[0].upper() in _FUNCTIONS:
                self._call(parts, first, at)
            return at
        # A common table expression hides a table of its name, as a temporary view does.
        if len(parts) == 1 and parts[0].lower() in known:
            return at
        travel, when, end = self._as_of(at, high)
        options = (0, 0)
        if self.upper(end) == "WITH" and self.upper(end + 1) == "(":
            close = self.closing.get(end + 1)
            if close is None:
                return end
            options, end = (end + 2, close), close + 1
        # `TABLE t` has no alias.
        named = self.upper(first - 1) == "TABLE"
        alias_at = None if named else self._alias_place(end, high)
        where = self._where(first, end, high)
        alias = parts[-1] if where[0] == end + 1 else self.tokens[where[0] - 2].name
        self.found.append(
            Reference(parts, first, end, travel, when, (), alias_at, where, alias, options)
        )
        return end

    def _name(self, at: int, high: int) -> tuple[tuple[str, ...], int]:
        parts = []
        while True:
            name = self.tokens[at].name
            assert name is not None
            parts.append(name)
            at += 1
            if at + 1 >= high or self.tokens[at].text != "." or not self._is_name(at + 1):
                return tuple(parts), at
            at += 1

    def _call(self, parts: tuple[str, ...], first: int, opening: int) -> None:
        close = self.closing.get(opening)
        if close is None:
            return
        arguments = tuple(_separated(self.tokens, opening + 1, close, self.closing))
        if arguments:
            end = close + 1
            self.found.append(Reference(parts, first, end, arguments=arguments))

    def _as_of(self, at: int, high: int) -> tuple[str | None, tuple[int, int], int]:
        if self.upper(at) == "@" and at + 1 < high and _VERSION.fullmatch(self.tokens[at + 1].text):
            return "version", (at + 1, at + 2), at + 2  # `t@v1`
        begin = at + 1 if self.upper(at) == "FOR" else at
        travel = _TIMES.get(self.upper(begin))
        if travel is None or self.upper(begin + 1) != "AS" or self.upper(begin + 2) != "OF":
            return None, (0, 0), at
        first = begin + 3
        end = self._value_end(first, high)
        return (travel, (first, end), end) if end > first else (None, (0, 0), at)

    def _value_end(self, at: int, high: int) -> int:
        """Where the value of an AS OF ends, before an alias or the rest of the query."""
        at = self._primary_end(at, high)
        while at < high:
            word = self.upper(at)
            if word in _OPERATORS or word == "::":
                at = self._primary_end(at + 1, high)
            else:
                break
        return at

    def _primary_end(self, at: int, high: int) -> int:
        if at >= high:
            return at
        word, token = self.upper(at), self.tokens[at]
        if word in ("-", "+", ":"):
            return self._primary_end(at + 1, high) if word != ":" else at + 2
        if word == "(":
            return self.closing.get(at, high - 1) + 1
        if word == "INTERVAL":
            at += 1
            while at + 1 < high and self.tokens[at].kind in ("number", "string"):
                at += 2
            return at + 2 if self.upper(at) == "TO" else at
        if token.kind == "word":
            following = at + 1
            if following < high and self.tokens[following].kind == "string":
                return at + 2  # DATE'…', TIMESTAMP'…'
            if self.upper(following) == "(":
                return self.closing.get(following, high - 1) + 1
        return at + 1

    def _alias_place(self, at: int, high: int) -> int | None:
        while self.upper(at) == "TABLESAMPLE" and at < high:
            at += 1
            if self.upper(at) in ("SYSTEM", "BERNOULLI"):
                at += 1
            at = self.closing.get(at, at) + 1
            if self.upper(at) == "REPEATABLE":
                at = self.closing.get(at + 1, at + 1) + 1
        if at >= high:
            return at
        word = self.upper(at)
        if word == "AS" or self.tokens[at].kind == "quoted":
            return None
        if self.tokens[at].kind == "word" and word not in NO_ALIAS:
            return None
        return at

    def _where(self, first: int, end: int, high: int) -> tuple[int, int]:
        """The condition of a SELECT that has no other table."""
        # With a second table the condition may be about the columns of that one, and after an outer
        # join it is about rows that no file has.
        if self.upper(first - 1) != "FROM":
            return 0, 0
        at = end
        if self.upper(at) == "AS":
            at += 2
        elif self.upper(at) not in NO_ALIAS and self._is_name(at):
            at += 1
        if self.upper(at) != "WHERE":
            return 0, 0
        begin = at = at + 1
        while at < high and self.upper(at) not in ENDS_LIST and self.upper(at) != "LATERAL":
            at = self.closing.get(at, at) + 1
        return begin, min(at, high)

    def cte(self, at: int, high: int) -> tuple[str, int, int] | None:
        """The name, and the parentheses, of the common table expression that begins at a place."""
        if self.upper(at) == "RECURSIVE" and self._is_name(at + 1):
            at += 1
        if at >= high or not self._is_name(at):
            return None
        name = self.tokens[at].name or ""
        at += 1
        if self.upper(at) == "(" and (close := self.closing.get(at)) is not None:
            if self.upper(at + 1) in STARTS and self.upper(close + 1) != "AS":
                return name, at, close
            at = close + 1
        if self.upper(at) == "MAX":
            at += 4  # MAX RECURSION LEVEL 10
        if self.upper(at) == "AS":
            at += 1
        close = self.closing.get(at)
        if self.upper(at) != "(" or close is None or close >= high:
            return None
        return name, at, close

    def ctes(self, at: int, first: tuple[str, int, int], high: int, known: set[str]) -> int:
        """Look at common table expressions; return the token after the last."""
        recursive = self.upper(at + 1) == "RECURSIVE" and self.tokens[at + 1].name != first[0]
        found: tuple[str, int, int] | None = first
        while found is not None:
            name, opening, close = found
            if recursive:
                known.add(name.lower())
            self.frame(opening + 1, close, frozenset(known), relation=False, inner=True)
            known.add(name.lower())
            at = close + 1
            found = self.cte(at + 1, high) if self.upper(at) == "," else None
        return at


def _pairs(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Each opening parenthesis, with the one that closes it."""
    opened = []
    for number, each in enumerate(tokens):
        if each.text == "(":
            opened.append(number)
        elif each.text == ")" and opened:
            yield opened.pop(), number


def _separated(
    tokens: Sequence[Token], low: int, high: int, closing: dict[int, int]
) -> Iterator[tuple[int, int]]:
    """The arguments between two parentheses."""
    at = begin = low
    while at < high:
        if tokens[at].text == "(":
            at = closing.get(at, at)
        elif tokens[at].text == ",":
            yield begin, at
            begin = at + 1
        at += 1
    if begin < high:
        yield begin, high
