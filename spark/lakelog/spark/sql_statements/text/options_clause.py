"""Options in parentheses: `WITH (…)` after a table, `OPTIONS (…)` of a view and of CACHE TABLE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakelog.spark.sql_statements.text.statement import Statement


def given_options(given: Statement, value: Callable[[str], Any]) -> dict[str, str]:
    """Option in lower case -> its value.

    Args:
        given: what is between the parentheses: `'path' '/x', a.b = 1`.
        value: evaluates an expression.
    """
    found: dict[str, str] = {}
    tokens = given.tokens
    at = 0
    while at < len(tokens):
        key: list[str] = []
        while at < len(tokens) and (name := tokens[at].name or _plain(tokens[at].text)):
            key.append(name)
            at += 2 if at + 1 < len(tokens) and tokens[at + 1].text == "." else 1
            if tokens[at - 1].text != ".":
                break
        at += at < len(tokens) and tokens[at].text == "="
        if not key or at >= len(tokens):
            break
        text = tokens[at].text
        plain = _plain(text)
        found[".".join(key).lower()] = str(value(text)) if plain is None else plain
        at += 2
    return found


def _plain(text: str) -> str | None:
    """What a string literal means, where no parser setting makes a difference."""
    plain = text[:1] in ("'", '"') and not {"\\", text[0]} & set(text[1:-1])
    return text[1:-1] if plain else None
