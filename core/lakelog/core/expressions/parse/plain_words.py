"""Parser errors in the user's own terms, without the parser's class names."""

from __future__ import annotations

import re

_MISSING = re.compile(r"Required (?:keyword|argument):? '?(\w+)'? missing for .*?(\w+)'>")
_CLASS = re.compile(r"<class '(?:\w+\.)*(\w+)'>")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def in_plain_words(message: str) -> str:
    """The message without names of the parser's own classes.

        Required keyword: 'high' missing for <class 'sqlglot.expressions.core.Between'>

    becomes `BETWEEN is incomplete`.
    """
    if match := _MISSING.search(message):
        return f"{_sql_words(match[2])} is incomplete: something is missing after it"
    return _CLASS.sub(lambda match: _sql_words(match[1]), message)


def _sql_words(name: str) -> str:
    return _WORDS.sub(" ", name).upper()
