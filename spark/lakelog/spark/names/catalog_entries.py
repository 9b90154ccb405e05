"""What a catalog says of one name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from lakelog.spark.names.identifiers import SESSION_CATALOG
from lakelog.spark.session.given_options import FORMATS

if TYPE_CHECKING:
    from lakelog.spark.names.stored_views import StoredView

Kind: TypeAlias = Literal["table", "view", "temporary view"]

_TYPE = re.compile(r"^Type: (\w+)$", re.MULTILINE)
# It follows the type at once; a comment, which may have any line, comes later.
_PROVIDER = re.compile(r"^Type: \w+\nProvider: (.+)$", re.MULTILINE)
# The line after it is one of Spark's: so a comment or a property that has such a line is passed by.
_LOCATION = re.compile(
    r"^Location: (.+)$(?=\s*\Z|\n(?:Serde|Input|Output|Storage|Partition|Schema|\s*\n))",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A table or view that a name means."""

    parts: tuple[str, ...]
    """Catalog, database and name; of a temporary view, the name alone."""
    kind: Kind
    provider: str | None = None
    """The format, in lower case."""
    location: str | None = None
    """The table's folder; or its name, by which a catalog that is not Spark's own opens it."""
    managed: bool = False
    """Whether the table's folder is the catalog's, and goes when the entry is dropped."""
    view: StoredView | None = None
    """The query of a view, which may read Delta tables."""

    @property
    def is_delta(self) -> bool:
        """Whether it is an entry of a Delta table."""
        return self.kind == "table" and self.provider in FORMATS and self.location is not None

    @property
    def is_governed(self) -> bool:
        """Whether another catalog than Spark's own has it; `location` is its name there."""
        return self.kind == "table" and self.parts[0].lower() != SESSION_CATALOG

    @property
    def text(self) -> str:
        """The name as Delta's messages have it: with dots, and without backticks."""
        return ".".join(self.parts)


def read_entry(parts: tuple[str, ...], information: str) -> Entry:
    """Read one row of `SHOW TABLE EXTENDED`.

    Args:
        parts: the whole name.
        information: the column of that name: lines of `Name: value`.
    """
    kind = _TYPE.search(information)
    if kind is not None and kind[1] == "VIEW":
        return Entry(parts, "view")
    provider = _PROVIDER.search(information)
    locations = _LOCATION.findall(information)
    return Entry(
        parts,
        "table",
        None if provider is None else provider[1].strip().lower(),
        _plain(locations[-1]) if locations else None,
        kind is not None and kind[1] == "MANAGED",
    )


def _plain(location: str) -> str:
    """A local folder without its scheme, as Spark's `file:/x` is shown without being encoded."""
    found = re.fullmatch(r"file:(?://(?=/))?(/.*)", location)
    return location if found is None else found[1]
