"""A text of Spark's SQL with what is found in it, which every later step is handed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from lakelog.spark.sql_statements.text.references import references
from lakelog.spark.sql_statements.text.tokens import Token, tokenize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.spark.sql_statements.text.references import Reference

Edit: TypeAlias = tuple[int, int, str]
"""Start, end and the new text of a part."""


@dataclass(frozen=True)
class Statement:
    """A statement, several of them, or a part of one; it never changes.

    Tokens are found when they are first asked for, and once: a part has them from the text that it
    was cut out of. A text that a step rewrites is another `Statement`.
    """

    text: str
    """As written; offsets of tokens are in it."""
    cut: tuple[Statement, int, int, int] | None = field(default=None, repr=False, compare=False)
    """What it was cut out of: the whole, its first token there, the one after its last, and where
    its text begins."""

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The tokens of the text."""
        if self.cut is None:
            return tuple(tokenize(self.text))
        whole, first, end, begin = self.cut
        found = whole.tokens[first:end]
        # A text that begins where the whole does keeps the offsets, and a long INSERT its tokens.
        if not begin:
            return found
        return tuple(Token(each.kind, each.text, each.start - begin, each.upper) for each in found)

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """The tables that its queries name, in the order of the text."""
        return tuple(references(self.tokens))

    def piece(self, first: int, end: int) -> Statement:
        """The part from a token up to another.

        Args:
            first: the number of its first token.
            end: the number of the token after it.
        """
        if first >= end:
            return Statement("")
        return self.part(first, end, self.tokens[first].start, self.tokens[end - 1].end)

    def part(self, first: int, end: int, begin: int, stop: int) -> Statement:
        """A part with some of what is around its tokens.

        Args:
            first: the number of its first token.
            end: the number of the token after it.
            begin: where the text of the part begins.
            stop: where it ends.
        """
        return Statement(self.text[begin:stop], (self, first, end, begin))

    def without_semicolons(self) -> Statement:
        """The same text, with the semicolons at its end left out of the tokens."""
        end = len(self.tokens)
        while end and self.tokens[end - 1].text == ";":
            end -= 1
        return self if end == len(self.tokens) else Statement(self.text, (self, 0, end, 0))

    def replaced(self, edits: Sequence[Edit]) -> Statement:
        """The statement with other text in some places; itself if there are none.

        Args:
            edits: start, end and the new text of each place, in their order.
        """
        return Statement(rewritten(self.text, edits)) if edits else self


def rewritten(text: str, edits: Sequence[Edit], *, escape: bool = False) -> str:
    """A text with some parts replaced.

    Args:
        text: the text.
        edits: start, end and the new text of each part, in their order.
        escape: whether braces of the text mean themselves where it is filled in.
    """
    parts, at = [], 0
    for start, end, new in edits:
        parts += [_escaped(text[at:start], escape=escape), new]
        at = end
    return "".join([*parts, _escaped(text[at:], escape=escape)])


def _escaped(text: str, *, escape: bool) -> str:
    return text.replace("{", "{{").replace("}", "}}") if escape else text
