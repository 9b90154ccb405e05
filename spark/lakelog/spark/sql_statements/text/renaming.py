"""What gives the tables of a query other names, and leaves everything else as it was written."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lakelog.spark.types.path_forms import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lakelog.spark.sql_statements.text.references import Reference
    from lakelog.spark.sql_statements.text.statement import Edit
    from lakelog.spark.sql_statements.text.tokens import Token


def edits_of(
    tokens: Sequence[Token],
    found: Sequence[Reference],
    names: Sequence[str],
    known: Sequence[Sequence[tuple[str, ...]]],
) -> list[Edit]:
    """What gives each table another name; one without an alias keeps its own as that.

    Args:
        tokens: those of the text.
        found: the tables.
        names: to be written for them.
        known: of each, what columns of it may have before them.

    Returns:
        Start, end and the new text of each part, in their order.
    """
    edits: list[Edit] = []
    for name, each in zip(names, found, strict=True):
        start, end = tokens[each.first].start, tokens[each.end - 1].end
        edits.append((start, end, name))
        if each.alias_at is not None:
            at = tokens[each.alias_at - 1].end
            alias = each.parts[0] if each.is_call else each.parts[-1]
            edits.append((at, at, f" AS {quoted(alias)}"))
    edits += _qualifiers(tokens, found, known)
    return sorted(edits, key=lambda each: each[:2])


def _qualifiers(
    tokens: Sequence[Token],
    found: Sequence[Reference],
    names: Sequence[Sequence[tuple[str, ...]]],
) -> list[Edit]:
    """Columns that are qualified by a name of several parts: the alias has the last one alone."""
    named = {
        tuple(part.lower() for part in parts): each.parts[-1]
        for each, known in zip(found, names, strict=True)
        for parts in known
        if len(parts) > 1 and each.alias_at is not None
    }
    edits = []
    inside = {at for each in found for at in range(each.first, each.end)}
    for parts, alias in named.items():
        width = 2 * len(parts)
        for at in range(len(tokens) - width):
            if at in inside or (at and tokens[at - 1].text == "."):
                continue
            window = tokens[at : at + width]
            dots = all(each.text == "." for each in window[1::2])
            if dots and tuple((each.name or "").lower() for each in window[::2]) == parts:
                edits.append((window[0].start, window[-2].end, quoted(alias)))
    return edits


def renaming(
    tokens: Sequence[Token], found: Sequence[Reference], names: Sequence[Sequence[str]]
) -> list[Edit]:
    """What gives some tables the names that they have wherever the query is read.

    Args:
        tokens: those of the text.
        found: the tables.
        names: the whole name of each.
    """
    return edits_of(
        tokens,
        [replace(each, end=each.name_end) for each in found],
        [".".join(map(quoted, parts)) for parts in names],
        [
            [each.parts, tuple(parts), tuple(parts[1:])]
            for each, parts in zip(found, names, strict=True)
        ],
    )
