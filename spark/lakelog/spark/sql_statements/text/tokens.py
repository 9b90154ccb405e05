"""The tokens of a statement in Spark's SQL, each with its exact place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["word", "quoted", "string", "number", "symbol", "broken"]

# As Spark's lexer (SqlBaseLexer.g4) has them. A hint is also a comment to it, unless it follows
# SELECT, which is of no concern here.
# Quantifiers are possessive (`*+`): a long run of spaces would be tried again from each of its
# places otherwise, and a text comes from anyone.
_PART = re.compile(
    r"""
    (?:\s|--(?:\\\r?\n|[^\r\n])*)*+
    (?:
    (?P<word>[^\W\d]\w*+(?!'|"))
  | (?P<open>/\*)
  | (?P<raw>[rR](?:'[^']*'|"[^"]*"))
  | (?P<hex>[xX](?:'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"))
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<quoted>`(?:[^`]|``)*`)
  | (?P<dollar>\$(?P<tag>[A-Za-z_]\w*)?\$.*?\$(?P=tag)?\$)
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?:BD|bd|[LlSsYyFfDd])?(?!\w))
  | (?P<name>\w+)
  | (?P<symbol><=>|<>|!=|<=|>=|=>|->|\|>|::|\|\||.)
    )?+
    """,
    re.VERBOSE | re.DOTALL,
)
_BRACKETS = re.compile(r"/\*|\*/")
_KINDS: dict[str, Kind] = {
    "raw": "string",
    "hex": "string",
    "string": "string",
    "dollar": "string",
    "quoted": "quoted",
    "number": "number",
}
_WORDS = frozenset({"word", "name", "symbol"})
_OPENERS = frozenset("'\"`")


@dataclass(slots=True)  # frozen, making one takes three times as long
class Token:
    """A token; comments and white space are not tokens."""

    kind: Kind
    text: str
    """As written."""
    start: int
    upper: str
    """In upper case, if it is a word or a symbol; empty otherwise, so that it is not a keyword."""

    @property
    def end(self) -> int:
        """Where the text after it begins."""
        return self.start + len(self.text)

    @property
    def name(self) -> str | None:
        """What it means as (a part of) a name; `None` if it can't be one."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`")
        return self.text if self.kind == "word" else None


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text; a string or comment that doesn't end is one that is `broken`.

    Any text has tokens: whether it is SQL is Spark's to say.
    """
    found: list[Token] = []
    at, match = 0, _PART.match
    while (part := match(sql, at)) is not None:
        kind, at = part.lastgroup, part.end()
        if kind in _WORDS:
            text = part.group(kind)
            start = at - len(text)
            if text in _OPENERS:
                found.append(Token("broken", sql[start:], start, ""))
                break
            found.append(Token("symbol" if kind == "symbol" else "word", text, start, text.upper()))
        elif kind == "open":
            start, at = at - 2, _comment_end(sql, at)
            if at < 0:
                found.append(Token("broken", sql[start:], start, ""))
                break
        elif kind is None:
            break
        else:
            text = part.group(kind)
            found.append(Token(_KINDS[kind], text, at - len(text), ""))
    return found


def _comment_end(sql: str, at: int) -> int:
    """Where a bracketed comment ends whose inside begins at `at`; they nest. -1: nowhere."""
    depth = 1
    while depth:
        found = _BRACKETS.search(sql, at)
        if found is None:
            return -1
        depth += 1 if found.group() == "/*" else -1
        at = found.end()
    return at
