"""Walking along the tokens of a statement: words, names, and pieces of text left as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakelog.spark.sql_statements.text.syntax_errors import SqlSyntaxError, located

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from lakelog.spark.sql_statements.text.statement import Statement
    from lakelog.spark.sql_statements.text.tokens import Token

_OPENING = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPENING.values())


@dataclass(frozen=True, slots=True)
class Name:
    """A name of one or more parts: `a.b`, `` delta.`/path` ``."""

    parts: tuple[str, ...]
    first: int
    """The number of its first token."""
    end: int
    """The number of the token after it."""

    @property
    def text(self) -> str:
        """As SQL, each part quoted where it has to be."""
        from lakelog.core.engine.schemas import dotted

        return dotted(self.parts)


class Cursor:
    """A place among the tokens of a statement."""

    def __init__(
        self, statement: Statement, piece: Callable[[int, int], Statement] | None = None
    ) -> None:
        """Begin at the first token.

        Args:
            statement: the statement.
            piece: gives a range of tokens, with the values of parameters in it.
        """
        self.statement = statement
        self.tokens: tuple[Token, ...] = statement.tokens
        self.at: int = 0
        self._piece = piece or statement.piece

    @property
    def word(self) -> str:
        """The token here as a keyword or symbol; empty if it is neither, or the end."""
        return self.tokens[self.at].upper if self.at < len(self.tokens) else ""

    @property
    def token(self) -> Token | None:
        """The token here; `None` at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def ahead(self, count: int) -> str:
        """The keyword or symbol some tokens further on."""
        at = self.at + count
        return self.tokens[at].upper if at < len(self.tokens) else ""

    def has(self, *words: str) -> bool:
        """Whether these keywords come next."""
        return all(self.ahead(i) == each for i, each in enumerate(words))

    def took(self, *words: str) -> bool:
        """Go past these keywords if all of them come next."""
        if not self.has(*words):
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        """Go past these keywords.

        Raises:
            SqlSyntaxError: something else is here.
        """
        for each in words:
            if not self.took(each):
                raise self.unexpected(each)

    def need_any(self, *words: str) -> str:
        """Go past one of these keywords, and say which it is.

        Raises:
            SqlSyntaxError: something else is here.
        """
        found = self.word
        if found not in words or not found:
            raise self.unexpected(*words)
        self.at += 1
        return found

    def unexpected(self, *wanted: str) -> SqlSyntaxError:
        """The error for what is here."""
        token = self.token
        found = "the end of the statement" if token is None else repr(_short(token.text))
        hint = f"; expected {_either(wanted)}" if wanted else ""
        return self.error(f"[PARSE_SYNTAX_ERROR] Syntax error at or near {found}{hint}")

    def error(
        self, message: str, at: int | None = None, kind: type[SqlSyntaxError] = SqlSyntaxError
    ) -> SqlSyntaxError:
        """An error at a token; the one here, unless another is given."""
        number = self.at if at is None else at
        if number < len(self.tokens):
            place = self.tokens[number].start
        else:
            place = self.tokens[-1].end if self.tokens else 0
        return located(self.statement.text, place, message, kind)

    def end(self) -> None:
        """Make sure that nothing is left.

        Raises:
            SqlSyntaxError: something is.
        """
        if self.token is not None:
            raise self.unexpected("the end of the statement")

    def identifier(self) -> str:
        """Go past one part of a name.

        Raises:
            SqlSyntaxError: something else is here.
        """
        token = self.token
        if token is None or token.name is None:
            raise self.unexpected("a name")
        self.at += 1
        return token.name

    def name(self) -> Name:
        """Go past a name of one or more parts.

        Raises:
            SqlSyntaxError: something else is here.
        """
        first, parts = self.at, [self.identifier()]
        while self.took("."):
            parts.append(self.identifier())
        return Name(tuple(parts), first, self.at)

    def names(self) -> list[Name]:
        """Go past names in parentheses, separated by commas."""
        self.need("(")
        found = [self.name()]
        while self.took(","):
            found.append(self.name())
        self.need(")")
        return found

    def string(self) -> str | None:
        """Go past a string literal, and give its text as written; `None` if there is none."""
        token = self.token
        if token is None or token.kind != "string":
            return None
        self.at += 1
        return token.text

    def expression(self, *stops: str, what: str = "an expression") -> Statement:
        """Go past an expression, up to one of some keywords outside of all brackets.

        Raises:
            SqlSyntaxError: there is none, or its brackets don't match.
        """
        first = self.at
        self.skip(*stops)
        if first == self.at:
            raise self.unexpected(what)
        return self.piece(first, self.at)

    def group(self) -> Statement:
        """Go past parentheses, and give what is in them.

        Raises:
            SqlSyntaxError: there are none, or they don't match.
        """
        first = self.at + 1
        self.skip_group()
        return self.piece(first, self.at - 1)

    def skip_group(self) -> None:
        """Go past parentheses and all that is in them."""
        begin = self.at
        if self.word != "(":
            raise self.unexpected("(")
        self.at += 1
        self.skip()
        if not self.took(")"):
            raise self.error("[PARSE_SYNTAX_ERROR] This parenthesis is never closed", begin)

    def skip(self, *stops: str) -> None:
        """Go on to one of some keywords outside of all brackets, or to a bracket that closes."""
        open_: list[tuple[str, int]] = []
        while (token := self.token) is not None:
            # After a dot a keyword is a part of a name: `t.end`, `s.when`.
            word = "" if self.at and self.tokens[self.at - 1].text == "." else token.upper
            if not open_ and (word in stops or word in _CLOSING):
                return
            if token.kind == "broken":
                raise self.error("[PARSE_SYNTAX_ERROR] This string or comment is never closed")
            if word in _OPENING:
                open_.append((_OPENING[word], self.at))
            elif word == "CASE":
                open_.append(("END", self.at))
            elif open_ and word == open_[-1][0]:
                open_.pop()
            elif word in _CLOSING:
                while open_ and open_[-1][0] == "END":
                    open_.pop()  # a column that is named case
                if not open_ or open_.pop()[0] != word:
                    raise self.unexpected()
            self.at += 1
        brackets = [each for each in open_ if each[0] != "END"]
        if brackets:
            raise self.error("[PARSE_SYNTAX_ERROR] This bracket is never closed", brackets[-1][1])

    def rest(self) -> Statement:
        """Go past all that is left.

        Raises:
            SqlSyntaxError: its brackets don't match.
        """
        first = self.at
        self.skip()
        self.end()
        return self.piece(first, self.at)

    def piece(self, first: int, end: int) -> Statement:
        """Some tokens as a statement of their own, with the values of parameters in it."""
        return self._piece(first, end)

    def text(self, first: int, end: int) -> str:
        """The text of some tokens, with the values of parameters in it."""
        return self._piece(first, end).text


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"


def _either(words: Sequence[str]) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"
