"""What readers and writers are given by PySpark's methods: a format, options, columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

from lakelog.core.errors import DeltaAnalysisError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def without_path(options: Mapping[str, str]) -> tuple[str | None, dict[str, str]]:
    """The option `path`, and the others."""
    path = next((value for key, value in options.items() if key.lower() == "path"), None)
    return path, {key: value for key, value in options.items() if key.lower() != "path"}


class WithOptions:
    """The options of PySpark's readers and writers; each class says which it knows."""

    def __init__(self) -> None:
        """Start without options."""
        self._options: dict[str, str] = {}

    def option(self, key: str, value: bool | float | int | str | None) -> Self:
        """Set an option of those that the class names; `None` takes it back.

        Names are compared ignoring case.
        """
        set_option(self._options, key, value)
        return self

    def options(self, **options: bool | float | int | str | None) -> Self:
        """Set several options; see `option`."""
        for key, value in options.items():
            self.option(key, value)
        return self


class WithFormat(WithOptions):
    """The same, of those that take a format by its name."""

    _takes: ClassVar[tuple[str, str]]
    """What is asked, and what takes other formats; as `check_format` wants them."""

    def format(self, source: str) -> Self:
        """Accept `delta` and `lakelog`, so that a script changes in one place only.

        Raises:
            DeltaAnalysisError: another format.
        """
        check_format(source, *self._takes)
        return self


class WithColumns(WithFormat):
    """The same, of writers that may make a table."""

    def __init__(self) -> None:
        """Start without options and columns."""
        super().__init__()
        self._partition_by: tuple[str, ...] | None = None
        self._cluster_by: tuple[str, ...] = ()

    def partitionBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:  # noqa: N802
        """The columns to partition a new table by. An existing table keeps its own."""
        self._partition_by = flat_names(cols)
        return self

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:  # noqa: N802
        """The columns that `OPTIMIZE` sorts the files of a new table by, at most four.

        An existing table must be clustered by the same columns
        (`DELTA_CLUSTERING_COLUMNS_MISMATCH`).
        """
        self._cluster_by = flat_names(cols)
        return self


def flat_names(columns: Iterable[str | list[str] | tuple[str, ...]]) -> tuple[str, ...]:
    """The names of columns, given alone or in lists, as PySpark's `partitionBy` takes them."""
    names: list[str] = []
    for each in columns:
        names += [each] if isinstance(each, str) else each
    return tuple(names)
