"""What readers and writers are given by PySpark's methods: a format, options, columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable

FORMATS: Final = ("delta", "lakelog")
"""The names that a Delta table's format goes by."""


def check_format(source: str, what: str, other: str) -> None:
    """Refuse a format that is not Delta's.

    Args:
        source: as given; case does not count.
        what: for the message, what is asked: `this writer writes`.
        other: what takes other formats, by their name: `df.write.format`.

    Raises:
        DeltaAnalysisError: it is another one.
    """
    if source.strip().lower() not in FORMATS:
        raise DeltaAnalysisError(
            f"{what} Delta tables: the format must be one of {', '.join(FORMATS)}, not "
            f"{source!r}. Use {other}({source!r}) for that one.",
            format=source,
        )


def option_text(value: object) -> str:
    """The value of an option as Spark stores it: `true` and `false` in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def set_option(options: dict[str, str], key: str, value: object) -> None:
    """Set an option in place of the one whose name differs in case alone; `None` removes it."""
    for known in [each for each in options if each.lower() == key.lower()]:
        del options[known]
    if value is not None:
        options[key] = option_text(value)


def flat_names(columns: Iterable[str | list[str] | tuple[str, ...]]) -> tuple[str, ...]:
    """The names of columns, given alone or in lists, as PySpark's `partitionBy` takes them."""
    names: list[str] = []
    for each in columns:
        names += [each] if isinstance(each, str) else each
    return tuple(names)
