"""What the addresses of pages carry, read strictly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakelog.cli.table_options import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping


class BadFieldError(ValueError):
    """A field of an address that is not what it should be."""


def number(fields: Mapping[str, str], name: str, default: int, *, most: int | None = None) -> int:
    """A whole number that is not negative.

    Args:
        fields: of the address.
        name: of the field.
        default: where it is missing or empty.
        most: what larger numbers are brought down to; None for no limit.

    Raises:
        BadFieldError: it is no such number.
    """
    given = fields.get(name, "").strip()
    if not given:
        return default
    found = whole_number(given)
    if found is None:
        raise BadFieldError(f"{name}: {given[:50]!r} is no whole number. Give one from 0 on.")
    return found if most is None else min(found, most)


def text(fields: Mapping[str, str], name: str) -> str | None:
    """A text, None where it is missing or blank."""
    return fields.get(name, "").strip() or None
