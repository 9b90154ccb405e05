"""What a parser says of a text, in words for whoever wrote the text."""

from __future__ import annotations

import re

__all__ = ["in_plain_words"]

_MISSING = re.compile(r"Required (?:keyword|argument):? '?(\w+)'? missing for .*?(\w+)'>")
_CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def in_plain_words(said: str) -> str:
    """The message without names of the parser's own classes.

        Required keyword: 'high' missing for <class 'sqlglot.expressions.core.Between'>

    becomes `BETWEEN is incomplete`.
    """
    if match := _MISSING.search(said):
        return f"{_spelled(match[2])} is incomplete: something is missing behind it"
    return _CLASS.sub(lambda match: _spelled(match[1]), said)


def _spelled(name: str) -> str:
    return _WORDS.sub(" ", name).upper()
