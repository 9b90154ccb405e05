"""Where the tables are that a statement names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyspark.errors import PySparkException

from lakelog.core.engine.schemas import dotted
from lakelog.spark.names.identifiers import SESSION_CATALOG, path_in
from lakelog.spark.names.lookup import find
from lakelog.spark.names.resolve import with_location

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from lakelog.spark.names.catalog_entries import Entry

__all__ = ["Place", "entry_of", "opened", "path_in", "place_of"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Place:
    """A Delta table that a statement names."""

    path: str
    """What opens it: its folder, or its name where a catalog governs it."""
    parts: tuple[str, ...]
    """The name as the statement has it."""
    in_catalog: bool = False
    """Whether a catalog has the name."""
    whole: tuple[str, ...] = ()
    """The name with its catalog and database, if a catalog has it."""
    view: tuple[str, ...] = ()
    """The temporary view of a DataFrame by which the statement names the table, if it does so."""

    @property
    def is_governed(self) -> bool:
        """Whether the catalog is another one than Spark's own; `path` is the name there."""
        return self.whole[:1] not in ((), (SESSION_CATALOG,))

    @property
    def alias(self) -> str:
        """What expressions may call the table, where the statement gives it no other name."""
        return self.parts[-1]

    @property
    def text(self) -> str:
        """The name as SQL."""
        return dotted(self.parts)


def place_of(spark: SparkSession, parts: Sequence[str]) -> Place | None:
    """The Delta table of a name; `None` if the name is not one's, or does not exist.

    Args:
        spark: the session, whose catalog may be asked.
        parts: of the name.
    """
    path = path_in(parts)
    if path is not None:
        return Place(path, tuple(parts))
    entry = entry_of(spark, parts)
    if entry is None or not entry.is_delta:
        return None
    return Place(entry.location or "", tuple(parts), in_catalog=True, whole=entry.parts)


def entry_of(spark: SparkSession, parts: Sequence[str]) -> Entry | None:
    """What a name that is no path means; `None` if it means nothing of a catalog that is asked."""
    try:
        return find(spark, parts)
    except PySparkException:
        return None  # Spark will say what is wrong with its catalog


def opened(spark: SparkSession, place: Place, use: Callable[[str], _T]) -> _T:
    """Do something with the folder of a table, again if its name has another one by now.

    Args:
        spark: the session.
        place: the table.
        use: opens the table, and changes nothing if there is none.

    Raises:
        TableNotFoundError: there is none.
    """
    if not place.in_catalog:
        return use(place.path)
    return with_location(spark, place.parts, use)
